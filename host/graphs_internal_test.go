package host

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/host/config"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/journal/pebble"
	"github.com/heddle-live/heddle/host/views"
)

const edgesProgram = `+edge(src: int, dst: int)
view out($x: int) := ?edge($x, Y)
`

// someGraphs is everything of a server between its journal and its listeners.
type someGraphs struct {
	*graphs
	t       *testing.T
	dir     string
	store   *pebble.Journal
	metrics views.Metrics
	group   errgroup.Group
	fails   atomic.Bool // the journal refuses drops
}

// droppingJournal refuses to drop graphs on demand.
type droppingJournal struct {
	journal.Journal
	fails *atomic.Bool
}

var errDrop = errors.New("the disk does not forget")

func (d droppingJournal) Drop(ctx context.Context, name string) error {
	if d.fails.Load() {
		return errDrop
	}
	return d.Journal.Drop(ctx, name)
}

func openGraphs(t *testing.T, dir string) *someGraphs {
	t.Helper()
	s := &someGraphs{t: t, dir: dir}
	logger := slog.New(slog.DiscardHandler)
	var err error
	s.store, err = pebble.Open(filepath.Join(dir, "journal"), pebble.Options{Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.graphs = &graphs{
		journal: droppingJournal{s.store, &s.fails}, logger: logger, open: map[string]*hosted{},
		directory: views.New(views.Config{
			Linger: 20 * time.Millisecond, MaxLatency: time.Second, KeysMax: 50, WatchSteps: 1_000_000,
			PartBytes: 256 << 10, Now: time.Now, Logger: logger, Metrics: &s.metrics,
		}),
		run: s.group.Go,
		loop: ingest.Config{
			Journal: s.store, Now: time.Now,
			Nanos:             func() int64 { return int64(time.Since(began)) },
			QueueTransactions: 16, BatchTransactions: 8, JournalRecords: 1000,
			QuerySteps: 100_000, Metrics: &ingest.Metrics{}, Logger: logger,
		},
	}
	if err := s.openAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *someGraphs) stop() {
	s.t.Helper()
	if err := errors.Join(s.close(s.t.Context()), s.group.Wait(), s.store.Close()); err != nil {
		s.t.Error(err)
	}
}

// applyEdges makes graph g with the program of edges.
func (s *someGraphs) applyEdges() {
	s.t.Helper()
	_, err := s.Apply(s.t.Context(), "g", edgesProgram, admin.ApplyOptions{Create: true})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *someGraphs) transact(name, text string) error {
	program, err := s.Schema(name)
	if err != nil {
		return err
	}
	parsed, err := parse.Transaction(text)
	if err != nil {
		return err
	}
	statements, err := analysis.CheckTransaction(program, parsed)
	if err != nil {
		return admin.ErrProgramChanged // the text was right for another program
	}
	_, err = s.Transact(s.t.Context(), name, admin.Transaction{Program: program, Statements: statements})
	return err
}

// TestCreateOutlivesItsCaller: a graph that was begun must be usable, whether or
// not its creator waited.
func TestCreateOutlivesItsCaller(t *testing.T) {
	s := openGraphs(t, t.TempDir())
	defer s.stop()
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := s.CreateGraph(gone, "g"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), "g", edgesProgram, admin.ApplyOptions{}); err != nil {
		t.Error(err)
	}
	if err := s.DropGraph(gone, "g"); err != nil {
		t.Error(err)
	}
	if err := s.CreateGraph(t.Context(), "g"); err != nil {
		t.Error(err)
	}
}

// TestFailedDropKeepsTheGraph: what could not be dropped is whole and served.
func TestFailedDropKeepsTheGraph(t *testing.T) {
	s := openGraphs(t, t.TempDir())
	defer s.stop()
	s.applyEdges()
	if err := s.transact("g", "+edge(1, 2)"); err != nil {
		t.Fatal(err)
	}
	s.fails.Store(true)
	if err := s.DropGraph(t.Context(), "g"); !errors.Is(err, errDrop) {
		t.Errorf("drop: %v", err)
	}
	info, err := s.Graph(t.Context(), "g")
	if err != nil || info.Facts != 1 {
		t.Errorf("%+v, %v", info, err)
	}
	s.fails.Store(false)
	if err := s.DropGraph(t.Context(), "g"); err != nil {
		t.Error(err)
	}
	if _, err := s.Graph(t.Context(), "g"); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("after the drop: %v", err)
	}
}

// TestHandleOfADroppedGraph: whoever found a graph a moment before it was dropped
// hears that it does not exist, not that the server stops.
func TestHandleOfADroppedGraph(t *testing.T) {
	s := openGraphs(t, t.TempDir())
	defer s.stop()
	s.applyEdges()
	h, err := s.find("g")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DropGraph(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	_, err = h.loop.Transact(t.Context(), ingest.Transaction{Program: h.loop.Program()})
	if err = h.serviceError(err); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestStartThatFails gives everything back: the directory can be used again.
func TestStartThatFails(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir, cfg.DataListen, cfg.AdminListen = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	opt := Options{Logger: slog.New(slog.DiscardHandler)}
	first := openGraphs(t, cfg.DataDir)
	first.applyEdges()
	first.stop()
	gone, leave := context.WithCancel(t.Context())
	leave()
	bad := cfg
	bad.AdminListen = "127.0.0.1:99999"
	if _, err := Start(t.Context(), bad, opt); err == nil {
		t.Error("a server on an impossible port started")
	}
	server, err := Start(t.Context(), cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Run(gone); err != nil {
		t.Error(err)
	}
}

// TestStuckLoop has one loop that does not come to an end: the others are ready,
// and the server's stop waits for it no longer than it may.
func TestStuckLoop(t *testing.T) {
	s := openGraphs(t, t.TempDir())
	for _, name := range []string{"a", "b", "c"} {
		if err := s.CreateGraph(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	stuck, err := s.find("b")
	if err != nil {
		t.Fatal(err)
	}
	release, entered := make(chan struct{}), make(chan struct{})
	if err := stuck.loop.Do(t.Context(), func(*ingest.Turn) {
		close(entered)
		<-release
	}); err != nil {
		t.Fatal(err)
	}
	<-entered
	problems := s.Problems(t.Context())
	if len(problems) != 1 || problems[0].Part != "graph b" {
		t.Errorf("problems %v, want graph b's only", problems)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := s.close(ctx); err == nil || !strings.Contains(err.Error(), "graph b did not finish") {
		t.Errorf("close with a stuck loop: %v", err)
	}
	close(release)
	s.stop()
}

func TestLowDiskMakesNoGraph(t *testing.T) {
	s := openGraphs(t, t.TempDir())
	defer s.stop()
	s.loop.FreeBytes, s.loop.FreeBytesFloor = func() (uint64, error) { return 9, nil }, 10
	_, err := s.Apply(t.Context(), "g", edgesProgram, admin.ApplyOptions{Create: true})
	if !errors.Is(err, admin.ErrReadOnly) {
		t.Errorf("apply with a full disk: %v", err)
	}
	if names, err := s.store.Graphs(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("graphs %v, %v", names, err)
	}
}
