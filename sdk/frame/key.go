package frame

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrKey is wrapped by every error of ParseKey and SplitKey. On the wire such a
// key is not found.
var ErrKey = errors.New("invalid key")

const lowerHex = "0123456789abcdef"

// AppendKeyInt appends the key segment of v: canonical decimal.
func AppendKeyInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

// AppendKeyFloat appends the key segment of v: the shortest decimal that reads
// back as v, in the form of ECMAScript's Number::toString. v must be finite;
// -0 is spelt as 0.
func AppendKeyFloat(dst []byte, v float64) []byte { return appendFloat(dst, v) }

// AppendKeyBool appends the key segment of v: "true" or "false".
func AppendKeyBool(dst []byte, v bool) []byte { return strconv.AppendBool(dst, v) }

// AppendKeyString appends the key segment of v: ASCII letters, digits, '_' and
// '-' as they are, every other byte as ~hh with lower-case hex digits, and the
// empty string as "~". The caller vouches that v is valid UTF-8: ParseKey
// refuses what other bytes become.
func AppendKeyString(dst []byte, v string) []byte {
	if v == "" {
		return append(dst, '~')
	}
	for i := range len(v) {
		if c := v[i]; plainKeyByte(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '~', lowerHex[c>>4], lowerHex[c&15])
		}
	}
	return dst
}

func plainKeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '-'
}

// AppendKeyBytes appends the key segment of the bytes of v: base64url of RFC 4648
// without padding, and "~" for none.
func AppendKeyBytes(dst []byte, v string) []byte {
	if v == "" {
		return append(dst, '~')
	}
	return appendBase64(dst, v, keyAlphabet, false)
}

// AppendKeyTimestamp appends the key segment of a timestamp: its milliseconds since
// 1970, spelt like an int.
func AppendKeyTimestamp(dst []byte, ms int64) []byte { return AppendKeyInt(dst, ms) }

// AppendKey appends the segment of v, which must be an int64, int, float64, string,
// bool, Bytes or Timestamp; other kinds and floats that are not finite are errors
// wrapping ErrKey.
func AppendKey(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case int64:
		return AppendKeyInt(dst, v), nil
	case int:
		return AppendKeyInt(dst, int64(v)), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return dst, fmt.Errorf("%w: float %v is not finite", ErrKey, v)
		}
		return AppendKeyFloat(dst, v), nil
	case string:
		if !utf8.ValidString(v) {
			return dst, fmt.Errorf("%w: string is not UTF-8", ErrKey)
		}
		return AppendKeyString(dst, v), nil
	case bool:
		return AppendKeyBool(dst, v), nil
	case Bytes:
		return AppendKeyBytes(dst, string(v)), nil
	case Timestamp:
		return AppendKeyTimestamp(dst, int64(v)), nil
	}
	return dst, fmt.Errorf("%w: values of type %T are no keys", ErrKey, v)
}

// JoinKey returns the key of one value for each parameter, segments joined by
// slashes. The errors are AppendKey's.
func JoinKey(values ...any) (string, error) {
	var dst []byte
	for i, v := range values {
		if i > 0 {
			dst = append(dst, '/')
		}
		var err error
		if dst, err = AppendKey(dst, v); err != nil {
			return "", err
		}
	}
	return string(dst), nil
}

// SplitKey returns the segments of a key as it stands in a path or in a track
// name behind "rows/". A key without segments or with an empty one is an error
// wrapping ErrKey.
func SplitKey(key string) ([]string, error) {
	segments := strings.Split(key, "/")
	if slices.Contains(segments, "") {
		return nil, fmt.Errorf("%w: empty segment", ErrKey)
	}
	return segments, nil
}

// ParseKey returns the value that segment spells as a parameter of type t: an
// int64, float64, string, bool, Bytes or Timestamp. Each value has one spelling; any
// other is an error wrapping ErrKey, so that two subscriptions to one key have one name.
func ParseKey(segment string, t Type) (any, error) {
	switch t {
	case Int, TimestampType:
		v, err := strconv.ParseInt(segment, 10, 64)
		if err == nil && spells(segment, AppendKeyInt(make([]byte, 0, 24), v)) {
			return intCell(v, t), nil
		}
	case Float:
		v, err := strconv.ParseFloat(segment, 64)
		finite := !math.IsInf(v, 0) && !math.IsNaN(v)
		if err == nil && finite && spells(segment, AppendKeyFloat(make([]byte, 0, 32), v)) {
			return v, nil
		}
	case String:
		if v, ok := parseKeyString(segment); ok {
			return v, nil
		}
	case Bool:
		if segment == "true" || segment == "false" {
			return segment == "true", nil
		}
	case BytesType:
		if segment == "~" {
			return Bytes(""), nil
		}
		if v, ok := parseBase64(segment, base64.RawURLEncoding); ok && v != "" {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%w: %q is not the spelling of a key of type %v", ErrKey, segment, t)
}

func spells(segment string, canonical []byte) bool { return segment == string(canonical) }

func parseKeyString(segment string) (string, bool) {
	if segment == "~" {
		return "", true
	}
	if segment == "" {
		return "", false
	}
	if strings.IndexByte(segment, '~') < 0 {
		for i := range len(segment) {
			if !plainKeyByte(segment[i]) {
				return "", false
			}
		}
		return segment, true
	}
	out := make([]byte, 0, len(segment))
	for i := 0; i < len(segment); i++ {
		c := segment[i]
		if plainKeyByte(c) {
			out = append(out, c)
			continue
		}
		if c != '~' || i+2 >= len(segment) {
			return "", false
		}
		high := strings.IndexByte(lowerHex, segment[i+1])
		low := strings.IndexByte(lowerHex, segment[i+2])
		if high < 0 || low < 0 || plainKeyByte(byte(high<<4|low)) {
			return "", false
		}
		out = append(out, byte(high<<4|low))
		i += 2
	}
	if !utf8.Valid(out) {
		return "", false
	}
	return string(out), true
}
