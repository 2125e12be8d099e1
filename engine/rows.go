package engine

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// family is a view with its watched keys.
type family struct {
	view    *analysis.View
	parts   []part // as in the view; they do not move
	watched int
}

// part is one query of a view with its results at all watched keys.
type part struct {
	view       string
	goal       int // of the network
	index      int // in the view
	parameters int
	units      []*unit // by the row of their demand
	// width is the number of cells that a unit keeps of each of its rows: those
	// that the key itself does not tell.
	width   int
	outputs []output
	order   []int // the kept cells in the order in which they sort rows
	// doubt is what row errors do to the rows, as it was told last, and cause a clause
	// that has them.
	doubt Doubt
	cause *RuleErrors
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

// addFamily makes the family of the view whose goals come next.
func (n *next) addFamily(view *analysis.View) *family {
	f := &family{view: view, parts: make([]part, len(view.Parts))}
	for i := range f.parts {
		p := &f.parts[i]
		p.view, p.goal, p.index, p.parameters = view.Name, len(n.goals), i, len(view.Parameters)
		p.width = max(n.network.Result(p.goal).Arity()-p.parameters, 1)
		for _, o := range n.network.Outputs(p.goal) {
			p.addOutput(o)
		}
		n.goals = append(n.goals, p)
	}
	n.families = append(n.families, f)
	return f
}

func (p *part) addOutput(o dataflow.Source) {
	switch at := o.Column - p.parameters; {
	case o.Column < 0:
		p.outputs = append(p.outputs, output{from: fromConstant, cell: o.Constant})
	case at < 0:
		p.outputs = append(p.outputs, output{from: fromParameter, at: o.Column})
	default:
		p.outputs = append(p.outputs, output{from: fromCell, at: at})
		if !slices.Contains(p.order, at) {
			p.order = append(p.order, at)
		}
	}
}

// noCells stand for the cells that a key keeps of a row that it tells wholly
// itself, so that such a row has a place among the key's rows, too.
var noCells = []value.ID{0}

// kept returns what a key keeps of a result row.
func (p *part) kept(table *relation.Relation, row relation.RowID) []value.ID {
	if cells := table.Row(row)[p.parameters:]; len(cells) > 0 {
		return cells
	}
	return noCells
}

// compareKept compares what is kept of two rows of one key in the order of Rows.
func (e *Engine) compareKept(p *part, a, b []value.ID) int {
	for _, c := range p.order {
		if a[c] != b[c] {
			return e.symbols.Compare(a[c], b[c])
		}
	}
	return 0
}

// Rows appends the present result of a part of a key's view, or the last good one, to
// dst, row after row, each as wide as Columns, sorted by value.Compare column by column,
// without duplicates. A dead key has no rows.
func (e *Engine) Rows(k *Key, part int, dst []value.Value) []value.Value {
	if k.dead {
		return dst
	}
	start := e.now()
	u := k.unitOf(part)
	rows := u.rows
	if u.part.doubt == Stale && u.baseline != nil {
		dst = e.appendCells(dst, *u.baseline)
		e.spend(start)
		return dst
	}
	if u.pending != 0 && u.part.doubt != Stale {
		entered, left := e.netChange(u)
		e.present = e.merge(u.part, append(e.present[:0], rows...), entered, left)
		rows = e.present
	}
	dst = e.appendRows(u, rows, dst)
	if cap(e.present) > scratchKept {
		e.present = nil
	}
	e.spend(start)
	return dst
}

// appendRows appends kept rows of a unit as they are told.
func (e *Engine) appendRows(u *unit, rows []value.ID, dst []value.Value) []value.Value {
	p := u.part
	for at := 0; at < len(rows); at += p.width {
		for _, o := range p.outputs {
			switch o.from {
			case fromCell:
				dst = append(dst, e.symbols.Value(rows[at+o.at]))
			case fromParameter:
				dst = append(dst, u.key.values[o.at])
			case fromConstant:
				dst = append(dst, e.symbols.Value(o.cell))
			}
		}
	}
	return dst
}

// appendResult appends result rows of a unit as they are told.
func (e *Engine) appendResult(u *unit, rows []relation.RowID, dst []value.Value) []value.Value {
	table := e.network.Result(u.part.goal)
	for _, row := range rows {
		dst = e.appendRows(u, u.part.kept(table, row), dst)
	}
	return dst
}

// sortResult sorts result rows of one key.
func (e *Engine) sortResult(p *part, rows []relation.RowID) {
	if len(rows) < 2 {
		return
	}
	table := e.network.Result(p.goal)
	slices.SortFunc(rows, func(a, b relation.RowID) int {
		return e.compareKept(p, p.kept(table, a), p.kept(table, b))
	})
}

// merge takes the rows that left out of kept rows and puts in those that entered.
// All are sorted. It changes rows and returns them.
func (e *Engine) merge(p *part, rows []value.ID, entered, left []relation.RowID) []value.ID {
	table, w := e.network.Result(p.goal), p.width
	read, write := 0, 0
	for _, row := range left {
		at := read + e.position(p, rows[read:], p.kept(table, row))
		write += copy(rows[write:], rows[read:at])
		read = at + w
	}
	write += copy(rows[write:], rows[read:])
	rows = rows[:write]
	for _, row := range entered {
		rows = append(rows, p.kept(table, row)...) // for the room
	}
	end := len(rows)
	for i := len(entered) - 1; i >= 0; i-- {
		kept := p.kept(table, entered[i])
		at := e.position(p, rows[:write], kept)
		end -= copy(rows[end-(write-at):end], rows[at:write]) + w
		copy(rows[end:], kept)
		write = at
	}
	return rows
}

// position returns where a row stands or belongs among sorted kept rows.
func (e *Engine) position(p *part, rows, row []value.ID) int {
	low, high := 0, len(rows)/p.width
	for low < high {
		middle := int(uint(low+high) / 2)
		if e.compareKept(p, rows[middle*p.width:], row) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low * p.width
}
