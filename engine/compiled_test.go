package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// asked analyses a query against the engine's program and answers it.
func asked(t *testing.T, e *Engine, text string, parameters ...any) (QueryResult, error) {
	t.Helper()
	tree, err := parse.Query(text)
	if err != nil {
		t.Fatal(err)
	}
	q, err := analysis.AnalyseQuery(e.Program(), tree)
	if err != nil {
		t.Fatal(err)
	}
	return e.Query(q, vals(parameters...), QueryOptions{})
}

// wantAsked compares an answer with one of an evaluator that has nothing compiled.
func wantAsked(t *testing.T, e *Engine, text string, parameters ...any) {
	t.Helper()
	got, err := asked(t, e, text, parameters...)
	tree, _ := parse.Query(text)
	q, _ := analysis.AnalyseQuery(e.Program(), tree)
	v := e.evaluator(q, vals(parameters...))
	v.indirect = true
	if wantErr := v.evaluate(); fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%s %v: %v, want %v", text, parameters, err, wantErr)
	}
	if !slices.Equal(got.Rows, v.out.Rows) || got.Count != v.out.Count ||
		(got.Errors != nil) != (v.out.Errors != nil) {
		t.Fatalf("%s %v: %+v, want %+v", text, parameters, got, v.out)
	}
	if got.Errors != nil && fmt.Sprint(*got.Errors) != fmt.Sprint(*v.out.Errors) {
		t.Fatalf("%s %v: %+v, want %+v", text, parameters, *got.Errors, *v.out.Errors)
	}
}

const compiledProgram = `
+edge(src: int, dst: int)
+name(node: int, text: string?)
hot(X, Y) <- edge(X, Y), name(X, "hot")
far(X, Y) <- edge(X, Y)
far(X, Z) <- far(X, Y), edge(Y, Z)
`

func parsed(t *testing.T, source string) *analysis.Program {
	t.Helper()
	tree, err := parse.Program(source)
	if err != nil {
		t.Fatal(err)
	}
	p, err := analysis.Analyse(tree, source)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCompiledQueries asks queries that differ in constants and names again and again
// between writes and deployments.
func TestCompiledQueries(t *testing.T) {
	e := New(nil)
	deploy := func() {
		if _, err := e.Deploy(parsed(t, compiledProgram), false); err != nil {
			t.Fatal(err)
		}
	}
	deploy()
	g := rand.New(rand.NewPCG(7, 8))
	texts := []string{"hot", "cold", "", "new"}
	for round := range 400 {
		op := ins("edge", g.IntN(8), g.IntN(8))
		if g.IntN(2) == 0 {
			op = ins("name", g.IntN(8), texts[g.IntN(3)])
		}
		op.Delete = g.IntN(3) == 0
		apply(t, e, uint64(round), op)
		x, y := g.IntN(8), g.IntN(8)-4
		wantAsked(t, e, fmt.Sprintf("?edge(%d, Y)", x))
		wantAsked(t, e, fmt.Sprintf("?edge(%d, To)", y))
		wantAsked(t, e, "?edge($x, Y)", x)
		wantAsked(t, e, fmt.Sprintf("?edge(%d, %d)", x, y))
		wantAsked(t, e, "?edge(X, X)")
		wantAsked(t, e, "?edge(_, Y)")
		wantAsked(t, e, fmt.Sprintf("?hot(X, Y), X > %d, Y != %d", y, x))
		wantAsked(t, e, fmt.Sprintf("?hot(X, _), !edge(X, %d), !name(X, %q)", x, texts[g.IntN(4)]))
		wantAsked(t, e, fmt.Sprintf("?edge(X, Y), Z = 12 / (X - %d)", x))
		wantAsked(t, e, fmt.Sprintf("?edge(X, Y), Z = X + %d, Z > Y, edge(Z, _)", y))
		wantAsked(t, e, fmt.Sprintf("?name(X, %q)", texts[g.IntN(4)]))
		wantAsked(t, e, "?name(X, null)")
		wantAsked(t, e, fmt.Sprintf("?far(%d, Y)", x))
		wantAsked(t, e, fmt.Sprintf("?edge(X, Y) order by Y desc limit %d", 1+g.IntN(5)))
		if round%50 == 49 {
			deploy()
		}
	}
	if n := len(e.compiled.byShape); n > 20 {
		t.Errorf("%d shapes of queries", n)
	}
}

// TestCompiledQueriesAreBounded asks queries of many shapes, whose constants come, go
// and get other ids, and looks whether anything is held for them.
func TestCompiledQueriesAreBounded(t *testing.T) {
	e := New(nil)
	var source strings.Builder
	source.WriteString("+edge(src: int, dst: int)\n+name(node: int, text: string?)\n")
	for i := range 2 * compiledMax {
		source.WriteString(fmt.Sprintf("r%d(X, Y) <- edge(X, Y), name(X, \"text %d\")\n", i, i%3))
	}
	if _, err := e.Deploy(parsed(t, source.String()), false); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		apply(t, e, 1, ins("name", i, fmt.Sprint("text ", i)), ins("edge", i, i))
	}
	for i := range 2 * compiledMax {
		wantAsked(t, e, fmt.Sprintf("?r%d(X, %d)", i, i%3))
		if n := len(e.compiled.byShape); n > compiledMax {
			t.Fatalf("%d queries are compiled", n)
		}
	}
	for i := range 3 {
		apply(t, e, 2, del("name", i, fmt.Sprint("text ", i)))
		wantAsked(t, e, fmt.Sprintf("?r%d(X, Y)", i))
	}
	if n := e.Stats().Symbols; n != 0 {
		t.Errorf("%d symbols are held for compiled queries", n)
	}
	// Their ids are those of other values now.
	for i := range 3 {
		apply(t, e, 3, ins("name", i, fmt.Sprint("other ", i)))
	}
	for i := range 2 * compiledMax {
		wantAsked(t, e, fmt.Sprintf("?r%d(X, _)", i))
	}
	for i := range 3 {
		apply(t, e, 3, ins("name", i, fmt.Sprint("text ", i)))
	}
	for i := range 2 * compiledMax {
		wantAsked(t, e, fmt.Sprintf("?r%d(X, _)", i))
	}
	if _, err := e.Deploy(parsed(t, "+edge(src: int, dst: int)\n"), true); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		apply(t, e, 3, ins("edge", i, 5))
	}
	if n := e.Stats().Symbols; n != 0 || len(e.compiled.byShape) > 0 {
		t.Errorf("%d symbols are held after the program is gone", n)
	}
}

// TestQueryAllocatesItsRows looks for allocations besides the rows of an answer.
func TestQueryAllocatesItsRows(t *testing.T) {
	program := hotProgram()
	e := deployed(t, program)
	apply(t, e, 1, ins("edge", 1, 2), ins("edge", 1, 3), ins("label", 1, "hot"))
	q := program.query([]string{"H"}, []string{"H", "Y"}, a("r1", "H", "Y"), a("!=", "Y", 7))
	key := vals(1)
	opt := QueryOptions{MaxRows: 10, Budget: 1000}
	allocations := testing.AllocsPerRun(100, func() {
		if r, err := e.Query(q, key, opt); err != nil || r.Count != 2 {
			t.Fatal(r, err)
		}
	})
	if allocations > 1 {
		t.Errorf("%v allocations", allocations)
	}
	opt.Budget = 2
	if _, err := e.Query(q, key, opt); !errors.Is(err, ErrBudget) {
		t.Errorf("a budget of two steps: %v", err)
	}
	opt.Budget = 1000
	if r, err := e.Query(q, key, opt); err != nil || r.Count != 2 {
		t.Errorf("after a query that failed: %+v, %v", r, err)
	}
	if !slices.Equal(vals(1), key) || key[0] != value.OfInt(1) {
		t.Error("the parameters changed")
	}
}
