package qmux

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/heddle-live/heddle/protocol"
)

// rawPeer is a client that writes records by hand.
type rawPeer struct {
	conn    *websocket.Conn
	session protocol.Session // the server's side
}

func newRawPeer(t *testing.T, cfg Config) *rawPeer {
	t.Helper()
	ts := serve(t, cfg)
	conn, _, err := websocket.Dial(testContext(t), ts.url,
		&websocket.DialOptions{Subprotocols: []string{subprotocolPrefix + testToken}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &rawPeer{conn: conn, session: <-ts.sessions}
}

func (p *rawPeer) send(t *testing.T, kind websocket.MessageType, record []byte) {
	t.Helper()
	// The server may have closed the socket because of an earlier record.
	_ = p.conn.Write(testContext(t), kind, record)
}

// frames reads records until the socket ends and returns the frames in them.
func (p *rawPeer) frames(t *testing.T) []frame {
	t.Helper()
	var out []frame
	for {
		_, record, err := p.conn.Read(testContext(t))
		if err != nil {
			return out
		}
		for len(record) > 0 {
			f, n, err := parseFrame(record)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, f)
			record = record[n:]
		}
	}
}

func testParameters() []byte {
	return appendParameters(nil, Config{}.parameters())
}

func data(id, offset uint64, payload string, fin bool) []byte {
	return append(appendStreamHeader(nil, id, offset, len(payload), fin), payload...)
}

func TestViolationsEndTheSession(t *testing.T) {
	params := testParameters()
	text := websocket.MessageText
	long := strings.Repeat("x", 600)
	tests := []struct {
		name    string
		kind    websocket.MessageType
		records [][]byte
		reason  string
	}{
		{"no parameters", 0, [][]byte{data(0, 0, "x", false)}, "must come first"},
		{"parameters twice", 0, [][]byte{params, params}, "and once"},
		{"text message", text, [][]byte{[]byte("hello")}, "text message"},
		{"unknown frame", 0, [][]byte{params, {0x40, 0x99}}, "unknown type 0x99"},
		{"truncated frame", 0, [][]byte{params, {frameReset, 0}}, "malformed"},
		{"record too large", 0, [][]byte{params, make([]byte, recordBytesMax+1)}, "over 16382"},
		{"stream over the limit", 0, [][]byte{params, data(4*4, 0, "x", false)}, "over the limit of 4"},
		{"uni stream over the limit", 0, [][]byte{params, data(4*4+2, 0, "x", false)}, "limit"},
		{"stream window overrun", 0, [][]byte{params, data(0, 0, long, false)}, "overruns"},
		{"session window overrun", 0, [][]byte{
			params, data(0, 0, long[:400], false), data(4, 0, long[:400], false),
			data(8, 0, long[:400], false),
		}, "overruns"},
		{"window overrun by a reset", 0, [][]byte{
			params, appendFrame(nil, frameReset, 0, 7, 600),
		}, "overruns"},
		{"wrong offset", 0, [][]byte{params, data(0, 5, "x", false)}, "continues at 5"},
		{"data behind the end", 0, [][]byte{
			params, data(0, 0, "x", true), data(0, 1, "y", false),
		}, "behind the end"},
		{"data on a stream never opened", 0, [][]byte{params, data(1, 0, "x", false)}, "stream 1"},
		{"data on our uni stream", 0, [][]byte{params, data(3, 0, "x", false)}, "stream 3"},
		{"stop of the peer's uni stream", 0, [][]byte{
			params, appendFrame(nil, frameStop, 2, 0),
		}, "stream 2"},
		{"ping goes back", 0, [][]byte{
			params, appendFrame(nil, framePing, 5), appendFrame(nil, framePing, 5),
		}, "ping 5 after 5"},
		{"record limit below the minimum", 0, [][]byte{
			{
				0xff, 0x51, 0x53, 0x30, 0x0d, 0x0a, 0x0d, 0x0a, 11,
				0xc5, 0x71, 0xc5, 0x94, 0x29, 0xcd, 0x08, 0x45, 2, 0x7e, 0x80,
			},
		}, "record size 16000"},
	}
	cfg := Config{
		RequestStreams: 4, UniStreams: 4, StreamWindowBytes: 500, SessionWindowBytes: 1000,
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newRawPeer(t, cfg)
			kind := websocket.MessageBinary
			if test.kind != 0 {
				kind = test.kind
			}
			for _, record := range test.records {
				p.send(t, kind, record)
			}
			var last frame
			for _, f := range p.frames(t) {
				last = f
			}
			if last.kind != frameClose || !strings.Contains(string(last.data), test.reason) {
				t.Errorf("last frame %#x %q, want a close with %q", last.kind, last.data, test.reason)
			}
			<-p.session.Context().Done()
			e, ok := errors.AsType[*protocol.SessionError](context.Cause(p.session.Context()))
			if !ok || e.Code != protocol.SessionProtocolViolation || e.Remote {
				t.Errorf("cause %v", context.Cause(p.session.Context()))
			}
		})
	}
}

func TestOddButLegalInput(t *testing.T) {
	p := newRawPeer(t, Config{})
	ctx := testContext(t)
	p.send(t, websocket.MessageBinary, append(make([]byte, 9), testParameters()...))
	p.send(t, websocket.MessageBinary, nil)
	many := make([]byte, 3) // padding, then a record with many frames
	many = append(many, data(5<<2, 0, "late first", true)...)
	many = appendFrame(many, frameDataBlocked, 3)
	many = appendFrame(many, frameStreamBlocked, 5<<2, 3)
	many = appendFrame(many, frameStop, 5<<2, 0)
	many = appendFrame(many, frameStop, 5<<2, 0)
	many = appendFrame(many, frameReset, 5<<2, 0, 0)
	many = append(many, 0x08|streamHasLength, 0, 2, 'n', 'o') // without an offset
	many = append(many, 0x08|streamFIN, 0, ' ', 'o', 'f', 'f')
	p.send(t, websocket.MessageBinary, many)
	for _, want := range []string{"late first", "no off"} {
		s, err := p.session.AcceptStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wantAll(t, s, want)
	}
	// Old senders reset with final size 0 whatever they sent.
	p.send(t, websocket.MessageBinary,
		appendFrame(data(1<<2, 0, "partial", false), frameReset, 1<<2, 9, 0))
	s, err := p.session.AcceptStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Read(make([]byte, 10))
	wantCode(t, err, 9)
}

// A peer that grants much and reads nothing holds one queue of ours, not more,
// and its session still ends.
func TestPeerThatNeverReads(t *testing.T) {
	p := newRawPeer(t, Config{})
	grant := Config{StreamWindowBytes: 1 << 40, SessionWindowBytes: 1 << 40, UniStreams: 1 << 40}
	p.send(t, websocket.MessageBinary, appendParameters(nil, grant.parameters()))
	ctx := testContext(t)
	chunk := make([]byte, 60_000)
	total := 0
	for total < 1<<30 {
		st, err := p.session.OpenUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if st.TryWrite(chunk) == nil {
			total += len(chunk)
			mustClose(t, st)
			continue
		}
		// The writer may just be between two records: only a Write that does not
		// return shows that the socket is full.
		wrote := make(chan error, 1)
		go func() {
			_, err := st.Write(chunk)
			wrote <- err
		}()
		select {
		case err := <-wrote:
			if err != nil {
				t.Fatal(err)
			}
			total += len(chunk)
			continue
		case <-time.After(3 * time.Second): // long, for a loaded machine
		}
		s := p.session.(*session)
		s.mu.Lock()
		queued := len(s.queue.bytes)
		s.mu.Unlock()
		if queued > queueBytesMax {
			t.Errorf("%d bytes queued", queued)
		}
		_ = p.session.CloseWithError(7, "bye")
		if err := <-wrote; err == nil {
			t.Error("Write went on")
		}
		<-s.readerDone
		return
	}
	t.Fatal("the socket took everything")
}

// unconnected is a session behind the peer's parameters that has no socket, no
// reader and no writer.
func unconnected(t testing.TB, cfg Config) *session {
	t.Helper()
	s := newSession(nil, testToken, true, cfg.parameters())
	s.ticker = time.AfterFunc(time.Hour, func() {})
	t.Cleanup(func() { s.ticker.Stop() })
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if err := s.record(testParameters()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPeerThatPilesUpAnswers(t *testing.T) {
	s := unconnected(t, Config{})
	s.queue.bytes = make([]byte, controlBytesMax+1) // as if unread for long
	if err := s.record(appendFrame(nil, framePing, 1)); !errors.Is(err, errRule) {
		t.Errorf("got %v", err)
	}
}

func TestIdlePeerIsGivenUp(t *testing.T) {
	s := unconnected(t, Config{})
	s.lastReceived = time.Now().Add(-2 * s.idle)
	s.tick()
	if cause := context.Cause(s.ctx); cause == nil ||
		!strings.Contains(cause.Error(), "nothing received") {
		t.Errorf("cause %v", cause)
	}
}

func TestStuckWriteIsGivenUp(t *testing.T) {
	p := newRawPeer(t, Config{})
	s := p.session.(*session)
	s.mu.Lock()
	s.writingSince = time.Now().Add(-2 * s.idle)
	s.mu.Unlock()
	s.tick()
	if cause := context.Cause(s.ctx); cause == nil ||
		!strings.Contains(cause.Error(), "does not read") {
		t.Errorf("cause %v", cause)
	}
	<-s.readerDone
}

func TestQuietSessionPings(t *testing.T) {
	s := unconnected(t, Config{})
	s.queue.clear() // parameters and the first ping
	s.lastSent = time.Now()
	s.tick()
	if len(s.queue.bytes) > 0 {
		t.Errorf("pinged at once: % x", s.queue.bytes)
	}
	s.lastSent = time.Now().Add(-s.idle / 2)
	s.tick()
	f, _, err := parseFrame(s.queue.bytes)
	if err != nil || f.kind != framePing || f.value != 2 {
		t.Errorf("got %+v, %v", f, err)
	}
}
