package rules

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/heddle-live/heddle/bench/report"
	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/value"
)

func writeSpecs() []spec {
	var out []spec
	for _, keys := range []int{1, 1000, 100_000} {
		out = append(out, spec{
			name: fmt.Sprintf("write/keys=%d", keys),
			method: "One edge inserted or deleted under r1(X, Y) <- edge(X, Y), label(X, " +
				"\"hot\"), with so many heads watched. write: at a watched hot head, one row " +
				"enters or leaves, Apply and Changes. silent: at a node that is not hot, so " +
				"that no row is emitted. reevaluate: all watched keys asked by a query each.",
			measure: func(b *bench) error { return measureWrites(b, keys) },
		})
	}
	return append(out, spec{
		name: "write/growth",
		method: "The cost of a silent write at 100,000 watched keys by that at 1 key, in turn " +
			"on two graphs, and the same of a write that emits one row, by a silent one at 1 " +
			"key.",
		measure: measureGrowth,
	})
}

// watchHeads watches so many heads, hot ones first, spread over all nodes.
func watchHeads(g *graph, keys int) ([]int, error) {
	heads := make([]int, 0, keys)
	half := g.nodes / 2
	for i := range min(keys, g.nodes) {
		head := i * half / min(keys, half) % half * 2
		if i >= half {
			head = 2*(i-half) + 1
		}
		if _, err := g.watch("hot_links", head); err != nil {
			return nil, err
		}
		if i < half {
			heads = append(heads, head)
		}
	}
	return heads, nil
}

// toggler writes a fresh edge at a node and takes it away in the write after.
type toggler struct {
	g      *graph
	random *rand.Rand
	node   func(random *rand.Rand) int
	src    int
	dst    int
	there  bool
}

func (t *toggler) prepare() {
	if t.there = !t.there; t.there {
		t.src, t.dst = t.node(t.random), t.g.nodes+t.random.IntN(t.g.nodes)
	}
	t.g.prepare("edge", !t.there, t.src, t.dst)
}

// once is one timed write.
func (t *toggler) once(s *series) error {
	t.prepare()
	began := time.Now()
	err := t.g.write()
	s.since(began)
	return err
}

func atHeads(g *graph, heads []int) *toggler {
	return &toggler{g: g, random: newRandom(3), node: func(r *rand.Rand) int {
		return heads[r.IntN(len(heads))]
	}}
}

func atColdNodes(g *graph) *toggler {
	return &toggler{g: g, random: newRandom(5), node: func(r *rand.Rand) int {
		return r.IntN(g.nodes/2)*2 + 1
	}}
}

func measureWrites(b *bench, keys int) error {
	g, err := hotGraph(b.edges())
	if err != nil {
		return err
	}
	heads, err := watchHeads(g, keys)
	if err != nil {
		return err
	}
	b.cell.Params["edges"], b.cell.Params["keys"] = b.edges(), min(keys, g.nodes)
	writes := b.pick(200_000, 2000)
	hits, silent := atHeads(g, heads), atColdNodes(g)
	var write, quiet, again series
	var allocations []float64
	err = b.runs(func() error {
		for range writes {
			if err := hits.once(&write); err != nil {
				return err
			}
		}
		if n := g.takeChanged(); n != writes {
			b.cell.Problem("%d rows changed in %d writes", n, writes)
		}
		for range writes {
			if err := silent.once(&quiet); err != nil {
				return err
			}
		}
		if n := g.takeChanged(); n != 0 {
			b.cell.Problem("%d rows changed by silent writes", n)
		}
		n, err := allocationsOf(hits, writes/10)
		if err != nil {
			return err
		}
		g.takeChanged()
		allocations = append(allocations, n)
		write.end()
		quiet.end()
		return reevaluate(b, g, heads, &again)
	})
	write.report(b.cell, "write_us")
	quiet.report(b.cell, "silent_us")
	b.cell.Measured("allocations_per_write", allocations)
	if again.end(); keys == 1000 {
		b.cell.AtMost("write_us_p50", 2)
		b.cell.AtMost("allocations_per_write", 0)
	}
	if len(again.mean) > 0 {
		b.cell.Measured("reevaluate_us_p50", again.p50)
		b.cell.Measured("reevaluate_times_write", by(again.p50, write.p50, quotient))
	}
	return err
}

// allocationsOf counts the allocations of a write after those of the writes before.
func allocationsOf(t *toggler, writes int) (float64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range writes {
		t.prepare()
		if err := t.g.write(); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return report.Round(float64(after.Mallocs-before.Mallocs)/float64(writes), 2), nil
}

// reevaluate asks for all heads, with a query compiled each time, and compares the
// rows of some with what the watched keys have.
func reevaluate(b *bench, g *graph, heads []int, s *series) error {
	if len(heads) > 1000 {
		return nil
	}
	query, err := g.ask("?r1($head, Y)")
	if err != nil {
		return err
	}
	key := make([]value.Value, 1)
	for range b.pick(5, 1) {
		rows := 0
		began := time.Now()
		for _, head := range heads {
			key[0] = value.OfInt(int64(head))
			r, err := g.Query(query, key, engine.QueryOptions{})
			if err != nil {
				return err
			}
			rows += r.Count
		}
		s.since(began)
		if rows < len(heads)*degree/2 {
			b.cell.Problem("%d heads have %d rows", len(heads), rows)
		}
	}
	s.end()
	return nil
}

// measureGrowth takes turns between a graph with one watched key and one with many.
func measureGrowth(b *bench) error {
	const blocks, keys = 100, 100_000
	var graphs [2]*graph
	var hits, silent [2]*toggler
	for i, n := range []int{1, keys} {
		g, err := hotGraph(b.edges())
		if err != nil {
			return err
		}
		heads, err := watchHeads(g, n)
		if err != nil {
			return err
		}
		graphs[i], hits[i], silent[i] = g, atHeads(g, heads), atColdNodes(g)
	}
	b.cell.Params["edges"], b.cell.Params["keys"] = b.edges(), min(keys, graphs[1].nodes)
	var quiet, write [2]series
	err := b.runs(func() error {
		for range blocks {
			for i := range graphs {
				for range b.pick(1000, 20) {
					if err := silent[i].once(&quiet[i]); err != nil {
						return err
					}
				}
				for range b.pick(1000, 20) {
					if err := hits[i].once(&write[i]); err != nil {
						return err
					}
				}
			}
		}
		for i := range graphs {
			quiet[i].end()
			write[i].end()
		}
		return nil
	})
	for i, name := range []string{"one_key", "many_keys"} {
		quiet[i].report(b.cell, name+"_silent_us")
		write[i].report(b.cell, name+"_us")
	}
	b.cell.Measured("growth", by(quiet[1].p50, quiet[0].p50, quotient))
	b.cell.Measured("growth_with_rows", by(write[1].p50, quiet[0].p50, quotient))
	b.cell.AtMost("growth", 3)
	return err
}
