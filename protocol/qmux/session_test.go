package qmux

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/sessiontest"
)

const (
	testToken   = "moq-lite-05"
	testTimeout = 10 * time.Second
)

// testServer accepts sessions on loopback and hands them to a channel.
type testServer struct {
	url      string
	sessions chan protocol.Session
	refused  chan error
}

func serve(t *testing.T, cfg Config) *testServer {
	t.Helper()
	if cfg.Protocols == nil {
		cfg.Protocols = []string{testToken}
	}
	ts := &testServer{sessions: make(chan protocol.Session, 16), refused: make(chan error, 16)}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := Accept(w, r, cfg)
		if err != nil {
			ts.refused <- err
			return
		}
		ts.sessions <- s
	}))
	t.Cleanup(h.Close)
	ts.url = "ws" + strings.TrimPrefix(h.URL, "http")
	return ts
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

func pair(t *testing.T, clientConfig, serverConfig Config) (client, server protocol.Session) {
	t.Helper()
	ts := serve(t, serverConfig)
	clientConfig.Protocols = []string{testToken}
	client, err := Dial(testContext(t), ts.url+"/room/7?jwt=x", clientConfig)
	if err != nil {
		t.Fatal(err)
	}
	server = <-ts.sessions
	t.Cleanup(func() {
		_ = client.CloseWithError(0, "")
		_ = server.CloseWithError(0, "")
	})
	return client, server
}

func TestSessionCarriesStreams(t *testing.T) {
	client, server := pair(t, Config{}, Config{})
	ctx := testContext(t)
	for _, s := range []protocol.Session{client, server} {
		if s.Protocol() != testToken || s.Transport() != "websocket" ||
			s.RequestURI() != "/room/7?jwt=x" {
			t.Errorf("got %s over %s at %s", s.Protocol(), s.Transport(), s.RequestURI())
		}
	}
	checkRequest(ctx, t, client, server)
	checkRequest(ctx, t, server, client)
	checkUni(ctx, t, client, server)
	checkUni(ctx, t, server, client)
	if s := server.Stats(); s.BytesSent == 0 || s.BytesReceived == 0 || s.SmoothedRTT == 0 {
		t.Errorf("stats %+v", s)
	}
}

func checkRequest(ctx context.Context, t *testing.T, from, to protocol.Session) {
	t.Helper()
	asked, err := from.OpenStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := asked.TryWrite([]byte("ques")); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, asked, "tion")
	mustClose(t, asked)
	answering, err := to.AcceptStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wantAll(t, answering, "question")
	mustWrite(t, answering, "answer")
	mustClose(t, answering)
	wantAll(t, asked, "answer")
}

func checkUni(ctx context.Context, t *testing.T, from, to protocol.Session) {
	t.Helper()
	big := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB, above every window
	for _, body := range []string{"", "small", big} {
		s, err := from.OpenUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wrote := make(chan error, 1)
		go func() {
			_, err := io.WriteString(s, body)
			wrote <- errors.Join(err, s.Close())
		}()
		r, err := to.AcceptUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wantAll(t, r, body)
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
	}
}

func mustWrite(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if n, err := io.WriteString(w, s); err != nil || n != len(s) {
		t.Fatalf("wrote %d of %d: %v", n, len(s), err)
	}
}

func mustClose(t *testing.T, s protocol.SendStream) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantAll(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Fatalf("read %d bytes, want %d: %.40q", len(got), len(want), got)
	}
}

func TestStreamLimit(t *testing.T) {
	const granted = 3
	client, server := pair(t, Config{UniStreams: granted}, Config{})
	ctx := testContext(t)
	first, err := server.OpenUniStream(ctx) // waits for the parameters
	if err != nil {
		t.Fatal(err)
	}
	open := []protocol.SendStream{first}
	for range granted - 1 {
		s, err := server.TryOpenUniStream()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	if _, err := server.TryOpenUniStream(); !errors.Is(err, protocol.ErrStreamLimit) {
		t.Fatalf("got %v", err)
	}
	for _, s := range open {
		mustWrite(t, s, "group")
		mustClose(t, s)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := server.OpenUniStream(ctx)
		waited <- err
	}()
	for range granted {
		r, err := client.AcceptUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wantAll(t, r, "group")
	}
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	cause := errors.New("no longer wanted")
	cancelled, cancel := context.WithCancelCause(ctx)
	cancel(cause)
	for {
		if _, err := server.TryOpenUniStream(); err != nil {
			break
		}
	}
	if _, err := server.OpenUniStream(cancelled); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

// Many more streams and bytes than granted at once, with the smallest windows.
func TestCreditComesBack(t *testing.T) {
	small := Config{
		RequestStreams: 2, UniStreams: 2, StreamWindowBytes: 7, SessionWindowBytes: 11,
	}
	client, server := pair(t, small, small)
	ctx := testContext(t)
	const streams = 200
	body := "a frame longer than both windows"
	sent := make(chan error, 1)
	go func() {
		for range streams {
			s, err := server.OpenUniStream(ctx)
			if err == nil {
				_, err = io.WriteString(s, body)
			}
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for range streams {
		r, err := client.AcceptUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wantAll(t, r, body)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	// Requests that are refused, stopped or unread return their credit as well.
	for i := range streams {
		asked, err := client.OpenStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, asked, "quest")
		answering, err := server.AcceptStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 3 {
		case 0:
			answering.Stop(13)
			answering.Reset(13)
			_, err := io.ReadAll(asked)
			wantCode(t, err, 13)
		case 1:
			asked.Reset(7)
			mustClose(t, answering)
			wantAll(t, asked, "")
		case 2:
			mustClose(t, asked)
			asked.Stop(0)
			waitDone(t, answering)
			wantAll(t, answering, "quest")
		}
	}
}

func TestResetAndStopCarryTheirCodes(t *testing.T) {
	client, server := pair(t, Config{}, Config{})
	ctx := testContext(t)
	for _, code := range []protocol.StreamCode{0, 13, 64, 4242} {
		asked, err := client.OpenStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, asked, "subscribe")
		answering, err := server.AcceptStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		answering.Reset(code)
		answering.Stop(code)
		_, err = io.ReadAll(asked)
		wantCode(t, err, code)
		waitDone(t, asked)
		_, err = asked.Write([]byte("more"))
		wantCode(t, err, code)
		// Harmless on halves that have ended.
		answering.Stop(code)
		answering.Reset(code)
		asked.Stop(code)
		asked.Reset(code)

		group, err := server.OpenUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, group, "frame")
		r, err := client.AcceptUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		r.Stop(code)
		waitDone(t, group)
		_, err = group.Write([]byte("frame"))
		wantCode(t, err, code)
		if err := group.TryWrite([]byte("frame")); err == nil {
			t.Error("TryWrite went on")
		}
	}
}

func wantCode(t *testing.T, err error, code protocol.StreamCode) {
	t.Helper()
	e, ok := errors.AsType[*protocol.StreamError](err)
	if !ok || e.Code != code || !e.Remote {
		t.Fatalf("got %v, want the peer's code %d", err, code)
	}
}

func waitDone(t *testing.T, s protocol.SendStream) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(testTimeout):
		t.Fatal("Done did not close")
	}
}

func TestTryWriteQueuesAllOrNothing(t *testing.T) {
	client, server := pair(t, Config{StreamWindowBytes: 100_000}, Config{})
	ctx := testContext(t)
	s, err := server.OpenUniStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	chunk := bytes.Repeat([]byte("x"), 30_000)
	written := 0
	for {
		err := s.TryWrite(chunk)
		if errors.Is(err, protocol.ErrWouldBlock) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		written += len(chunk)
	}
	if written != 90_000 {
		t.Fatalf("queued %d bytes in a window of 100,000", written)
	}
	mustClose(t, s)
	if err := s.TryWrite(nil); !errors.Is(err, errWriteAfterClose) {
		t.Errorf("after Close: %v", err)
	}
	r, err := client.AcceptUniStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || len(got) != written {
		t.Fatalf("read %d of %d: %v", len(got), written, err)
	}
}

func TestReadDeadline(t *testing.T) {
	client, server := pair(t, Config{}, Config{})
	ctx := testContext(t)
	asked, err := client.OpenStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, asked, "x")
	answering, err := server.AcceptStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	if _, err := answering.Read(buf); err != nil {
		t.Fatal(err)
	}
	for _, deadline := range []time.Duration{-time.Second, time.Millisecond} {
		if err := answering.SetReadDeadline(time.Now().Add(deadline)); err != nil {
			t.Fatal(err)
		}
		if _, err := answering.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	}
	if err := answering.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, asked, "y")
	if n, err := answering.Read(buf); err != nil || n != 1 {
		t.Fatalf("read %d: %v", n, err)
	}
}

func TestCloseCarriesCodeAndReason(t *testing.T) {
	for _, who := range []string{"server", "client"} {
		t.Run(who, func(t *testing.T) {
			client, server := pair(t, Config{}, Config{})
			ctx := testContext(t)
			closing, other := server, client
			if who == "client" {
				closing, other = client, server
			}
			s, err := closing.OpenUniStream(ctx)
			if err != nil {
				t.Fatal(err)
			}
			mustWrite(t, s, "unfinished")
			r, err := other.AcceptUniStream(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := closing.CloseWithError(7, "bye"); err != nil {
				t.Fatal(err)
			}
			select {
			case <-other.Context().Done():
			case <-ctx.Done():
				t.Fatal("peer never heard of the end")
			}
			wantSession(t, context.Cause(other.Context()), 7, true)
			wantSession(t, context.Cause(closing.Context()), 7, false)
			waitDone(t, s)
			_, errRead := io.ReadAll(r)
			_, errWrite := s.Write([]byte("x"))
			_, errAccept := other.AcceptStream(ctx)
			_, errOpen := other.OpenStream(ctx)
			_, errTry := other.TryOpenUniStream()
			for _, err := range []error{errRead, errWrite, errAccept, errOpen, errTry} {
				if _, ok := errors.AsType[*protocol.SessionError](err); !ok {
					t.Errorf("after the end: %v", err)
				}
			}
			_ = closing.CloseWithError(8, "again")
			wantSession(t, context.Cause(closing.Context()), 7, false)
		})
	}
}

// Whoever ends a session, no call on it waits longer.
func TestBlockedCallsEnd(t *testing.T) {
	few := Config{RequestStreams: 8, UniStreams: 8}
	for _, who := range []string{"server", "client", "both"} {
		t.Run(who, func(t *testing.T) {
			client, server := pair(t, few, few)
			sessiontest.BlockedCallsEnd(testContext(t), t, client, server, func() {
				if who != "server" {
					_ = client.CloseWithError(7, "bye")
				}
				if who != "client" {
					_ = server.CloseWithError(7, "bye")
				}
			})
		})
	}
}

func wantSession(t *testing.T, err error, code protocol.SessionCode, remote bool) {
	t.Helper()
	e, ok := errors.AsType[*protocol.SessionError](err)
	if !ok || e.Code != code || e.Remote != remote || e.Reason != "bye" {
		t.Errorf("got %#v, want code %d, remote %v", err, code, remote)
	}
}

func TestRefusals(t *testing.T) {
	ts := serve(t, Config{AllowOrigin: func(r *http.Request) bool {
		return r.Header.Get("Origin") != "https://evil.example"
	}})
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"unknown token", Config{Protocols: []string{"moq-lite-99"}}, "400"},
		{"no token", Config{}, "400"},
		{"foreign origin", Config{
			Protocols: []string{testToken},
			Header:    http.Header{"Origin": {"https://evil.example"}},
		}, "403"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Dial(testContext(t), ts.url, test.cfg)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("client got %v", err)
			}
			if err := <-ts.refused; !errors.Is(err, ErrRefused) {
				t.Errorf("server got %v", err)
			}
		})
	}
}

func TestRefusalNamesWhatIsSpoken(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
	r.Header.Set("Sec-WebSocket-Protocol", "qmux-01.moq-lite-05, qmux-02, webtransport")
	if _, err := Accept(w, r, Config{Protocols: []string{testToken}}); err == nil {
		t.Fatal("accepted")
	}
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "qmux-02.moq-lite-05") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

func TestChoose(t *testing.T) {
	ours := []string{"qmux-02.moq-lite-06", "qmux-02.moq-lite-05"}
	tests := []struct {
		name   string
		offers []string
		want   string
	}{
		{"none", nil, ""},
		{"our order, not theirs", []string{"qmux-02.moq-lite-05, qmux-02.moq-lite-06"}, ours[0]},
		{"two lines", []string{"qmux-00", " qmux-02.moq-lite-05 "}, ours[1]},
		{"bare names never win", []string{"qmux-02, webtransport, moq-lite-05"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := choose(ours, test.offers)
			if got != test.want || ok != (test.want != "") {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}

// A stream that is over holds no timer: requests set a deadline each, and a
// flood of them would be kept for as long as it.
func TestNoTimerBehindAStream(t *testing.T) {
	s := &session{streams: map[uint64]*stream{}, isServer: true, blocked: map[*stream]struct{}{}}
	s.wake = make(chan struct{}, 1)
	for _, end := range []func(st *stream){
		func(st *stream) { // the peer resets, we reset
			s.mu.Lock()
			_ = s.resetLocked(frame{id: st.id, code: 1})
			s.mu.Unlock()
			st.Reset(0)
		},
		func(st *stream) {
			s.mu.Lock()
			st.endWithSessionLocked()
			s.mu.Unlock()
		},
	} {
		s.incoming[bidi] = incoming{granted: 8, window: 8, skipped: map[uint64]struct{}{}}
		s.mu.Lock()
		st, err := s.arrivingLocked(0)
		s.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := st.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		end(st)
		if st.deadlineTimer != nil {
			t.Error("a timer is left")
		}
		clear(s.streams)
	}
}
