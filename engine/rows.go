package engine

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// family is a view with its watched keys.
type family struct {
	number     int // of the view in the program, and of the goal in the network
	view       *analysis.View
	keys       []*Key // by the row of their demand
	watched    int
	parameters int
	// width is the number of cells that a key keeps of each of its rows: those
	// that the key itself does not tell.
	width   int
	outputs []output
	order   []int // the kept cells in the order in which they sort rows
}

// output tells where an output column comes from.
type output struct {
	from outputSource
	at   int // number of the parameter or kept cell
	cell value.ID
}

type outputSource uint8

const (
	fromCell outputSource = iota
	fromParameter
	fromConstant
)

func (e *Engine) newFamily(number int, view *analysis.View) *family {
	f := &family{number: number, view: view, parameters: len(view.Parameters)}
	f.width = max(e.network.Result(number).Arity()-f.parameters, 1)
	for _, o := range e.network.Outputs(number) {
		switch at := o.Column - f.parameters; {
		case o.Column < 0:
			f.outputs = append(f.outputs, output{from: fromConstant, cell: o.Constant})
		case at < 0:
			f.outputs = append(f.outputs, output{from: fromParameter, at: o.Column})
		default:
			f.outputs = append(f.outputs, output{from: fromCell, at: at})
			if !slices.Contains(f.order, at) {
				f.order = append(f.order, at)
			}
		}
	}
	return f
}

// noCells stand for the cells that a key keeps of a row that it tells wholly
// itself, so that such a row has a place among the key's rows, too.
var noCells = []value.ID{0}

// kept returns what a key keeps of a result row.
func (f *family) kept(table *relation.Relation, row relation.RowID) []value.ID {
	if cells := table.Row(row)[f.parameters:]; len(cells) > 0 {
		return cells
	}
	return noCells
}

// compareKept compares what is kept of two rows of one key in the order of Rows.
func (e *Engine) compareKept(f *family, a, b []value.ID) int {
	for _, c := range f.order {
		if a[c] != b[c] {
			return e.symbols.Compare(a[c], b[c])
		}
	}
	return 0
}

// Rows appends the key's present result to dst, row after row, each as wide as
// Columns, sorted by value.Compare column by column, without duplicates. A dead
// key has no rows.
func (e *Engine) Rows(k *Key, dst []value.Value) []value.Value {
	if k.dead {
		return dst
	}
	start := e.now()
	rows := k.rows
	if k.pending != 0 {
		entered, left := e.netChange(k)
		e.present = e.merge(k.family, append(e.present[:0], rows...), entered, left)
		rows = e.present
	}
	dst = e.appendRows(k, rows, dst)
	if cap(e.present) > scratchKept {
		e.present = nil
	}
	e.spend(start)
	return dst
}

// appendRows appends kept rows of a key as they are told.
func (e *Engine) appendRows(k *Key, rows []value.ID, dst []value.Value) []value.Value {
	f := k.family
	for at := 0; at < len(rows); at += f.width {
		for _, o := range f.outputs {
			switch o.from {
			case fromCell:
				dst = append(dst, e.symbols.Value(rows[at+o.at]))
			case fromParameter:
				dst = append(dst, k.values[o.at])
			case fromConstant:
				dst = append(dst, e.symbols.Value(o.cell))
			}
		}
	}
	return dst
}

// appendResult appends result rows of a key as they are told.
func (e *Engine) appendResult(k *Key, rows []relation.RowID, dst []value.Value) []value.Value {
	table := e.network.Result(k.family.number)
	for _, row := range rows {
		dst = e.appendRows(k, k.family.kept(table, row), dst)
	}
	return dst
}

// sortResult sorts result rows of one key.
func (e *Engine) sortResult(f *family, rows []relation.RowID) {
	if len(rows) < 2 {
		return
	}
	table := e.network.Result(f.number)
	slices.SortFunc(rows, func(a, b relation.RowID) int {
		return e.compareKept(f, f.kept(table, a), f.kept(table, b))
	})
}

// merge takes the rows that left out of kept rows and puts in those that entered.
// All are sorted. It changes rows and returns them.
func (e *Engine) merge(f *family, rows []value.ID, entered, left []relation.RowID) []value.ID {
	table, w := e.network.Result(f.number), f.width
	read, write := 0, 0
	for _, row := range left {
		at := read + e.position(f, rows[read:], f.kept(table, row))
		write += copy(rows[write:], rows[read:at])
		read = at + w
	}
	write += copy(rows[write:], rows[read:])
	rows = rows[:write]
	for _, row := range entered {
		rows = append(rows, f.kept(table, row)...) // for the room
	}
	end := len(rows)
	for i := len(entered) - 1; i >= 0; i-- {
		kept := f.kept(table, entered[i])
		at := e.position(f, rows[:write], kept)
		end -= copy(rows[end-(write-at):end], rows[at:write]) + w
		copy(rows[end:], kept)
		write = at
	}
	return rows
}

// position returns where a row stands or belongs among sorted kept rows.
func (e *Engine) position(f *family, rows, row []value.ID) int {
	low, high := 0, len(rows)/f.width
	for low < high {
		middle := int(uint(low+high) / 2)
		if e.compareKept(f, rows[middle*f.width:], row) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low * f.width
}
