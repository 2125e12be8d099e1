package dataflow

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestStronglyConnected compares components with mutual reachability.
func TestStronglyConnected(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		n := 1 + g.IntN(12)
		edges := make([][]int, n)
		reach := make([][]bool, n)
		for v := range n {
			reach[v] = make([]bool, n)
			reach[v][v] = true
		}
		for range g.IntN(2 * n) {
			v, w := g.IntN(n), g.IntN(n)
			edges[v] = append(edges[v], w)
			reach[v][w] = true
		}
		for k := range n {
			for v := range n {
				for w := range n {
					reach[v][w] = reach[v][w] || reach[v][k] && reach[k][w]
				}
			}
		}
		numbers, count := stronglyConnected(edges)
		if slices.Max(numbers) != count-1 {
			t.Fatalf("%d components, numbers %v", count, numbers)
		}
		for v := range n {
			for w := range n {
				same := reach[v][w] && reach[w][v]
				if same != (numbers[v] == numbers[w]) {
					t.Fatalf("edges %v: %d and %d in %v", edges, v, w, numbers)
				}
				if reach[v][w] && numbers[w] > numbers[v] {
					t.Fatalf("edges %v: %d reads %d, numbers %v", edges, v, w, numbers)
				}
			}
		}
	}
}
