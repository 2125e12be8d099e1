package host

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/host/views"
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/qmux"
	"github.com/heddle-live/heddle/protocol/quic"
)

const (
	// headerPatience bounds how long a client may take to send its headers.
	headerPatience = 10 * time.Second
	// keepAlive is how long an idle HTTP connection is kept.
	keepAlive = 2 * time.Minute
	// requestPatience bounds how long a client of the data listener may take to
	// send a request, answerPatience how long to take the answer. Sessions over
	// WebSocket have limits of their own.
	requestPatience = 30 * time.Second
	answerPatience  = time.Minute
	// headerBytesMax bounds a request's headers.
	headerBytesMax = 32 << 10
	// connectionsSpare is how many TCP connections the data listener holds beside
	// those of the most sessions. filesSpare, of the files that the process may
	// open, are the journal's and the admin listener's.
	connectionsSpare = 1024
	filesSpare       = 512
	// bindTries is how often a free port is sought that is free for TCP and UDP.
	bindTries = 16
)

// listeners are the sockets of a server: data (UDP and TCP on one port) and
// admin (TCP).
type listeners struct {
	server      *Server
	data, admin net.Listener
	quic        *quic.Listener
	certificate [32]byte // SHA-256 of the development certificate
	page        http.Handler
	dataHTTP    *http.Server
	adminHTTP   *http.Server
	sessions    atomic.Int64
	closing     context.Context // ends WebSocket sessions
	close       context.CancelCauseFunc

	mu         sync.Mutex
	closed     bool           // no further WebSocket sessions
	websockets sync.WaitGroup // grows under mu while not closed
}

// bind opens all sockets and makes the certificate; nothing is accepted yet.
func (s *Server) bind(ctx context.Context, page http.Handler) (*listeners, error) {
	certificate, hash, err := quic.DevelopmentCertificate(time.Now())
	if err != nil {
		return nil, fmt.Errorf("development certificate: %w", err)
	}
	keys, err := transportKeys(s.cfg.DataDir)
	if err != nil {
		return nil, err
	}
	l := &listeners{server: s, certificate: hash, page: page}
	l.closing, l.close = context.WithCancelCause(context.WithoutCancel(ctx))
	var socket *net.UDPConn
	if l.data, socket, err = bindPair(s.cfg.DataListen); err != nil {
		return nil, fmt.Errorf("data listener: %w", err)
	}
	l.data = &capped{
		Listener: l.data, max: connectionsMax(int64(s.cfg.SessionsMax), filesMax()),
	}
	l.quic, err = quic.Listen(socket, quic.Config{
		TLS:               &tls.Config{Certificates: []tls.Certificate{certificate}},
		Protocols:         lite.VersionNames(),
		AllowOrigin:       allowed,
		StatelessResetKey: &keys[0], TokenKey: &keys[1],
		RequestStreams: int64(s.cfg.RequestStreamsMax),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("data listener: %w", err), l.data.Close())
	}
	if l.admin, err = net.Listen("tcp", s.cfg.AdminListen); err != nil {
		return nil, errors.Join(
			fmt.Errorf("admin listener: %w", err), l.data.Close(), l.quic.Close())
	}
	l.dataHTTP = l.newHTTP(l.dataHandler())
	l.dataHTTP.ReadTimeout, l.dataHTTP.WriteTimeout = requestPatience, answerPatience
	l.adminHTTP = l.newHTTP(s.api.AdminHandler())
	return l, nil
}

// bindPair opens TCP and UDP on one port. With port 0 it looks for one that is
// free for both.
func bindPair(address string) (net.Listener, *net.UDPConn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, err
	}
	for try := 1; ; try++ {
		tcp, err := net.Listen("tcp", address)
		if err != nil {
			return nil, nil, err
		}
		udp, err := quic.ListenUDP(tcp.Addr().String())
		if err == nil {
			return tcp, udp, nil
		}
		err = errors.Join(err, tcp.Close())
		if port != "0" || try == bindTries {
			return nil, nil, err
		}
	}
}

// connectionsMax is how many TCP connections the data listener holds; further
// ones are closed at once. files is how many the process may open, 0 if unknown.
func connectionsMax(sessions, files int64) int64 {
	most := sessions + connectionsSpare
	if files > 0 {
		most = min(most, files-min(filesSpare, files/2))
	}
	return most
}

// filesMax is how many files the process may have open, 0 if that is unknown.
func filesMax() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int64(min(limit.Cur, 1<<30))
}

// capped is a listener that closes what it accepts over a number of open
// connections. Waiting instead would let those who hold them shut everybody out.
type capped struct {
	net.Listener
	max  int64
	open atomic.Int64
}

// Accept implements net.Listener.
func (c *capped) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c.open.Add(1) <= c.max {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { c.open.Add(-1) })}, nil
		}
		c.open.Add(-1)
		_ = conn.Close()
	}
}

// counted tells its listener when it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}

func (l *listeners) newHTTP(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerPatience, IdleTimeout: keepAlive,
		MaxHeaderBytes: headerBytesMax,
		ErrorLog:       slog.NewLogLogger(l.server.logger.Handler(), slog.LevelDebug),
	}
}

// serve accepts on every socket until ctx ends.
func (l *listeners) serve(ctx context.Context, group *errgroup.Group) {
	group.Go(func() error { return serveHTTP(l.dataHTTP, l.data) })
	group.Go(func() error { return serveHTTP(l.adminHTTP, l.admin) })
	group.Go(func() error {
		if err := l.quic.Run(ctx, l.session); ctx.Err() == nil {
			return fmt.Errorf("serve QUIC: %w", err)
		}
		return nil
	})
}

func serveHTTP(s *http.Server, l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %v: %w", l.Addr(), err)
	}
	return nil
}

// stopRequests refuses new requests and lets running ones finish for a while.
func (l *listeners) stopRequests(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, s := range []*http.Server{l.adminHTTP, l.dataHTTP} {
		if err := s.Shutdown(ctx); err != nil {
			_ = s.Close() // its requests had their time
		}
	}
}

// closeSessions ends every session, whatever carries it, and waits for them.
func (l *listeners) closeSessions() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.close(errors.New("the server is going away"))
	l.websockets.Wait()
	if err := l.quic.Close(); err != nil {
		l.server.logger.Debug("close the QUIC listener", "err", err)
	}
}

// dataHandler is the TCP side of the data port.
func (l *listeners) dataHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /certificate.sha256", l.serveCertificate)
	mux.Handle("/v1/", l.server.api.DataHandler())
	if l.page != nil {
		mux.Handle("/", l.page)
	}
	return admin.LoopbackOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			l.serveWebSocket(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

func (l *listeners) serveCertificate(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Access-Control-Allow-Origin", "*") // admin.LoopbackOnly has looked already
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, hex.EncodeToString(l.certificate[:]))
}

func (l *listeners) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	if !l.enterWebSocket() {
		http.Error(w, "the server is going away", http.StatusServiceUnavailable)
		return
	}
	defer l.websockets.Done()
	session, err := qmux.Accept(w, r, qmux.Config{
		Protocols: lite.VersionNames(), AllowOrigin: allowed,
		RequestStreams: uint64(l.server.cfg.RequestStreamsMax),
	})
	if err != nil {
		l.server.logger.Debug("WebSocket refused", "remote", r.RemoteAddr, "err", err)
		return // Accept has answered
	}
	l.session(l.closing, session)
	_ = session.CloseWithError(protocol.SessionNoError, "")
}

// enterWebSocket counts one WebSocket session, unless closeSessions has begun: a
// request may outlive the time that stopRequests gives it.
func (l *listeners) enterWebSocket() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.websockets.Add(1)
	return true
}

// session serves one peer to its end.
func (l *listeners) session(ctx context.Context, session protocol.Session) {
	s := l.server
	if l.sessions.Add(1) > int64(s.cfg.SessionsMax) {
		l.sessions.Add(-1)
		_ = session.CloseWithError(protocol.SessionGoingAway, "the server's sessions are full")
		return
	}
	defer l.sessions.Add(-1)
	root, err := sessionRoot(session.RequestURI())
	if err != nil {
		_ = session.CloseWithError(protocol.SessionProtocolViolation, err.Error())
		return
	}
	err = lite.NewSession(session, lite.Config{
		Origin: s.directory.Origin(views.AllGrants(root)), Counters: &s.counters.lite,
		Limits: lite.Limits{Subscriptions: s.cfg.SubscriptionsPerSession},
		Logger: s.logger,
	}).Run(ctx)
	s.logger.Debug("session ended", "transport", session.Transport(),
		"remote", session.RemoteAddr().String(), "err", err)
}

// sessionRoot is the path that a peer connected to; all its paths are below it.
func sessionRoot(requestURI string) (protocol.Path, error) {
	if requestURI == "" {
		return "", nil
	}
	u, err := url.ParseRequestURI(requestURI)
	if err != nil {
		return "", fmt.Errorf("request URI: %w", err)
	}
	return protocol.ParsePath(u.Path)
}

// allowed admits requests to this machine from pages of this machine only.
func allowed(r *http.Request) bool { return admin.LoopbackAllowed(r) }

// transportKeys returns the stateless reset key and the token key of the data
// directory, made at the first start, so that clients notice a restart at once.
func transportKeys(dir string) ([2][32]byte, error) {
	var keys [2][32]byte
	path := filepath.Join(dir, "transport.key")
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		b = make([]byte, 64)
		if _, err := rand.Read(b); err != nil {
			return keys, fmt.Errorf("transport keys: %w", err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return keys, fmt.Errorf("transport keys: %w", err)
		}
	case err != nil:
		return keys, fmt.Errorf("transport keys: %w", err)
	case len(b) != 64:
		return keys, fmt.Errorf(
			"transport keys: %s has %d bytes, not 64: delete it and start again", path, len(b))
	}
	copy(keys[0][:], b[:32])
	copy(keys[1][:], b[32:])
	return keys, nil
}
