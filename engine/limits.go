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
	// CommitBytes is for one commit, watched key or query: what the new values take that
	// its computations make.
	CommitBytes uint64
	// GraphBytes is how much all values may take, those of facts included, while a
	// computation adds to them.
	GraphBytes uint64
	// WatchNanos is how long, on the engine's clock, the first rows of a watched key may
	// take, or one condition in a transaction. It counts for those that have a budget of
	// steps, which most often ends first.
	WatchNanos int64
}

// SetLimits bounds everything from now on. Before the first call nothing is bounded.
func (e *Engine) SetLimits(l Limits) {
	e.limits = l
	e.network.Limits(e.bounds(0))
}

// bounds are the limits of the main network, with a limit of steps.
func (e *Engine) bounds(steps uint64) dataflow.Limits {
	l := e.graphBounds()
	l.Derivations, l.ValueBytes, l.Steps = e.limits.CommitRows, e.limits.CommitBytes, steps
	return l
}

// graphBounds are those limits of the main network that do not count what one commit
// does.
func (e *Engine) graphBounds() dataflow.Limits {
	return dataflow.Limits{
		Rows: e.limits.GraphRows, Held: e.symbols.Held, HeldBytes: e.limits.GraphBytes,
	}
}

// stepsPerLook is how many steps are made between two looks at the clock: each may be
// ten times as long as the budget of steps takes it for.
const stepsPerLook = 512

// late returns what tells that WatchNanos from now on have passed; nil if nothing does.
func (e *Engine) late() func() bool {
	if e.limits.WatchNanos <= 0 || e.clock == nil {
		return nil
	}
	until := e.now() + e.limits.WatchNanos
	return func() bool { return e.now() >= until }
}

// inTime makes of the error of what late cancelled one that wraps ErrBudget.
func (e *Engine) inTime(err error) error {
	if !errors.Is(err, ErrCancelled) {
		return err
	}
	limit := &dataflow.BudgetError{Kind: LimitTime, Max: uint64(e.limits.WatchNanos)}
	return &BudgetError{Kind: limit.Kind, Max: limit.Max, err: limit}
}

// LimitKind tells the limits apart.
type LimitKind = dataflow.LimitKind

// The limits: those of Limits, WatchNanos being LimitTime, and steps.
const (
	LimitCommitRows  = dataflow.LimitDerivations
	LimitGraphRows   = dataflow.LimitRows
	LimitSteps       = dataflow.LimitSteps
	LimitCommitBytes = dataflow.LimitValueBytes
	LimitGraphBytes  = dataflow.LimitHeldBytes
	LimitTime        = dataflow.LimitTime
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
