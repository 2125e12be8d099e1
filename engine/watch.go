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
type Key struct {
	// Owner is the caller's own; the engine does not look at it.
	Owner any

	family *family
	values []value.Value
	ids    []value.ID
	row    relation.RowID // of the demand
	refs   int
	dead   bool

	listed   bool             // in Engine.touched
	revision uint64           // of the last commit that touched it
	touched  []relation.RowID // result rows whose change is unreported; each is Held
	// baseline replaces the reported rows when a Deploy replaced the network: what
	// was told last, as output rows.
	baseline    []value.ID
	hasBaseline bool
	// order is the result in the order of Rows, if ordered: as of what was told
	// last, so that a change costs a merge and no sorting.
	order   []relation.RowID
	ordered bool
}

// View returns the name of the key's view.
func (k *Key) View() string { return k.family.view.Name }

// Values returns the key's values, one for each parameter. The caller must not
// change them.
func (k *Key) Values() []value.Value { return k.values }

// Columns returns the columns of the view's rows. The caller must not change them.
func (k *Key) Columns() []analysis.Column { return k.family.view.Query.Columns }

// Watch begins to keep the result of a view at a key; Rows then gives it, and
// Changes tells how it goes on. A key that is watched already is returned again,
// and needs one more Unwatch. The values are copied. Its errors wrap
// ErrUnknownView, ErrArity, ErrType or ErrFull.
func (e *Engine) Watch(view string, key []value.Value) (*Key, error) {
	f, ok := e.views[view]
	if !ok {
		return nil, fmt.Errorf("view %q: %w", view, ErrUnknownView)
	}
	if err := checkValues(key, f.view.Query.Parameters); err != nil {
		return nil, fmt.Errorf("view %q: %w", view, err)
	}
	ids := make([]value.ID, len(key))
	for i, v := range key {
		var err error
		if ids[i], err = e.symbols.Intern(v); err != nil {
			return nil, fmt.Errorf("view %q: %w: %w", view, ErrFull, err)
		}
	}
	if row, ok := e.network.DemandRow(f.number, ids); ok {
		k := f.keys[row]
		k.refs++
		return k, nil
	}
	k := &Key{family: f, values: slices.Clone(key), ids: ids, refs: 1}
	e.demand(k)
	e.settleSilently()
	return k, nil
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
// results is a snapshot, not a change.
func (e *Engine) settleSilently() {
	e.silent = true
	_, _, err := e.network.Settle()
	e.silent = false
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
	for _, row := range k.touched {
		e.network.Release(k.family.number, row)
	}
	e.forget(k)
	k.family.keys[k.row] = nil
	k.family.watched--
	e.network.Withdraw(k.family.number, k.row)
	e.settleSilently()
}

// forget makes a key dead.
func (e *Engine) forget(k *Key) {
	k.dead, k.touched, k.baseline, k.order = true, nil, nil, nil
	if k.listed {
		e.touched = slices.DeleteFunc(e.touched, func(o *Key) bool { return o == k })
		k.listed = false
	}
}

// resultChanged is told by the network that a result row became visible or
// invisible.
func (e *Engine) resultChanged(goal int, row relation.RowID) {
	table := e.network.Result(goal)
	if e.silent {
		if table.IsVisible(row) {
			table.SetFlags(row, reported)
		} else {
			table.ClearFlags(row, reported)
		}
		return
	}
	f := e.families[goal]
	parameters := len(f.view.Query.Parameters)
	at, ok := e.network.DemandRow(goal, table.Row(row)[:parameters])
	if !ok {
		panic("engine: a result row has no watched key")
	}
	k := f.keys[at]
	e.touch(k)
	if !k.hasBaseline && !e.network.IsHeld(goal, row) {
		e.network.Hold(goal, row)
		k.touched = append(k.touched, row)
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
			e.diffBaseline(k)
		} else {
			e.diffTouched(k)
		}
		if len(e.insert) > 0 || len(e.retract) > 0 {
			e.spend(start)
			yield(k, k.revision, e.insert, e.retract)
			start = e.now()
		}
	}
	clear(e.touched)
	e.touched = e.touched[:0]
	if cap(e.insert)+cap(e.retract) > scratchKept {
		e.insert, e.retract = nil, nil
	}
	e.spend(start)
}

// diffTouched collects the net change of a key into e.insert and e.retract, and
// takes note that it is reported.
func (e *Engine) diffTouched(k *Key) {
	goal := k.family.number
	table := e.network.Result(goal)
	entered := e.changed[:0]
	for _, row := range k.touched {
		if flags := table.Flags(row); flags&relation.Visible != 0 && flags&reported == 0 {
			entered = append(entered, row)
		}
	}
	split := len(entered)
	left := entered
	for _, row := range k.touched {
		if flags := table.Flags(row); flags&relation.Visible == 0 && flags&reported != 0 {
			left = append(left, row)
		}
	}
	e.changed = left
	entered, left = left[:split], left[split:]
	e.sortRows(k.family, entered)
	e.sortRows(k.family, left)
	e.reorder(k, entered, left)
	e.insert = e.appendRows(k.family, entered, e.insert[:0])
	e.retract = e.appendRows(k.family, left, e.retract[:0])
	for _, row := range k.touched {
		if table.IsVisible(row) {
			table.SetFlags(row, reported)
		} else {
			table.ClearFlags(row, reported)
		}
		e.network.Release(goal, row)
	}
	k.touched = k.touched[:0]
	if cap(k.touched) > touchedKept {
		k.touched = nil
	}
	if cap(e.changed) > scratchKept {
		e.changed = nil
	}
}

// touchedKept is the capacity that each key keeps for its next changes.
const touchedKept = 64
