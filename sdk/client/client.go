// Package client watches keyed views of a Heddle server, or of a relay in front
// of it, from Go: a snapshot first, then exactly the rows that enter and leave.
// It repairs a lost connection by itself and shares one subscription between
// all watches of a key. It calls actions of a server, and writes nothing else.
// Applications call it.
//
//	c, err := client.Dial(ctx, "https://127.0.0.1:4443", client.Config{})
//	w, err := c.Watch(ctx, "demo", "hot", 400)
//	for u, err := range w.Updates() { … u.Rows, u.Entered, u.Left … }
//	receipt, err := c.Call(ctx, "demo", "claim", "anna", 7)
//
// Lock order: Client.mu before feed.mu.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/wire"
	"github.com/heddle-live/heddle/sdk/frame"
)

const (
	// subscribesAtOnce bounds the subscriptions that wait for their first
	// snapshot, closesAtOnce those that end in one closeInterval: a burst of
	// either can cost a session its life.
	subscribesAtOnce = 50
	closesAtOnce     = 50
	closeInterval    = 10 * time.Millisecond

	dialTimeout = 10 * time.Second
	// goodSession is how long a session must live for the next one to be tried
	// without a growing delay.
	goodSession = 5 * time.Second

	backoffFirst = 200 * time.Millisecond
	backoffMax   = 10 * time.Second
)

// ErrClosed is returned by methods of a closed Client.
var ErrClosed = errors.New("client is closed")

// Config says how a Client connects. The zero value suits a server on loopback.
type Config struct {
	// TLS holds the trusted roots for moq, https and wss; nil means the system's.
	TLS *tls.Config
	// CertificateSHA256 pins the only certificate (DER) to trust over moq and
	// https. Without it and without TLS, a server on loopback is asked for the
	// hash of its development certificate, anew before each connection, with
	// GET http://host:port/certificate.sha256.
	CertificateSHA256 *[32]byte
	// HTTPClient calls actions, asks for the hash and opens WebSockets; nil is the
	// standard one.
	HTTPClient *http.Client
	// Open replaces the URL: it opens each session. For tests and other bindings.
	Open func(context.Context) (protocol.Session, error)
	// Logger gets lost connections, and keys that begin to wait, at info level; nil
	// is silent.
	Logger *slog.Logger
	// Jitter returns numbers from 0 to 1 that spread the retries of many clients;
	// nil is random.
	Jitter func() float64
}

// Client is a connection that repairs itself, and the watches on it. All
// methods are safe for concurrent use. Close must be called.
type Client struct {
	open   func(context.Context) (protocol.Session, error)
	api    string // scheme and host of the server's HTTP side; "" if it has no URL
	http   *http.Client
	log    *slog.Logger
	jitter func() float64
	cancel context.CancelCauseFunc
	ctx    context.Context // the Client's life, ended by Close
	tasks  sync.WaitGroup
	gate   chan struct{} // holds one for each subscription without a snapshot
	idle   chan struct{} // has room for one: unused is not empty

	mu      sync.Mutex
	closed  bool
	feeds   map[address]*feed
	unused  []*feed // whose last watch has left
	link    *link   // nil while there is no session
	arrived chan struct{}
}

// link is one session.
type link struct {
	session *lite.Session
	over    chan struct{} // closed when the session has ended

	mu    sync.Mutex
	metas map[protocol.Path]*metaCall
}

// address names a track: what watches share.
type address struct {
	broadcast protocol.Path
	track     string
}

// Dial opens the first session to rawURL and returns when it is there; ctx
// bounds that only. Schemes: moq (native QUIC), https (WebTransport), ws and
// wss (WebSocket), and http, which is https to a server on loopback. Later
// sessions are opened in the background whenever one is lost.
func Dial(ctx context.Context, rawURL string, cfg Config) (*Client, error) {
	c := &Client{
		open: cfg.Open, http: cfg.HTTPClient, log: cfg.Logger, jitter: cfg.Jitter,
		gate: make(chan struct{}, subscribesAtOnce), idle: make(chan struct{}, 1),
		feeds: make(map[address]*feed), arrived: make(chan struct{}),
	}
	if c.open == nil {
		open, err := opener(rawURL, cfg)
		if err != nil {
			return nil, err
		}
		c.open, c.api = open, apiOf(rawURL)
	}
	if c.http == nil {
		c.http = http.DefaultClient
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.jitter == nil {
		c.jitter = rand.Float64
	}
	first, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	c.tasks.Go(func() { c.run(first) })
	c.tasks.Go(c.closeUnused)
	return c, nil
}

func (c *Client) dial(ctx context.Context) (protocol.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s, err := c.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if _, ok := lite.ParseVersion(s.Protocol()); !ok {
		_ = s.CloseWithError(protocol.SessionVersion, "")
		return nil, fmt.Errorf("connect: server chose protocol %q", s.Protocol())
	}
	return s, nil
}

// run serves one session after the other until the Client is closed.
func (c *Client) run(transport protocol.Session) {
	for attempt := 0; ; attempt++ {
		if transport != nil {
			began := time.Now()
			err := c.serve(transport)
			if c.ctx.Err() != nil {
				return
			}
			c.log.Info("connection lost", "error", err)
			if time.Since(began) >= goodSession {
				attempt = 0
			}
		}
		if !c.sleep(c.ctx, c.backoff(attempt)) {
			return
		}
		var err error
		if transport, err = c.dial(c.ctx); err != nil {
			transport = nil
			c.log.Info("no connection", "error", err)
		}
	}
}

// serve runs one session to its end.
func (c *Client) serve(transport protocol.Session) error {
	l := &link{
		session: lite.NewSession(transport, lite.Config{Client: true, Logger: c.log}),
		over:    make(chan struct{}),
		metas:   make(map[protocol.Path]*metaCall),
	}
	c.mu.Lock()
	c.link = l
	close(c.arrived)
	c.mu.Unlock()
	err := l.session.Run(c.ctx)
	c.mu.Lock()
	c.link = nil
	c.arrived = make(chan struct{})
	c.mu.Unlock()
	close(l.over)
	return err
}

// current returns the session, waiting for one until ctx ends.
func (c *Client) current(ctx context.Context) (*link, error) {
	for {
		c.mu.Lock()
		l, arrived := c.link, c.arrived
		c.mu.Unlock()
		if l != nil {
			return l, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// backoff is the delay before the attempt with this number, from 0.
func (c *Client) backoff(attempt int) time.Duration {
	d := min(backoffFirst<<min(attempt, 10), backoffMax)
	return d/2 + time.Duration(c.jitter()*float64(d/2))
}

// sleep returns false if ctx ended first.
func (c *Client) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Transport returns what carries the present session, "quic", "webtransport" or
// "websocket", and "" while there is none.
func (c *Client) Transport() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return ""
	}
	return c.link.session.Transport().Transport()
}

// Watch watches one key of a view: one value for each of its parameters, each
// an int, int64, float64, string, bool, frame.Bytes or frame.Timestamp. Others are
// errors wrapping frame.ErrKey, and so is a key whose spelling is longer than the
// wire.MaxNameBytes that the protocol allows. The rows come when there is a
// session. The watch ends with ctx, with Close, or when the server ends it for
// good. It needs a grant for the whole view and passes every relay.
func (c *Client) Watch(ctx context.Context, graph, view string, key ...any) (*Watch, error) {
	at, err := newAddress(graph, view, key)
	if err != nil {
		return nil, err
	}
	return c.watch(ctx, at)
}

// WatchPath is Watch by the key's own path: it needs a grant for no more than
// that, and passes relays that route what lies below an announced path.
func (c *Client) WatchPath(ctx context.Context, graph, view string, key ...any) (*Watch, error) {
	at, err := newAddress(graph, view, key)
	if err != nil {
		return nil, err
	}
	spelling := strings.TrimPrefix(at.track, frame.TrackRows)
	at.track = frame.TrackRows
	at.broadcast, err = protocol.ParsePath(string(at.broadcast) + spelling)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	if err := checkName("path", string(at.broadcast)); err != nil {
		return nil, err
	}
	return c.watch(ctx, at)
}

// checkName refuses a name that no server takes: it would be asked for in vain
// for ever.
func checkName(what, name string) error {
	if len(name) <= wire.MaxNameBytes {
		return nil
	}
	return fmt.Errorf("watch: %w: too long: the %s %.40s… takes %d bytes, and a server takes %d",
		frame.ErrKey, what, name, len(name), wire.MaxNameBytes)
}

func newAddress(graph, view string, key []any) (address, error) {
	broadcast, err := protocol.ParsePath(graph + "/" + view)
	if err != nil {
		return address{}, fmt.Errorf("watch: %w", err)
	}
	if err := checkName("path", string(broadcast)); err != nil {
		return address{}, err
	}
	at := address{broadcast: broadcast, track: frame.TrackRows}
	if len(key) == 0 {
		return at, nil
	}
	spelling, err := frame.JoinKey(key...)
	if err != nil {
		return address{}, fmt.Errorf("watch %s: %w", broadcast, err)
	}
	at.track += "/" + spelling
	return at, checkName("track", at.track)
}

func (c *Client) watch(ctx context.Context, at address) (*Watch, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	f := c.feeds[at]
	if f == nil {
		f = newFeed(c, at)
		c.feeds[at] = f
		c.tasks.Go(f.run)
	}
	w := f.join()
	c.mu.Unlock()
	w.endWith(ctx)
	return w, nil
}

// left is called when a watch of f has ended.
func (c *Client) left(f *feed, w *Watch) {
	c.mu.Lock()
	last := f.leave(w) && c.feeds[f.at] == f
	if last {
		c.unused = append(c.unused, f)
	}
	c.mu.Unlock()
	if last {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

// forget takes f, which has ended, out of the table: the next watch of its key
// begins anew.
func (c *Client) forget(f *feed) {
	c.mu.Lock()
	if c.feeds[f.at] == f {
		delete(c.feeds, f.at)
	}
	c.mu.Unlock()
}

// closeUnused ends feeds that nobody watches, in small batches. A feed that is
// watched again meanwhile goes on.
func (c *Client) closeUnused() {
	for {
		select {
		case <-c.idle:
		case <-c.ctx.Done():
			return
		}
		for c.closeBatch() {
			if !c.sleep(c.ctx, closeInterval) {
				return
			}
		}
	}
}

// closeBatch returns false if there was nothing to do.
func (c *Client) closeBatch() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.unused), closesAtOnce)
	for _, f := range c.unused[:n] {
		if !f.used() && c.feeds[f.at] == f {
			delete(c.feeds, f.at)
			f.cancel(ErrClosed)
		}
	}
	c.unused = append(c.unused[:0], c.unused[n:]...)
	return n > 0
}

// Close ends all watches with ErrClosed and the session, and waits for both.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(ErrClosed)
	c.tasks.Wait()
	return nil
}
