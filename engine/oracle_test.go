package engine

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/value"
)

var (
	oracleSeed = flag.Uint64("oracle.seed", 0, "run this one program of the oracle test")
	oracleTime = flag.Duration("oracle.time", 4*time.Second, "how long the oracle test runs")
)

const oracleSteps = 40

// TestOracle compares the engine with the naive evaluator on random programs under
// random transactions, watches, queries and deploys. Each program has its own
// seed; a failure names it, and -oracle.seed runs it alone.
func TestOracle(t *testing.T) {
	if *oracleSeed != 0 {
		if err := runOracle(*oracleSeed, oracleSteps); err != nil {
			t.Fatal(err)
		}
		return
	}
	seed := rand.Uint64()
	t.Logf("first seed %d", seed)
	programs := 0
	limit := *oracleTime
	if testing.Short() {
		limit /= 4
	}
	for start := time.Now(); time.Since(start) < limit; programs++ {
		if err := runOracle(seed, oracleSteps); err != nil {
			t.Fatal(shortest(seed, err))
		}
		seed++
	}
	t.Logf("%d programs of %d steps", programs, oracleSteps)
}

// shortest returns the failure of the shortest run that fails under a seed.
func shortest(seed uint64, err error) error {
	for steps := 1; steps < oracleSteps; steps++ {
		if shorter := runOracle(seed, steps); shorter != nil {
			return shorter
		}
	}
	return err
}

// oracle is one run: an engine, what it should hold, and what its changes told.
type oracle struct {
	g        generator
	engine   *Engine
	program  *analysis.Program
	bases    []analysis.Relation
	facts    naive.Facts
	keys     []*Key
	refs     map[*Key]int
	mirrors  map[*Key]naive.Set // replayed from snapshots and changes
	revision uint64
	trace    []string
}

func runOracle(seed uint64, steps int) (err error) {
	o := &oracle{
		g: generator{rand.New(rand.NewPCG(seed, 1))}, engine: New(nil),
		facts: naive.Facts{}, refs: map[*Key]int{}, mirrors: map[*Key]naive.Set{},
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
		if err != nil {
			err = fmt.Errorf("seed %d: %w\n%s\n%s", seed, err, spellProgram(o.program),
				strings.Join(o.trace, "\n"))
		}
	}()
	o.bases = o.g.baseRelations()
	for _, r := range o.bases {
		o.facts[r.Name] = naive.Set{}
	}
	if err := o.deploy(); err != nil {
		return err
	}
	for range steps {
		if err := o.step(); err != nil {
			return err
		}
	}
	for len(o.keys) > 0 {
		o.unwatch()
	}
	if n := o.engine.Stats().DerivedRows; n != 0 {
		return fmt.Errorf("%d derived rows are left without watched keys", n)
	}
	return nil
}

func (o *oracle) note(format string, args ...any) {
	o.trace = append(o.trace, fmt.Sprintf(format, args...))
}

func (o *oracle) step() error {
	var err error
	switch n := o.g.IntN(20); {
	case n < 10:
		err = o.transact()
	case n < 14:
		err = o.watch()
	case n < 15:
		if len(o.keys) > 0 {
			o.unwatch()
		}
	case n < 17:
		err = o.query()
	case n < 18:
		err = o.deploy()
	default:
		err = o.changes()
	}
	if err != nil {
		return err
	}
	return o.compare()
}

func (o *oracle) transact() error {
	var ops []analysis.Op
	for range 1 + o.g.IntN(6) {
		r := &o.bases[o.g.IntN(len(o.bases))]
		op := analysis.Op{Relation: r.Name, Row: o.g.row(r.Columns)}
		// Deletions take a present row half of the time.
		if set := o.facts[r.Name]; o.g.IntN(100) < 40+2*len(set) {
			op.Delete = true
			if len(set) > 0 && o.g.IntN(2) == 0 {
				rows := slices.Sorted(maps.Keys(set))
				op.Row = set[rows[o.g.IntN(len(rows))]]
			}
		}
		ops = append(ops, op)
	}
	before := map[string]naive.Set{}
	for name, set := range o.facts {
		before[name] = maps.Clone(set)
	}
	for _, op := range ops {
		if op.Delete {
			o.facts[op.Relation].Remove(op.Row)
		} else {
			o.facts[op.Relation].Add(op.Row)
		}
	}
	o.revision++
	o.note("apply %v", ops)
	if err := o.engine.Check(ops); err != nil {
		return err
	}
	inserted, deleted, err := o.engine.Apply(o.revision, ops)
	for name, set := range o.facts {
		for k := range set {
			if _, ok := before[name][k]; !ok {
				inserted--
			}
		}
		for k := range before[name] {
			if _, ok := set[k]; !ok {
				deleted--
			}
		}
	}
	if inserted != 0 || deleted != 0 {
		return fmt.Errorf("counts off by %d insertions, %d deletions", inserted, deleted)
	}
	return err
}

func (o *oracle) watch() error {
	v := &o.program.Views[o.g.IntN(len(o.program.Views))]
	k, err := o.engine.Watch(v.Name, o.g.row(v.Parameters))
	if err != nil {
		return err
	}
	o.note("watch %s%v", k.View(), k.Values())
	o.refs[k]++
	if o.refs[k] > 1 {
		return nil
	}
	o.keys = append(o.keys, k)
	o.mirrors[k] = naive.Set{}
	for row := range slices.Chunk(o.engine.Rows(k, 0, nil), len(k.Columns(0))) {
		o.mirrors[k].Add(row)
	}
	return nil
}

func (o *oracle) unwatch() {
	k := o.keys[o.g.IntN(len(o.keys))]
	o.note("unwatch %s%v", k.View(), k.Values())
	o.engine.Unwatch(k)
	if o.refs[k]--; o.refs[k] == 0 {
		o.forget(k)
	}
}

func (o *oracle) forget(k *Key) {
	delete(o.refs, k)
	delete(o.mirrors, k)
	o.keys = slices.DeleteFunc(o.keys, func(x *Key) bool { return x == k })
}

func (o *oracle) query() error {
	var q analysis.Query
	q.Parameters = o.g.columns(o.g.IntN(2))
	o.g.query(o.program, &q, nil)
	key := o.g.row(q.Parameters)
	o.note("query %v %s", key, spellQuery(o.program, &q))
	got, err := o.engine.Query(&q, key, QueryOptions{})
	if err != nil {
		return err
	}
	want := naive.Answer(naive.Derive(o.program, o.facts), &q, key)
	if !slices.Equal(got.Rows, slices.Concat(want...)) {
		return fmt.Errorf("the query gives %v, want %v", got.Rows, want)
	}
	return nil
}

func (o *oracle) deploy() error {
	var views []analysis.View
	if o.program != nil {
		views = o.program.Views
	}
	// Now and then a relation goes, with its rows, and comes back.
	bases := slices.Clone(o.bases)
	gone := ""
	if o.program != nil && o.g.IntN(3) == 0 {
		i := o.g.IntN(len(bases))
		gone = bases[i].Name
		bases[i].Columns = o.g.columns(1 + o.g.IntN(2))
	}
	next := o.g.program(bases, views)
	o.note("deploy, changing %q\n%s", gone, spellProgram(next))
	_, err := o.engine.Deploy(next, false)
	if _, ok := errors.AsType[*DataLossError](err); ok {
		if err := o.compare(); err != nil {
			return fmt.Errorf("after a refused deploy: %w", err)
		}
		_, err = o.engine.Deploy(next, true)
	}
	if err != nil {
		return err
	}
	for i := range bases {
		if !sameTypes(bases[i].Columns, o.bases[i].Columns) {
			o.facts[gone] = naive.Set{}
		}
	}
	o.bases, o.program = bases, next
	o.revision++
	for _, k := range slices.Clone(o.keys) {
		if k.dead {
			o.forget(k)
		}
	}
	return nil
}

// changes replays what the engine tells onto the mirrors.
func (o *oracle) changes() error {
	o.note("changes")
	var err error
	seen := map[*Key]bool{}
	o.engine.Changes(func(k *Key, _ uint64, parts []Change) {
		insert, retract := parts[0].Insert, parts[0].Retract
		mirror := o.mirrors[k]
		if mirror == nil || seen[k] {
			err = fmt.Errorf("a change of %s%v, not watched or told twice", k.View(), k.Values())
			return
		}
		seen[k] = true
		err = errors.Join(err, o.replay(k, retract, mirror.Has, mirror.Remove),
			o.replay(k, insert, func(row []value.Value) bool { return !mirror.Has(row) },
				func(row []value.Value) { mirror.Add(row) }))
	})
	if err != nil {
		return err
	}
	for _, k := range o.keys {
		rows := slices.SortedFunc(maps.Values(o.mirrors[k]), naive.CompareRows)
		if got := o.engine.Rows(k, 0, nil); !slices.Equal(got, slices.Concat(rows...)) {
			return fmt.Errorf("replayed changes of %s%v give %v, rows are %v",
				k.View(), k.Values(), rows, got)
		}
	}
	return nil
}

func (o *oracle) replay(k *Key, flat []value.Value, may func([]value.Value) bool,
	do func([]value.Value),
) error {
	rows := slices.Collect(slices.Chunk(flat, len(k.Columns(0))))
	if !slices.IsSortedFunc(rows, naive.CompareRows) {
		return fmt.Errorf("changed rows %v are not sorted", rows)
	}
	for _, row := range rows {
		if !may(row) {
			return fmt.Errorf("%s%v: row %v changes to what it is", k.View(), k.Values(), row)
		}
		do(row)
	}
	return nil
}

// compare compares the rows of every watched key with those of the naive twin.
func (o *oracle) compare() error {
	if len(o.keys) == 0 {
		return nil
	}
	db := naive.Derive(o.program, o.facts)
	for _, k := range o.keys {
		q := o.program.ViewNamed(k.View()).Query()
		want := naive.Answer(db, q, k.Values())
		if got := o.engine.Rows(k, 0, nil); !slices.Equal(got, slices.Concat(want...)) {
			return fmt.Errorf("%s%v has rows %v, want %v", k.View(), k.Values(), got, want)
		}
	}
	return nil
}
