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
	// backlogPoll is how often a blocked call looks again.
	backlogPoll = 10 * time.Millisecond
	// backlogTimeout ends a session whose backlog was full for so long.
	backlogTimeout = idleTimeout
)

// backlog estimates the bytes that were accepted and are not yet sent, from
// what the connection counts: packet overhead makes it err to the low side.
type backlog struct {
	pending atomic.Int64

	mu        sync.Mutex
	sent      uint64    // of the connection, when pending was last corrected
	fullSince time.Time // zero: not full when last looked at
}

func (b *backlog) add(n int) { b.pending.Add(int64(n)) }

// full reports whether nothing should be accepted now, and for how long that
// has been so. The statistics are asked for only when it matters.
func (b *backlog) full(stats func() quicgo.ConnectionStats) (time.Duration, bool) {
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
		b.fullSince = time.Now()
	}
	return time.Since(b.fullSince), true
}

// roomy reports whether the session accepts more now. It ends a session that
// has not for too long.
func (s *session) roomy() bool {
	since, full := s.backlog.full(s.conn.ConnectionStats)
	if full && since > backlogTimeout {
		_ = s.CloseWithError(protocol.SessionInternal, "peer takes no data")
	}
	return !full
}

// awaitRoom waits until the session accepts more, or done or the session ends.
func (s *session) awaitRoom(done <-chan struct{}) {
	if s.roomy() {
		return
	}
	t := time.NewTicker(backlogPoll)
	defer t.Stop()
	for !s.roomy() {
		select {
		case <-t.C:
		case <-done:
			return
		case <-s.ctx.Done():
			return
		}
	}
}
