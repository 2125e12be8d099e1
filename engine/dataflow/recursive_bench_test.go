package dataflow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// BenchmarkRecursion deletes random edges under ten demanded sources of a recursive
// relation, and inserts them again. It reports of the deletions how many rows left for
// good and how many fell and came back (the suspects that another proof holds up), how
// many derivations that met, and what is over 20 us and 1 us for each of those rows.
func BenchmarkRecursion(b *testing.B) {
	const nodes = 10_000
	for _, degree := range []int{2, 5, 20} {
		b.Run(fmt.Sprintf("random-%d", degree), func(b *testing.B) {
			benchmarkRecursion(b, nodes, func(g *rand.Rand) (edges [][]value.ID) {
				for range nodes * degree {
					edges = append(edges, ids(g.IntN(nodes), g.IntN(nodes)))
				}
				return edges
			})
		})
	}
	b.Run("grid", func(b *testing.B) {
		const side = 100
		benchmarkRecursion(b, nodes, func(*rand.Rand) (edges [][]value.ID) {
			for i := range nodes {
				if i%side+1 < side {
					edges = append(edges, ids(i, i+1))
				}
				if i+side < nodes {
					edges = append(edges, ids(i, i+side))
				}
			}
			return edges
		})
	})
	b.Run("chain", func(b *testing.B) {
		benchmarkRecursion(b, nodes, func(*rand.Rand) (edges [][]value.ID) {
			for i := range nodes - 1 {
				edges = append(edges, ids(i, i+1))
			}
			return edges
		})
	})
	b.Run("tree", func(b *testing.B) {
		benchmarkRecursion(b, nodes, func(g *rand.Rand) (edges [][]value.ID) {
			for i := range nodes - 1 {
				edges = append(edges, ids(g.IntN(i+1), i+1))
			}
			return edges
		})
	})
}

func ids(numbers ...int) (row []value.ID) {
	for _, n := range numbers {
		row = append(row, value.ID(n))
	}
	return row
}

func benchmarkRecursion(b *testing.B, nodes int, draw func(g *rand.Rand) [][]value.ID) {
	c := config(b, "+edge(src: int, dst: int)\nreach(X, Y) <- edge(X, Y)\n"+
		"reach(X, Z) <- reach(X, Y), edge(Y, Z)\nview from($x: int) := ?reach($x, Y)\n")
	c.OnResult = func(int, relation.RowID) {}
	n, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	settle := func() {
		if _, _, err := n.Settle(); err != nil {
			b.Fatal(err)
		}
	}
	g := rand.New(rand.NewPCG(1, 2))
	edges := draw(g)
	for _, e := range edges {
		n.Insert(0, e)
	}
	for i := range 10 {
		n.Demand(0, ids(i*nodes/10))
	}
	settle()
	entered := func() (clock uint64) {
		for _, c := range n.components {
			clock += c.clock
		}
		return clock
	}
	var took, over []time.Duration
	var gone, back, met int
	for b.Loop() {
		e := edges[g.IntN(len(edges))]
		rows, ranks, made := n.Result(0).Len(), entered(), n.made
		began := time.Now()
		n.Delete(0, e)
		settle()
		d := time.Since(began)
		fell, returned := rows-n.Result(0).Len(), int(entered()-ranks)
		gone, back, met = gone+fell, back+returned, met+int(n.made-made)
		took = append(took, d)
		over = append(over, d-time.Duration(20+fell+returned)*time.Microsecond)
		n.Insert(0, e)
		settle()
	}
	percentile := func(d []time.Duration, p int) float64 {
		slices.Sort(d)
		return float64(d[(len(d)-1)*p/100].Nanoseconds()) / 1e3
	}
	each := func(sum int) float64 { return float64(sum) / float64(len(took)) }
	b.ReportMetric(percentile(took, 50), "p50-us")
	b.ReportMetric(percentile(took, 99), "p99-us")
	b.ReportMetric(percentile(over, 99), "over-p99-us")
	b.ReportMetric(each(gone), "gone/op")
	b.ReportMetric(each(back), "back/op")
	b.ReportMetric(each(met), "derivations/op")
}
