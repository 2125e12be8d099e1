package dataflow

import "github.com/heddle-live/heddle/engine/relation"

// deriveRecursive receives a derivation, or the loss of one, of a row in a
// recursive component. Such rows are not counted: a row that gains a derivation
// becomes a candidate, one that loses one a suspect.
func (n *Network) deriveRecursive() {
	head := n.plan.head
	c := head.component
	if n.sign > 0 {
		id, _ := head.table.Add(n.plan.headRow)
		if head.table.Flags(id)&(relation.Visible|queued) == 0 {
			head.table.SetFlags(id, queued)
			c.candidates = append(c.candidates, place{head, id})
			n.schedule(c)
		}
		return
	}
	id, ok := head.table.Find(n.plan.headRow)
	if !ok {
		return
	}
	switch flags := head.table.Flags(id); {
	case flags&relation.Visible != 0:
	case flags&queued != 0:
		// A candidate from earlier in this commit: what it was derived from may be
		// just what goes.
		head.table.SetFlags(id, unproven)
		return
	default: // it fell already
		return
	}
	rank := head.table.Counter(id)
	// A row older than the lost premise has a proof that does not need it.
	if n.plan.inside && rank < n.started.predicate.table.Counter(n.started.row) {
		return
	}
	c.pushSuspect(suspect{place{head, id}, rank})
	n.schedule(c)
}

// settleRecursive brings a recursive component in line with everything below it,
// which is settled. The invariant before and after: each visible row has a rank
// and a proof whose premises inside the component all have smaller ranks.
func (n *Network) settleRecursive(c *component) {
	n.dropSuspects(c)
	// What fell may stand on younger rows that did not.
	for _, d := range c.dead {
		if !d.predicate.table.IsVisible(d.row) && n.proved(d, ^uint64(0)) {
			n.enter(c, d)
		}
	}
	for i := 0; i < len(c.candidates) && n.err == nil; i++ {
		n.tryCandidate(c, c.candidates[i])
	}
	if cap(c.candidates) > queueKept {
		c.candidates = nil
	}
	c.candidates = c.candidates[:0]
	for _, d := range c.dead {
		d.predicate.table.ClearFlags(d.row, fallen)
		dropIfIdle(d.predicate.table, d.row)
	}
	if cap(c.dead) > queueKept {
		c.dead = nil
	}
	c.dead = c.dead[:0]
}

// dropSuspects hides every suspect that has no proof by older rows, oldest first.
// The rows that lose by it are younger and become suspects in turn, so each row
// is judged once, after all that it may stand on.
func (n *Network) dropSuspects(c *component) {
	judged := uint64(0)
	for len(c.suspects) > 0 {
		s := c.popSuspect()
		if s.rank == judged {
			continue
		}
		judged = s.rank
		if n.proved(s.place, s.rank) {
			continue
		}
		s.predicate.table.SetFlags(s.row, fallen)
		c.dead = append(c.dead, s.place)
		n.hide(s.predicate, s.row)
	}
	if cap(c.suspects) > queueKept {
		c.suspects = nil
	}
}

// tryCandidate lets a candidate enter. Those that lost a derivation while they
// waited must prove themselves; if they can only do so later, by a row that enters
// after them, they will be derived again by that row.
func (n *Network) tryCandidate(c *component, p place) {
	table := p.predicate.table
	flags := table.Flags(p.row)
	table.ClearFlags(p.row, queued|unproven)
	if flags&relation.Visible != 0 {
		return
	}
	if flags&unproven != 0 && !n.proved(p, ^uint64(0)) {
		dropIfIdle(table, p.row)
		return
	}
	n.enter(c, p)
}

// enter makes a row visible under a new rank, younger than all its premises.
func (n *Network) enter(c *component, p place) {
	c.clock++
	p.predicate.table.SetCounter(p.row, c.clock)
	n.show(p.predicate, p.row)
}
