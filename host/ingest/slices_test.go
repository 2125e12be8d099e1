package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/host/ingest"
)

// ask asks a query that a test may be about to see refused.
func (f *fixture) ask(ctx context.Context, text string) (ingest.QueryResult, error) {
	parsed, err := parse.Query(text)
	if err != nil {
		return ingest.QueryResult{}, err
	}
	program := f.loop.Program()
	q, err := analysis.AnalyseQuery(program, parsed)
	if err != nil {
		return ingest.QueryResult{}, err
	}
	return f.loop.Query(ctx, q, nil, ingest.QueryOptions{Program: program, MaxRows: 1 << 20})
}

// load writes n edges of distinct nodes.
func (f *fixture) load(n int) {
	f.t.Helper()
	var rows []string
	for i := range n {
		rows = append(rows, fmt.Sprintf("(%d, %d)", i, i))
	}
	f.write("+edge[" + strings.Join(rows, ", ") + "]")
}

// TestLongQueriesSeeOneRevision scans while a writer moves a row about, so that each
// revision has the same number of rows.
func TestLongQueriesSeeOneRevision(t *testing.T) {
	const rows = 30_000
	f := start(t)
	f.apply(edges)
	f.load(rows)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for ctx.Err() == nil {
				r, err := f.ask(ctx, "?edge(X, Y), Y >= 0")
				if ctx.Err() != nil {
					return
				}
				if err != nil || r.Count != rows {
					t.Errorf("%d rows at %d: %v", r.Count, r.Revision, err)
					return
				}
				// The row that moves tells the revision.
				last := r.Rows[2*rows-2].Int()
				if want := int64(1_000_000 + r.Revision); r.Revision > 2 && last != want {
					t.Errorf("row %d at revision %d, want %d", last, r.Revision, want)
				}
			}
		})
	}
	f.write("-edge(0, 0)\n+edge(1000003, 0)")
	for revision := int64(4); revision < 300; revision++ {
		f.write(fmt.Sprintf("-edge(%d, 0)\n+edge(%d, 0)", 1_000_000+revision-1, 1_000_000+revision))
	}
	stop()
	all.Wait()
	f.expectNoPins()
}

func (f *fixture) expectNoPins() {
	f.t.Helper()
	for until := time.Now().Add(10 * time.Second); ; {
		pins := 0
		err := f.loop.Call(f.t.Context(), func(turn *ingest.Turn) { pins = turn.Engine.Pins() })
		if err != nil {
			f.t.Fatal(err)
		}
		if pins == 0 {
			return
		}
		if time.Now().After(until) {
			f.t.Fatalf("%d pins stay", pins)
		}
	}
}

func TestLongQueriesEnd(t *testing.T) {
	f := start(t, func(f *fixture) { f.limits = engine.Limits{CommitRows: 50_000} })
	f.apply(edges)
	f.load(2000)
	const product = "?edge(X, _), edge(Y, _), X != Y"
	if _, err := f.ask(t.Context(), product); !errors.Is(err, engine.ErrBudget) {
		t.Errorf("a product of 4 million rows: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := f.ask(ctx, product); !errors.Is(err, gone) {
		t.Errorf("of a caller that left: %v", err)
	}
	// Many at once, more than can be pinned; a new program comes meanwhile.
	var all sync.WaitGroup
	for i := range 60 {
		tx := f.transaction(fmt.Sprintf("+edge(%d, 1)", 10_000+i))
		all.Go(func() {
			if i == 30 {
				f.apply(edges + "view into($x: int) := ?edge(X, $x)\n")
				return
			}
			if i%2 == 0 {
				_, err := f.loop.Transact(t.Context(), tx)
				if err != nil && !errors.Is(err, ingest.ErrProgramChanged) {
					t.Error(err)
				}
			}
			r, err := f.ask(t.Context(), "?edge(X, Y), Y >= 0")
			for errors.Is(err, ingest.ErrProgramChanged) || errors.Is(err, ingest.ErrBusy) {
				r, err = f.ask(t.Context(), "?edge(X, Y), Y >= 0")
			}
			if err != nil || r.Count < 2000 {
				t.Errorf("%d rows: %v", r.Count, err)
			}
		})
	}
	all.Wait()
	f.expectNoPins()
	// One that goes on when the loop ends.
	f.limits = engine.Limits{}
	f.restart()
	done := make(chan error, 1)
	go func() {
		_, err := f.ask(t.Context(), "?edge(X, _), edge(Y, _), edge(Z, _), X + Y + Z < 0")
		done <- err
	}()
	f.write("+edge(1, 1)")
	f.stop()
	if err := <-done; !errors.Is(err, ingest.ErrClosing) && !errors.Is(err, engine.ErrBudget) {
		t.Errorf("at the end of the loop: %v", err)
	}
}
