// Package protocol is the vocabulary of moq-lite: paths, hop IDs, versions'
// names, error codes, and the Session and Stream interfaces that every binding
// (QUIC, WebTransport, QMux over WebSocket) implements. It is a leaf with no
// behaviour beyond its own types; it never learns what a frame means.
package protocol

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// HopID identifies one origin or relay; 0 means unknown. Below 2^62.
type HopID uint64

// StreamCode is the application code of RESET_STREAM and STOP_SENDING.
type StreamCode uint64

// Stream codes of the registry that moq-lite up to 05 uses. Received codes are
// diagnostics only: older JavaScript clients send 0 for everything.
const (
	CodeCancel            StreamCode = 0
	CodeOld               StreamCode = 2
	CodeTimeout           StreamCode = 3
	CodeDecode            StreamCode = 5
	CodeUnauthorized      StreamCode = 6
	CodeUnexpectedStream  StreamCode = 10
	CodeBoundsExceeded    StreamCode = 11
	CodeDuplicate         StreamCode = 12
	CodeNotFound          StreamCode = 13
	CodeProtocolViolation StreamCode = 15
	CodeUnsupported       StreamCode = 17
	CodeClosed            StreamCode = 25
	CodeLagged            StreamCode = 26
	CodeFrameTooLarge     StreamCode = 27
	CodeUnroutable        StreamCode = 30
	CodeEvicted           StreamCode = 31
	// Application codes start at 64; these are Heddle's own.
	CodeViewDropped  StreamCode = 64 // the view no longer exists
	CodeViewChanged  StreamCode = 65 // the view's columns changed; subscribe again
	CodeTokenExpired StreamCode = 66
	CodeBusy         StreamCode = 67 // a limit of the server is reached; retry later
	CodeShutdown     StreamCode = 68 // the server is going away
	CodeInternal     StreamCode = 69 // a fault of the server, logged there
	CodeTooExpensive StreamCode = 70 // the key needs more work than the server allows
)

// SessionCode is the application code that closes a session.
type SessionCode uint64

// Session codes.
const (
	SessionNoError           SessionCode = 0
	SessionInternal          SessionCode = 1
	SessionUnauthorized      SessionCode = 2
	SessionProtocolViolation SessionCode = 15
	SessionVersion           SessionCode = 9
	SessionGoingAway         SessionCode = 68
)

// ErrStreamLimit is returned by TryOpenUniStream when the peer grants no
// further stream at the moment.
var ErrStreamLimit = errors.New("peer's stream limit reached")

// ErrWouldBlock is returned by TryWrite when the data cannot be queued at once.
var ErrWouldBlock = errors.New("stream has no room")

// StreamError says why one half of a stream ended early.
type StreamError struct {
	Code   StreamCode
	Remote bool   // the peer's doing
	Reason string // for people; may be empty
}

func (e *StreamError) Error() string {
	who := "us"
	if e.Remote {
		who = "peer"
	}
	if e.Reason == "" {
		return fmt.Sprintf("stream ended by %s with code %d", who, e.Code)
	}
	return fmt.Sprintf("stream ended by %s with code %d: %s", who, e.Code, e.Reason)
}

// SessionError says why a session ended. It is the cause of Session.Context
// and of every error after the end.
type SessionError struct {
	Code   SessionCode
	Remote bool
	Reason string
}

func (e *SessionError) Error() string {
	who := "us"
	if e.Remote {
		who = "peer"
	}
	return fmt.Sprintf("session closed by %s with code %d: %s", who, e.Code, e.Reason)
}

// SendStream is the sending half of a stream. Write, TryWrite and Close are for
// one goroutine at a time; Reset may be called from any. Written bytes are
// copied or sent before the call returns: the caller may reuse its buffer.
type SendStream interface {
	// Write blocks until all of p is queued, or the stream or session ends.
	io.Writer
	// TryWrite queues all of p or nothing, never blocks, and returns
	// ErrWouldBlock if there is no room now.
	TryWrite(p []byte) error
	// Close ends the half gracefully (FIN).
	Close() error
	// Reset abandons the half; data not yet acknowledged may be lost. A second
	// Reset, or one after Close was acknowledged, does nothing.
	Reset(code StreamCode)
	// SetPriority sets a coarse urgency from 0 (first) to 7; a binding without
	// priorities ignores it.
	SetPriority(urgency uint8)
	// Done is closed when nobody reads the half any more: the peer sent
	// STOP_SENDING, the half was reset or acknowledged, or the session ended.
	Done() <-chan struct{}
}

// ReceiveStream is the receiving half of a stream, for one reader at a time.
// Read returns io.EOF after a FIN and a *StreamError after a reset.
type ReceiveStream interface {
	io.Reader
	// Stop asks the peer to stop sending. Reads fail afterwards. Harmless on a
	// half that already ended.
	Stop(code StreamCode)
	// SetReadDeadline bounds reads; the zero time removes the bound.
	SetReadDeadline(t time.Time) error
}

// Stream is bidirectional.
type Stream interface {
	SendStream
	ReceiveStream
}

// Stats are a session's transport figures; zero values are unknown.
type Stats struct {
	SmoothedRTT   time.Duration
	BytesSent     uint64
	BytesReceived uint64
}

// Session is one connection with its negotiated version, whatever carries it.
// All methods are safe for concurrent use.
type Session interface {
	AcceptStream(ctx context.Context) (Stream, error)
	AcceptUniStream(ctx context.Context) (ReceiveStream, error)
	// OpenStream and OpenUniStream wait for stream credit.
	OpenStream(ctx context.Context) (Stream, error)
	OpenUniStream(ctx context.Context) (SendStream, error)
	// TryOpenUniStream returns ErrStreamLimit instead of waiting.
	TryOpenUniStream() (SendStream, error)
	// CloseWithError ends the session and all its streams. Idempotent.
	CloseWithError(code SessionCode, reason string) error
	// Context is cancelled when the session ends; its cause is a *SessionError
	// or the transport's error.
	Context() context.Context
	// Protocol is the negotiated application token, such as "moq-lite-05".
	Protocol() string
	// Transport is "quic", "webtransport" or "websocket".
	Transport() string
	// RequestURI is the path and query that the peer asked for, "" if the
	// binding carries none.
	RequestURI() string
	RemoteAddr() net.Addr
	Stats() Stats
}
