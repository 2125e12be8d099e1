package dataflow

import "github.com/heddle-live/heddle/engine/relation"

// component is a strongly connected set of predicates. Components are numbered so
// that one reads only lower ones, and are settled in that order.
type component struct {
	number    int
	recursive bool
	queued    bool // it stands in the network's work heap
	members   []*predicate

	// Of a recursive component:

	// clock is the last rank given. Ranks are its values in the order in which
	// rows entered.
	clock      uint64
	suspects   []place // visible rows that lost their last derivation by older rows
	candidates []place // invisible rows that gained a derivation
	dead       []place // rows that fell while this component is being settled
}

// place is a row of a predicate.
type place struct {
	predicate *predicate
	row       relation.RowID
}

// stronglyConnected numbers the components of a graph of reads (edges[v] lists
// what v reads) from the bottom up, and returns each vertex's component and the
// number of components. It is Tarjan's algorithm with the recursion unrolled:
// programs come from outside, and may chain ten thousand relations.
func stronglyConnected(edges [][]int) ([]int, int) {
	n := len(edges)
	var (
		number    = make([]int, n) // 0: not met
		low       = make([]int, n)
		onStack   = make([]bool, n)
		next      = make([]int, n) // edge to follow
		component = make([]int, n)
		stack     []int
		path      []int
		met       int
		count     int
	)
	for start := range n {
		if number[start] != 0 {
			continue
		}
		path = append(path[:0], start)
		for len(path) > 0 {
			v := path[len(path)-1]
			if number[v] == 0 {
				met++
				number[v], low[v] = met, met
				stack = append(stack, v)
				onStack[v] = true
			}
			if next[v] < len(edges[v]) {
				w := edges[v][next[v]]
				next[v]++
				if number[w] == 0 {
					path = append(path, w)
				} else if onStack[w] {
					low[v] = min(low[v], number[w])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				u := path[len(path)-1]
				low[u] = min(low[u], low[v])
			}
			if low[v] != number[v] {
				continue
			}
			for {
				w := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				onStack[w] = false
				component[w] = count
				if w == v {
					break
				}
			}
			count++
		}
	}
	return component, count
}
