package rules

import (
	"fmt"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// churnProgram uses what keeps values: recursion, negation, computed strings,
// aggregates with and without an order, windows.
const churnProgram = `
+edge(src: string, dst: string)
+note(who: string, weight: int)
reach(X, Y) <- edge(X, Y)
reach(X, Z) <- reach(X, Y), edge(Y, Z)
named(X, T) <- edge(X, Y), T = concat("from ", X, " to ", Y)
bare(X) <- edge(X, _), !note(X, _)
total(X, count<W>, sum<W>, max<W>) <- note(X, W)
top(X, top_k<3, W, desc>) <- note(X, W)
view reachable($from: string) := ?reach($from, Y)
view page($node: string) := names: ?named($node, T) order by T desc limit 3,
    bare: ?bare($node), total: ?total($node, N, S, M), top: ?top($node, W)
`

func churnSpecs() []spec {
	return []spec{{
		name: "churn/memory",
		method: "Each commit inserts an edge between strings and two notes that are new, and " +
			"deletes the oldest; every tenth watches two new keys and lets the oldest two go. " +
			"growth: the greatest memory in the second half of the commits by that in the first " +
			"and the 1 MiB that the dictionary lets lie before it tidies up; by the engine's own " +
			"count, and of the heap after a collection. The dictionary's entries without that.",
		measure: measureChurn,
	}}
}

// churner keeps a window of facts and of keys, all of ever new values.
type churner struct {
	g      *graph
	window int
	facts  [][]analysis.Op // of the last commits
	keys   []*engine.Key
	commit series
}

// churnedKeys are watched at a time.
const churnedKeys = 20

func node(i int) value.Value { return value.OfString(fmt.Sprintf("somebody-%09d", i)) }

// step is the commit with this number.
func (c *churner) step(i int) error {
	fresh := []analysis.Op{
		{Relation: "edge", Row: []value.Value{node(i), node(max(i-1-i*7%20, 0))}},
		{Relation: "note", Row: []value.Value{node(i - i%3), value.OfInt(int64(i) << 32)}},
		{Relation: "note", Row: []value.Value{node(i), value.OfInt(int64(i))}},
	}
	c.facts = append(c.facts, fresh)
	ops := fresh
	if len(c.facts) > c.window {
		for _, op := range c.facts[0] {
			op.Delete = true
			ops = append(ops, op)
		}
		c.facts = c.facts[1:]
	}
	began := time.Now()
	err := c.g.apply(ops)
	c.g.Changes(c.g.counts)
	if i%100 == 7 {
		c.commit.since(began)
	}
	if err != nil || i%10 != 0 {
		return err
	}
	for _, view := range []string{"reachable", "page"} {
		k, err := c.g.Watch(view, []value.Value{node(i)})
		if err != nil {
			return err
		}
		c.keys = append(c.keys, k)
		if len(c.keys) > churnedKeys {
			c.g.Unwatch(c.keys[0])
			c.keys = c.keys[1:]
		}
	}
	return nil
}

func measureChurn(b *bench) error {
	const (
		looks = 20      // at the memory, in each half
		slack = 1 << 20 // of the dictionary
	)
	b.kept = keeper{}
	window := b.pick(1000, 100)
	commits := b.pick(1000, 100) * window
	b.cell.Params["commits"], b.cell.Params["window"] = commits, window
	var bytes, heap, symbols []float64
	var last engine.Stats
	var commit series
	err := b.runs(func() error {
		g, err := deploy(churnProgram)
		if err != nil {
			return err
		}
		c := &churner{g: g, window: window}
		before := heapBytes()
		var most [2][3]float64
		for i := range commits {
			if err := c.step(i); err != nil {
				return err
			}
			if i%(commits/2/looks) != 0 || i < 2*window {
				continue
			}
			last = g.Stats()
			half := &most[i*2/commits]
			half[0] = max(half[0], float64(last.Bytes))
			half[1] = max(half[1], float64(heapBytes()-before))
			half[2] = max(half[2], float64(last.Symbols))
		}
		if len(c.keys) != churnedKeys || last.DerivedRows == 0 || g.takeChanged() < commits {
			b.cell.Problem("%d keys, %d derived rows: little happened",
				len(c.keys), last.DerivedRows)
		}
		bytes = append(bytes, most[1][0]/(most[0][0]+slack))
		heap = append(heap, most[1][1]/(most[0][1]+slack))
		symbols = append(symbols, most[1][2]/most[0][2])
		commit.samples = append(commit.samples, c.commit.samples...)
		commit.end()
		return nil
	})
	commit.report(b.cell, "commit_us")
	b.cell.Measured("bytes", []float64{float64(last.Bytes)})
	b.cell.Measured("derived_rows", []float64{float64(last.DerivedRows)})
	b.cell.Measured("growth_of_bytes", bytes)
	b.cell.Measured("growth_of_heap", heap)
	b.cell.Measured("growth_of_symbols", symbols)
	b.cell.AtMost("growth_of_bytes", 1)
	b.cell.AtMost("growth_of_heap", 1)
	b.cell.AtMost("growth_of_symbols", 1.1)
	return err
}
