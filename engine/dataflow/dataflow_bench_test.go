package dataflow

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// bench is a network whose relation edge changes.
type bench struct {
	b       *testing.B
	network *Network
	edge    analysis.RelationID
}

// newBench makes a network of a program with the given edges and keys 0, 1 and so on
// of its only view.
func newBench(b *testing.B, source string, edges [][]value.ID, keys int) *bench {
	b.Helper()
	c := config(b, source)
	n, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	id, _ := c.Program.program.RelationNamed("edge")
	t := &bench{b, n, id}
	node, hasNodes := c.Program.program.RelationNamed("node")
	for _, e := range edges {
		n.Insert(id, e)
		if hasNodes {
			n.Insert(node, e[:1])
		}
	}
	t.settle()
	for key := range value.ID(keys) {
		n.Demand(0, []value.ID{key})
	}
	t.settle()
	return t
}

func (t *bench) settle() {
	if _, _, err := t.network.Settle(); err != nil {
		t.b.Fatal(err)
	}
}

// toggle deletes or inserts an edge.
func (t *bench) toggle(edge []value.ID, in bool) {
	if in {
		t.network.Insert(t.edge, edge)
	} else {
		t.network.Delete(t.edge, edge)
	}
	t.settle()
}

func randomEdges(nodes, edges int) [][]value.ID {
	r := rand.New(rand.NewPCG(1, 1))
	out := make([][]value.ID, edges)
	for i := range out {
		out[i] = []value.ID{value.ID(r.IntN(nodes)), value.ID(r.IntN(nodes))}
	}
	return out
}

// BenchmarkNegation inserts and deletes edges of a relation of a million under a rule
// that negates it, and without.
func BenchmarkNegation(b *testing.B) {
	for _, c := range []struct{ name, source string }{
		{"base", "view of($x: int) := ?node($x)"},
		{"negation", "view of($x: int) := ?node($x), !edge($x, _)"},
		{"derived", "out(X) <- edge(X, Y), Y != 7\nview of($x: int) := ?node($x), !out($x)"},
	} {
		b.Run(c.name, func(b *testing.B) {
			source := "+node(x: int)\n+edge(src: int, dst: int)\n" + c.source + "\n"
			t := newBench(b, source, randomEdges(1_000_000, 1_000_000), 1000)
			r := rand.New(rand.NewPCG(2, 2))
			edges := make([][]value.ID, 4096)
			for i := range edges {
				edges[i] = []value.ID{value.ID(r.IntN(2000)), 2_000_000 + value.ID(i)}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				t.toggle(edges[i/2%len(edges)], i%2 == 0)
				i++
			}
		})
	}
}

// BenchmarkReach deletes and inserts edges of a random graph of which 10 nodes are
// watched for what they reach.
func BenchmarkReach(b *testing.B) {
	const nodes = 10_000
	rules := map[string]string{
		"left":  "reach(X, Z) <- reach(X, Y), edge(Y, Z)",
		"right": "reach(X, Z) <- edge(X, Y), reach(Y, Z)",
	}
	for _, form := range []string{"left", "right"} {
		for _, degree := range []int{2, 5, 20} {
			b.Run(fmt.Sprintf("%s/degree=%d", form, degree), func(b *testing.B) {
				source := "+edge(src: int, dst: int)\nreach(X, Y) <- edge(X, Y)\n" +
					rules[form] + "\nview of($x: int) := ?reach($x, Y)\n"
				edges := randomEdges(nodes, degree*nodes)
				t := newBench(b, source, edges, 10)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					t.toggle(edges[i/2*7919%len(edges)], i%2 == 1)
					i++
				}
				b.ReportMetric(float64(t.network.DerivedRows()), "rows")
			})
		}
	}
}
