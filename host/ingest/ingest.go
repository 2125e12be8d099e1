// Package ingest is a graph's single write loop: it takes all waiting
// transactions, checks and numbers them, applies them to the engine, makes them
// durable with one append, and only then has them published and answers their
// writers. The loop alone touches the engine; reads and watches run in it
// between two batches. It starts no goroutine: package host runs Loop.Run and
// waits for it. It never learns who views what (host/views) nor how the log is
// stored (host/journal/pebble).
package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/host/journal"
)

// Errors that callers branch on.
var (
	// ErrBusy: the queue is full. Nothing was written; try again later.
	ErrBusy = errors.New("the graph's queue is full")
	// ErrClosing: the loop ends or has ended. Nothing was written.
	ErrClosing = errors.New("the graph is closing")
	// ErrUnknownOutcome: the caller left, or the loop failed, after the
	// transaction was taken; it may be durable or not.
	ErrUnknownOutcome = errors.New("the outcome is unknown")
	// ErrReadOnly: too little disk space is left. Nothing was written.
	ErrReadOnly = errors.New("the graph is read-only: too little disk space is left")
	// ErrProgramChanged: what was asked was checked against a program that is no
	// longer in force. Nothing was done; check again.
	ErrProgramChanged = errors.New("the program changed meanwhile")
	// ErrPrecondition: the graph is not at the revision that the transaction expects.
	// Nothing was written.
	ErrPrecondition = errors.New("the graph is at another revision")
	// ErrIdempotencyMismatch: the key was used with another request.
	ErrIdempotencyMismatch = errors.New("the Idempotency-Key was used with another request")
	// ErrTooLarge: a value or the whole is over a limit of the journal. Nothing
	// was written.
	ErrTooLarge = journal.ErrTooLarge
	// ErrDeadline: the caller's time ran out while waiting or computing.
	ErrDeadline = errors.New("the deadline passed")
)

// Journal is the part of the log that a loop needs. See journal.Journal.
type Journal interface {
	Open(ctx context.Context, graph string, now time.Time) (journal.Position, error)
	NextOpening(ctx context.Context, graph string, now time.Time) (journal.Position, error)
	Program(ctx context.Context, graph string) ([]byte, uint64, error)
	State(ctx context.Context, graph string, visit func(journal.Mutation) error) ([]byte, error)
	Append(ctx context.Context, graph string, records []*journal.Record) (journal.Position, error)
	Idempotent(ctx context.Context, graph, caller, key string) (*journal.Receipt, error)
	Trim(ctx context.Context, graph string, before uint64) error
}

// Publisher turns what changed into what viewers read. All methods are called
// by the loop, one at a time, after what they tell is durable; they may use the
// engine until they return and must not wait.
type Publisher interface {
	// Publish is called once for each batch: turn.Engine.Changes has the rows.
	Publish(turn *Turn)
	// Deployed is called when a program came into force, also at the start,
	// before the Publish of that commit. diff is nil at the start.
	Deployed(turn *Turn, diff *engine.Diff)
	// Tick is called about once a second.
	Tick(turn *Turn, now time.Time)
	// Tidy is called after each Tick and then between two batches as long as it
	// returns true. It does what can wait, a small piece at a time, so that no
	// writer waits long for it.
	Tidy(turn *Turn, now time.Time) (more bool)
}

// Turn is what the loop lends to a task or to the Publisher; it is valid until
// they return.
type Turn struct {
	Engine   *engine.Engine
	Revision uint64 // newest durable one, which is what the engine holds
	Schema   uint64 // number of the program in force; 0 before the first
	Epoch    string // of this opening of the log
	NowMilli int64  // milliseconds since 1970, when the turn began

	loop *Loop
	work context.Context // of the loop's present piece of work; it never ends early
}

// Sequence takes the graph's next publication number and returns it as a group
// sequence, which no track of this graph has seen before and which stays below
// 2^53. A full publication number begins the log's next opening; if that fails
// the loop ends and the process with it.
func (t *Turn) Sequence() uint64 { return t.loop.nextSequence(t.work) }

// Nanos reads the loop's monotonic clock.
func (t *Turn) Nanos() int64 { return t.loop.cfg.Nanos() }

// CountEngine adds the nanoseconds that a Publisher spent inside the engine to
// those of the commit that is being published.
func (t *Turn) CountEngine(nanos int64) { t.loop.engineNanos += nanos }

// Metrics are a loop's counters. They may be read at any time.
type Metrics struct {
	Transactions   atomic.Uint64 // durable ones
	Refused        atomic.Uint64 // refused for their content
	Replayed       atomic.Uint64 // answered from an earlier receipt
	Commits        atomic.Uint64 // batches
	Queries        atomic.Uint64
	EngineNanos    atomic.Uint64 // time inside the engine for commits
	CommitSeconds  func(float64) // observes a batch from its take to its answer; may be nil
	JournalSeconds func(float64) // observes an append; may be nil
}

// Config is what a Loop is made of. All fields but PinAge, Limits, Metrics and
// FreeBytes are required.
type Config struct {
	Graph     string
	Journal   Journal
	Publisher Publisher
	// Now is the wall clock, Nanos a monotonic one.
	Now   func() time.Time
	Nanos func() int64
	// QueueTransactions is how many transactions and queries wait at most; more
	// are refused with ErrBusy.
	QueueTransactions int
	// BatchTransactions is how many share one append at most.
	BatchTransactions int
	// JournalRecords is how many of the newest records, and of the receipts
	// of Idempotency-Keys, are kept.
	JournalRecords uint64
	// QuerySteps bounds the engine's work for one query, ConditionSteps that for each
	// condition of a transaction.
	QuerySteps, ConditionSteps uint64
	// PinAge is how long a query that takes slices may take, and for how long rows that
	// are deleted meanwhile stay in memory. 0: no limit.
	PinAge time.Duration
	// Limits bounds what rules may derive. What is in the log already is not bounded.
	Limits engine.Limits
	// FreeBytes reports the free disk space, asked once a second; below
	// FreeBytesFloor the graph is read-only. Nil: never.
	FreeBytes      func() (uint64, error)
	FreeBytesFloor uint64
	Metrics        *Metrics
	Logger         *slog.Logger
}

// Loop is one graph's write loop. Run drives it; every other method may be
// called from any goroutine while it runs.
type Loop struct {
	cfg     Config
	engine  *engine.Engine
	queue   chan item
	stopped chan struct{} // closed when Run has returned

	closing  atomic.Bool
	readOnly atomic.Bool
	program  atomic.Pointer[program] // in force
	revision atomic.Uint64           // newest durable and published one

	// mu guards waiting: callers that wait for a revision.
	mu      sync.Mutex
	waiting []*waiter

	// The rest belongs to the goroutine of Run.
	position    journal.Position
	epoch       string
	publication uint64
	trimmed     uint64
	readings    []*reading // queries that take slices, the next one first
	failure     error
	turn        Turn
	batch       []item
	staged      []*pending        // held by the engine, not by the journal yet
	records     []*journal.Record // of the staged, without repetitions
	tuples      []byte
	receipts    map[receiptKey]int // staged transactions with an idempotency key
	began       int64
	looked      int64 // at the disk, by Nanos
	engineNanos int64
}

// program is a checked program in force with the numbers that go with it.
// Immutable.
type program struct {
	checked   *analysis.Program
	revision  uint64 // of the commit that applied it
	schema    uint64
	relations map[string]uint32 // the journal's relation numbers
	next      uint32            // the next number to give away
	// orders has the base relations whose facts stand in the journal with another order
	// of columns: for each cell there its column.
	orders map[string][]int
}

// item is one entry of the queue: a transaction or a task.
type item struct {
	tx   *pending
	task func(*Turn)
}

// progress tells a caller what became of its item.
type progress struct {
	begun atomic.Bool // the loop began to work on it
	done  chan struct{}
}

// Revision returns the newest revision that is durable and published.
func (l *Loop) Revision() uint64 { return l.revision.Load() }

// Program returns the program in force, immutable: an empty one before the
// first apply.
func (l *Loop) Program() *analysis.Program { return l.program.Load().checked }

// ProgramRevision returns the program in force with the revision of the commit
// that applied it and its schema number, both 0 before the first apply.
func (l *Loop) ProgramRevision() (p *analysis.Program, revision, schema uint64) {
	in := l.program.Load()
	return in.checked, in.revision, in.schema
}

// Queued returns how many transactions and tasks wait for the loop.
func (l *Loop) Queued() int { return len(l.queue) }

// ReadOnly reports whether low disk space refuses writes at the moment.
func (l *Loop) ReadOnly() bool { return l.readOnly.Load() }

// Do runs task in the loop between two batches. It waits for room in the queue,
// not for the task, and returns ErrClosing if the loop ends before it took the
// task, or the context's cause. A task that was queued may still be dropped when
// the loop ends on a failure.
func (l *Loop) Do(ctx context.Context, task func(*Turn)) error {
	if l.closing.Load() {
		return ErrClosing
	}
	select {
	case l.queue <- item{task: task}:
		return nil
	case <-l.stopped:
		return ErrClosing
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// try queues an item without waiting.
func (l *Loop) try(it item) error {
	if l.closing.Load() {
		return ErrClosing
	}
	select {
	case l.queue <- it:
		return nil
	default:
		return ErrBusy
	}
}

// Call runs task in the loop between two batches and waits for its end. It
// returns ErrBusy if the queue is full, ErrClosing if the task did not and will
// not run, and ErrUnknownOutcome if the caller or the loop left first; the task may
// still run then.
func (l *Loop) Call(ctx context.Context, task func(*Turn)) error {
	p := progress{done: make(chan struct{})}
	if err := l.try(item{task: func(t *Turn) {
		p.begun.Store(true)
		defer close(p.done)
		task(t)
	}}); err != nil {
		return err
	}
	return l.await(ctx, &p)
}

func (l *Loop) await(ctx context.Context, p *progress) error {
	ended := false
	select {
	case <-p.done:
		return nil
	case <-l.stopped:
		ended = true
	case <-ctx.Done():
	}
	select {
	case <-p.done: // both were ready
		return nil
	default:
	}
	if ended && !p.begun.Load() {
		return ErrClosing // and never will
	}
	return ErrUnknownOutcome
}
