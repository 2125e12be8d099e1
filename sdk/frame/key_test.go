package frame

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

type keyVectors struct {
	Valid []struct {
		Type    string
		Value   any
		Segment string
	}
	Invalid []struct{ Type, Segment, Why string }
}

func readKeyVectors(t testing.TB) keyVectors {
	t.Helper()
	var v keyVectors
	data, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func typeOf(t testing.TB, name string) Type {
	t.Helper()
	typ, ok := TypeOf(name)
	if !ok {
		t.Fatalf("unknown type %q", name)
	}
	return typ
}

func TestKeyVectors(t *testing.T) {
	vectors := readKeyVectors(t)
	for _, v := range vectors.Valid {
		t.Run("valid/"+v.Type+"/"+v.Segment, func(t *testing.T) {
			want := v.Value
			switch v.Type {
			case "int", "timestamp":
				n, err := strconv.ParseInt(want.(string), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				want = intCell(n, typeOf(t, v.Type))
			case "bytes":
				b, ok := ParseBase64(want.(string))
				if !ok {
					t.Fatalf("%q is not base64", want)
				}
				want = b
			}
			got, err := ParseKey(v.Segment, typeOf(t, v.Type))
			if err != nil || got != want {
				t.Fatalf("ParseKey(%q) = %v, %v; want %v", v.Segment, got, err, want)
			}
			segment, err := AppendKey(nil, want)
			if err != nil || string(segment) != v.Segment {
				t.Fatalf("AppendKey(%v) = %q, %v; want %q", want, segment, err, v.Segment)
			}
		})
	}
	for _, v := range vectors.Invalid {
		t.Run("invalid/"+v.Type+"/"+v.Why, func(t *testing.T) {
			if got, err := ParseKey(v.Segment, typeOf(t, v.Type)); !errors.Is(err, ErrKey) {
				t.Fatalf("ParseKey(%q) = %v, %v; want ErrKey: %s", v.Segment, got, err, v.Why)
			}
		})
	}
}

func TestKeyRefusesValues(t *testing.T) {
	for _, v := range []any{math.NaN(), math.Inf(1), math.Inf(-1), "\xff", nil, int32(1), []any{}} {
		if got, err := AppendKey(nil, v); !errors.Is(err, ErrKey) {
			t.Errorf("AppendKey(%v) = %q, %v; want ErrKey", v, got, err)
		}
	}
	if got := string(AppendKeyFloat(nil, math.Copysign(0, -1))); got != "0" {
		t.Errorf("negative zero is spelt %q", got)
	}
}

func TestSplitAndJoinKey(t *testing.T) {
	key, err := JoinKey(int64(7), "a/b", true, 1.5, "")
	if err != nil || key != "7/a~2fb/true/1.5/~" {
		t.Fatalf("JoinKey = %q, %v", key, err)
	}
	segments, err := SplitKey(key)
	if err != nil || len(segments) != 5 || segments[4] != "~" {
		t.Fatalf("SplitKey = %q, %v", segments, err)
	}
	for _, bad := range []string{"", "/", "a/", "/a", "a//b"} {
		if got, err := SplitKey(bad); !errors.Is(err, ErrKey) {
			t.Errorf("SplitKey(%q) = %q, %v; want ErrKey", bad, got, err)
		}
	}
	if _, err := JoinKey(int64(1), nil); !errors.Is(err, ErrKey) {
		t.Errorf("JoinKey with a nil value: %v", err)
	}
}

// Each float has one spelling that reads back as itself, over all exponents.
func TestKeyFloatRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		v := math.Float64frombits(random.Uint64())
		if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 {
			continue
		}
		segment := AppendKeyFloat(nil, v)
		got, err := ParseKey(string(segment), Float)
		if err != nil || got != v {
			t.Fatalf("%v is spelt %q, which reads as %v, %v", v, segment, got, err)
		}
	}
}

func TestKeyAllocations(t *testing.T) {
	buf := make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() {
		buf = AppendKeyInt(buf[:0], math.MinInt64)
		buf = AppendKeyFloat(buf, 1e-7)
		buf = AppendKeyString(buf, "Zürich")
		buf = AppendKeyBool(buf, true)
	}); n != 0 {
		t.Errorf("appending keys allocates %v times", n)
	}
}

// FuzzParseKey checks that a segment that parses is the spelling of its value.
func FuzzParseKey(f *testing.F) {
	vectors := readKeyVectors(f)
	for _, v := range vectors.Valid {
		f.Add(v.Segment, uint8(typeOf(f, v.Type)))
	}
	for _, v := range vectors.Invalid {
		f.Add(v.Segment, uint8(typeOf(f, v.Type)))
	}
	f.Fuzz(func(t *testing.T, segment string, typ uint8) {
		v, err := ParseKey(segment, Type(typ))
		if err != nil {
			return
		}
		again, err := AppendKey(nil, v)
		if err != nil || string(again) != segment {
			t.Fatalf("%q reads as %v, which is spelt %q, %v", segment, v, again, err)
		}
		if _, err := SplitKey(segment); err != nil {
			t.Fatalf("%q is no segment: %v", segment, err)
		}
	})
}

// FuzzKeyString checks that every string has a spelling that reads back.
func FuzzKeyString(f *testing.F) {
	f.Add("a/b")
	f.Add("~")
	f.Fuzz(func(t *testing.T, s string) {
		segment, err := AppendKey(nil, s)
		if err != nil {
			return // not UTF-8
		}
		got, err := ParseKey(string(segment), String)
		if err != nil || got != s {
			t.Fatalf("%q is spelt %q, which reads as %q, %v", s, segment, got, err)
		}
	})
}
