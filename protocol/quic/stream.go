package quic

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/webtransport-go"

	"github.com/heddle-live/heddle/protocol"
)

// packetBytes is what surely fits one packet with its stream's header.
const packetBytes = 1200

// rawSend is what *quicgo.SendStream and *quicgo.Stream share.
type rawSend interface {
	io.Writer
	TryWriteAll(p []byte) error
	Close() error
	CancelWrite(code quicgo.StreamErrorCode)
	SetPriority(urgency int8, incremental bool)
	Context() context.Context
}

// rawReceive is what *quicgo.ReceiveStream and *quicgo.Stream share.
type rawReceive interface {
	io.Reader
	CancelRead(code quicgo.StreamErrorCode)
	SetReadDeadline(t time.Time) error
}

// member is a half stream that must end with its session although the QUIC
// connection goes on for a moment.
type member interface{ endWithSession() }

// sendHalf sends on a stream of the QUIC connection itself. On WebTransport it
// writes the stream's header, so that priorities and TryWriteAll, which
// webtransport-go does not offer, work there as well.
type sendHalf struct {
	session *session
	raw     rawSend
	header  []byte // not yet written; owned by the session, never changed
}

// Write implements protocol.SendStream.
func (h *sendHalf) Write(p []byte) (int, error) {
	written := 0
	for {
		chunk := p[written:min(written+backlogChunkBytes, len(p))]
		h.session.awaitRoom(h.Done())
		h.session.backlog.add(len(chunk))
		n, err := h.write(chunk)
		written += n
		if err != nil || written == len(p) {
			return written, h.failed(err)
		}
	}
}

func (h *sendHalf) write(p []byte) (int, error) {
	first := p
	if len(h.header) > 0 {
		if len(h.header)+len(p) <= packetBytes {
			first = h.withHeader(p)
		} else if _, err := h.raw.Write(h.header); err != nil {
			return 0, err
		}
	}
	headerBytes := len(first) - len(p)
	h.header = nil
	n, err := h.raw.Write(first)
	return max(n-headerBytes, 0), err
}

// TryWrite implements protocol.SendStream.
func (h *sendHalf) TryWrite(p []byte) error {
	if !h.session.roomy() {
		return protocol.ErrWouldBlock
	}
	err := h.tryWrite(p)
	if err == nil {
		h.session.backlog.add(len(p))
	}
	return h.failed(err)
}

func (h *sendHalf) tryWrite(p []byte) error {
	if len(h.header) == 0 {
		return h.raw.TryWriteAll(p)
	}
	if len(h.header)+len(p) <= packetBytes {
		// One call, so that header and payload leave in one packet.
		err := h.raw.TryWriteAll(h.withHeader(p))
		if err == nil {
			h.header = nil
		}
		return err
	}
	if err := h.raw.TryWriteAll(h.header); err != nil {
		return err
	}
	h.header = nil // a header alone is harmless should the payload find no room
	return h.raw.TryWriteAll(p)
}

func (h *sendHalf) withHeader(p []byte) []byte {
	b := make([]byte, 0, len(h.header)+len(p))
	return append(append(b, h.header...), p...)
}

// Close implements protocol.SendStream. Done is closed by it, because the QUIC
// layer does not tell when a finished stream was acknowledged.
func (h *sendHalf) Close() error {
	if len(h.header) > 0 {
		if _, err := h.raw.Write(h.header); err != nil {
			return h.failed(err)
		}
		h.header = nil
	}
	h.session.forget(h)
	return h.failed(h.raw.Close())
}

// Reset implements protocol.SendStream.
func (h *sendHalf) Reset(code protocol.StreamCode) {
	h.session.forget(h)
	h.raw.CancelWrite(wireCode(code, h.session.isWebTransport()))
}

// SetPriority implements protocol.SendStream. Streams of one urgency share the
// connection in turns.
func (h *sendHalf) SetPriority(urgency uint8) {
	h.raw.SetPriority(int8(min(urgency, 7)), true)
}

// Done implements protocol.SendStream.
func (h *sendHalf) Done() <-chan struct{} { return h.raw.Context().Done() }

func (h *sendHalf) endWithSession() { h.raw.CancelWrite(wtSessionGone) }

func (h *sendHalf) failed(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, quicgo.ErrWouldBlock) {
		return protocol.ErrWouldBlock
	}
	h.session.forget(h)
	return h.session.streamError(err)
}

// receiveHalf receives on a stream of the QUIC connection itself.
type receiveHalf struct {
	session *session
	raw     rawReceive
}

// Read implements protocol.ReceiveStream.
func (h *receiveHalf) Read(p []byte) (int, error) {
	n, err := h.raw.Read(p)
	if err != nil {
		err = h.session.readError(h, err)
	}
	return n, err
}

// Stop implements protocol.ReceiveStream.
func (h *receiveHalf) Stop(code protocol.StreamCode) {
	h.session.forget(h)
	h.raw.CancelRead(wireCode(code, h.session.isWebTransport()))
}

// SetReadDeadline implements protocol.ReceiveStream.
func (h *receiveHalf) SetReadDeadline(t time.Time) error { return h.raw.SetReadDeadline(t) }

func (h *receiveHalf) endWithSession() { h.raw.CancelRead(wtSessionGone) }

// stream is a bidirectional stream of the QUIC connection itself.
type stream struct {
	*sendHalf
	*receiveHalf
}

// wtRawReceive is what *webtransport.ReceiveStream and *webtransport.Stream share.
type wtRawReceive interface {
	io.Reader
	CancelRead(code webtransport.StreamErrorCode)
	SetReadDeadline(t time.Time) error
}

// longPast is a deadline that ends waiting calls at once.
var longPast = time.Unix(1, 0)

// wtReceiveHalf receives on a stream that webtransport-go sorted out for us.
//
// That library holds a Read whose peer has reset the stream as one of a session
// that is gone until the session ends, and forgets a stream that was cancelled:
// the end of the session, even of the connection, does not reach such a Read,
// but a deadline does.
type wtReceiveHalf struct {
	session *session
	raw     wtRawReceive
	stopped atomic.Pointer[protocol.StreamError]
}

// Read implements protocol.ReceiveStream.
func (h *wtReceiveHalf) Read(p []byte) (int, error) {
	n, err := h.raw.Read(p)
	if stopped := h.stopped.Load(); stopped != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		err = stopped
	}
	if err != nil {
		err = h.session.readError(h, err)
	}
	return n, err
}

// Stop implements protocol.ReceiveStream.
func (h *wtReceiveHalf) Stop(code protocol.StreamCode) {
	h.session.forget(h)
	h.stopped.CompareAndSwap(nil, &protocol.StreamError{Code: code})
	h.raw.CancelRead(webtransport.StreamErrorCode(code))
	_ = h.raw.SetReadDeadline(longPast)
}

// SetReadDeadline implements protocol.ReceiveStream.
func (h *wtReceiveHalf) SetReadDeadline(t time.Time) error {
	err := h.raw.SetReadDeadline(t)
	if h.stopped.Load() != nil {
		return h.raw.SetReadDeadline(longPast) // Stop may have set it before us
	}
	return err
}

func (h *wtReceiveHalf) endWithSession() { h.Stop(protocol.CodeClosed) }
