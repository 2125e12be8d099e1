package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/journal/pebble"
)

// TestOverALimitOfTheJournalIsRefused: what the log would refuse must not end the
// process, and leaves the engine as it was.
func TestOverALimitOfTheJournalIsRefused(t *testing.T) {
	f := start(t)
	f.apply(edges)
	large := f.transaction(`+label(1, "x")`)
	large.Statements[0].Ops[0].Row[1] = value.OfString(strings.Repeat("x", journal.TupleBytesMax))
	longKey := f.transaction("+edge(1, 1)")
	longKey.IdempotencyKey = strings.Repeat("k", journal.IdempotencyKeyBytesMax+1)
	for name, tx := range map[string]ingest.Transaction{"tuple": large, "key": longKey} {
		if _, err := f.loop.Transact(t.Context(), tx); !errors.Is(err, ingest.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A text of this many characters that JSON escapes is over the program's limit.
	program := edges + "// " + strings.Repeat("<", 900_000) + "\n"
	if _, err := f.loop.Apply(t.Context(), program, ingest.ApplyOptions{}); !errors.Is(err,
		ingest.ErrTooLarge) {
		t.Errorf("program: %v", err)
	}
	f.apply(edges + "view back($y: int) := ?edge(X, $y)\n")
	f.write("+edge(1, 2)")
	if got := f.query("?edge(X, Y)"); got != "[1 2]" {
		t.Errorf("edges %s", got)
	}
	f.restart()
	if got := f.query("?edge(X, Y)"); got != "[1 2]" {
		t.Errorf("edges %s after a restart", got)
	}
}

// disk is a fake of the free space.
type disk struct {
	free  atomic.Uint64
	fails atomic.Bool
}

func (d *disk) look() (uint64, error) {
	if d.fails.Load() {
		return 0, errors.New("no such disk")
	}
	return d.free.Load(), nil
}

func TestLowDiskSpaceMakesReadOnly(t *testing.T) {
	const floor = 1000
	d := &disk{}
	d.free.Store(floor)
	f := start(t, func(f *fixture) { f.freeBytes, f.freeFloor = d.look, floor })
	f.apply(edges)
	keyed := f.transaction("+edge(1, 2)")
	keyed.IdempotencyKey = "k"
	if _, err := f.loop.Transact(t.Context(), keyed); err != nil {
		t.Fatal(err)
	}
	look := func(readOnly bool) {
		t.Helper()
		if err := f.loop.Call(t.Context(), (*ingest.Turn).LookAtDisk); err != nil {
			t.Fatal(err)
		}
		if f.loop.ReadOnly() != readOnly {
			t.Fatalf("read-only %v with %d bytes free", !readOnly, d.free.Load())
		}
	}
	look(false)
	d.free.Store(floor - 1)
	look(true)
	if _, err := f.loop.Transact(t.Context(), f.transaction("+edge(1, 3)")); !errors.Is(err,
		ingest.ErrReadOnly) {
		t.Errorf("write: %v", err)
	}
	if _, err := f.loop.Apply(t.Context(), edges+"\n", ingest.ApplyOptions{}); !errors.Is(err,
		ingest.ErrReadOnly) {
		t.Errorf("apply: %v", err)
	}
	if _, err := f.loop.Apply(t.Context(), edges+"\n", ingest.ApplyOptions{DryRun: true}); err != nil {
		t.Errorf("dry run: %v", err)
	}
	if r, err := f.loop.Transact(t.Context(), keyed); err != nil || !r.Replayed {
		t.Errorf("a repetition of what is durable: %+v, %v", r, err)
	}
	if got := f.query("?edge(X, Y)"); got != "[1 2]" {
		t.Errorf("query: %s", got)
	}
	d.fails.Store(true) // whoever cannot look does not guess
	d.free.Store(floor)
	look(true)
	d.fails.Store(false)
	look(false)
	f.write("+edge(1, 3)")

	d.free.Store(0)
	f.restart()
	if !f.loop.ReadOnly() {
		t.Error("the disk was not looked at before the first write")
	}
}

// TestWhatWasNotBegunIsKnown: of what waits behind a failing batch it is certain
// that nothing was written.
func TestWhatWasNotBegunIsKnown(t *testing.T) {
	failing := &countingJournal{}
	f := start(t, func(f *fixture) {
		f.wrap = func(j ingest.Journal) ingest.Journal { failing.Journal = j; return failing }
	})
	f.apply(edges)
	failing.mu.Lock()
	failing.fail = errors.New("the disk is gone")
	failing.mu.Unlock()
	const batch, writers = 16, 20
	release := f.hold()
	answers := make(chan error, writers+1)
	for i := range writers {
		tx := f.transaction(fmt.Sprintf("+edge(5, %d)", i))
		queued := f.loop.Queued()
		go func() {
			_, err := f.loop.Transact(context.Background(), tx)
			answers <- err
		}()
		for f.loop.Queued() == queued {
			runtime.Gosched() // until the goroutine has queued it
		}
	}
	release()
	unknown, closing := 0, 0
	for range writers {
		switch err := <-answers; {
		case errors.Is(err, ingest.ErrUnknownOutcome):
			unknown++
		case errors.Is(err, ingest.ErrClosing):
			closing++
		default:
			t.Errorf("got %v", err)
		}
	}
	if unknown != batch || closing != writers-batch {
		t.Errorf("%d unknown and %d known, want %d and %d", unknown, closing, batch, writers-batch)
	}
	if err := <-f.ended; err == nil {
		t.Error("Run returned nil")
	}
	f.ended <- nil // for stop
}

// TestQueryOfAnEndedLoop has nothing whose outcome could be unknown.
func TestQueryOfAnEndedLoop(t *testing.T) {
	f := start(t)
	f.apply(edges)
	program := f.loop.Program()
	parsed, err := parse.Query("?edge(X, Y)")
	if err != nil {
		t.Fatal(err)
	}
	q, err := analysis.AnalyseQuery(program, parsed)
	if err != nil {
		t.Fatal(err)
	}
	f.stop()
	for _, minRevision := range []uint64{0, 99} {
		_, err = f.loop.Query(t.Context(), q, nil,
			ingest.QueryOptions{Program: program, MinRevision: minRevision})
		if !errors.Is(err, ingest.ErrClosing) {
			t.Errorf("minimum revision %d: %v", minRevision, err)
		}
	}
}

// stoppingJournal ends the start of a server while its facts are read.
type stoppingJournal struct {
	ingest.Journal
	stop context.CancelFunc
}

func (s *stoppingJournal) State(ctx context.Context, graph string,
	visit func(journal.Mutation) error,
) ([]byte, error) {
	return s.Journal.State(ctx, graph, func(m journal.Mutation) error {
		s.stop()
		return visit(m)
	})
}

// reopen opens the fixture's graph once more, without running it.
func (f *fixture) reopen(ctx context.Context, wrap func(ingest.Journal) ingest.Journal) error {
	f.t.Helper()
	store, err := pebble.Open(f.dir, pebble.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.t.Fatal(err)
	}
	_, failed := ingest.Open(ctx, ingest.Config{
		Graph: "g", Journal: wrap(store), Publisher: &recorder{}, Now: time.Now,
		Nanos:             func() int64 { return 0 },
		QueueTransactions: 1, BatchTransactions: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err := store.Close(); err != nil {
		f.t.Error(err)
	}
	return failed
}

func TestStopDuringRecovery(t *testing.T) {
	f := start(t)
	f.apply(edges)
	const facts = 10_000
	for i := 0; i < facts; i += 1000 {
		var text strings.Builder
		for j := range 1000 {
			fmt.Fprintf(&text, "+edge(%d, %d)\n", i+j, j)
		}
		f.write(text.String())
	}
	f.stop()
	ctx, stop := context.WithCancel(t.Context())
	err := f.reopen(ctx, func(j ingest.Journal) ingest.Journal {
		return &stoppingJournal{Journal: j, stop: stop}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("open returned %v", err)
	}
	f.open()
	if got := f.query("?edge(9999, Y)"); got != "[9999 999]" {
		t.Errorf("edges %s", got)
	}
}

// TestStoredProgramThatCannotBeRead: the server must not start without it, and must
// say which graph, which revision and what is wrong.
func TestStoredProgramThatCannotBeRead(t *testing.T) {
	for _, c := range []struct{ name, program, want string }{
		{"language", `{"format":1,"schema":9,"source":"+edge(src: int\n"}`, "line "},
		{
			"format", `{"format":3,"schema":9}`,
			"format 3 is unknown; this version reads formats 1 and 2",
		},
		{
			"order", `{"format":2,"schema":9,"source":"+edge(src: int, dst: int)\n",` +
				`"relations":{"edge":1},"next_relation":1,"orders":{"edge":[1,1]}}`,
			"damaged: the order of the columns of edge",
		},
		{"json", `{`, "unexpected end of JSON"},
		{
			"relation number", `{"format":1,"schema":9,"source":"+edge(src: int, dst: int)\n",` +
				`"relations":{"edge":77},"next_relation":77}`,
			"facts of relation number 1, which the program does not have",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := start(t)
			f.apply(edges)
			f.write("+edge(1, 2)")
			f.stop()
			store, err := pebble.Open(f.dir, pebble.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Open(t.Context(), "g", time.Now()); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Append(t.Context(), "g", []*journal.Record{
				{Revision: 3, Program: []byte(c.program)},
			}); err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			err = f.reopen(t.Context(), func(j ingest.Journal) ingest.Journal { return j })
			if err == nil {
				t.Fatal("the graph opened")
			}
			for _, want := range []string{"graph g at revision 3", c.want} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}
