package quic

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
	"github.com/quic-go/webtransport-go"

	"github.com/heddle-live/heddle/protocol"
)

const (
	wtUniStreamType  = 0x54
	wtBidiStreamType = 0x41
	// capsuleCloseSession carries a WebTransport session's close code.
	capsuleCloseSession   = 0x2843
	closeReasonBytesMax   = 1024
	transportQUIC         = "quic"
	transportWebTransport = "webtransport"
)

// session implements protocol.Session on one QUIC connection, which carries
// nothing else.
type session struct {
	conn       *quicgo.Conn
	token      string
	requestURI string

	// The rest is for WebTransport only.
	wt *webtransport.Session
	// connect is the stream of the CONNECT request, nil on dialled sessions.
	connect    *http3.Stream
	uniHeader  []byte
	bidiHeader []byte

	// receivingMax bounds the streams of the peer that are being received. The
	// QUIC layer does, too, but for it a stream is over that was reset as one of
	// a session that is gone, and webtransport-go holds its reader until the
	// session ends.
	receivingMax int64

	ctx     context.Context
	cancel  context.CancelCauseFunc
	backlog backlog

	mu        sync.Mutex
	ended     bool
	members   map[member]struct{} // on WebTransport
	receiving int64               // members that are wtReceiveHalf
}

// newSession makes a session whose peer may have granted streams open.
func newSession(conn *quicgo.Conn, token string, granted int64) *session {
	// A stream's credit returns a moment before its reader has told us.
	s := &session{conn: conn, token: token, receivingMax: 2 * granted}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(conn.Context()))
	return s
}

// watchNative ends s with its connection.
func (s *session) watchNative() {
	context.AfterFunc(s.conn.Context(), func() {
		s.end(sessionError(context.Cause(s.conn.Context()), false))
	})
}

// startWebTransport makes s a session of WebTransport with the given ID, which
// ends with wt and takes the connection with it.
func (s *session) startWebTransport(wt *webtransport.Session, id uint64) {
	s.wt = wt
	s.uniHeader = quicvarint.Append(quicvarint.Append(nil, wtUniStreamType), id)
	s.bidiHeader = quicvarint.Append(quicvarint.Append(nil, wtBidiStreamType), id)
	s.members = make(map[member]struct{})
	context.AfterFunc(wt.Context(), func() {
		// If we closed it, the close code may still be on its way to the page.
		if s.end(s.webTransportCause()) {
			_ = s.conn.CloseWithError(h3NoError, "")
		}
	})
}

func (s *session) webTransportCause() error {
	// webtransport-go tells why a session ended only by the errors of its methods.
	_, err := s.wt.OpenUniStream()
	if _, ok := errors.AsType[*webtransport.SessionError](err); ok {
		return sessionError(err, true)
	}
	if s.conn.Context().Err() != nil {
		return sessionError(context.Cause(s.conn.Context()), true)
	}
	// The peer finished or reset its CONNECT stream without giving a code.
	return &protocol.SessionError{Remote: true, Reason: "session stream ended"}
}

func (s *session) isWebTransport() bool { return s.wt != nil }

// end marks s as ended, once, and ends its streams. It reports whether it was
// the first.
func (s *session) end(cause error) bool {
	s.mu.Lock()
	first := !s.ended
	s.ended = true
	members := s.members
	s.members = nil
	s.mu.Unlock()
	if first {
		s.cancel(cause)
	}
	for m := range members {
		m.endWithSession()
	}
	return first
}

// remember notes members of s; it ends them at once if s has ended. A peer with
// more streams than it can have open loses the session.
func (s *session) remember(members ...member) error {
	if !s.isWebTransport() {
		return nil // they end with their connection
	}
	s.mu.Lock()
	ended := s.ended
	if !ended {
		for _, m := range members {
			s.members[m] = struct{}{}
			if _, ok := m.(*wtReceiveHalf); ok {
				s.receiving++
			}
		}
	}
	tooMany := s.receiving > s.receivingMax
	s.mu.Unlock()
	if tooMany && !ended {
		_ = s.CloseWithError(protocol.SessionProtocolViolation,
			"streams reset as those of a session that is gone, which goes on")
	} else if !ended {
		return nil
	}
	for _, m := range members {
		m.endWithSession()
	}
	return context.Cause(s.ctx)
}

func (s *session) forget(m member) {
	if !s.isWebTransport() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.members[m]; !ok {
		return
	}
	delete(s.members, m)
	if _, ok := m.(*wtReceiveHalf); ok {
		s.receiving--
	}
}

// streamError turns an error of a stream into the vocabulary's.
func (s *session) streamError(err error) error {
	if err == nil || err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if e, ok := errors.AsType[*quicgo.StreamError](err); ok {
		return &protocol.StreamError{
			Code: streamCode(e.ErrorCode, s.isWebTransport()), Remote: e.Remote,
		}
	}
	if e, ok := errors.AsType[*webtransport.StreamError](err); ok {
		return &protocol.StreamError{Code: protocol.StreamCode(e.ErrorCode), Remote: e.Remote}
	}
	return sessionError(err, s.isWebTransport())
}

// readError is streamError for a Read of m, which is over unless its deadline
// passed.
func (s *session) readError(m member, err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		s.forget(m)
	}
	return s.streamError(err)
}

// openError turns an error of accepting or opening into the vocabulary's.
func (s *session) openError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.streamError(err)
}

// during returns a context that ends with ctx and with s, and its release. On
// WebTransport s ends before the connection that accepting and opening wait on.
func (s *session) during(ctx context.Context) (context.Context, func()) {
	if !s.isWebTransport() {
		return ctx, func() {}
	}
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return both, func() {
		stop()
		cancel(nil)
	}
}

// AcceptStream implements protocol.Session.
func (s *session) AcceptStream(ctx context.Context) (protocol.Stream, error) {
	ctx, release := s.during(ctx)
	defer release()
	if !s.isWebTransport() {
		raw, err := s.conn.AcceptStream(ctx)
		if err != nil {
			return nil, s.openError(ctx, err)
		}
		return stream{&sendHalf{session: s, raw: raw}, &receiveHalf{s, raw}}, nil
	}
	raw, err := s.wt.AcceptStream(ctx)
	if err != nil {
		return nil, s.openError(ctx, err)
	}
	st := wtStream{newWTSendHalf(s, raw), &wtReceiveHalf{session: s, raw: raw}}
	if err := s.remember(st.wtSendHalf, st.wtReceiveHalf); err != nil {
		return nil, err
	}
	return st, nil
}

// AcceptUniStream implements protocol.Session.
func (s *session) AcceptUniStream(ctx context.Context) (protocol.ReceiveStream, error) {
	ctx, release := s.during(ctx)
	defer release()
	if !s.isWebTransport() {
		raw, err := s.conn.AcceptUniStream(ctx)
		if err != nil {
			return nil, s.openError(ctx, err)
		}
		return &receiveHalf{s, raw}, nil
	}
	raw, err := s.wt.AcceptUniStream(ctx)
	if err != nil {
		return nil, s.openError(ctx, err)
	}
	h := &wtReceiveHalf{session: s, raw: raw}
	if err := s.remember(h); err != nil {
		return nil, err
	}
	return h, nil
}

// OpenStream implements protocol.Session.
func (s *session) OpenStream(ctx context.Context) (protocol.Stream, error) {
	ctx, release := s.during(ctx)
	defer release()
	raw, err := s.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, s.openError(ctx, err)
	}
	st := stream{
		&sendHalf{session: s, raw: raw, header: s.bidiHeader},
		&receiveHalf{session: s, raw: raw},
	}
	if err := s.remember(st.sendHalf, st.receiveHalf); err != nil {
		return nil, err
	}
	return st, nil
}

// OpenUniStream implements protocol.Session.
func (s *session) OpenUniStream(ctx context.Context) (protocol.SendStream, error) {
	ctx, release := s.during(ctx)
	defer release()
	s.awaitRoom(ctx.Done())
	raw, err := s.conn.OpenUniStreamSync(ctx)
	if err != nil {
		return nil, s.openError(ctx, err)
	}
	return s.uniStream(raw)
}

// TryOpenUniStream implements protocol.Session.
//
// A session whose backlog is full opens nothing: so a sender chooses what to
// send when there is room, and sends the newest, whatever streams a peer grants.
func (s *session) TryOpenUniStream() (protocol.SendStream, error) {
	if !s.roomy() {
		return nil, protocol.ErrStreamLimit
	}
	raw, err := s.conn.OpenUniStream()
	if err != nil {
		if _, ok := errors.AsType[*quicgo.StreamLimitReachedError](err); ok {
			return nil, protocol.ErrStreamLimit
		}
		return nil, s.streamError(err)
	}
	return s.uniStream(raw)
}

func (s *session) uniStream(raw *quicgo.SendStream) (protocol.SendStream, error) {
	h := &sendHalf{session: s, raw: raw, header: s.uniHeader}
	if err := s.remember(h); err != nil {
		return nil, err
	}
	return h, nil
}

// CloseWithError implements protocol.Session. On WebTransport the QUIC
// connection goes when the peer has taken notice, or after a second.
func (s *session) CloseWithError(code protocol.SessionCode, reason string) error {
	if len(reason) > closeReasonBytesMax {
		reason = reason[:closeReasonBytesMax]
	}
	first := s.end(&protocol.SessionError{Code: code, Reason: reason})
	if !s.isWebTransport() {
		return s.conn.CloseWithError(quicgo.ApplicationErrorCode(code), reason)
	}
	if !first {
		return nil
	}
	if s.connect == nil || s.sendClose(code, reason) != nil {
		_ = s.wt.CloseWithError(webtransport.SessionErrorCode(code), reason)
	}
	// The goroutine ends with the connection, at the latest after both waits.
	go s.closeLater()
	return nil
}

// closeLater closes the connection under a session that we closed, unless the
// peer does so first: a while after the session's own end was told.
func (s *session) closeLater() {
	wait := func(d time.Duration, told <-chan struct{}) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-s.conn.Context().Done():
		case <-told:
		case <-t.C:
		}
	}
	wait(closeGrace, s.wt.Context().Done())
	wait(closeLinger, nil)
	_ = s.conn.CloseWithError(h3NoError, "")
}

// sendClose sends the close capsule and a FIN. webtransport-go would also stop
// the peer's half, in the same packet and before the capsule, on which Chrome
// reports a lost connection instead of the code.
func (s *session) sendClose(code protocol.SessionCode, reason string) error {
	b := quicvarint.Append(nil, capsuleCloseSession)
	b = quicvarint.Append(b, uint64(4+len(reason)))
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	b = append(b, reason...)
	if err := s.connect.TryWriteAll(b); err != nil {
		return err
	}
	return s.connect.Close()
}

// Context implements protocol.Session.
func (s *session) Context() context.Context { return s.ctx }

// Protocol implements protocol.Session.
func (s *session) Protocol() string { return s.token }

// Transport implements protocol.Session.
func (s *session) Transport() string {
	if s.isWebTransport() {
		return transportWebTransport
	}
	return transportQUIC
}

// RequestURI implements protocol.Session.
func (s *session) RequestURI() string { return s.requestURI }

// RemoteAddr implements protocol.Session.
func (s *session) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

// Stats implements protocol.Session.
func (s *session) Stats() protocol.Stats {
	stats := s.conn.ConnectionStats()
	return protocol.Stats{
		SmoothedRTT:   stats.SmoothedRTT,
		BytesSent:     stats.BytesSent,
		BytesReceived: stats.BytesReceived,
	}
}
