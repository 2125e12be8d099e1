package dataflow

import (
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

const (
	stepsPerCheck = 4096 // between looks at the budget and at cancellation
	// A step of a transient network that has scanned a table scansBeforeIndex
	// times builds an index instead of scanning on.
	scansBeforeIndex = 8
	scannedRowsMin   = 64 // smaller tables are scanned always
	lookupRows       = 12 // of a posting list that are read ahead

	// What a limited evaluation spends, so that a step is about an eighth of a
	// microsecond at worst: one for a row that a plan looks up, more for one that it
	// derives, and little for the rows of a scan, which lie in line.
	derivationSteps = 2
	textShift       = 6 // bytes of text read or made by a computation for one step, likewise
	scannedShift    = 3 // rows of a scan for one step, as a power of two
)

// scope tells which of the plans that read a row are meant: those of rules of its own
// recursive component, those of all others, or both.
type scope uint8

const (
	everywhere scope = iota
	inside
	outside
)

// read runs the plans that start from a row of p, for a derivation gained (sign 1)
// or lost (-1). Where a rule reads p with and without a negation, derivations may
// come and go within one change: as plans run backwards for a row that goes, each
// plan leaves counts of derivations from what is left of its atom with the row and
// what is right of it without, never negative ones.
func (n *Network) read(p *predicate, id relation.RowID, sign int, s scope) {
	n.started = place{p, id}
	at, step := 0, 1
	if sign < 0 {
		at, step = len(p.readers)-1, -1
	}
	for ; at >= 0 && at < len(p.readers); at += step {
		pl := p.readers[at]
		if s == inside && !pl.inside || s == outside && pl.inside {
			continue
		}
		if !n.begin(pl, p.table.Row(id)) {
			continue
		}
		n.sign = sign
		if pl.flips != (n.undoing != 0) {
			n.sign = -sign
		}
		if pl.other != nil && n.isLonger(&pl.steps[pl.first], pl.driver.table.Len()) {
			n.plan = pl.other
		}
		if n.run(0); n.stop {
			return
		}
	}
}

// begin loads the row that a plan starts from and reports whether it matches.
func (n *Network) begin(pl *plan, row []value.ID) bool {
	for _, c := range pl.constants {
		if row[c.column] != c.operand.constant {
			return false
		}
	}
	for _, b := range pl.binds {
		n.registers[b.register] = row[b.column]
	}
	for _, r := range pl.repeats {
		if row[r.column] != n.registers[r.register] {
			return false
		}
	}
	n.plan = pl
	return true
}

// isLonger reports whether a lookup with the present registers would find more than
// rows rows, in time proportional to rows at most.
func (n *Network) isLonger(s *step, rows int) bool {
	for k, o := range s.key {
		s.keyRow[k] = n.load(o)
	}
	for at := s.index.First(s.keyRow); at != 0; at = s.index.Next(at) {
		if rows--; rows < 0 {
			return true
		}
	}
	return false
}

func (n *Network) load(o operand) value.ID {
	if o.register < 0 {
		return o.constant
	}
	return n.registers[o.register]
}

// run executes the running plan from step i on, once for each way to go on. It
// ends early when n.stop is set.
func (n *Network) run(i int) {
	if i == len(n.plan.steps) {
		n.conclude()
		return
	}
	s := &n.plan.steps[i]
	if s.kind < stepProbe {
		if n.passes(s) {
			n.run(i + 1)
		}
		return
	}
	for k, o := range s.key {
		s.keyRow[k] = n.load(o)
	}
	if s.pin != relation.Now {
		n.runPinned(i, s)
		return
	}
	table := s.predicate.table
	switch s.kind {
	case stepProbe:
		n.count(1)
		if id, ok := table.Find(s.keyRow); ok && table.IsVisible(id) && n.admits(s, id) {
			s.row = id
			n.run(i + 1)
		}
	case stepLookup:
		n.lookup(i, s)
	case stepScan:
		if s.wanted != 0 && n.indexInstead(s) {
			n.run(i)
			return
		}
		n.scan(i, s)
	}
}

// lookup goes on with each row of a posting list.
func (n *Network) lookup(i int, s *step) {
	var rows [lookupRows]relation.RowID
	for at := s.index.First(s.keyRow); at != 0; {
		// The memory brings the rows all at once and not one after the other.
		var found int
		if found, at = s.index.Gather(at, rows[:]); found > 1 && i == len(n.plan.steps)-1 {
			n.warmHeads(s, rows[:found])
		}
		for _, id := range rows[:found] {
			if n.stop {
				return
			}
			n.count(1)
			n.visit(i, s, id)
		}
	}
}

// warmHeads brings what the plan derives from the rows of its last step into the cache,
// all at once: a derivation waits for little else.
func (n *Network) warmHeads(s *step, rows []relation.RowID) {
	to := &n.plan.head
	if to.predicate.aggregation != nil {
		return // its rows are bindings
	}
	for _, id := range rows {
		row := s.predicate.table.Row(id)
		for _, b := range s.binds {
			n.registers[b.register] = row[b.column]
		}
		for k, o := range to.from {
			to.row[k] = n.load(o)
		}
		to.predicate.table.Warm(to.row)
	}
}

// scan goes on with each row of a table that fits.
func (n *Network) scan(i int, s *step) {
	table := s.predicate.table
	if len(s.checks) == 0 {
		for id, ok := table.NextVisible(0); ok && !n.stop; id, ok = table.NextVisible(id + 1) {
			if id&(1<<scannedShift-1) == 0 {
				n.count(1)
			}
			n.visit(i, s, id)
		}
		return
	}
	// The table looks for the first check itself, several times as fast.
	column, cell := s.checks[0].column, n.load(s.checks[0].operand)
	from := relation.RowID(0)
	for !n.stop {
		id, ok := table.NextMatch(from, column, cell)
		if !ok {
			n.count((uint64(table.Made()) - uint64(from)) >> scannedShift)
			return
		}
		n.count(1 + uint64(id-from)>>scannedShift)
		n.visit(i, s, id)
		from = id + 1
	}
}

// visit goes on with one row of a lookup or scan if it fits.
func (n *Network) visit(i int, s *step, id relation.RowID) {
	if !n.admits(s, id) {
		return
	}
	row := s.predicate.table.Row(id)
	for _, c := range s.checks {
		if row[c.column] != n.load(c.operand) {
			return
		}
	}
	for _, b := range s.binds {
		n.registers[b.register] = row[b.column]
	}
	for _, r := range s.repeats {
		if row[r.column] != n.registers[r.register] {
			return
		}
	}
	s.row = id
	n.run(i + 1)
}

// admits applies the exceptions of visible rows: the row that started the plan, right
// of itself, and rows of the head's own component that have fallen.
func (n *Network) admits(s *step, id relation.RowID) bool {
	if planted == PlantedReadTwice && s.kind == stepAbsent {
		return true
	}
	if s.inside && s.predicate.table.Flags(id)&fallen != 0 {
		return false
	}
	return !s.exclude || id != n.started.row
}

// conclude is reached when every literal of the body holds.
func (n *Network) conclude() {
	if n.recount.takes(n, fromHead) {
		return
	}
	n.derive(&n.plan.head)
}

func (n *Network) holds(f *filter) bool {
	a, b := n.load(f.left), n.load(f.right)
	switch f.op {
	case eq:
		return a == b
	case ne:
		return a != b
	}
	c := n.symbols.Compare(a, b)
	switch f.op {
	case lt:
		return c < 0
	case le:
		return c <= 0
	case gt:
		return c > 0
	case ge:
		return c >= 0
	}
	panic("dataflow: a comparison of unknown operator")
}

type detachedKey struct {
	table   *relation.Relation
	columns relation.Columns
}

// indexInstead counts a scan of a transient step, and once it has scanned enough
// turns it into a lookup by an index of its own. It reports whether it did.
func (n *Network) indexInstead(s *step) bool {
	table := s.predicate.table
	if table.Len() < scannedRowsMin {
		return false
	}
	if s.scans++; s.scans <= scansBeforeIndex {
		return false
	}
	key := detachedKey{table, s.wanted}
	ix := n.detached[key]
	if ix == nil {
		n.count(uint64(table.Len()))
		if n.stop {
			return false
		}
		if ix = table.Detached(s.wanted, s.pin, n.goesOn); n.stop {
			return false
		}
		if n.detached == nil {
			n.detached = make(map[detachedKey]*relation.Index)
		}
		n.detached[key] = ix
	}
	for _, c := range s.checks {
		s.key = append(s.key, c.operand)
	}
	s.index, s.checks, s.wanted = ix, nil, 0
	if s.kind == stepAbsent {
		s.access = stepLookup
	} else {
		s.kind = stepLookup
	}
	s.keyRow = make([]value.ID, len(s.key))
	return true
}
