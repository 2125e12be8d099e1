package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/heddle-live/heddle/engine/value"
)

// ErrTuple is wrapped by every error of ParseTuple.
var ErrTuple = errors.New("journal: malformed tuple")

// Bytes of a string that need an escape, and what stands for them. A terminator
// of 0, 0 sorts below 0, 255, and so a string below each longer one.
const (
	tupleEnd    = 0x00
	tupleEscape = 0xff
)

const signBit = 1 << 63

// The byte in front of a value. They stand in the order of kinds, null first.
const (
	tupleNull = iota
	tupleInt
	tupleFloat
	tupleString
	tupleBool
	tupleBytes
	tupleTimestamp
)

// AppendTuple appends the bytes of a row. Two rows compare with bytes.Compare
// as column after column with value.Compare, and equal rows have equal bytes.
// It panics on an invalid value, which no relation holds.
//
// Source: docs/formats/journal.md, "Tuple".
func AppendTuple(dst []byte, row []value.Value) []byte {
	for _, v := range row {
		switch v.Kind() {
		case value.Int:
			dst = appendTupleInt(append(dst, tupleInt), v.Int())
		case value.Float:
			bits := math.Float64bits(v.Float())
			if bits&signBit != 0 {
				bits = ^bits
			} else {
				bits |= signBit
			}
			dst = binary.BigEndian.AppendUint64(append(dst, tupleFloat), bits)
		case value.String:
			dst = appendTupleString(append(dst, tupleString), v.Str())
		case value.Bool:
			if v.Bool() {
				dst = append(dst, tupleBool, 1)
			} else {
				dst = append(dst, tupleBool, 0)
			}
		case value.Bytes:
			dst = appendTupleString(append(dst, tupleBytes), v.Str())
		case value.Timestamp:
			dst = appendTupleInt(append(dst, tupleTimestamp), v.Int())
		case value.Null:
			dst = append(dst, tupleNull)
		default:
			panic("journal: invalid value in a tuple")
		}
	}
	return dst
}

func appendTupleInt(dst []byte, i int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(i)^signBit)
}

func appendTupleString(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = append(dst, s[i])
		if s[i] == tupleEnd {
			dst = append(dst, tupleEscape)
		}
	}
	return append(dst, tupleEnd, tupleEnd)
}

// ParseTuple appends the values of a tuple to dst. The values alias nothing in
// b. It accepts exactly what AppendTuple makes; any other error wraps ErrTuple.
//
// Source: docs/formats/journal.md, "Tuple".
func ParseTuple(dst []value.Value, b []byte) ([]value.Value, error) {
	for column := 1; len(b) > 0; column++ {
		v, n, err := parseTupleValue(b)
		if err != nil {
			return dst, fmt.Errorf("%w: column %d: %w", ErrTuple, column, err)
		}
		dst = append(dst, v)
		b = b[n:]
	}
	return dst, nil
}

func parseTupleValue(b []byte) (value.Value, int, error) {
	kind, b := b[0], b[1:]
	switch kind {
	case tupleNull:
		return value.OfNull(), 1, nil
	case tupleInt, tupleFloat, tupleTimestamp:
		if len(b) < 8 {
			return value.Value{}, 0, errors.New("number cut short")
		}
		v, err := parseTupleNumber(kind, binary.BigEndian.Uint64(b))
		return v, 9, err
	case tupleString, tupleBytes:
		s, n, err := parseTupleString(b)
		if err != nil {
			return value.Value{}, 0, err
		}
		if kind == tupleBytes {
			return value.OfBytes(s), 1 + n, nil
		}
		if !utf8.ValidString(s) {
			return value.Value{}, 0, errors.New("string is not UTF-8")
		}
		return value.OfString(s), 1 + n, nil
	case tupleBool:
		if len(b) == 0 || b[0] > 1 {
			return value.Value{}, 0, errors.New("bool that is neither 0 nor 1")
		}
		return value.OfBool(b[0] == 1), 2, nil
	default:
		return value.Value{}, 0, fmt.Errorf("unknown kind %d", kind)
	}
}

func parseTupleNumber(kind byte, bits uint64) (value.Value, error) {
	switch kind {
	case tupleInt:
		return value.OfInt(int64(bits ^ signBit)), nil
	case tupleTimestamp:
		return value.OfTimestamp(int64(bits ^ signBit)), nil
	}
	if bits&signBit != 0 {
		bits ^= signBit
	} else {
		bits = ^bits
	}
	v, ok := value.OfFloat(math.Float64frombits(bits))
	if !ok || math.Float64bits(v.Float()) != bits {
		return value.Value{}, errors.New("float that no relation holds")
	}
	return v, nil
}

func parseTupleString(b []byte) (string, int, error) {
	// Most strings hold no zero byte: they end at the first one.
	end := bytes.IndexByte(b, tupleEnd)
	if end < 0 || end+1 >= len(b) {
		return "", 0, errors.New("string without its end")
	}
	text, n := b[:end], end
	if b[end+1] == tupleEscape {
		text = bytes.Clone(text)
		for n+1 < len(b) && !(b[n] == tupleEnd && b[n+1] == tupleEnd) {
			if b[n] == tupleEnd {
				if b[n+1] != tupleEscape {
					return "", 0, fmt.Errorf("zero byte followed by %#02x", b[n+1])
				}
				text = append(text, tupleEnd)
				n += 2
				continue
			}
			text = append(text, b[n])
			n++
		}
	}
	if n+1 >= len(b) || b[n+1] != tupleEnd {
		return "", 0, errors.New("string without its end")
	}
	return string(text), n + 2, nil
}
