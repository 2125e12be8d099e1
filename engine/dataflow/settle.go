package dataflow

import (
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// queueKept is the capacity of a queue that is kept for the next commit; larger
// ones came from a bulk load.
const queueKept = 1 << 14

// Settle carries all that was inserted, deleted, demanded and withdrawn through
// the rules. It returns how many base rows entered and left, net. It fails if it
// would go past a limit or is cancelled, or with an error of Symbols; then all
// changes since the last Settle are undone. A transient network must not be used
// after that.
//
// Rows change their visibility one at a time, and with each change every plan
// that reads the row runs, so that each derivation is counted by exactly one of
// its premises: the last to enter or the first to leave. Derived rows only count
// at once; they change their own visibility when their component's turn comes,
// after everything they depend on.
func (n *Network) Settle() (inserted, deleted int, err error) {
	if n.isLimited {
		n.startMeter()
	}
	n.settleAll()
	if err := n.err; err != nil {
		if !n.transient {
			n.undo(n.trail.settled)
			n.checkInvariants()
		}
		return 0, 0, err
	}
	if n.trail.marked {
		n.trail.settled = len(n.trail.cells)
	} else {
		n.clearTrail()
	}
	n.checkInvariants()
	return n.inserted, n.deleted, nil
}

// settleAll settles component by component, until all are or the network halts. A
// component that it halts in keeps what it has still to do.
func (n *Network) settleAll() {
	n.inserted, n.deleted = 0, 0
	for len(n.work) > 0 && !n.stop {
		c := n.popWork()
		c.queued = false
		switch p := c.members[0]; {
		case c.recursive:
			n.settleRecursive(c)
		case p.aggregation != nil:
			n.settleGroups(p)
		case p.window != nil:
			n.settleWindow(p)
		default:
			n.settleCounted(p)
		}
		if n.stop {
			n.schedule(c)
		}
	}
}

// enqueue notes that the visibility of a row of a non-recursive predicate may
// have to change.
func (n *Network) enqueue(p *predicate, id relation.RowID) {
	if p.table.Flags(id)&queued != 0 {
		return
	}
	p.table.SetFlags(id, queued)
	p.queue = append(p.queue, id)
	n.schedule(p.component)
}

// schedule puts a component into the work heap.
func (n *Network) schedule(c *component) {
	if c.queued {
		return
	}
	c.queued = true
	h := append(n.work, c.number)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[up] <= h[i] {
			break
		}
		h[up], h[i] = h[i], h[up]
		i = up
	}
	n.work = h
}

func (n *Network) popWork() *component {
	h := n.work
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && h[down+1] < h[down] {
			down++
		}
		if h[i] <= h[down] {
			break
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
	n.work = h
	return n.components[top]
}

// settleCounted brings the visibility of the queued rows in line with their
// counts, or for inputs with what was asked. No plan that runs here can touch the
// predicate itself, so the queue does not grow meanwhile.
func (n *Network) settleCounted(p *predicate) {
	table := p.table
	for i, id := range p.queue {
		flags := table.Flags(id)
		present := flags&wanted != 0
		if !p.kind.isInput() && p.window == nil {
			present = table.Counter(id, 0) != 0
		}
		if planted == PlantedComesAndGoes && p.kind == base {
			present = present || flags&relation.Visible == 0
		}
		switch visible := flags&relation.Visible != 0; {
		case present && !visible:
			n.show(p, id)
		case !present && visible:
			n.hide(p, id, everywhere)
		}
		if n.pin != relation.Now {
			n.count(1)
		}
		if n.stop {
			p.queue = p.queue[:copy(p.queue, p.queue[i:])]
			return
		}
		table.ClearFlags(id, queued)
		n.dropIfIdle(p, id)
	}
	if cap(p.queue) > queueKept {
		p.queue = nil
	}
	p.queue = p.queue[:0]
}

// dropIfIdle drops a row that is invisible and that nothing waits for.
func (n *Network) dropIfIdle(p *predicate, id relation.RowID) {
	const busy = relation.Visible | wanted | queued | fallen | ordered | Held
	if p.table.Flags(id)&busy != 0 {
		return
	}
	p.table.Drop(id)
	if !p.kind.isInput() {
		n.rows--
	}
}

// show makes a row visible and runs the plans that gain by it. If the network halts
// meanwhile nothing is changed.
func (n *Network) show(p *predicate, id relation.RowID) {
	p.table.Show(id)
	if n.readAll(p, id, 1, everywhere); n.stop {
		if !n.transient {
			p.table.Hide(id)
		}
		return
	}
	n.flipped(p, id, 1)
}

// hide runs the plans of a scope that lose by a row's going, while it is still there to
// be joined with, and makes it invisible. If the network halts meanwhile nothing is
// changed.
func (n *Network) hide(p *predicate, id relation.RowID, s scope) {
	if n.readAll(p, id, -1, s); n.stop {
		return
	}
	p.table.Hide(id)
	n.flipped(p, id, -1)
}

// readAll is read, and takes back what it did if the network halts meanwhile.
func (n *Network) readAll(p *predicate, id relation.RowID, sign int, s scope) {
	made := n.made
	if n.read(p, id, sign, s); n.stop && !n.transient {
		n.takeBack(p, id, sign, s, made)
	}
}

func (n *Network) flipped(p *predicate, id relation.RowID, sign int) {
	switch p.kind {
	case base:
		if sign > 0 {
			n.inserted++
		} else {
			n.deleted++
		}
	case result:
		if n.onResult != nil {
			n.onResult(p.goal, id)
		}
	case failure:
		n.failing += sign
		n.errorsChanged = true
	}
}

// derive receives one derivation of a row, or the loss of one, from the running
// plan.
func (n *Network) derive(to *sink) {
	if n.undoing != 0 && !n.undoes() {
		return
	}
	n.count(derivationSteps)
	if n.sign > 0 {
		if n.gained >= n.gainedMax {
			n.exceed(LimitDerivations, n.limits.Derivations)
			return
		}
		n.gained++
	}
	n.made++
	for k, o := range to.from {
		to.row[k] = n.load(o)
	}
	head := to.predicate
	if n.direct.take != nil {
		n.hand(to)
		return
	}
	if head.aggregation != nil {
		n.feed(head, to.row)
		return
	}
	if n.sign > 0 {
		n.change(head, n.add(head, to.row))
		return
	}
	id, ok := head.table.Find(to.row)
	if !ok {
		panic("dataflow: a derivation goes of a row that does not exist")
	}
	n.change(head, id)
}

// change counts one derivation of a row, or the loss of one.
func (n *Network) change(head *predicate, id relation.RowID) {
	if head.component.recursive {
		n.changeRecursive(head, id)
		return
	}
	count := head.table.Counter(id, 0)
	if n.sign > 0 {
		count++
	} else {
		if count == 0 {
			panic("dataflow: a derivation goes that was never counted")
		}
		count--
	}
	head.table.SetCounter(id, 0, count)
	n.enqueue(head, id)
}

// add returns the row of a derived predicate, and makes it if there is none.
func (n *Network) add(p *predicate, row []value.ID) relation.RowID {
	id, made := p.table.Add(row)
	if made {
		if n.rows++; n.rows > n.rowsMax {
			n.exceed(LimitRows, n.limits.Rows)
		}
	}
	return id
}
