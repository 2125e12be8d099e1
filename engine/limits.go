package engine

import (
	"errors"
	"fmt"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
)

// Limits bounds what rules may derive; 0 is no limit.
type Limits struct {
	// CommitRows is for one commit, watched key or query: rows count as often as they
	// are derived.
	CommitRows uint64
	// GraphRows is how many derived rows are kept at most.
	GraphRows uint64
}

// SetLimits bounds everything from now on. Before the first call nothing is bounded.
func (e *Engine) SetLimits(l Limits) {
	e.limits = l
	e.network.Limits(e.bounds(0))
}

// bounds are the limits of the main network, with a limit of steps.
func (e *Engine) bounds(steps uint64) dataflow.Limits {
	return dataflow.Limits{
		Derivations: e.limits.CommitRows, Rows: e.limits.GraphRows, Steps: steps,
	}
}

// LimitKind tells the limits apart.
type LimitKind = dataflow.LimitKind

// The limits: Limits.CommitRows, Limits.GraphRows, and steps.
const (
	LimitCommitRows = dataflow.LimitDerivations
	LimitGraphRows  = dataflow.LimitRows
	LimitSteps      = dataflow.LimitSteps
)

// BudgetError says which limit an evaluation went past, and where. It wraps ErrBudget.
type BudgetError struct {
	Kind LimitKind
	Max  uint64
	Rule string // the clause that went past it; "" for a query itself
	View string // or the view
	err  error
}

func (e *BudgetError) Error() string {
	switch {
	case e.Rule != "":
		return fmt.Sprintf("%v, by the rule %s", e.err, e.Rule)
	case e.View != "":
		return fmt.Sprintf("%v, by the view %s", e.err, e.View)
	}
	return e.err.Error()
}

// Unwrap returns the limit.
func (e *BudgetError) Unwrap() error { return e.err }

// named adds to a BudgetError what it is about. Goals are those of the network, nil
// for that of a query.
func named(err error, p *analysis.Program, goals []*part) error {
	budget, ok := errors.AsType[*dataflow.BudgetError](err)
	if !ok {
		return err
	}
	out := &BudgetError{Kind: budget.Kind, Max: budget.Max, err: budget}
	out.Rule, out.View = clauseName(budget.Clause, p, goals)
	return out
}

// clauseName returns the text of a rule, or the name of a goal's view.
func clauseName(c dataflow.Clause, p *analysis.Program, goals []*part) (rule, view string) {
	if c.Rule >= 0 {
		return p.Rules[c.Rule].Text, ""
	}
	if c.Goal >= 0 && c.Goal < len(goals) {
		return "", goals[c.Goal].view
	}
	return "", ""
}
