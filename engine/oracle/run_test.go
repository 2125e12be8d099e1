package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// errInvalid says that a scenario means nothing: a text of it is refused. Only a
// shrinker makes such scenarios.
var errInvalid = errors.New("invalid")

// seen counts what happened in runs, for the histogram.
type seen struct {
	commits, moving int // all; those that changed the rows of a watched key
	refused         int
	tags            map[string]bool
}

func newSeen() *seen { return &seen{tags: map[string]bool{}} }

// run is one run of a scenario: an engine, what it should hold, and what its changes
// told.
type run struct {
	engine   *engine.Engine
	program  *analysis.Program
	facts    naive.Facts
	database *naive.Database // of the facts; nil if they have changed
	keys     []*engine.Key
	refs     map[*engine.Key]int
	mirrors  map[*engine.Key][]naive.Set // by part, replayed from snapshots and changes
	revision uint64
	untold   int
	seen     *seen
	limits   engine.Limits
	pins     []*pinned
	behind   bool // the last deploy was refused, so that steps mean another program
}

func newRun(s *seen) *run {
	return &run{
		engine: engine.New(nil), facts: naive.Facts{}, refs: map[*engine.Key]int{},
		mirrors: map[*engine.Key][]naive.Set{}, seen: s,
	}
}

// play runs a scenario and returns the first mismatch, with the number of the step
// where it was found.
func play(s *scenario, seen *seen) (at int, err error) {
	r := newRun(seen)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v%s", p, stack())
		}
	}()
	if err := r.deploy(s.program); err != nil {
		return 0, err
	}
	r.limits = s.limits
	r.engine.SetLimits(s.limits)
	for i, step := range s.steps {
		at = i
		if err := r.do(&step, s.told); err != nil {
			return i, err
		}
	}
	if err := errors.Join(r.tendPins(true), r.changes()); err != nil {
		return at, err
	}
	return at, r.end()
}

func (r *run) do(s *step, told int) error {
	var err error
	switch s.kind {
	case stepTransact:
		err = r.transact(s.statements)
	case stepCall:
		err = r.call(s.name, s.values)
	case stepWatch:
		err = r.watch(s.name, s.values)
	case stepUnwatch:
		if len(r.keys) > 0 {
			r.unwatch(r.keys[s.index%len(r.keys)])
		}
	case stepQuery:
		err = r.query(s)
	case stepPin:
		err = r.pin(s)
	case stepDeploy:
		err = r.deploy(s.program)
	}
	if err != nil && !(r.behind && errors.Is(err, errInvalid)) {
		return err
	}
	if err := errors.Join(r.tendPins(false), r.compare()); err != nil {
		return err
	}
	if r.untold++; r.untold >= told {
		r.untold = 0
		return r.changes()
	}
	return nil
}

// derived returns all relations by the naive twin.
func (r *run) derived() *naive.Database {
	if r.database == nil {
		r.database = naive.Derive(r.program, r.facts)
	}
	return r.database
}

func (r *run) transact(statements []statement) error {
	text := transactionText(statements)
	tree, err := parse.Transaction(text)
	if err != nil {
		return fmt.Errorf("%w: %w\n%s", errInvalid, err, text)
	}
	checked, err := analysis.CheckTransaction(r.program, tree)
	if err != nil {
		return fmt.Errorf("%w: %w\n%s", errInvalid, err, text)
	}
	return r.commit(checked, nil)
}

func (r *run) call(name string, values []value.Value) error {
	a := r.program.ActionNamed(name)
	if a == nil || len(a.Parameters) != len(values) {
		return fmt.Errorf("%w: no action %s", errInvalid, name)
	}
	return r.commit(a.Statements, values)
}

// commit has both twins do statements, and compares what they say.
func (r *run) commit(statements []analysis.Statement, values []value.Value) error {
	next, outcomes, refusal := naive.Transact(r.program, r.facts, statements, values)
	got, err := r.engine.Transact(r.revision+1, statements, values, engine.TransactOptions{})
	switch {
	case r.overBudget(err):
		r.seen.refused++
		return nil
	case err != nil && refusal == nil:
		return fmt.Errorf("the engine refuses: %w", err)
	case err != nil:
		r.seen.refused++
		return nil
	case errors.Is(refusal, naive.ErrErrors):
		return fmt.Errorf("the engine does not refuse: %w", refusal)
	}
	// Refused as unsure by the twin alone: the engine met none of the errors.
	r.revision++
	inserted, deleted := r.facts.Compare(next)
	if got.Inserted != inserted || got.Deleted != deleted {
		return fmt.Errorf("the engine counts %d rows inserted and %d deleted, want %d and %d",
			got.Inserted, got.Deleted, inserted, deleted)
	}
	for i, o := range got.Statements {
		want := engine.StatementOutcome{
			Rows: outcomes[i].Rows, Inserted: outcomes[i].Inserted, Deleted: outcomes[i].Deleted,
		}
		if o != want {
			return fmt.Errorf("the engine says %+v of statement %d, want %+v", o, i+1, want)
		}
	}
	before := r.rows()
	r.facts, r.database = next, nil
	r.seen.commits++
	if !slices.EqualFunc(before, r.rows(), slices.Equal) {
		r.seen.moving++
	}
	return nil
}

// rows returns the rows of all watched keys and parts by the naive twin.
func (r *run) rows() [][]value.Value {
	var out [][]value.Value
	for _, k := range r.keys {
		parts := r.program.ViewNamed(k.View()).Parts
		for i := range parts {
			rows := naive.Answer(r.derived(), &parts[i].Query, k.Values())
			out = append(out, slices.Concat(rows...))
		}
	}
	return out
}

func (r *run) watch(name string, values []value.Value) error {
	v := r.program.ViewNamed(name)
	if v == nil || len(v.Parameters) != len(values) {
		return fmt.Errorf("%w: no view %s", errInvalid, name)
	}
	k, err := r.engine.Watch(name, values)
	switch {
	case r.overBudget(err):
		return nil
	case err != nil:
		return err
	}
	if r.refs[k]++; r.refs[k] > 1 {
		return nil
	}
	r.keys = append(r.keys, k)
	r.mirrors[k] = make([]naive.Set, k.Parts())
	for i := range r.mirrors[k] {
		r.mirrors[k][i] = setOf(r.engine.Rows(k, i, nil), len(k.Columns(i)))
	}
	return nil
}

func setOf(flat []value.Value, width int) naive.Set {
	set := naive.Set{}
	for row := range slices.Chunk(flat, max(width, 1)) {
		set.Add(row)
	}
	return set
}

func (r *run) unwatch(k *engine.Key) {
	r.engine.Unwatch(k)
	if r.refs[k]--; r.refs[k] == 0 {
		r.forget(k)
	}
}

func (r *run) forget(k *engine.Key) {
	delete(r.refs, k)
	delete(r.mirrors, k)
	r.keys = slices.DeleteFunc(r.keys, func(x *engine.Key) bool { return x == k })
}

// overBudget reports whether an error is a refusal that the scenario allows for.
func (r *run) overBudget(err error) bool {
	return r.limits != engine.Limits{} && errors.Is(err, engine.ErrBudget)
}

func (r *run) deploy(s *source) error {
	p, err := s.program()
	if err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	var preview *engine.Diff
	if r.revision%2 == 1 {
		if preview, err = r.engine.Preview(p, true); err != nil && !r.overBudget(err) {
			return err
		}
	}
	d, err := r.engine.Deploy(p, true)
	switch {
	case r.program != nil && r.overBudget(err):
		r.behind = true
		return nil
	case err != nil:
		return err
	}
	if preview != nil && !slices.Equal(preview.Rows, d.Rows) {
		return fmt.Errorf("a preview tells %v, the deploy %v", preview.Rows, d.Rows)
	}
	r.behind = false
	for _, k := range d.LostKeys {
		r.forget(k)
	}
	for _, k := range r.keys {
		if slices.Contains(d.KeptViews, k.View()) {
			r.seen.tags["watched view kept by a deploy"] = true
		} else {
			r.seen.tags["watched view changed by a deploy"] = true
		}
	}
	facts := naive.Facts{}
	for i := range p.Relations {
		if rel := &p.Relations[i]; !rel.Derived {
			facts[rel.Name] = r.kept(rel)
		}
	}
	r.program, r.facts, r.database = p, facts, nil
	r.revision++
	return nil
}

// kept returns the rows of a base relation after a deploy: those that it has, with
// nulls in further columns, if all of them fit.
func (r *run) kept(next *analysis.Relation) naive.Set {
	kept := naive.Set{}
	if r.program == nil {
		return kept
	}
	id, ok := r.program.RelationNamed(next.Name)
	if !ok && next.Was != "" {
		id, ok = r.program.RelationNamed(next.Was)
	}
	if !ok || r.program.Relations[id].Derived {
		return kept
	}
	old := r.program.Relations[id].Columns
	if len(old) > len(next.Columns) {
		return kept
	}
	for _, row := range r.facts[r.program.Relations[id].Name] {
		row = slices.Clone(row)
		for i, c := range next.Columns {
			if i == len(row) {
				row = append(row, value.OfNull())
			}
			if i < len(old) && old[i].Type != c.Type || row[i].IsNull() && !c.Nullable {
				return naive.Set{}
			}
		}
		kept.Add(row)
	}
	return kept
}

// changes replays what the engine tells onto the mirrors.
func (r *run) changes() error {
	var err error
	told := map[*engine.Key]bool{}
	r.engine.Changes(func(k *engine.Key, _ uint64, parts []engine.Change) {
		mirrors := r.mirrors[k]
		if mirrors == nil || told[k] {
			err = fmt.Errorf("a change of %s%v, not watched or told twice", k.View(), k.Values())
			return
		}
		told[k] = true
		for i, c := range parts {
			err = errors.Join(err, replay(k, i, mirrors[i], c))
		}
	})
	if err != nil {
		return err
	}
	for _, k := range r.keys {
		for i, mirror := range r.mirrors[k] {
			rows := mirror.Rows()
			if got := r.engine.Rows(k, i, nil); !slices.Equal(got, slices.Concat(rows...)) {
				return fmt.Errorf("replayed changes of %s%v part %d give %v, rows are %v",
					k.View(), k.Values(), i, rows, got)
			}
		}
	}
	return nil
}

func replay(k *engine.Key, part int, mirror naive.Set, c engine.Change) error {
	width := max(len(k.Columns(part)), 1)
	for _, flat := range [][]value.Value{c.Retract, c.Insert} {
		rows := slices.Collect(slices.Chunk(flat, width))
		if !slices.IsSortedFunc(rows, naive.CompareRows) {
			return fmt.Errorf("%s%v: changed rows %v are not sorted", k.View(), k.Values(), rows)
		}
	}
	for row := range slices.Chunk(c.Retract, width) {
		if !mirror.Has(row) {
			return fmt.Errorf("%s%v: row %v leaves that was not there", k.View(), k.Values(), row)
		}
		mirror.Remove(row)
	}
	for row := range slices.Chunk(c.Insert, width) {
		if !mirror.Add(row) {
			return fmt.Errorf("%s%v: row %v enters that was there", k.View(), k.Values(), row)
		}
	}
	return nil
}

// compare compares the rows of every watched key with those of the naive twin. The
// engine sees no more errors than the twin, which asks for everything.
func (r *run) compare() error {
	r.engine.Unreported() // doubts are looked at when somebody asks
	if err := r.compareErrors(); err != nil {
		return err
	}
	for _, k := range r.keys {
		parts := r.program.ViewNamed(k.View()).Parts
		for i := range parts {
			want, _ := r.derived().Ask(&parts[i].Query, k.Values())
			got := setOf(r.engine.Rows(k, i, nil), len(k.Columns(i))).Rows()
			doubt, _ := r.engine.Doubt(k, i)
			if most := r.doubt(k.View(), i); naive.Doubt(doubt) > most {
				return fmt.Errorf("%s%v part %d has doubt %d, want at most %d",
					k.View(), k.Values(), i, doubt, most)
			}
			if doubt == engine.Stale {
				r.seen.tags["stale rows"] = true
				want = r.mirrors[k][i].Rows()
			}
			if !slices.EqualFunc(got, want, slices.Equal) {
				return fmt.Errorf("%s%v part %d, doubt %d, has rows %v, want %v",
					k.View(), k.Values(), i, doubt, got, want)
			}
		}
	}
	return nil
}

// doubt is the twin's of a part of a view, at all watched keys.
func (r *run) doubt(view string, part int) naive.Doubt {
	worst := naive.Sure
	for _, k := range r.keys {
		if k.View() == view {
			q := &r.program.ViewNamed(view).Parts[part].Query
			_, doubt := r.derived().Ask(q, k.Values())
			worst = max(worst, doubt)
		}
	}
	return worst
}

// compareErrors compares the counts of rules' row errors.
func (r *run) compareErrors() error {
	most := map[string]int{}
	for i := range r.program.Rules {
		f := r.derived().Failures(i)
		most[r.program.Rules[i].Text] += f.Body + f.Head
	}
	for _, e := range r.engine.Errors() {
		if e.Count == 0 || e.Rule != "" && e.Count > most[e.Rule] {
			return fmt.Errorf("the engine counts %d errors of %q, want at most %d",
				e.Count, e.Rule, most[e.Rule])
		}
		r.seen.tags["row errors"] = true
	}
	return nil
}

// end takes all demand away, after which nothing derived may be left.
func (r *run) end() error {
	for len(r.keys) > 0 {
		r.unwatch(r.keys[len(r.keys)/2])
	}
	if n := r.engine.Stats().DerivedRows; n != 0 {
		return fmt.Errorf("%d derived rows are left without watched keys", n)
	}
	return r.forgets()
}

// forgets deletes all facts, after which the dictionary holds no more than that of a
// new engine.
func (r *run) forgets() error {
	var ops []analysis.Op
	for _, name := range slices.Sorted(maps.Keys(r.facts)) {
		for _, row := range r.facts[name].Rows() {
			ops = append(ops, analysis.Op{Relation: name, Row: row, Delete: true})
		}
	}
	r.revision++
	if _, _, err := r.engine.Apply(r.revision, ops); err != nil {
		return err
	}
	// Compiled queries keep constants until the next program.
	if _, err := r.engine.Deploy(r.program, true); err != nil {
		return err
	}
	for range 40 { // values go bit by bit
		r.engine.SweepPins(1000)
		r.engine.Changes(func(*engine.Key, uint64, []engine.Change) {})
	}
	fresh := engine.New(nil)
	if _, err := fresh.Deploy(r.program, true); err != nil {
		return err
	}
	left, want := r.engine.Stats(), fresh.Stats()
	if left.Facts != 0 || left.Symbols != want.Symbols {
		return fmt.Errorf("%d facts and %d symbols are left, in a new engine %d symbols",
			left.Facts, left.Symbols, want.Symbols)
	}
	return nil
}
