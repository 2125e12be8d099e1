package ingest

import (
	"context"
	"errors"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/proof"
	"github.com/heddle-live/heddle/engine/value"
)

// Why explains the rows of a query in the loop, between two batches, as Query
// answers it. Options' MaxRows counts for nothing.
func (l *Loop) Why(ctx context.Context, q *analysis.Query, params []value.Value,
	limits proof.Limits, opt QueryOptions,
) (p *proof.Proof, revision uint64, err error) {
	do := func(e *engine.Engine, opt engine.WhyOptions) error {
		var err error
		p, err = e.Why(q, params, opt)
		return err
	}
	revision, err = l.explain(ctx, opt, limits, do)
	return p, revision, err
}

// WhyNot explains why a query has no rows, as Why does.
func (l *Loop) WhyNot(ctx context.Context, q *analysis.Query, params []value.Value,
	limits proof.Limits, opt QueryOptions,
) (a *proof.Absence, revision uint64, err error) {
	do := func(e *engine.Engine, opt engine.WhyOptions) error {
		var err error
		a, err = e.WhyNot(q, params, opt)
		return err
	}
	revision, err = l.explain(ctx, opt, limits, do)
	return a, revision, err
}

// explain has the loop explain something by the program that it was analysed against.
func (l *Loop) explain(ctx context.Context, opt QueryOptions, limits proof.Limits,
	do func(*engine.Engine, engine.WhyOptions) error,
) (uint64, error) {
	if !opt.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, opt.Deadline, ErrDeadline)
		defer cancel()
	}
	if err := l.waitRevision(ctx, opt.MinRevision); err != nil {
		return 0, err
	}
	var failed error
	var revision uint64
	err := l.Call(ctx, func(t *Turn) {
		if failed = context.Cause(ctx); failed != nil {
			return
		}
		if opt.Program != l.program.Load().checked {
			failed = ErrProgramChanged
			return
		}
		revision = t.Revision
		failed = do(t.Engine, engine.WhyOptions{
			Limits: limits, Budget: l.cfg.QuerySteps,
			Cancelled: func() bool { return ctx.Err() != nil },
		})
	})
	if err == nil {
		err = failed
	}
	// Nothing was written, so what was left has no unknown outcome.
	switch left := errors.Is(err, ErrUnknownOutcome); {
	case ctx.Err() != nil && (left || errors.Is(err, engine.ErrCancelled)):
		err = context.Cause(ctx)
	case left:
		err = ErrClosing
	}
	return revision, err
}
