package dataflow

import (
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// window makes only some of a predicate's derived rows visible: in each group, which
// is told by some of the columns, those of the ranks from first up to but without
// last in a certain order. Rows that are derived are flagged ordered and stand in
// their group's sequence; those of them that are in the window are flagged wanted.
type window struct {
	group       []int // columns
	first, last int
	by          []relation.Sort
	groups      *relation.Relation // its only counter holds the root of the sequence
	order       *relation.Order
	key         []value.ID // scratch
	plan        *plan      // the running one meanwhile, for its clause
}

// settleWindow brings the visibility of rows in line with the queued rows' counts.
// Each row that comes or goes moves at most one row into the window and one out of
// it; these join the queue, and rows are shown and hidden when all have moved.
func (n *Network) settleWindow(p *predicate) {
	n.plan = p.window.plan
	for i, end := 0, len(p.queue); i < end; i++ {
		id := p.queue[i]
		isDerived := p.table.Counter(id, 0) != 0
		switch isOrdered := p.table.Flags(id)&ordered != 0; {
		case isDerived && !isOrdered:
			n.enterOrder(p, id)
		case !isDerived && isOrdered:
			n.leaveOrder(p, id)
		}
		if n.stop {
			return // the queue is as it was, and the rows looked at need nothing more
		}
	}
	n.settleCounted(p)
}

func (n *Network) enterOrder(p *predicate, id relation.RowID) {
	w, table := p.window, p.table
	n.count(orderSteps)
	table.SetFlags(id, ordered)
	group, _ := w.groups.Add(w.keyOf(table, id))
	root, rank := w.order.Insert(relation.Root(w.groups.Counter(group, 0)), id)
	w.groups.SetCounter(group, 0, uint64(root))
	if rank >= w.last {
		return
	}
	length := w.order.Len(root)
	if rank >= w.first {
		n.frame(p, id, true)
	} else if length > w.first {
		n.frame(p, w.order.At(root, w.first), true)
	}
	if length > w.last {
		n.frame(p, w.order.At(root, w.last), false)
	}
}

func (n *Network) leaveOrder(p *predicate, id relation.RowID) {
	w, table := p.window, p.table
	n.count(orderSteps)
	table.ClearFlags(id, ordered)
	group, ok := w.groups.Find(w.keyOf(table, id))
	if !ok {
		panic("dataflow: a row leaves a group that does not exist")
	}
	root, rank := w.order.Delete(relation.Root(w.groups.Counter(group, 0)), id)
	w.groups.SetCounter(group, 0, uint64(root))
	if root == 0 {
		w.groups.Drop(group)
	}
	if rank >= w.last {
		return
	}
	length := w.order.Len(root)
	if rank >= w.first {
		n.frame(p, id, false)
	} else if length >= w.first {
		n.frame(p, w.order.At(root, w.first-1), false)
	}
	if length >= w.last && planted != PlantedWindow {
		n.frame(p, w.order.At(root, w.last-1), true)
	}
}

// keyOf returns the cells of a row that tell its group.
func (w *window) keyOf(table *relation.Relation, id relation.RowID) []value.ID {
	row := table.Row(id)
	for i, c := range w.group {
		w.key[i] = row[c]
	}
	return w.key
}

// frame takes a row into the window, or out of it.
func (n *Network) frame(p *predicate, id relation.RowID, in bool) {
	if in {
		p.table.SetFlags(id, wanted)
	} else {
		p.table.ClearFlags(id, wanted)
	}
	n.enqueue(p, id)
}
