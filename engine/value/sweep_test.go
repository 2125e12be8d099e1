package value

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// retained is what the twin of an interner knows of a value.
type retained struct {
	id   ID
	refs int
}

// churnTwin drives an interner and keeps a plain map beside it.
type churnTwin struct {
	t      *testing.T
	random *rand.Rand
	in     *Interner
	live   map[Value]*retained // refs > 0
	order  []Value             // keys of live
}

func (c *churnTwin) value() Value {
	n := c.random.IntN(20_000)
	switch c.random.IntN(6) {
	case 0:
		return OfInt(-1 - int64(n))
	case 1:
		return float(float64(n) / 8)
	case 2:
		return OfTimestamp(int64(n))
	case 3:
		return OfBytes(strings.Repeat("b", n%7) + fmt.Sprint(n))
	default:
		return OfString(strings.Repeat("s", n%60) + fmt.Sprint(n))
	}
}

func (c *churnTwin) retain() {
	v := c.value()
	id := mustIntern(c.t, c.in, v)
	known := c.live[v]
	if known == nil {
		known = &retained{id: id}
		c.live[v] = known
		c.order = append(c.order, v)
	}
	if known.id != id {
		c.t.Fatalf("Intern(%v) = %#x, want %#x", v, id, known.id)
	}
	c.in.Retain(id)
	known.refs++
}

func (c *churnTwin) release() {
	if len(c.order) == 0 {
		return
	}
	i := c.random.IntN(len(c.order))
	v := c.order[i]
	known := c.live[v]
	c.in.Release(known.id)
	if known.refs--; known.refs == 0 {
		delete(c.live, v)
		c.order[i] = c.order[len(c.order)-1]
		c.order = c.order[:len(c.order)-1]
	}
}

func (c *churnTwin) check() {
	if c.in.Len() != len(c.live) {
		c.t.Fatalf("Len() = %d after a sweep, want %d", c.in.Len(), len(c.live))
	}
	for v, known := range c.live {
		if got := c.in.Value(known.id); got != v {
			c.t.Fatalf("Value(%#x) = %v, want %v", known.id, got, v)
		}
		if id, ok := c.in.Lookup(v); !ok || id != known.id {
			c.t.Fatalf("Lookup(%v) = %#x, %v, want %#x", v, id, ok, known.id)
		}
	}
	for range 100 {
		v := c.value()
		if _, ok := c.in.Lookup(v); ok != (c.live[v] != nil) {
			c.t.Fatalf("Lookup(%v) = %v after a sweep", v, ok)
		}
	}
}

func sweepAll(in *Interner) {
	for in.Sweep() {
	}
}

// TestSweepTwin grows and shrinks an interner in waves.
func TestSweepTwin(t *testing.T) {
	random := newRandom(t)
	c := &churnTwin{t: t, random: random, in: NewInterner(), live: map[Value]*retained{}}
	for wave := range 40 {
		growing := 0.3 + 0.4*random.Float64()
		for range random.IntN(20_000) {
			switch f := random.Float64(); {
			case f < growing*0.9:
				c.retain()
			case f < 0.9:
				c.release()
			case f < 0.99:
				mustIntern(t, c.in, c.value())
			default:
				c.in.Sweep()
			}
		}
		if wave%4 == 3 {
			for len(c.order) > 0 {
				c.release()
			}
		}
		sweepAll(c.in)
		c.check()
	}
}

// TestSweepKeepsHandedOut reads values that the interner has given up.
func TestSweepKeepsHandedOut(t *testing.T) {
	in := NewInterner()
	const n = 50_000
	var kept []Value
	for i := range n {
		id := mustIntern(t, in, OfString(fmt.Sprintf("value %d", i)))
		kept = append(kept, in.Value(id))
		if i%64 == 0 {
			in.Sweep()
		}
	}
	sweepAll(in)
	if in.Len() != 0 {
		t.Errorf("%d values are left, want none", in.Len())
	}
	for i, v := range kept {
		if want := fmt.Sprintf("value %d", i); v.Str() != want {
			t.Fatalf("a value that was handed out is %q, want %q", v.Str(), want)
		}
	}
}

// TestChurnMemory keeps a window of values alive, of which some stay for long, so that
// hardly an arena is ever dead as a whole.
func TestChurnMemory(t *testing.T) {
	random := newRandom(t)
	in := NewInterner()
	const window, rounds = 20_000, 1_000_000
	ids := make([]ID, window)
	most, early := 0, 0
	for i := range rounds {
		slot := i % window
		// One slot in ten is given up a hundred times more seldom.
		if i >= window && (slot%10 != 0 || i/window%100 == 0) {
			in.Release(ids[slot])
			ids[slot] = 0
		}
		if ids[slot] == 0 {
			text := fmt.Sprintf("%09d", i) + strings.Repeat("x", random.IntN(100))
			ids[slot] = mustIntern(t, in, OfString(text))
			in.Retain(ids[slot])
		}
		if i%10 == 0 {
			in.Sweep()
		}
		most = max(most, in.Bytes())
		if i == rounds/5 {
			early = most
		}
	}
	// 20,000 texts of 60 bytes, twice that with what is dead, a segment's slack and the
	// arena that is always allowed.
	if limit := 5 << 20; most > limit {
		t.Errorf("the interner grew to %d bytes, want at most %d", most, limit)
	}
	if most > early+early/10 {
		t.Errorf("the interner grew from %d to %d bytes under churn", early, most)
	}
	if in.made > 2*window {
		t.Errorf("%d entries were made for %d values", in.made, window)
	}
}

// TestSweepInPieces gives up many values at once: a sweep stays bounded, and sweeps
// after small commits catch up.
func TestSweepInPieces(t *testing.T) {
	in := NewInterner()
	const n = 100_000
	ids := make([]ID, n)
	for i := range ids {
		ids[i] = mustIntern(t, in, OfString(fmt.Sprint("value", i)))
	}
	in.RetainRow(ids)
	sweepAll(in)
	if in.Len() != n {
		t.Fatalf("%d values are left, want %d", in.Len(), n)
	}
	in.ReleaseRow(ids)
	sweeps := 0
	for more := true; more; sweeps++ {
		before := in.Len()
		more = in.Sweep()
		if freed := before - in.Len(); freed > sweepMin {
			t.Fatalf("one sweep freed %d entries", freed)
		}
	}
	if in.Len() != 0 || sweeps < n/sweepMin {
		t.Errorf("%d values are left after %d sweeps", in.Len(), sweeps)
	}
	// Commits that add and remove more than a sweep's minimum leave nothing behind.
	for range 10 {
		for i := range ids[:20_000] {
			ids[i] = mustIntern(t, in, OfString(fmt.Sprint("value", i)))
		}
		in.RetainRow(ids[:20_000])
		in.ReleaseRow(ids[:20_000])
		in.Sweep()
	}
	if in.Len() != 0 {
		t.Errorf("%d values are left, want none", in.Len())
	}
}

// TestRetainOfConstants has no effect, and Retain before Sweep rescues what was
// released.
func TestRetainOfConstants(t *testing.T) {
	in := NewInterner()
	a := mustIntern(t, in, OfString("a"))
	row := []ID{7, NullID, TrueID, FalseID, a, a}
	in.RetainRow(row)
	in.ReleaseRow(row)
	in.Retain(a)
	for _, id := range []ID{7, NullID, TrueID, FalseID} {
		in.Retain(id)
		in.Release(id)
		in.Release(id)
	}
	sweepAll(in)
	if got := in.Value(a); got != OfString("a") {
		t.Errorf("a retained value is %v", got)
	}
	in.Release(a)
	sweepAll(in)
	if _, ok := in.Lookup(OfString("a")); ok {
		t.Error("a released value is still there")
	}
	b := mustIntern(t, in, OfString("b"))
	if b != a {
		t.Errorf("the next value has the id %#x, want the free one %#x", b, a)
	}
}

// TestRetainSaturates keeps a value for good that was retained too often to count.
func TestRetainSaturates(t *testing.T) {
	in := NewInterner()
	id := mustIntern(t, in, OfString("often"))
	in.at(uint32(id - firstEntryID)).refs |= countMask
	in.Retain(id)
	in.Release(id)
	in.Release(id)
	sweepAll(in)
	if got := in.Value(id); got != OfString("often") {
		t.Errorf("the value is %v", got)
	}
}

func TestSweepAllocations(t *testing.T) {
	in := NewInterner()
	texts := make([]Value, 1000)
	for i := range texts {
		texts[i] = OfInt(-1 - int64(i))
	}
	i := 0
	allocs := testing.AllocsPerRun(10_000, func() {
		id, _ := in.Intern(texts[i%len(texts)])
		in.Retain(id)
		in.Release(id)
		in.Sweep()
		i++
	})
	if allocs != 0 {
		t.Errorf("%v allocations for a value that comes and goes, want 0", allocs)
	}
}

// BenchmarkChurn measures one value that comes and one that goes, with the sweep.
func BenchmarkChurn(b *testing.B) {
	const window = 1 << 16
	texts := make([]Value, 2*window)
	for i := range texts {
		texts[i] = OfString(fmt.Sprintf("symbol%06d", i))
	}
	in := NewInterner()
	ids := make([]ID, window)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		in.Release(ids[i%window])
		id, _ := in.Intern(texts[i%len(texts)])
		in.Retain(id)
		ids[i%window] = id
		in.Sweep()
		i++
	}
	b.ReportMetric(float64(in.Bytes())/window, "bytes/symbol")
}

// BenchmarkRetainRow measures what a row costs that enters and leaves.
func BenchmarkRetainRow(b *testing.B) {
	const n = 1 << 16
	in := NewInterner()
	ids := make([]ID, n)
	for i := range ids {
		ids[i], _ = in.Intern(OfString(fmt.Sprintf("symbol%06d", i)))
	}
	in.RetainRow(ids)
	in.Sweep()
	b.Run("ints", func(b *testing.B) {
		row := []ID{7, 8}
		for b.Loop() {
			in.RetainRow(row)
			in.ReleaseRow(row)
		}
	})
	b.Run("strings", func(b *testing.B) {
		row := make([]ID, 2)
		i := 0
		for b.Loop() {
			row[0], row[1] = ids[i*7919%n], ids[i*104729%n]
			in.RetainRow(row)
			in.ReleaseRow(row)
			i++
		}
	})
}
