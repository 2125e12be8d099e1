package graph

import "testing"

func TestSizes(t *testing.T) {
	tests := []struct {
		name                       string
		edges                      int
		chains, hot, all, headLast int
		firstFresh                 int
	}{
		{"10k", 10_000, 3_334, 34, 10_002, 13_200, 14_336},
		{"100k", 100_000, 33_334, 334, 100_002, 133_200, 134_336},
		{"1M", 1_000_000, 333_334, 3_334, 1_000_002, 1_333_200, 1_334_336},
		{"a thousand chains", 3_000, 1_000, 10, 3_000, 3_600, 5_000},
		{"one edge makes a chain", 1, 1, 1, 3, 0, 1_004},
		{"nothing", 0, 0, 0, 0, -400, 1_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := New(tt.edges)
			if g.chains != tt.chains || g.HotHeads() != tt.hot || g.Edges() != tt.all {
				t.Errorf("chains %d, hot %d, edges %d; want %d, %d, %d",
					g.chains, g.HotHeads(), g.Edges(), tt.chains, tt.hot, tt.all)
			}
			if got := g.Head(g.HotHeads() - 1); got != tt.headLast {
				t.Errorf("last head %d, want %d", got, tt.headLast)
			}
			if got := g.Fresh(0); got != tt.firstFresh {
				t.Errorf("first fresh node %d, want %d", got, tt.firstFresh)
			}
		})
	}
}

// The vectors of the original bench: a thousand chains, four keys.
func TestWrites(t *testing.T) {
	g := New(3_000)
	if src, dst := g.Head(5%4), g.Fresh(5); src != 400 || dst != 5_005 {
		t.Errorf("write 5 adds (%d, %d), want (400, 5005)", src, dst)
	}
	if w, ok := g.WriteOf(5_005); !ok || w != 5 {
		t.Errorf("WriteOf(5005) = %d, %v", w, ok)
	}
	if _, ok := g.WriteOf(3_999); ok {
		t.Error("WriteOf(3999) found a write for a node of a chain")
	}
}

func TestAllYieldsEachEdgeOnce(t *testing.T) {
	g := New(3_000)
	seen := map[[2]int]bool{}
	sorted, last := true, -1
	for src, dst := range g.All(42) {
		if src/chainNodes != dst/chainNodes || dst != src+1 {
			t.Fatalf("edge (%d, %d) is in no chain", src, dst)
		}
		if seen[[2]int{src, dst}] {
			t.Fatalf("edge (%d, %d) twice", src, dst)
		}
		seen[[2]int{src, dst}] = true
		sorted, last = sorted && src > last, src
	}
	if len(seen) != g.Edges() {
		t.Errorf("%d edges, want %d", len(seen), g.Edges())
	}
	if sorted {
		t.Error("the edges came in sorted order")
	}
	for range g.All(1) {
		break // an early end must not panic
	}
}

// The first numbers from seed 1234567, as published with the generator.
func TestSplitMix64(t *testing.T) {
	s := SplitMix64(1234567)
	for i, want := range []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423,
		4593380528125082431, 16408922859458223821,
	} {
		if got := s.Next(); got != want {
			t.Errorf("number %d = %d, want %d", i, got, want)
		}
	}
}
