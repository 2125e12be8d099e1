package quic

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/webtransport-go"

	"github.com/heddle-live/heddle/protocol"
)

// DialConfig says how Dial and DialWebTransport connect.
type DialConfig struct {
	// TLS holds the trusted roots; nil means the system's. Its NextProtos are
	// replaced.
	TLS *tls.Config
	// CertificateSHA256, if set, is the SHA-256 of the only certificate (DER) to
	// trust, whatever its names and issuer.
	CertificateSHA256 *[32]byte
	// Protocols are the version tokens offered, the preferred one first. Required.
	Protocols []string
	// Header is sent with a WebTransport request.
	Header http.Header
	// UniStreams is how many unidirectional streams the server may hold open at
	// once: one for each group it delivers. 0: DefaultDialUniStreams.
	UniStreams int64
	// RequestStreams is the same for bidirectional streams. 0: DefaultUniStreams.
	RequestStreams int64

	probePeriod time.Duration // 0: probePeriod; others in tests
}

func (c DialConfig) tlsConfig() *tls.Config {
	base := c.TLS
	if base == nil {
		base = &tls.Config{}
	}
	if c.CertificateSHA256 != nil {
		return pinned(base, *c.CertificateSHA256, time.Now)
	}
	return base.Clone()
}

func (c DialConfig) withDefaults() DialConfig {
	if c.UniStreams == 0 {
		c.UniStreams = DefaultDialUniStreams
	}
	if c.RequestStreams == 0 {
		c.RequestStreams = DefaultUniStreams
	}
	if c.probePeriod == 0 {
		c.probePeriod = probePeriod
	}
	return c
}

// granted is how many streams the server may hold open at once.
func (c DialConfig) granted() int64 { return max(c.RequestStreams, 0) + max(c.UniStreams, 0) }

func (c DialConfig) quicConfig() *quicgo.Config {
	return &quicgo.Config{
		HandshakeIdleTimeout:             handshakeTimeout,
		MaxIdleTimeout:                   idleTimeout,
		KeepAlivePeriod:                  keepAlivePeriod,
		InitialStreamReceiveWindow:       dialStreamWindowBytes,
		MaxStreamReceiveWindow:           dialStreamWindowBytesMax,
		InitialConnectionReceiveWindow:   dialConnWindowBytes,
		MaxConnectionReceiveWindow:       dialConnWindowBytesMax,
		MaxIncomingStreams:               c.RequestStreams,
		MaxIncomingUniStreams:            c.UniStreams,
		EnableDatagrams:                  true,
		EnableStreamResetPartialDelivery: true,
	}
}

// Dial opens a native session to addr, "host:port". ctx bounds the handshake
// only; end the session with CloseWithError.
func Dial(ctx context.Context, addr string, cfg DialConfig) (protocol.Session, error) {
	if len(cfg.Protocols) == 0 {
		return nil, fmt.Errorf("%w: Protocols are required", ErrConfig)
	}
	cfg = cfg.withDefaults()
	tlsConfig := cfg.tlsConfig()
	tlsConfig.NextProtos = cfg.Protocols
	conn, err := quicgo.DialAddr(ctx, addr, tlsConfig, cfg.quicConfig())
	if err != nil {
		return nil, fmt.Errorf("dial %s by QUIC: %w", addr, err)
	}
	s := newSession(conn, conn.ConnectionState().TLS.NegotiatedProtocol, cfg.granted())
	s.watchNative()
	s.probe(cfg.probePeriod, conn.SendDatagram)
	return s, nil
}

// DialWebTransport opens a WebTransport session to rawURL, "https://host:port/…".
// ctx bounds the handshake only; end the session with CloseWithError. A refusal
// names the HTTP status.
func DialWebTransport(
	ctx context.Context, rawURL string, cfg DialConfig,
) (protocol.Session, error) {
	if len(cfg.Protocols) == 0 {
		return nil, fmt.Errorf("%w: Protocols are required", ErrConfig)
	}
	cfg = cfg.withDefaults()
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("WebTransport URL: %w", err)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = u.Host + ":443"
	}
	tlsConfig := cfg.tlsConfig()
	tlsConfig.NextProtos = []string{http3.NextProtoH3}
	conn, err := quicgo.DialAddr(ctx, addr, tlsConfig, cfg.quicConfig())
	if err != nil {
		return nil, fmt.Errorf("dial %s by QUIC: %w", addr, err)
	}
	s, err := connect(ctx, conn, rawURL, cfg)
	if err != nil {
		_ = conn.CloseWithError(h3NoError, "")
		return nil, fmt.Errorf("open WebTransport session: %w", err)
	}
	s.requestURI = u.RequestURI()
	return s, nil
}

// connect asks for the only session of conn, whose CONNECT request is therefore
// stream 0.
func connect(
	ctx context.Context, conn *quicgo.Conn, rawURL string, cfg DialConfig,
) (*session, error) {
	transport := &webtransport.Transport{ApplicationProtocols: cfg.Protocols}
	client, err := transport.NewClientConn(conn)
	if err != nil {
		return nil, err
	}
	response, wt, err := client.Dial(ctx, rawURL, cfg.Header)
	if err != nil {
		if response != nil {
			return nil, fmt.Errorf("HTTP status %d: %w", response.StatusCode, err)
		}
		return nil, err
	}
	token := wt.SessionState().ApplicationProtocol
	if token == "" {
		_ = wt.CloseWithError(webtransport.SessionErrorCode(protocol.SessionVersion), "")
		return nil, fmt.Errorf("server chose none of %q", cfg.Protocols)
	}
	s := newSession(conn, token, cfg.granted())
	s.startWebTransport(wt, 0)
	s.probe(cfg.probePeriod, wt.SendDatagram)
	return s, nil
}

// probe sends a datagram, which means nothing, whenever no packet has come for a period.
// A server that has lost the connection answers it with a stateless reset, and s ends.
func (s *session) probe(period time.Duration, send func([]byte) error) {
	received := s.conn.ConnectionStats().PacketsReceived
	time.AfterFunc(period, func() {
		if s.ctx.Err() != nil {
			return
		}
		// A server that takes no datagrams is not asked, and noticed by the idle timeout.
		if s.conn.ConnectionStats().PacketsReceived == received &&
			send(make([]byte, probeBytes)) != nil {
			return
		}
		s.probe(period, send)
	})
}
