// Package value holds the data values of rules and facts, and interns them
// into 32-bit identifiers. It is a leaf: every part of the engine uses it, and
// the host uses it to hand rows in and out. It does no I/O and knows nothing
// of relations or rules.
package value

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Kind is the static type of a column and the dynamic type of a Value.
type Kind uint8

// The kinds. Invalid is the zero Value's kind and never stored. Null is the kind of
// the null value alone: a column has one of the others, and may hold null besides.
const (
	Invalid   Kind = iota
	Int            // int64
	Float          // float64; never NaN, infinite or -0
	String         // UTF-8
	Bool           //
	Bytes          // any bytes
	Timestamp      // milliseconds since 1970 in UTC, an int64
	Null           //
)

var kindNames = [...]string{
	Invalid: "invalid", Int: "int", Float: "float", String: "string", Bool: "bool",
	Bytes: "bytes", Timestamp: "timestamp", Null: "null",
}

// String returns the spelling used in programs: "int", "float", "string", "bool",
// "bytes", "timestamp", "null".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// KindOf returns the kind of column that a program spells name, and false if there
// is none. No column is of kind Null.
func KindOf(name string) (Kind, bool) {
	for k, n := range kindNames {
		if n == name && Kind(k) != Invalid && Kind(k) != Null {
			return Kind(k), true
		}
	}
	return Invalid, false
}

// Value is one immutable datum. Values are comparable with ==, which is the
// equality that joins use: an int never equals a float, and null equals null. The
// zero Value is invalid.
type Value struct {
	str  string
	bits uint64
	kind Kind
}

// OfInt returns an int value.
func OfInt(i int64) Value { return Value{kind: Int, bits: uint64(i)} }

// OfFloat returns a float value; -0 becomes 0. It returns false for NaN and the
// infinities, which no relation holds.
func OfFloat(f float64) (Value, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Value{}, false
	}
	if f == 0 {
		f = 0 // -0 and 0 are one value
	}
	return Value{kind: Float, bits: math.Float64bits(f)}, true
}

// OfString returns a string value. The caller vouches that s is valid UTF-8.
func OfString(s string) Value { return Value{kind: String, str: s} }

// OfBool returns a bool value.
func OfBool(b bool) Value {
	if b {
		return Value{kind: Bool, bits: 1}
	}
	return Value{kind: Bool}
}

// OfBytes returns a bytes value of the bytes of s.
func OfBytes(s string) Value { return Value{kind: Bytes, str: s} }

// OfTimestamp returns the timestamp of milliseconds since 1970 in UTC.
func OfTimestamp(ms int64) Value { return Value{kind: Timestamp, bits: uint64(ms)} }

// OfNull returns the null value.
func OfNull() Value { return Value{kind: Null} }

// Kind returns the value's kind.
func (v Value) Kind() Kind { return v.kind }

// Int returns the int64 of an Int value or the milliseconds of a Timestamp; for
// another kind the result has no meaning.
func (v Value) Int() int64 { return int64(v.bits) }

// Float returns the float64 of a Float value; for another kind the result has no meaning.
func (v Value) Float() float64 { return math.Float64frombits(v.bits) }

// Str returns the text of a String value or the bytes of a Bytes value, "" for every
// other kind.
func (v Value) Str() string { return v.str }

// Bool returns the truth value of a Bool value; for another kind the result has no meaning.
func (v Value) Bool() bool { return v.bits != 0 }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.kind == Null }

// String returns the value as a program spells it: 7, 1.5, 2.0, "text", true,
// x"00ff", t"2026-11-30T12:00:00Z", null. The rule language reads it back as the
// same value. A timestamp outside of the years 0 to 9999, which RFC 3339 cannot
// spell, is the int that stands for it where a timestamp is expected.
func (v Value) String() string {
	switch v.kind {
	case Int:
		return strconv.FormatInt(v.Int(), 10)
	case Float:
		return string(appendFloat(nil, v.Float()))
	case String:
		return string(appendQuoted(nil, v.str))
	case Bool:
		return strconv.FormatBool(v.Bool())
	case Bytes:
		return fmt.Sprintf(`x"%x"`, v.str)
	case Timestamp:
		if text, ok := FormatTime(v.Int()); ok {
			return `t"` + text + `"`
		}
		return strconv.FormatInt(v.Int(), 10)
	case Null:
		return "null"
	default:
		return fmt.Sprintf("invalid(%d)", v.kind)
	}
}

// appendFloat spells f so that it reads as a float again: always with a point.
func appendFloat(dst []byte, f float64) []byte {
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
	number := dst[start:]
	if bytes.IndexByte(number, '.') >= 0 {
		return dst
	}
	exponent := bytes.IndexByte(number, 'e')
	if exponent < 0 {
		return append(dst, ".0"...)
	}
	return slices.Insert(dst, start+exponent, '.', '0')
}

// appendQuoted spells s as a string literal of the rule language.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r < ' ' || r == 0x7f:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// Compare orders values: null first, then by kind (int, float, string, bool, bytes,
// timestamp), then ints, floats and timestamps by magnitude, strings and bytes by
// bytes, false before true. It is the order of rows in snapshots and of the
// comparisons in rules, which see one kind and null.
func Compare(a, b Value) int {
	if a.kind != b.kind {
		// Null, the last kind, wraps around to be the first.
		return cmp.Compare((a.kind+1)%(Null+1), (b.kind+1)%(Null+1))
	}
	switch a.kind {
	case Int, Timestamp:
		return cmp.Compare(a.Int(), b.Int())
	case Float:
		return cmp.Compare(a.Float(), b.Float())
	case String, Bytes:
		return cmp.Compare(a.str, b.str)
	default:
		return cmp.Compare(a.bits, b.bits)
	}
}
