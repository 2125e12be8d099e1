package dataflow

import (
	"github.com/heddle-live/heddle/engine/analysis"
)

// A network of a new program takes over what is derived already. The new program is
// rewritten as a whole, as if there was none before, and then compared with the old
// one as it was rewritten, block by block: the rules of a goal or of a pattern. What
// of a block's predicates means the same in both keeps its rows, with their counts,
// ranks, groups and flags; only they move, rules and plans are always new. So all that
// the rewriting decides on is looked at without a list of what that is.
//
// Predicates that are not taken over begin empty. A rule that reads one of them has
// derived nothing yet, whatever it derives, so that new blocks may ask old ones for
// more. The reverse holds of rules that are gone: those that read an empty predicate
// have derived nothing.

// Replaces tells which network another one takes over from.
type Replaces struct {
	// Network is settled. It must not be used while there is another that has taken
	// over from it; see TakeOver and GiveBack.
	Network *Network
	// Goals holds for each goal the one whose demands it inherits, or -1.
	Goals []int
	// Views holds a number for each goal; those of equal number are taken over
	// together or not at all.
	Views []int
}

// block names a set of predicates that are taken over together, and of rules.
type block struct {
	kind    blockKind
	goal    int
	pattern pattern
	failure failureKey
}

type blockKind uint8

const (
	_            blockKind = iota // base relations are in none
	goalBlock                     // a goal's root and result, and what is between
	patternBlock                  // a pattern's demand and rows, and what is between
	failureBlock                  // what fails of one stage of a clause, in all patterns
)

func goalBlockOf(goal int) block { return block{kind: goalBlock, goal: goal} }

// takeover decides what a network takes over.
type takeover struct {
	old   *Network
	next  *transformer
	goals map[int]int // of next, by the number in old
	views []int
	from  []analysis.RelationID // relations of next, by the number in old, or -1
	// same holds predicates of next by those of old that have their place; keeps the
	// reverse.
	same, keeps map[*predicate]*predicate
	blocks      map[block]*contents // of next
	oldBlocks   map[block]*contents // of old, named as in next
	kept        map[block]bool
	dropped     []block // that were kept, and whose dependents have still to be dropped
	// users are the blocks that cannot be kept without a predicate, and feeds what a
	// block of old has derived into.
	users map[*predicate][]block
	feeds map[block][]*predicate
}

// contents are the predicates and rules of a block, in order.
type contents struct {
	predicates []*predicate
	rules      []*rule
}

// takeOver lets predicates of next take over the rows of those that mean the same in
// another network.
func (t *transformer) takeOver(r *Replaces) {
	a := &takeover{
		old: r.Network, next: t, views: r.Views, goals: make(map[int]int),
		same:   make(map[*predicate]*predicate),
		keeps:  make(map[*predicate]*predicate),
		blocks: make(map[block]*contents), oldBlocks: make(map[block]*contents),
		kept:  make(map[block]bool),
		users: make(map[*predicate][]block), feeds: make(map[block][]*predicate),
	}
	for goal, from := range r.Goals {
		if from >= 0 {
			a.goals[from] = goal
		}
	}
	a.match()
	a.link()
	for b := range a.oldBlocks {
		if !a.kept[b] {
			a.dropped = append(a.dropped, b)
		}
	}
	a.spread()
	for a.dropUnfed() {
		a.spread()
	}
	for p, from := range a.keeps {
		if p.block.kind != 0 && a.kept[p.block] {
			p.from, p.isLent = from, true
		}
	}
}

// link notes what depends on what.
func (a *takeover) link() {
	use := func(b block, p *predicate) {
		if p != nil && p.block != b {
			a.users[p] = append(a.users[p], b)
		}
	}
	views := make(map[int]*predicate)
	for _, r := range a.next.rules {
		use(r.block, r.head.predicate)
		use(r.block, r.failure.predicate)
		for _, atom := range r.body {
			use(r.block, atom.predicate)
		}
	}
	for _, p := range a.next.predicates {
		if g := p.aggregation; g != nil {
			use(p.block, g.output.predicate)
			use(p.block, g.failed.predicate)
		}
		if p.kind == root {
			view := a.views[p.goal]
			if other := views[view]; other != nil {
				use(p.block, other)
				use(other.block, p)
			}
			views[view] = p
		}
	}
	a.linkComponents(use)
	for b, c := range a.oldBlocks {
		for _, r := range c.rules {
			if !isIdle(r) {
				a.feed(b, r.head.predicate)
				a.feed(b, r.failure.predicate)
			}
		}
		for _, p := range c.predicates {
			if g := p.aggregation; g != nil && liveRows(p.table) > 0 {
				a.feed(b, g.output.predicate)
				a.feed(b, g.failed.predicate)
			}
		}
	}
}

// linkComponents ties recursive components together, and drops those that have other
// members than before: ranks mean something in one component only.
func (a *takeover) linkComponents(use func(block, *predicate)) {
	numbers, count, self := connected(a.next.predicates, a.next.rules)
	members := make([][]*predicate, count)
	for i, p := range a.next.predicates {
		members[numbers[i]] = append(members[numbers[i]], p)
	}
	for _, list := range members {
		isRecursive := len(list) > 1 || self[list[0].number]
		var before *component
		if from := a.keeps[list[0]]; from != nil {
			before = from.component
		}
		for k, p := range list {
			if len(list) > 1 {
				other := list[(k+1)%len(list)]
				use(other.block, p)
			}
			from := a.keeps[p]
			if from == nil || p.block.kind == 0 {
				continue
			}
			old := from.component
			if old != before || old.recursive != isRecursive || len(old.members) != len(list) {
				a.drop(p.block)
			}
		}
	}
}

// isIdle reports whether a rule of a settled network has derived nothing since an
// atom of what is derived has no row.
func isIdle(r *rule) bool {
	for _, a := range r.body {
		if !a.negated && a.predicate.kind != base && a.predicate.table.Len() == 0 {
			return true
		}
	}
	return false
}

// feed notes that a block of old has derived rows of a predicate of old.
func (a *takeover) feed(b block, to *predicate) {
	if p := a.same[to]; p != nil && p.block != b {
		a.feeds[b] = append(a.feeds[b], p)
	}
}

// drop decides that a block is not kept.
func (a *takeover) drop(b block) {
	if a.kept[b] {
		a.kept[b] = false
		a.dropped = append(a.dropped, b)
	}
}

// spread drops what cannot be kept without what is dropped.
func (a *takeover) spread() {
	for len(a.dropped) > 0 {
		b := a.dropped[len(a.dropped)-1]
		a.dropped = a.dropped[:len(a.dropped)-1]
		if c := a.blocks[b]; c != nil {
			for _, p := range c.predicates {
				for _, user := range a.users[p] {
					a.drop(user)
				}
			}
		}
		for _, p := range a.feeds[b] {
			a.drop(p.block)
		}
	}
}

// dropUnfed looks for new rules whose body may hold before anything new is asked, so
// that what they derive would be missing. It drops what they derive, or everything if
// that is new, and reports whether it dropped something.
func (a *takeover) dropUnfed() bool {
	dropped := false
	for _, r := range a.next.rules {
		if a.kept[r.block] || a.startsEmpty(r) {
			continue
		}
		if a.kept[r.head.predicate.block] {
			a.drop(r.head.predicate.block)
			dropped = true
			continue
		}
		clear(a.kept)
		return false
	}
	return dropped
}

func (a *takeover) startsEmpty(r *rule) bool {
	for _, atom := range r.body {
		if b := atom.predicate.block; !atom.negated && b.kind != 0 && !a.kept[b] {
			return true
		}
	}
	return false
}

// adopt takes over the rows of a predicate of another network, and all that belongs
// to them.
func (n *Network) adopt(p *predicate) {
	from := p.from
	p.table = from.table
	if w := p.window; w != nil {
		w.key, w.groups, w.order = from.window.key, from.window.groups, from.window.order
	}
	rows := liveRows(p.table)
	if a := p.aggregation; a != nil {
		a.floats = from.aggregation.floats
		for i, d := range a.values {
			d.table, d.order = from.aggregation.values[i].table, from.aggregation.values[i].order
			rows += liveRows(d.table)
		}
	}
	p.component.clock = max(p.component.clock, from.component.clock)
	if !p.kind.isInput() {
		n.rows += uint64(rows)
	}
	if p.kind == failure {
		n.failing += p.table.Len()
	}
}

// Keeps reports whether a goal has taken over the demands and results of the goal of
// another network, with their rows.
func (n *Network) Keeps(goal int) bool { return n.goals[goal].result.from != nil }

// Made returns how many derivations have come or gone since New.
func (n *Network) Made() uint64 { return n.made }

// TakeOver ends the other network, which may be abandoned then.
func (n *Network) TakeOver() {
	n.Forget()
	for _, p := range n.predicates {
		if p.from != nil {
			p.from.isLent, p.isLent = true, false
			p.from = nil
		}
	}
}

// GiveBack returns what was taken over to the other network as it was, and all that
// is left to be done with this one is to abandon it.
func (n *Network) GiveBack() {
	if n.hasFed() {
		n.Rollback()
	}
	for _, p := range n.predicates {
		if p.from != nil {
			c := p.from.component
			c.clock = max(c.clock, p.component.clock)
		}
	}
}

// hasFed reports whether new rules may have derived something into what was taken
// over.
func (n *Network) hasFed() bool {
	for _, r := range n.rules {
		from := r.head.predicate.from
		if from == nil && r.failure.predicate != nil {
			from = r.failure.predicate.from
		}
		if from != nil && !n.isTaken(r.block) {
			return true
		}
	}
	for _, p := range n.predicates {
		if a := p.aggregation; a != nil && p.from == nil && a.failed.predicate.from != nil {
			return true
		}
	}
	return false
}

func (n *Network) isTaken(b block) bool {
	switch b.kind {
	case goalBlock:
		return n.goals[b.goal].root.from != nil
	case patternBlock:
		return n.patterns[b.pattern].demand.from != nil
	default:
		return false
	}
}
