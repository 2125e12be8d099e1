//go:build invariants

package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// checkAggregates panics unless the groups of an aggregation or window are settled.
func (n *Network) checkAggregates(p *predicate) {
	if p.aggregation != nil {
		n.checkGroups(p)
	}
	if p.window != nil {
		n.checkWindow(p)
	}
}

// checkGroups panics unless each group has as many bindings as it counts, and keeps
// its values in order.
func (n *Network) checkGroups(p *predicate) {
	for i := range p.table.Made() {
		id := relation.RowID(i)
		bindings := p.table.Counter(id, bindingsCounter)
		if bindings == 0 {
			continue // a row that was dropped
		}
		if p.table.Flags(id) != 0 || p.table.Counter(id, stateCounter) == 0 {
			panic("dataflow: a group is not settled after Settle")
		}
		if !n.transient && n.derivations(p, id, 0).all != bindings {
			panic("dataflow: a group has not as many bindings as it counts")
		}
		for _, d := range p.aggregation.values {
			d.check(p.table, id)
		}
	}
}

func (d *distinct) check(groups *relation.Relation, group relation.RowID) {
	if d.order == nil {
		return
	}
	root, number := d.root(groups, group), int(d.number(groups, group))
	if d.order.Len(root) != number {
		panic("dataflow: a group has not as many values as it counts")
	}
	for rank := range number {
		id := d.order.At(root, rank)
		if d.table.Row(id)[0] != value.ID(group) || d.table.Counter(id, 0) == 0 {
			panic("dataflow: a group has a value of another one, or of no binding")
		}
	}
}

// checkWindow panics unless just the derived rows stand in order, and just those in
// the window are visible.
func (n *Network) checkWindow(p *predicate) {
	rows, inOrder := 0, 0
	for i := range p.table.Made() {
		id := relation.RowID(i)
		isDerived := p.table.Counter(id, 0) != 0
		if isDerived != (p.table.Flags(id)&ordered != 0) {
			panic("dataflow: a row of a window is in order but not derived, or the reverse")
		}
		if isDerived {
			rows++
		}
	}
	w := p.window
	for i := range w.groups.Made() {
		root := relation.Root(w.groups.Counter(relation.RowID(i), 0))
		length := w.order.Len(root)
		inOrder += length
		for rank := range length {
			id := w.order.At(root, rank)
			if p.table.IsVisible(id) != (rank >= w.first && rank < w.last) {
				panic("dataflow: a row is visible outside of the window, or not inside")
			}
			if !slices.Equal(w.keyOf(p.table, id), w.groups.Row(relation.RowID(i))) {
				panic("dataflow: a row stands in another group's order")
			}
		}
	}
	if rows != inOrder {
		panic("dataflow: a row stands in no order")
	}
}

// emissions counts the groups that derive a row.
func (n *Network) emissions(p *predicate, id relation.RowID) uint64 {
	count := uint64(0)
	for _, source := range n.predicates {
		a := source.aggregation
		if a == nil || a.output.predicate != p && a.failed.predicate != p {
			continue
		}
		for i := range source.table.Made() {
			state := source.table.Counter(relation.RowID(i), stateCounter)
			isFailed := state&stateFailed != 0
			to := a.output.predicate
			if isFailed {
				to = a.failed.predicate
			}
			if state != 0 && to == p && relation.RowID(state&stateRow-1) == id {
				count++
			}
		}
	}
	return count
}
