package sessiontest

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/heddle-live/heddle/protocol"
)

var errClosed = errors.New("write on a closed stream")

// half is one direction of a stream; the pair's lock guards all of it.
type half struct {
	from *Session
	uni  bool
	twin *half // the other direction, nil for a unidirectional stream
	// backTo is the session that opened the stream, for the half that comes
	// back to it; nil for halves that their opener sends.
	backTo *Session

	cond     *sync.Cond
	accepted bool // a unidirectional stream was handed to the peer's queue
	buf      []byte
	fin      bool
	end      *protocol.StreamError // reset by us, or stopped by the peer; as the sender sees it
	consumed bool                  // the reader saw the end, or stopped
	returned bool                  // the stream's credit went back
	readable error                 // what a stopped reader gets
	deadline time.Time
	timer    *time.Timer
	done     chan struct{}
	doneOver bool
	urgency  uint8
}

func newHalf(from *Session, uni bool) *half {
	h := &half{from: from, uni: uni, done: make(chan struct{}), urgency: 3}
	h.cond = sync.NewCond(&from.link.mu)
	from.live[h] = struct{}{}
	if from.err != nil {
		h.finishDoneLocked()
	}
	return h
}

func (h *half) finishDoneLocked() {
	if !h.doneOver {
		h.doneOver = true
		close(h.done)
	}
}

// roomLocked returns how many bytes may be queued now.
func (h *half) roomLocked() int {
	grant := h.from.peer.config
	return max(0, min(grant.StreamWindow-len(h.buf), grant.SessionWindow-h.from.unread))
}

func (h *half) writableLocked() error {
	switch {
	case h.from.err != nil:
		return h.from.err
	case h.end != nil:
		return h.end
	case h.fin:
		return errClosed
	}
	return nil
}

func (h *half) queueLocked(p []byte) {
	h.announceLocked()
	h.buf = append(h.buf, p...)
	h.from.unread += len(p)
	h.from.sent += uint64(len(p))
	h.cond.Broadcast()
}

// announceLocked lets the peer accept a unidirectional stream.
func (h *half) announceLocked() {
	if h.uni && !h.accepted {
		h.accepted = true
		h.from.peer.uni = append(h.from.peer.uni, h)
		h.from.peer.accepts.Broadcast()
	}
}

// takeLocked removes n bytes from the buffer and wakes writers that waited.
func (h *half) takeLocked(n int) {
	h.buf = h.buf[n:]
	if len(h.buf) == 0 {
		h.buf = nil
	}
	h.from.unread -= n
	if n > 0 {
		h.cond.Broadcast()
		// The session's window is shared, so any writer may have got room.
		for other := range h.from.blocked {
			other.cond.Broadcast()
		}
		clear(h.from.blocked)
	}
}

// settleLocked returns the stream's credit when the accepting side has seen the
// end of what came and has ended what it sends.
func (h *half) settleLocked() {
	opener, out := h.from, h
	if h.backTo != nil {
		opener, out = h.backTo, h.twin
	}
	backEnded := out.twin == nil || out.twin.fin || out.twin.end != nil
	if out.returned || !out.consumed || !backEnded {
		return
	}
	out.returned = true
	if out.uni {
		opener.uniOpen--
	} else {
		opener.bidiOpen--
	}
	opener.credit.Broadcast()
}

func (h *half) endLocked(e *protocol.StreamError) {
	h.end = e
	h.takeLocked(len(h.buf))
	h.finishDoneLocked()
	delete(h.from.live, h)
	h.cond.Broadcast()
}

// sender is the sending side of a half.
type sender struct{ h *half }

func (s sender) Write(p []byte) (int, error) {
	h := s.h
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	n := 0
	for {
		if err := h.writableLocked(); err != nil {
			return n, err
		}
		step := min(h.roomLocked(), len(p)-n)
		if step > 0 {
			h.queueLocked(p[n : n+step])
			n += step
		}
		if n == len(p) {
			return n, nil
		}
		h.from.blocked[h] = struct{}{}
		h.cond.Wait()
	}
}

func (s sender) TryWrite(p []byte) error {
	h := s.h
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	if err := h.writableLocked(); err != nil {
		return err
	}
	if len(p) > h.roomLocked() {
		return protocol.ErrWouldBlock
	}
	h.queueLocked(p)
	return nil
}

func (s sender) Close() error {
	h := s.h
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	if err := h.writableLocked(); err != nil {
		return err
	}
	h.announceLocked()
	h.fin = true
	h.settleLocked()
	h.cond.Broadcast()
	return nil
}

func (s sender) Reset(code protocol.StreamCode) {
	h := s.h
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	if h.end != nil || h.from.err != nil || h.consumed {
		return
	}
	h.endLocked(&protocol.StreamError{Code: code})
	if h.uni && !h.accepted {
		// The peer never heard of the stream: nobody there ends it.
		h.consumed = true
	}
	h.settleLocked()
}

func (s sender) SetPriority(urgency uint8) {
	s.h.from.link.mu.Lock()
	defer s.h.from.link.mu.Unlock()
	s.h.urgency = urgency
}

func (s sender) Done() <-chan struct{} { return s.h.done }

// receiver is the receiving side of a half.
type receiver struct{ h *half }

func (r receiver) Read(p []byte) (int, error) {
	h := r.h
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	for {
		switch {
		case h.readable != nil:
			return 0, h.readable
		case h.from.peer.err != nil:
			return 0, h.from.peer.err
		case h.end != nil:
			h.consumed = true
			h.settleLocked()
			return 0, &protocol.StreamError{Code: h.end.Code, Remote: true}
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.takeLocked(n)
			return n, nil
		case h.fin:
			h.consumed = true
			h.finishDoneLocked()
			delete(h.from.live, h)
			h.settleLocked()
			return 0, io.EOF
		case !h.deadline.IsZero() && !time.Now().Before(h.deadline):
			return 0, os.ErrDeadlineExceeded
		}
		h.cond.Wait()
	}
}

func (r receiver) Stop(code protocol.StreamCode) {
	h := r.h
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	if h.consumed || h.from.err != nil {
		return
	}
	h.consumed = true
	h.readable = &protocol.StreamError{Code: code}
	if h.end == nil {
		h.endLocked(&protocol.StreamError{Code: code, Remote: true})
	}
	h.settleLocked()
	h.cond.Broadcast()
}

func (r receiver) SetReadDeadline(t time.Time) error {
	h := r.h
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	h.deadline = t
	if !t.IsZero() {
		h.timer = time.AfterFunc(time.Until(t), func() {
			h.from.link.mu.Lock()
			defer h.from.link.mu.Unlock()
			h.cond.Broadcast()
		})
	}
	h.cond.Broadcast()
	return nil
}

// stream is both directions, as one side sees them.
type stream struct {
	sender
	receiver
}

// Urgency returns what the sender of a received stream has set as its priority,
// 3 if nothing.
func Urgency(s protocol.ReceiveStream) uint8 {
	var h *half
	switch s := s.(type) {
	case receiver:
		h = s.h
	case *stream:
		h = s.receiver.h
	default:
		panic("sessiontest: not a stream of this package")
	}
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	return h.urgency
}
