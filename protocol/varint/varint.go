// Package varint encodes and decodes the variable-length integers of RFC 9000,
// section 16, which every moq-lite version up to 06 and QMux use. It does no
// I/O of its own and keeps no state; wire, qmux and quic call it.
package varint

import (
	"errors"
	"fmt"
	"io"
)

const (
	// Max is the largest value that fits, 2^62-1.
	Max = 1<<62 - 1
	// MaxLen is the largest number of bytes of one encoded integer.
	MaxLen = 8
)

// ErrRange says that a value does not fit an integer of the wire.
var ErrRange = errors.New("value over 2^62-1")

// Len returns the number of bytes of v in its shortest form: 1, 2, 4 or 8. It
// panics if v is over Max, because a peer cannot cause that.
func Len(v uint64) int {
	switch {
	case v < 1<<6:
		return 1
	case v < 1<<14:
		return 2
	case v < 1<<30:
		return 4
	case v <= Max:
		return 8
	}
	panic("varint: value over 2^62-1")
}

// Append appends v to dst in its shortest form. It panics if v is over Max.
func Append(dst []byte, v uint64) []byte {
	switch {
	case v < 1<<6:
		return append(dst, byte(v))
	case v < 1<<14:
		return append(dst, 0x40|byte(v>>8), byte(v))
	case v < 1<<30:
		return append(dst, 0x80|byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	case v <= Max:
		return append(dst, 0xc0|byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32),
			byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	panic("varint: value over 2^62-1")
}

// Parse reads one integer from the start of b and returns it with the number
// of bytes consumed. Forms longer than necessary are accepted. It returns
// io.ErrUnexpectedEOF if b ends early.
func Parse(b []byte) (uint64, int, error) {
	if len(b) == 0 {
		return 0, 0, io.ErrUnexpectedEOF
	}
	n := 1 << (b[0] >> 6)
	if len(b) < n {
		return 0, 0, io.ErrUnexpectedEOF
	}
	v := uint64(b[0] & 0x3f)
	for _, c := range b[1:n] {
		v = v<<8 | uint64(c)
	}
	return v, n, nil
}

// Read reads one integer from r. It returns io.EOF if r ends before the first
// byte, io.ErrUnexpectedEOF if it ends inside, and other errors of r as they are.
func Read(r io.ByteReader) (uint64, error) {
	first, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	v := uint64(first & 0x3f)
	for range 1<<(first>>6) - 1 {
		c, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		v = v<<8 | uint64(c)
	}
	return v, nil
}

// ZigZag maps a signed number to an unsigned one so that small magnitudes stay
// small: 0, -1, 1, -2 become 0, 1, 2, 3. It returns ErrRange (wrapped) if the
// result is over Max.
func ZigZag(v int64) (uint64, error) {
	u := uint64(v<<1) ^ uint64(v>>63)
	if u > Max {
		return 0, fmt.Errorf("signed %d: %w", v, ErrRange)
	}
	return u, nil
}

// UnZigZag is the inverse of ZigZag, for every uint64.
func UnZigZag(u uint64) int64 {
	return int64(u>>1) ^ -int64(u&1)
}
