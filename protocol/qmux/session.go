// Package qmux carries moq-lite sessions over WebSocket with QMux draft 02:
// QUIC's streams, resets and flow control as frames in binary messages. It
// implements protocol.Session, for browsers without WebTransport and for Node.
// The host's HTTP server calls Accept, clients call Dial. It is the only
// package that imports a WebSocket library, and it buffers no more than the
// windows it grants and one queue of outgoing frames for each session.
//
// Each session has one mutex; nothing is called and no I/O done while it is
// held.
package qmux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/heddle-live/heddle/protocol"
)

const (
	idleTimeout = 30 * time.Second
	// idleTimeoutMin is the shortest timeout of a peer that we follow.
	idleTimeoutMin = time.Second
	// ticksPerIdle is how often in an idle timeout the session looks at its clocks.
	ticksPerIdle = 6
	// queueBytesMax bounds the frames that wait for the socket. TryWrite fails
	// and Write waits beyond; answers to the peer's frames may go over it.
	queueBytesMax = 128 << 10
	// controlBytesMax ends a session whose peer makes us answer without reading.
	controlBytesMax = 1 << 20
	// closeLinger keeps the socket open behind a close frame, without which
	// JavaScript clients may miss the frame.
	closeLinger = 100 * time.Millisecond
	// closeGrace bounds each wait for a peer that does not read its end.
	closeGrace = time.Second

	errorProtocolViolation = 0x0a // of RFC 9000, in a frame 0x1c
)

// session implements protocol.Session.
type session struct {
	conn       *websocket.Conn
	token      string
	requestURI string
	remote     net.Addr
	isServer   bool
	ours       parameters

	ctx    context.Context
	cancel context.CancelCauseFunc

	wake       chan struct{} // of the writer; has room for one
	readerDone chan struct{}
	ticker     *time.Timer

	mu      sync.Mutex
	err     error // why the session ended
	streams map[uint64]*stream
	peer    parameters
	hasPeer bool // parameters have arrived

	opened     [2]uint64 // streams that we opened, by direction
	openMax    [2]uint64
	openWake   chan struct{} // closed when openMax rises; nil if nobody waits
	incoming   [2]incoming
	acceptWake [2]chan struct{} // closed when a stream arrives; nil if nobody waits

	sentData, sentDataMax         uint64
	receivedData, receivedDataMax uint64
	consumedData                  uint64

	queue      queue
	credit     []*stream // streams whose new window is to be told
	dataCredit bool      // so is the session's
	blocked    map[*stream]struct{}
	closeFrame []byte // the last thing to send

	idle           time.Duration
	lastReceived   time.Time
	lastSent       time.Time
	writingSince   time.Time // zero: not in a write
	pingSequence   uint64
	pingAt         time.Time
	peerPing       uint64
	peerPinged     bool
	smoothedRTT    time.Duration
	bytesSent      uint64
	bytesReceived  uint64
	websocketClose websocket.StatusCode
	killer         *time.Timer // closes the socket under a stuck writer
}

// Directions, as in the second bit of a stream ID.
const (
	bidi = 0
	uni  = 1
)

// incoming is the book of the streams that the peer opens in one direction.
type incoming struct {
	opened  uint64              // one more than the highest index seen
	granted uint64              // indexes below are allowed
	ended   uint64              // accepted and over
	window  uint64              // how many may be open
	skipped map[uint64]struct{} // indexes opened by a higher one, still unused
	queue   []*stream           // to be accepted; at most window long
	tell    bool                // a new grant is to be told
}

func newSession(conn *websocket.Conn, token string, isServer bool, ours parameters) *session {
	s := &session{
		conn: conn, token: token, isServer: isServer, ours: ours,
		wake:            make(chan struct{}, 1),
		readerDone:      make(chan struct{}),
		streams:         make(map[uint64]*stream),
		blocked:         make(map[*stream]struct{}),
		receivedDataMax: ours.data,
		idle:            ours.idle,
		lastReceived:    time.Now(),
		websocketClose:  websocket.StatusNormalClosure,
	}
	s.incoming[bidi] = incoming{granted: ours.bidiCount, window: ours.bidiCount}
	s.incoming[uni] = incoming{granted: ours.uniCount, window: ours.uniCount}
	for i := range s.incoming {
		s.incoming[i].skipped = make(map[uint64]struct{})
	}
	return s
}

// start runs the session's reader and writer, which end with it.
func (s *session) start(ctx context.Context) {
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.queue.bytes = appendParameters(s.queue.bytes, s.ours)
	s.queue.endFrame()
	s.signal()
	s.ticker = time.AfterFunc(s.idle/ticksPerIdle, s.tick)
	go s.readLoop()
	go s.writeLoop()
}

// signal wakes the writer.
func (s *session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// fail ends the session because of cause; closeFrame, if any, is the last frame
// sent. Only the first call counts.
func (s *session) fail(cause error, closeFrame []byte, status websocket.StatusCode) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = cause
	s.queue.clear() // as in QUIC, what was not sent yet is lost
	s.closeFrame = closeFrame
	s.websocketClose = status
	s.credit = nil
	clear(s.blocked)
	for _, st := range s.streams {
		st.endWithSessionLocked()
	}
	clear(s.streams)
	if !s.writingSince.IsZero() {
		// A peer that does not read must not hold the writer for ever.
		s.killer = time.AfterFunc(closeGrace, func() { _ = s.conn.CloseNow() })
	}
	s.mu.Unlock()
	s.ticker.Stop()
	s.cancel(cause)
	s.signal()
}

// violation ends the session because the peer broke the rules.
func (s *session) violation(err error) {
	reason := err.Error()
	if len(reason) > closeReasonBytesMax {
		reason = reason[:closeReasonBytesMax]
	}
	s.fail(&protocol.SessionError{Code: protocol.SessionProtocolViolation, Reason: reason},
		appendClose(nil, errorProtocolViolation, reason), websocket.StatusProtocolError)
}

// CloseWithError implements protocol.Session.
func (s *session) CloseWithError(code protocol.SessionCode, reason string) error {
	if len(reason) > closeReasonBytesMax {
		reason = reason[:closeReasonBytesMax]
	}
	s.fail(&protocol.SessionError{Code: code, Reason: reason},
		appendAppClose(nil, uint64(code), reason), websocket.StatusNormalClosure)
	return nil
}

// readLoop parses records until the session or its socket ends.
func (s *session) readLoop() {
	defer close(s.readerDone)
	// Ended by closing the socket, not by a context: the close frame must leave.
	ctx := context.WithoutCancel(s.ctx)
	s.conn.SetReadLimit(recordBytesMax + 1)
	buf := make([]byte, recordBytesMax+1)
	for {
		kind, r, err := s.conn.Reader(ctx)
		if err != nil {
			s.socketEnded(err)
			return
		}
		n, err := io.ReadFull(r, buf)
		if err == nil {
			err = fmt.Errorf("%w: record over %d bytes", errFrame, recordBytesMax)
		} else if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = nil
		} else {
			s.socketEnded(err)
			return
		}
		if kind != websocket.MessageBinary {
			s.fail(&protocol.SessionError{
				Code: protocol.SessionProtocolViolation, Reason: "text message",
			}, appendClose(nil, errorProtocolViolation, "text message"),
				websocket.StatusUnsupportedData)
			return
		}
		if err == nil {
			err = s.record(buf[:n])
		}
		if err != nil {
			if !errors.Is(err, errPeerClosed) {
				s.violation(err)
			}
			return
		}
	}
}

// socketEnded ends the session because its WebSocket did.
func (s *session) socketEnded(err error) {
	if status := websocket.CloseStatus(err); status >= 0 {
		err = &protocol.SessionError{
			Remote: true, Reason: fmt.Sprintf("WebSocket closed with status %d", status),
		}
	} else {
		err = fmt.Errorf("WebSocket: %w", err)
	}
	s.fail(err, nil, websocket.StatusNormalClosure)
}

// writeLoop sends what the queue holds until the session ends, then the close
// frame, and closes the socket.
func (s *session) writeLoop() {
	ctx := context.WithoutCancel(s.ctx)
	var spare queue
	for range s.wake {
		s.mu.Lock()
		if s.err != nil {
			s.mu.Unlock()
			break
		}
		s.appendCreditLocked()
		batch := s.queue
		s.queue = spare
		s.queue.generation = batch.generation + 1
		s.writingSince = time.Now()
		s.mu.Unlock()

		sent, err := batch.send(ctx, s.conn)
		batch.clear()
		spare = batch

		s.mu.Lock()
		if sent > 0 {
			s.bytesSent += uint64(sent)
			s.lastSent = time.Now()
		}
		s.writingSince = time.Time{}
		s.wakeBlockedLocked()
		s.mu.Unlock()
		if err != nil {
			s.socketEnded(err)
			break
		}
	}
	s.closeSocket(ctx)
}

// closeSocket sends the close frame and ends the WebSocket. Its steps are
// bounded in time by a timer and by the library's close handshake.
func (s *session) closeSocket(ctx context.Context) {
	s.mu.Lock()
	last, status := s.closeFrame, s.websocketClose
	if s.killer != nil {
		s.killer.Stop()
	}
	s.mu.Unlock()
	if last != nil {
		ctx, cancel := context.WithTimeout(ctx, closeGrace)
		err := s.conn.Write(ctx, websocket.MessageBinary, last)
		cancel()
		if err == nil {
			t := time.NewTimer(closeLinger)
			select {
			case <-s.readerDone:
			case <-t.C:
			}
			t.Stop()
		}
	}
	if status != websocket.StatusGoingAway { // a peer given up answers nothing
		_ = s.conn.Close(status, "")
	}
	_ = s.conn.CloseNow()
}

// tick looks at the clocks: an idle peer, a write that does not progress, and
// whether a ping is due. It runs on a timer's goroutine.
func (s *session) tick() {
	now := time.Now()
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	var cause error
	switch {
	case now.Sub(s.lastReceived) > s.idle:
		cause = fmt.Errorf("nothing received for %v", s.idle)
	case !s.writingSince.IsZero() && now.Sub(s.writingSince) > s.idle:
		cause = fmt.Errorf("peer does not read: nothing sent for %v", s.idle)
	case s.hasPeer && now.Sub(s.lastSent) >= s.idle/3:
		s.pingLocked(now)
	}
	next := s.idle / ticksPerIdle
	s.mu.Unlock()
	if cause != nil {
		s.fail(cause, nil, websocket.StatusGoingAway)
		return
	}
	s.ticker.Reset(next)
}

func (s *session) pingLocked(now time.Time) {
	s.pingSequence++
	s.pingAt = now
	s.queueControlLocked(framePing, s.pingSequence)
}

// Context implements protocol.Session.
func (s *session) Context() context.Context { return s.ctx }

// Protocol implements protocol.Session.
func (s *session) Protocol() string { return s.token }

// Transport implements protocol.Session.
func (s *session) Transport() string { return "websocket" }

// RequestURI implements protocol.Session.
func (s *session) RequestURI() string { return s.requestURI }

// RemoteAddr implements protocol.Session.
func (s *session) RemoteAddr() net.Addr { return s.remote }

// Stats implements protocol.Session. The round trip is that of QMux pings.
func (s *session) Stats() protocol.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return protocol.Stats{
		SmoothedRTT: s.smoothedRTT, BytesSent: s.bytesSent, BytesReceived: s.bytesReceived,
	}
}
