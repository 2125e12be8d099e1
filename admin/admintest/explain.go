package admintest

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine"
)

// Explain explains every view, by no rules.
func (s *Service) Explain(_ context.Context, name, of string, profile time.Duration) (
	admin.ExplainResult, error,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.findLocked(name)
	if err != nil {
		return admin.ExplainResult{}, err
	}
	if g.program.ViewNamed(of) == nil {
		return admin.ExplainResult{}, fmt.Errorf("%q: %w", of, engine.ErrUnknownRelation)
	}
	return admin.ExplainResult{
		Revision: g.info.Revision,
		Plan:     &engine.Plan{Of: of, Kind: "view", WatchedKeys: 1, Profiled: profile > 0},
	}, nil
}
