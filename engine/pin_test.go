package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// pinPrograms are deployed in turn: their views want different indexes.
var pinPrograms = []string{
	`+edge(src: int, dst: int)
+label(node: int, text: string)
+gone(node: int)
reach(X, Y) <- edge(X, Y)
reach(X, Z) <- reach(X, Y), edge(Y, Z)
degree(X, count<Y>) <- edge(X, Y)
view out($h: int) := ?edge($h, Y)
`,
	`+edge(src: int, dst: int)
+label(node: int, text: string)
+gone(node: int)
reach(X, Y) <- edge(X, Y)
reach(X, Z) <- reach(X, Y), edge(Y, Z)
degree(X, count<Y>) <- edge(X, Y)
view in($h: int) := ?edge(X, $h), label(X, L)
view texts($t: string) := ?label(X, $t)
`,
}

// pinQueries read base tables by every path: scans with and without a check, lookups
// by kept and by own indexes, probes, negations, recursion, aggregates, computations.
var pinQueries = []string{
	`?edge(X, Y)`,
	`?edge(3, Y)`,
	`?edge(X, 3)`,
	`?edge(X, Y), label(Y, "a")`,
	`?edge(X, Y), edge(Y, X)`,
	`?edge(X, Y), edge(Y, Z), !gone(Z)`,
	`?label(X, L), !edge(X, _)`,
	`?label(X, L), !edge(_, X) order by L desc, X limit 5 offset 1`,
	`?reach(2, Y)`,
	`?reach(X, Y), !label(Y, "b")`,
	`?degree(X, N), N > 3`,
	`?edge(X, Y), Z = X * 100 + Y order by Z desc limit 7`,
	`?label(X, L), M = concat(L, "!")`,
	`?gone(X), !label(_, _)`,
}

func analysed(tb testing.TB, source string) *analysis.Program {
	tb.Helper()
	tree, err := parse.Program(source)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := analysis.Analyse(tree, source)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func analysedQuery(tb testing.TB, p *analysis.Program, source string) *analysis.Query {
	tb.Helper()
	tree, err := parse.Query(source)
	if err != nil {
		tb.Fatal(err)
	}
	q, err := analysis.AnalyseQuery(p, tree)
	if err != nil {
		tb.Fatalf("%s: %v", source, err)
	}
	return q
}

// pinned is a pin with an engine that holds a copy of what it pins.
type pinnedTwin struct {
	*Pin
	twin    *Engine
	queries []*pinnedQuery
}

type pinnedQuery struct {
	*Evaluation
	source string
	query  *analysis.Query
}

type pinTest struct {
	*testing.T
	random   *rand.Rand
	e        *Engine
	revision uint64
	program  int
	pins     []*pinnedTwin
	facts    []analysis.Op
	answers  int
}

// TestPinnedQueries lets a writer and queries on pins take turns at random, with
// deployments between them, and compares the answers with those of copies.
func TestPinnedQueries(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	p := &pinTest{T: t, random: rand.New(rand.NewPCG(seed, 1)), e: New(nil)}
	p.e.ticksPerPause = 1
	p.deploy()
	for range 150_000 {
		p.step()
	}
	if p.answers < 200 {
		t.Errorf("only %d queries were answered", p.answers)
	}
	p.end()
}

func (p *pinTest) step() {
	switch n := p.random.IntN(100); {
	case n == 0 && p.e.Pins() < PinsMax:
		p.pin()
	case n == 1 && len(p.pins) > 0 && p.random.IntN(6) == 0:
		p.close(p.random.IntN(len(p.pins)))
	case n == 2 && p.random.IntN(4) == 0:
		p.deploy()
	case n < 5 && len(p.pins) > 0:
		p.begin(p.pins[p.random.IntN(len(p.pins))])
	case n == 5:
		p.e.SweepPins(0)
	case n < 70 && len(p.pins) > 0:
		p.work(p.pins[p.random.IntN(len(p.pins))])
	default:
		p.write()
	}
}

func (p *pinTest) deploy() {
	p.program++
	program := analysed(p.T, pinPrograms[p.program%len(pinPrograms)])
	if _, err := p.e.Deploy(program, false); err != nil {
		p.Fatal(err)
	}
}

// write commits a few rows, some of them there and some with texts never seen before.
func (p *pinTest) write() {
	const nodes = 12
	var ops []analysis.Op
	for range 1 + p.random.IntN(4) {
		if len(p.facts) > 150 || len(p.facts) > 0 && p.random.IntN(3) == 0 {
			at := p.random.IntN(len(p.facts))
			op := p.facts[at]
			op.Delete = true
			p.facts = slices.Delete(p.facts, at, at+1)
			ops = append(ops, op)
			continue
		}
		op := ins("edge", p.random.IntN(nodes), p.random.IntN(nodes))
		switch p.random.IntN(4) {
		case 0:
			text := []string{"a", "b", "a!", "b!", fmt.Sprint("new", p.random.IntN(1000))}
			op = ins("label", p.random.IntN(nodes), text[p.random.IntN(len(text))])
		case 1:
			op = ins("gone", p.random.IntN(nodes))
		}
		p.facts = append(p.facts, op)
		ops = append(ops, op)
	}
	p.revision++
	apply(p.T, p.e, p.revision, ops...)
	p.e.Changes(func(*Key, uint64, []Change) {})
}

// pin pins the present state and copies it.
func (p *pinTest) pin() {
	pin, err := p.e.Pin(0)
	if err != nil {
		p.Fatal(err)
	}
	twin := New(nil)
	if _, err := twin.Deploy(p.e.Program(), false); err != nil {
		p.Fatal(err)
	}
	var ops []analysis.Op
	for _, r := range p.e.Program().Relations {
		p.e.Facts(r.Name, func(row []value.Value) bool {
			ops = append(ops, analysis.Op{Relation: r.Name, Row: slices.Clone(row)})
			return true
		})
	}
	apply(p.T, twin, 1, ops...)
	if pin.Revision() != p.e.revision {
		p.Errorf("revision %d is pinned at %d", pin.Revision(), p.e.revision)
	}
	p.pins = append(p.pins, &pinnedTwin{Pin: pin, twin: twin})
}

func (p *pinTest) close(at int) {
	pin := p.pins[at]
	p.pins = slices.Delete(p.pins, at, at+1)
	pin.Close()
	for _, q := range pin.queries {
		if _, err := q.Result(); !q.Step(0) || !errors.Is(err, ErrPinExpired) {
			p.Errorf("%s: %v after its pin ended", q.source, err)
		}
	}
	if _, err := pin.Query(&analysis.Query{}, nil, QueryOptions{}); err != ErrPinExpired {
		p.Errorf("a query on a closed pin: %v", err)
	}
}

func (p *pinTest) begin(pin *pinnedTwin) {
	source := pinQueries[p.random.IntN(len(pinQueries))]
	q := analysedQuery(p.T, pin.Program(), source)
	v, err := pin.Query(q, nil, QueryOptions{})
	if err != nil {
		p.Fatal(err)
	}
	pin.queries = append(pin.queries, &pinnedQuery{v, source, q})
}

// work takes a turn of one query, and looks at its answer if it is done.
func (p *pinTest) work(pin *pinnedTwin) {
	if len(pin.queries) == 0 {
		return
	}
	at := p.random.IntN(len(pin.queries))
	q := pin.queries[at]
	if p.random.IntN(200) == 0 {
		q.Close()
	} else if !q.Step(0) {
		return
	}
	pin.queries = slices.Delete(pin.queries, at, at+1)
	got, err := q.Result()
	if errors.Is(err, ErrCancelled) {
		return
	}
	if err != nil {
		p.Fatalf("%s: %v", q.source, err)
	}
	p.answers++
	want, err := pin.twin.Query(q.query, nil, QueryOptions{})
	if err != nil {
		p.Fatal(err)
	}
	if !slices.Equal(got.Rows, want.Rows) || got.Count != want.Count {
		p.Fatalf("%s at revision %d, now %d:\n%v\nwant\n%v",
			q.source, pin.Revision(), p.e.revision, got.Rows, want.Rows)
	}
}

// end closes everything, and checks that nothing of the pins is left.
func (p *pinTest) end() {
	for len(p.pins) > 0 {
		p.close(0)
	}
	for p.e.SweepPins(0) {
	}
	if n := p.e.Pins(); n > 0 {
		p.Errorf("%d pins are left", n)
	}
	for _, op := range p.facts {
		op.Delete = true
		p.revision++
		apply(p.T, p.e, p.revision, op)
	}
	for range 100 {
		apply(p.T, p.e, p.revision, del("gone", 1))
	}
	if s := p.e.Stats(); s.Facts != 0 || s.Symbols > 10 {
		p.Errorf("%d facts and %d symbols are left", s.Facts, s.Symbols)
	}
}

// TestPinLimits reaches the limits of number and age.
func TestPinLimits(t *testing.T) {
	now := int64(0)
	e := New(func() int64 { return now })
	if _, err := e.Deploy(analysed(t, pinPrograms[0]), false); err != nil {
		t.Fatal(err)
	}
	apply(t, e, 1, ins("edge", 1, 2))
	var pins []*Pin
	for range PinsMax {
		p, err := e.Pin(1000)
		if err != nil {
			t.Fatal(err)
		}
		pins = append(pins, p)
	}
	if _, err := e.Pin(1000); !errors.Is(err, ErrPins) {
		t.Errorf("one pin too many: %v", err)
	}
	q := analysedQuery(t, e.Program(), `?edge(X, Y)`)
	v, err := pins[0].Query(q, nil, QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pins[1].Close()
	now = 999
	if _, err := e.Pin(1000); err != nil {
		t.Errorf("a pin in the place of another: %v", err)
	}
	now = 1000
	if !v.Step(1) {
		t.Error("a query goes on after its pin's time")
	}
	if _, err := v.Result(); !errors.Is(err, ErrPinExpired) {
		t.Errorf("a query after its pin's time: %v", err)
	}
	if apply(t, e, 2, del("edge", 1, 2)); e.Pins() != 1 {
		t.Errorf("%d pins are left, want 1", e.Pins())
	}
	e.ClosePins()
	if e.SweepPins(1000); e.Pins() != 0 {
		t.Errorf("%d pins are left after all are closed", e.Pins())
	}
}

// TestPinnedQueryCancels ends a query by its own options and limits.
func TestPinnedQueryCancels(t *testing.T) {
	e := New(nil)
	if _, err := e.Deploy(analysed(t, pinPrograms[0]), false); err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		apply(t, e, uint64(i), ins("edge", i, i+1))
	}
	p, err := e.Pin(0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	q := analysedQuery(t, e.Program(), `?edge(X, Y)`)
	for _, c := range []struct {
		opt  QueryOptions
		want error
	}{
		{QueryOptions{}, nil},
		{QueryOptions{Budget: 500}, ErrBudget},
		{QueryOptions{Cancelled: func() bool { return true }}, ErrCancelled},
	} {
		v, err := p.Query(q, nil, c.opt)
		if err != nil {
			t.Fatal(err)
		}
		steps := 1
		for ; !v.Step(0); steps++ {
		}
		r, err := v.Result()
		if !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.opt, err, c.want)
		}
		if c.want == nil && (r.Count != 2000 || steps < 2000/ticksPerPause) {
			t.Errorf("%d rows in %d steps", r.Count, steps)
		}
	}
}
