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

// Outcome is what one statement did, net: a row that it deletes and inserts again
// counts for nothing.
type Outcome struct {
	Rows              int // of its query, or plain rows
	Inserted, Deleted int // against what the statement found
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
		s, found := &statements[i], facts.Clone()
		for _, op := range s.Ops {
			facts.write(op)
		}
		outcomes[i].Rows = len(s.Ops)
		if s.Query != nil {
			rows, doubt, failures := Derive(p, facts).evaluate(s.Query, parameters)
			if failures > 0 {
				return nil, nil, fmt.Errorf("statement %d: %w", i+1, ErrErrors)
			}
			if doubt == Unsure && refused == nil {
				refused = fmt.Errorf("statement %d: %w", i+1, ErrUnsure)
			}
			facts.writeHeads(s.Heads, rows)
			outcomes[i].Rows = len(rows)
		}
		outcomes[i].Inserted, outcomes[i].Deleted = found.Compare(facts)
	}
	return facts, outcomes, refused
}

// Compare returns how many rows the next facts have more, and how many these have
// that the next have not.
func (f Facts) Compare(next Facts) (inserted, deleted int) {
	for name, set := range next {
		for k := range set {
			if _, there := f[name][k]; !there {
				inserted++
			}
		}
	}
	for name, set := range f {
		for k := range set {
			if _, there := next[name][k]; !there {
				deleted++
			}
		}
	}
	return inserted, deleted
}

// writeHeads writes heads for each row of a statement's query, deletions first.
func (f Facts) writeHeads(heads []analysis.WriteHead, rows [][]value.Value) {
	for _, deletes := range []bool{true, false} {
		for _, h := range heads {
			if h.Delete != deletes {
				continue
			}
			for _, row := range rows {
				f.write(analysis.Op{
					Relation: h.Relation, Delete: h.Delete, Row: instantiate(h.Terms, row),
				})
			}
		}
	}
}

// evaluate answers a statement's query and counts its own row errors.
func (db *Database) evaluate(q *analysis.Query, parameters []value.Value) (
	[][]value.Value, Doubt, int,
) {
	_, failures := db.all(q, parameters)
	rows, doubt := db.Ask(q, parameters)
	return rows, doubt, failures
}

func (f Facts) write(op analysis.Op) {
	if f[op.Relation] == nil {
		f[op.Relation] = Set{}
	}
	if op.Delete {
		f[op.Relation].Remove(op.Row)
	} else {
		f[op.Relation].Add(op.Row)
	}
}
