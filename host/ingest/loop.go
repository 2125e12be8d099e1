package ingest

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-live/heddle/host/journal"
)

// tickPeriod is how often the publisher is told the time, may begin to tidy up,
// and the disk is looked at.
const tickPeriod = time.Second

// lookPeriod is how old the last look at the disk may be when a batch begins: it
// fills fast, and a batch that the journal has no room for ends the process.
const lookPeriod = 100 * time.Millisecond

// trimStride is by how many records the log may exceed its limit before the
// oldest are trimmed, so that trimming is rare.
const trimStride = 4096

// tuplesBytesKept bounds the buffer for the tuples of a batch that is kept for
// the next: a load needs far more than the writes after it.
const tuplesBytesKept = 1 << 20

// batchTupleBytes is the size of its tuples above which a batch takes no further
// transaction: what shares one append is held in memory several times over.
const batchTupleBytes = 16 << 20

// Run takes batches until ctx ends, then finishes what is queued and returns
// nil. It returns an error if the log failed: memory is ahead of the disk then,
// nobody was answered, and the process must end and recover.
func (l *Loop) Run(ctx context.Context) error {
	defer close(l.stopped)
	defer l.engine.ClosePins()
	// A batch is durable for all or for none: no end of a caller, nor of ctx,
	// interrupts the work on it.
	work := context.WithoutCancel(ctx)
	tick := time.NewTicker(tickPeriod)
	defer tick.Stop()
	always := make(chan struct{})
	close(always)
	var untidy chan struct{}  // always while the publisher has more to tidy, else nil
	var slicing chan struct{} // always while queries take slices, else nil
	for l.failure == nil {
		// Ready cases take turns by chance: neither writers nor tidying starve.
		select {
		case <-ctx.Done():
			l.closing.Store(true)
			l.drain(work)
			return l.failure
		case now := <-tick.C:
			l.tick(work, now)
			untidy = always
		case <-untidy:
			if !l.tidy(work) {
				untidy = nil
			}
		case <-slicing:
			if !l.slice() {
				slicing = nil
			}
		case it := <-l.queue:
			l.take(work, it)
		}
		if len(l.readings) > 0 {
			slicing = always
		}
	}
	l.closing.Store(true)
	return l.failure
}

// drain handles what was queued before closing was set.
func (l *Loop) drain(ctx context.Context) {
	for l.failure == nil {
		select {
		case it := <-l.queue:
			l.take(ctx, it)
		default:
			return
		}
	}
}

// take gathers what else waits behind first, up to the batch limit, and works
// through it in order. Transactions that follow each other share one append.
func (l *Loop) take(ctx context.Context, first item) {
	l.began = l.cfg.Nanos()
	l.turn.NowMilli = l.cfg.Now().UnixMilli()
	if l.began-l.looked >= int64(lookPeriod) {
		l.lookAtDisk()
	}
	l.batch = append(l.batch[:0], first)
fill:
	for len(l.batch) < l.cfg.BatchTransactions {
		select {
		case it := <-l.queue:
			l.batch = append(l.batch, it)
		default:
			break fill
		}
	}
	for i := range l.batch {
		it := l.batch[i]
		l.batch[i] = item{}
		if l.failure != nil {
			continue // nothing of it was begun, which its caller sees by itself
		}
		if it.tx != nil {
			l.stage(ctx, it.tx)
			if len(l.tuples) >= batchTupleBytes {
				l.flush(ctx)
			}
			continue
		}
		l.flush(ctx)
		if l.failure == nil {
			it.task(l.lend(ctx))
		}
	}
	l.flush(ctx)
}

// lend returns the loop's turn, brought up to date.
func (l *Loop) lend(ctx context.Context) *Turn {
	t := &l.turn
	t.Engine, t.loop, t.work, t.Epoch = l.engine, l, ctx, l.epoch
	t.Revision, t.Schema = l.revision.Load(), l.program.Load().schema
	return t
}

// flush makes the staged transactions durable, publishes them and answers.
func (l *Loop) flush(ctx context.Context) {
	if len(l.staged) == 0 {
		return
	}
	if l.append(ctx) {
		l.cfg.Publisher.Publish(l.lend(ctx))
		l.answer()
		l.observe()
	}
	clear(l.staged)
	clear(l.records)
	l.staged, l.records = l.staged[:0], l.records[:0]
	l.engineNanos = 0
	clear(l.receipts)
}

// append writes the staged records and moves the head. It
// returns false, with failure set, if the log failed.
func (l *Loop) append(ctx context.Context) bool {
	before := l.cfg.Nanos()
	position, err := l.cfg.Journal.Append(ctx, l.cfg.Graph, l.records)
	if err != nil {
		l.failure = fmt.Errorf("graph %s: append to the journal: %w", l.cfg.Graph, err)
		return false
	}
	if m := l.cfg.Metrics; m != nil && m.JournalSeconds != nil {
		m.JournalSeconds(float64(l.cfg.Nanos()-before) / 1e9)
	}
	l.setPosition(position)
	if l.tuples = l.tuples[:0]; cap(l.tuples) > tuplesBytesKept {
		l.tuples = nil
	}
	return true
}

func (l *Loop) setPosition(p journal.Position) {
	l.position = p
	l.revision.Store(p.Revision)
	l.wake(p.Revision)
}

func (l *Loop) observe() {
	m := l.cfg.Metrics
	if m == nil {
		return
	}
	m.Commits.Add(1)
	m.Transactions.Add(uint64(len(l.records)))
	m.EngineNanos.Add(uint64(l.engineNanos))
	if m.CommitSeconds != nil {
		m.CommitSeconds(float64(l.cfg.Nanos()-l.began) / 1e9)
	}
}

// tidy has the publisher do a piece of what can wait, and reports whether there
// is more.
func (l *Loop) tidy(ctx context.Context) (more bool) {
	now := l.cfg.Now()
	l.turn.NowMilli = now.UnixMilli()
	return l.cfg.Publisher.Tidy(l.lend(ctx), now)
}

// tick tells the publisher the time, looks at the disk and trims the log.
func (l *Loop) tick(ctx context.Context, now time.Time) {
	l.turn.NowMilli = l.cfg.Now().UnixMilli()
	l.cfg.Publisher.Tick(l.lend(ctx), now)
	l.lookAtDisk()
	l.tickClock(ctx)
	keep := l.cfg.JournalRecords
	if head := l.position.Revision; head > keep && head-keep > l.trimmed+trimStride {
		if err := l.cfg.Journal.Trim(ctx, l.cfg.Graph, head-keep+1); err != nil {
			l.cfg.Logger.Error("trim the journal", "graph", l.cfg.Graph, "err", err)
			return
		}
		l.trimmed = head - keep
	}
}

func (l *Loop) lookAtDisk() {
	l.looked = l.cfg.Nanos()
	if l.cfg.FreeBytes == nil {
		return
	}
	free, err := l.cfg.FreeBytes()
	if err != nil {
		l.cfg.Logger.Error("look at the free disk space", "graph", l.cfg.Graph, "err", err)
		return
	}
	low := free < l.cfg.FreeBytesFloor
	if l.readOnly.Swap(low) != low {
		l.cfg.Logger.Warn("read-only by free disk space", "graph", l.cfg.Graph,
			"read_only", low, "free_bytes", free, "floor_bytes", l.cfg.FreeBytesFloor)
	}
}

// nextSequence counts publications in the present opening.
func (l *Loop) nextSequence(ctx context.Context) uint64 {
	l.publication++
	sequence, ok := journal.Sequence(l.position.Opening, l.publication)
	if ok {
		return sequence
	}
	position, err := l.cfg.Journal.NextOpening(ctx, l.cfg.Graph, l.cfg.Now())
	if err != nil {
		l.failure = fmt.Errorf("graph %s: begin the log's next opening: %w", l.cfg.Graph, err)
		return sequence
	}
	l.position, l.epoch, l.publication = position, position.Epoch.String(), 1
	l.turn.Epoch = l.epoch
	sequence, _ = journal.Sequence(position.Opening, 1)
	return sequence
}

// waiter is a caller that waits for a revision.
type waiter struct {
	revision uint64
	reached  chan struct{}
}

// waitRevision returns when the graph has published revision, with the
// context's cause if that comes first, or with ErrClosing.
func (l *Loop) waitRevision(ctx context.Context, revision uint64) error {
	if l.revision.Load() >= revision {
		return nil
	}
	w := &waiter{revision: revision, reached: make(chan struct{})}
	l.mu.Lock()
	if len(l.waiting) >= l.cfg.QueueTransactions {
		l.mu.Unlock()
		return ErrBusy
	}
	l.waiting = append(l.waiting, w)
	l.mu.Unlock()
	if l.revision.Load() >= revision {
		l.wake(l.revision.Load()) // it came between the two looks
	}
	defer l.forget(w)
	select {
	case <-w.reached:
		return nil
	case <-l.stopped:
		return ErrClosing
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Loop) wake(revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.waiting[:0]
	for _, w := range l.waiting {
		if w.revision <= revision {
			close(w.reached)
		} else {
			kept = append(kept, w)
		}
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
}

func (l *Loop) forget(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.waiting {
		if other == w {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return
		}
	}
}
