package value

import (
	"strings"
	"time"
)

// timeLayout spells whole milliseconds, and leaves out what is zero of them.
const timeLayout = "2006-01-02T15:04:05.999Z07:00"

// The milliseconds that RFC 3339 can spell: the years 0 to 9999.
const (
	timeMin = -62_167_219_200_000
	timeMax = 253_402_300_799_999
)

// FormatTime spells milliseconds since 1970 by RFC 3339, in UTC:
// 2026-11-30T12:00:00Z, with milliseconds only where there are some. It returns
// false outside of the years 0 to 9999.
func FormatTime(ms int64) (string, bool) {
	if ms < timeMin || ms > timeMax {
		return "", false
	}
	return time.UnixMilli(ms).UTC().Format(timeLayout), true
}

// ParseTime reads a time of RFC 3339 as milliseconds since 1970. It returns false
// for another text, and for digits past the milliseconds that are not 0: no time is
// rounded unasked.
func ParseTime(s string) (int64, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Nanosecond()%1e6 != 0 || !strictTime(s) {
		return 0, false
	}
	return t.UnixMilli(), true
}

// strictTime reports whether s, which package time has accepted, is not one of the
// other spellings that it lets pass: an hour of one digit, a comma, an offset of a day
// or more.
func strictTime(s string) bool {
	if s[len("2006-01-02T15")] != ':' || strings.IndexByte(s, ',') >= 0 {
		return false
	}
	offset := s[len(s)-len("15:04"):]
	return s[len(s)-1] == 'Z' || offset[:2] < "24" && offset[3:] < "60"
}
