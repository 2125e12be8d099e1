//go:build invariants

package dataflow

import "github.com/heddle-live/heddle/engine/relation"

// invariantRowsMax is the size of a table above which it is not looked at: the
// check of a commit is linear in the rows.
const invariantRowsMax = 4096

// checkInvariants panics unless every row is settled: inputs visible if wanted,
// counted rows if derived, recursive rows under a rank that their proof respects.
func (n *Network) checkInvariants() {
	if n.err != nil {
		return
	}
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
	}
	for _, c := range n.components {
		if len(c.suspects)+len(c.candidates)+len(c.dead) > 0 || c.queued {
			panic("dataflow: a component is not settled after Settle")
		}
	}
}

func (n *Network) checkRow(p *predicate, id relation.RowID) {
	flags := p.table.Flags(id)
	if flags&(queued|unproven|fallen) != 0 {
		panic("dataflow: a row is not settled after Settle")
	}
	switch {
	case p.kind.isInput():
		if flags&wanted == 0 {
			panic("dataflow: an input row is visible that nobody wants")
		}
	case p.table.Counter(id) == 0:
		panic("dataflow: a visible row has no derivation or rank")
	case p.component.recursive && !n.transient:
		if !n.proved(place{p, id}, p.table.Counter(id)) {
			panic("dataflow: a recursive row has no proof by older rows")
		}
	}
}
