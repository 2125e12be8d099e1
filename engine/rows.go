package engine

import (
	"slices"

	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// Rows appends the key's present result to dst, row after row, each as wide as
// Columns, sorted by value.Compare column by column, without duplicates. A dead
// key has no rows.
func (e *Engine) Rows(k *Key, dst []value.Value) []value.Value {
	if k.dead {
		return dst
	}
	start := e.now()
	if !k.ordered || len(k.touched) > 0 {
		k.order = e.network.Rows(k.family.number, k.ids, k.order[:0])
		e.sortRows(k.family, k.order)
		k.ordered = len(k.touched) == 0 && !k.hasBaseline
	}
	dst = e.appendRows(k.family, k.order, dst)
	e.spend(start)
	return dst
}

// reorder brings the order of a key, if it is kept, in line with rows that entered
// and left. All of them are sorted and still have their cells.
func (e *Engine) reorder(k *Key, entered, left []relation.RowID) {
	if !k.ordered {
		return
	}
	read, write := 0, 0
	for _, row := range left {
		at := read + e.position(k.family, k.order[read:], row)
		write += copy(k.order[write:], k.order[read:at])
		read = at + 1
	}
	write += copy(k.order[write:], k.order[read:])
	k.order = append(k.order[:write], entered...)
	end := len(k.order)
	for i := len(entered) - 1; i >= 0; i-- {
		at := e.position(k.family, k.order[:write], entered[i])
		end -= copy(k.order[end-(write-at):end], k.order[at:write])
		write = at
		end--
		k.order[end] = entered[i]
	}
}

// position returns where row stands or belongs among sorted rows.
func (e *Engine) position(f *family, rows []relation.RowID, row relation.RowID) int {
	at, _ := slices.BinarySearchFunc(rows, row, e.compareRows(f))
	return at
}

func (e *Engine) sortRows(f *family, rows []relation.RowID) {
	if len(rows) > 1 {
		slices.SortFunc(rows, e.compareRows(f))
	}
}

// compareRows returns the order of a view's result rows.
func (e *Engine) compareRows(f *family) func(a, b relation.RowID) int {
	table := e.network.Result(f.number)
	outputs := e.network.Outputs(f.number)
	return func(a, b relation.RowID) int {
		x, y := table.Row(a), table.Row(b)
		for _, o := range outputs {
			if o.Column >= 0 && x[o.Column] != y[o.Column] {
				return e.symbols.Compare(x[o.Column], y[o.Column])
			}
		}
		return 0
	}
}

func (e *Engine) appendRows(f *family, rows []relation.RowID, dst []value.Value) []value.Value {
	table := e.network.Result(f.number)
	outputs := e.network.Outputs(f.number)
	for _, id := range rows {
		row := table.Row(id)
		for _, o := range outputs {
			cell := o.Constant
			if o.Column >= 0 {
				cell = row[o.Column]
			}
			dst = append(dst, e.symbols.Value(cell))
		}
	}
	return dst
}
