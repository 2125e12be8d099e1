package dataflow

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// aggregatePrograms have aggregates and windows in every place where they can stand.
// Their base relations take small random rows.
var aggregatePrograms = []struct{ name, source string }{
	{"count and sum by key", `
+sale(shop: int, item: int, price: int)
total(S, count<I>, sum<P>) <- sale(S, I, P)
view shop($s: int) := ?total($s, N, P)
`},
	{"every aggregate of one argument", `
+sale(shop: int, item: int, price: int)
all(avg<P>, S, min<P>, max<P>, count_distinct<P>, count<P>, sum<P>) <- sale(S, _, P)
view shop($s: int) := ?all(A, $s, B, C, D, E, F)
view rich($min: int) := ?all(A, S, B, C, D, E, F), F > $min
`},
	{"arguments that may be null", `
+sale(shop: int, item: int, price: int?)
all(S, avg<P>, min<P>, max<P>, count_distinct<P>, count<P>, sum<P>, count<1>) <- sale(S, _, P)
best(S, top_k<2, P, desc>) <- sale(S, _, P)
near(S, within_radius<3, P>) <- sale(S, _, P)
view shop($s: int) := ?all($s, A, B, C, D, E, F, G)
view two($s: int) := ?best($s, P)
view few($s: int) := ?near($s, P)
view any($s: int) := ?best($s, _)
view which($p: int) := ?best(S, $p)
view shops($z: int) := ?best(S, P), S != $z
`},
	{"floats", `
+sale(shop: int, price: float)
all(S, avg<P>, min<P>, sum<P>, max<P>) <- sale(S, P)
view shop($s: int) := ?all($s, A, B, C, D)
`},
	{"strings", `
+name(of: int, text: string)
ends(X, min<T>, max<T>, count_distinct<T>) <- name(X, T)
first(X, top_k<2, T>) <- name(X, T)
view both($x: int) := ?ends($x, A, B, N)
view some($x: int) := ?first($x, T), T != "b"
`},
	{"one group", `
+edge(a: int, b: int)
size(count<A>, count_distinct<A>, max<B>) <- edge(A, B)
view all($z: int) := ?size(N, D, M), N != $z
view at($n: int) := ?size($n, D, M)
`},
	{"bindings differ in what the head does not name", `
+edge(a: int, b: int)
+cost(a: int, c: int)
paths(A, count<C>, sum<C>) <- edge(A, B), edge(B, _), cost(A, C)
view from($a: int) := ?paths($a, N, S)
view number($a: int) := ?paths($a, N, _)
view is($a: int) := ?paths($a, _, _)
view same($a: int) := ?paths($a, N, N)
view some($n: int) := ?paths(_, $n, N)
`},
	{"groups of several columns, some left out or repeated", `
+edge(a: int, b: int)
+cost(a: int, c: int)
per(A, B, max<C>, count<1>) <- edge(A, B), cost(A, C), !edge(B, A)
one(A, B, top_k<1, C>) <- edge(A, B), cost(B, C)
view of($a: int) := ?per($a, _, M, N)
view to($b: int) := ?per(_, $b, M, _)
view loop($a: int) := ?per($a, $a, M, N)
view at($a: int) := ?per($a, 3, M, N)
view first($a: int) := ?one($a, _, C)
view second($a: int) := ?one($a, B, C)
view third($a: int) := ?one($a, 2, C)
`},
	{"several clauses", `
+edge(a: int, b: int)
+cost(a: int, c: int)
degree(A, count<B>) <- edge(A, B)
degree(A, max<C>) <- cost(A, C)
degree(A, top_k<2, C>) <- cost(A, C)
degree(A, B) <- edge(B, A)
view of($a: int) := ?degree($a, N)
view with($n: int) := ?degree(A, $n)
view both($a: int, $n: int) := ?degree($a, $n)
`},
	{"over recursion", `
+edge(a: int, b: int)
reach(A, B) <- edge(A, B)
reach(A, C) <- reach(A, B), edge(B, C)
size(A, count<B>, max<B>) <- reach(A, B)
last(A, top_k<3, B, desc>) <- reach(A, B)
view from($a: int) := ?size($a, N, M)
view ends($a: int) := ?last($a, B)
view big($n: int) := ?size(A, N, M), N > $n
`},
	{"over negation, and negated", `
+edge(a: int, b: int)
leaf(A, B) <- edge(A, B), !edge(B, _)
leaves(A, count<B>) <- leaf(A, B)
many(A) <- leaves(A, N), N > 1
few(A, B) <- edge(A, B), !many(A)
fewest(A, min<B>) <- few(A, B)
view of($a: int) := ?leaves($a, N)
view rest($a: int) := ?few($a, B)
view least($z: int) := ?fewest(A, B), A != $z
`},
	{"aggregates of aggregates, joined and recursive above", `
+edge(a: int, b: int)
degree(A, count<B>) <- edge(A, B)
most(max<N>) <- degree(_, N)
hub(A) <- most(N), degree(A, N)
near(A) <- hub(A)
near(B) <- near(A), edge(A, B)
view hubs($z: int) := ?hub(A), A != $z
view at($a: int) := ?near($a)
view all($z: int) := ?near(A), A != $z
`},
	{"in a recursive relation", `
+edge(a: int, b: int)
+cost(a: int, c: int)
best(A, max<C>) <- cost(A, C)
best(B, C) <- best(A, C), edge(A, B)
view of($a: int) := ?best($a, C)
view all($z: int) := ?best(A, C), A != $z
`},
	{"computed arguments and thresholds", `
+cost(a: int, c: int)
twice(A, sum<C * 2>, max<C - A>) <- cost(A, C)
some(A, top_k_threshold<2, 3, C, desc>) <- cost(A, C)
less(A, top_k_threshold<2, 3, C>) <- cost(A, C)
close(A, within_radius<4, C>) <- cost(A, C)
ratio(A, sum<D>) <- cost(A, C), cost(B, E), D = C / E
view of($a: int) := ?twice($a, S, M)
view high($a: int) := ?some($a, C)
view low($a: int) := ?less($a, C)
view near($a: int) := ?close($a, C)
view ratios($a: int) := ?ratio($a, S)
`},
	{"stages before an aggregate", `
+cost(a: int, c: int)
+edge(a: int, b: int)
next(A, count<C>) <- cost(A, C), D = C + 1, edge(D, _)
view of($a: int) := ?next($a, N)
`},
	{"constants and repeated groups", `
+edge(a: int, b: int)
pair(A, A, "x", count<B>) <- edge(A, B)
loop(A, count<1>) <- edge(A, A)
view of($a: int) := ?pair($a, B, T, N)
view same($z: int) := ?pair(A, A, "x", 2), A >= $z
view loops($z: int) := ?loop(A, N), A != $z
`},
	{"windows", `
+edge(a: int, b: int)
+cost(a: int, c: int)
view first($a: int) := ?edge($a, B) limit 2
view last($a: int) := ?edge($a, B) order by B desc limit 2 offset 1
view costs($z: int) := ?edge(A, B), cost(B, C), A != $z order by C desc, A limit 3
view away($a: int) := ?edge($a, B), cost(B, C) order by C limit 2 offset 2
view is($a: int, $b: int) := ?edge($a, $b) limit 1
view none($a: int) := ?edge($a, B) limit 1 offset 100
view sure($a: int) := ?edge($a, 1) limit 3
view low($c: int) := ?cost(A, C), C < $c order by C desc limit 2
`},
	{"a window over a recursive relation", `
+edge(a: int, b: int)
reach(A, B) <- edge(A, B)
reach(A, C) <- edge(A, B), reach(B, C)
view ends($a: int) := ?reach($a, B) order by B desc limit 2
`},
}

func TestAggregates(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, p := range aggregatePrograms {
		t.Run(p.name, func(t *testing.T) {
			for round := range 12 {
				g := rand.New(rand.NewPCG(seed, uint64(round)))
				newTrial(t, p.source, g).run(40)
			}
		})
	}
}

// trial runs a network beside a derivation from scratch.
type trial struct {
	*testing.T
	g       *rand.Rand
	n       *Network
	config  Config
	program *analysis.Program
	facts   naive.Facts
	rows    map[string][][]value.Value
	demands []demandedKey
	shown   []map[relation.RowID]bool // by goal, what OnResult tells
	log     []string
}

type demandedKey struct {
	goal int
	key  []value.Value
	row  relation.RowID
}

func newTrial(t *testing.T, source string, g *rand.Rand) *trial {
	c := config(t, source)
	tr := &trial{
		T: t, g: g, program: c.Program.program, facts: naive.Facts{},
		rows: map[string][][]value.Value{},
	}
	tr.shown = make([]map[relation.RowID]bool, len(c.Goals))
	for i := range tr.shown {
		tr.shown[i] = map[relation.RowID]bool{}
	}
	c.OnResult = func(goal int, row relation.RowID) {
		visible := tr.n.Result(goal).IsVisible(row)
		if tr.shown[goal][row] == visible {
			t.Fatalf("a result row is told of twice\n%s", strings.Join(tr.log, "\n"))
		}
		tr.shown[goal][row] = visible
	}
	n, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	tr.n, tr.config = n, c
	for _, r := range tr.program.Relations {
		tr.facts[r.Name] = naive.Set{}
	}
	return tr
}

func (tr *trial) ids(row []value.Value) []value.ID {
	ids := make([]value.ID, len(row))
	for i, v := range row {
		var err error
		if ids[i], err = tr.config.Symbols.ID(v); err != nil {
			tr.Fatal(err)
		}
	}
	return ids
}

func (tr *trial) value(c analysis.Column) value.Value {
	if c.Nullable && tr.g.IntN(3) == 0 {
		return value.OfNull()
	}
	switch c.Type {
	case value.Float:
		f, _ := value.OfFloat([]float64{0.1, -0.1, 1e300, -1e300, 1.7e308, 3, 0.7}[tr.g.IntN(7)])
		return f
	case value.String:
		return value.OfString([]string{"a", "b", "", "long"}[tr.g.IntN(4)])
	}
	if tr.g.IntN(40) == 0 {
		return value.OfInt([]int64{-3, 1 << 40, 1<<63 - 1, -1 << 63}[tr.g.IntN(4)])
	}
	return value.OfInt(tr.g.Int64N(6))
}

func (tr *trial) run(commits int) {
	for range commits {
		switch tr.g.IntN(8) {
		case 0:
			tr.tryLimited()
		case 1:
			tr.rollBack()
		default:
			tr.changeAll()
			tr.settle()
		}
		tr.compare()
	}
	for _, d := range tr.demands {
		tr.n.Withdraw(d.goal, d.row)
	}
	tr.settle()
	tr.checkEmpty()
}

func (tr *trial) settle() {
	tr.Helper()
	if _, _, err := tr.n.Settle(); err != nil {
		tr.Fatal(err)
	}
	tr.log = append(tr.log, "settle")
}

func (tr *trial) changeAll() {
	for range []int{1, 1, 1, 3, 12}[tr.g.IntN(5)] {
		tr.change()
	}
	for range tr.g.IntN(3) {
		tr.changeDemand()
	}
}

// tryLimited makes changes that may go past a limit, which undoes them.
func (tr *trial) tryLimited() {
	undo := tr.remember()
	tr.changeAll()
	l := Limits{Derivations: uint64(tr.g.IntN(40))}
	switch tr.g.IntN(3) {
	case 0:
		l = Limits{Steps: uint64(1 + tr.g.IntN(60))}
	case 1:
		l = Limits{Rows: uint64(max(1, tr.n.DerivedRows()+tr.g.IntN(6)-1))}
	}
	tr.n.Limits(l)
	_, _, err := tr.n.Settle()
	tr.log = append(tr.log, fmt.Sprintf("settle within %+v: %v", l, err))
	tr.n.Limits(Limits{})
	if err != nil {
		undo()
	}
}

// rollBack makes changes, some of them settled, and undoes them all.
func (tr *trial) rollBack() {
	undo := tr.remember()
	tr.n.Mark()
	for range tr.g.IntN(3) {
		tr.changeAll()
		tr.settle()
	}
	tr.changeAll()
	tr.n.Rollback()
	tr.log = append(tr.log, "roll back")
	undo()
}

// remember returns what brings the trial's own books back to now.
func (tr *trial) remember() func() {
	facts, rows, demands := tr.facts.Clone(), maps.Clone(tr.rows), slices.Clone(tr.demands)
	for name := range rows {
		rows[name] = slices.Clone(rows[name])
	}
	return func() {
		tr.facts, tr.rows, tr.demands = facts, rows, demands
		for i, d := range demands {
			row, ok := tr.n.DemandRow(d.goal, tr.ids(d.key))
			if !ok {
				tr.Fatalf("a demand is not back\n%s", strings.Join(tr.log, "\n"))
			}
			demands[i].row = row
		}
	}
}

// change inserts or deletes a random row.
func (tr *trial) change() {
	id := tr.g.IntN(len(tr.program.Relations))
	r := tr.program.Relations[id]
	if r.Derived {
		return
	}
	rows := tr.rows[r.Name]
	if len(rows) > 0 && tr.g.IntN(30) < len(rows) {
		at := tr.g.IntN(len(rows))
		tr.log = append(tr.log, fmt.Sprintf("-%s%v", r.Name, rows[at]))
		tr.n.Delete(analysis.RelationID(id), tr.ids(rows[at]))
		tr.facts[r.Name].Remove(rows[at])
		tr.rows[r.Name] = slices.Delete(rows, at, at+1)
		return
	}
	row := make([]value.Value, len(r.Columns))
	for i, c := range r.Columns {
		row[i] = tr.value(c)
	}
	tr.log = append(tr.log, fmt.Sprintf("+%s%v", r.Name, row))
	tr.n.Insert(analysis.RelationID(id), tr.ids(row))
	if tr.facts[r.Name].Add(row) {
		tr.rows[r.Name] = append(rows, row)
	}
}

func (tr *trial) changeDemand() {
	if len(tr.demands) > 0 && tr.g.IntN(8) < len(tr.demands) {
		at := tr.g.IntN(len(tr.demands))
		d := tr.demands[at]
		tr.log = append(tr.log, fmt.Sprintf("leave %d%v", d.goal, d.key))
		tr.n.Withdraw(d.goal, d.row)
		tr.demands = slices.Delete(tr.demands, at, at+1)
		return
	}
	goal := tr.g.IntN(len(tr.config.Goals))
	var key []value.Value
	for range tr.config.Goals[goal].Parameters {
		key = append(key, value.OfInt(tr.g.Int64N(6)))
	}
	ids := tr.ids(key)
	for _, d := range tr.demands {
		if d.goal == goal && slices.Equal(d.key, key) {
			return
		}
	}
	tr.log = append(tr.log, fmt.Sprintf("watch %d%v", goal, key))
	tr.demands = append(tr.demands, demandedKey{goal, key, tr.n.Demand(goal, ids)})
}

// result returns the visible rows of a goal at a key, sorted, as its output.
func (tr *trial) result(n *Network, goal int, key []value.Value) [][]value.Value {
	symbols := tr.config.Symbols
	var out [][]value.Value
	table := n.Result(goal)
	ids := tr.ids(key)
	for id, ok := table.NextVisible(0); ok; id, ok = table.NextVisible(id + 1) {
		cells := table.Row(id)
		if !slices.Equal(cells[:len(ids)], ids) {
			continue
		}
		var row []value.Value
		for _, o := range n.Outputs(goal) {
			if o.Column < 0 {
				row = append(row, symbols.Value(o.Constant))
			} else {
				row = append(row, symbols.Value(cells[o.Column]))
			}
		}
		out = append(out, row)
	}
	slices.SortFunc(out, naive.CompareRows)
	return out
}

func (tr *trial) compare() {
	tr.Helper()
	db := naive.Derive(tr.program, tr.facts)
	for _, d := range tr.demands {
		want := naive.Answer(db, tr.config.Goals[d.goal], d.key)
		got := tr.result(tr.n, d.goal, d.key)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			tr.Fatalf("view %s at %v has rows\n%v, want\n%v\nafter\n%s",
				tr.program.Views[d.goal].Name, d.key, got, want, strings.Join(tr.log, "\n"))
		}
		if tr.g.IntN(8) == 0 {
			tr.ask(d, want)
		}
	}
}

// ask evaluates a demand once, by a transient network.
func (tr *trial) ask(d demandedKey, want [][]value.Value) {
	c := tr.config
	c.Transient, c.OnResult = true, nil
	c.Goals = []*analysis.Query{c.Goals[d.goal]}
	n, err := New(c)
	if err != nil {
		tr.Fatal(err)
	}
	n.Demand(0, tr.ids(d.key))
	if _, _, err := n.Settle(); err != nil {
		tr.Fatal(err)
	}
	if got := tr.result(n, 0, d.key); fmt.Sprint(got) != fmt.Sprint(want) {
		tr.Fatalf("query %d at %v has rows\n%v, want\n%v\nafter\n%s", d.goal, d.key, got, want,
			strings.Join(tr.log, "\n"))
	}
}

// checkEmpty fails if something is left when nothing is demanded.
func (tr *trial) checkEmpty() {
	for _, p := range tr.n.predicates {
		if p.kind != base && p.table.Room() != relation.RowsMax {
			tr.Errorf("a predicate keeps rows that nobody demands")
		}
		if a := p.aggregation; a != nil {
			for _, d := range a.values {
				if d.table.Room() != relation.RowsMax {
					tr.Error("an aggregation keeps values")
				}
			}
		}
		if w := p.window; w != nil && w.groups.Room() != relation.RowsMax {
			tr.Error("a window keeps groups")
		}
	}
}
