package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

const replacedProgram = `+edge(src: int, dst: int)
+off(node: int)
+price(node: int, cost: float)
step(X, Y) <- edge(X, Y), !off(Y), !off(X)
reach(X, Y) <- step(X, Y)
reach(X, Z) <- reach(X, Y), reach(Y, Z)
cost(X, sum<C>) <- edge(X, Y), price(Y, C)
first(X, top_k<2, Y>) <- edge(X, Y)
ratio(X, C) <- price(X, P), C = 1.0 / P
view reached($x: int) := ?reach($x, Y)
view costs($x: int) := ?cost($x, C)
view firsts($x: int) := ?first($x, Y)
view both($x: int) := ratios: ?ratio($x, C), edges: ?edge($x, Y) order by Y desc limit 2
`

// TestDeployKeeps deploys changed programs over watched keys: those whose evaluation
// stays cost nothing and go on with the counts, ranks, sums and groups that they had.
func TestDeployKeeps(t *testing.T) {
	all := []string{"reached", "costs", "firsts", "both"}
	for _, c := range []struct {
		name, old, new string
		lost           []string // of all, those that are derived again
	}{
		{"nothing", "", "", nil},
		{"another view", "view reached", "view a($x: int) := ?edge(Y, $x)\nview reached", nil},
		{
			"a view that asks a shared pattern", "view reached",
			"view z($x: int) := ?reach($x, Y), Y > 3\nview reached", nil,
		},
		{
			"a view that asks in another way", "view reached",
			"view z($y: int) := ?reach(X, $y)\nview reached", nil,
		},
		{
			"other variables", "cost(X, sum<C>) <- edge(X, Y), price(Y, C)",
			"cost(X, sum<C>) <- edge(X, M), price(M, C)", nil,
		},
		{"a relation", "+off", "+more(x: int)\n+off", nil},
		{"a column's name", "+off(node: int)", "+off(place: int)", nil},
		{"an action", "+off", "action drop($x: int) := -edge($x, $x)\n+off", nil},
		{"a rule before all", "step(X", "a(X) <- off(X)\nstep(X", nil},
		{"a relation's name", "+edge(src: int, dst: int)", "+link(src: int, dst: int) was edge", nil},
		{"a view dropped", "view reached($x: int) := ?reach($x, Y)\n", "", []string{"reached"}},
		{
			"a clause", "step(X, Y) <- edge(X, Y), !off(Y), !off(X)",
			"step(X, Y) <- edge(X, Y), !off(Y)",
			[]string{"reached"},
		},
		{"an aggregate", "sum<C>", "max<C>", []string{"costs"}},
		{"a number", "top_k<2", "top_k<3", []string{"firsts"}},
		{"one part", "limit 2", "limit 3", []string{"both"}},
		{"a constant", "1.0 / P", "2.0 / P", []string{"both"}},
		{"a further column", "+off(node: int)", "+off(node: int, why: string?)", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(replacedProgram, c.old) {
				t.Fatalf("%q is not there", c.old)
			}
			next := strings.Replace(replacedProgram, c.old, c.new, 1)
			if c.name == "a further column" {
				next = strings.NewReplacer("!off(Y)", "!off(Y, _)", "!off(X)", "!off(X, _)").Replace(next)
				c.lost = []string{"reached"}
			}
			if c.name == "a relation's name" {
				next = strings.ReplaceAll(next, "edge(", "link(")
			}
			e := replacedEngine(t)
			before := e.Stats()
			d, err := e.Preview(analysed(t, next), true)
			if err != nil {
				t.Fatal(err)
			}
			if after := e.Stats(); after.DerivedRows != before.DerivedRows {
				t.Errorf("a preview leaves %d derived rows of %d", after.DerivedRows, before.DerivedRows)
			}
			want := slices.DeleteFunc(slices.Clone(all), func(view string) bool {
				return slices.Contains(c.lost, view)
			})
			if !slices.Equal(d.KeptViews, want) {
				t.Errorf("a preview keeps %v, want %v", d.KeptViews, want)
			}
			if d, err = e.Deploy(analysed(t, next), true); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(d.KeptViews, want) {
				t.Errorf("kept %v, want %v", d.KeptViews, want)
			}
			if made := e.network.Made(); len(c.lost) == 0 && made > 0 {
				t.Errorf("the deploy made %d derivations", made)
			}
			replacedChanges(t, e)
		})
	}
}

// replacedEngine returns an engine with keys of all views at nodes 0 to 9 and changes
// that are not told yet.
func replacedEngine(t *testing.T) *Engine {
	e := New(nil)
	if _, err := e.Deploy(analysed(t, replacedProgram), false); err != nil {
		t.Fatal(err)
	}
	var ops []analysis.Op
	for i := range 20 {
		ops = append(ops, ins("edge", i, i+1), ins("edge", i, i*3%20), ins("price", i, float64(i)/4))
	}
	apply(t, e, 1, append(ops, ins("off", 4))...)
	for i := range 10 {
		for _, view := range []string{"reached", "costs", "firsts", "both"} {
			watch(t, e, view, i)
		}
	}
	apply(t, e, 2, del("off", 4), del("edge", 1, 2), ins("price", 3, 7.5))
	return e
}

// replacedChanges goes on with an engine and compares it with one that was not there
// before.
func replacedChanges(t *testing.T, e *Engine) {
	t.Helper()
	for i, ops := range [][]analysis.Op{
		nil,
		{ins("edge", 1, 2), ins("edge", 0, 19), del("price", 0, 0.0)},
		{del("edge", 5, 6), del("edge", 5, 15), ins("edge", 2, 1), ins("price", 5, 0.0)},
		{ins("edge", 5, 6), del("edge", 2, 1), del("edge", 3, 4), del("edge", 3, 9)},
	} {
		for k := range ops {
			if _, ok := e.relations["link"]; ok && ops[k].Relation == "edge" {
				ops[k].Relation = "link"
			}
		}
		apply(t, e, uint64(10+i), ops...)
		e.Changes(func(*Key, uint64, []Change) {})
		fresh := New(nil)
		if _, err := fresh.Deploy(e.Program(), false); err != nil {
			t.Fatal(err)
		}
		for relation := range e.relations {
			apply(t, fresh, 1, factsOf(e, relation)...)
		}
		for _, f := range e.families {
			for _, k := range f.watchedKeys() {
				other, err := fresh.Watch(k.View(), k.Values())
				if err != nil {
					t.Fatal(err)
				}
				for part := range k.Parts() {
					got, want := showPart(k, part, e.Rows(k, part, nil)),
						showPart(k, part, fresh.Rows(other, part, nil))
					if got != want {
						t.Errorf("%s%v: %s, want %s", k.View(), k.Values(), got, want)
					}
				}
			}
		}
		if got, want := e.Stats().DerivedRows, fresh.Stats().DerivedRows; got != want {
			t.Errorf("%d derived rows, want %d", got, want)
		}
	}
}

// factsOf returns the insertions of a relation's rows.
func factsOf(e *Engine, relation string) []analysis.Op {
	var ops []analysis.Op
	e.Facts(relation, func(row []value.Value) bool {
		ops = append(ops, analysis.Op{Relation: relation, Row: slices.Clone(row)})
		return true
	})
	return ops
}

// TestDeployRefusedAfterFeeding refuses a program for its budget after it had asked
// relations for more that others ask, too: nothing of that is left.
func TestDeployRefusedAfterFeeding(t *testing.T) {
	e := replacedEngine(t)
	for _, k := range e.views["reached"].watchedKeys()[3:] {
		e.Unwatch(k)
	}
	// Keys of firsts are going to ask for what only some keys of reached ask for now.
	next := strings.Replace(replacedProgram, "?first($x, Y)", "?reach($x, Y)", 1)
	before := e.Stats()
	made := e.network.Made()
	e.SetLimits(Limits{GraphRows: uint64(before.DerivedRows) + 20})
	for range 2 {
		_, err := e.Deploy(analysed(t, next), true)
		if !errors.Is(err, ErrBudget) {
			t.Fatal(err)
		}
	}
	if after := e.Stats(); after.DerivedRows != before.DerivedRows ||
		after.Revision != before.Revision {
		t.Errorf("%+v, before %+v", after, before)
	}
	if e.network.Made() != made {
		t.Error("what was refused had to be derived again")
	}
	e.SetLimits(Limits{})
	if _, err := e.Preview(analysed(t, next), true); err != nil {
		t.Fatal(err)
	}
	if after := e.Stats(); after.DerivedRows != before.DerivedRows {
		t.Errorf("a preview leaves %d derived rows of %d", after.DerivedRows, before.DerivedRows)
	}
	replacedChanges(t, e)
}

// TestDeployDropsIdle drops a view that nobody watches and that asked what others ask:
// these stay, whatever it asked for.
func TestDeployDropsIdle(t *testing.T) {
	e := New(nil)
	more := replacedProgram + "view idle($x: int) := ?reach($x, Y)\n"
	if _, err := e.Deploy(analysed(t, more), false); err != nil {
		t.Fatal(err)
	}
	apply(t, e, 1, ins("edge", 0, 1), ins("edge", 1, 2))
	k := watch(t, e, "reached", 0)
	d, err := e.Deploy(analysed(t, replacedProgram), false)
	if err != nil || len(d.KeptViews) != 4 || e.network.Made() > 0 {
		t.Errorf("%v, kept %v, %d derivations", err, d.KeptViews, e.network.Made())
	}
	if _, err = e.Deploy(analysed(t, more), false); err != nil {
		t.Fatal(err)
	}
	idle := watch(t, e, "idle", 0)
	d, err = e.Deploy(analysed(t, replacedProgram), false)
	if err != nil || slices.Contains(d.KeptViews, "reached") ||
		!slices.Equal(d.LostKeys, []*Key{idle}) {
		t.Errorf("%v, kept %v, lost %v", err, d.KeptViews, d.LostKeys)
	}
	apply(t, e, 2, ins("edge", 2, 3))
	wantChanges(t, e, "reached[0]@2 +(0 3) -()")
	wantRows(t, e, k, "(0 1) (0 2) (0 3)")
}

// BenchmarkDeployAnotherView deploys a program with one more view, and back, over many
// keys of one view that it does not touch.
func BenchmarkDeployAnotherView(b *testing.B) {
	const program = `+edge(src: int, dst: int)
two(X, Z) <- edge(X, Y), edge(Y, Z)
view twos($x: int) := ?two($x, Y)
`
	for _, keys := range []int{1000, 100_000} {
		for _, other := range []string{
			"view in($x: int) := ?edge(Y, $x)\n", "view further($x: int) := ?two($x, Y), Y > 5\n",
		} {
			name, _, _ := strings.Cut(other, "(")
			b.Run(fmt.Sprintf("keys=%d/%s", keys, strings.TrimPrefix(name, "view ")), func(b *testing.B) {
				e := New(nil)
				programs := []*analysis.Program{analysed(b, program), analysed(b, program+other)}
				if _, err := e.Deploy(programs[0], false); err != nil {
					b.Fatal(err)
				}
				var ops []analysis.Op
				for i := range 2 * keys {
					ops = append(ops, ins("edge", i%keys, (i*7+1)%keys))
				}
				apply(b, e, 1, ops...)
				for i := range keys {
					watch(b, e, "twos", i)
				}
				i := 0
				for b.Loop() {
					i++
					if _, err := e.Deploy(programs[i%2], true); err != nil {
						b.Fatal(err)
					}
					e.Changes(func(*Key, uint64, []Change) {})
				}
			})
		}
	}
}
