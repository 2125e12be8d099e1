package host

import (
	"context"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
)

// Why implements admin.Service.
func (g *graphs) Why(ctx context.Context, name string, q *analysis.Query, params []value.Value,
	opt admin.WhyOptions,
) (admin.WhyResult, error) {
	h, err := g.find(name)
	if err != nil {
		return admin.WhyResult{}, err
	}
	asked := ingest.QueryOptions{
		Program: opt.Program, MinRevision: opt.MinRevision, Deadline: opt.Deadline,
	}
	var r admin.WhyResult
	if opt.Not {
		r.Absence, r.Revision, err = h.loop.WhyNot(ctx, q, params, opt.Limits, asked)
	} else {
		r.Proof, r.Revision, err = h.loop.Why(ctx, q, params, opt.Limits, asked)
	}
	if err != nil {
		return admin.WhyResult{}, h.serviceError(err)
	}
	return r, nil
}
