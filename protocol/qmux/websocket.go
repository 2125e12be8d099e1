package qmux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"github.com/heddle-live/heddle/protocol"
)

// Defaults of Config.
const (
	// DefaultRequestStreams is how many bidirectional streams the peer may hold
	// open at once.
	DefaultRequestStreams = 4096
	// DefaultUniStreams is how many unidirectional streams the peer may hold open
	// at once.
	DefaultUniStreams = 1024
	// DefaultStreamWindowBytes is how much unread data one stream may hold.
	DefaultStreamWindowBytes = 256 << 10
	// DefaultSessionWindowBytes is how much unread data a session may hold.
	DefaultSessionWindowBytes = 1 << 20

	subprotocolPrefix = "qmux-02."
)

// ErrRefused is wrapped by errors of Accept that were answered with an HTTP
// status, and of Dial if the server chose none of the protocols.
var ErrRefused = errors.New("WebSocket session refused")

// Config says what a session offers and grants.
type Config struct {
	// Protocols are the version tokens spoken, the preferred one first, such as
	// "moq-lite-05". Required.
	Protocols []string
	// AllowOrigin decides about each request to Accept by its Host and Origin.
	// Nil allows requests without Origin and those whose Origin is their Host.
	AllowOrigin func(*http.Request) bool
	// HTTPClient is Dial's; nil means the standard one.
	HTTPClient *http.Client
	// Header is sent with Dial's request.
	Header http.Header

	// Zero values of these mean the Default constants.
	RequestStreams     uint64
	UniStreams         uint64
	StreamWindowBytes  uint64
	SessionWindowBytes uint64
}

func (c Config) parameters() parameters {
	set := func(v, standard uint64) uint64 {
		if v == 0 {
			return standard
		}
		return v
	}
	window := set(c.StreamWindowBytes, DefaultStreamWindowBytes)
	return parameters{
		idle:       idleTimeout,
		data:       set(c.SessionWindowBytes, DefaultSessionWindowBytes),
		bidiLocal:  window,
		bidiRemote: window,
		uni:        window,
		bidiCount:  set(c.RequestStreams, DefaultRequestStreams),
		uniCount:   set(c.UniStreams, DefaultUniStreams),
	}
}

func (c Config) subprotocols() []string {
	out := make([]string, len(c.Protocols))
	for i, token := range c.Protocols {
		out[i] = subprotocolPrefix + token
	}
	return out
}

// Accept upgrades the request to a WebSocket and returns the session on it,
// which outlives the request; end it with CloseWithError. If it returns an
// error it has answered the request, with 403 for a Host or Origin that is not
// allowed and 400, naming what is spoken, for offers without a common protocol.
func Accept(w http.ResponseWriter, r *http.Request, cfg Config) (protocol.Session, error) {
	allow := cfg.AllowOrigin
	if allow == nil {
		allow = sameOrigin
	}
	if !allow(r) {
		http.Error(w, "Host or Origin not allowed", http.StatusForbidden)
		return nil, fmt.Errorf("%w: Host or Origin not allowed", ErrRefused)
	}
	chosen, ok := choose(cfg.subprotocols(), r.Header.Values("Sec-WebSocket-Protocol"))
	if !ok {
		http.Error(w, fmt.Sprintf("no common WebSocket subprotocol; spoken here: %s",
			strings.Join(cfg.subprotocols(), ", ")), http.StatusBadRequest)
		return nil, fmt.Errorf("%w: no common subprotocol in %q", ErrRefused,
			r.Header.Values("Sec-WebSocket-Protocol"))
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       []string{chosen},
		InsecureSkipVerify: true, // allow has decided
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	s := newSession(conn, strings.TrimPrefix(chosen, subprotocolPrefix), true, cfg.parameters())
	s.requestURI = r.URL.RequestURI()
	s.remote = address(r.RemoteAddr)
	s.start(r.Context())
	return s, nil
}

// choose picks the first of ours that the values of the client's header contain.
func choose(ours, offers []string) (string, bool) {
	var offered []string
	for _, line := range offers {
		for name := range strings.SplitSeq(line, ",") {
			offered = append(offered, strings.TrimSpace(name))
		}
	}
	for _, name := range ours {
		if slices.Contains(offered, name) {
			return name, true
		}
	}
	return "", false
}

func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

// address makes a net.Addr of "host:port".
func address(s string) net.Addr {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return net.TCPAddrFromAddrPort(ap)
	}
	return namedAddress(s)
}

// namedAddress is a peer known by name only.
type namedAddress string

// Network implements net.Addr.
func (namedAddress) Network() string { return "tcp" }

// String implements net.Addr.
func (a namedAddress) String() string { return string(a) }

// Dial opens a session to rawURL, "ws://host:port/…" or "wss://…". ctx bounds
// the handshake only; end the session with CloseWithError.
func Dial(ctx context.Context, rawURL string, cfg Config) (protocol.Session, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("WebSocket URL: %w", err)
	}
	conn, response, err := websocket.Dial(ctx, rawURL, &websocket.DialOptions{
		HTTPClient:      cfg.HTTPClient,
		HTTPHeader:      cfg.Header,
		Subprotocols:    cfg.subprotocols(),
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		if response != nil && response.StatusCode != http.StatusSwitchingProtocols {
			return nil, fmt.Errorf("dial %s: %w: HTTP status %d: %w",
				rawURL, ErrRefused, response.StatusCode, err)
		}
		return nil, fmt.Errorf("dial %s: %w", rawURL, err)
	}
	chosen := conn.Subprotocol()
	if !slices.Contains(cfg.subprotocols(), chosen) {
		_ = conn.CloseNow()
		return nil, fmt.Errorf("dial %s: %w: server chose %q", rawURL, ErrRefused, chosen)
	}
	s := newSession(conn, strings.TrimPrefix(chosen, subprotocolPrefix), false, cfg.parameters())
	s.requestURI = u.RequestURI()
	s.remote = address(u.Host)
	s.start(ctx)
	return s, nil
}
