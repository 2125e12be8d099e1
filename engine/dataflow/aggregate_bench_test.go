package dataflow

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// BenchmarkAggregates writes one row in each commit, into a group that is watched.
// What an aggregate costs is the difference to "nothing".
func BenchmarkAggregates(b *testing.B) {
	const rows = 1 << 18
	for _, v := range []struct{ name, source string }{
		{"nothing", "view none($s: int) := ?sale($s, 99999999, P)"},
		{"rows", "view all($s: int) := ?sale($s, I, P)"},
		{"count and sum", "total(S, count<I>, sum<P>) <- sale(S, I, P)\n" +
			"view total_of($s: int) := ?total($s, N, P)"},
		{"average of floats", "total(S, avg<F>) <- sale(S, I, P), F = to_float(P)\n" +
			"view total_of($s: int) := ?total($s, P)"},
		{"max", "most(S, max<P>) <- sale(S, I, P)\nview most_of($s: int) := ?most($s, P)"},
		{"top 10", "top(S, top_k<10, P, desc>) <- sale(S, I, P)\n" +
			"view top_of($s: int) := ?top($s, P)"},
		{"window of 10", "view top_of($s: int) := ?sale($s, I, P) order by P desc limit 10"},
	} {
		for _, group := range []int{10, 1000, rows} {
			b.Run(fmt.Sprintf("%s/group=%d", v.name, group), func(b *testing.B) {
				benchmarkAggregate(b, "+sale(shop: int, item: int, price: int)\n"+v.source+"\n",
					rows, group)
			})
		}
	}
}

func benchmarkAggregate(b *testing.B, source string, rows, group int) {
	c := config(b, source)
	c.OnResult = func(int, relation.RowID) {}
	n, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	g := rand.New(rand.NewPCG(1, 1))
	groups := rows / group
	row := func(i int) []value.ID {
		return []value.ID{value.ID(i % groups), value.ID(i), value.ID(g.IntN(1 << 12))}
	}
	facts := make([][]value.ID, rows)
	for i := range facts {
		facts[i] = row(i)
		n.Insert(analysis.RelationID(0), facts[i])
	}
	for i := range min(groups, 1000) {
		n.Demand(0, []value.ID{value.ID(i)})
	}
	settle := func() {
		if _, _, err := n.Settle(); err != nil {
			b.Fatal(err)
		}
	}
	settle()
	b.ReportAllocs()
	for b.Loop() {
		// One row of a watched group goes and another one comes.
		i := g.IntN(min(groups, 1000)) + groups*g.IntN(group)
		n.Delete(0, facts[i])
		settle()
		facts[i][2] = value.ID(g.IntN(1 << 12))
		n.Insert(0, facts[i])
		settle()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/commit")
}
