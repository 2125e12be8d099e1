package host

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/quic"
)

func TestConnectionsMax(t *testing.T) {
	for _, c := range []struct{ sessions, files, want int64 }{
		{20_000, 0, 20_000 + connectionsSpare},
		{20_000, 1 << 20, 20_000 + connectionsSpare},
		{20_000, 20_000, 20_000 - filesSpare},
		{20_000, 256, 128},
	} {
		if got := connectionsMax(c.sessions, c.files); got != c.want {
			t.Errorf("%d sessions, %d files: %d, want %d", c.sessions, c.files, got, c.want)
		}
	}
}

// A connection over the limit is closed at once, and one that ends makes room.
func TestCappedListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &capped{Listener: inner, max: 1}
	defer l.Close()
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		return conn
	}
	dial()
	first := <-accepted
	if _, err := dial().Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection over the limit: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_ = first.Close() // counts once
	third := dial()
	go func() { _, _ = io.WriteString(<-accepted, "a") }()
	if _, err := third.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection in the place of one that ended: %v", err)
	}
	if n := l.open.Load(); n != 1 {
		t.Errorf("%d connections counted", n)
	}
}

// A request for a WebSocket that comes after the sessions were closed begins
// none: nobody would wait for it.
func TestWebSocketAfterTheEnd(t *testing.T) {
	l := &listeners{}
	l.closing, l.close = context.WithCancelCause(t.Context())
	socket, err := quic.ListenUDP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certificate, _, err := quic.DevelopmentCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l.quic, err = quic.Listen(socket, quic.Config{
		TLS:       &tls.Config{Certificates: []tls.Certificate{certificate}},
		Protocols: lite.VersionNames(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if !l.enterWebSocket() {
		t.Error("refused before the end")
	}
	l.websockets.Done()
	l.server = &Server{logger: slog.New(slog.DiscardHandler)}
	l.closeSessions()
	w := httptest.NewRecorder()
	l.serveWebSocket(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.Code)
	}
}
