package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// aggregation makes a predicate one of an aggregating clause: what is derived of it
// are not rows but bindings, each of which changes the state of its group at once.
// The groups are the rows of the predicate's table, never visible, with their state
// in counters. When the predicate's turn comes, each group that changed takes back
// the row that it derived and derives another one, of the predicate output.
//
// A binding is the cells of its group and then the arguments of the aggregates.
type aggregation struct {
	groupColumns int
	columns      []aggregated
	cells        []value.ID // scratch, one for each column
	nonNulls     []nonNull
	sums         []sum
	values       []*distinct
	counters     int // of a group
	null         value.ID
	// from tells where the output's columns come from: a cell of the group, or
	// with ^i column i of columns.
	from   []int
	output sink
	failed sink // instead, if an aggregate has no value that its column can hold
	// plan is the running one while groups derive: it has no premises inside a
	// recursive component.
	plan   *plan
	floats *floatSums
	// isSole tells that the output may change at once; see findSole.
	isSole bool
}

// aggregated is an aggregated column. Its argument may be what others aggregate,
// too: they share its state.
type aggregated struct {
	kind analysis.AggregateKind
	// count is the counter of bindings whose argument is not null.
	count  int
	sum    int // in sums
	values int // in values
}

// Counters that every group has.
const (
	bindingsCounter = iota
	// stateCounter holds the row that the group derived last + 1, 0 for none, and
	// above it whether that is of the predicate failed.
	stateCounter
	firstFreeCounter

	stateFailed = 1 << 32
	stateRow    = stateFailed - 1
)

// nonNull counts the bindings whose cell arg is not null.
type nonNull struct{ arg, counter int }

// sum adds up the cells arg: in two counters, or in one that refers to a sum of
// floats.
type sum struct {
	arg, counter int
	isFloat      bool
}

// distinct keeps the different values of the cells arg in each group, each with the
// number of its bindings.
type distinct struct {
	arg     int
	counter int                // of the group: the root of its values, and their number above
	table   *relation.Relation // of group and value
	// order sorts the values of each group; nil if they are only counted.
	isSorted bool
	order    *relation.Order
	row      [2]value.ID // scratch
}

const distinctShift = 32

// orderSteps is what a row that goes into an order, or out of it, counts for a limited
// evaluation.
const orderSteps = 4

// inlineIntMax is where ids stop being the ints that they stand for; see value.ID.
const inlineIntMax = 1 << 31

// feed takes a binding, or the loss of one.
func (n *Network) feed(p *predicate, row []value.ID) {
	a := p.aggregation
	group := row[:a.groupColumns]
	var id relation.RowID
	if n.sign > 0 {
		id = n.add(p, group)
	} else {
		var ok bool
		if id, ok = p.table.Find(group); !ok || p.table.Counter(id, bindingsCounter) == 0 {
			panic("dataflow: a binding goes that was never counted")
		}
	}
	addCounter(p.table, id, bindingsCounter, n.sign)
	for _, c := range a.nonNulls {
		if row[c.arg] != a.null {
			addCounter(p.table, id, c.counter, n.sign)
		}
	}
	for _, s := range a.sums {
		if row[s.arg] != a.null {
			n.addNumber(p, id, s, row[s.arg])
		}
	}
	for _, d := range a.values {
		if row[d.arg] != a.null {
			n.count(orderSteps)
			n.keep(d.change(p.table, id, row[d.arg], n.sign))
		}
	}
	n.enqueue(p, id)
}

// addNumber adds a cell to a sum of a group, or takes it away.
func (n *Network) addNumber(p *predicate, id relation.RowID, s sum, cell value.ID) {
	if s.isFloat {
		ref := uint32(p.table.Counter(id, s.counter))
		ref = p.aggregation.floats.add(ref, n.symbols.Value(cell).Float(), n.sign < 0)
		p.table.SetCounter(id, s.counter, uint64(ref))
		return
	}
	x := int64(cell)
	if cell >= inlineIntMax {
		x = n.symbols.Value(cell).Int()
	}
	total := intSum{p.table.Counter(id, s.counter+1), p.table.Counter(id, s.counter)}
	total.add(x, n.sign < 0)
	p.table.SetCounter(id, s.counter, total.low)
	p.table.SetCounter(id, s.counter+1, total.high)
}

// change counts a binding of a value, or the loss of one. It returns by how much the
// number of values that are kept grows.
func (d *distinct) change(
	groups *relation.Relation, group relation.RowID, v value.ID, sign int,
) int {
	d.row = [2]value.ID{value.ID(group), v}
	var id relation.RowID
	if sign > 0 {
		id, _ = d.table.Add(d.row[:])
	} else {
		var ok bool
		if id, ok = d.table.Find(d.row[:]); !ok {
			panic("dataflow: a value goes that a group never had")
		}
	}
	count := addCounter(d.table, id, 0, sign)
	if count > 1 || count == 1 && sign < 0 {
		return 0
	}
	state := groups.Counter(group, d.counter)
	root, number := relation.Root(state), state>>distinctShift
	if d.order != nil {
		if sign > 0 {
			root, _ = d.order.Insert(root, id)
		} else {
			root, _ = d.order.Delete(root, id)
		}
	}
	if sign > 0 {
		number++
	} else {
		number--
		d.table.Drop(id)
	}
	groups.SetCounter(group, d.counter, uint64(root)|number<<distinctShift)
	return sign
}

// settleGroups brings what the groups that changed derive in line with their state.
func (n *Network) settleGroups(p *predicate) {
	for done, id := range p.queue {
		if n.stop || !n.settleGroup(p, id) {
			p.queue = p.queue[:copy(p.queue, p.queue[done:])]
			n.schedule(p.component)
			return
		}
	}
	if cap(p.queue) > queueKept {
		p.queue = nil
	}
	p.queue = p.queue[:0]
}

// settleGroup returns false if the network halted before anything was done.
func (n *Network) settleGroup(p *predicate, id relation.RowID) bool {
	a, table := p.aggregation, p.table
	n.plan = a.plan
	isEmpty := table.Counter(id, bindingsCounter) == 0
	next, isFailed := &a.output, uint64(0)
	if !isEmpty && !n.aggregate(p, id) {
		next, isFailed = &a.failed, stateFailed
		copy(next.row, table.Row(id))
	}
	if n.transient {
		n.count(derivationSteps)
	}
	if n.stop {
		return false
	}
	table.ClearFlags(id, queued)
	if state := table.Counter(id, stateCounter); state != 0 {
		old, row := a.output.predicate, relation.RowID(state&stateRow-1)
		if state&stateFailed != 0 {
			old = a.failed.predicate
		}
		if !isEmpty && old == next.predicate && slices.Equal(old.table.Row(row), next.row) {
			return true
		}
		if !isEmpty || planted != PlantedEmptyGroup {
			n.outdate(a, old, row)
		}
	}
	if isEmpty {
		n.freeGroup(p, id)
		return true
	}
	row := n.add(next.predicate, next.row)
	if a.isSole && isFailed == 0 && !n.stop {
		next.predicate.table.SetCounter(row, 0, 1)
		n.show(next.predicate, row)
	} else {
		n.sign = 1
		n.change(next.predicate, row)
	}
	table.SetCounter(id, stateCounter, uint64(row)+1|isFailed)
	return true
}

// outdate takes back the row that a group derived last.
func (n *Network) outdate(a *aggregation, p *predicate, row relation.RowID) {
	if !a.isSole || p != a.output.predicate || !p.table.IsVisible(row) {
		n.sign = -1
		n.change(p, row)
		return
	}
	p.table.SetCounter(row, 0, 0)
	n.hide(p, row, everywhere)
	n.dropIfIdle(p, row)
}

// findSole looks which groups alone decide about the row that they derive: nothing else
// derives into their output, two groups cannot derive the same, and nobody reads it.
// Such a row need not wait in a queue.
func (n *Network) findSole(rules []*rule) {
	sources := make(map[*predicate]int)
	for _, r := range rules {
		sources[r.head.predicate]++
	}
	for _, p := range n.predicates {
		if p.aggregation != nil {
			sources[p.aggregation.output.predicate]++
		}
	}
	for _, p := range n.predicates {
		a := p.aggregation
		if a == nil || sources[a.output.predicate] > 1 {
			continue
		}
		to := a.output.predicate
		a.isSole = to.kind == result && to.window == nil && len(to.readers) == 0
		for c := range a.groupColumns {
			a.isSole = a.isSole && slices.Contains(a.from, c)
		}
	}
}

func (n *Network) freeGroup(p *predicate, id relation.RowID) {
	for _, s := range p.aggregation.sums {
		if s.isFloat {
			p.aggregation.floats.release(uint32(p.table.Counter(id, s.counter)))
		}
	}
	p.table.Drop(id)
	n.keep(-1)
}

// addCounter adds 1 or -1 to a counter of a row and returns it.
func addCounter(table *relation.Relation, id relation.RowID, counter, sign int) uint64 {
	count := table.Counter(id, counter) + uint64(sign)
	table.SetCounter(id, counter, count)
	return count
}

// aggregate computes the row that a group derives into the row of its sink, and
// reports whether there is one: none if an aggregate fails, in the output or not.
func (n *Network) aggregate(p *predicate, id relation.RowID) bool {
	a := p.aggregation
	for i, c := range a.columns {
		var ok bool
		if a.cells[i], ok = n.aggregateColumn(p, id, c); !ok {
			return false
		}
	}
	group := p.table.Row(id)
	for c, from := range a.from {
		if from >= 0 {
			a.output.row[c] = group[from]
		} else {
			a.output.row[c] = a.cells[^from]
		}
	}
	return true
}

// aggregateColumn returns the value of an aggregated column for a group. Of nothing
// but nulls there is neither sum nor average nor extreme: null.
func (n *Network) aggregateColumn(p *predicate, id relation.RowID, c aggregated) (value.ID, bool) {
	a := p.aggregation
	count := p.table.Counter(id, c.count)
	switch c.kind {
	case analysis.Count:
		return n.intern(value.OfInt(int64(count)))
	case analysis.CountDistinct:
		return n.intern(value.OfInt(int64(a.values[c.values].number(p.table, id))))
	}
	if count == 0 {
		return a.null, true
	}
	switch c.kind {
	case analysis.Min:
		d := a.values[c.values]
		return d.table.Row(d.order.At(d.root(p.table, id), 0))[1], true
	case analysis.Max:
		d := a.values[c.values]
		return d.table.Row(d.order.Last(d.root(p.table, id)))[1], true
	}
	s := a.sums[c.sum]
	if s.isFloat {
		divisor := uint64(1)
		if c.kind == analysis.Avg {
			divisor = count
		}
		x, ok := a.floats.quotient(uint32(p.table.Counter(id, s.counter)), divisor)
		if !ok {
			return 0, false
		}
		return n.internFloat(x)
	}
	total := intSum{p.table.Counter(id, s.counter+1), p.table.Counter(id, s.counter)}
	if c.kind == analysis.Avg {
		return n.internFloat(total.average(count))
	}
	x, ok := total.total()
	if !ok {
		return 0, false
	}
	return n.intern(value.OfInt(x))
}

func (d *distinct) root(groups *relation.Relation, group relation.RowID) relation.Root {
	return relation.Root(groups.Counter(group, d.counter))
}

func (d *distinct) number(groups *relation.Relation, group relation.RowID) uint64 {
	return groups.Counter(group, d.counter) >> distinctShift
}

// intern returns the id of the result of a computation. If there is none the network
// halts.
func (n *Network) intern(v value.Value) (value.ID, bool) {
	id, err := n.symbols.ID(v)
	if err != nil {
		n.halt(err)
	}
	return id, err == nil
}

func (n *Network) internFloat(x float64) (value.ID, bool) {
	v, ok := value.OfFloat(x)
	if !ok {
		return 0, false
	}
	return n.intern(v)
}
