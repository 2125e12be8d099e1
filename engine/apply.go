package engine

import (
	"fmt"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// scratchKept is the capacity of scratch that is kept between calls; more came
// from a bulk load.
const scratchKept = 1 << 16

// Check reports the first operation that Apply must not be given: of an unknown or
// derived relation, or with a row of the wrong arity or types. It changes nothing.
func (e *Engine) Check(ops []analysis.Op) error {
	for i := range ops {
		op := &ops[i]
		id, ok := e.relations[op.Relation]
		if !ok {
			return fmt.Errorf("relation %q: %w", op.Relation, ErrUnknownRelation)
		}
		r := &e.program.Relations[id]
		if r.Derived {
			return fmt.Errorf("relation %q: %w", op.Relation, ErrDerived)
		}
		if err := checkValues(op.Row, r.Columns); err != nil {
			return fmt.Errorf("relation %q: %w", op.Relation, err)
		}
	}
	return nil
}

func checkValues(row []value.Value, columns []analysis.Column) error {
	if len(row) != len(columns) {
		return fmt.Errorf("%w: %d instead of %d", ErrArity, len(row), len(columns))
	}
	for i, v := range row {
		if v.Kind() != columns[i].Type && (!v.IsNull() || !columns[i].Nullable) {
			return fmt.Errorf("%w: %s is %s where %s is expected",
				ErrType, columns[i].Name, v.Kind(), columns[i].Type)
		}
	}
	return nil
}

// Apply commits one transaction under its revision: the operations take effect in
// order, insertion of a present row and deletion of an absent one without effect.
// It returns how many rows entered and left, net. The operations must have passed
// Check against the present program. Rows are copied.
//
// Errors wrap ErrFull or are a *BudgetError; then nothing of the transaction remains. A
// transaction of one row allocates nothing in the steady state, apart from what
// new rows need.
func (e *Engine) Apply(revision uint64, ops []analysis.Op) (inserted, deleted int, err error) {
	start := e.now()
	if err := e.internOps(ops); err != nil {
		return 0, 0, err
	}
	before := e.revision
	e.begin(revision)
	e.change(ops)
	inserted, deleted, err = e.network.Settle()
	if err != nil {
		e.refuse(before)
		return 0, 0, named(err, e.program, e.goals)
	}
	e.applies++
	e.sweep()
	e.spend(start)
	return inserted, deleted, nil
}

// change puts operations, which are interned, into the network.
func (e *Engine) change(ops []analysis.Op) {
	cells := e.cells
	for i := range ops {
		id := e.targets[i]
		row := cells[:len(ops[i].Row):len(ops[i].Row)]
		cells = cells[len(row):]
		switch {
		case !ops[i].Delete:
			e.network.Insert(id, row)
		case !e.skip[i]:
			e.network.Delete(id, row)
		}
	}
	if cap(e.cells) > scratchKept {
		e.cells, e.skip, e.targets = nil, nil, nil
	}
}

// internOps turns the rows of ops into e.cells, one after the other, and notes in
// e.skip the deletions of rows that hold a value the graph has never seen, and in
// e.targets the relations.
func (e *Engine) internOps(ops []analysis.Op) error {
	e.cells, e.skip, e.targets = e.cells[:0], e.skip[:0], e.targets[:0]
	for i := range ops {
		op := &ops[i]
		id, ok := e.relations[op.Relation]
		if !ok || e.tables[id] == nil || len(op.Row) != e.tables[id].Arity() {
			panic("engine: Apply of an operation that did not pass Check")
		}
		skip := false
		for _, v := range op.Row {
			var cell value.ID
			if op.Delete {
				var known bool
				cell, known = e.symbols.Lookup(v)
				skip = skip || !known
			} else {
				var err error
				if cell, err = e.symbols.Intern(v); err != nil {
					return fmt.Errorf("%w: %w", ErrFull, err)
				}
			}
			e.cells = append(e.cells, cell)
		}
		if !op.Delete && e.tables[id].Room() < len(ops) {
			return fmt.Errorf("relation %q: %w", op.Relation, ErrFull)
		}
		e.skip, e.targets = append(e.skip, skip), append(e.targets, id)
	}
	return nil
}
