package host

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/host/ingest"
)

// Explain implements admin.Service.
func (g *graphs) Explain(ctx context.Context, name, of string, profile time.Duration) (
	admin.ExplainResult, error,
) {
	h, err := g.find(name)
	if err != nil {
		return admin.ExplainResult{}, err
	}
	if profile > 0 {
		started := false
		err := h.read(ctx, func(t *ingest.Turn) { started = t.Engine.StartProfile() })
		switch {
		case err != nil:
			return admin.ExplainResult{}, h.serviceError(err)
		case !started:
			return admin.ExplainResult{}, fmt.Errorf(
				"a profile of graph %s is being taken already: %w", name, admin.ErrBusy)
		}
		timer := time.NewTimer(profile)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	var result admin.ExplainResult
	var failed error
	// Whoever asked may have left; a profile ends all the same.
	err = h.read(context.WithoutCancel(ctx), func(t *ingest.Turn) {
		result.Revision = t.Revision
		result.Plan, failed = t.Engine.Explain(of)
		if profile > 0 {
			t.Engine.EndProfile()
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return admin.ExplainResult{}, h.serviceError(err)
	}
	return result, nil
}
