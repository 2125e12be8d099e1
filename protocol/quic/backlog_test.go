package quic

import (
	"errors"
	"net"
	"testing"
	"time"

	quicgo "github.com/quic-go/quic-go"

	"github.com/heddle-live/heddle/protocol"
)

func TestBacklogFollowsTheConnection(t *testing.T) {
	var b backlog
	var st quicgo.ConnectionStats
	stats := func() quicgo.ConnectionStats { return st }
	now := time.Now()
	b.add(backlogBytesMax - 1)
	if _, full := b.full(now, stats); full {
		t.Fatal("full below the limit")
	}
	b.add(1)
	if _, full := b.full(now, stats); !full {
		t.Fatal("not full at the limit")
	}
	st.BytesSent, st.BytesLost = 1000, 1000
	if _, full := b.full(now, stats); !full {
		t.Fatal("lost bytes counted as sent")
	}
	st.BytesSent += 10
	if _, full := b.full(now, stats); full {
		t.Fatal("still full after sending")
	}
	b.add(10)
	st.BytesSent += 1 << 30
	if _, full := b.full(now, stats); full || b.pending.Load() != 0 || !b.fullSince.IsZero() {
		t.Fatalf("pending %d, full since %v", b.pending.Load(), b.fullSince)
	}
}

// Streams that their peer stops take what they held out of the connection, and
// nothing tells how much: a backlog that seems full for good is emptied, but no
// more often than the peer takes one.
func TestBacklogThatSeemsFullIsEmptied(t *testing.T) {
	var b backlog
	var st quicgo.ConnectionStats
	stats := func() quicgo.ConnectionStats { return st }
	now := time.Now()
	fill := func() { b.pending.Store(backlogBytesMax) }
	expect := func(want bool) {
		t.Helper()
		if _, full := b.full(now, stats); full != want {
			t.Fatalf("full is %v", full)
		}
	}
	fill()
	expect(true)
	now = now.Add(backlogPatience)
	expect(false)
	fill()
	expect(true)
	now = now.Add(backlogTimeout + time.Second)
	if since, full := b.full(now, stats); !full || since < backlogTimeout {
		t.Fatalf("full %v for %v", full, since)
	}
	st.BytesSent += backlogBytesMax
	expect(false)
	fill()
	expect(true)
	now = now.Add(backlogPatience)
	expect(false)
}

// hole forwards datagrams to the server until it is blocked.
type hole struct {
	conn    net.PacketConn
	blocked chan struct{}
}

// A peer that grants streams without limit and stops taking packets makes us
// hold the backlog and no more, and what can wait says so.
func TestPeerThatTakesNothing(t *testing.T) {
	l := listen(t, Config{})
	near, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{conn: near, blocked: make(chan struct{})}
	relayed := make(chan struct{})
	go func() { defer close(relayed); h.relay(l.Addr()) }()
	t.Cleanup(func() { _ = near.Close(); <-relayed })

	cfg := DialConfig{Protocols: []string{testToken}, CertificateSHA256: &l.hash}
	generous := cfg.quicConfig()
	generous.MaxIncomingUniStreams = 1 << 40
	generous.InitialConnectionReceiveWindow = 1 << 40
	generous.MaxConnectionReceiveWindow = 1 << 40
	tlsConfig := cfg.tlsConfig()
	tlsConfig.NextProtos = cfg.Protocols
	client, err := quicgo.DialAddr(testContext(t), near.LocalAddr().String(), tlsConfig, generous)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.CloseWithError(0, "") })
	server := <-l.sessions
	close(h.blocked)
	chunk := make([]byte, 1000)
	accepted := 0
	for accepted < 100<<20 {
		s, err := server.TryOpenUniStream()
		if errors.Is(err, protocol.ErrStreamLimit) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.TryWrite(chunk); err != nil {
			t.Fatal(err)
		}
		accepted += len(chunk)
	}
	if accepted < backlogBytesMax/2 || accepted > 2*backlogBytesMax {
		t.Errorf("accepted %d bytes", accepted)
	}
	s := server.(*session)
	s.backlog.mu.Lock()
	s.backlog.fullSince = time.Now().Add(-2 * backlogTimeout)
	s.backlog.emptied = true
	s.backlog.mu.Unlock()
	if _, err := server.TryOpenUniStream(); err == nil {
		t.Error("opened a stream")
	}
	<-server.Context().Done()
}

// relay passes packets between the first sender and server, nothing once it is
// blocked, until its socket is closed.
func (h *hole) relay(server net.Addr) {
	var client net.Addr
	buf := make([]byte, 2048)
	for {
		n, from, err := h.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		to := server
		if from.String() == server.String() {
			to = client
		} else {
			client = from
		}
		select {
		case <-h.blocked:
		default:
			_, _ = h.conn.WriteTo(buf[:n], to)
		}
	}
}
