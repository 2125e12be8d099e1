package ingest

import (
	"context"
	"errors"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

const (
	// shortSteps is how many steps a query may take at once: about 50 microseconds. One
	// that needs more begins again on a pinned revision, and is worked at in slices
	// between two batches, so that it holds up no writer.
	shortSteps = 400
	// sliceNanos is the length of a slice.
	sliceNanos = 40_000
)

// reading is a query on its way through the loop.
type reading struct {
	ctx        context.Context
	query      *analysis.Query
	parameters []value.Value
	options    QueryOptions
	revision   uint64
	answer     engine.QueryResult // whose rows its caller joins
	err        error
	progress
	explains *explaining // nil for a query that is to be answered

	// Of a query that takes slices.
	pin        *engine.Pin
	evaluation *engine.Evaluation
}

func (r *reading) engineOptions(steps uint64) engine.QueryOptions {
	return engine.QueryOptions{
		MaxRows: r.options.MaxRows, Budget: steps,
		Cancelled: func() bool { return r.ctx.Err() != nil },
	}
}

// finish answers the caller.
func (r *reading) finish(revision uint64, answer engine.QueryResult, err error) {
	r.err, r.revision, r.answer = err, revision, answer
	close(r.done)
}

// read answers a query that is short, and lists one that is not.
func (l *Loop) read(t *Turn, r *reading) {
	r.begun.Store(true)
	if m := l.cfg.Metrics; m != nil {
		m.Queries.Add(1)
	}
	if err := l.mayRead(r); err != nil {
		r.finish(t.Revision, engine.QueryResult{}, err)
		return
	}
	if r.explains == nil {
		answer, err := t.Engine.Query(r.query, r.parameters,
			r.engineOptions(min(shortSteps, l.cfg.QuerySteps)))
		budget, over := errors.AsType[*engine.BudgetError](err)
		if !over || budget.Kind != engine.LimitSteps || l.cfg.QuerySteps <= shortSteps {
			r.finish(t.Revision, answer, err)
			return
		}
	}
	if len(l.readings) >= l.cfg.QueueTransactions {
		r.finish(t.Revision, engine.QueryResult{}, ErrBusy)
		return
	}
	l.readings = append(l.readings, r)
}

// mayRead says why a query that waits cannot be answered.
func (l *Loop) mayRead(r *reading) error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	if r.options.Program != l.program.Load().checked {
		return ErrProgramChanged
	}
	return nil
}

// slice works at the query whose turn it is, or gives back what pins held, and
// reports whether there is more to do.
func (l *Loop) slice() (more bool) {
	if len(l.readings) == 0 {
		return l.engine.SweepPins(sliceNanos)
	}
	r := l.readings[0]
	copy(l.readings, l.readings[1:])
	l.readings[len(l.readings)-1] = r
	if err := l.begin(r); err != nil {
		l.end(r, engine.QueryResult{}, err)
		return true
	}
	if r.evaluation == nil { // too many revisions are pinned at the moment
		l.engine.SweepPins(sliceNanos)
		return true
	}
	if r.evaluation.Step(sliceNanos) {
		answer, err := r.evaluation.Unjoined()
		if r.explains != nil && err == nil {
			r.explains.proof, r.explains.absence, err = r.evaluation.Explanation()
		}
		l.end(r, answer, err)
	}
	return true
}

// begin pins the present revision for a query, unless it has begun already. Queries of
// one revision share a pin.
func (l *Loop) begin(r *reading) error {
	if r.evaluation != nil {
		return nil
	}
	if err := l.mayRead(r); err != nil {
		return err
	}
	for _, other := range l.readings {
		if p := other.pin; p != nil && p.Revision() == l.position.Revision {
			r.pin = p
		}
	}
	if r.pin == nil {
		pin, err := l.engine.Pin(int64(l.cfg.PinAge))
		if errors.Is(err, engine.ErrPins) {
			return nil
		}
		if err != nil {
			return err
		}
		r.pin = pin
	}
	var err error
	if r.explains != nil {
		r.evaluation, err = r.explains.begin(r, l.cfg.QuerySteps)
	} else {
		r.evaluation, err = r.pin.Query(r.query, r.parameters, r.engineOptions(l.cfg.QuerySteps))
	}
	return err
}

// end answers a query that took slices, the last one in the list, and gives up its pin
// if nobody shares it.
func (l *Loop) end(r *reading, answer engine.QueryResult, err error) {
	last := len(l.readings) - 1
	l.readings[last] = nil
	l.readings = l.readings[:last]
	revision := l.position.Revision
	if pin := r.pin; pin != nil {
		revision = pin.Revision()
		shared := false
		for _, other := range l.readings {
			shared = shared || other.pin == pin
		}
		if !shared {
			pin.Close()
		}
	}
	if errors.Is(err, engine.ErrPinExpired) {
		err = ErrDeadline
	}
	r.finish(revision, answer, err)
}
