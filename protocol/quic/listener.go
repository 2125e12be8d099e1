package quic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dunglas/httpsfv"
	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"

	"github.com/heddle-live/heddle/protocol"
)

const protocolsHeader = "Wt-Available-Protocols"

// ErrConfig is wrapped by the errors of Listen and the dialers that a
// configuration causes.
var ErrConfig = errors.New("invalid QUIC configuration")

// ListenUDP binds the UDP address addr, such as "127.0.0.1:4443"; port 0 picks
// one. The bare socket is what QUIC needs for batched system calls.
func ListenUDP(addr string) (*net.UDPConn, error) {
	a, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("UDP address %q: %w", addr, err)
	}
	conn, err := net.ListenUDP("udp", a)
	if err != nil {
		return nil, fmt.Errorf("listen on UDP %s: %w", addr, err)
	}
	return conn, nil
}

// Listener accepts native and WebTransport sessions on one UDP socket.
type Listener struct {
	cfg       Config
	socket    *net.UDPConn
	transport *quicgo.Transport
	listener  *quicgo.EarlyListener
	h3        *webtransport.Server

	accepting sync.WaitGroup // acceptors of Run
	handling  sync.WaitGroup // one for each connection and each running handler

	mu     sync.Mutex
	closed bool
	handle func(context.Context, protocol.Session) // set by Run
	conns  map[*quicgo.Conn]*session               // nil until it asks for a session
}

// Listen makes a Listener of socket, which it owns from then on, error or not.
// No session is accepted before Run. Errors wrap ErrConfig or are the socket's.
func Listen(socket *net.UDPConn, cfg Config) (*Listener, error) {
	if cfg.TLS == nil || len(cfg.Protocols) == 0 {
		_ = socket.Close()
		return nil, fmt.Errorf("%w: TLS and Protocols are required", ErrConfig)
	}
	l := &Listener{cfg: cfg.withDefaults(), socket: socket}
	l.conns = make(map[*quicgo.Conn]*session)
	l.transport = &quicgo.Transport{
		Conn:              socket,
		StatelessResetKey: (*quicgo.StatelessResetKey)(cfg.StatelessResetKey),
		TokenGeneratorKey: (*quicgo.TokenGeneratorKey)(cfg.TokenKey),
	}
	tlsConfig := cfg.TLS.Clone()
	tlsConfig.NextProtos = append([]string{http3.NextProtoH3}, cfg.Protocols...)
	listener, err := l.transport.ListenEarly(tlsConfig, l.cfg.quicConfig())
	if err != nil {
		_ = socket.Close()
		return nil, fmt.Errorf("listen for QUIC: %w", err)
	}
	l.listener = listener
	l.h3 = &webtransport.Server{
		H3: &http3.Server{
			Handler:        http.HandlerFunc(l.serveHTTP),
			MaxHeaderBytes: headerBytesMax,
			ConnContext: func(ctx context.Context, c *quicgo.Conn) context.Context {
				return context.WithValue(ctx, connKey{}, c)
			},
		},
		ApplicationProtocols: cfg.Protocols,
		CheckOrigin:          func(*http.Request) bool { return true }, // serveHTTP has asked
	}
	return l, nil
}

// connKey finds the QUIC connection in the context of an HTTP/3 request.
type connKey struct{}

// Addr is the bound UDP address.
func (l *Listener) Addr() net.Addr { return l.socket.LocalAddr() }

// Run accepts sessions until ctx ends and gives each to handle on a goroutine
// of its own; a session whose handle returns is closed. When Run returns no new
// session starts; running ones go on until Close. Call it once.
func (l *Listener) Run(
	ctx context.Context, handle func(context.Context, protocol.Session),
) error {
	l.mu.Lock()
	l.handle = handle
	l.mu.Unlock()
	// The queue of the QUIC layer holds 32 connections and refuses more after
	// their handshake, so that accepting must never wait for anything.
	for range acceptors {
		l.accepting.Go(func() { l.accept(ctx) })
	}
	l.accepting.Wait()
	l.mu.Lock()
	l.handle = nil
	l.mu.Unlock()
	_ = l.listener.Close()
	return context.Cause(ctx)
}

func (l *Listener) accept(ctx context.Context) {
	for {
		conn, err := l.listener.Accept(ctx)
		if err != nil {
			return // ctx ended or the Listener was closed
		}
		if !l.add(conn) {
			_ = conn.CloseWithError(0, "")
			continue
		}
		go func() {
			defer l.handling.Done()
			defer l.remove(conn)
			l.serve(conn)
		}()
	}
}

func (l *Listener) add(conn *quicgo.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.conns[conn] = nil
	l.handling.Add(1)
	return true
}

func (l *Listener) remove(conn *quicgo.Conn) {
	l.mu.Lock()
	delete(l.conns, conn)
	l.mu.Unlock()
}

// serve runs one connection to its end.
func (l *Listener) serve(conn *quicgo.Conn) {
	token := conn.ConnectionState().TLS.NegotiatedProtocol
	if token == http3.NextProtoH3 {
		t := time.AfterFunc(sessionlessTimeout, func() { l.closeSessionless(conn) })
		defer t.Stop()
		// The error repeats why the connection ended.
		_ = l.h3.ServeQUICConn(conn)
		return
	}
	// Before the end of the handshake a close code would not reach the peer.
	select {
	case <-conn.HandshakeComplete():
	case <-conn.Context().Done():
		return
	}
	s := newSession(conn, token, l.cfg.granted())
	s.watchNative()
	l.run(s)
}

func (l *Listener) closeSessionless(conn *quicgo.Conn) {
	l.mu.Lock()
	s, ok := l.conns[conn]
	l.mu.Unlock()
	if ok && s == nil {
		_ = conn.CloseWithError(h3RequestRejected, "no WebTransport session asked for")
	}
}

// run gives s to the handler and closes it afterwards.
func (l *Listener) run(s *session) {
	l.mu.Lock()
	handle := l.handle
	_, known := l.conns[s.conn]
	if known {
		l.conns[s.conn] = s
	}
	closed := l.closed
	l.mu.Unlock()
	if handle == nil || !known || closed {
		_ = s.CloseWithError(protocol.SessionGoingAway, "shutting down")
		return
	}
	handle(s.ctx, s)
	_ = s.CloseWithError(protocol.SessionNoError, "")
}

// serveHTTP answers a request on an HTTP/3 connection: a CONNECT for a
// WebTransport session that offers a version we speak, or a refusal.
func (l *Listener) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only WebTransport sessions are served here", http.StatusNotFound)
		return
	}
	if !l.cfg.AllowOrigin(r) {
		http.Error(w, "Host or Origin not allowed", http.StatusForbidden)
		return
	}
	token, ok := choose(l.cfg.Protocols, r.Header[protocolsHeader])
	if !ok {
		http.Error(w, fmt.Sprintf("no common protocol; spoken here: %q", l.cfg.Protocols),
			http.StatusBadRequest)
		return
	}
	// webtransport-go would follow the client's order.
	r.Header.Set(protocolsHeader, `"`+token+`"`)
	conn, _ := r.Context().Value(connKey{}).(*quicgo.Conn)
	capture := &captureWriter{ResponseWriter: w}
	wt, err := l.h3.Upgrade(capture, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s := newSession(conn, token, l.cfg.granted())
	s.requestURI = r.URL.RequestURI()
	s.connect = capture.stream
	s.startWebTransport(wt, uint64(capture.stream.StreamID()))
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.handling.Add(1)
	}
	l.mu.Unlock()
	if closed {
		return // Close closes the connection
	}
	defer l.handling.Done()
	l.run(s)
}

// choose picks the first of ours that offers, the values of the client's header
// of protocols, contain.
func choose(ours, offers []string) (string, bool) {
	list, err := httpsfv.UnmarshalList(offers)
	if err != nil {
		return "", false
	}
	offered := make([]string, 0, len(list))
	for _, member := range list {
		if item, ok := member.(httpsfv.Item); ok {
			if s, ok := item.Value.(string); ok {
				offered = append(offered, s)
			}
		}
	}
	for _, token := range ours {
		if slices.Contains(offered, token) {
			return token, true
		}
	}
	return "", false
}

// captureWriter learns the stream of the CONNECT request, which
// webtransport-go keeps to itself.
type captureWriter struct {
	http.ResponseWriter
	stream *http3.Stream
}

// HTTPStream implements http3.HTTPStreamer.
func (w *captureWriter) HTTPStream() *http3.Stream {
	w.stream = w.ResponseWriter.(http3.HTTPStreamer).HTTPStream()
	return w.stream
}

// ReceivedSettings implements http3.Settingser.
func (w *captureWriter) ReceivedSettings() <-chan struct{} {
	return w.ResponseWriter.(http3.Settingser).ReceivedSettings()
}

// Settings implements http3.Settingser.
func (w *captureWriter) Settings() *http3.Settings {
	return w.ResponseWriter.(http3.Settingser).Settings()
}

// Flush implements http.Flusher.
func (w *captureWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// Close closes every session with SessionGoingAway, waits until their handlers
// have returned, and closes the socket. End the context of Run before.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	conns := make(map[*quicgo.Conn]*session, len(l.conns))
	maps.Copy(conns, l.conns)
	l.mu.Unlock()
	for conn, s := range conns {
		if s == nil {
			_ = conn.CloseWithError(h3NoError, "shutting down")
			continue
		}
		_ = s.CloseWithError(protocol.SessionGoingAway, "shutting down")
	}
	// A handler that ignores the end of its session would hold us here: that is
	// a fault of ours, better seen than hidden.
	l.handling.Wait()
	return errors.Join(l.h3.Close(), l.transport.Close(), l.socket.Close())
}
