package quic

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol"
)

const (
	testToken   = "moq-lite-05"
	testTimeout = 10 * time.Second
)

// testListener is a Listener on loopback that hands its sessions to a channel.
type testListener struct {
	*Listener
	hash     [32]byte
	sessions chan protocol.Session
	via      net.Addr // where to dial it, if that is elsewhere
}

func listen(t *testing.T, cfg Config) *testListener {
	t.Helper()
	cert, hash, err := DevelopmentCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	socket, err := ListenUDP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	if cfg.Protocols == nil {
		cfg.Protocols = []string{testToken}
	}
	l, err := Listen(socket, cfg)
	if err != nil {
		t.Fatal(err)
	}
	tl := &testListener{Listener: l, hash: hash, sessions: make(chan protocol.Session, 16)}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() {
		ran <- l.Run(ctx, func(ctx context.Context, s protocol.Session) {
			tl.sessions <- s
			<-ctx.Done()
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return tl
}

func (l *testListener) address() string {
	if l.via != nil {
		return l.via.String()
	}
	return l.Addr().String()
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

func (l *testListener) dial(
	ctx context.Context, transport string, cfg DialConfig,
) (protocol.Session, error) {
	cfg.CertificateSHA256 = &l.hash
	if cfg.Protocols == nil {
		cfg.Protocols = []string{testToken}
	}
	if transport == transportQUIC {
		return Dial(ctx, l.address(), cfg)
	}
	return DialWebTransport(ctx, "https://"+l.address()+"/room/7?jwt=x", cfg)
}

// pair is a connected client and server session.
func pair(t *testing.T, transport string, cfg DialConfig) (client, server protocol.Session) {
	t.Helper()
	l := listen(t, Config{})
	ctx := testContext(t)
	client, err := l.dial(ctx, transport, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.CloseWithError(0, "") })
	select {
	case server = <-l.sessions:
	case <-ctx.Done():
		t.Fatal("no session arrived")
	}
	return client, server
}

// both runs f on each transport.
func both(t *testing.T, f func(t *testing.T, transport string)) {
	for _, transport := range []string{transportQUIC, transportWebTransport} {
		t.Run(transport, func(t *testing.T) { f(t, transport) })
	}
}

func TestSessionCarriesStreams(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		client, server := pair(t, transport, DialConfig{})
		ctx := testContext(t)
		for _, s := range []protocol.Session{client, server} {
			if s.Protocol() != testToken || s.Transport() != transport {
				t.Errorf("got %s over %s", s.Protocol(), s.Transport())
			}
		}
		uri := ""
		if transport == transportWebTransport {
			uri = "/room/7?jwt=x"
		}
		if server.RequestURI() != uri {
			t.Errorf("request URI %q, want %q", server.RequestURI(), uri)
		}
		checkRequest(ctx, t, client, server)
		checkRequest(ctx, t, server, client)
		checkUni(ctx, t, client, server)
		checkUni(ctx, t, server, client)
		if stats := server.Stats(); stats.BytesSent == 0 || stats.BytesReceived == 0 {
			t.Errorf("stats %+v", stats)
		}
	})
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
	// Both ways of writing keep their order.
	for _, part := range []string{"an", "sw"} {
		if err := answering.TryWrite([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	mustWrite(t, answering, "er")
	if err := answering.TryWrite([]byte("!")); err != nil {
		t.Fatal(err)
	}
	mustClose(t, answering)
	wantAll(t, asked, "answer!")
}

func checkUni(ctx context.Context, t *testing.T, from, to protocol.Session) {
	t.Helper()
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB, above every window
	bodies := []string{"", "small", big}
	for _, body := range bodies {
		s, err := from.OpenUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s.SetPriority(1)
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
	const granted = 8
	both(t, func(t *testing.T, transport string) {
		client, server := pair(t, transport, DialConfig{UniStreams: granted})
		ctx := testContext(t)
		opened := 0
		for {
			s, err := server.TryOpenUniStream()
			if errors.Is(err, protocol.ErrStreamLimit) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			opened++
			if err := s.TryWrite([]byte("group")); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			if opened > granted {
				t.Fatalf("opened %d streams of %d", opened, granted)
			}
		}
		if opened < granted-3 { // HTTP/3 takes up to three
			t.Fatalf("opened only %d of %d", opened, granted)
		}
		waited := make(chan error, 1)
		go func() {
			s, err := server.OpenUniStream(ctx)
			if err == nil {
				// The same bytes: WebTransport streams arrive in any order.
				err = errors.Join(s.TryWrite([]byte("group")), s.Close())
			}
			waited <- err
		}()
		for range opened { // reading to the end returns the credit
			r, err := client.AcceptUniStream(ctx)
			if err != nil {
				t.Fatal(err)
			}
			wantAll(t, r, "group")
		}
		if err := <-waited; err != nil {
			t.Fatal(err)
		}
	})
}

func TestOpenEndsWithItsContext(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		_, server := pair(t, transport, DialConfig{UniStreams: 4})
		for {
			if _, err := server.TryOpenUniStream(); err != nil {
				break
			}
		}
		cause := errors.New("no longer wanted")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := server.OpenUniStream(ctx); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	})
}

func TestResetAndStopCarryTheirCodes(t *testing.T) {
	codes := []protocol.StreamCode{0, 13, 29, 30, 31, 64, 404, 4242}
	both(t, func(t *testing.T, transport string) {
		client, server := pair(t, transport, DialConfig{})
		ctx := testContext(t)
		for _, code := range codes {
			// A client's request is refused in both directions.
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

			// A group is given up by its reader.
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
		}
	})
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
	both(t, func(t *testing.T, transport string) {
		client, server := pair(t, transport, DialConfig{})
		ctx := testContext(t)
		s, err := server.OpenUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		chunk := bytes.Repeat([]byte("x"), 50_000)
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
			if written > 64<<20 {
				t.Fatal("TryWrite never said that there is no room")
			}
		}
		if written == 0 {
			t.Fatal("nothing was queued")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := client.AcceptUniStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || len(got) != written {
			t.Fatalf("read %d of %d: %v", len(got), written, err)
		}
	})
}

func TestCloseCarriesCodeAndReason(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		for _, who := range []string{"server", "client"} {
			t.Run(who, func(t *testing.T) {
				client, server := pair(t, transport, DialConfig{})
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
				<-closing.Context().Done()
				select {
				case <-other.Context().Done():
				case <-ctx.Done():
					t.Fatal("peer never heard of the end")
				}
				wantSession(t, context.Cause(other.Context()), 7, true)
				wantSession(t, context.Cause(closing.Context()), 7, false)
				if _, err := io.ReadAll(r); err == nil {
					t.Error("reading went on after the session's end")
				}
				if _, err := s.Write(nil); err == nil {
					_, err = s.Write([]byte("x"))
					if err == nil {
						t.Error("writing went on after the session's end")
					}
				}
				if _, err := closing.AcceptStream(ctx); err == nil {
					t.Error("accepting went on after the session's end")
				}
				if _, err := closing.OpenStream(ctx); err == nil {
					t.Error("opening went on after the session's end")
				}
				_ = closing.CloseWithError(8, "again")
				wantSession(t, context.Cause(closing.Context()), 7, false)
			})
		}
	})
}

func wantSession(t *testing.T, err error, code protocol.SessionCode, remote bool) {
	t.Helper()
	e, ok := errors.AsType[*protocol.SessionError](err)
	if !ok || e.Code != code || e.Remote != remote || e.Reason != "bye" {
		t.Errorf("got %#v, want code %d, remote %v", err, code, remote)
	}
}

func TestReadDeadline(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		client, server := pair(t, transport, DialConfig{})
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
		if err := answering.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := answering.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if err := answering.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, asked, "y")
		if n, err := answering.Read(buf); err != nil || n != 1 {
			t.Fatalf("read %d: %v", n, err)
		}
	})
}
