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

// The kinds of format 1. Invalid is the zero Value's kind and never stored.
const (
	Invalid Kind = iota
	Int          // int64
	Float        // float64; never NaN, infinite or -0
	String       // UTF-8
	Bool
)

var kindNames = [...]string{
	Invalid: "invalid", Int: "int", Float: "float", String: "string", Bool: "bool",
}

// String returns the spelling used in programs: "int", "float", "string", "bool".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// KindOf returns the kind that a program spells name, and false if there is none.
func KindOf(name string) (Kind, bool) {
	for k, n := range kindNames {
		if n == name && Kind(k) != Invalid {
			return Kind(k), true
		}
	}
	return Invalid, false
}

// Value is one immutable datum. Values are comparable with ==, which is the
// equality that joins use: an int never equals a float. The zero Value is
// invalid.
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

// Kind returns the value's kind.
func (v Value) Kind() Kind { return v.kind }

// Int returns the int64 of an Int value; for another kind the result has no meaning.
func (v Value) Int() int64 { return int64(v.bits) }

// Float returns the float64 of a Float value; for another kind the result has no meaning.
func (v Value) Float() float64 { return math.Float64frombits(v.bits) }

// Str returns the text of a String value, "" for every other kind.
func (v Value) Str() string { return v.str }

// Bool returns the truth value of a Bool value; for another kind the result has no meaning.
func (v Value) Bool() bool { return v.bits != 0 }

// String returns the value as a program spells it: 7, 1.5, 2.0, "text",
// true. The rule language reads it back as the same value.
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

// Compare orders values: by kind first (int, float, string, bool), then ints
// and floats by magnitude, strings by bytes, false before true. It is the order
// of rows in snapshots and of the comparisons in rules, which only ever see one
// kind on both sides.
func Compare(a, b Value) int {
	if c := cmp.Compare(a.kind, b.kind); c != 0 {
		return c
	}
	switch a.kind {
	case Int:
		return cmp.Compare(a.Int(), b.Int())
	case Float:
		return cmp.Compare(a.Float(), b.Float())
	case String:
		return cmp.Compare(a.str, b.str)
	default:
		return cmp.Compare(a.bits, b.bits)
	}
}
