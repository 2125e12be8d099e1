//go:build invariants

package dataflow

import "github.com/heddle-live/heddle/engine/relation"

// recounting tells whether derivations are counted again after each Settle.
const recounting = true

// invariantRowsMax is the size of a table above which it is not looked at: the
// check of a commit is linear in the rows.
const invariantRowsMax = 4096

// checkInvariants panics unless every row is settled: inputs visible if wanted,
// derived rows with as many derivations as they count.
func (n *Network) checkInvariants() {
	if n.err != nil {
		return
	}
	n.liftLimits() // they are for the Settle, not for this
	n.checkRows()
	for _, p := range n.predicates {
		if p.table.Made() > invariantRowsMax || n.transient && p.kind == base {
			continue
		}
		if len(p.queue) > 0 {
			panic("dataflow: a queue is not empty after Settle")
		}
		for id, ok := p.table.NextVisible(0); ok; id, ok = p.table.NextVisible(id + 1) {
			n.checkRow(p, id)
		}
		n.checkAggregates(p)
	}
	for _, c := range n.components {
		if len(c.suspects)+len(c.candidates)+len(c.dead) > 0 || c.queued {
			panic("dataflow: a component is not settled after Settle")
		}
	}
}

// checkRows panics unless the derived rows are as many as are counted.
func (n *Network) checkRows() {
	rows := 0
	for _, p := range n.predicates {
		if p.kind.isInput() {
			continue
		}
		rows += liveRows(p.table)
		if a := p.aggregation; a != nil {
			for _, d := range a.values {
				rows += liveRows(d.table)
			}
		}
	}
	if uint64(rows) != n.rows {
		panic("dataflow: there are not as many derived rows as are counted")
	}
}

func (n *Network) checkRow(p *predicate, id relation.RowID) {
	flags := p.table.Flags(id)
	if flags&(queued|fallen) != 0 {
		panic("dataflow: a row is not settled after Settle")
	}
	if p.kind.isInput() {
		if flags&wanted == 0 {
			panic("dataflow: an input row is visible that nobody wants")
		}
		return
	}
	s := support{all: p.table.Counter(id, 0), founded: p.table.Counter(id, 0)}
	if p.component.recursive {
		s = loadSupport(p.table, id)
	}
	if s.founded == 0 {
		panic("dataflow: a visible row has no founded derivation")
	}
	if n.transient {
		return // its base tables lack the indexes to look from the head
	}
	if n.derivations(p, id, s.rank) != s {
		panic("dataflow: a row has not as many derivations as it counts")
	}
}

// recounter counts the derivations that a plan reaches, while it is on: those of
// heads or those of failures, whichever its plans start from.
type recounter struct {
	support
	on   bool
	from int
}

// takes reports whether the present derivation is not to be made, and counts it if
// it is of the kind that is counted.
func (r *recounter) takes(n *Network, from int) bool {
	if r.on && r.from == from {
		r.all++
		if from == fromFailure || n.isFounded(r.rank) {
			r.founded++
		}
	}
	return r.on
}

// derivations counts the derivations of a row, by plans that start from it.
func (n *Network) derivations(p *predicate, id relation.RowID, rank uint64) support {
	n.recount = recounter{support: support{rank: rank}, on: true, from: fromHead}
	if p.kind == failure {
		n.recount.from = fromFailure
	}
	for _, pl := range p.proofs {
		if n.begin(pl, p.table.Row(id)) {
			n.run(0)
		}
	}
	n.recount.on = false
	emitted := n.emissions(p, id)
	n.recount.all += emitted
	n.recount.founded += emitted
	return n.recount.support
}
