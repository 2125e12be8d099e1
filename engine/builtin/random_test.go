package builtin

import (
	"errors"
	"flag"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/heddle-live/heddle/engine/value"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 takes one from the clock")

func newRandom(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

var oddInts = []int64{
	0, 1, -1, 2, -2, 3, 60_000, 1 << 31, -1 << 31, 1 << 53, 1796040000000,
	math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1,
}

var oddFloats = []float64{
	0, 1, -1, 0.5, -1.5, 1e-300, 1e300, -1e300, math.MaxFloat64, math.SmallestNonzeroFloat64,
	1 << 63, -1 << 63, 1<<63 - 1024,
}

var oddStrings = []string{
	"", "a", "ab", "aa", "aaa", "/", "a/b//c", "grün", "İßſ🧵", "\u0301", "\x00", " \t\n\u00a0a ",
	"7", "-7", "+7", "1.5", "1e5", "1e999", "NaN", "0x10", "1_0", "00ff", "0", "zz",
	"2026-11-30T12:00:00Z", "2026-11-30T12:00:00.0001Z",
	strings.Repeat("x", 1000),
}

func randomInt(random *rand.Rand) int64 {
	if random.IntN(2) == 0 {
		return oddInts[random.IntN(len(oddInts))]
	}
	return int64(random.Uint64()) >> random.IntN(64)
}

func randomValue(random *rand.Rand, kind value.Kind) value.Value {
	switch kind {
	case value.Int:
		return value.OfInt(randomInt(random))
	case value.Timestamp:
		return value.OfTimestamp(randomInt(random))
	case value.Float:
		f := random.NormFloat64() * math.Pow(10, float64(random.IntN(40)-20))
		if random.IntN(2) == 0 {
			f = oddFloats[random.IntN(len(oddFloats))]
		}
		v, _ := value.OfFloat(f)
		return v
	case value.Bool:
		return value.OfBool(random.IntN(2) == 0)
	case value.Bytes:
		b := make([]byte, random.IntN(5))
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return value.OfBytes(string(b))
	default:
		return value.OfString(oddStrings[random.IntN(len(oddStrings))])
	}
}

// TestFunctionsKeepTheirPromises calls every function with odd values: each result is a
// value of its type, or a row error, and the same again.
func TestFunctionsKeepTheirPromises(t *testing.T) {
	random := newRandom(t)
	for _, s := range all {
		for i := range s.Functions {
			f := &s.Functions[i]
			for range 2000 {
				args := make([]value.Value, 0, 4)
				for _, k := range f.Params {
					args = append(args, randomValue(random, k))
				}
				for f.Variadic && random.IntN(2) == 0 {
					args = append(args, randomValue(random, f.Params[len(f.Params)-1]))
				}
				checkCall(t, f, args)
			}
		}
	}
}

func checkCall(t *testing.T, f *Function, args []value.Value) {
	t.Helper()
	text := callText(f.Name, args)
	got, err := f.Eval(args)
	if err != nil {
		failed, ok := errors.AsType[*Error](err)
		if !ok || failed.Message != text {
			t.Fatalf("%s fails with %v", text, err)
		}
		switch failed.Code {
		case Overflow, DivisionByZero, BadCast, NotFinite, TooLong:
		default:
			t.Fatalf("%s fails with the unknown code %s", text, failed.Code)
		}
		return
	}
	switch {
	case got.IsNull() && f.Nullable:
	case got.Kind() != f.Result:
		t.Fatalf("%s is a %v, want %v", text, got.Kind(), f.Result)
	case got.Kind() == value.String && !utf8.ValidString(got.Str()):
		t.Fatalf("%s = %q, which is not UTF-8", text, got.Str())
	case got.Kind() == value.Float:
		if v, ok := value.OfFloat(got.Float()); !ok || v != got {
			t.Fatalf("%s = %v, which is no float value", text, got)
		}
	}
	if again, err := f.Eval(args); err != nil || again != got {
		t.Fatalf("%s = %v, and again %v, %v", text, got, again, err)
	}
}

// TestIntegersAreExact compares the operators on ints with exact arithmetic.
func TestIntegersAreExact(t *testing.T) {
	random := newRandom(t)
	exact := map[string]func(z, x, y *big.Int) *big.Int{
		"+": (*big.Int).Add, "-": (*big.Int).Sub, "*": (*big.Int).Mul,
		"/": (*big.Int).Quo, "%": (*big.Int).Rem,
	}
	for name, compute := range exact {
		f, err := Resolve(name, []value.Kind{value.Int, value.Int})
		if err != nil {
			t.Fatal(err)
		}
		for range 20_000 {
			x, y := randomInt(random), randomInt(random)
			got, err := f.Eval([]value.Value{value.OfInt(x), value.OfInt(y)})
			code := ""
			if failed, ok := errors.AsType[*Error](err); ok {
				code = failed.Code
			}
			if y == 0 && strings.Contains("/%", name) {
				if code != DivisionByZero {
					t.Fatalf("%d %s %d = %v, %v", x, name, y, got, err)
				}
				continue
			}
			want := compute(new(big.Int), big.NewInt(x), big.NewInt(y))
			if want.IsInt64() != (code == "") || code != "" && code != Overflow ||
				code == "" && got != value.OfInt(want.Int64()) {
				t.Fatalf("%d %s %d = %v, %v, want %v", x, name, y, got, err, want)
			}
		}
	}
}

// TestLongResultsAreRefused builds no text over the limit.
func TestLongResultsAreRefused(t *testing.T) {
	long := value.OfString(strings.Repeat("x", LengthMax))
	b := value.OfBytes(strings.Repeat("x", LengthMax))
	for _, c := range []struct {
		name string
		args []value.Value
	}{
		{"concat", []value.Value{long, value.OfString("y")}},
		{"concat", []value.Value{b, value.OfBytes("y")}},
		{"replace", []value.Value{long, value.OfString("x"), value.OfString("xx")}},
		{"replace", []value.Value{long, value.OfString("x"), long}},
		{"hex", []value.Value{b}},
		{"upper", []value.Value{value.OfString(strings.Repeat("ŉ", LengthMax/2) + "ɫ")}},
	} {
		kinds := make([]value.Kind, len(c.args))
		for i, a := range c.args {
			kinds[i] = a.Kind()
		}
		f, err := Resolve(c.name, kinds)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Eval(c.args)
		if failed, ok := errors.AsType[*Error](err); !ok || failed.Code != TooLong {
			t.Errorf("%s of a long text has %d bytes, %v", c.name, len(got.Str()), err)
		} else if len(failed.Message) > 500 {
			t.Errorf("%s of a long text fails with a message of %d bytes", c.name, len(failed.Message))
		}
	}
}
