package value

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
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

func mustIntern(t testing.TB, in *Interner, v Value) ID {
	t.Helper()
	id, err := in.Intern(v)
	if err != nil {
		t.Fatalf("Intern(%v): %v", v, err)
	}
	return id
}

func float(f float64) Value {
	v, ok := OfFloat(f)
	if !ok {
		panic("not a float value")
	}
	return v
}

func TestInternerIDs(t *testing.T) {
	in := NewInterner()
	values := []struct {
		v    Value
		want ID
	}{
		{OfInt(0), 0},
		{OfInt(7), 7},
		{OfInt(math.MaxInt32), math.MaxInt32},
		{OfInt(1 << 31), 1 << 31},
		{OfInt(-1), 1<<31 + 1},
		{OfInt(math.MinInt64), 1<<31 + 2},
		{OfInt(math.MaxInt64), 1<<31 + 3},
		{float(1), 1<<31 + 4},
		{float(math.Copysign(0, -1)), 1<<31 + 5},
		{OfString(""), 1<<31 + 6},
		{OfString("a"), 1<<31 + 7},
		{OfBool(false), FalseID},
		{OfBool(true), TrueID},
		{float(0), 1<<31 + 5},
		{OfString(strings.Repeat("long", arenaMax)), 1<<31 + 8},
		{OfString("a"), 1<<31 + 7},
		{OfBytes("a"), 1<<31 + 9},
		{OfBytes(""), 1<<31 + 10},
		{OfTimestamp(7), 1<<31 + 11},
		{OfTimestamp(-7), 1<<31 + 12},
		{OfNull(), NullID},
	}
	for _, c := range values {
		if id := mustIntern(t, in, c.v); id != c.want {
			t.Errorf("Intern(kind %v, bits %x) = %#x, want %#x", c.v.kind, c.v.bits, id, c.want)
		}
	}
	for _, a := range values {
		if got := in.Value(a.want); got != a.v {
			t.Errorf("Value(%#x) = %v, want %v", a.want, got, a.v)
		}
		if id, ok := in.Lookup(a.v); !ok || id != a.want {
			t.Errorf("Lookup(%v) = %#x, %v, want %#x", a.v, id, ok, a.want)
		}
		for _, b := range values {
			if got, want := in.Compare(a.want, b.want), Compare(a.v, b.v); got != want {
				t.Errorf("Compare(%v, %v) = %d, want %d", a.v, b.v, got, want)
			}
		}
	}
	if in.Len() != 13 {
		t.Errorf("Len() = %d, want 13", in.Len())
	}
	if id, ok := in.Lookup(OfString("never")); ok {
		t.Errorf("Lookup of a new string = %#x, want none", id)
	}
}

// TestInternerTwin compares with a Go map over enough values to split segments
// many times.
func TestInternerTwin(t *testing.T) {
	random := newRandom(t)
	in := NewInterner()
	twin := map[Value]ID{}
	for range 200_000 {
		var v Value
		switch random.IntN(7) {
		case 6:
			v = OfBytes(string([]byte{byte(random.IntN(256)), byte(random.IntN(256))}))
		case 5:
			v = OfTimestamp(int64(random.IntN(50_000)))
		case 4:
			v = OfNull()
		case 0:
			v = OfInt(int64(random.Uint64()) >> random.IntN(64))
		case 1:
			v = float(float64(random.IntN(100_000)) / 8)
		case 2:
			v = OfBool(random.IntN(2) == 0)
		default:
			v = OfString(strings.Repeat("x", random.IntN(9)) + fmt.Sprint(random.IntN(100_000)))
		}
		want, known := twin[v]
		id, ok := in.Lookup(v)
		_, isInline := inline(v)
		if ok != (known || isInline) || known && id != want {
			t.Fatalf("Lookup(%v) = %#x, %v, want %#x, %v", v, id, ok, want, known)
		}
		id = mustIntern(t, in, v)
		if known && id != want {
			t.Fatalf("Intern(%v) = %#x, want %#x", v, id, want)
		}
		twin[v] = id
	}
	dictionary := 0
	for v, id := range twin {
		if got := in.Value(id); got != v {
			t.Fatalf("Value(%#x) = %v, want %v", id, got, v)
		}
		if id >= firstEntryID && id < FalseID {
			dictionary++
		}
	}
	if in.Len() != dictionary {
		t.Errorf("Len() = %d, want %d", in.Len(), dictionary)
	}
	if in.depth == 0 {
		t.Error("the table never split")
	}
}

// TestInternerCollisions drives the table with hashes that agree in all bits
// that choose a segment, which must grow the one segment and end.
func TestInternerCollisions(t *testing.T) {
	in := NewInterner()
	const n = 2 * segmentMax
	for i := range n {
		v := OfInt(int64(-1 - i))
		in.place(0xffff_ffff, in.addEntry(v))
	}
	if got := in.directory[len(in.directory)-1].used; got != n {
		t.Errorf("the last segment holds %d, want %d", got, n)
	}
	for _, i := range []int{0, n / 2, n - 1} {
		id, ok := in.find(OfInt(int64(-1-i)), 0xffff_ffff)
		if want := firstEntryID + ID(i); !ok || id != want {
			t.Errorf("find(%d) = %#x, %v, want %#x", -1-i, id, ok, want)
		}
	}
}

func TestInternerFull(t *testing.T) {
	in := NewInterner()
	in.limit = 2
	mustIntern(t, in, OfString("a"))
	mustIntern(t, in, OfString("b"))
	if _, err := in.Intern(OfString("c")); !errors.Is(err, ErrFull) {
		t.Fatalf("Intern beyond the limit: %v, want ErrFull", err)
	}
	mustIntern(t, in, OfString("b"))
	mustIntern(t, in, OfInt(7))
	if in.Len() != 2 {
		t.Errorf("Len() = %d, want 2", in.Len())
	}
}

func TestInternerAllocations(t *testing.T) {
	in := NewInterner()
	known := []Value{
		OfInt(7), OfInt(-7), float(1.5), OfString("known"), OfBool(true),
		OfBytes("known"), OfTimestamp(1), OfNull(),
	}
	for _, v := range known {
		mustIntern(t, in, v)
	}
	sum := 0
	allocs := testing.AllocsPerRun(1000, func() {
		for _, v := range known {
			id, _ := in.Intern(v)
			if _, ok := in.Lookup(v); !ok {
				panic("a known value was not found")
			}
			sum += len(in.Value(id).Str()) + in.Compare(id, firstEntryID)
		}
		if _, ok := in.Lookup(OfString("unknown")); ok {
			panic("an unknown value was found")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations for known values, want 0", allocs)
	}
}

// TestInternerBytes holds the promise of about 40 bytes for a short string and
// that a small interner is small.
func TestInternerBytes(t *testing.T) {
	in := NewInterner()
	if in.Bytes() > 1024 {
		t.Errorf("an empty interner holds %d bytes", in.Bytes())
	}
	const n = 200_000
	for i := range n {
		mustIntern(t, in, OfString(fmt.Sprintf("symbol%06d", i)))
	}
	if perString := in.Bytes() / n; perString > 56 {
		t.Errorf("%d bytes for a string of 12 bytes, want at most 56", perString)
	}
}

func BenchmarkIntern(b *testing.B) {
	const n = 1 << 17
	texts := make([]Value, n)
	for i := range texts {
		texts[i] = OfString(fmt.Sprintf("symbol%06d", i))
	}
	b.Run("int", func(b *testing.B) {
		in := NewInterner()
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			_, _ = in.Intern(OfInt(int64(i & (n - 1))))
			i++
		}
	})
	b.Run("known", func(b *testing.B) {
		in := NewInterner()
		for _, v := range texts {
			_, _ = in.Intern(v)
		}
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			_, _ = in.Intern(texts[i&(n-1)])
			i++
		}
	})
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		var in *Interner
		i := 0
		for b.Loop() {
			if i&(n-1) == 0 {
				in = NewInterner()
			}
			_, _ = in.Intern(texts[i&(n-1)])
			i++
		}
		b.ReportMetric(float64(in.Bytes())/float64(max(in.Len(), 1)), "bytes/symbol")
	})
}
