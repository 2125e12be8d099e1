package engine

import (
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// Key is a view watched at one value for each of its parameters. It is valid from
// Watch until the last Unwatch, or until a Deploy returns it as lost.
//
// A commit meets other keys than the one before: what it reads of a key stands at
// the beginning, so that it takes few loads from memory.
type Key struct {
	// Owner is the caller's own; the engine does not look at it.
	Owner any

	family   *family
	revision uint64         // of the last commit that touched it
	row      relation.RowID // of the demand
	// pending is the key's newest entry in Engine.pending + 1, 0 if there is none:
	// result rows whose change is unreported.
	pending     uint32
	dead        bool
	listed      bool // in Engine.touched
	hasBaseline bool
	// rows are the kept cells of the result, sorted, as of what was told last.
	rows   []value.ID
	values []value.Value

	ids  []value.ID // of the values
	refs int
	// baseline replaces rows as what was told last, as output rows, when a Deploy
	// replaced the network.
	baseline []value.ID
}

// smallKey is a key with its values in one piece of memory.
type smallKey struct {
	Key
	values [2]value.Value
	ids    [2]value.ID
}

func newKey(f *family, values []value.Value) *Key {
	n := len(values)
	if s := (&smallKey{}); n <= len(s.values) {
		s.Key.values, s.Key.ids = s.values[:n:n], s.ids[:n:n]
		s.family, s.refs = f, 1
		copy(s.values[:], values)
		return &s.Key
	}
	return &Key{family: f, values: slices.Clone(values), ids: make([]value.ID, n), refs: 1}
}

// pendingRow is an entry in the list of a key's unreported result rows; each of
// the rows is Held.
type pendingRow struct {
	row  relation.RowID
	next uint32 // of the same key + 1; 0 at the end
}

// View returns the name of the key's view.
func (k *Key) View() string { return k.family.view.Name }

// Values returns the key's values, one for each parameter. The caller must not
// change them.
func (k *Key) Values() []value.Value { return k.values }

// Columns returns the columns of the view's rows. The caller must not change them.
func (k *Key) Columns() []analysis.Column { return k.family.view.Query().Columns }

// Watch begins to keep the result of a view at a key; Rows then gives it, and
// Changes tells how it goes on. A key that is watched already is returned again,
// and needs one more Unwatch. The values are copied. Its errors wrap
// ErrUnknownView, ErrArity, ErrType or ErrFull.
func (e *Engine) Watch(view string, key []value.Value) (*Key, error) {
	f, ok := e.views[view]
	if !ok {
		return nil, fmt.Errorf("view %q: %w", view, ErrUnknownView)
	}
	if err := checkValues(key, f.view.Parameters); err != nil {
		return nil, fmt.Errorf("view %q: %w", view, err)
	}
	if err := e.admitStrange(key); err != nil {
		return nil, fmt.Errorf("view %q: %w", view, err)
	}
	k := newKey(f, key)
	for i, v := range key {
		var err error
		if k.ids[i], err = e.symbols.Intern(v); err != nil {
			return nil, fmt.Errorf("view %q: %w: %w", view, ErrFull, err)
		}
	}
	if row, ok := e.network.DemandRow(f.number, k.ids); ok {
		k = f.keys[row]
		k.refs++
		return k, nil
	}
	e.demand(k)
	first := len(e.pending)
	e.settleSilently(k)
	e.take(k)
	e.pending = e.pending[:first]
	e.trimPending()
	return k, nil
}

const (
	// strangeBytesMax bounds the memory of values that came with watched keys and
	// that no fact had held: the dictionary keeps them until the process ends.
	strangeBytesMax = 64 << 20
	// strangeValueBytes is what the dictionary needs for a value besides its text.
	strangeValueBytes = 64
)

// admitStrange counts the values of a key that the dictionary does not know yet,
// and returns ErrFull, wrapped, when too many have come.
func (e *Engine) admitStrange(key []value.Value) error {
	bytes := 0
	for _, v := range key {
		if _, known := e.symbols.Lookup(v); !known {
			bytes += strangeValueBytes + len(v.Str())
		}
	}
	if bytes > 0 && e.strangeBytes+bytes > e.strangeBytesMax {
		return fmt.Errorf("%w: keys with values that no fact holds have used %d bytes of %d",
			ErrFull, e.strangeBytes, e.strangeBytesMax)
	}
	e.strangeBytes += bytes
	return nil
}

// demand puts the key's demand into the network and the key into its family.
func (e *Engine) demand(k *Key) {
	f := k.family
	k.row = e.network.Demand(f.number, k.ids)
	for int(k.row) >= len(f.keys) {
		f.keys = append(f.keys, nil)
	}
	f.keys[k.row] = k
	f.watched++
}

// settleSilently carries changes of demand through the network: what they do to
// results is a snapshot, not a change. With a key, only its result can change.
func (e *Engine) settleSilently(k *Key) {
	e.silent, e.watching = true, k
	_, _, err := e.network.Settle()
	e.silent, e.watching = false, nil
	if err != nil {
		panic("engine: the main network has no limit and reached it")
	}
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
	for at := k.pending; at != 0; at = e.pending[at-1].next {
		e.network.Release(k.family.number, e.pending[at-1].row)
	}
	e.forget(k)
	k.family.keys[k.row] = nil
	k.family.watched--
	e.network.Withdraw(k.family.number, k.row)
	e.settleSilently(k)
}

// forget makes a key dead.
func (e *Engine) forget(k *Key) {
	k.dead, k.pending, k.baseline, k.rows = true, 0, nil, nil
	if k.listed {
		e.touched = slices.DeleteFunc(e.touched, func(o *Key) bool { return o == k })
		k.listed = false
	}
}

// resultChanged is told by the network that a result row became visible or
// invisible.
func (e *Engine) resultChanged(goal int, row relation.RowID) {
	k := e.watching
	if k == nil {
		f := e.families[goal]
		key := e.network.Result(goal).Row(row)[:f.parameters]
		at, ok := e.network.DemandRow(goal, key)
		if !ok {
			panic("engine: a result row has no watched key")
		}
		k = f.keys[at]
	}
	if k.dead {
		return // its rows go
	}
	if !e.silent {
		e.touch(k)
	}
	if e.network.Hold(goal, row) {
		e.pending = append(e.pending, pendingRow{row: row, next: k.pending})
		k.pending = uint32(len(e.pending))
	}
}

func (e *Engine) touch(k *Key) {
	k.revision = e.revision
	if !k.listed {
		k.listed = true
		e.touched = append(e.touched, k)
	}
}

// Changes calls yield for each watched key whose result differs from what was told
// last, by Rows after Watch or by Changes itself, with the rows that entered and
// those that left, flat as in Rows and sorted, and with the revision of the last
// commit that touched the key. Several commits since the last call come out as
// one net change; a key whose changes cancel out does not appear. Keys come in the
// order in which they were first touched. The slices are valid during the call
// only; yield may call Rows, and nothing else of the engine.
func (e *Engine) Changes(yield func(k *Key, revision uint64, insert, retract []value.Value)) {
	start := e.now()
	for _, k := range e.touched {
		k.listed = false
		if k.hasBaseline {
			e.take(k)
			e.diffBaseline(k)
		} else {
			e.report(k)
		}
		if len(e.insert) > 0 || len(e.retract) > 0 {
			e.spend(start)
			yield(k, k.revision, e.insert, e.retract)
			start = e.now()
		}
	}
	clear(e.touched)
	e.touched, e.pending = e.touched[:0], e.pending[:0]
	e.trimPending()
	if cap(e.insert)+cap(e.retract) > scratchKept {
		e.insert, e.retract = nil, nil
	}
	e.spend(start)
}

// report collects the net change of a key into e.insert and e.retract, and takes
// note that it is reported.
func (e *Engine) report(k *Key) {
	entered, left := e.netChange(k)
	e.insert = e.appendResult(k, entered, e.insert[:0])
	e.retract = e.appendResult(k, left, e.retract[:0])
	e.settle(k, entered, left)
}

// take takes note that the net change of a key is reported.
func (e *Engine) take(k *Key) {
	entered, left := e.netChange(k)
	e.settle(k, entered, left)
}

// netChange returns the result rows of a key that entered and left since what was
// told last, sorted. The slices are scratch.
func (e *Engine) netChange(k *Key) (entered, left []relation.RowID) {
	const state = relation.Visible | reported
	table := e.network.Result(k.family.number)
	changed := e.changed[:0]
	for at := k.pending; at != 0; at = e.pending[at-1].next {
		if row := e.pending[at-1].row; table.Flags(row)&state == relation.Visible {
			changed = append(changed, row)
		}
	}
	split := len(changed)
	for at := k.pending; at != 0; at = e.pending[at-1].next {
		if row := e.pending[at-1].row; table.Flags(row)&state == reported {
			changed = append(changed, row)
		}
	}
	if e.changed = changed; cap(changed) > scratchKept {
		e.changed = nil
	}
	entered, left = changed[:split], changed[split:]
	e.sortResult(k.family, entered)
	e.sortResult(k.family, left)
	return entered, left
}

// settle brings a key's rows in line with its net change, and lets go of what is
// pending.
func (e *Engine) settle(k *Key, entered, left []relation.RowID) {
	k.rows = e.merge(k.family, k.rows, entered, left)
	goal := k.family.number
	table := e.network.Result(goal)
	for at := k.pending; at != 0; at = e.pending[at-1].next {
		row := e.pending[at-1].row
		if table.IsVisible(row) {
			table.SetFlags(row, reported)
		} else {
			table.ClearFlags(row, reported)
		}
		e.network.Release(goal, row)
	}
	k.pending = 0
}

// trimPending gives back the memory of a long list of pending rows.
func (e *Engine) trimPending() {
	if len(e.pending) == 0 && cap(e.pending) > scratchKept {
		e.pending = nil
	}
}
