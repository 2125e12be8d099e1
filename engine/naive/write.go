package naive

import (
	"errors"
	"fmt"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// ErrErrors refuses a transaction for the row errors of a statement's own body.
var ErrErrors = errors.New("a statement's body has row errors")

// ErrUnsure refuses a transaction because a statement negates or aggregates over
// what has row errors. An evaluation that asks for less may meet none of them.
var ErrUnsure = errors.New("a statement depends on row errors")

// Outcome is what one statement did.
type Outcome struct {
	Inserted, Deleted int // rows that were not there; rows that were
}

// Transact returns the facts after a transaction or action: its statements in order,
// each evaluated once, on what those before it wrote. The facts stay as they are. An
// error refuses the whole, and wraps ErrErrors or ErrUnsure; with ErrUnsure, it comes
// with the facts that there would be otherwise.
func Transact(p *analysis.Program, facts Facts, statements []analysis.Statement,
	parameters []value.Value,
) (Facts, []Outcome, error) {
	facts = facts.Clone()
	outcomes := make([]Outcome, len(statements))
	var refused error
	for i := range statements {
		s := &statements[i]
		for _, op := range s.Ops {
			facts.write(op, &outcomes[i])
		}
		if len(s.Heads) == 0 {
			continue
		}
		rows, doubt, failures := Derive(p, facts).evaluate(s.Query, parameters)
		if failures > 0 {
			return nil, nil, fmt.Errorf("statement %d: %w", i, ErrErrors)
		}
		if doubt == Unsure && refused == nil {
			refused = fmt.Errorf("statement %d: %w", i, ErrUnsure)
		}
		for _, deletes := range []bool{true, false} {
			for _, h := range s.Heads {
				if h.Delete != deletes {
					continue
				}
				for _, row := range rows {
					op := analysis.Op{Relation: h.Relation, Delete: h.Delete}
					op.Row = instantiate(h.Terms, row)
					facts.write(op, &outcomes[i])
				}
			}
		}
	}
	return facts, outcomes, refused
}

// evaluate answers a statement's query and counts its own row errors.
func (db *Database) evaluate(q *analysis.Query, parameters []value.Value) (
	[][]value.Value, Doubt, int,
) {
	_, failures := db.all(q, parameters)
	rows, doubt := db.Ask(q, parameters)
	return rows, doubt, failures
}

func (f Facts) write(op analysis.Op, o *Outcome) {
	set := f[op.Relation]
	if set == nil {
		set = Set{}
		f[op.Relation] = set
	}
	switch {
	case op.Delete && set.Has(op.Row):
		set.Remove(op.Row)
		o.Deleted++
	case !op.Delete && set.Add(op.Row):
		o.Inserted++
	}
}
