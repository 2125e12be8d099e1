package lite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/sessiontest"
	"github.com/heddle-live/heddle/protocol/varint"
	"github.com/heddle-live/heddle/protocol/wire"
)

// origin is a fake: tracks by "broadcast track", all announced under one route.
type origin struct {
	mu       sync.Mutex
	tracks   map[string]*moq.Track
	opened   map[string]int
	released map[string]int
	route    protocol.Path
	changes  chan []Announcement
}

func newOrigin() *origin {
	return &origin{
		tracks: make(map[string]*moq.Track),
		opened: make(map[string]int), released: make(map[string]int),
		route: "g/v", changes: make(chan []Announcement, 8),
	}
}

func (o *origin) track(name string) *moq.Track {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.tracks["g/v "+name]
	if t == nil {
		t = moq.NewTrack(moq.Info{MaxLatency: 1e9})
		o.tracks["g/v "+name] = t
	}
	return t
}

func (o *origin) find(b protocol.Path, track string) (*moq.Track, string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	name := string(b) + " " + track
	switch track {
	case "denied":
		return nil, name, &protocol.StreamError{Code: protocol.CodeUnauthorized}
	case "broken":
		return nil, name, errors.New("no luck")
	}
	t := o.tracks[name]
	if t == nil {
		return nil, name, fmt.Errorf("find: %w", &protocol.StreamError{Code: protocol.CodeNotFound})
	}
	return t, name, nil
}

func (o *origin) Info(_ context.Context, b protocol.Path, track string) (moq.Info, error) {
	t, _, err := o.find(b, track)
	if err != nil {
		return moq.Info{}, err
	}
	return t.Info(), nil
}

func (o *origin) Subscribe(
	_ context.Context, b protocol.Path, track string,
) (*moq.Track, func(), error) {
	t, name, err := o.find(b, track)
	if err != nil {
		return nil, nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened[name]++
	return t, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.released[name]++
	}, nil
}

// balance returns how many subscriptions were opened and released.
func (o *origin) balance() (opened, released int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.opened {
		opened += n
	}
	for _, n := range o.released {
		released += n
	}
	return opened, released
}

func (o *origin) Announcements(prefix protocol.Path) Announcements {
	l := &listing{changes: o.changes}
	if prefix.HasPrefix(o.route) {
		l.first = []Announcement{{Active: true}}
	} else if suffix, ok := o.route.TrimPrefix(prefix); ok {
		l.first = []Announcement{{Suffix: suffix, Active: true, Hops: []protocol.HopID{7}}}
	}
	return l
}

type listing struct {
	first   []Announcement
	begun   bool
	changes chan []Announcement
}

func (l *listing) Next(ctx context.Context) ([]Announcement, error) {
	if !l.begun {
		l.begun = true
		return l.first, nil
	}
	select {
	case c := <-l.changes:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *listing) Close() {}

// bench is a served session and what talks to it.
type bench struct {
	t        *testing.T
	ctx      context.Context
	origin   *origin
	counters *Counters
	client   *sessiontest.Session
	server   *sessiontest.Session
	session  *Session // the server's
	ended    chan error
}

// begin starts the server's session; the test plays the client.
func begin(t *testing.T, client sessiontest.Config, limits Limits) *bench {
	t.Helper()
	b := &bench{t: t, ctx: t.Context(), origin: newOrigin(), counters: new(Counters)}
	b.client, b.server = sessiontest.Pair(client, sessiontest.Config{
		BidiStreams: 4096, RTT: client.RTT,
	})
	b.session = NewSession(b.server, Config{
		Origin: b.origin, HopID: 77, Limits: limits, Counters: b.counters,
	})
	b.ended = make(chan error, 1)
	go func() { b.ended <- b.session.Run(context.Background()) }()
	return b
}

// end closes the session from the client and checks that nothing is left.
func (b *bench) end() {
	b.t.Helper()
	_ = b.client.CloseWithError(0, "")
	if err := <-b.ended; err != nil {
		b.t.Errorf("Run: %v", err)
	}
	b.clean()
}

func (b *bench) clean() {
	b.t.Helper()
	if o, r := b.origin.balance(); o != r {
		b.t.Errorf("%d tracks opened, %d released", o, r)
	}
	c := b.counters
	for name, n := range map[string]int64{
		"sessions": c.SessionsOpen.Load(), "requests": c.RequestsOpen.Load(),
		"subscriptions": c.SubscriptionsOpen.Load(), "group streams": c.GroupStreamsOpen.Load(),
	} {
		if n != 0 {
			b.t.Errorf("%d %s open after the end", n, name)
		}
	}
	for name, t := range b.origin.tracks {
		if n := t.Cursors(); n != 0 {
			b.t.Errorf("%d cursors left on %s", n, name)
		}
	}
}

// dial runs a client's session against the server's.
func (b *bench) dial() *Session {
	c := NewSession(b.client, Config{Client: true, HopID: 5})
	go func() { _ = c.Run(context.Background()) }()
	return c
}

// request opens a stream as the client and writes the parts on it.
func (b *bench) request(parts ...[]byte) protocol.Stream {
	b.t.Helper()
	s, err := b.client.OpenStream(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := s.Write(slices.Concat(parts...)); err != nil {
		b.t.Fatal(err)
	}
	return s
}

func typed(kind uint64) []byte { return varint.Append(nil, kind) }

func subscribeTo(id uint64, track string) []byte {
	return wire.AppendSubscribe(typed(wire.StreamSubscribe), wire.Subscribe{
		ID: id, Broadcast: "g/v", Track: track,
	})
}

// expectCode reads s until it fails, which must be a reset with the code.
func (b *bench) expectCode(s io.Reader, want protocol.StreamCode) {
	b.t.Helper()
	_, err := io.ReadAll(s)
	se, ok := errors.AsType[*protocol.StreamError](err)
	if !ok || se.Code != want || !se.Remote {
		b.t.Errorf("got %v, want a reset with %d", err, want)
	}
}

// acceptSetup reads the server's first stream, which must be SETUP.
func (b *bench) acceptSetup() {
	b.t.Helper()
	s, err := b.client.AcceptUniStream(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	got, err := io.ReadAll(s)
	want := wire.AppendSetup(typed(wire.UniStreamSetup), wire.Setup{Hop: 77})
	if err != nil || !bytes.Equal(got, want) {
		b.t.Errorf("SETUP: %x, %v", got, err)
	}
}

// group is one received Group stream.
type group struct {
	wire.Group
	stream protocol.ReceiveStream
	r      *bufio.Reader
}

// acceptGroup reads the header of the next Group stream.
func (b *bench) acceptGroup() *group {
	b.t.Helper()
	s, err := b.client.AcceptUniStream(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	r := bufio.NewReader(s)
	kind, err := varint.Read(r)
	if err != nil || kind != wire.UniStreamGroup {
		b.t.Fatalf("stream type %d, %v", kind, err)
	}
	msg, err := wire.ReadMessage(r, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	g, err := wire.ParseGroup(msg)
	if err != nil {
		b.t.Fatal(err)
	}
	return &group{g, s, r}
}

func (g *group) frame(t *testing.T) string {
	t.Helper()
	_, payload, err := wire.ReadFrame(g.r, 1<<24)
	if err != nil {
		t.Fatalf("group %d: %v", g.Sequence, err)
	}
	return string(payload)
}

// end reads the group's stream to its FIN.
func (g *group) end(t *testing.T) {
	t.Helper()
	if _, err := g.r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("group %d: %v, want its end", g.Sequence, err)
	}
}

func text(s string) moq.Frame { return moq.Frame{Payload: []byte(s)} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inBubble runs f in virtual time.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
