package admin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine"
)

// Whoever sees first that a query's time is over, its client is told what to do.
func TestQueryOutOfTime(t *testing.T) {
	for name, err := range map[string]error{
		"service": admin.ErrDeadline, "context": context.DeadlineExceeded,
		"engine": engine.ErrCancelled,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.service.FailOnce = []error{err, err}
			for body, want := range map[string]string{
				`{"query":"?edge(1, Y)","min_revision":9,"deadline_ms":300}`: "it waits for revision 9",
				`{"query":"?edge(1, Y)","deadline_ms":300}`:                  "deadline_ms",
			} {
				p := problem(t, do(f.admin, request("POST", "/v1/graphs/shop/query", body)))
				if p.Status != 504 || p.Code != "deadline" || !strings.Contains(p.Hint, want) ||
					p.Detail != "there was no answer within 300ms" {
					t.Errorf("%d %s: %s", p.Status, p.Code, p.Text())
				}
			}
		})
	}
}
