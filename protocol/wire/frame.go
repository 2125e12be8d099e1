package wire

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/heddle-live/heddle/protocol/varint"
)

// MaxFrameBytes bounds the payload of one frame.
const MaxFrameBytes = 16 << 20

// MaxFrameHeaderBytes bounds what precedes a frame's payload.
const MaxFrameHeaderBytes = 2 * varint.MaxLen

// AppendFrame appends a frame: the timestamp's distance to the frame before (to
// 0 for a group's first), the payload's length, the payload. It returns
// varint.ErrRange (wrapped) if the distance does not fit, with dst unchanged.
func AppendFrame(dst []byte, delta int64, payload []byte) ([]byte, error) {
	z, err := varint.ZigZag(delta)
	if err != nil {
		return dst, fmt.Errorf("timestamp delta: %w", err)
	}
	dst = varint.Append(dst, z)
	dst = varint.Append(dst, uint64(len(payload)))
	return append(dst, payload...), nil
}

// ParseFrame reads one frame from the start of b and returns its timestamp
// delta, its payload, which aliases b, and the number of bytes consumed. It
// returns io.ErrUnexpectedEOF (wrapped) if b ends early.
func ParseFrame(b []byte) (delta int64, payload []byte, n int, err error) {
	z, at, err := varint.Parse(b)
	if err != nil {
		return 0, nil, 0, fmt.Errorf("timestamp delta: %w", err)
	}
	size, m, err := varint.Parse(b[at:])
	if err != nil {
		return 0, nil, 0, fmt.Errorf("payload length: %w", err)
	}
	at += m
	if size > MaxFrameBytes {
		return 0, nil, 0, fmt.Errorf("payload of %d bytes: %w", size, ErrBounds)
	}
	if size > uint64(len(b)-at) {
		return 0, nil, 0, fmt.Errorf("payload: %w", io.ErrUnexpectedEOF)
	}
	end := at + int(size)
	return varint.UnZigZag(z), b[at:end], end, nil
}

// frameStepBytes bounds how much is allocated before a peer has sent as much.
const frameStepBytes = 64 << 10

// ReadFrame reads one frame from r; payloadMax bounds the payload in bytes. The
// payload is new and the caller's. It returns io.EOF if r ends before the first
// byte, io.ErrUnexpectedEOF (wrapped) inside, ErrBounds (wrapped) over the limit.
func ReadFrame(r ByteReader, payloadMax int) (delta int64, payload []byte, err error) {
	z, err := varint.Read(r)
	if err != nil {
		return 0, nil, err
	}
	size, err := varint.Read(r)
	if err != nil {
		return 0, nil, fmt.Errorf("payload length: %w", noEOF(err))
	}
	if size > uint64(payloadMax) {
		return 0, nil, fmt.Errorf("payload of %d bytes: %w", size, ErrBounds)
	}
	for rest := int(size); rest > 0; {
		step := min(rest, max(frameStepBytes, len(payload)))
		payload = slices.Grow(payload, step)
		at := len(payload)
		payload = payload[:at+step]
		if _, err := io.ReadFull(r, payload[at:]); err != nil {
			return 0, nil, fmt.Errorf("payload: %w", noEOF(err))
		}
		rest -= step
	}
	return varint.UnZigZag(z), payload, nil
}

// noEOF turns an end inside an element into an unexpected one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
