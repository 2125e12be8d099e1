package host

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
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
