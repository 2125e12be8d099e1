package ingest

import (
	"context"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/proof"
	"github.com/heddle-live/heddle/engine/value"
)

// explaining is what a reading explains, and the explanation.
type explaining struct {
	not     bool
	limits  proof.Limits
	proof   *proof.Proof
	absence *proof.Absence
}

func (x *explaining) begin(r *reading, steps uint64) (*engine.Evaluation, error) {
	opt := engine.WhyOptions{
		Limits: x.limits, Budget: steps,
		Cancelled: func() bool { return r.ctx.Err() != nil },
	}
	if x.not {
		return r.pin.WhyNot(r.query, r.parameters, opt)
	}
	return r.pin.Why(r.query, r.parameters, opt)
}

// Why explains the rows of a query at one revision, in slices between two batches,
// within the step limit of a query. Options' MaxRows counts for nothing. Errors are
// those of Query.
func (l *Loop) Why(ctx context.Context, q *analysis.Query, params []value.Value,
	limits proof.Limits, opt QueryOptions,
) (*proof.Proof, uint64, error) {
	x := &explaining{limits: limits}
	r, err := l.ask(ctx, &reading{query: q, parameters: params, options: opt, explains: x})
	if err != nil {
		return nil, 0, err
	}
	return x.proof, r.Revision, nil
}

// WhyNot explains why a query has no rows, as Why does.
func (l *Loop) WhyNot(ctx context.Context, q *analysis.Query, params []value.Value,
	limits proof.Limits, opt QueryOptions,
) (*proof.Absence, uint64, error) {
	x := &explaining{not: true, limits: limits}
	r, err := l.ask(ctx, &reading{query: q, parameters: params, options: opt, explains: x})
	if err != nil {
		return nil, 0, err
	}
	return x.absence, r.Revision, nil
}
