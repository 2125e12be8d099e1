package quic

import (
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// relay forwards packets between the only client that writes to it and the server that
// it is told last, by a socket of its own for each server.
type relay struct {
	front  *net.UDPConn
	client atomic.Pointer[net.UDPAddr]
	back   atomic.Pointer[net.UDPConn]
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	front, err := ListenUDP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	r := &relay{front: front}
	go func() {
		packet := make([]byte, 1<<16)
		for {
			n, from, err := front.ReadFromUDP(packet)
			if err != nil {
				return
			}
			r.client.Store(from)
			if back := r.back.Load(); back != nil {
				_, _ = back.Write(packet[:n])
			}
		}
	}()
	return r
}

func (r *relay) to(t *testing.T, server net.Addr) {
	t.Helper()
	back, err := net.DialUDP("udp", nil, server.(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = back.Close() })
	r.back.Store(back)
	go func() {
		packet := make([]byte, 1<<16)
		for {
			n, err := back.Read(packet)
			if err != nil {
				return
			}
			if r.back.Load() == back {
				_, _ = r.front.WriteToUDP(packet[:n], r.client.Load())
			}
		}
	}()
}

// A client that is idle notices soon that its server was killed and is back, and not
// only by the idle timeout. The server that comes after has the same keys and knows no
// connection.
func TestKilledServerIsNoticed(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		key := [32]byte{1, 2, 3}
		first := listen(t, Config{StatelessResetKey: &key})
		second := listen(t, Config{StatelessResetKey: &key})
		r := newRelay(t)
		r.to(t, first.Addr())
		ctx := testContext(t)
		through := *first
		through.via = r.front.LocalAddr()
		client, err := through.dial(ctx, transport, DialConfig{probePeriod: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		<-first.sessions
		r.to(t, second.Addr())
		select {
		case <-client.Context().Done():
		case <-time.After(idleTimeout / 3):
			t.Error("the session goes on")
		}
	})
}
