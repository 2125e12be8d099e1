package quic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/sessiontest"
)

// sayGone ends both halves of a stream that its session opened as the peer of a
// WebTransport session does that is closing, and leaves the session as it is.
func sayGone(t *testing.T, s protocol.Stream) {
	t.Helper()
	opened, ok := s.(stream)
	if !ok {
		t.Fatalf("a stream of type %T", s)
	}
	opened.sendHalf.endWithSession()
	opened.receiveHalf.endWithSession()
}

// Whoever ends a session, no call on it waits longer.
func TestBlockedCallsEnd(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		ends := map[string]func(client, server protocol.Session){
			"by the server": func(_, server protocol.Session) { _ = server.CloseWithError(7, "bye") },
			"by the client": func(client, _ protocol.Session) { _ = client.CloseWithError(7, "bye") },
			"by both": func(client, server protocol.Session) {
				go func() { _ = client.CloseWithError(7, "bye") }()
				_ = server.CloseWithError(7, "bye")
			},
		}
		for name, end := range ends {
			t.Run(name, func(t *testing.T) {
				l := listen(t, Config{RequestStreams: 8, UniStreams: 8})
				ctx := testContext(t)
				client, err := l.dial(ctx, transport, DialConfig{RequestStreams: 8, UniStreams: 8})
				if err != nil {
					t.Fatal(err)
				}
				server := <-l.sessions
				sessiontest.BlockedCallsEnd(ctx, t, client, server, func() { end(client, server) })
			})
		}
	})
}

// Streams that the peer has ended as those of a session that is gone hold their
// reader and writer until the session ends, and no longer than the stream or the
// session that we end ourselves.
func TestSessionGoneHoldsNobody(t *testing.T) {
	ends := []struct {
		name string
		end  func(from, to protocol.Session, s protocol.Stream)
	}{
		{"stream given up", func(_, _ protocol.Session, s protocol.Stream) {
			s.Reset(protocol.CodeCancel)
			s.Stop(protocol.CodeCancel)
		}},
		{"stream given up, then a deadline is lifted", func(_, _ protocol.Session, s protocol.Stream) {
			s.Reset(protocol.CodeCancel)
			s.Stop(protocol.CodeCancel)
			_ = s.SetReadDeadline(time.Time{})
		}},
		{"session closed", func(_, to protocol.Session, _ protocol.Stream) {
			_ = to.CloseWithError(7, "bye")
		}},
		{"session closed by the peer", func(from, _ protocol.Session, _ protocol.Stream) {
			_ = from.CloseWithError(7, "bye")
		}},
		{"connection lost", func(from, _ protocol.Session, _ protocol.Stream) {
			_ = from.(*session).conn.CloseWithError(h3NoError, "")
		}},
	}
	for _, opener := range []string{"client", "server"} {
		for _, e := range ends {
			t.Run(opener+" opens, "+e.name, func(t *testing.T) {
				from, to := pair(t, transportWebTransport, DialConfig{})
				if opener == "server" {
					from, to = to, from
				}
				ctx := testContext(t)
				asked, err := from.OpenStream(ctx)
				if err != nil {
					t.Fatal(err)
				}
				mustWrite(t, asked, "x")
				answering, err := to.AcceptStream(ctx)
				if err != nil {
					t.Fatal(err)
				}
				buf := make([]byte, 8)
				if _, err := answering.Read(buf); err != nil {
					t.Fatal(err)
				}
				sayGone(t, asked)
				waitDone(t, answering)
				checkUni(ctx, t, from, to) // so that the reset is here as well
				ended := make(chan error, 3)
				go func() { ended <- failing(answering.Read(buf)) }()
				go func() { ended <- failing(answering.Write(buf)) }()
				e.end(from, to, answering)
				go func() { ended <- failing(answering.Read(buf)) }()
				for range cap(ended) {
					select {
					case err := <-ended:
						if err != nil {
							t.Error(err)
						}
					case <-ctx.Done():
						t.Fatal("a call never returned")
					}
				}
			})
		}
	}
}

// failing wants a call on a stream to have failed for good.
func failing(n int, err error) error {
	if n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%d bytes, error %v", n, err)
	}
	return nil
}

// What TryWrite left behind for a peer that takes nothing more goes with the
// stream.
func TestSessionGoneHoldsNoPendingBytes(t *testing.T) {
	client, server := pair(t, transportWebTransport, DialConfig{})
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
	sayGone(t, asked)
	waitDone(t, answering)
	if err := answering.TryWrite([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	answering.Reset(protocol.CodeCancel)
	h := answering.(wtStream).wtSendHalf
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		h.mu.Lock()
		defer h.mu.Unlock()
		for h.pumping {
			h.idle.Wait()
		}
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		t.Fatal("still writing")
	}
}

// A stream that its peer ended as one of a session that is gone has given its
// credit back, and is held all the same: a peer that goes on like that loses the
// session.
func TestPeerThatSaysGoneAndStays(t *testing.T) {
	const granted = 16
	for _, kind := range []struct {
		name string
		open func(ctx context.Context, t *testing.T, client, server protocol.Session) error
	}{
		{"requests", goneRequest}, {"unidirectional streams", goneUniStream},
	} {
		t.Run(kind.name, func(t *testing.T) {
			l := listen(t, Config{RequestStreams: granted, UniStreams: granted})
			ctx := testContext(t)
			client, err := l.dial(ctx, transportWebTransport, DialConfig{})
			if err != nil {
				t.Fatal(err)
			}
			server := <-l.sessions
			opened := 0
			for kind.open(ctx, t, client, server) == nil {
				if opened++; opened > 10*granted {
					t.Fatalf("%d streams are held of %d granted", opened, 2*granted)
				}
			}
			select {
			case <-server.Context().Done():
			case <-ctx.Done():
				t.Fatalf("the session goes on after %d streams", opened)
			}
			e, ok := errors.AsType[*protocol.SessionError](context.Cause(server.Context()))
			if !ok || e.Code != protocol.SessionProtocolViolation || e.Remote {
				t.Errorf("session ended with %v", context.Cause(server.Context()))
			}
			if opened < granted {
				t.Errorf("ended at %d streams", opened)
			}
		})
	}
}

// goneRequest leaves the server reading and writing on a stream of a session that
// is gone.
func goneRequest(ctx context.Context, t *testing.T, client, server protocol.Session) error {
	s, err := client.OpenStream(ctx)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s, "x"); err != nil {
		return err
	}
	r, err := server.AcceptStream(ctx)
	if err != nil {
		return err
	}
	sayGone(t, s)
	select {
	case <-r.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	go func() { _, _ = io.WriteString(r, "answer") }()
	return nil
}

// goneUniStream is goneRequest for a stream that the server only reads.
func goneUniStream(ctx context.Context, t *testing.T, client, server protocol.Session) error {
	t.Helper()
	s, err := client.OpenUniStream(ctx)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s, "x"); err != nil {
		return err
	}
	r, err := server.AcceptUniStream(ctx)
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	s.(*sendHalf).endWithSession()
	return nil
}
