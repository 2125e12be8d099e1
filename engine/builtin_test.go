package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// TestExamplesOfFunctions runs each example of each function as a rule, once with its
// arguments in the text and once with them in a fact, by this engine and by the naive
// one.
func TestExamplesOfFunctions(t *testing.T) {
	for _, s := range builtin.Specs() {
		t.Run(s.Name, func(t *testing.T) {
			for i := range s.Examples {
				e := &s.Examples[i]
				testExample(t, e, "+one(x: int)\nr(X) <- one(_), X = "+s.Call(e)+"\n", "one",
					[]value.Value{value.OfInt(1)})
				vars := make([]string, len(e.Args))
				columns := make([]string, len(e.Args))
				for j, a := range e.Args {
					vars[j] = fmt.Sprintf("V%d", j)
					columns[j] = fmt.Sprintf("c%d: %s", j, a.Kind())
				}
				call := s.Name + "(" + strings.Join(vars, ", ") + ")"
				if s.Group == builtin.Operators {
					call = strings.Join(vars, " "+s.Name+" ")
				}
				testExample(t, e, "+args("+strings.Join(columns, ", ")+")\nr(X) <- args("+
					strings.Join(vars, ", ")+"), X = "+call+"\n", "args", e.Args)
			}
		})
	}
}

// testExample evaluates relation r of a program over one fact.
func testExample(t *testing.T, e *builtin.Example, source, relation string, row []value.Value) {
	t.Helper()
	file, err := parse.Program(source)
	if err != nil {
		t.Errorf("%s%v", source, err)
		return
	}
	p, err := analysis.Analyse(file, source)
	if err != nil {
		t.Errorf("%s%v", source, err)
		return
	}
	tree, err := parse.Query("?r(X)")
	if err != nil {
		t.Fatal(err)
	}
	q, err := analysis.AnalyseQuery(p, tree)
	if err != nil {
		t.Fatal(err)
	}
	want := "[]"
	if e.Fails == "" {
		want = fmt.Sprint([]value.Value{e.Want})
	}
	main := New(nil)
	if _, err := main.Deploy(p, false); err != nil {
		t.Fatal(err)
	}
	if _, _, err := main.Apply(1, []analysis.Op{{Relation: relation, Row: row}}); err != nil {
		t.Fatal(err)
	}
	result, err := main.Query(q, nil, QueryOptions{})
	if err != nil {
		t.Errorf("%s%v", source, err)
		return
	}
	if got := fmt.Sprint(result.Rows); got != want {
		t.Errorf("%sgives %s, want %s", source, got, want)
	}
	facts := naive.Facts{relation: naive.Set{}}
	facts[relation].Add(row)
	var rows []value.Value
	for _, row := range naive.Answer(naive.Derive(p, facts), q, nil) {
		rows = append(rows, row...)
	}
	if got := fmt.Sprint(rows); got != want {
		t.Errorf("%sgives %s by the naive engine, want %s", source, got, want)
	}
}
