package dataflow

import (
	"cmp"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// PreparePlain is Prepare for networks that are to be traced: every relation that a
// rule reads keeps its rows, nothing is unfolded or factored.
func PreparePlain(p *analysis.Program) *Prepared {
	u := Prepare(p)
	u.plain = true
	return u
}

// Age orders the rows of a settled transient network: component by component from
// the bottom up, and inside a recursive component round by round. It depends on the
// program, the goals and the facts only, not on the order in which facts came. Each
// derived row has a derivation from rows whose ages are all less than its own.
type Age struct {
	Component int // -1 for facts
	Round     uint64
}

// Compare returns a negative number if a is older than b.
func (a Age) Compare(b Age) int {
	return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Round, b.Round))
}

// Trace finds the rows that a network has derived. The steps that it takes count
// within the limits of the last Settle.
type Trace struct {
	network *Network
	rows    map[analysis.RelationID][]*predicate
	scans   map[detachedKey]int
	indexes map[detachedKey]*relation.Index
}

// Trace returns a trace of a transient network of a plain program, which has
// settled. It reads base tables through the network's pin.
func (n *Network) Trace() *Trace {
	if n.plan == nil {
		n.plan = namedPlan(Clause{Rule: -1})
	}
	t := &Trace{
		network: n, rows: make(map[analysis.RelationID][]*predicate),
		scans: make(map[detachedKey]int), indexes: make(map[detachedKey]*relation.Index),
	}
	for _, p := range n.predicates {
		if p.kind == derived && p.of >= 0 && p.aggregation == nil {
			t.rows[p.of] = append(t.rows[p.of], p)
		}
	}
	return t
}

// Err returns the error of a limit that the trace has gone past. It has found less
// than there is then.
func (t *Trace) Err() error { return t.network.err }

// Match calls yield with each known row of a relation that holds the cells of key in
// the given columns, and with the row's age, until yield returns false. Rows of base
// relations are all known; of derived ones, those that somebody has asked for. The
// row is valid during the call.
func (t *Trace) Match(id analysis.RelationID, columns relation.Columns, key []value.ID,
	yield func(row []value.ID, age Age) bool,
) {
	if table := t.network.tables[id]; table != nil && t.network.pin != relation.Now {
		t.walk(table, columns, key, func(at relation.RowID) bool {
			return yield(table.Row(at), Age{Component: -1})
		})
		return
	} else if table != nil {
		t.match(table, columns, key, func(at relation.RowID) bool {
			return yield(table.Row(at), Age{Component: -1})
		})
		return
	}
	predicates := t.rows[id]
	for i, p := range predicates {
		more := true
		t.match(p.table, columns, key, func(at relation.RowID) bool {
			row := p.table.Row(at)
			age := ageOf(p, at)
			for k, other := range predicates {
				found, ok := other.table.Find(row)
				if k == i || !ok || !other.table.IsVisible(found) {
					continue
				}
				if k < i {
					return true // met before
				}
				if a := ageOf(other, found); a.Compare(age) < 0 {
					age = a
				}
			}
			more = yield(row, age)
			return more
		})
		if !more {
			return
		}
	}
}

func ageOf(p *predicate, row relation.RowID) Age {
	a := Age{Component: p.component.number}
	if p.component.recursive {
		a.Round = rankOf(p.table, row)
	}
	return a
}

// match calls yield with the visible rows of a table that agree with a key.
func (t *Trace) match(table *relation.Relation, columns relation.Columns, key []value.ID,
	yield func(relation.RowID) bool,
) {
	n := t.network
	n.count(1)
	switch {
	case n.err != nil:
	case columns.Len() == table.Arity():
		if at, ok := table.Find(key); ok && table.IsVisible(at) {
			yield(at)
		}
	case columns == 0:
		for at, ok := table.NextVisible(0); ok && n.err == nil; at, ok = table.NextVisible(at + 1) {
			n.count(1)
			if !yield(at) {
				return
			}
		}
	default:
		t.lookUp(table, columns, key, yield)
	}
}

// walk is match for a base table that is read through a pin.
func (t *Trace) walk(table *relation.Relation, columns relation.Columns, key []value.ID,
	yield func(relation.RowID) bool,
) {
	n := t.network
	s := step{predicate: &predicate{kind: base, table: table, arity: table.Arity()}, pin: n.pin}
	access := stepScan
	if columns.Len() == table.Arity() {
		access = stepProbe
	} else if columns != 0 {
		if s.index = t.index(table, columns); s.index != nil {
			access = stepLookup
		}
	}
	k := 0
	for c := range table.Arity() {
		if !columns.Has(c) {
			continue
		}
		if access == stepProbe || access == stepLookup && s.index.Columns().Has(c) {
			s.keyRow = append(s.keyRow, key[k])
		} else {
			s.checks = append(s.checks,
				columnOperand{c, operand{register: constant, constant: key[k]}})
		}
		k++
	}
	n.count(1)
	if n.err != nil {
		return
	}
	n.walk(&s, access, func(at relation.RowID) bool {
		return !n.agrees(&s, table.Row(at)) || yield(at)
	})
}

// lookUp is match for some of the columns.
func (t *Trace) lookUp(table *relation.Relation, columns relation.Columns, key []value.ID,
	yield func(relation.RowID) bool,
) {
	n := t.network
	agrees := func(at relation.RowID) bool {
		row, k := table.Row(at), 0
		for c, cell := range row {
			if columns.Has(c) {
				if cell != key[k] {
					return false
				}
				k++
			}
		}
		return true
	}
	if ix := t.index(table, columns); ix != nil {
		var some []value.ID
		k := 0
		for c := range table.Arity() {
			if columns.Has(c) {
				if ix.Columns().Has(c) {
					some = append(some, key[k])
				}
				k++
			}
		}
		for at := ix.First(some); at != 0 && n.err == nil; at = ix.Next(at) {
			n.count(1)
			if agrees(at.Row()) && !yield(at.Row()) {
				return
			}
		}
		return
	}
	first := 0
	for !columns.Has(first) {
		first++
	}
	from := relation.RowID(0)
	for n.err == nil {
		at, ok := table.NextMatch(from, first, key[0])
		if !ok {
			n.count((uint64(table.Made()) - uint64(from)) >> scannedShift)
			return
		}
		n.count(1 + uint64(at-from)>>scannedShift)
		if agrees(at) && !yield(at) {
			return
		}
		from = at + 1
	}
}

// index returns an index for some of the columns: one that the table has, or after
// some scans one of the trace's own. It is nil if scanning is as good.
func (t *Trace) index(table *relation.Relation, columns relation.Columns) *relation.Index {
	key := detachedKey{table, columns}
	if ix := t.indexes[key]; ix != nil {
		return ix
	}
	best := table.BestIndex(columns)
	if best != nil && best.Columns() == columns || table.Len() < scannedRowsMin {
		return best
	}
	if t.scans[key]++; t.scans[key] <= scansBeforeIndex {
		return best
	}
	t.network.count(uint64(table.Len()))
	if t.network.err != nil {
		return best
	}
	pin := relation.Now
	if slices.Contains(t.network.tables, table) {
		pin = t.network.pin
	}
	ix := table.Detached(columns, pin, t.network.goesOn)
	if t.network.err != nil {
		return best
	}
	t.indexes[key] = ix
	return ix
}
