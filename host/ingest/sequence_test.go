package ingest

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/journal/pebble"
)

// nobody is a Publisher for a graph without viewers.
type nobody struct{}

func (nobody) Publish(*Turn)                {}
func (nobody) Deployed(*Turn, *engine.Diff) {}
func (nobody) Tick(*Turn, time.Time)        {}
func (nobody) Tidy(*Turn, time.Time) bool   { return false }

// openingJournal counts openings, and refuses further ones if it fails.
type openingJournal struct {
	Journal
	fail error
}

func (j *openingJournal) NextOpening(ctx context.Context, graph string, now time.Time) (
	journal.Position, error,
) {
	if j.fail != nil {
		return journal.Position{}, j.fail
	}
	return j.Journal.NextOpening(ctx, graph, now)
}

// almostFull returns a loop, not running, with two publication numbers left.
func almostFull(t *testing.T, fail error) *Loop {
	t.Helper()
	store, err := pebble.Open(filepath.Join(t.TempDir(), "journal"),
		pebble.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := store.Create(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), Config{
		Graph: "g", Journal: &openingJournal{Journal: store, fail: fail}, Publisher: nobody{},
		Now: time.Now, Nanos: func() int64 { return 0 },
		QueueTransactions: 4, BatchTransactions: 4, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	l.publication = journal.PublicationsPerOpening - 3
	return l
}

func TestFullPublicationNumberBeginsTheNextOpening(t *testing.T) {
	l := almostFull(t, nil)
	turn := l.lend(t.Context())
	opening, epoch := l.position.Opening, turn.Epoch
	last := uint64(0)
	for i := range 6 {
		sequence := turn.Sequence()
		if sequence <= last || sequence >= 1<<53 {
			t.Errorf("sequence %d after %d", sequence, last)
		}
		last = sequence
		if began := i >= 2; began != (turn.Epoch != epoch) || began != (l.position.Opening > opening) {
			t.Errorf("publication %d: opening %d, epoch %s", i, l.position.Opening, turn.Epoch)
		}
	}
	if l.failure != nil {
		t.Error(l.failure)
	}
}

func TestFailedOpeningEndsTheLoop(t *testing.T) {
	broken := errors.New("the disk is gone")
	l := almostFull(t, broken)
	ended := make(chan error, 1)
	go func() { ended <- l.Run(context.WithoutCancel(t.Context())) }()
	if err := l.Call(t.Context(), func(turn *Turn) {
		for range 3 {
			turn.Sequence()
		}
	}); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, broken) {
		t.Errorf("Run returned %v", err)
	}
}
