package quic

import (
	"sync"
	"sync/atomic"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"github.com/heddle-live/heddle/protocol"
)

const (
	// backlogBytesMax bounds what a session has accepted and not sent. The QUIC
	// layer itself takes whatever the peer's windows and streams allow, and a
	// peer may grant without limit and acknowledge next to nothing.
	backlogBytesMax = 2 << 20
	// backlogChunkBytes is how much of a large Write is under way at once.
	backlogChunkBytes = 64 << 10
	// backlogPoll is how often blocked calls look again, backlogPollSlow how often
	// when that has been in vain for backlogPatience.
	backlogPoll     = 10 * time.Millisecond
	backlogPollSlow = 100 * time.Millisecond
	// backlogPatience is how long a backlog is full before it is taken for wrong.
	backlogPatience = time.Second
	// backlogTimeout ends a session whose backlog was full for so long.
	backlogTimeout = idleTimeout
)

// backlog estimates the bytes that were accepted and are not yet sent, from
// what the connection counts: packet overhead makes it err to the low side.
//
// It also errs to the high side: what a stream held when its peer stopped it is
// never sent, and the QUIC layer does not tell how much that was. A backlog that
// stays full is therefore emptied, once for each time that the connection has
// sent as much as a whole one: a peer that takes nothing gains one in all.
type backlog struct {
	pending atomic.Int64

	mu        sync.Mutex
	sent      uint64        // of the connection, when pending was last corrected
	fullSince time.Time     // zero: not full when last looked at
	emptied   bool          // it was
	emptiedAt uint64        // sent, when it was emptied last
	next      chan struct{} // closed when it is time to look again; nil: no timer
}

func (b *backlog) add(n int) { b.pending.Add(int64(n)) }

// full reports whether nothing should be accepted now, and for how long that
// has been so. The statistics are asked for only when it matters.
func (b *backlog) full(
	now time.Time, stats func() quicgo.ConnectionStats,
) (time.Duration, bool) {
	if b.pending.Load() < backlogBytesMax {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	st := stats()
	// Lost bytes are sent again.
	sent := st.BytesSent - min(st.BytesLost, st.BytesSent)
	if sent > b.sent {
		left := b.pending.Load() - int64(sent-b.sent)
		b.pending.Store(max(left, 0)) // an add in between may be lost: low side
		b.sent = sent
	}
	if b.pending.Load() < backlogBytesMax {
		b.fullSince = time.Time{}
		return 0, false
	}
	if b.fullSince.IsZero() {
		b.fullSince = now
	}
	since := now.Sub(b.fullSince)
	if since >= backlogPatience && (!b.emptied || b.sent-b.emptiedAt >= backlogBytesMax) {
		b.emptied, b.emptiedAt = true, b.sent
		b.fullSince = time.Time{}
		b.pending.Store(0)
		return 0, false
	}
	return since, true
}

// tick returns a channel that is closed when it is time to look again. All who
// wait share it and its timer.
func (b *backlog) tick(now time.Time) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		next := make(chan struct{})
		b.next = next
		period := backlogPoll
		if !b.fullSince.IsZero() && now.Sub(b.fullSince) > backlogPatience {
			period = backlogPollSlow
		}
		time.AfterFunc(period, func() {
			b.mu.Lock()
			b.next = nil
			b.mu.Unlock()
			close(next)
		})
	}
	return b.next
}

// roomy reports whether the session accepts more now. It ends a session that
// has not for too long.
func (s *session) roomy() bool {
	if s.backlog.pending.Load() < backlogBytesMax {
		return true
	}
	since, full := s.backlog.full(time.Now(), s.conn.ConnectionStats)
	if full && since > backlogTimeout {
		_ = s.CloseWithError(protocol.SessionInternal, "peer takes no data")
	}
	return !full
}

// awaitRoom waits until the session accepts more, or done or the session ends.
func (s *session) awaitRoom(done <-chan struct{}) {
	for !s.roomy() {
		select {
		case <-s.backlog.tick(time.Now()):
		case <-done:
			return
		case <-s.ctx.Done():
			return
		}
	}
}
