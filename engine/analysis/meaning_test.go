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

// TestMeaning compares random queries, full of equalities, negations and sums, with
// what their text says: all assignments are tried on the tree, and the IR is answered
// naively. Rows with values outside of the domain are left out on both sides.
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
		answer := naive.Answer(naive.Derive(program, facts), q, parameters)
		got := fmt.Sprint(slices.DeleteFunc(answer, func(row []value.Value) bool {
			return slices.ContainsFunc(row, func(v value.Value) bool {
				return v.Int() < 0 || v.Int() >= domain
			})
		}))
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
	plain := func() string { return pick("A", "B", "C", "D", "_", "1", "$p", "A", "B") }
	operand := func() string { return pick("A", "B", "C", "1", "2", "$p") }
	sum := func() string { return operand() + pick(" + ", " - ", " * ") + operand() }
	argument := func() string { return pick(plain(), plain(), plain(), plain(), sum()) }
	side := func() string {
		return pick("A", "B", "C", "D", "E", "1", "2", "$p", "$q", sum(), sum()+" - "+operand())
	}
	atom := func() string { return pick("e", "f") + "(" + argument() + ", " + argument() + ")" }
	parts := []string{atom()}
	for range random.IntN(2) {
		parts = append(parts, atom())
	}
	if random.IntN(3) == 0 {
		parts = append(parts, "!"+atom())
	}
	for range random.IntN(4) {
		parts = append(parts, side()+" "+pick("=", "=", "=", "!=", "<", "<=", ">", ">=")+" "+side())
	}
	random.Shuffle(len(parts)-1, func(i, j int) {
		parts[i+1], parts[j+1] = parts[j+1], parts[i+1]
	})
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

// termsOf returns the terms of a condition and the operands of its expressions.
func termsOf(l parse.Literal) []parse.Term {
	terms := []parse.Term{l.Comparison.Left, l.Comparison.Right}
	if l.Atom != nil {
		terms = slices.Clone(l.Atom.Terms)
	}
	for i := 0; i < len(terms); i++ {
		if terms[i].Kind == parse.Expression {
			terms = slices.Insert(terms, i+1, terms[i].Call.Args...)
		}
	}
	return terms
}

func intOf(t parse.Term, assignment, parameters map[string]int64) int64 {
	switch t.Kind {
	case parse.Variable:
		return assignment[t.Name]
	case parse.Parameter:
		return parameters["$"+t.Name]
	case parse.Expression:
		x := intOf(t.Call.Args[0], assignment, parameters)
		y := intOf(t.Call.Args[1], assignment, parameters)
		return map[string]int64{"+": x + y, "-": x - y, "*": x * y}[t.Call.Name]
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
			return !l.Negated
		}
	}
	return l.Negated
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
