package dataflow

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// anyFloat returns a finite float, often one of a few exponents or an extreme.
func anyFloat(g *rand.Rand, mode int) float64 {
	for {
		x := math.Float64frombits(g.Uint64())
		switch mode {
		case 0:
			x = float64(g.IntN(2000)-1000) / 100
		case 1:
			x = math.Ldexp(x, -2000) // subnormal or 0
		case 2:
			x = math.Copysign(math.MaxFloat64, x)
		case 3:
			x = math.Ldexp(float64(g.IntN(7)-3), g.IntN(140)-70)
		}
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return x
		}
	}
}

// TestFloatSums compares sums and averages with those of rational numbers.
func TestFloatSums(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 1))
	var sums floatSums
	for round := range 400 {
		var ref uint32
		var in []float64
		exact := new(big.Rat)
		mode := g.IntN(6)
		for range 1 + g.IntN(40) {
			if len(in) > 0 && g.IntN(3) == 0 {
				at := g.IntN(len(in))
				ref = sums.add(ref, in[at], true)
				exact.Sub(exact, new(big.Rat).SetFloat64(in[at]))
				in[at] = in[len(in)-1]
				in = in[:len(in)-1]
			} else {
				x := anyFloat(g, mode)
				ref = sums.add(ref, x, false)
				exact.Add(exact, new(big.Rat).SetFloat64(x))
				in = append(in, x)
			}
			for _, divisor := range []uint64{1, 1 + g.Uint64N(9), 1<<63 + 1} {
				want, _ := new(big.Rat).Quo(exact,
					new(big.Rat).SetInt(new(big.Int).SetUint64(divisor))).Float64()
				got, ok := sums.quotient(ref, divisor)
				if ok == math.IsInf(want, 0) || ok && got != want {
					t.Fatalf("round %d: %v / %d = %v, %v, want %v", round, in, divisor, got, ok, want)
				}
			}
		}
		for _, x := range in {
			ref = sums.add(ref, x, true)
		}
		if got, ok := sums.quotient(ref, 1); got != 0 || !ok || math.Signbit(got) {
			t.Fatalf("an empty sum is %v", got)
		}
		sums.release(ref)
	}
	if n := sums.bytes(); n > 4096 {
		t.Errorf("the sums hold %d bytes after all are gone", n)
	}
}

// TestFloatSumsCarry adds the greatest floats until their carries need limbs.
func TestFloatSumsCarry(t *testing.T) {
	for _, sign := range []float64{1, -1} {
		var sums floatSums
		var ref uint32
		const n = 5000
		for range n {
			ref = sums.add(ref, sign*math.MaxFloat64, false)
		}
		if _, ok := sums.quotient(ref, 1); ok {
			t.Error("the sum of the greatest floats is a float")
		}
		if got, _ := sums.quotient(ref, n); got != sign*math.MaxFloat64 {
			t.Errorf("their average is %v", got)
		}
		for range n - 1 {
			ref = sums.add(ref, sign*math.MaxFloat64, true)
		}
		if got, ok := sums.quotient(ref, 1); got != sign*math.MaxFloat64 || !ok {
			t.Errorf("the last of them is %v", got)
		}
	}
}

// TestFloatSumsHalf takes averages that lie between two floats.
func TestFloatSumsHalf(t *testing.T) {
	tiny := math.SmallestNonzeroFloat64
	for _, c := range []struct {
		numbers []float64
		divisor uint64
		want    float64
	}{
		{[]float64{tiny}, 2, 0},
		{[]float64{tiny, tiny, tiny}, 2, 2 * tiny},
		{[]float64{tiny, tiny, tiny}, 5, tiny},
		{[]float64{-tiny}, 2, 0},
		{[]float64{1 << 53, 1}, 1, 1 << 53},
		{[]float64{1 << 53, 1, 0x1p-1000}, 1, 1<<53 + 2},
		{[]float64{1 << 53, 1, -0x1p-1000}, 1, 1 << 53},
		{[]float64{math.MaxFloat64, 0x1p969}, 1, math.MaxFloat64},
	} {
		var sums floatSums
		var ref uint32
		for _, x := range c.numbers {
			ref = sums.add(ref, x, false)
		}
		if got, ok := sums.quotient(ref, c.divisor); !ok || got != c.want {
			t.Errorf("%v / %d = %v, %v, want %v", c.numbers, c.divisor, got, ok, c.want)
		}
	}
	var sums floatSums
	if _, ok := sums.quotient(sums.add(sums.add(0, math.MaxFloat64, false), 0x1p970, false), 1); ok {
		t.Error("a sum that rounds to infinity is a float")
	}
}

// TestIntSum compares sums and averages with those of big numbers.
func TestIntSum(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		var s intSum
		exact := new(big.Int)
		for range g.IntN(6) {
			x := int64(g.Uint64()) >> g.IntN(64)
			if g.IntN(3) == 0 {
				x = math.MinInt64
			}
			take := g.IntN(2) == 0
			s.add(x, take)
			if take {
				exact.Sub(exact, big.NewInt(x))
			} else {
				exact.Add(exact, big.NewInt(x))
			}
		}
		if got, ok := s.total(); ok != exact.IsInt64() || ok && got != exact.Int64() {
			t.Fatalf("total %d, %v, want %v", got, ok, exact)
		}
		divisor := g.Uint64()>>g.IntN(64) | 1
		want, _ := new(big.Rat).SetFrac(exact, new(big.Int).SetUint64(divisor)).Float64()
		if got := s.average(divisor); got != want {
			t.Fatalf("%v / %d = %v, want %v", exact, divisor, got, want)
		}
	}
}

func TestFloatSumsDoNotAllocate(t *testing.T) {
	var sums floatSums
	ref := sums.add(0, 1.5, false)
	if n := testing.AllocsPerRun(100, func() {
		ref = sums.add(ref, 1e20, false)
		ref = sums.add(ref, 1e20, true)
		sums.quotient(ref, 3)
		sums.release(sums.add(0, 2, false))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFloatSumsGiveBackMemory makes sums that fill many chunks.
func TestFloatSumsGiveBackMemory(t *testing.T) {
	var sums floatSums
	refs := make([]uint32, 20000)
	for i := range refs {
		refs[i] = sums.add(sums.add(0, float64(i), false), 1e30, false)
	}
	for i, ref := range refs {
		if got, _ := sums.quotient(sums.add(ref, 1e30, true), 1); got != float64(i) {
			t.Fatalf("sum %d is %v", i, got)
		}
	}
	for _, ref := range refs {
		sums.release(ref)
	}
	if n := sums.bytes(); n != 0 {
		t.Errorf("the sums hold %d bytes after all are gone", n)
	}
}
