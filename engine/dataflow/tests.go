package dataflow

import (
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// passes executes a step that is a test.
func (n *Network) passes(s *step) bool {
	switch s.kind {
	case stepFilter:
		return n.holds(&s.filter)
	case stepAbsent:
		return !n.exists(s)
	case stepMeter:
		s.meter.passed++
		return true
	case stepTimer:
		n.time()
		return false
	default:
		return n.compute(s)
	}
}

// exists reports whether a visible row matches a negated atom. The row that started
// the plan does not count where it stands right of itself.
func (n *Network) exists(s *step) bool {
	for k, o := range s.key {
		s.keyRow[k] = n.load(o)
	}
	if s.pin != relation.Now {
		return n.existsPinned(s)
	}
	table := s.predicate.table
	switch s.access {
	case stepProbe:
		n.count(1)
		id, ok := table.Find(s.keyRow)
		return ok && table.IsVisible(id) && n.admits(s, id)
	case stepLookup:
		for at := s.index.First(s.keyRow); at != 0; at = s.index.Next(at) {
			n.count(1)
			if n.admits(s, at.Row()) && n.agrees(s, table.Row(at.Row())) {
				return true
			}
		}
		return false
	}
	if s.wanted != 0 && n.indexInstead(s) {
		return n.exists(s)
	}
	if len(s.checks) > 0 {
		return n.existsScanned(s)
	}
	rows := table.Len()
	if s.exclude {
		rows-- // a row that changes is there while its plans run
	}
	return rows > 0
}

// existsScanned looks for a row that agrees with the step's checks, without an index.
func (n *Network) existsScanned(s *step) bool {
	table := s.predicate.table
	column, cell := s.checks[0].column, n.load(s.checks[0].operand)
	id, ok := table.NextMatch(0, column, cell)
	for ; ok && !n.stop; id, ok = table.NextMatch(id+1, column, cell) {
		n.count(1)
		if n.admits(s, id) && n.agrees(s, table.Row(id)) {
			return true
		}
	}
	n.count(uint64(table.Made()) >> scannedShift)
	return false
}

// agrees tests the columns of a row that no key covers.
func (n *Network) agrees(s *step, row []value.ID) bool {
	for _, c := range s.checks {
		if row[c.column] != n.load(c.operand) {
			return false
		}
	}
	return true
}

// compute sets the register of a computation, or tests it if it is known. What
// cannot be computed is derived as a failure of the clause.
func (n *Network) compute(s *step) bool {
	c := &s.computation
	out := value.OfNull()
	isNull, text := false, 0
	for i, o := range c.args {
		s.values[i] = n.symbols.Value(n.load(o))
		isNull = isNull || s.values[i].IsNull()
		text += len(s.values[i].Str())
	}
	if !isNull {
		var err error
		if out, err = c.function.Eval(s.values); err != nil {
			if !n.recount.takes(n, fromFailure) {
				n.derive(&n.plan.failure)
			}
			return false
		}
	}
	id, err := n.symbols.ID(out)
	if err != nil {
		n.halt(err)
		return false
	}
	n.count(1 + uint64(text+len(out.Str()))>>textShift)
	if n.hold(); n.stop {
		return false
	}
	if s.tests {
		return n.registers[c.out] == id
	}
	n.registers[c.out] = id
	return true
}
