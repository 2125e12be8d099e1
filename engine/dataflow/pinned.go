package dataflow

import "github.com/heddle-live/heddle/engine/relation"

// scannedAtOnce is how many rows of a pinned table a scan looks at before it counts
// them, and so may pause.
const scannedAtOnce = 512

// goesOn looks at the limits and reports whether the evaluation may go on.
func (n *Network) goesOn() bool {
	if n.steps >= n.stepsMax || n.limits.CancelSteps > 0 {
		n.checkSteps()
	}
	return !n.stop
}

// runPinned executes a step that reads a base table through a pin.
func (n *Network) runPinned(i int, s *step) {
	if s.kind == stepScan && s.wanted != 0 && n.indexInstead(s) {
		n.run(i)
		return
	}
	n.walk(s, s.kind, func(id relation.RowID) bool {
		n.visit(i, s, id)
		return true
	})
}

// existsPinned is exists for a base table that is read through a pin.
func (n *Network) existsPinned(s *step) bool {
	if s.access == stepScan {
		if s.wanted != 0 && n.indexInstead(s) {
			return n.exists(s)
		}
		if len(s.checks) == 0 {
			return s.predicate.table.LenAt(s.pin) > 0
		}
	}
	found := false
	n.walk(s, s.access, func(id relation.RowID) bool {
		found = n.agrees(s, s.predicate.table.Row(id))
		return !found
	})
	return found
}

// walk calls visit for each row that was visible at the step's pin and that its key,
// or for a scan its first check, finds, until visit returns false. The table may
// change whenever steps are counted; a row that the pin sees stays where it is.
func (n *Network) walk(s *step, access stepKind, visit func(id relation.RowID) bool) {
	table := s.predicate.table
	switch access {
	case stepProbe:
		n.count(1)
		if id, ok := table.FindAt(s.keyRow, s.pin); ok && !n.stop {
			visit(id)
		}
	case stepLookup:
		for at := s.index.FirstLinked(s.keyRow); at != 0 && !n.stop; {
			if !table.VisibleAt(at.Row(), s.pin) {
				at = n.passBy(s, at)
				continue
			}
			if n.count(1); n.stop || !visit(at.Row()) {
				return
			}
			at = s.index.NextLinked(at)
		}
	default:
		n.walkScanned(s, visit)
	}
}

// walkScanned is walk without an index.
func (n *Network) walkScanned(s *step, visit func(id relation.RowID) bool) {
	table := s.predicate.table
	for from := relation.RowID(0); !n.stop; {
		end := min(from+scannedAtOnce, relation.RowID(table.MadeAt(s.pin)))
		if from >= end {
			return
		}
		column := -1
		var id relation.RowID
		var ok bool
		if len(s.checks) > 0 {
			column = s.checks[0].column
			id, ok = table.NextAt(s.pin, from, end, column, n.load(s.checks[0].operand))
		} else {
			id, ok = table.NextAt(s.pin, from, end, column, 0)
		}
		next := id // the rows before it are done
		if ok {
			next++
		}
		n.count(uint64(next>>scannedShift) - uint64(from>>scannedShift))
		if ok && column >= 0 {
			n.count(1)
		}
		if ok && (n.stop || !visit(id)) {
			return
		}
		from = next
	}
}

// passBy returns the place after one whose row the pin does not see. Such a row may
// go while the evaluation pauses at it.
func (n *Network) passBy(s *step, at relation.Ref) relation.Ref {
	n.steps++
	if n.steps < n.stepsMax {
		return s.index.NextLinked(at)
	}
	table := s.predicate.table
	table.Guard(at)
	n.checkSteps()
	next := s.index.NextLinked(at)
	table.Unguard(at)
	return next
}
