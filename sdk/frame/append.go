package frame

import (
	"math"
	"strconv"
)

// Header is what every frame begins with.
type Header struct {
	Revision uint64 // the rows are exact at this commit; below 2^53
	Epoch    string // UUIDv7 of this opening of the graph's log, plain ASCII
	Schema   uint64 // number of the program in force
}

// Stale says that rows are the last good ones and why.
type Stale struct {
	Code    string // a Stale... constant
	Message string // for people
	Rule    string // the rule that failed; empty if none did
	Row     []any  // the row it failed on; nil if none
}

// Codes of Stale.
const (
	StaleError      = "error"      // a rule failed on a row, which could make rows wrong
	StaleIncomplete = "incomplete" // the same, but rows can only be missing: the others go on
	StaleBehind     = "behind"     // more than a second behind the published revision
)

// Closed is the reason in a subscription's last frame.
type Closed struct {
	Code    string // a Closed... constant
	Message string // for people
}

// Codes of Closed. Each has its stream code in package protocol; relays erase
// stream codes, so the last frame carries the name.
const (
	ClosedViewDropped  = "view_dropped"
	ClosedViewChanged  = "view_changed"
	ClosedTokenExpired = "token_expired"
	ClosedBusy         = "busy"
	ClosedShutdown     = "shutdown"
	ClosedInternal     = "internal"
	ClosedTooExpensive = "too_expensive"
	ClosedTooLarge     = "too_large"
)

// A frame is appended member by member, in this order:
//
//	dst = AppendFrameStart(dst, h)
//	dst = AppendSnapshotStart(dst); rows; dst = AppendRowsEnd(dst)
//	dst = AppendLast(dst)
//	dst = AppendBase(dst, previous)
//	dst = AppendInsertStart(dst);  rows; dst = AppendRowsEnd(dst)
//	dst = AppendRetractStart(dst); rows; dst = AppendRowsEnd(dst)
//	dst = AppendStale(dst, s)
//	dst = AppendClosed(dst, c)
//	dst = AppendFrameEnd(dst)
//
// where a row is AppendRowStart, one cell after another, AppendRowEnd. Commas
// are set by looking at the byte before, so nothing else is kept between calls,
// nothing is allocated but the growth of dst, and dst may hold other bytes in
// front of the frame.

// AppendFrameStart opens a frame.
func AppendFrameStart(dst []byte, h Header) []byte {
	dst = append(dst, `{"revision":`...)
	dst = strconv.AppendUint(dst, h.Revision, 10)
	dst = append(dst, `,"epoch":"`...)
	dst = append(dst, h.Epoch...)
	dst = append(dst, `","schema":`...)
	return strconv.AppendUint(dst, h.Schema, 10)
}

// AppendFrameEnd closes a frame.
func AppendFrameEnd(dst []byte) []byte { return append(dst, '}') }

// AppendSnapshotStart opens the array of a snapshot's rows, or of one part of them.
func AppendSnapshotStart(dst []byte) []byte { return append(appendComma(dst), `"snapshot":[`...) }

// AppendInsertStart opens the array of rows that entered since the base.
func AppendInsertStart(dst []byte) []byte { return append(appendComma(dst), `"insert":[`...) }

// AppendRetractStart opens the array of rows that left since the base.
func AppendRetractStart(dst []byte) []byte { return append(appendComma(dst), `"retract":[`...) }

// AppendRowsEnd closes the array that one of the three functions above opened.
func AppendRowsEnd(dst []byte) []byte { return append(dst, ']') }

// AppendLast marks the last part of a snapshot; a snapshot in one frame has it too.
func AppendLast(dst []byte) []byte { return append(dst, `,"last":true`...) }

// AppendBase names the revision of the publication before this one. It promises
// that insert and retract, if present, are the whole difference.
func AppendBase(dst []byte, revision uint64) []byte {
	return strconv.AppendUint(append(dst, `,"base":`...), revision, 10)
}

// AppendRowStart opens a row, with the comma in front of it if it needs one.
func AppendRowStart(dst []byte) []byte { return append(appendComma(dst), '[') }

// AppendRowEnd closes a row.
func AppendRowEnd(dst []byte) []byte { return append(dst, ']') }

// AppendInt appends a cell of an int column: a number within ±(2^53-1), a
// decimal string outside, so that JavaScript reads every int exactly.
func AppendInt(dst []byte, v int64) []byte {
	dst = appendComma(dst)
	if v <= maxExact && v >= -maxExact {
		return strconv.AppendInt(dst, v, 10)
	}
	dst = append(dst, '"')
	dst = strconv.AppendInt(dst, v, 10)
	return append(dst, '"')
}

// AppendFloat appends a cell of a float column in the form of ECMAScript's
// Number::toString. v must be finite, since JSON spells no other number; -0 is
// written as 0.
func AppendFloat(dst []byte, v float64) []byte { return appendFloat(appendComma(dst), v) }

// AppendString appends a cell of a string column, escaped as JSON.stringify
// does it. The caller vouches that v is valid UTF-8.
func AppendString(dst []byte, v string) []byte { return appendQuoted(appendComma(dst), v) }

// AppendBool appends a cell of a bool column.
func AppendBool(dst []byte, v bool) []byte { return strconv.AppendBool(appendComma(dst), v) }

// AppendBytes appends a cell of a bytes column: the bytes of v in base64 of RFC 4648
// with padding.
func AppendBytes(dst []byte, v string) []byte {
	dst = append(appendComma(dst), '"')
	return append(appendBase64(dst, v, cellAlphabet, true), '"')
}

// AppendTimestamp appends a cell of a timestamp column: its milliseconds since 1970,
// spelt like an int.
func AppendTimestamp(dst []byte, ms int64) []byte { return AppendInt(dst, ms) }

// AppendNull appends a cell without a value, which only a nullable column has.
func AppendNull(dst []byte) []byte { return append(appendComma(dst), "null"...) }

// AppendCell appends v, an int64, float64, string, bool, Bytes, Timestamp or nil, as a
// cell. Any other type is a fault of the caller and panics.
func AppendCell(dst []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return AppendInt(dst, v)
	case float64:
		return AppendFloat(dst, v)
	case string:
		return AppendString(dst, v)
	case bool:
		return AppendBool(dst, v)
	case Bytes:
		return AppendBytes(dst, string(v))
	case Timestamp:
		return AppendTimestamp(dst, int64(v))
	case nil:
		return AppendNull(dst)
	}
	panic("frame: cell of a type that no column has")
}

// AppendRow appends row with its brackets and the comma in front if needed.
// The cells are AppendCell's.
func AppendRow(dst []byte, row []any) []byte {
	dst = AppendRowStart(dst)
	for _, c := range row {
		dst = AppendCell(dst, c)
	}
	return AppendRowEnd(dst)
}

// AppendPartsStart opens the named parts of a view; AppendUnitsEnd closes them.
func AppendPartsStart(dst []byte) []byte { return append(appendComma(dst), `"parts":{`...) }

// AppendKeysStart opens the keys of a set; AppendUnitsEnd closes them.
func AppendKeysStart(dst []byte) []byte { return append(appendComma(dst), `"keys":{`...) }

// AppendUnitStart opens the members of one part or key: snapshot, insert,
// retract, stale and closed, appended by the functions above.
func AppendUnitStart(dst []byte, name string) []byte {
	return append(appendQuoted(appendComma(dst), name), `:{`...)
}

// AppendUnitEnd closes one part or key.
func AppendUnitEnd(dst []byte) []byte { return append(dst, '}') }

// AppendUnitsEnd closes the parts or keys.
func AppendUnitsEnd(dst []byte) []byte { return append(dst, '}') }

// AppendStale marks the rows as the last good ones from this frame on. Rule and
// Row are left out when empty.
func AppendStale(dst []byte, s Stale) []byte {
	dst = append(appendComma(dst), `"stale":{"code":`...)
	dst = appendQuoted(dst, s.Code)
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, s.Message)
	if s.Rule != "" {
		dst = append(dst, `,"rule":`...)
		dst = appendQuoted(dst, s.Rule)
	}
	if s.Row != nil {
		dst = append(dst, `,"row":[`...)
		for _, c := range s.Row {
			dst = AppendCell(dst, c)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// AppendClosed marks the frame as the last one of its track and says why.
func AppendClosed(dst []byte, c Closed) []byte {
	dst = append(appendComma(dst), `"closed":{"code":`...)
	dst = appendQuoted(dst, c.Code)
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, c.Message)
	return append(dst, '}')
}

// appendComma sets a comma unless dst just opened an array or object. A string
// cannot mislead it, because that ends in a quotation mark.
func appendComma(dst []byte) []byte {
	if n := len(dst); n == 0 || dst[n-1] == '[' || dst[n-1] == '{' {
		return dst
	}
	return append(dst, ',')
}

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}

// appendFloat appends v as ECMAScript's Number::toString spells it: plain
// decimals from 1e-6 up to 1e21, otherwise an exponent with a sign and without
// leading zeros.
func appendFloat(dst []byte, v float64) []byte {
	if v == 0 {
		return append(dst, '0')
	}
	if a := math.Abs(v); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, v, 'e', -1, 64)
	// Go writes at least two digits of exponent (1e-07), ECMAScript none too many.
	if n := len(dst); n-from >= 4 && dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
