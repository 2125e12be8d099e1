package qmux

import (
	"errors"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"github.com/heddle-live/heddle/protocol"
)

// errPeerClosed ends the reading of a session that the peer closed in order.
var errPeerClosed = errors.New("peer closed the session")

// errRule is wrapped by the errors of frames that are well formed and wrong.
var errRule = errors.New("protocol rule broken")

// record handles one message. Any error but errPeerClosed is the peer's fault.
func (s *session) record(b []byte) error {
	s.mu.Lock()
	s.lastReceived = time.Now()
	s.bytesReceived += uint64(len(b))
	s.mu.Unlock()
	for len(b) > 0 {
		f, n, err := parseFrame(b)
		if err != nil {
			return err
		}
		b = b[n:]
		if f.kind == frameClose || f.kind == frameAppClose {
			s.fail(&protocol.SessionError{
				Code: protocol.SessionCode(f.code), Remote: true, Reason: string(f.data),
			}, nil, websocket.StatusNormalClosure)
			return errPeerClosed
		}
		s.mu.Lock()
		err = s.frameLocked(f)
		if err == nil && len(s.queue.bytes) > controlBytesMax {
			err = fmt.Errorf("%w: answers pile up unread", errRule)
		}
		ended := s.err != nil
		s.mu.Unlock()
		if ended {
			return errPeerClosed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) frameLocked(f frame) error {
	if s.hasPeer == (f.kind == frameParameters) && f.kind != framePadding {
		return fmt.Errorf("%w: transport parameters must come first and once", errRule)
	}
	switch f.kind {
	case frameStream:
		return s.dataLocked(f)
	case frameReset:
		return s.resetLocked(f)
	case frameStop:
		return s.stopLocked(f)
	case frameMaxStreamData:
		st, err := s.sendingLocked(f.id)
		if err != nil || st == nil {
			return err
		}
		if f.value > st.sendMax {
			st.sendMax = f.value
			st.writable.Broadcast()
		}
	case frameMaxData:
		if f.value > s.sentDataMax {
			s.sentDataMax = f.value
			s.wakeBlockedLocked()
		}
	case frameMaxStreamsBidi, frameMaxStreamsUni:
		s.grantedLocked(int(f.kind-frameMaxStreamsBidi), f.value)
	case frameParameters:
		return s.parametersLocked(f.data)
	case framePing:
		if s.peerPinged && f.value <= s.peerPing {
			return fmt.Errorf("%w: ping %d after %d", errRule, f.value, s.peerPing)
		}
		s.peerPing, s.peerPinged = f.value, true
		s.queueControlLocked(framePong, f.value)
	case framePong:
		if f.value == s.pingSequence && !s.pingAt.IsZero() {
			s.roundTripLocked(time.Since(s.pingAt))
			s.pingAt = time.Time{}
		}
	}
	// PADDING and the BLOCKED frames inform only; datagrams were not asked for.
	return nil
}

// roundTripLocked smooths as RFC 9002 does.
func (s *session) roundTripLocked(sample time.Duration) {
	if s.smoothedRTT == 0 {
		s.smoothedRTT = sample
		return
	}
	s.smoothedRTT = (7*s.smoothedRTT + sample) / 8
}

func (s *session) parametersLocked(body []byte) error {
	p, err := parseParameters(body)
	if err != nil {
		return err
	}
	s.peer, s.hasPeer = p, true
	s.sentDataMax = p.data
	if p.idle > 0 {
		s.idle = max(min(s.idle, p.idle), idleTimeoutMin)
	}
	s.grantedLocked(bidi, p.bidiCount)
	s.grantedLocked(uni, p.uniCount)
	s.ticker.Reset(s.idle / ticksPerIdle)
	s.pingLocked(time.Now()) // the first measure of the round trip
	return nil
}

func (s *session) grantedLocked(dir int, limit uint64) {
	if limit <= s.openMax[dir] {
		return
	}
	s.openMax[dir] = limit
	if s.openWake != nil {
		close(s.openWake)
		s.openWake = nil
	}
}

// isOurs reports whether we open the streams with such an ID.
func (s *session) isOurs(id uint64) bool { return (id&1 == 1) == s.isServer }

func direction(id uint64) int { return int(id >> 1 & 1) }

// receivingLocked finds the stream whose receiving half id names. It is nil if
// that half is over.
func (s *session) receivingLocked(id uint64) (*stream, error) {
	if s.isOurs(id) {
		if direction(id) == uni || id>>2 >= s.opened[bidi] {
			return nil, fmt.Errorf("%w: nothing can arrive on stream %d", errRule, id)
		}
		return s.streams[id], nil
	}
	return s.arrivingLocked(id)
}

// sendingLocked finds the stream whose sending half id names. It is nil if that
// half is over.
func (s *session) sendingLocked(id uint64) (*stream, error) {
	if s.isOurs(id) {
		if id>>2 >= s.opened[direction(id)] {
			return nil, fmt.Errorf("%w: stream %d was never opened", errRule, id)
		}
		return s.streams[id], nil
	}
	if direction(id) == uni {
		return nil, fmt.Errorf("%w: nothing is sent on stream %d", errRule, id)
	}
	return s.arrivingLocked(id)
}

// arrivingLocked finds or begins the peer's stream id.
func (s *session) arrivingLocked(id uint64) (*stream, error) {
	if st := s.streams[id]; st != nil {
		return st, nil
	}
	in := &s.incoming[direction(id)]
	index := id >> 2
	switch _, skipped := in.skipped[index]; {
	case skipped:
		delete(in.skipped, index)
	case index < in.opened:
		return nil, nil // over
	case index >= in.granted:
		return nil, fmt.Errorf("%w: stream %d over the limit of %d", errRule, id, in.granted)
	default:
		for i := in.opened; i < index; i++ {
			in.skipped[i] = struct{}{}
		}
		in.opened = index + 1
	}
	st := s.newStreamLocked(id)
	in.queue = append(in.queue, st)
	if wake := &s.acceptWake[direction(id)]; *wake != nil {
		close(*wake)
		*wake = nil
	}
	return st, nil
}

func (s *session) dataLocked(f frame) error {
	st, err := s.receivingLocked(f.id)
	if err != nil {
		return err
	}
	if st == nil || st.receivedAll {
		if len(f.data) > 0 {
			return fmt.Errorf("%w: data behind the end of stream %d", errRule, f.id)
		}
		return nil
	}
	if f.hasOffset && f.offset != st.received {
		return fmt.Errorf("%w: stream %d continues at %d, not %d",
			errRule, f.id, f.offset, st.received)
	}
	if err := s.countLocked(st, uint64(len(f.data))); err != nil {
		return err
	}
	if st.stopped {
		s.consumedLocked(len(f.data))
	} else {
		st.buffer.append(f.data)
	}
	if f.fin {
		st.receivedAll = true
	}
	st.readable.Broadcast()
	s.settleLocked(st)
	return nil
}

// countLocked adds n bytes to what arrived on st, within its and the session's
// window.
func (s *session) countLocked(st *stream, n uint64) error {
	if n > st.receiveMax-st.received || n > s.receivedDataMax-s.receivedData {
		return fmt.Errorf("%w: stream %d overruns its window", errRule, st.id)
	}
	st.received += n
	s.receivedData += n
	return nil
}

func (s *session) resetLocked(f frame) error {
	st, err := s.receivingLocked(f.id)
	if err != nil || st == nil || st.receivedAll {
		return err
	}
	// Old senders give 0 as the final size whatever they sent.
	if f.value > st.received {
		gap := f.value - st.received
		if err := s.countLocked(st, gap); err != nil {
			return err
		}
		s.consumedLocked(int(gap))
	}
	s.consumedLocked(st.buffer.discard())
	st.receivedAll = true
	if st.receiveErr == nil {
		st.receiveErr = &protocol.StreamError{Code: protocol.StreamCode(f.code), Remote: true}
	}
	st.readable.Broadcast()
	s.settleLocked(st)
	return nil
}

func (s *session) stopLocked(f frame) error {
	st, err := s.sendingLocked(f.id)
	if err != nil || st == nil || st.sentAll {
		return err
	}
	st.sendErr = &protocol.StreamError{Code: protocol.StreamCode(f.code), Remote: true}
	st.endSendingLocked()
	s.queueControlLocked(frameReset, st.id, f.code, st.sent)
	s.settleLocked(st)
	return nil
}

// settleLocked forgets st when both its halves are over, and returns its credit
// once it has been accepted, too.
func (s *session) settleLocked(st *stream) {
	if !st.overLocked() || st.settled {
		return
	}
	delete(s.streams, st.id)
	st.stopTimerLocked()
	if s.isOurs(st.id) || !st.accepted {
		return
	}
	st.settled = true
	in := &s.incoming[direction(st.id)]
	in.ended++
	in.granted = in.ended + in.window
	in.tell = true
	s.signal()
}
