package analysis_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 takes one from the clock")

// domain is the number of ints that the random queries range over.
const domain = 4

// TestMeaning compares random queries, full of equalities, with what their text
// says: all assignments are tried on the tree, and the IR is answered naively.
func TestMeaning(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	accepted := 0
	for round := 0; accepted < 2000 && round < 100_000; round++ {
		src := randomQuery(random)
		tree, err := parse.Query(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		program := meaningProgram(t)
		q, err := analysis.AnalyseQuery(program, tree)
		if err != nil {
			continue // an unbound variable, or a parameter without a type
		}
		accepted++
		facts := randomFacts(random)
		parameters := make([]value.Value, len(q.Parameters))
		named := map[string]int64{}
		for i, p := range q.Parameters {
			n := random.Int64N(domain)
			parameters[i], named["$"+p.Name] = value.OfInt(n), n
		}
		got := fmt.Sprint(naive.Answer(naive.Derive(program, facts), q, parameters))
		if want := fmt.Sprint(tryAll(tree, facts, named)); got != want {
			t.Fatalf("%s\nwith %v over %v\ngot  %s\nwant %s", src, named, facts, got, want)
		}
	}
	if accepted < 2000 {
		t.Errorf("only %d queries were accepted", accepted)
	}
}

func meaningProgram(t *testing.T) *analysis.Program {
	const src = "+e(a: int, b: int)\n+f(a: int, b: int)"
	file, err := parse.Program(src)
	if err != nil {
		t.Fatal(err)
	}
	p, err := analysis.Analyse(file, src)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func randomFacts(random *rand.Rand) naive.Facts {
	facts := naive.Facts{"e": naive.Set{}, "f": naive.Set{}}
	for _, name := range []string{"e", "f"} {
		for range 6 {
			facts[name].Add([]value.Value{
				value.OfInt(random.Int64N(domain)), value.OfInt(random.Int64N(domain)),
			})
		}
	}
	return facts
}

func randomQuery(random *rand.Rand) string {
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	argument := func() string { return pick("A", "B", "C", "D", "_", "1", "$p", "A", "B") }
	side := func() string { return pick("A", "B", "C", "D", "E", "1", "2", "$p", "$q") }
	atom := func() string { return pick("e", "f") + "(" + argument() + ", " + argument() + ")" }
	parts := []string{atom()}
	for range random.IntN(2) {
		parts = append(parts, atom())
	}
	for range random.IntN(4) {
		parts = append(parts, side()+" "+pick("=", "=", "=", "!=", "<", "<=", ">", ">=")+" "+side())
	}
	return "?" + strings.Join(parts, ", ")
}

// tryAll answers a query by its text alone: every assignment of the domain to
// its variables is tried, and the goal's arguments and the other variables are
// listed.
func tryAll(q *parse.QueryTree, facts naive.Facts, parameters map[string]int64) [][]value.Value {
	body := append([]parse.Literal{{Atom: &q.Goal}}, q.Body...)
	var names []string
	for _, l := range body {
		for _, t := range termsOf(l) {
			if t.Kind == parse.Variable && !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	rows := naive.Set{}
	assignment := map[string]int64{}
	var assign func(n int)
	assign = func(n int) {
		if n < len(names) {
			for i := range int64(domain) {
				assignment[names[n]] = i
				assign(n + 1)
			}
			return
		}
		for _, l := range body {
			if !literalHolds(l, facts, assignment, parameters) {
				return
			}
		}
		rows.Add(outputRow(q, names, assignment, parameters))
	}
	assign(0)
	sorted := make([][]value.Value, 0, len(rows))
	for _, row := range rows {
		sorted = append(sorted, row)
	}
	slices.SortFunc(sorted, naive.CompareRows)
	return sorted
}

func termsOf(l parse.Literal) []parse.Term {
	if l.Atom != nil {
		return l.Atom.Terms
	}
	return []parse.Term{l.Comparison.Left, l.Comparison.Right}
}

func intOf(t parse.Term, assignment, parameters map[string]int64) int64 {
	switch t.Kind {
	case parse.Variable:
		return assignment[t.Name]
	case parse.Parameter:
		return parameters["$"+t.Name]
	}
	return t.Value.Int()
}

func literalHolds(
	l parse.Literal, facts naive.Facts, assignment, parameters map[string]int64,
) bool {
	if l.Atom == nil {
		left := intOf(l.Comparison.Left, assignment, parameters)
		right := intOf(l.Comparison.Right, assignment, parameters)
		return [...]bool{
			left == right, left != right, left < right, left <= right, left > right,
			left >= right,
		}[l.Comparison.Op]
	}
	for _, row := range facts[l.Atom.Relation.Text] {
		matches := true
		for i, t := range l.Atom.Terms {
			if t.Kind != parse.Wildcard && intOf(t, assignment, parameters) != row[i].Int() {
				matches = false
			}
		}
		if matches {
			return true
		}
	}
	return false
}

func outputRow(
	q *parse.QueryTree, names []string, assignment, parameters map[string]int64,
) []value.Value {
	var row []value.Value
	inGoal := map[string]bool{}
	for _, t := range q.Goal.Terms {
		if t.Kind != parse.Wildcard {
			row = append(row, value.OfInt(intOf(t, assignment, parameters)))
			inGoal[t.Name] = inGoal[t.Name] || t.Kind == parse.Variable
		}
	}
	for _, name := range names {
		if !inGoal[name] {
			row = append(row, value.OfInt(assignment[name]))
		}
	}
	return row
}
