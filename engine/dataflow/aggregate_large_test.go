package dataflow

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

const largeSource = `
+sale(shop: int, item: int, price: int)
all(S, count<I>, sum<P>, min<P>, max<P>, count_distinct<P>) <- sale(S, I, P)
top(S, top_k<100, P, desc>) <- sale(S, I, P)
view all_of($s: int) := ?all($s, N, P, A, B, D)
view top_of($s: int) := ?top($s, P)
view page($s: int) := ?sale($s, I, P) order by P limit 150 offset 70
`

// TestLargeGroups keeps groups of thousands of rows, whose orders have inner nodes.
func TestLargeGroups(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 1))
	n, err := New(config(t, largeSource))
	if err != nil {
		t.Fatal(err)
	}
	for goal := range 3 {
		n.Demand(goal, []value.ID{1})
	}
	var rows [][]value.ID
	commits := 300
	if recounting {
		commits = 60
	}
	for commit := range commits {
		grow := commit%(commits/2) < commits/4
		for range 1 + g.IntN(60) {
			if len(rows) > 0 && g.IntN(10) < 3 == grow {
				at := g.IntN(len(rows))
				n.Delete(0, rows[at])
				rows[at] = rows[len(rows)-1]
				rows = rows[:len(rows)-1]
				continue
			}
			row := []value.ID{1, value.ID(g.IntN(1 << 20)), value.ID(g.IntN(2000))}
			if !slices.ContainsFunc(rows, func(r []value.ID) bool { return slices.Equal(r, row) }) {
				rows = append(rows, row)
				n.Insert(0, row)
			}
		}
		if _, _, err := n.Settle(); err != nil {
			t.Fatal(err)
		}
		checkLarge(t, n, rows)
	}
}

func checkLarge(t *testing.T, n *Network, rows [][]value.ID) {
	t.Helper()
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b []value.ID) int {
		return slices.Compare([]value.ID{a[2], a[1]}, []value.ID{b[2], b[1]})
	})
	var prices []value.ID
	sum := value.ID(0)
	for _, r := range rows {
		prices = append(prices, r[2])
		sum += r[2]
	}
	prices = slices.Compact(prices)
	var all [][]value.ID
	if len(rows) > 0 {
		all = [][]value.ID{{
			1, value.ID(len(rows)), sum, prices[0], prices[len(prices)-1], value.ID(len(prices)),
		}}
	}
	var top, page [][]value.ID
	for _, p := range prices[max(0, len(prices)-100):] {
		top = append(top, []value.ID{1, p})
	}
	page = append(page, rows[min(70, len(rows)):min(220, len(rows))]...)
	for goal, want := range [][][]value.ID{all, top, page} {
		slices.SortFunc(want, slices.Compare)
		got := visibleRows(n.Result(goal))
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("goal %d of %d rows has\n%v, want\n%v", goal, len(rows), got, want)
		}
	}
}

func visibleRows(table *relation.Relation) [][]value.ID {
	var out [][]value.ID
	for id, ok := table.NextVisible(0); ok; id, ok = table.NextVisible(id + 1) {
		out = append(out, slices.Clone(table.Row(id)))
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

// TestAggregatesDoNotAllocate changes groups of a steady size.
func TestAggregatesDoNotAllocate(t *testing.T) {
	n, err := New(config(t, largeSource))
	if err != nil {
		t.Fatal(err)
	}
	for goal := range 3 {
		n.Demand(goal, []value.ID{1})
	}
	settle := func() {
		if _, _, err := n.Settle(); err != nil {
			t.Fatal(err)
		}
	}
	row := func(i int) []value.ID { return []value.ID{1, value.ID(i), value.ID(i * 7919 % 5000)} }
	var rows [][]value.ID
	for i := range 2000 {
		rows = append(rows, row(i))
		n.Insert(0, rows[i])
	}
	settle()
	at := 0
	step := func() {
		n.Delete(0, rows[at])
		settle()
		n.Insert(0, rows[at])
		settle()
		at = (at + 1) % len(rows)
	}
	for range 2000 {
		step()
	}
	if recounting {
		return // counting again allocates
	}
	if allocs := testing.AllocsPerRun(2000, step); allocs != 0 {
		t.Errorf("%v allocations for each change", allocs)
	}
}
