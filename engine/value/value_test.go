package value

import (
	"cmp"
	"math"
	"testing"
)

func TestValueText(t *testing.T) {
	for _, c := range []struct {
		v    Value
		want string
	}{
		{OfInt(-7), "-7"},
		{OfInt(math.MinInt64), "-9223372036854775808"},
		{float(1), "1.0"},
		{float(-1.5), "-1.5"},
		{float(1e21), "1.0e+21"},
		{float(1.25e-9), "1.25e-09"},
		{float(math.Copysign(0, -1)), "0.0"},
		{OfString(`a "b" \ c`), `"a \"b\" \\ c"`},
		{OfString("line\n\t\r\x00é😀"), `"line\n\t\r\u0000é😀"`},
		{OfBool(true), "true"},
		{OfBool(false), "false"},
		{OfBytes("\x00\xff a"), `x"00ff2061"`},
		{OfBytes(""), `x""`},
		{OfTimestamp(0), `t"1970-01-01T00:00:00Z"`},
		{OfTimestamp(1_796_040_000_250), `t"2026-11-30T12:00:00.25Z"`},
		{OfTimestamp(timeMin), `t"0000-01-01T00:00:00Z"`},
		{OfTimestamp(timeMax), `t"9999-12-31T23:59:59.999Z"`},
		{OfTimestamp(timeMax + 1), "253402300800000"},
		{OfTimestamp(math.MinInt64), "-9223372036854775808"},
		{OfNull(), "null"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, k := range []Kind{Int, Float, String, Bool, Bytes, Timestamp} {
		if got, ok := KindOf(k.String()); !ok || got != k {
			t.Errorf("KindOf(%q) = %v, %v", k.String(), got, ok)
		}
	}
	for _, name := range []string{"", "invalid", "null", "Int", "text"} {
		if k, ok := KindOf(name); ok {
			t.Errorf("KindOf(%q) = %v, want none", name, k)
		}
	}
}

func TestCompare(t *testing.T) {
	ordered := []Value{
		OfNull(),
		OfInt(math.MinInt64), OfInt(-1), OfInt(0), OfInt(1), OfInt(math.MaxInt64),
		float(-1.5), float(0), float(1e300),
		OfString(""), OfString("A"), OfString("a"), OfString("aa"), OfString("é"),
		OfBool(false), OfBool(true),
		OfBytes(""), OfBytes("\x00"), OfBytes("\xff"),
		OfTimestamp(math.MinInt64), OfTimestamp(-1), OfTimestamp(0), OfTimestamp(math.MaxInt64),
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := Compare(a, b); got != cmp.Compare(i, j) {
				t.Errorf("Compare(%v, %v) = %d", a, b, got)
			}
		}
	}
	if _, ok := OfFloat(math.NaN()); ok {
		t.Error("NaN became a value")
	}
	if _, ok := OfFloat(math.Inf(-1)); ok {
		t.Error("an infinity became a value")
	}
}

func TestParseTime(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01T00:00:00Z":           0,
		"1970-01-01T00:00:00.001Z":       1,
		"1970-01-01T01:00:00.5+01:00":    500,
		"1969-12-31T23:59:59.999000Z":    -1,
		"2026-11-30T12:00:00.25Z":        1_796_040_000_250,
		"9999-12-31T23:59:59.999Z":       timeMax,
		"0000-01-01T00:00:00Z":           timeMin,
		"2026-11-30T12:00:00.000000000Z": 1_796_040_000_000,
	} {
		if ms, ok := ParseTime(text); !ok || ms != want {
			t.Errorf("ParseTime(%q) = %d, %v, want %d", text, ms, ok, want)
		}
	}
	for _, text := range []string{
		"", "2026-11-30", "2026-11-30T12:00:00", "2026-11-30 12:00:00Z", "2026-13-30T12:00:00Z",
		"2026-02-30T12:00:00Z", "2026-11-30T12:00:00.0001Z", "10000-01-01T00:00:00Z",
		"2026-11-30T1:00:00Z", "2026-11-30T12:00:00,5Z", "2026-11-30T12:00:00+24:00",
	} {
		if ms, ok := ParseTime(text); ok {
			t.Errorf("ParseTime(%q) = %d, want none", text, ms)
		}
	}
}
