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

// Query answers q in the loop, within the loop's step limit: a short one between two
// batches, a longer one in slices, as of the revision at which it began. Errors: those
// of Transact, ErrDeadline, and the engine's.
func (l *Loop) Query(ctx context.Context, q *analysis.Query, params []value.Value,
	opt QueryOptions,
) (QueryResult, error) {
	return l.ask(ctx, &reading{query: q, parameters: params, options: opt})
}

// ask has the loop work at a query.
func (l *Loop) ask(ctx context.Context, r *reading) (QueryResult, error) {
	if !r.options.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, r.options.Deadline, ErrDeadline)
		defer cancel()
	}
	if err := l.waitRevision(ctx, r.options.MinRevision); err != nil {
		return QueryResult{}, err
	}
	r.ctx, r.progress = ctx, progress{done: make(chan struct{})}
	err := l.try(item{task: func(t *Turn) { l.read(t, r) }})
	if err == nil {
		err = l.await(ctx, &r.progress)
	}
	if err == nil {
		err = r.err
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
	// The rows of a long answer, which may be many, are put together here and not in
	// the loop.
	r.answer.Join()
	return QueryResult{
		Revision: r.revision, Columns: r.answer.Columns, Rows: r.answer.Rows,
		Count: r.answer.Count, Truncated: r.answer.Truncated, Errors: r.answer.Errors,
	}, nil
}
