package dataflow

import "github.com/heddle-live/heddle/engine/relation"

// support is what holds a row of a recursive component. Its two numbers of
// derivations cost about as much to keep as one, and spare every search for
// another derivation when one goes: in a large posting list such a search costs
// more than all that the commit does otherwise.
type support struct {
	// rank is the component's clock when the row entered.
	rank uint64
	// all counts the derivations whose premises are all visible. While the row is
	// visible, founded counts those among them whose premises inside the component
	// are all older than the row: a row with one of these does not hold itself up
	// by way of others.
	all, founded uint64
}

// A support stands in two counters, in fields of 48, 40 and 40 bits: no engine
// lives to see more rows enter or derivations made.
const (
	supportCounters = 2
	countBits       = 40
	countMax        = 1<<countBits - 1
	rankLowBits     = 64 - countBits
)

func loadSupport(table *relation.Relation, id relation.RowID) support {
	a, b := table.Counter(id, 0), table.Counter(id, 1)
	return support{
		rank: a>>countBits | b>>countBits<<rankLowBits,
		all:  a & countMax, founded: b & countMax,
	}
}

func storeSupport(table *relation.Relation, id relation.RowID, s support) {
	table.SetCounter(id, 0, s.all|s.rank<<countBits)
	table.SetCounter(id, 1, s.founded|s.rank>>rankLowBits<<countBits)
}

func rankOf(table *relation.Relation, id relation.RowID) uint64 {
	return loadSupport(table, id).rank
}

// changeRecursive counts a derivation, or the loss of one, of a row in a recursive
// component. An invisible row that gains one becomes a candidate; a visible one that
// loses its last founded one becomes a suspect.
func (n *Network) changeRecursive(head *predicate, id relation.RowID) {
	c := head.component
	s := loadSupport(head.table, id)
	if n.sign > 0 {
		s.all++
		switch flags := head.table.Flags(id); {
		case flags&(relation.Visible|fallen) == relation.Visible:
			if n.isFounded(s.rank) {
				s.founded++
			}
		case flags&queued == 0:
			head.table.SetFlags(id, queued)
			c.candidates = append(c.candidates, place{head, id})
			n.schedule(c)
		}
		storeSupport(head.table, id, s)
		return
	}
	if s.all == 0 {
		panic("dataflow: a derivation goes that was never counted")
	}
	s.all--
	if isStanding(head.table, id) && n.isFounded(s.rank) {
		if s.founded == 0 {
			panic("dataflow: a founded derivation goes that was never counted")
		}
		if s.founded--; s.founded == 0 {
			c.suspects = append(c.suspects, place{head, id})
			n.schedule(c)
		}
	}
	storeSupport(head.table, id, s)
}

// isFounded reports whether all premises of the running plan's present derivation
// that are inside the head's component are older than rank. Ranks stay while rows
// are visible, so the answer is the same when the derivation comes and goes.
func (n *Network) isFounded(rank uint64) bool {
	pl := n.plan
	if planted == PlantedUnfounded {
		return true
	}
	if pl.inside && rankOf(n.started.predicate.table, n.started.row) >= rank {
		return false
	}
	for _, i := range pl.insiders {
		if s := &pl.steps[i]; rankOf(s.predicate.table, s.row) >= rank {
			return false
		}
	}
	return true
}

// isStanding reports whether a row is there for the rules of its own component. What
// has fallen and may come back stays visible to all others, and in the indexes.
func isStanding(table *relation.Relation, id relation.RowID) bool {
	return table.Flags(id)&(relation.Visible|fallen) == relation.Visible
}

// settleRecursive brings a recursive component in line with everything below it,
// which is settled. The invariant before and after: each visible row has a founded
// derivation, and so by induction a proof from outside the component.
//
// When the network halts, the suspects, the dead and the candidates are those not
// dealt with, and settling may go on from there.
func (n *Network) settleRecursive(c *component) {
	n.dropSuspects(c)
	for _, d := range c.dead {
		if n.stop {
			return
		}
		// What fell may stand on younger rows that did not.
		if d.predicate.table.Flags(d.row)&fallen != 0 {
			n.enterIfDerived(c, d)
		}
	}
	n.tryCandidates(c)
	n.hideFallen(c)
}

// hideFallen hides the rows that fell and did not come back, one at a time: until then
// they are there for the rules of other components.
func (n *Network) hideFallen(c *component) {
	done := 0
	for ; done < len(c.dead) && !n.stop; done++ {
		d := c.dead[done]
		if d.predicate.table.Flags(d.row)&fallen == 0 {
			continue // it came back
		}
		if n.hide(d.predicate, d.row, outside); n.stop {
			break
		}
		d.predicate.table.ClearFlags(d.row, fallen)
		n.dropIfIdle(d.predicate, d.row)
	}
	c.dead = rest(c.dead, done)
}

// rest returns what is left of a list whose first done places are dealt with.
func rest(list []place, done int) []place {
	if done == len(list) && cap(list) > queueKept {
		return nil
	}
	return list[:copy(list, list[done:])]
}

// dropSuspects lets every suspect fall that has got no founded derivation again. The
// rows that lose by it may become suspects in turn.
func (n *Network) dropSuspects(c *component) {
	done := 0
	for ; done < len(c.suspects); done++ {
		s := c.suspects[done]
		table := s.predicate.table
		if !isStanding(table, s.row) || loadSupport(table, s.row).founded > 0 {
			continue
		}
		if n.readAll(s.predicate, s.row, -1, inside); n.stop {
			break
		}
		table.SetFlags(s.row, fallen)
		c.dead = append(c.dead, s)
	}
	c.suspects = rest(c.suspects, done)
}

// tryCandidates lets those candidates enter that still have a derivation. The rows
// that gain by it may become candidates in turn.
func (n *Network) tryCandidates(c *component) {
	if n.transient {
		n.dropUnderived(c)
	}
	done, round := 0, 0
	for ; done < len(c.candidates) && !n.stop; done++ {
		if done == round && n.transient {
			round = len(c.candidates)
			c.clock++
		}
		p := c.candidates[done]
		table := p.predicate.table
		if !isStanding(table, p.row) {
			if n.enterIfDerived(c, p); n.stop {
				break
			}
		}
		table.ClearFlags(p.row, queued)
		n.dropIfIdle(p.predicate, p.row)
	}
	c.candidates = rest(c.candidates, done)
}

// dropUnderived forgets the candidates whose derivations have gone again, since what
// they negate was settled after their other premises. They would enter in the round
// in which they gain another.
func (n *Network) dropUnderived(c *component) {
	kept := c.candidates[:0]
	for _, p := range c.candidates {
		if loadSupport(p.predicate.table, p.row).all > 0 {
			kept = append(kept, p)
			continue
		}
		p.predicate.table.ClearFlags(p.row, queued)
		n.dropIfIdle(p.predicate, p.row)
	}
	c.candidates = kept
}

// enterIfDerived makes a row that is invisible or has fallen stand if it has a
// derivation, under a new rank: it is younger than all its premises.
func (n *Network) enterIfDerived(c *component, p place) {
	s := loadSupport(p.predicate.table, p.row)
	if s.all == 0 && planted != PlantedStaleCandidate {
		return
	}
	if !n.transient { // else all rows of a round share a rank
		c.clock++
	}
	s.rank, s.founded = c.clock, s.all
	storeSupport(p.predicate.table, p.row, s)
	table := p.predicate.table
	if table.Flags(p.row)&fallen == 0 {
		n.show(p.predicate, p.row)
		return
	}
	table.ClearFlags(p.row, fallen)
	if n.readAll(p.predicate, p.row, 1, inside); n.stop {
		table.SetFlags(p.row, fallen)
		return
	}
	n.returned++
}
