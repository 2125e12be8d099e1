package lite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
	"github.com/heddle-live/heddle/protocol/wire"
)

// Config is what a session is made of. The zero Config serves nothing and can
// only ask.
type Config struct {
	// Origin answers the peer's requests; nil refuses them all.
	Origin Origin
	// HopID names this endpoint to the peer; 0 is unknown.
	HopID protocol.HopID
	// Client says that we dialled: it decides which SETUP parameters and which
	// GOAWAY are legal.
	Client bool
	// Limits bound what the peer can make us hold; zero fields take defaults.
	Limits Limits
	// Counters are shared with other sessions; nil counts for nobody.
	Counters *Counters
	// Logger gets faults of ours at error level, the peer's at debug; nil is silent.
	Logger *slog.Logger
}

// Limits bound a session. Each names its consequence.
type Limits struct {
	// RequestTimeout [10 s]: a request stream without its message is reset with
	// CodeTimeout; a FETCH without a group likewise.
	RequestTimeout time.Duration
	// Subscriptions [4096]: further SUBSCRIBEs are reset with CodeBusy.
	Subscriptions int
	// OpenGroups [64]: of more newest groups, the least recently changed one's
	// stream is finished. A browser grants about 100 streams in all.
	OpenGroups int
	// BlockedWriters [16]: groups that wait for flow control in a goroutine of
	// their own; further ones are chosen anew when one of these is done.
	BlockedWriters int
	// FrameBytes [16 MiB]: a received frame over it stops its group's stream.
	FrameBytes int
	// QueuedFrames [64]: received frames of one subscription that wait for Next.
	QueuedFrames int
	// FinishDelay [200 ms]: the least time between SUBSCRIBE_END and FIN.
	FinishDelay time.Duration
	// MessageBytes [1 MiB]: what messages that have not come whole may hold in
	// all, their first 512 bytes aside; the stream of one over it is reset with
	// CodeBusy.
	MessageBytes int
	// Fetches [16]: FETCHes that are answered at the same time; further ones wait,
	// and are reset with CodeBusy after RequestTimeout.
	Fetches int
	// RequestBurst [8192] and RequestRate [2000 a second] bound the requests that
	// are taken up: after a burst of so many, so many a second; further ones wait
	// in the transport. An update of a subscription is one, too, and what sends a
	// group again counts once for each 16 KiB of it.
	RequestBurst, RequestRate int
}

func (l Limits) withDefaults() Limits {
	set := func(v *int, standard int) {
		if *v == 0 {
			*v = standard
		}
	}
	set(&l.Subscriptions, 4096)
	set(&l.OpenGroups, 64)
	set(&l.BlockedWriters, 16)
	set(&l.FrameBytes, wire.MaxFrameBytes)
	set(&l.QueuedFrames, 64)
	set(&l.MessageBytes, 1<<20)
	set(&l.Fetches, 16)
	set(&l.RequestBurst, 8192)
	set(&l.RequestRate, 2000)
	if l.RequestTimeout == 0 {
		l.RequestTimeout = 10 * time.Second
	}
	if l.FinishDelay == 0 {
		l.FinishDelay = 200 * time.Millisecond
	}
	return l
}

// Session is one moq-lite session, both halves: it serves the peer from the
// Origin, and asks the peer with Info, Subscribe, Fetch and Announced. All
// methods are safe for concurrent use; asking needs a running Run.
type Session struct {
	transport protocol.Session
	version   Version
	config    Config
	counters  *Counters
	log       *slog.Logger
	sender    *sender
	tasks     sync.WaitGroup
	setupSent chan struct{} // closed when requests of ours may follow
	goingAway chan struct{} // closed when the peer sent GOAWAY
	goawayOut atomic.Bool
	unread    atomic.Int64  // bytes of messages that have not come whole
	fetches   chan struct{} // has room for those that are answered
	pace      *pace

	mu           sync.Mutex
	publications map[uint64]*publication // that we serve, by the peer's ID
	incoming     map[uint64]*Subscription
	nextID       uint64 // of our next SUBSCRIBE
	peerSetup    *wire.Setup
	wentAway     bool
	ended        bool // no further goroutines
}

// NewSession returns a session over t, which it owns from now on. Run starts it.
// It panics if t has negotiated a version that VersionNames does not list:
// bindings must refuse those.
func NewSession(t protocol.Session, c Config) *Session {
	version, ok := ParseVersion(t.Protocol())
	if !ok {
		panic("lite: session of a version that was not offered")
	}
	c.Limits = c.Limits.withDefaults()
	s := &Session{
		transport:    t,
		version:      version,
		config:       c,
		counters:     c.Counters,
		log:          c.Logger,
		setupSent:    make(chan struct{}),
		goingAway:    make(chan struct{}),
		publications: make(map[uint64]*publication),
		incoming:     make(map[uint64]*Subscription),
	}
	if s.counters == nil {
		s.counters = new(Counters)
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.sender = newSender(s)
	s.fetches = make(chan struct{}, c.Limits.Fetches)
	s.pace = newPace(c.Limits.RequestBurst, c.Limits.RequestRate)
	return s
}

// Transport returns the underlying session.
func (s *Session) Transport() protocol.Session { return s.transport }

// Run serves the session until it ends or ctx does, which closes it, and
// returns when nothing of it is left running. It returns nil after a close with
// SessionNoError, otherwise the cause: a *protocol.SessionError, or the
// transport's error. To be called once.
func (s *Session) Run(ctx context.Context) error {
	s.counters.SessionsTotal.Add(1)
	s.counters.SessionsOpen.Add(1)
	defer s.counters.SessionsOpen.Add(-1)
	stop := context.AfterFunc(ctx, func() {
		_ = s.transport.CloseWithError(protocol.SessionNoError, "going away")
	})
	defer stop()
	live := s.transport.Context()
	// SETUP goes out before anything else: Rust peers resolve no request before
	// they have it.
	if err := s.sendSetup(live); err != nil {
		_ = s.transport.CloseWithError(protocol.SessionProtocolViolation, err.Error())
	}
	close(s.setupSent)
	s.spawn(func() { s.sender.run(live) })
	s.spawn(func() { s.acceptGroups(live) })
	s.acceptRequests(live)
	s.end(context.Cause(live))
	s.tasks.Wait()
	cause := context.Cause(live)
	if se, ok := errors.AsType[*protocol.SessionError](cause); ok &&
		se.Code == protocol.SessionNoError {
		return nil
	}
	return cause
}

// end stops new goroutines and tells those that wait for a reader of ours.
func (s *Session) end(cause error) {
	s.mu.Lock()
	s.ended = true
	incoming := slices.Collect(maps.Values(s.incoming))
	s.mu.Unlock()
	for _, sub := range incoming {
		sub.fail(cause)
	}
}

// Close ends the session with a code and a reason for people.
func (s *Session) Close(code protocol.SessionCode, reason string) {
	_ = s.transport.CloseWithError(code, reason)
}

// spawn runs f in a goroutine that Run waits for. It returns false, and runs
// nothing, once the session is over.
func (s *Session) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.tasks.Go(f)
	return true
}

func (s *Session) sendSetup(ctx context.Context) error {
	if !s.version.HasSetup() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Limits.RequestTimeout)
	defer cancel()
	stream, err := s.transport.OpenUniStream(ctx)
	if err != nil {
		return fmt.Errorf("open a stream for SETUP: %w", err)
	}
	buf := varint.Append(nil, wire.UniStreamSetup)
	buf = wire.AppendSetup(buf, wire.Setup{Hop: s.config.HopID})
	// A peer that grants a stream may still grant no bytes on it.
	stop := context.AfterFunc(ctx, func() { stream.Reset(protocol.CodeTimeout) })
	defer stop()
	if _, err := stream.Write(buf); err != nil {
		return fmt.Errorf("send SETUP: %w", err)
	}
	return stream.Close()
}

func (s *Session) acceptRequests(ctx context.Context) {
	for {
		stream, err := s.transport.AcceptStream(ctx)
		if err != nil {
			return
		}
		s.spawn(func() { s.serveRequest(stream) })
		if s.pace.wait(ctx, 1) != nil {
			return
		}
	}
}

// acceptGroups takes the peer's unidirectional streams, SETUP among them.
func (s *Session) acceptGroups(ctx context.Context) {
	for {
		stream, err := s.transport.AcceptUniStream(ctx)
		if err != nil {
			return
		}
		s.spawn(func() { s.receive(stream) })
	}
}

// receive reads one unidirectional stream to its end or stops it.
func (s *Session) receive(stream protocol.ReceiveStream) {
	_ = stream.SetReadDeadline(time.Now().Add(s.config.Limits.RequestTimeout))
	r := bufio.NewReaderSize(stream, readBufferBytes)
	kind, err := varint.Read(r)
	if err != nil {
		stream.Stop(codeOf(err))
		return
	}
	switch {
	case kind == wire.UniStreamGroup:
		s.receiveGroup(stream, r)
	case kind == wire.UniStreamSetup && s.version.HasSetup():
		if err := s.receiveSetup(r); err != nil {
			stream.Stop(codeOf(err))
			s.Close(protocol.SessionProtocolViolation, err.Error())
		}
	default:
		s.log.Debug("unknown unidirectional stream", "type", kind)
		stream.Stop(protocol.CodeUnexpectedStream)
	}
}

// receiveSetup reads the peer's SETUP. Each fault in it ends the session: later
// streams would be read with the wrong idea of the peer.
func (s *Session) receiveSetup(r *bufio.Reader) error {
	msg, err := s.readMessage(r, nil)
	if err != nil {
		return fmt.Errorf("SETUP: %w", noEOF(err))
	}
	setup, err := wire.ParseSetup(msg)
	if err != nil {
		return err
	}
	// Bindings with a request URI carry the path there, and only clients ask.
	if setup.Path != "" && (s.config.Client || s.transport.Transport() != "quic") {
		return fmt.Errorf("SETUP: %w: path parameter here", wire.ErrViolation)
	}
	if setup.Role != wire.RoleBoth && s.config.Client {
		return fmt.Errorf("SETUP: %w: role of a server", wire.ErrViolation)
	}
	s.mu.Lock()
	second := s.peerSetup != nil
	if !second {
		s.peerSetup = &setup
	}
	s.mu.Unlock()
	if second {
		return fmt.Errorf("%w: second SETUP", wire.ErrViolation)
	}
	if err := awaitFIN(r); err != nil {
		return fmt.Errorf("SETUP: %w", err)
	}
	return nil
}

// PeerSetup returns what the peer said in SETUP; ok is false until it came.
func (s *Session) PeerSetup() (setup wire.Setup, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peerSetup == nil {
		return wire.Setup{}, false
	}
	return *s.peerSetup, true
}

// GoingAway is closed when the peer has sent GOAWAY: it will close the session
// and wants no new requests.
func (s *Session) GoingAway() <-chan struct{} { return s.goingAway }

// GoAway asks the peer to move to uri, or to connect anew if it is empty; a
// client's must be empty. The session goes on; call it once.
func (s *Session) GoAway(ctx context.Context, uri string) error {
	if s.goawayOut.Swap(true) {
		return errors.New("send GOAWAY: sent before")
	}
	if len(uri) > wire.MaxURIBytes || uri != "" && s.config.Client {
		return fmt.Errorf("send GOAWAY: %w", wire.ErrBounds)
	}
	stream, err := s.open(ctx)
	if err != nil {
		return fmt.Errorf("send GOAWAY: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { stream.Reset(protocol.CodeTimeout) })
	defer stop()
	buf := varint.Append(nil, wire.StreamGoaway)
	if _, err := stream.Write(wire.AppendGoaway(buf, wire.Goaway{URI: uri})); err != nil {
		return fmt.Errorf("send GOAWAY: %w", err)
	}
	stream.Stop(protocol.CodeCancel) // nothing is expected back
	return stream.Close()
}

// freeMessageBytes of each message do not count against Limits.MessageBytes.
const freeMessageBytes = 512

// readMessage reads one message within the session's bounds.
func (s *Session) readMessage(r *bufio.Reader, dst []byte) ([]byte, error) {
	held := 0
	msg, err := wire.ReadMessageWithin(r, dst, func(n int) error {
		if held == 0 && n <= freeMessageBytes {
			return nil
		}
		held += n
		if s.unread.Add(int64(n)) > int64(s.config.Limits.MessageBytes) {
			return &protocol.StreamError{
				Code: protocol.CodeBusy, Reason: "too many messages that have not come whole",
			}
		}
		return nil
	})
	s.unread.Add(-int64(held))
	return msg, err
}

// readBufferBytes is the read buffer of a request: most messages fit, and
// thousands of streams may be open.
const readBufferBytes = 128

// awaitFIN reads r to its end, where nothing may come before it.
func awaitFIN(r io.ByteReader) error {
	_, err := r.ReadByte()
	switch {
	case err == nil:
		return fmt.Errorf("%w: bytes after the last message", wire.ErrViolation)
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// noEOF turns an end inside a message into an unexpected one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
