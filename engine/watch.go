package engine

import (
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// Key is a view watched at one value for each of its parameters. It is valid from
// Watch until the last Unwatch, or until a Deploy returns it as lost.
//
// A commit meets other keys than the one before: what it reads of a key stands at
// the beginning, so that it takes few loads from memory.
type Key struct {
	unit // of the view's first part

	revision uint64 // of the last commit that touched it
	dead     bool
	listed   int  // the place in Engine.touched + 1, 0 if there is none
	restated bool // to be told even if its rows do not change

	// Owner is the caller's own; the engine does not look at it.
	Owner any

	family *family
	values []value.Value
	ids    []value.ID // of the values
	refs   int
	more   []unit // of the view's other parts
}

// unit is the result of one part of a view at one key.
type unit struct {
	key  *Key
	part *part
	// rows are the kept cells of the result, sorted, as of what was told last.
	rows []value.ID
	row  relation.RowID // of the demand
	// pending is the unit's newest entry in Engine.pending + 1, 0 if there is none:
	// result rows whose change is unreported.
	pending uint32
	kept    bool // in Engine.kept
	// baseline, if not nil, replaces rows as what was told last, as output rows, when
	// a Deploy replaced the network.
	baseline *[]value.ID
}

// smallKey is a key with its values in one piece of memory.
type smallKey struct {
	Key
	values [2]value.Value
	ids    [2]value.ID
}

func newKey(f *family, values []value.Value) *Key {
	var k *Key
	n := len(values)
	if s := (&smallKey{}); n <= len(s.values) {
		k = &s.Key
		k.values, k.ids = s.values[:n:n], s.ids[:n:n]
		copy(k.values, values)
	} else {
		k = &Key{values: slices.Clone(values), ids: make([]value.ID, n)}
	}
	k.refs = 1
	if n := len(f.parts) - 1; n > 0 {
		k.more = make([]unit, n)
	}
	k.join(f)
	return k
}

// join makes the key one of a family's.
func (k *Key) join(f *family) {
	k.family = f
	for i := range f.parts {
		u := k.unitOf(i)
		u.key, u.part = k, &f.parts[i]
	}
}

// unitOf returns the key's result for a part of the view.
func (k *Key) unitOf(part int) *unit {
	if part == 0 {
		return &k.unit
	}
	return &k.more[part-1]
}

// pendingRow is an entry in the list of a unit's unreported result rows; each of
// the rows is Held.
type pendingRow struct {
	row  relation.RowID
	next uint32 // of the same unit + 1; 0 at the end
}

// View returns the name of the key's view.
func (k *Key) View() string { return k.family.view.Name }

// Values returns the key's values, one for each parameter. The caller must not
// change them.
func (k *Key) Values() []value.Value { return k.values }

// Parts returns how many parts the key's view has, named or not: at least 1.
func (k *Key) Parts() int { return len(k.family.view.Parts) }

// Columns returns the columns of a part's rows. The caller must not change them.
func (k *Key) Columns(part int) []analysis.Column {
	return k.family.view.Parts[part].Query.Columns
}

// Watch begins to keep the result of a view at a key; Rows then gives it, and
// Changes tells how it goes on. A key that is watched already is returned again,
// and needs one more Unwatch. The values are copied. Its errors wrap
// ErrUnknownView, ErrArity, ErrType, ErrFull or ErrBudget, and nothing is kept then.
func (e *Engine) Watch(view string, key []value.Value) (*Key, error) {
	return e.WatchWithin(view, key, 0)
}

// WatchWithin is Watch within a budget of steps, as QueryOptions counts them, and within
// Limits.WatchNanos; 0 is no limit of either. A key that is watched already is always
// within them.
func (e *Engine) WatchWithin(view string, key []value.Value, steps uint64) (*Key, error) {
	f, ok := e.views[view]
	if !ok {
		return nil, fmt.Errorf("view %q: %w", view, ErrUnknownView)
	}
	if err := checkValues(key, f.view.Parameters); err != nil {
		return nil, fmt.Errorf("view %q: %w", view, err)
	}
	k := newKey(f, key)
	for i, v := range key {
		var err error
		if k.ids[i], err = e.symbols.Intern(v); err != nil {
			return nil, fmt.Errorf("view %q: %w: %w", view, ErrFull, err)
		}
	}
	if row, ok := e.network.DemandRow(f.parts[0].goal, k.ids); ok {
		k = f.parts[0].units[row].key
		k.refs++
		return k, nil
	}
	e.demand(k)
	first := len(e.pending)
	limits := e.bounds(steps)
	if steps > 0 {
		limits.Cancelled, limits.CancelSteps = e.late(), stepsPerLook
	}
	e.network.Limits(limits)
	err := e.inTime(e.settleSilently(k))
	e.network.Limits(e.bounds(0))
	if err == nil {
		e.updateDoubts()
		k.restated = false
		if e.takeAll(k) {
			return k, nil // there is something to keep in e.pending
		}
	} else {
		e.abandon(k)
	}
	e.pending = e.pending[:first]
	e.trimPending()
	if err != nil {
		e.sweep()
		return nil, fmt.Errorf("view %q: %w", view, named(err, e.program, e.goals))
	}
	return k, nil
}

// abandon lets go of a key whose demand the network has given up.
func (e *Engine) abandon(k *Key) {
	e.release(k)
	e.forget(k)
	k.family.watched--
	for i := range k.Parts() {
		u := k.unitOf(i)
		u.part.units[u.row] = nil
	}
}

// release ends the hold on a key's unreported rows.
func (e *Engine) release(k *Key) {
	for i := range k.Parts() {
		u := k.unitOf(i)
		for at := u.pending; at != 0; at = e.pending[at-1].next {
			e.network.Release(u.part.goal, e.pending[at-1].row)
		}
		u.pending = 0
	}
}

// demand puts the key's demand into the network and the key into its family.
func (e *Engine) demand(k *Key) {
	for i := range k.Parts() {
		u := k.unitOf(i)
		p := u.part
		u.row = e.network.Demand(p.goal, k.ids)
		for int(u.row) >= len(p.units) {
			p.units = append(p.units, nil)
		}
		p.units[u.row] = u
	}
	k.family.watched++
}

// settleSilently carries changes of demand through the network: what they do to
// results is a snapshot, not a change. With a key, only its result can change.
func (e *Engine) settleSilently(k *Key) error {
	e.silent, e.watching = true, k
	_, _, err := e.network.Settle()
	e.silent, e.watching = false, nil
	return err
}

// Unwatch takes back one Watch. With the last one the key's rows go, and what
// Changes had still to tell of it.
func (e *Engine) Unwatch(k *Key) {
	if k.dead {
		return
	}
	if k.refs--; k.refs > 0 {
		return
	}
	e.release(k)
	e.forget(k)
	k.family.watched--
	for i := range k.Parts() {
		u := k.unitOf(i)
		u.part.units[u.row] = nil
		e.network.Withdraw(u.part.goal, u.row)
	}
	e.network.Limits(dataflow.Limits{})
	if err := e.settleSilently(k); err != nil {
		panic("engine: what a key needed does not go")
	}
	e.network.Limits(e.bounds(0))
	e.sweep()
}

// forget makes a key dead.
func (e *Engine) forget(k *Key) {
	k.dead = true
	for i := range k.Parts() {
		u := k.unitOf(i)
		u.pending, u.rows = 0, nil
		e.setBaseline(u, nil)
	}
	if k.listed > 0 {
		e.touched[k.listed-1], k.listed = nil, 0
		if e.holes++; e.holes == len(e.touched) {
			e.touched, e.holes = e.touched[:0], 0
		}
	}
}

// resultChanged is told by the network that a result row became visible or
// invisible.
func (e *Engine) resultChanged(goal int, row relation.RowID) {
	p := e.goals[goal]
	var u *unit
	if k := e.watching; k != nil {
		u = k.unitOf(p.index)
	} else {
		key := e.network.Result(goal).Row(row)[:p.parameters]
		at, ok := e.network.DemandRow(goal, key)
		if !ok {
			panic("engine: a result row has no watched key")
		}
		u = p.units[at]
	}
	if u.key.dead {
		return // its rows go
	}
	if !e.silent {
		e.touch(u.key)
	}
	if e.network.Hold(goal, row) {
		e.pending = append(e.pending, pendingRow{row: row, next: u.pending})
		u.pending = uint32(len(e.pending))
	}
}

func (e *Engine) touch(k *Key) {
	if k.revision != e.revision {
		e.marks = append(e.marks, mark{k, k.revision})
		k.revision = e.revision
	}
	e.list(k)
}

func (e *Engine) list(k *Key) {
	if k.listed == 0 {
		e.touched = append(e.touched, k)
		k.listed = len(e.touched)
	}
}

// Change is what entered and left the rows of one part of a key, flat as in Rows
// and sorted.
type Change struct {
	Insert, Retract []value.Value
	Doubt           Doubt // of its rows from now on
}

// Changes calls yield for each watched key whose result differs from what was told
// last, by Rows after Watch or by Changes itself, with the revision of the last
// commit that touched the key and with one Change for each part of its view.
// Several commits since the last call come out as one net change; a key whose
// changes cancel out does not appear. While row errors make a part Stale, nothing of it
// changes; a key whose doubt changes appears even without a row. Keys come in the order
// in which they were first touched. The slices are valid during the call only; yield
// may call Rows and Doubt, and nothing else of the engine.
func (e *Engine) Changes(yield func(k *Key, revision uint64, parts []Change)) {
	start := e.now()
	e.updateDoubts()
	for _, k := range e.touched {
		if k == nil {
			continue
		}
		k.listed = 0
		if e.report(k) {
			e.spend(start)
			yield(k, k.revision, e.changes[:k.Parts()])
			start = e.now()
		}
	}
	clear(e.touched)
	e.touched, e.holes = e.touched[:0], 0
	e.dropReported()
	e.sweep()
	for i := range e.changes {
		if c := &e.changes[i]; cap(c.Insert)+cap(c.Retract) > scratchKept {
			*c = Change{}
		}
	}
	e.spend(start)
}

// report collects the net change of a key into e.changes, takes note that it is
// reported, and returns false if there is none.
func (e *Engine) report(k *Key) bool {
	for len(e.changes) < k.Parts() {
		e.changes = append(e.changes, Change{})
	}
	some := k.restated
	k.restated = false
	for i := range k.Parts() {
		u, c := k.unitOf(i), &e.changes[i]
		if c.Doubt = u.part.doubt; c.Doubt == Stale {
			c.Insert, c.Retract = c.Insert[:0], c.Retract[:0]
			e.keep(u)
			continue
		}
		if u.baseline != nil {
			e.take(u)
			e.diffBaseline(u, c)
		} else {
			entered, left := e.netChange(u)
			c.Insert = e.appendResult(u, entered, c.Insert[:0])
			c.Retract = e.appendResult(u, left, c.Retract[:0])
			e.settle(u, entered, left)
		}
		some = some || len(c.Insert) > 0 || len(c.Retract) > 0
	}
	return some
}

// takeAll takes note that the net change of a key is reported, but for that of stale
// parts, which it keeps; it returns true if there was some to keep.
func (e *Engine) takeAll(k *Key) bool {
	kept := false
	for i := range k.Parts() {
		u := k.unitOf(i)
		if u.part.doubt != Stale {
			e.take(u)
			continue
		}
		e.keep(u)
		kept = kept || u.pending != 0
	}
	return kept
}

// take takes note that the net change of a unit is reported.
func (e *Engine) take(u *unit) {
	entered, left := e.netChange(u)
	e.settle(u, entered, left)
}

// netChange returns the result rows of a unit that entered and left since what was
// told last, sorted. The slices are scratch.
func (e *Engine) netChange(u *unit) (entered, left []relation.RowID) {
	const state = relation.Visible | reported
	if u.pending == 0 {
		return nil, nil
	}
	table := e.network.Result(u.part.goal)
	changed := e.changed[:0]
	for at := u.pending; at != 0; at = e.pending[at-1].next {
		if row := e.pending[at-1].row; table.Flags(row)&state == relation.Visible {
			changed = append(changed, row)
		}
	}
	split := len(changed)
	for at := u.pending; at != 0; at = e.pending[at-1].next {
		if row := e.pending[at-1].row; table.Flags(row)&state == reported {
			changed = append(changed, row)
		}
	}
	if e.changed = changed; cap(changed) > scratchKept {
		e.changed = nil
	}
	entered, left = changed[:split], changed[split:]
	e.sortResult(u.part, entered)
	e.sortResult(u.part, left)
	return entered, left
}

// settle brings a unit's rows in line with its net change, and lets go of what is
// pending.
func (e *Engine) settle(u *unit, entered, left []relation.RowID) {
	u.rows = e.merge(u.part, u.rows, entered, left)
	goal := u.part.goal
	table := e.network.Result(goal)
	for at := u.pending; at != 0; at = e.pending[at-1].next {
		row := e.pending[at-1].row
		if table.IsVisible(row) {
			table.SetFlags(row, reported)
		} else {
			table.ClearFlags(row, reported)
		}
		e.network.Release(goal, row)
	}
	u.pending = 0
}

// trimPending gives back the memory of a long list of pending rows.
func (e *Engine) trimPending() {
	if len(e.pending) == 0 && cap(e.pending) > scratchKept {
		e.pending = nil
	}
}
