package quic

import (
	"errors"
	"os"
	"sync"

	"github.com/quic-go/webtransport-go"

	"github.com/heddle-live/heddle/protocol"
)

// pendingBytesMax bounds what TryWrite may hold back for one stream.
const pendingBytesMax = 64 << 10

var errWriteAfterClose = errors.New("write on a closed stream")

// wtSendHalf answers on a request stream that webtransport-go accepted. That
// library can only write and wait; TryWrite therefore hands its bytes to a
// goroutine that lives as long as there are some. Answers are few and small.
type wtSendHalf struct {
	session *session
	raw     *webtransport.Stream

	mu      sync.Mutex
	idle    sync.Cond // of mu: pumping became false
	pending []byte
	pumping bool
	closed  bool
	err     error
}

func newWTSendHalf(s *session, raw *webtransport.Stream) *wtSendHalf {
	h := &wtSendHalf{session: s, raw: raw}
	h.idle.L = &h.mu
	return h
}

// Write implements protocol.SendStream.
func (h *wtSendHalf) Write(p []byte) (int, error) {
	h.mu.Lock()
	for h.pumping {
		h.idle.Wait()
	}
	err := h.stateLocked()
	h.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := h.raw.Write(p)
	return n, h.failed(h.orReset(err))
}

// TryWrite implements protocol.SendStream.
func (h *wtSendHalf) TryWrite(p []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.stateLocked(); err != nil {
		return err
	}
	if len(h.pending)+len(p) > pendingBytesMax {
		return protocol.ErrWouldBlock
	}
	h.pending = append(h.pending, p...)
	if !h.pumping {
		h.pumping = true
		go h.pump()
	}
	return nil
}

func (h *wtSendHalf) stateLocked() error {
	if h.err != nil {
		return h.err
	}
	if h.closed {
		return errWriteAfterClose
	}
	return nil
}

// pump writes what TryWrite left, then the FIN if Close came meanwhile.
func (h *wtSendHalf) pump() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.pending) > 0 && h.err == nil {
		b := h.pending
		h.pending = nil
		h.mu.Unlock()
		_, err := h.raw.Write(b)
		err = h.failed(h.orReset(err))
		h.mu.Lock()
		if err != nil && h.err == nil {
			h.err = err
		}
	}
	h.pending = nil
	h.pumping = false
	h.idle.Broadcast()
	if h.closed && h.err == nil {
		// webtransport-go only marks the stream here; it does not wait.
		_ = h.raw.Close()
	}
}

// Close implements protocol.SendStream.
func (h *wtSendHalf) Close() error {
	h.session.forget(h)
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	pumping := h.pumping
	h.mu.Unlock()
	if pumping {
		return nil
	}
	return h.failed(h.raw.Close())
}

// Reset implements protocol.SendStream.
func (h *wtSendHalf) Reset(code protocol.StreamCode) {
	h.session.forget(h)
	h.mu.Lock()
	if h.err == nil {
		h.err = &protocol.StreamError{Code: code}
	}
	h.mu.Unlock()
	h.raw.CancelWrite(webtransport.StreamErrorCode(code))
	// A Write whose peer has stopped the stream as one of a session that is gone
	// is held as wtReceiveHalf says of Read.
	_ = h.raw.SetWriteDeadline(longPast)
}

// orReset turns the end by the deadline that Reset sets into its reason.
func (h *wtSendHalf) orReset(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// SetPriority implements protocol.SendStream; webtransport-go has none.
func (h *wtSendHalf) SetPriority(uint8) {}

// Done implements protocol.SendStream.
func (h *wtSendHalf) Done() <-chan struct{} { return h.raw.Context().Done() }

func (h *wtSendHalf) endWithSession() { h.Reset(protocol.CodeClosed) }

func (h *wtSendHalf) failed(err error) error {
	if err == nil {
		return nil
	}
	h.session.forget(h)
	return h.session.streamError(err)
}

// wtStream is a bidirectional stream that webtransport-go accepted.
type wtStream struct {
	*wtSendHalf
	*wtReceiveHalf
}
