package admintest

import (
	"context"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/proof"
	"github.com/heddle-live/heddle/engine/value"
)

// Why explains a query that has no rows.
func (s *Service) Why(_ context.Context, name string, q *analysis.Query, params []value.Value,
	opt admin.WhyOptions,
) (admin.WhyResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.findLocked(name)
	if err != nil {
		return admin.WhyResult{}, err
	}
	if err := s.nextFailLocked(); err != nil {
		return admin.WhyResult{}, err
	}
	if opt.Program != g.program {
		return admin.WhyResult{}, admin.ErrProgramChanged
	}
	s.Whys = append(s.Whys, Why{name, q, params, opt})
	result := admin.WhyResult{Revision: g.info.Revision}
	if opt.Not {
		result.Absence = &proof.Absence{Query: q.Text, Absent: []proof.Absent{{
			Failures: []proof.Failure{{
				Clause: proof.Clause{Rule: -1}, Text: "there is no fact edge(1, Y)", Node: -1,
				Matches: 1,
			}},
		}}}
	} else {
		result.Proof = &proof.Proof{Query: q.Text}
	}
	return result, nil
}

// Why is one explanation that was asked for.
type Why struct {
	Graph   string
	Query   *analysis.Query
	Params  []value.Value
	Options admin.WhyOptions
}
