package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/journal/internal/golden"
)

func float(f float64) value.Value {
	v, ok := value.OfFloat(f)
	if !ok {
		panic("no float")
	}
	return v
}

var tupleValues = []value.Value{
	value.OfInt(math.MinInt64), value.OfInt(-1), value.OfInt(0), value.OfInt(1), value.OfInt(math.MaxInt64),
	float(-math.MaxFloat64), float(-1.5), float(-math.SmallestNonzeroFloat64), float(0),
	float(math.SmallestNonzeroFloat64), float(1.5), float(math.MaxFloat64),
	value.OfString(""), value.OfString("\x00"), value.OfString("\x00\x00"), value.OfString("\x00\x01"),
	value.OfString("a"), value.OfString("a\x00"), value.OfString("a\x00b"), value.OfString("a\x01"),
	value.OfString("ab"), value.OfString("ä"), value.OfString("\U0010ffff"),
	value.OfBool(false), value.OfBool(true),
	value.OfNull(),
	value.OfBytes(""), value.OfBytes("\x00"), value.OfBytes("\x00\xff"), value.OfBytes("\xff"),
	value.OfTimestamp(math.MinInt64), value.OfTimestamp(-1), value.OfTimestamp(0),
	value.OfTimestamp(1_796_040_000_000), value.OfTimestamp(math.MaxInt64),
}

// spell is the vectors' own spelling, which no other part may change.
func spell(v value.Value) string {
	switch v.Kind() {
	case value.Int:
		return fmt.Sprintf("int %d", v.Int())
	case value.Float:
		return fmt.Sprintf("float %g", v.Float())
	case value.String:
		return fmt.Sprintf("string %q", v.Str())
	case value.Bytes:
		return fmt.Sprintf("bytes %x", v.Str())
	case value.Timestamp:
		return fmt.Sprintf("timestamp %d", v.Int())
	case value.Null:
		return "null"
	default:
		return fmt.Sprintf("bool %t", v.Bool())
	}
}

func TestTupleVectors(t *testing.T) {
	var fields strings.Builder
	var all []byte
	for _, v := range tupleValues {
		b := AppendTuple(nil, []value.Value{v})
		fmt.Fprintf(&fields, "%s: %x\n", spell(v), b)
		all = append(all, b...)
	}
	golden.Check(t, "tuple", golden.Vector{
		Comment: "a tuple of every kind, then each value by itself", Bytes: all, Fields: fields.String(),
	})
	row, err := ParseTuple(nil, all)
	if err != nil || !slices.Equal(row, tupleValues) {
		t.Errorf("parsed %v, %v", row, err)
	}
}

// TestTupleOrder: bytes compare as rows do.
func TestTupleOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	row := func() []value.Value {
		r := make([]value.Value, 1+rng.IntN(3))
		for i := range r {
			r[i] = tupleValues[rng.IntN(len(tupleValues))]
			if r[i].Kind() == value.Int && rng.IntN(2) == 0 {
				r[i] = value.OfInt(int64(rng.Uint64()))
			}
			if r[i].Kind() == value.Float && rng.IntN(2) == 0 {
				r[i] = float(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(40)-20)))
			}
		}
		return r
	}
	for range 20_000 {
		a, b := row(), row()
		want := slices.CompareFunc(a, b, value.Compare)
		if got := bytes.Compare(AppendTuple(nil, a), AppendTuple(nil, b)); got != want {
			t.Fatalf("%v and %v compare as %d, their bytes as %d", a, b, want, got)
		}
	}
}

func TestTupleErrors(t *testing.T) {
	for _, test := range []struct{ name, bytes, want string }{
		{"unknown kind", "\x07", "column 1: unknown kind 7"},
		{"short timestamp", "\x06\x80", "number cut short"},
		{"open bytes", "\x05abc", "string without its end"},
		{"short int", "\x01\x80\x00", "number cut short"},
		{"NaN", "\x02\xff\xf8\x00\x00\x00\x00\x00\x00", "float that no relation holds"},
		{"infinity", "\x02\xff\xf0\x00\x00\x00\x00\x00\x00", "float that no relation holds"},
		{"negative zero", "\x02\x7f\xff\xff\xff\xff\xff\xff\xff", "float that no relation holds"},
		{"bool 2", "\x04\x02", "neither 0 nor 1"},
		{"no bool", "\x04", "neither 0 nor 1"},
		{"second column", "\x04\x01\x03a\x00", "column 2: string without its end"},
		{"open string", "\x03abc", "string without its end"},
		{"escape at the end", "\x03a\x00\xff", "string without its end"},
		{"escape, then open", "\x03a\x00\xffb", "string without its end"},
		{"wrong escape", "\x03a\x00\x01", "string without its end"},
		{"wrong second escape", "\x03a\x00\xff\x00\x01\x00\x00", "zero byte followed by 0x01"},
		{"not UTF-8", "\x03\xff\x00\x00", "not UTF-8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseTuple(nil, []byte(test.bytes))
			if !errors.Is(err, ErrTuple) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestTupleAllocations(t *testing.T) {
	row := []value.Value{
		value.OfInt(1), float(2.5), value.OfString("abc"), value.OfBool(true),
		value.OfNull(), value.OfTimestamp(7), value.OfBytes("abc"),
	}
	var b []byte
	if n := testing.AllocsPerRun(100, func() { b = AppendTuple(b[:0], row) }); n != 0 {
		t.Errorf("AppendTuple: %v allocations", n)
	}
	b = AppendTuple(nil, row[:2])
	var parsed []value.Value
	if n := testing.AllocsPerRun(100, func() { parsed, _ = ParseTuple(parsed[:0], b) }); n != 0 {
		t.Errorf("ParseTuple of numbers: %v allocations", n)
	}
}

func FuzzParseTuple(f *testing.F) {
	for _, v := range tupleValues {
		f.Add(AppendTuple(nil, []value.Value{v}))
	}
	f.Add(AppendTuple(nil, tupleValues))
	f.Fuzz(func(t *testing.T, b []byte) {
		row, err := ParseTuple(nil, b)
		if err != nil {
			if !errors.Is(err, ErrTuple) {
				t.Errorf("error %v is no ErrTuple", err)
			}
			return
		}
		if again := AppendTuple(nil, row); !bytes.Equal(again, b) {
			t.Errorf("parsed and appended: %x, from %x", again, b)
		}
	})
}

func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"", "a", "a.b", ".a", "a/b", "ä", "A_9-z"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if err := CheckName(name); err == nil && (strings.ContainsAny(name, "/ \x00") || name == "") {
			t.Errorf("%q is accepted", name)
		}
	})
}
