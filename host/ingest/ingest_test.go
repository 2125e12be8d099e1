package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/journal/pebble"
)

const edges = `+edge(src: int, dst: int)
+label(node: int, text: string)
r1(X, Y) <- edge(X, Y), label(X, "hot")
view out($x: int) := ?edge($x, Y)
seed +label(400, "hot")
`

// recorder is a Publisher that keeps what it was told.
type recorder struct {
	mu        sync.Mutex
	revisions []uint64
	sequences []uint64
	deployed  int
	tidied    int
	untidy    bool                    // Tidy has more to do
	deaf      bool                    // Publish takes no changes
	rows      map[int64][]value.Value // of watched keys of view out
}

func (r *recorder) Publish(t *ingest.Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revisions = append(r.revisions, t.Revision)
	r.sequences = append(r.sequences, t.Sequence())
	if r.deaf {
		return
	}
	t.Engine.Changes(func(k *engine.Key, _ uint64, _ []engine.Change) {
		if r.rows == nil {
			r.rows = map[int64][]value.Value{}
		}
		r.rows[k.Values()[0].Int()] = t.Engine.Rows(k, 0, nil)
	})
}

func (r *recorder) Deployed(*ingest.Turn, *engine.Diff) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deployed++
}

func (r *recorder) Tick(*ingest.Turn, time.Time) {}

func (r *recorder) Tidy(*ingest.Turn, time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tidied++
	return r.untidy
}

func (r *recorder) last() (revision, sequence uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.revisions) == 0 {
		return 0, 0
	}
	return r.revisions[len(r.revisions)-1], r.sequences[len(r.sequences)-1]
}

// fixture is a running loop over a real journal in a temporary directory.
type fixture struct {
	limits  engine.Limits
	now     func() time.Time
	t       *testing.T
	dir     string
	journal *pebble.Journal
	loop    *ingest.Loop
	seen    *recorder
	cancel  context.CancelFunc
	ended   chan error
	wrap    func(ingest.Journal) ingest.Journal
	queue   int
	looks   atomic.Int64 // at the loop's clock

	freeBytes func() (uint64, error)
	freeFloor uint64
}

func start(t *testing.T, options ...func(*fixture)) *fixture {
	t.Helper()
	f := &fixture{
		t: t, dir: filepath.Join(t.TempDir(), "journal"), queue: 64, now: time.Now,
	}
	for _, o := range options {
		o(f)
	}
	f.open()
	t.Cleanup(f.stop)
	return f
}

func (f *fixture) open() {
	f.t.Helper()
	var err error
	f.journal, err = pebble.Open(f.dir, pebble.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx := f.t.Context()
	if err := f.journal.Create(ctx, "g"); err != nil && !errors.Is(err, journal.ErrExists) {
		f.t.Fatal(err)
	}
	var log ingest.Journal = f.journal
	if f.wrap != nil {
		log = f.wrap(log)
	}
	began := time.Now()
	f.seen = &recorder{}
	f.loop, err = ingest.Open(ctx, ingest.Config{
		Graph: "g", Journal: log, Publisher: f.seen, Now: f.now,
		Nanos:             func() int64 { f.looks.Add(1); return int64(time.Since(began)) },
		QueueTransactions: f.queue, BatchTransactions: 16, JournalRecords: 1000,
		QuerySteps: 1_000_000, Metrics: &ingest.Metrics{}, Logger: slog.New(slog.DiscardHandler),
		FreeBytes: f.freeBytes, FreeBytesFloor: f.freeFloor, Limits: f.limits,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	var runCtx context.Context
	runCtx, f.cancel = context.WithCancel(context.Background())
	f.ended = make(chan error, 1)
	go func() { f.ended <- f.loop.Run(runCtx) }()
}

// stop ends the loop and closes the journal; a second call does nothing.
func (f *fixture) stop() {
	if f.cancel == nil {
		return
	}
	f.cancel()
	f.cancel = nil
	if err := <-f.ended; err != nil {
		f.t.Errorf("loop: %v", err)
	}
	if err := f.journal.Close(); err != nil {
		f.t.Errorf("close the journal: %v", err)
	}
}

func (f *fixture) restart() {
	f.stop()
	f.open()
}

func (f *fixture) apply(source string) ingest.Applied {
	f.t.Helper()
	applied, err := f.loop.Apply(f.t.Context(), source, ingest.ApplyOptions{})
	if err != nil {
		f.t.Fatalf("apply: %v", err)
	}
	return applied
}

func (f *fixture) transaction(text string) ingest.Transaction {
	f.t.Helper()
	parsed, err := parse.Transaction(text)
	if err != nil {
		f.t.Fatal(err)
	}
	program := f.loop.Program()
	statements, err := analysis.CheckTransaction(program, parsed)
	if err != nil {
		f.t.Fatal(err)
	}
	return ingest.Transaction{Program: program, Statements: statements}
}

func (f *fixture) write(text string) ingest.Receipt {
	f.t.Helper()
	r, err := f.loop.Transact(f.t.Context(), f.transaction(text))
	if err != nil {
		f.t.Fatalf("write %s: %v", text, err)
	}
	return r
}

func (f *fixture) query(text string) string {
	f.t.Helper()
	parsed, err := parse.Query(text)
	if err != nil {
		f.t.Fatal(err)
	}
	program := f.loop.Program()
	q, err := analysis.AnalyseQuery(program, parsed)
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := f.loop.Query(f.t.Context(), q, nil, ingest.QueryOptions{Program: program, MaxRows: 100})
	if err != nil {
		f.t.Fatalf("query %s: %v", text, err)
	}
	return fmt.Sprint(r.Rows)
}

func TestTransactIsDurableAndPublishedWhenAnswered(t *testing.T) {
	f := start(t)
	if applied := f.apply(edges); applied.Revision != 1 || applied.Schema != 1 {
		t.Fatalf("apply: %+v", applied)
	}
	r := f.write("+edge[(400, 1), (400, 2)]\n-edge(7, 7)")
	if r.Revision != 2 || r.Inserted != 2 || r.Deleted != 0 || r.Replayed {
		t.Fatalf("receipt %+v", r)
	}
	if published, _ := f.seen.last(); published != 2 {
		t.Errorf("published up to %d when the writer was answered", published)
	}
	head, err := f.journal.Head(t.Context(), "g")
	if err != nil || head.Revision != 2 {
		t.Errorf("head %+v, %v", head, err)
	}
	if got := f.query("?r1(400, Y)"); got != "[400 1 400 2]" {
		t.Errorf("r1: %s", got)
	}
}

func TestRecovery(t *testing.T) {
	f := start(t)
	f.apply(edges)
	f.write("+edge[(400, 1), (400, 2)]\n+label(1, \"cold \\\"x\\\"\")")
	f.write("-edge(400, 1)")
	_, before := f.seen.last()
	f.restart()
	if got := f.loop.Revision(); got != 3 {
		t.Errorf("revision %d after the restart", got)
	}
	if got := f.query("?r1(400, Y)"); got != "[400 2]" {
		t.Errorf("r1: %s", got)
	}
	if got := f.query(`?label(X, T)`); got != `[1 "cold \"x\"" 400 "hot"]` {
		t.Errorf("label: %s", got)
	}
	f.write("+edge(400, 3)")
	revision, after := f.seen.last()
	if revision != 4 || after <= before {
		t.Errorf("revision %d, sequence %d after %d", revision, after, before)
	}
	if _, programRevision, schema := f.loop.ProgramRevision(); programRevision != 1 || schema != 1 {
		t.Errorf("program of revision %d, schema %d", programRevision, schema)
	}
}

func TestRefusedTransactionLeavesNoTrace(t *testing.T) {
	f := start(t)
	f.apply(edges)
	tx := f.transaction("+edge(1, 2)")
	ops := &tx.Statements[0].Ops
	*ops = append(*ops, analysis.Op{Relation: "edge", Row: []value.Value{value.OfString("x")}})
	if _, err := f.loop.Transact(t.Context(), tx); err == nil {
		t.Fatal("a row of the wrong arity was taken")
	}
	if got := f.query("?edge(X, Y)"); got != "[]" {
		t.Errorf("edge: %s", got)
	}
	if r := f.write("+edge(1, 2)"); r.Revision != 2 {
		t.Errorf("the refused transaction took a revision: %+v", r)
	}
}

func TestProgramChangedMeanwhile(t *testing.T) {
	f := start(t)
	f.apply(edges)
	tx := f.transaction("+edge(1, 2)")
	f.apply(edges + "// another text\n")
	if _, err := f.loop.Transact(t.Context(), tx); !errors.Is(err, ingest.ErrProgramChanged) {
		t.Errorf("got %v", err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	f := start(t)
	f.apply(edges)
	request := func(caller, text string, hash byte) (ingest.Receipt, error) {
		tx := f.transaction(text)
		tx.Caller, tx.IdempotencyKey, tx.RequestHash = caller, "k1", [32]byte{hash}
		return f.loop.Transact(t.Context(), tx)
	}
	first, err := request("a", "+edge(1, 2)", 1)
	if err != nil || first.Replayed {
		t.Fatalf("%+v, %v", first, err)
	}
	check := func(when string) {
		again, err := request("a", "+edge(1, 2)", 1)
		want := first
		want.Replayed = true
		if err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%s: %+v, %v, want %+v", when, again, err, want)
		}
		if _, err := request("a", "+edge(1, 3)", 2); !errors.Is(err, ingest.ErrIdempotencyMismatch) {
			t.Errorf("%s: another request under the key: %v", when, err)
		}
	}
	check("at once")
	if other, err := request("b", "+edge(1, 3)", 2); err != nil || other.Replayed {
		t.Errorf("another caller's key: %+v, %v", other, err)
	}
	f.restart()
	check("after a restart")
	if got := f.loop.Revision(); got != 3 {
		t.Errorf("revision %d, want 3", got)
	}
}

// hold blocks the loop until the returned function is called, so that what is
// queued meanwhile forms one batch.
func (f *fixture) hold() func() {
	f.t.Helper()
	entered, release := make(chan struct{}), make(chan struct{})
	if err := f.loop.Do(f.t.Context(), func(*ingest.Turn) {
		close(entered)
		<-release
	}); err != nil {
		f.t.Fatal(err)
	}
	<-entered
	return func() { close(release) }
}

func TestOneBatchSharesOneAppendAndKnowsItsOwnKeys(t *testing.T) {
	appends := &countingJournal{}
	f := start(t, func(f *fixture) {
		f.wrap = func(j ingest.Journal) ingest.Journal { appends.Journal = j; return appends }
	})
	f.apply(edges)
	before := appends.count()
	release := f.hold()
	type answer struct {
		r   ingest.Receipt
		err error
	}
	answers := make(chan answer, 4)
	for i := range 4 {
		tx := f.transaction(fmt.Sprintf("+edge(5, %d)", i/2))
		tx.Caller, tx.IdempotencyKey = "a", fmt.Sprint("k", i/2)
		queued := f.loop.Queued()
		go func() {
			r, err := f.loop.Transact(context.Background(), tx)
			answers <- answer{r, err}
		}()
		for f.loop.Queued() == queued {
			runtime.Gosched() // until the goroutine has queued it
		}
	}
	release()
	replayed := 0
	for range 4 {
		a := <-answers
		if a.err != nil {
			t.Fatal(a.err)
		}
		if a.r.Replayed {
			replayed++
		}
	}
	if replayed != 2 || f.loop.Revision() != 3 {
		t.Errorf("%d replayed, revision %d; want 2 and 3", replayed, f.loop.Revision())
	}
	if n := appends.count() - before; n != 1 {
		t.Errorf("%d appends for one batch", n)
	}
}

type countingJournal struct {
	ingest.Journal
	mu   sync.Mutex
	n    int
	fail error
}

func (c *countingJournal) Append(ctx context.Context, graph string, records []*journal.Record) (
	journal.Position, error,
) {
	c.mu.Lock()
	c.n++
	fail := c.fail
	c.mu.Unlock()
	if fail != nil {
		return journal.Position{}, fail
	}
	return c.Journal.Append(ctx, graph, records)
}

func (c *countingJournal) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func TestFailedAppendEndsTheLoopAndAnswersNobody(t *testing.T) {
	broken := errors.New("the disk is gone")
	failing := &countingJournal{}
	f := start(t, func(f *fixture) {
		f.wrap = func(j ingest.Journal) ingest.Journal { failing.Journal = j; return failing }
	})
	f.apply(edges)
	failing.mu.Lock()
	failing.fail = broken
	failing.mu.Unlock()
	_, err := f.loop.Transact(t.Context(), f.transaction("+edge(1, 2)"))
	if !errors.Is(err, ingest.ErrUnknownOutcome) {
		t.Errorf("the writer got %v", err)
	}
	if err := <-f.ended; !errors.Is(err, broken) {
		t.Errorf("Run returned %v", err)
	}
	if published, _ := f.seen.last(); published != 1 {
		t.Errorf("revision %d was published without being durable", published)
	}
	if err := f.loop.Do(t.Context(), func(*ingest.Turn) {}); !errors.Is(err, ingest.ErrClosing) {
		t.Errorf("Do after the failure: %v", err)
	}
	f.ended <- nil // for stop
}

func TestFullQueueIsBusy(t *testing.T) {
	f := start(t, func(f *fixture) { f.queue = 2 })
	f.apply(edges)
	release := f.hold()
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		if err := f.loop.Do(ctx, func(*ingest.Turn) {}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.loop.Transact(ctx, f.transaction("+edge(1, 2)")); !errors.Is(err, ingest.ErrBusy) {
		t.Errorf("got %v", err)
	}
	cancel()
	if err := f.loop.Do(ctx, func(*ingest.Turn) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("Do with an ended context: %v", err)
	}
}

func TestTidyingTakesTurnsWithWriters(t *testing.T) {
	f := start(t)
	f.apply(edges)
	begun := f.seen.tidies(true)
	for f.seen.tidies(true) < begun+2 {
		runtime.Gosched() // until the first tick has begun it
	}
	before := f.seen.tidies(true)
	for i := range 50 {
		f.write(fmt.Sprintf("+edge(7, %d)", i))
	}
	if f.seen.tidies(true) == before {
		t.Error("nothing was tidied while writers came")
	}
	last, now := f.seen.tidies(false), time.Now()
	f.write("+edge(7, 100)")
	f.write("+edge(7, 101)")
	if n := f.seen.tidies(false) - last; n > 2+int(time.Since(now)/time.Second) {
		t.Errorf("Tidy was called %d times after it was done", n)
	}
}

// tidies says whether Tidy has more to do from now on, and returns how often it
// was called.
func (r *recorder) tidies(more bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.untidy = more
	return r.tidied
}

func TestStopFinishesWhatIsQueued(t *testing.T) {
	f := start(t)
	f.apply(edges)
	release := f.hold()
	answered := make(chan error, 1)
	tx := f.transaction("+edge(1, 2)")
	go func() {
		_, err := f.loop.Transact(context.Background(), tx)
		answered <- err
	}()
	for f.loop.Queued() == 0 {
		runtime.Gosched()
	}
	f.cancel()
	release()
	if err := <-answered; err != nil {
		t.Errorf("the queued transaction: %v", err)
	}
	f.stop()
	if _, err := f.loop.Transact(t.Context(), tx); !errors.Is(err, ingest.ErrClosing) {
		t.Errorf("after the end: %v", err)
	}
}

func TestApplyIsDeclarative(t *testing.T) {
	f := start(t)
	f.apply(edges)
	f.write("+edge(400, 1)")
	if again := f.apply(edges); !again.Unchanged || again.Revision != 1 || f.loop.Revision() != 2 {
		t.Errorf("the same text again: %+v, revision %d", again, f.loop.Revision())
	}
	without := "+label(node: int, text: string)\n"
	_, err := f.loop.Apply(t.Context(), without, ingest.ApplyOptions{})
	var loss *engine.DataLossError
	if !errors.As(err, &loss) || loss.Relation != "edge" || loss.Rows != 1 {
		t.Fatalf("dropping facts: %v", err)
	}
	dry, err := f.loop.Apply(t.Context(), without, ingest.ApplyOptions{DryRun: true, AllowLoss: true})
	if err != nil {
		t.Fatal(err)
	}
	if dry.Diff == nil || len(dry.Diff.DroppedRelations) != 1 {
		t.Errorf("dry run: %+v", dry.Diff)
	}
	if f.loop.Revision() != 2 || f.query("?edge(X, Y)") != "[400 1]" {
		t.Error("a refused program or a dry run left a trace")
	}
	if _, err := f.loop.Apply(t.Context(), without, ingest.ApplyOptions{AllowLoss: true}); err != nil {
		t.Fatal(err)
	}
	f.apply(edges) // edge is new again, and empty
	if got := f.query("?edge(X, Y)"); got != "[]" {
		t.Errorf("edge after it was dropped: %s", got)
	}
	f.write("+edge(1, 2)")
	f.restart()
	if got := f.query("?edge(X, Y)"); got != "[1 2]" {
		t.Errorf("edge after the restart: %s", got)
	}
	if got := f.query("?label(X, T)"); got != `[400 "hot"]` {
		t.Errorf("label kept its facts through all of it: %s", got)
	}
}

func TestWrongProgramIsRefusedWithItsPlace(t *testing.T) {
	f := start(t)
	_, err := f.loop.Apply(t.Context(), "+edge(src: int)\nr(X) <- edg(X)\n", ingest.ApplyOptions{})
	var errs parse.Errors
	if !errors.As(err, &errs) || errs[0].Position.Line != 2 {
		t.Errorf("got %v", err)
	}
	if f.loop.Revision() != 0 {
		t.Error("a refused program took a revision")
	}
}

func TestQueryWaitsForARevision(t *testing.T) {
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
	opt := ingest.QueryOptions{
		Program: program, MaxRows: 10, MinRevision: 2, Deadline: time.Now().Add(50 * time.Millisecond),
	}
	if _, err := f.loop.Query(t.Context(), q, nil, opt); !errors.Is(err, ingest.ErrDeadline) {
		t.Errorf("a revision that does not come: %v", err)
	}
	opt.Deadline = time.Now().Add(time.Minute)
	result := make(chan error, 1)
	go func() {
		r, err := f.loop.Query(context.Background(), q, nil, opt)
		if err == nil && (r.Revision < 2 || len(r.Rows) != 2) {
			err = fmt.Errorf("%+v", r)
		}
		result <- err
	}()
	f.write("+edge(1, 2)")
	if err := <-result; err != nil {
		t.Error(err)
	}
}
