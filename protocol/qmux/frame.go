package qmux

import (
	"errors"
	"fmt"
	"io"

	"github.com/heddle-live/heddle/protocol/varint"
)

// Frame types. Everything else ends the session.
//
// Source: draft-ietf-quic-qmux-02 and RFC 9000, section 19.
const (
	framePadding         = 0x00
	frameReset           = 0x04
	frameStop            = 0x05
	frameStream          = 0x08 // to 0x0f, with the three bits below
	frameMaxData         = 0x10
	frameMaxStreamData   = 0x11
	frameMaxStreamsBidi  = 0x12
	frameMaxStreamsUni   = 0x13
	frameDataBlocked     = 0x14
	frameStreamBlocked   = 0x15
	frameBidiBlocked     = 0x16
	frameUniBlocked      = 0x17
	frameClose           = 0x1c
	frameAppClose        = 0x1d
	frameDatagram        = 0x30
	frameDatagramLen     = 0x31
	frameParameters      = 0x3f5153300d0a0d0a
	framePing            = 0x348c67529ef8c7bd
	framePong            = 0x348c67529ef8c7be
	streamFIN            = 0x01
	streamHasLength      = 0x02
	streamHasOffset      = 0x04
	streamTypeMask       = 0x07
	streamFrameHeaderMax = 1 + 8 + 8 + 4
)

const (
	// recordBytesMax is the largest record: the smallest limit that a peer may
	// set, and what we set ourselves.
	recordBytesMax = 16382
	// streamPayloadMax leaves room for the longest header in a record; older
	// receivers also refuse more than 16,384-32 bytes.
	streamPayloadMax = recordBytesMax - streamFrameHeaderMax - 11
	// closeReasonBytesMax bounds the reasons that we send.
	closeReasonBytesMax = 1024
)

// errFrame is wrapped by every error of parseFrame.
var errFrame = errors.New("malformed frame")

// frame is one parsed frame; which fields have a meaning depends on its type.
type frame struct {
	kind      uint64 // frameStream for every STREAM frame
	id        uint64
	code      uint64 // of RESET, STOP and both closes
	value     uint64 // a limit, a sequence, a final size
	offset    uint64
	hasOffset bool
	fin       bool
	data      []byte // aliases the record
}

// parser reads varints off a record and remembers the first failure.
type parser struct {
	b   []byte
	err error
}

func (p *parser) int() uint64 {
	v, n, err := varint.Parse(p.b)
	if err != nil {
		if p.err == nil {
			p.err = err
		}
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) bytes(n uint64) []byte {
	if n > uint64(len(p.b)) {
		if p.err == nil {
			p.err = io.ErrUnexpectedEOF
		}
		return nil
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

// parseFrame reads the frame at the start of record and returns it with the
// number of bytes consumed. Its data aliases record. Errors wrap errFrame.
func parseFrame(record []byte) (frame, int, error) {
	p := parser{b: record}
	f := frame{kind: p.int()}
	switch f.kind {
	case framePadding:
	case frameReset:
		f.id, f.code, f.value = p.int(), p.int(), p.int()
	case frameStop:
		f.id, f.code = p.int(), p.int()
	case frameMaxStreamData, frameStreamBlocked:
		f.id, f.value = p.int(), p.int()
	case frameMaxData, frameMaxStreamsBidi, frameMaxStreamsUni,
		frameDataBlocked, frameBidiBlocked, frameUniBlocked, framePing, framePong:
		f.value = p.int()
	case frameClose:
		f.code = p.int()
		p.int() // the frame type that caused it
		f.data = p.bytes(p.int())
	case frameAppClose:
		f.code = p.int()
		f.data = p.bytes(p.int())
	case frameParameters, frameDatagramLen:
		f.data = p.bytes(p.int())
	case frameDatagram:
		f.data = p.bytes(uint64(len(p.b)))
	default:
		if f.kind&^streamTypeMask != frameStream {
			return frame{}, 0, fmt.Errorf("%w: unknown type %#x", errFrame, f.kind)
		}
		p.stream(&f)
	}
	if p.err != nil {
		return frame{}, 0, fmt.Errorf("%w: type %#x: %w", errFrame, f.kind, p.err)
	}
	return f, len(record) - len(p.b), nil
}

func (p *parser) stream(f *frame) {
	bits := f.kind & streamTypeMask
	f.kind = frameStream
	f.fin = bits&streamFIN != 0
	f.id = p.int()
	if bits&streamHasOffset != 0 {
		f.hasOffset = true
		f.offset = p.int()
	}
	n := uint64(len(p.b))
	if bits&streamHasLength != 0 {
		n = p.int()
	}
	f.data = p.bytes(n)
}

func appendFrame(dst []byte, kind uint64, values ...uint64) []byte {
	dst = varint.Append(dst, kind)
	for _, v := range values {
		dst = varint.Append(dst, v)
	}
	return dst
}

// appendStreamHeader appends all of a STREAM frame but its length bytes of data.
func appendStreamHeader(dst []byte, id, offset uint64, length int, fin bool) []byte {
	kind := byte(frameStream | streamHasLength | streamHasOffset)
	if fin {
		kind |= streamFIN
	}
	dst = append(dst, kind)
	dst = varint.Append(dst, id)
	dst = varint.Append(dst, offset)
	return varint.Append(dst, uint64(length))
}

func appendAppClose(dst []byte, code uint64, reason string) []byte {
	dst = appendFrame(dst, frameAppClose, code, uint64(len(reason)))
	return append(dst, reason...)
}

func appendClose(dst []byte, code uint64, reason string) []byte {
	dst = appendFrame(dst, frameClose, code, 0, uint64(len(reason)))
	return append(dst, reason...)
}
