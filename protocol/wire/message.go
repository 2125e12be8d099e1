// Package wire holds the messages of moq-lite-05, one file each: append-style
// encoders and strict parsers, and nothing that waits. A message is a length
// and a body; AppendX writes both, ParseX takes the body alone and refuses one
// that is not consumed exactly. Stream types are written apart from messages.
// protocol/moq encodes frames with it, protocol/lite everything else.
//
// Source: draft-lcurley-moq-lite and the behaviour of deployed clients;
// docs/formats/moq-lite.md has the layouts byte by byte.
package wire

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/varint"
)

// Stream types: the first integer of a stream. Bidirectional and unidirectional
// streams number theirs apart.
const (
	StreamAnnounce  uint64 = 0x1
	StreamSubscribe uint64 = 0x2
	StreamFetch     uint64 = 0x3
	StreamProbe     uint64 = 0x4
	StreamGoaway    uint64 = 0x5
	StreamTrack     uint64 = 0x6

	UniStreamGroup uint64 = 0x0
	UniStreamSetup uint64 = 0x1
)

// Limits of what is parsed.
const (
	// MaxMessageBytes bounds the body of a control message. Frames are not
	// messages; MaxFrameBytes bounds those.
	MaxMessageBytes = 64 << 10
	// MaxHops bounds the hop list of an announcement.
	MaxHops = 32
	// MaxParameters bounds the parameters of SETUP.
	MaxParameters = 64
	// MaxURIBytes bounds the URI of GOAWAY.
	MaxURIBytes = 8 << 10
	// MaxNameBytes bounds a path, as it is on the wire, and a track's name: who is
	// asked for one keeps it as long as the request lasts.
	MaxNameBytes = 4 << 10
)

// What is wrong with a message. Every error of a parser wraps one of these or
// io.ErrUnexpectedEOF; lite maps them to stream codes.
var (
	// ErrMalformed: a field has no value that the format allows.
	ErrMalformed = errors.New("malformed message")
	// ErrBounds: a length or a count is over its limit.
	ErrBounds = errors.New("over a limit of the protocol")
	// ErrViolation: the fields are well-formed but break a rule.
	ErrViolation = errors.New("protocol violation")
)

// ByteReader is what messages are read from; *bufio.Reader is one.
type ByteReader interface {
	io.Reader
	io.ByteReader
}

// bodyStepBytes bounds how much is allocated before a peer has sent as much:
// a length alone must not cost the receiver 64 KiB.
const bodyStepBytes = 4 << 10

// ReadMessage reads one length and its body from r. The body is appended to
// dst[:0] and valid until the caller reuses dst. It returns io.EOF if r ends
// before the first byte, io.ErrUnexpectedEOF if it ends inside, ErrBounds
// (wrapped) if the body is over MaxMessageBytes.
func ReadMessage(r ByteReader, dst []byte) ([]byte, error) {
	return ReadMessageWithin(r, dst, func(int) error { return nil })
}

// ReadMessageWithin is ReadMessage for a reader who bounds what messages that
// have not come whole may hold in all: before it waits for n further bytes of
// the body it calls hold(n), whose error ends the reading and is returned.
func ReadMessageWithin(r ByteReader, dst []byte, hold func(bytes int) error) ([]byte, error) {
	dst = dst[:0]
	n, err := varint.Read(r)
	if err != nil {
		return dst, err
	}
	if n > MaxMessageBytes {
		return dst, fmt.Errorf("message of %d bytes: %w", n, ErrBounds)
	}
	for rest := int(n); rest > 0; {
		step := min(rest, bodyStepBytes)
		if err := hold(step); err != nil {
			return dst, err
		}
		dst = slices.Grow(dst, step)
		at := len(dst)
		dst = dst[:at+step]
		if _, err := io.ReadFull(r, dst[at:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return dst[:at], fmt.Errorf("message body: %w", err)
		}
		rest -= step
	}
	return dst, nil
}

// lengthen puts the length of dst[start:] in front of it: bodies are appended
// first, so that nobody computes sizes by hand.
func lengthen(dst []byte, start int) []byte {
	n := len(dst) - start
	size := varint.Len(uint64(n))
	var pad [varint.MaxLen]byte
	dst = append(dst, pad[:size]...)
	copy(dst[start+size:], dst[start:start+n])
	varint.Append(dst[:start], uint64(n))
	return dst
}

func appendString[S ~string](dst []byte, s S) []byte {
	dst = varint.Append(dst, uint64(len(s)))
	return append(dst, s...)
}

// appendOptional writes an integer that may be absent: 0, or the value plus 1.
func appendOptional(dst []byte, v Optional) []byte {
	if !v.Set {
		return append(dst, 0)
	}
	return varint.Append(dst, v.Value+1)
}

// Optional is an integer that may be absent. The zero value is absent; a value
// is at most varint.Max-1.
type Optional struct {
	Value uint64
	Set   bool
}

// Some returns v as a present Optional.
func Some(v uint64) Optional { return Optional{Value: v, Set: true} }

func (o Optional) String() string {
	if !o.Set {
		return "absent"
	}
	return fmt.Sprint(o.Value)
}

// body parses fields one after the other. The first error sticks, and every
// later field is zero, so that parsers read top to bottom and check once.
type body struct {
	rest []byte
	err  error
}

func (b *body) fail(field string, err error) {
	if b.err == nil {
		b.err = fmt.Errorf("%s: %w", field, err)
	}
	b.rest = nil
}

func (b *body) integer(field string) uint64 {
	if b.err != nil {
		return 0
	}
	v, n, err := varint.Parse(b.rest)
	if err != nil {
		b.fail(field, err)
		return 0
	}
	b.rest = b.rest[n:]
	return v
}

func (b *body) optional(field string) Optional {
	v := b.integer(field)
	if v == 0 {
		return Optional{}
	}
	return Some(v - 1)
}

func (b *body) octet(field string) uint8 {
	if b.err != nil {
		return 0
	}
	if len(b.rest) == 0 {
		b.fail(field, io.ErrUnexpectedEOF)
		return 0
	}
	v := b.rest[0]
	b.rest = b.rest[1:]
	return v
}

func (b *body) boolean(field string) bool {
	v := b.octet(field)
	if v > 1 {
		b.fail(field, fmt.Errorf("%w: %d is no boolean", ErrMalformed, v))
	}
	return v == 1
}

// bytes returns the next length-prefixed bytes; they alias the message.
func (b *body) bytes(field string) []byte {
	n := b.integer(field)
	if b.err != nil {
		return nil
	}
	if n > uint64(len(b.rest)) {
		b.fail(field, io.ErrUnexpectedEOF)
		return nil
	}
	v := b.rest[:n]
	b.rest = b.rest[n:]
	return v
}

func (b *body) text(field string) string {
	v := b.bytes(field)
	if !utf8.Valid(v) {
		b.fail(field, fmt.Errorf("%w: not UTF-8", ErrMalformed))
		return ""
	}
	return string(v)
}

// name is a text of at most MaxNameBytes.
func (b *body) name(field string) string {
	s := b.text(field)
	if len(s) > MaxNameBytes {
		b.fail(field, fmt.Errorf("%w: %d bytes", ErrBounds, len(s)))
		return ""
	}
	return s
}

func (b *body) path(field string) protocol.Path {
	s := b.name(field)
	if b.err != nil {
		return ""
	}
	p, err := protocol.ParsePath(s)
	if err != nil {
		b.fail(field, fmt.Errorf("%w: %w", ErrBounds, err))
	}
	return p
}

// end returns the first error, or ErrViolation if bytes are left over.
func (b *body) end(message string) error {
	if b.err != nil {
		return fmt.Errorf("%s %w", message, b.err)
	}
	if len(b.rest) > 0 {
		return fmt.Errorf("%s: %w: %d bytes after the last field",
			message, ErrViolation, len(b.rest))
	}
	return nil
}
