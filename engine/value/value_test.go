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
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, k := range []Kind{Int, Float, String, Bool} {
		if got, ok := KindOf(k.String()); !ok || got != k {
			t.Errorf("KindOf(%q) = %v, %v", k.String(), got, ok)
		}
	}
	for _, name := range []string{"", "invalid", "Int", "text"} {
		if k, ok := KindOf(name); ok {
			t.Errorf("KindOf(%q) = %v, want none", name, k)
		}
	}
}

func TestCompare(t *testing.T) {
	ordered := []Value{
		OfInt(math.MinInt64), OfInt(-1), OfInt(0), OfInt(1), OfInt(math.MaxInt64),
		float(-1.5), float(0), float(1e300),
		OfString(""), OfString("A"), OfString("a"), OfString("aa"), OfString("é"),
		OfBool(false), OfBool(true),
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
