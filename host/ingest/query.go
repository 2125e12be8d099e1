package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// QueryOptions bounds a query. Program is what the query was analysed against.
type QueryOptions struct {
	Program     *analysis.Program
	MaxRows     int
	MinRevision uint64    // wait for it first
	Deadline    time.Time // zero: none
}

// QueryResult is a query's answer at one revision.
type QueryResult struct {
	Revision  uint64
	Columns   []analysis.Column
	Rows      []value.Value // flat, sorted, no duplicates
	Count     int           // of rows; tells more than Rows where there are no columns
	Truncated bool          // there were more than MaxRows
	// Errors, if not nil, are why rows may be missing; see engine.QueryResult.
	Errors *engine.RuleErrors
}

// Query answers q in the loop, between two batches, within the loop's step
// limit. Errors: those of Transact, ErrDeadline, and the engine's.
func (l *Loop) Query(ctx context.Context, q *analysis.Query, params []value.Value,
	opt QueryOptions,
) (QueryResult, error) {
	if !opt.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, opt.Deadline, ErrDeadline)
		defer cancel()
	}
	if err := l.waitRevision(ctx, opt.MinRevision); err != nil {
		return QueryResult{}, err
	}
	var result QueryResult
	var failed error
	err := l.Call(ctx, func(t *Turn) {
		if failed = context.Cause(ctx); failed != nil {
			return
		}
		if opt.Program != l.program.Load().checked {
			failed = ErrProgramChanged
			return
		}
		var r engine.QueryResult
		r, failed = t.Engine.Query(q, params, engine.QueryOptions{
			MaxRows:   opt.MaxRows,
			Budget:    l.cfg.QuerySteps,
			Cancelled: func() bool { return ctx.Err() != nil },
		})
		result = QueryResult{
			Revision: t.Revision, Columns: r.Columns, Rows: r.Rows, Count: r.Count,
			Truncated: r.Truncated, Errors: r.Errors,
		}
		if l.cfg.Metrics != nil {
			l.cfg.Metrics.Queries.Add(1)
		}
	})
	if err == nil {
		err = failed
	}
	// Nothing was written, so a query that was left has no unknown outcome.
	switch left := errors.Is(err, ErrUnknownOutcome); {
	case ctx.Err() != nil && (left || errors.Is(err, engine.ErrCancelled)):
		err = context.Cause(ctx)
	case left:
		err = ErrClosing
	}
	if err != nil {
		return QueryResult{}, err
	}
	return result, nil
}
