// Package sessiontest is protocol.Session in memory, for tests: a pair of
// sessions with stream credit, windows for each stream and for the session,
// resets, STOP_SENDING and close, all without delay and without I/O. It is
// strict where real bindings are: credit comes back only when a stream was read
// to its end, and unread bytes of a closed session are lost. It works under
// testing/synctest. Tests of every package may use it; nothing else does.
//
// Locks: one for each pair, held by every method for a moment.
package sessiontest

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/heddle-live/heddle/protocol"
)

// Config is what one side of a pair grants to the other, and what it reports.
// Zero fields take the defaults in brackets; a negative limit means 0.
type Config struct {
	Protocol      string        // [moq-lite-05]
	Transport     string        // [quic]
	RequestURI    string        // of the client, reported by both
	UniStreams    int           // [100] unidirectional streams that the peer may have open
	BidiStreams   int           // [100] bidirectional streams that the peer may have open
	StreamWindow  int           // [256 KiB] unread bytes that the peer may send on a stream
	SessionWindow int           // [1 MiB] unread bytes that the peer may send on all streams
	RTT           time.Duration // reported by Stats
}

func (c Config) withDefaults() Config {
	set := func(v *int, standard int) {
		switch {
		case *v == 0:
			*v = standard
		case *v < 0:
			*v = 0
		}
	}
	set(&c.UniStreams, 100)
	set(&c.BidiStreams, 100)
	set(&c.StreamWindow, 256<<10)
	set(&c.SessionWindow, 1<<20)
	if c.Protocol == "" {
		c.Protocol = "moq-lite-05"
	}
	if c.Transport == "" {
		c.Transport = "quic"
	}
	return c
}

// Pair returns two connected sessions.
func Pair(client, server Config) (c, s *Session) {
	l := &link{}
	c = newSession(l, client.withDefaults(), "client")
	s = newSession(l, server.withDefaults(), "server")
	c.peer, s.peer = s, c
	s.config.RequestURI = c.config.RequestURI
	return c, s
}

// link is what both sides of a pair share.
type link struct {
	mu sync.Mutex
}

// Session is one side of a pair. It implements protocol.Session.
type Session struct {
	link   *link
	config Config
	name   string
	ctx    context.Context
	cancel context.CancelCauseFunc
	peer   *Session

	// All below are guarded by link.mu. The conditions use it too.
	err      error
	accepts  *sync.Cond // something to accept, or the end
	credit   *sync.Cond // stream credit, or the end
	bidi     []*stream  // opened by the peer, not yet accepted
	uni      []*half
	bidiOpen int // opened by us, credit not yet returned
	uniOpen  int
	uniTotal int
	unread   int // bytes that we sent and the peer has not read
	sent     uint64
	live     map[*half]struct{} // halves that we send
	blocked  map[*half]struct{} // those with a Write that waits
}

var _ protocol.Session = (*Session)(nil)

func newSession(l *link, c Config, name string) *Session {
	s := &Session{link: l, config: c, name: name, live: make(map[*half]struct{})}
	s.blocked = make(map[*half]struct{})
	s.accepts = sync.NewCond(&l.mu)
	s.credit = sync.NewCond(&l.mu)
	//arch:allow background: a session ends by its peer, not by who made the pair
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// wait waits on c until ready, the session's end, or the end of ctx.
func (s *Session) waitLocked(ctx context.Context, c *sync.Cond, ready func() bool) error {
	stop := context.AfterFunc(ctx, func() {
		s.link.mu.Lock()
		defer s.link.mu.Unlock()
		c.Broadcast()
	})
	defer stop()
	for {
		switch {
		case s.err != nil:
			return s.err
		case ready():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		c.Wait()
	}
}

// AcceptStream implements protocol.Session.
func (s *Session) AcceptStream(ctx context.Context) (protocol.Stream, error) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	if err := s.waitLocked(ctx, s.accepts, func() bool { return len(s.bidi) > 0 }); err != nil {
		return nil, err
	}
	st := s.bidi[0]
	s.bidi = s.bidi[1:]
	return st, nil
}

// AcceptUniStream implements protocol.Session.
func (s *Session) AcceptUniStream(ctx context.Context) (protocol.ReceiveStream, error) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	if err := s.waitLocked(ctx, s.accepts, func() bool { return len(s.uni) > 0 }); err != nil {
		return nil, err
	}
	h := s.uni[0]
	s.uni = s.uni[1:]
	return receiver{h}, nil
}

// OpenStream implements protocol.Session.
func (s *Session) OpenStream(ctx context.Context) (protocol.Stream, error) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	granted := func() bool { return s.bidiOpen < s.peer.config.BidiStreams }
	if err := s.waitLocked(ctx, s.credit, granted); err != nil {
		return nil, err
	}
	s.bidiOpen++
	out, back := newHalf(s, false), newHalf(s.peer, false)
	back.backTo = s
	out.twin, back.twin = back, out
	s.peer.bidi = append(s.peer.bidi, &stream{sender{back}, receiver{out}})
	s.peer.accepts.Broadcast()
	return &stream{sender{out}, receiver{back}}, nil
}

// OpenUniStream implements protocol.Session.
func (s *Session) OpenUniStream(ctx context.Context) (protocol.SendStream, error) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	granted := func() bool { return s.uniOpen < s.peer.config.UniStreams }
	if err := s.waitLocked(ctx, s.credit, granted); err != nil {
		return nil, err
	}
	return s.openUniLocked(), nil
}

// TryOpenUniStream implements protocol.Session.
func (s *Session) TryOpenUniStream() (protocol.SendStream, error) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if s.uniOpen >= s.peer.config.UniStreams {
		return nil, protocol.ErrStreamLimit
	}
	return s.openUniLocked(), nil
}

// openUniLocked opens a stream that the peer gets to accept at the first byte,
// as with QUIC.
func (s *Session) openUniLocked() protocol.SendStream {
	s.uniOpen++
	s.uniTotal++
	return sender{newHalf(s, true)}
}

// CloseWithError implements protocol.Session.
func (s *Session) CloseWithError(code protocol.SessionCode, reason string) error {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	if s.err != nil {
		return nil
	}
	s.endLocked(&protocol.SessionError{Code: code, Reason: reason})
	s.peer.endLocked(&protocol.SessionError{Code: code, Reason: reason, Remote: true})
	return nil
}

func (s *Session) endLocked(err error) {
	s.err = err
	s.cancel(err)
	s.accepts.Broadcast()
	s.credit.Broadcast()
	for h := range s.live {
		h.finishDoneLocked()
		h.cond.Broadcast()
	}
}

// Context implements protocol.Session.
func (s *Session) Context() context.Context { return s.ctx }

// Protocol implements protocol.Session.
func (s *Session) Protocol() string { return s.config.Protocol }

// Transport implements protocol.Session.
func (s *Session) Transport() string { return s.config.Transport }

// RequestURI implements protocol.Session.
func (s *Session) RequestURI() string { return s.config.RequestURI }

// RemoteAddr implements protocol.Session.
func (s *Session) RemoteAddr() net.Addr {
	return &net.UnixAddr{Net: "memory", Name: s.peer.name}
}

// Stats implements protocol.Session.
func (s *Session) Stats() protocol.Stats {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return protocol.Stats{
		SmoothedRTT:   s.config.RTT,
		BytesSent:     s.sent,
		BytesReceived: s.peer.sent,
	}
}

// OpenUniStreams returns how many of our unidirectional streams still hold the
// peer's credit, and how many there ever were.
func (s *Session) OpenUniStreams() (open, total int) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.uniOpen, s.uniTotal
}

// OpenBidiStreams returns how many of our bidirectional streams still hold the
// peer's credit.
func (s *Session) OpenBidiStreams() int {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	return s.bidiOpen
}

// GrantUniStreams changes how many streams the peer may have open.
func (s *Session) GrantUniStreams(n int) {
	s.link.mu.Lock()
	defer s.link.mu.Unlock()
	s.config.UniStreams = n
	s.peer.credit.Broadcast()
}
