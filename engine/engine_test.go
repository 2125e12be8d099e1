package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/value"
)

func deployed(t testing.TB, b *builder) *Engine {
	t.Helper()
	e := New(nil)
	if _, err := e.Deploy(b.program(), false); err != nil {
		t.Fatal(err)
	}
	return e
}

func apply(t testing.TB, e *Engine, revision uint64, ops ...analysis.Op) {
	t.Helper()
	if err := e.Check(ops); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Apply(revision, ops); err != nil {
		t.Fatal(err)
	}
}

func watch(t testing.TB, e *Engine, view string, key ...any) *Key {
	t.Helper()
	k, err := e.Watch(view, vals(key...))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// show spells flat rows of a key's first part as "(1 2) (1 3)".
func show(k *Key, flat []value.Value) string { return showPart(k, 0, flat) }

func showPart(k *Key, part int, flat []value.Value) string {
	var rows []string
	for row := range slices.Chunk(flat, max(1, len(k.Columns(part)))) {
		rows = append(rows, strings.Trim(fmt.Sprint(row), "[]"))
	}
	return "(" + strings.Join(rows, ") (") + ")"
}

func wantRows(t *testing.T, e *Engine, k *Key, want string) {
	t.Helper()
	if got := show(k, e.Rows(k, 0, nil)); got != want {
		t.Errorf("rows of %s%v: %s, want %s", k.View(), k.Values(), got, want)
	}
}

// wantChanges compares all pending changes, one line for each key.
func wantChanges(t *testing.T, e *Engine, want ...string) {
	t.Helper()
	var got []string
	e.Changes(func(k *Key, revision uint64, parts []Change) {
		var line strings.Builder
		line.WriteString(fmt.Sprintf("%s%v@%d", k.View(), k.Values(), revision))
		for i, c := range parts {
			line.WriteString(fmt.Sprintf(" +%s -%s", showPart(k, i, c.Insert), showPart(k, i, c.Retract)))
		}
		got = append(got, line.String())
	})
	if !slices.Equal(got, want) {
		t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestKeyedFamily(t *testing.T) {
	e := deployed(t, hotProgram())
	apply(t, e, 1, ins("edge", 1, 2), ins("edge", 1, 3), ins("edge", 2, 9), ins("label", 1, "hot"))
	k1, k2 := watch(t, e, "hot", 1), watch(t, e, "hot", 2)
	wantRows(t, e, k1, "(1 2) (1 3)")
	wantRows(t, e, k2, "()")
	wantChanges(t, e)

	apply(t, e, 2, ins("edge", 1, 4), ins("edge", 5, 6))
	wantChanges(t, e, "hot[1]@2 +(1 4) -()")
	wantChanges(t, e)

	apply(t, e, 3, ins("label", 2, "hot"), del("edge", 1, 2))
	apply(t, e, 4, ins("edge", 1, 2), del("edge", 1, 3))
	wantChanges(t, e, "hot[2]@3 +(2 9) -()", "hot[1]@4 +() -(1 3)")

	apply(t, e, 5, del("label", 1, "hot"))
	apply(t, e, 6, ins("label", 1, "hot"))
	wantChanges(t, e)
	wantRows(t, e, k1, "(1 2) (1 4)")

	e.Unwatch(k1)
	e.Unwatch(k2)
	if n := e.Stats().DerivedRows; n != 0 {
		t.Errorf("%d derived rows without a watched key", n)
	}
}

func TestWatchCounts(t *testing.T) {
	e := deployed(t, hotProgram())
	k := watch(t, e, "hot", 7)
	if again := watch(t, e, "hot", 7); again != k {
		t.Fatal("a watched key is another key when watched again")
	}
	e.Unwatch(k)
	apply(t, e, 1, ins("edge", 7, 8), ins("label", 7, "hot"))
	wantChanges(t, e, "hot[7]@1 +(7 8) -()")
	apply(t, e, 2, ins("edge", 7, 9))
	e.Unwatch(k)
	wantChanges(t, e)
	if s := e.Stats(); s.WatchedKeys != 0 || s.Views[0].WatchedKeys != 0 {
		t.Errorf("watched keys: %+v", s)
	}
}

func TestRecursiveViewBothWays(t *testing.T) {
	b := (&builder{}).base("edge", "src", "dst").derived("reach", "x", "y")
	b.rule(a("reach", "X", "Y"), a("edge", "X", "Y"))
	b.rule(a("reach", "X", "Z"), a("reach", "X", "Y"), a("reach", "Y", "Z"))
	b.view("from", []string{"H"}, []string{"Y"}, a("reach", "H", "Y"))
	b.view("all", nil, []string{"X", "Y"}, a("reach", "X", "Y"))
	e := deployed(t, b)
	k, all := watch(t, e, "from", 1), watch(t, e, "all")
	apply(t, e, 1, ins("edge", 1, 2), ins("edge", 2, 1), ins("edge", 3, 3))
	wantChanges(t, e, "from[1]@1 +(1) (2) -()", "all[]@1 +(1 1) (1 2) (2 1) (2 2) (3 3) -()")
	apply(t, e, 2, del("edge", 2, 1))
	wantChanges(t, e, "from[1]@2 +() -(1)", "all[]@2 +() -(1 1) (2 1) (2 2)")
	wantRows(t, e, k, "(2)")
	wantRows(t, e, all, "(1 2) (3 3)")
}

func TestErrors(t *testing.T) {
	e := deployed(t, hotProgram())
	tests := []struct {
		name string
		op   analysis.Op
		want error
	}{
		{"unknown", ins("edges", 1, 2), ErrUnknownRelation},
		{"derived", ins("r1", 1, 2), ErrDerived},
		{"short", ins("edge", 1), ErrArity},
		{"type", del("edge", 1, "x"), ErrType},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := e.Check([]analysis.Op{test.op}); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	if _, err := e.Watch("cold", vals(1)); !errors.Is(err, ErrUnknownView) {
		t.Errorf("unknown view: %v", err)
	}
	if _, err := e.Watch("hot", vals("x")); !errors.Is(err, ErrType) {
		t.Errorf("key of the wrong type: %v", err)
	}
	if _, err := e.Watch("hot", vals()); !errors.Is(err, ErrArity) {
		t.Errorf("key too short: %v", err)
	}
}

func TestQueryLeavesNothing(t *testing.T) {
	b := hotProgram()
	e := deployed(t, b)
	apply(t, e, 1, ins("edge", 1, 2), ins("edge", 1, 3), ins("label", 1, "hot"))
	before := e.Stats()
	q := b.query([]string{"H", "T:string"}, []string{"H", "Y", "T"},
		a("r1", "H", "Y"), a(">", "Y", 2))
	got, err := e.Query(q, vals(1, "never seen"), QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := vals(1, 3, "never seen"); !slices.Equal(got.Rows, want) || got.Count != 1 {
		t.Errorf("rows %v, want %v", got.Rows, want)
	}
	if after := e.Stats(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the query changed the engine:\n%+v\n%+v", before, after)
	}
	all := b.query(nil, []string{"X", "Y"}, a("edge", "X", "Y"))
	got, err = e.Query(all, nil, QueryOptions{MaxRows: 1, Offset: 1})
	if err != nil || !slices.Equal(got.Rows, vals(1, 3)) || got.Truncated {
		t.Errorf("second row: %v %v", got, err)
	}
	got, err = e.Query(all, nil, QueryOptions{MaxRows: 1})
	if err != nil || !slices.Equal(got.Rows, vals(1, 2)) || !got.Truncated {
		t.Errorf("first row: %v %v", got, err)
	}
	if _, err := e.Query(all, nil, QueryOptions{Budget: 1}); !errors.Is(err, ErrBudget) {
		t.Errorf("a budget of one step: %v", err)
	}
	stop := func() bool { return true }
	var ops []analysis.Op
	for i := range 5000 {
		ops = append(ops, ins("edge", i, i))
	}
	apply(t, e, 2, ops...)
	if _, err := e.Query(all, nil, QueryOptions{Cancelled: stop}); !errors.Is(err, ErrCancelled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestDeploy(t *testing.T) {
	e := deployed(t, hotProgram())
	apply(t, e, 1, ins("edge", 1, 2), ins("edge", 1, 3), ins("label", 1, "hot"),
		ins("label", 1, "cold"))
	k := watch(t, e, "hot", 1)
	apply(t, e, 2, ins("edge", 1, 4), del("edge", 1, 2))

	next := (&builder{}).base("label", "node", "text:string").base("edge", "from", "to").
		base("extra", "x").derived("r1", "x", "y")
	next.rule(a("r1", "X", "Y"), a("edge", "X", "Y"), a("label", "X", "=cold"), a("<", "Y", 4))
	next.view("hot", []string{"K"}, []string{"H", "Y"}, a("r1", "H", "Y"), a("=", "H", "K"))
	d, err := e.Deploy(next.program(), false)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.LostKeys) != 0 || !slices.Equal(d.ChangedViews, []string{"hot"}) ||
		!slices.Equal(d.ChangedRelations, []string{"edge"}) ||
		!slices.Equal(d.AddedRelations, []string{"extra"}) ||
		!slices.Equal(d.ChangedRules, []string{"r1"}) {
		t.Errorf("diff: %+v", d)
	}
	wantChanges(t, e, "hot[1]@3 +() -(1 2)")
	wantRows(t, e, k, "(1 3)")
	apply(t, e, 4, ins("edge", 1, 0))
	wantChanges(t, e, "hot[1]@4 +(1 0) -()")

	without := (&builder{}).base("label", "node", "text:string")
	_, err = e.Deploy(without.program(), false)
	loss, ok := errors.AsType[*DataLossError](err)
	if !ok || loss.Relation != "edge" || loss.Rows != 3 {
		t.Errorf("dropping edge: %v", err)
	}
	wantRows(t, e, k, "(1 0) (1 3)")
	d, err = e.Deploy(without.program(), true)
	if err != nil || !slices.Equal(d.LostKeys, []*Key{k}) ||
		!slices.Equal(d.DroppedRelations, []DroppedRelation{{"edge", 3}, {"extra", 0}}) {
		t.Errorf("dropping edge with leave: %+v %v", d, err)
	}
	if rows := e.Rows(k, 0, nil); len(rows) != 0 {
		t.Errorf("a lost key has rows %v", rows)
	}
	e.Unwatch(k)
}

func TestDeployKeepsUnreportedChanges(t *testing.T) {
	b := hotProgram()
	e := deployed(t, b)
	watch(t, e, "hot", 1)
	apply(t, e, 1, ins("edge", 1, 2), ins("label", 1, "hot"))
	if _, err := e.Deploy(b.program(), false); err != nil {
		t.Fatal(err)
	}
	apply(t, e, 3, ins("edge", 1, 5), del("edge", 1, 2))
	wantChanges(t, e, "hot[1]@3 +(1 5) -()")
}

func TestFacts(t *testing.T) {
	e := deployed(t, hotProgram())
	apply(t, e, 1, ins("edge", 1, 2), ins("edge", 3, -1), del("edge", 1, 2), ins("edge", 1, 2))
	var got [][]value.Value
	e.Facts("edge", func(row []value.Value) bool {
		got = append(got, slices.Clone(row))
		return true
	})
	slices.SortFunc(got, naive.CompareRows)
	if fmt.Sprint(got) != "[[1 2] [3 -1]]" {
		t.Errorf("facts %v", got)
	}
	ops := []analysis.Op{ins("edge", 7, 7), del("edge", 7, 7), del("edge", 3, -1)}
	inserted, deleted, err := e.Apply(2, ops)
	if inserted != 0 || deleted != 1 || err != nil {
		t.Errorf("net %d inserted, %d deleted, %v", inserted, deleted, err)
	}
}

// TestQueryIndexesWhatItScansOften joins on a column that no plan has indexed.
func TestQueryIndexesWhatItScansOften(t *testing.T) {
	b := hotProgram()
	e := deployed(t, b)
	facts := naive.Facts{"edge": naive.Set{}}
	for i := range 200 {
		apply(t, e, uint64(i), ins("edge", i, i*i%31))
		facts["edge"].Add(vals(i, i*i%31))
	}
	q := b.query(nil, []string{"X", "Z"},
		a("edge", "X", "Y"), a("edge", "Z", "Y"), a("<", "X", "Z"), a("edge", "_", "X"))
	got, err := e.Query(q, nil, QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(naive.Answer(naive.Derive(b.program(), facts), q, nil)...)
	if !slices.Equal(got.Rows, want) || len(want) == 0 {
		t.Errorf("%d cells, want %d", len(got.Rows), len(want))
	}
	if _, err := e.Query(q, nil, QueryOptions{Budget: 900}); !errors.Is(err, ErrBudget) {
		t.Errorf("a budget that ends where the index is built: %v", err)
	}
}

// TestHubWrite changes a row that meets far more rows than there are keys: the
// plan must be driven by the keys.
func TestHubWrite(t *testing.T) {
	b := (&builder{}).base("edge", "src", "dst").base("label", "node", "text:string")
	b.view("into", []string{"Y"}, []string{"X"}, a("edge", "X", "Y"), a("label", "X", "=hot"))
	e := deployed(t, b)
	var ops []analysis.Op
	for i := range 10_000 {
		ops = append(ops, ins("edge", 1, i))
	}
	apply(t, e, 1, ops...)
	k := watch(t, e, "into", 77)
	watch(t, e, "into", 20_000)
	before := e.network.Steps()
	apply(t, e, 2, ins("label", 1, "hot"))
	wantChanges(t, e, "into[77]@2 +(1) -()")
	apply(t, e, 3, del("label", 1, "hot"))
	wantChanges(t, e, "into[77]@3 +() -(1)")
	if steps := e.network.Steps() - before; steps > 20 {
		t.Errorf("two writes took %d steps", steps)
	}
	wantRows(t, e, k, "()")
}

// TestReachOnLargerGraphs compares a recursive view on random graphs, in which rows
// have many proofs and cycles are long, with a plain search.
func TestReachOnLargerGraphs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 1))
	for _, rules := range [][2]lit{
		{a("reach", "X", "Y"), a("edge", "Y", "Z")},  // left
		{a("edge", "X", "Y"), a("reach", "Y", "Z")},  // right
		{a("reach", "X", "Y"), a("reach", "Y", "Z")}, // both
	} {
		b := (&builder{}).base("edge", "src", "dst").derived("reach", "x", "y")
		b.rule(a("reach", "X", "Y"), a("edge", "X", "Y"))
		b.rule(a("reach", "X", "Z"), rules[0], rules[1])
		b.view("from", []string{"H"}, []string{"Y"}, a("reach", "H", "Y"))
		e := deployed(t, b)
		const nodes = 40
		keys := []*Key{watch(t, e, "from", 0), watch(t, e, "from", 1), watch(t, e, "from", 2)}
		var edges [][2]int
		for step := range 400 {
			x := [2]int{g.IntN(nodes), g.IntN(nodes)}
			op := ins("edge", x[0], x[1])
			if op.Delete = len(edges) > 20+step%60 || slices.Contains(edges, x); op.Delete {
				at := g.IntN(len(edges))
				op.Row = vals(edges[at][0], edges[at][1])
				edges = slices.Delete(edges, at, at+1)
			} else {
				edges = append(edges, x)
			}
			apply(t, e, uint64(step), op)
			if step%10 > 0 {
				continue
			}
			for i, k := range keys {
				if got := len(e.Rows(k, 0, nil)); got != reachable(edges, i, nodes) {
					t.Fatalf("step %d: %d nodes from %d, want %d", step, got, i,
						reachable(edges, i, nodes))
				}
			}
		}
		for _, k := range keys {
			e.Unwatch(k)
		}
		if n := e.Stats().DerivedRows; n != 0 {
			t.Errorf("%d derived rows are left", n)
		}
	}
}

// reachable counts the nodes that a path of one or more edges leads to.
func reachable(edges [][2]int, from, nodes int) int {
	next := make([][]int, nodes)
	for _, x := range edges {
		next[x[0]] = append(next[x[0]], x[1])
	}
	seen := make([]bool, nodes)
	count := 0
	for todo := []int{from}; len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, w := range next[v] {
			if !seen[w] {
				seen[w] = true
				count++
				todo = append(todo, w)
			}
		}
	}
	return count
}
