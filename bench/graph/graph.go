// Package graph makes the data of the views bench: many short chains of edges,
// of which every hundredth begins at a "hot" head. It computes numbers and does
// no I/O; benches call it.
package graph

import "iter"

// Program declares the graph's relations, its one rule, and the family that
// viewers watch by the head.
const Program = `+edge(src: int, dst: int)
+label(node: int, name: string)
r1(X, Y) <- edge(X, Y), label(X, "hot")
view hot_links($head: int) := ?r1($head, Y)
`

// View is the name of the family in Program.
const View = "hot_links"

// Sizes of a chain, and how they are spread.
const (
	chainEdges   = 3
	chainNodes   = chainEdges + 1
	headSpacing  = 100 // chains from one hot head to the next
	freshSpacing = 1000
)

// Graph is a size of the data. Its zero value has nothing.
type Graph struct {
	chains int
}

// New returns the graph with at least so many edges, in whole chains of three.
func New(edges int) Graph { return Graph{chains: (edges + chainEdges - 1) / chainEdges} }

// Edges is the number of edges.
func (g Graph) Edges() int { return g.chains * chainEdges }

// HotHeads is the number of heads with the label, and so of keys that have a
// row to watch.
func (g Graph) HotHeads() int { return (g.chains + headSpacing - 1) / headSpacing }

// Head returns the node of hot head i, from 0 to HotHeads()-1.
func (g Graph) Head(i int) int { return i * headSpacing * chainNodes }

// Fresh returns the destination that write w adds: a node that no other write
// and no chain has.
func (g Graph) Fresh(w int) int { return g.chains*chainNodes + freshSpacing + w }

// WriteOf is the inverse of Fresh: it returns which write added the
// destination, and false for a node that is none of theirs.
func (g Graph) WriteOf(node int) (int, bool) {
	w := node - g.Fresh(0)
	return w, w >= 0
}

// All yields every edge once, source and destination, in an order that the seed
// decides: chains come shuffled, since no real load arrives sorted.
func (g Graph) All(seed uint64) iter.Seq2[int, int] {
	return func(yield func(src, dst int) bool) {
		for _, c := range shuffled(g.chains, seed) {
			node := int(c) * chainNodes
			for i := range chainEdges {
				if !yield(node+i, node+i+1) {
					return
				}
			}
		}
	}
}

// shuffled returns 0 to n-1 in the order that the seed decides (Fisher and
// Yates). The modulo's bias is far below what a load order could show.
func shuffled(n int, seed uint64) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	random := SplitMix64(seed)
	for i := n - 1; i > 0; i-- {
		j := random.Next() % uint64(i+1)
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// SplitMix64 is Steele, Lea and Flood's generator; its value is its state. It
// is the same on every machine and in every version of Go, which keeps runs
// comparable over years. For one goroutine.
type SplitMix64 uint64

// Next returns the next number.
func (s *SplitMix64) Next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
