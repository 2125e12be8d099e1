package qmux

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/heddle-live/heddle/protocol"
)

// stream implements protocol.Stream; of a unidirectional one, one half is over
// from the start. The session's mutex guards all of it.
type stream struct {
	session *session
	id      uint64

	readable      sync.Cond
	buffer        buffer
	received      uint64
	receiveMax    uint64
	receiveWindow uint64
	consumed      uint64
	receivedAll   bool // FIN or RESET arrived, or there is no such half
	stopped       bool // we do not want more
	creditDue     bool
	receiveErr    error
	deadline      time.Time
	deadlineTimer *time.Timer

	writable sync.Cond
	sent     uint64
	sendMax  uint64
	sentAll  bool // FIN or RESET is queued, or there is no such half
	sendErr  error
	done     chan struct{}

	// The last frame in the queue may be ours: then a FIN is a bit of it.
	lastFrame      int
	lastGeneration uint64

	accepted bool
	settled  bool
}

// newStreamLocked makes the stream id with the windows of its kind.
func (s *session) newStreamLocked(id uint64) *stream {
	st := &stream{session: s, id: id, done: make(chan struct{})}
	st.readable.L = &s.mu
	st.writable.L = &s.mu
	ours, isUni := s.isOurs(id), direction(id) == uni
	switch {
	case isUni && ours:
		st.sendMax = s.peer.uni
		st.receivedAll = true
	case isUni:
		st.receiveWindow = s.ours.uni
		st.sentAll = true
		close(st.done)
	case ours:
		st.sendMax = s.peer.bidiRemote
		st.receiveWindow = s.ours.bidiLocal
	default:
		st.sendMax = s.peer.bidiLocal
		st.receiveWindow = s.ours.bidiRemote
	}
	st.receiveMax = st.receiveWindow
	s.streams[id] = st
	return st
}

// overLocked reports whether nothing can happen on either half: a receiving
// half is over only when its reader has taken everything.
func (st *stream) overLocked() bool {
	return st.sentAll && st.receivedAll && st.buffer.len() == 0
}

func (st *stream) endWithSessionLocked() {
	if !st.sentAll {
		st.endSendingLocked()
	}
	st.buffer.discard()
	st.stopTimerLocked()
	st.readable.Broadcast()
}

// stopTimerLocked lets go of the timer, which holds the stream and its session.
func (st *stream) stopTimerLocked() {
	if st.deadlineTimer != nil {
		st.deadlineTimer.Stop()
		st.deadlineTimer = nil
	}
}

func (st *stream) endSendingLocked() {
	st.sentAll = true
	close(st.done)
	st.writable.Broadcast()
}

// Read implements protocol.ReceiveStream.
func (st *stream) Read(p []byte) (int, error) {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.err != nil {
			return 0, s.err
		}
		if st.receiveErr != nil {
			return 0, st.receiveErr
		}
		if st.buffer.len() > 0 {
			break
		}
		if st.receivedAll {
			return 0, io.EOF
		}
		if len(p) == 0 {
			return 0, nil
		}
		if !st.deadline.IsZero() && !time.Now().Before(st.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		st.readable.Wait()
	}
	n := st.buffer.read(p)
	st.consumed += uint64(n)
	s.consumedLocked(n)
	if !st.receivedAll && st.receiveMax-st.consumed <= st.receiveWindow/2 {
		st.receiveMax = st.consumed + st.receiveWindow
		if !st.creditDue {
			st.creditDue = true
			s.credit = append(s.credit, st)
			s.signal()
		}
	}
	s.settleLocked(st)
	return n, nil
}

// Stop implements protocol.ReceiveStream.
func (st *stream) Stop(code protocol.StreamCode) {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.stopped || s.err != nil || (st.receivedAll && st.buffer.len() == 0) {
		return
	}
	st.stopped = true
	if st.receiveErr == nil {
		st.receiveErr = &protocol.StreamError{Code: code}
	}
	s.consumedLocked(st.buffer.discard())
	st.readable.Broadcast()
	if !st.receivedAll {
		s.queueControlLocked(frameStop, st.id, uint64(code))
	}
	s.settleLocked(st)
}

// SetReadDeadline implements protocol.ReceiveStream.
func (st *stream) SetReadDeadline(t time.Time) error {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	st.deadline = t
	st.stopTimerLocked()
	if !t.IsZero() && s.err == nil && !st.overLocked() {
		st.deadlineTimer = time.AfterFunc(time.Until(t), func() {
			s.mu.Lock()
			st.readable.Broadcast()
			s.mu.Unlock()
		})
	}
	return nil
}

// Write implements protocol.SendStream. It waits for credit and for room in the
// queue.
func (st *stream) Write(p []byte) (int, error) {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	written := 0
	for {
		if err := st.writeErrLocked(); err != nil {
			return written, err
		}
		if written == len(p) {
			return written, nil
		}
		n := uint64(len(p) - written)
		n = min(n, s.sentDataMax-s.sentData, st.sendMax-st.sent, streamPayloadMax)
		n = min(n, uint64(max(s.roomLocked()-streamFrameHeaderMax, 0)))
		if n == 0 {
			s.blocked[st] = struct{}{}
			st.writable.Wait()
			continue
		}
		st.queueLocked(p[written : written+int(n)])
		written += int(n)
	}
}

// TryWrite implements protocol.SendStream.
func (st *stream) TryWrite(p []byte) error {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := st.writeErrLocked(); err != nil {
		return err
	}
	frames := (len(p) + streamPayloadMax - 1) / streamPayloadMax
	n := uint64(len(p))
	if n > s.sentDataMax-s.sentData || n > st.sendMax-st.sent ||
		len(p)+frames*streamFrameHeaderMax > s.roomLocked() {
		return protocol.ErrWouldBlock
	}
	for len(p) > 0 {
		chunk := p[:min(len(p), streamPayloadMax)]
		st.queueLocked(chunk)
		p = p[len(chunk):]
	}
	return nil
}

func (st *stream) writeErrLocked() error {
	switch {
	case st.session.err != nil:
		return st.session.err
	case st.sendErr != nil:
		return st.sendErr
	case st.sentAll:
		return errWriteAfterClose
	}
	return nil
}

// queueLocked queues one STREAM frame with p.
func (st *stream) queueLocked(p []byte) {
	s := st.session
	st.lastFrame, st.lastGeneration = len(s.queue.bytes), s.queue.generation
	s.queue.bytes = appendStreamHeader(s.queue.bytes, st.id, st.sent, len(p), false)
	s.queue.bytes = append(s.queue.bytes, p...)
	s.queue.endFrame()
	st.sent += uint64(len(p))
	s.sentData += uint64(len(p))
	s.signal()
}

// Close implements protocol.SendStream. Done is closed by it: what is queued
// arrives, or the session ends.
func (st *stream) Close() error {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if st.sentAll {
		return st.sendErr
	}
	st.endSendingLocked()
	if st.sent > 0 && st.lastGeneration == s.queue.generation {
		s.queue.bytes[st.lastFrame] |= streamFIN
	} else {
		s.queue.bytes = appendStreamHeader(s.queue.bytes, st.id, st.sent, 0, true)
		s.queue.endFrame()
		s.signal()
	}
	s.settleLocked(st)
	return nil
}

// Reset implements protocol.SendStream.
func (st *stream) Reset(code protocol.StreamCode) {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || st.sentAll {
		return
	}
	st.sendErr = &protocol.StreamError{Code: code}
	st.endSendingLocked()
	s.queueControlLocked(frameReset, st.id, uint64(code), st.sent)
	s.settleLocked(st)
}

// SetPriority implements protocol.SendStream; a WebSocket is one stream and has
// none.
func (st *stream) SetPriority(uint8) {}

// Done implements protocol.SendStream.
func (st *stream) Done() <-chan struct{} { return st.done }

// buffer holds what arrived and was not read; the stream's window bounds it.
type buffer struct {
	b   []byte
	off int
}

func (b *buffer) len() int { return len(b.b) - b.off }

func (b *buffer) append(p []byte) {
	if b.off > 0 && b.off >= b.len() {
		b.b = b.b[:copy(b.b, b.b[b.off:])]
		b.off = 0
	}
	b.b = append(b.b, p...)
}

func (b *buffer) read(p []byte) int {
	n := copy(p, b.b[b.off:])
	b.off += n
	if b.len() == 0 {
		b.discard()
	}
	return n
}

// discard empties b, frees its memory and returns how many bytes it held.
func (b *buffer) discard() int {
	n := b.len()
	*b = buffer{}
	return n
}
