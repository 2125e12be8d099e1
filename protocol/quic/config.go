// Package quic carries moq-lite sessions over QUIC: natively, with the version
// token as ALPN, and as WebTransport over HTTP/3. It implements
// protocol.Session for both and never looks into the bytes of a stream. The
// host runs a Listener; sdk/client, relays and benches call Dial and
// DialWebTransport. It is the only package that imports a QUIC library.
//
// Lock order: none of the package's mutexes is held while another is taken.
package quic

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"time"

	quicgo "github.com/quic-go/quic-go"
)

// Defaults and fixed limits of the package.
const (
	// DefaultRequestStreams is how many bidirectional streams a peer of a
	// listener may hold open at once.
	DefaultRequestStreams = 4096
	// DefaultUniStreams is how many unidirectional streams a peer of a listener
	// may hold open at once; viewers need one, for SETUP, and HTTP/3 three more.
	DefaultUniStreams = 256
	// DefaultDialUniStreams is the same for the peer of a dialled session, which
	// opens one stream for each group it delivers.
	DefaultDialUniStreams = 1024

	idleTimeout      = 30 * time.Second
	keepAlivePeriod  = 10 * time.Second
	handshakeTimeout = 5 * time.Second
	// probePeriod is after how long without a packet from its server a dialled session
	// asks whether the server still knows it, and probeBytes with how many. A server
	// that was killed and is back answers packets of more than 42 bytes only with a
	// stateless reset, which keep-alives are not.
	probePeriod = 3 * time.Second
	probeBytes  = 64
	// sessionlessTimeout ends an HTTP/3 connection that asks for no session.
	sessionlessTimeout = 10 * time.Second
	// closeGrace is how long a closed WebTransport session waits for its peer to
	// take notice, closeLinger how long the QUIC connection stays after that:
	// Chrome forgets the close code if the connection goes at once.
	closeGrace  = time.Second
	closeLinger = 200 * time.Millisecond

	headerBytesMax = 16 << 10
	acceptors      = 8

	// A listener mostly sends: its peers need little room for requests.
	listenStreamWindowBytes    = 64 << 10
	listenStreamWindowBytesMax = 256 << 10
	listenConnWindowBytes      = 256 << 10
	listenConnWindowBytesMax   = 1 << 20
	// A dialled session mostly receives.
	dialStreamWindowBytes    = 512 << 10
	dialStreamWindowBytesMax = 4 << 20
	dialConnWindowBytes      = 1 << 20
	dialConnWindowBytesMax   = 16 << 20
)

// Config says what a Listener accepts. It must not change after Listen.
type Config struct {
	// TLS holds the certificates, by Certificates or GetCertificate. Its
	// NextProtos are replaced. Required.
	TLS *tls.Config
	// Protocols are the version tokens spoken, the preferred one first, such as
	// "moq-lite-05". Required.
	Protocols []string
	// AllowOrigin decides about each WebTransport request by its Host and Origin.
	// Nil allows requests without Origin and those whose Origin is their Host.
	AllowOrigin func(*http.Request) bool
	// StatelessResetKey, kept over restarts, lets clients notice that their server was
	// killed and restarted as soon as they send more than a few bytes; dialled sessions
	// do so every few seconds. Nil: they notice after the idle timeout.
	StatelessResetKey *[32]byte
	// TokenKey, kept over restarts, lets returning clients skip address
	// validation. Nil: a random one.
	TokenKey *[32]byte
	// RequestStreams is how many bidirectional streams a session's peer may hold
	// open at once. 0: DefaultRequestStreams.
	RequestStreams int64
	// UniStreams is how many unidirectional streams a session's peer may hold
	// open at once. 0: DefaultUniStreams.
	UniStreams int64
}

func (c Config) withDefaults() Config {
	if c.RequestStreams == 0 {
		c.RequestStreams = DefaultRequestStreams
	}
	if c.UniStreams == 0 {
		c.UniStreams = DefaultUniStreams
	}
	if c.AllowOrigin == nil {
		c.AllowOrigin = sameOrigin
	}
	return c
}

// granted is how many streams a session's peer may hold open at once.
func (c Config) granted() int64 { return max(c.RequestStreams, 0) + max(c.UniStreams, 0) }

func (c Config) quicConfig() *quicgo.Config {
	return &quicgo.Config{
		HandshakeIdleTimeout:             handshakeTimeout,
		MaxIdleTimeout:                   idleTimeout,
		KeepAlivePeriod:                  keepAlivePeriod,
		InitialStreamReceiveWindow:       listenStreamWindowBytes,
		MaxStreamReceiveWindow:           listenStreamWindowBytesMax,
		InitialConnectionReceiveWindow:   listenConnWindowBytes,
		MaxConnectionReceiveWindow:       listenConnWindowBytesMax,
		MaxIncomingStreams:               c.RequestStreams,
		MaxIncomingUniStreams:            c.UniStreams,
		EnableDatagrams:                  true, // WebTransport demands both
		EnableStreamResetPartialDelivery: true,
	}
}

func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}
