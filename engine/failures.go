package engine

import (
	"errors"
	"fmt"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/value"
)

// Doubt says what row errors do to the rows of a view's part.
type Doubt uint8

// The doubts. A rule derives nothing where it cannot be computed; a view that depends
// on it in no other way goes on without those rows. One that depends on it through a
// negation or an aggregate would have wrong rows, and keeps its last good ones.
const (
	Exact      Doubt = iota
	Incomplete       // rows may be missing
	Stale            // the rows are the last good ones
)

// RuleErrors are the bindings for which a clause cannot be computed.
type RuleErrors struct {
	Rule    string            // the clause's text; "" for the condition of a view or query
	View    string            // or the view
	Pos     analysis.Position // in the program; zero for a query
	Count   int               // of bindings, among those that are needed
	Samples []RowError        // the first of them
}

// RowError is a binding for which a clause cannot be computed.
type RowError struct {
	Code      string   // why: overflow, division_by_zero, ...
	Message   string   // the same with the values
	Variables []string // the clause's variables that have a value and a name
	Values    []value.Value
}

// RowErrors refuses an evaluation that would depend on what cannot be computed.
type RowErrors struct{ Errors RuleErrors }

func (e *RowErrors) Error() string {
	what := "the condition"
	switch {
	case e.Errors.Rule != "":
		what = "the rule " + e.Errors.Rule
	case e.Errors.View != "":
		what = "the view " + e.Errors.View
	}
	why := ""
	if len(e.Errors.Samples) > 0 {
		why = ": " + e.Errors.Samples[0].Message
	}
	return fmt.Sprintf("%s cannot be computed for %d rows%s", what, e.Errors.Count, why)
}

// Errors returns the clauses that cannot be computed for some binding now, in the
// order of the program.
func (e *Engine) Errors() []RuleErrors {
	var list []RuleErrors
	e.network.Errors(func(c dataflow.ClauseErrors) bool {
		list = append(list, ruleErrors(c, e.program, e.goals))
		return true
	})
	return list
}

func ruleErrors(c dataflow.ClauseErrors, p *analysis.Program, goals []*part) RuleErrors {
	out := RuleErrors{Count: c.Count}
	out.Rule, out.View = clauseName(c.Clause, p, goals)
	if c.Clause.Rule >= 0 {
		out.Pos = p.Rules[c.Clause.Rule].Pos
	} else if v := p.ViewNamed(out.View); v != nil {
		out.Pos = v.Pos
	}
	for _, s := range c.Samples {
		row := RowError{Message: s.Err.Error()}
		if e, ok := errors.AsType[*builtin.Error](s.Err); ok {
			row.Code = e.Code
		}
		for i, v := range s.Variables {
			if v.Name != "" {
				row.Variables = append(row.Variables, v.Name)
				row.Values = append(row.Values, s.Values[i])
			}
		}
		out.Samples = append(out.Samples, row)
	}
	return out
}

// Doubt returns what row errors do to a part of a key's view, and a clause that is the
// cause, nil if there is none.
func (e *Engine) Doubt(k *Key, part int) (Doubt, *RuleErrors) {
	p := k.unitOf(part).part
	return p.doubt, p.cause
}

// Unreported reports whether Changes has something to tell.
func (e *Engine) Unreported() bool {
	e.updateDoubts()
	return len(e.touched) > 0
}

// updateDoubts looks what row errors do to the views, and has every key of a view
// told for which that changed.
func (e *Engine) updateDoubts() {
	if e.network.ErrorsChanged() {
		e.lookAtDoubts()
	}
}

func (e *Engine) lookAtDoubts() {
	for _, p := range e.goals {
		doubt, cause := e.doubtOf(p)
		p.cause = cause
		if doubt == p.doubt {
			continue
		}
		ends := p.doubt == Stale
		p.doubt = doubt
		for _, u := range p.units {
			if u == nil || u.key.dead {
				continue
			}
			u.key.restated = true
			if ends {
				e.touch(u.key) // what it kept is right since this commit
			} else {
				e.list(u.key)
			}
		}
	}
}

func (e *Engine) doubtOf(p *part) (Doubt, *RuleErrors) {
	doubt := Exact
	switch {
	case e.network.Unsure(p.goal):
		doubt = Stale
	case e.network.Flagged(p.goal):
		doubt = Incomplete
	default:
		return Exact, nil
	}
	c, ok := e.network.Cause(p.goal)
	if !ok {
		panic("engine: a doubt has no cause")
	}
	cause := ruleErrors(c, e.program, e.goals)
	return doubt, &cause
}

// keep keeps what is pending of a unit that must not be told now.
func (e *Engine) keep(u *unit) {
	if !u.kept && u.pending != 0 {
		u.kept = true
		e.kept = append(e.kept, u)
	}
}

// dropReported gives up the entries of pending that nobody needs any more.
func (e *Engine) dropReported() {
	const slack = 1024
	if len(e.kept) > 0 {
		if len(e.pending) < 2*e.keptRows+slack {
			return
		}
		e.compactPending()
	}
	if len(e.kept) == 0 {
		e.pending, e.keptRows = e.pending[:0], 0
		e.trimPending()
	}
}

func (e *Engine) compactPending() {
	var pending []pendingRow
	units := e.kept[:0]
	for _, u := range e.kept {
		if u.kept = u.pending != 0; !u.kept {
			continue
		}
		units = append(units, u)
		head := uint32(0)
		for at := u.pending; at != 0; at = e.pending[at-1].next {
			pending = append(pending, pendingRow{row: e.pending[at-1].row, next: head})
			head = uint32(len(pending))
		}
		u.pending = head
	}
	clear(e.kept[len(units):])
	e.kept, e.pending, e.keptRows = units, pending, len(pending)
}
