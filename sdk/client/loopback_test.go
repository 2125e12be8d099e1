package client

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/qmux"
	"github.com/heddle-live/heddle/protocol/quic"
)

// loopback serves o on one port of 127.0.0.1, TCP and UDP, as the host does.
func loopback(t *testing.T, o *origin) (address string) {
	t.Helper()
	cert, hash, err := quic.DevelopmentCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	tcp, udp := onePort(t)
	handle := func(ctx context.Context, s protocol.Session) {
		_ = lite.NewSession(s, lite.Config{Origin: o}).Run(ctx)
	}
	l, err := quic.Listen(udp, quic.Config{
		TLS:       &tls.Config{Certificates: []tls.Certificate{cert}},
		Protocols: lite.VersionNames(),
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/certificate.sha256", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, hex.EncodeToString(hash[:])+"\n")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if s, err := qmux.Accept(w, r, qmux.Config{Protocols: lite.VersionNames()}); err == nil {
			handle(s.Context(), s)
		}
	})
	server := &http.Server{Handler: mux}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{}, 2)
	go func() { _ = l.Run(ctx, handle); ran <- struct{}{} }()
	go func() { _ = server.Serve(tcp); ran <- struct{}{} }()
	t.Cleanup(func() {
		cancel()
		_ = server.Close()
		<-ran
		<-ran
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return tcp.Addr().String()
}

// onePort binds the same free port for TCP and UDP.
func onePort(t *testing.T) (net.Listener, *net.UDPConn) {
	t.Helper()
	for range 20 {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if udp, err := quic.ListenUDP(tcp.Addr().String()); err == nil {
			return tcp, udp
		}
		_ = tcp.Close()
	}
	t.Fatal("no port is free for both")
	return nil, nil
}

func TestEverySchemeReachesTheServer(t *testing.T) {
	o := newOrigin()
	address := loopback(t, o)
	for scheme, transport := range map[string]string{
		"moq": "quic", "https": "webtransport", "http": "webtransport", "ws": "websocket",
	} {
		t.Run(scheme, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			name := "g/v rows/" + scheme
			o.publish(t, name, first(1, "[[1]]"))
			c, err := Dial(ctx, scheme+"://"+address, Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			w, err := c.Watch(ctx, "g", "v", scheme)
			if err != nil {
				t.Fatal(err)
			}
			wantUpdate(t, next(t, w), "r1 [[1]] +[[1]] -[]")
			if c.Transport() != transport {
				t.Errorf("over %q", c.Transport())
			}
			o.publish(t, name, snapshot(2, "[[2]]", 1, "[[2]]", "[[1]]"))
			wantUpdate(t, next(t, w), "r2 [[2]] +[[2]] -[[1]]")
		})
	}
}

// More keys than a browser grants streams, each with its own group and changes.
func TestManyKeysOnOneSession(t *testing.T) {
	const keys = 300
	o := newOrigin()
	address := loopback(t, o)
	for _, scheme := range []string{"moq", "https", "ws"} {
		t.Run(scheme, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			c, err := Dial(ctx, scheme+"://"+address, Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var watches []*Watch
			name := func(k int) string {
				s, _ := newAddress("g", "v", []any{scheme, k})
				return "g/v " + s.track
			}
			for k := range keys {
				o.publish(t, name(k), first(1, "[[1]]"))
				w, err := c.Watch(ctx, "g", "v", scheme, k)
				if err != nil {
					t.Fatal(err)
				}
				watches = append(watches, w)
			}
			for _, w := range watches {
				wantUpdate(t, next(t, w), "r1 [[1]] +[[1]] -[]")
			}
			for k := range keys {
				o.publish(t, name(k), snapshot(2, "[[2]]", 1, "[[2]]", "[[1]]"))
			}
			for _, w := range watches {
				wantUpdate(t, next(t, w), "r2 [[2]] +[[2]] -[[1]]")
			}
		})
	}
}
