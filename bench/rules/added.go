package rules

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heddle-live/heddle/engine/value"
)

// pair is two engines with the same facts that get the same writes, in turn in small
// blocks, so that both meet the same machine. Keys are watched in one only: what its
// writes take more is what the watched rule adds.
type pair struct {
	plain, watched *graph
}

// pairBlock is how many writes go to one engine before it is the other's turn.
const pairBlock = 64

func newPair(source string, load func(g *graph) error) (*pair, error) {
	p := &pair{}
	for _, g := range []**graph{&p.plain, &p.watched} {
		var err error
		if *g, err = deploy(source); err != nil {
			return nil, err
		}
		if err := load(*g); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// added is what a pair's writes took.
type added struct {
	plain, watched, plainApply, watchedApply series
	rows                                     []float64
	writes, changed                          int
}

// writes sends writes, which next prepares from their number.
func (p *pair) writes(a *added, writes int, next func(g *graph, i int)) error {
	for begin := 0; begin < writes; begin += pairBlock {
		for side, g := range []*graph{p.plain, p.watched} {
			applied, whole := &a.plainApply, &a.plain
			if side == 1 {
				applied, whole = &a.watchedApply, &a.watched
			}
			for i := begin; i < min(begin+pairBlock, writes); i++ {
				next(g, i)
				g.revision++
				began := time.Now()
				_, _, err := g.Apply(g.revision, g.op[:])
				applied.since(began)
				if err != nil {
					return err
				}
				g.Changes(g.counts)
				whole.since(began)
			}
		}
	}
	a.writes += writes
	a.changed += p.watched.takeChanged()
	return nil
}

// end ends a run.
func (a *added) end() {
	for _, s := range []*series{&a.plain, &a.watched, &a.plainApply, &a.watchedApply} {
		s.end()
	}
	a.rows = append(a.rows, float64(a.changed)/float64(max(a.writes, 1)))
	a.changed, a.writes = 0, 0
}

// report adds what was watched costs more, of the whole write and of Apply alone.
// whole holds two readings of the clock more on either side, which cancel out.
func (a *added) report(b *bench, prefix string) {
	a.plain.report(b.cell, prefix+"base_us")
	a.watched.report(b.cell, prefix+"watched_us")
	b.cell.Measured(prefix+"added_us_p50", by(a.watched.p50, a.plain.p50, difference))
	b.cell.Measured(prefix+"added_us_p99", by(a.watched.p99, a.plain.p99, difference))
	b.cell.Measured(prefix+"added_apply_us_p50",
		by(a.watchedApply.p50, a.plainApply.p50, difference))
	b.cell.Measured(prefix+"rows_per_write", a.rows)
}

func negationSpecs() []spec {
	return []spec{{
		name: "negation/leaf",
		method: "leaf(X) <- node(X), !edge(X, _), watched at 2,000 nodes: one edge inserted or " +
			"deleted at a node without others, which becomes or ceases to be a leaf, and " +
			"(quiet) at one with ten. added: beyond the same write without watched keys, in " +
			"turn.",
		measure: measureNegation,
	}}
}

const leafProgram = `
+node(id: int)
+edge(src: int, dst: int)
leaf(X) <- node(X), !edge(X, _)
view is_leaf($node: int) := ?leaf($node)
`

// measureNegation has a thousand nodes without edges above those with ten each.
func measureNegation(b *bench) error {
	const bare = 1000
	edges := b.edges()
	nodes := edges / degree
	random := newRandom(11)
	p, err := newPair(leafProgram, func(g *graph) error {
		g.nodes = nodes
		err := g.insert("node", nodes+bare, func(i int, row []value.Value) {
			row[0] = value.OfInt(int64(i))
		}, 1)
		if err != nil {
			return err
		}
		return g.insert("edge", edges, func(i int, row []value.Value) {
			row[0] = value.OfInt(int64(i % nodes))
			row[1] = value.OfInt(int64(random.IntN(nodes)))
		}, 2)
	})
	if err != nil {
		return err
	}
	for i := range bare {
		for _, node := range []int{nodes + i, i * nodes / bare} {
			if _, err := p.watched.watch("is_leaf", node); err != nil {
				return err
			}
		}
	}
	b.cell.Params["edges"] = edges
	targets := make([][2]int, b.pick(50_000, 1000))
	var leaf, quiet added
	err = b.runs(func() error {
		for _, a := range []*added{&leaf, &quiet} {
			for i := range targets {
				n := random.IntN(bare)
				if targets[i][0] = nodes + n; a == &quiet {
					targets[i][0] = n * nodes / bare
				}
				targets[i][1] = nodes + bare + random.IntN(nodes)
			}
			err := p.writes(a, 2*len(targets), func(g *graph, i int) {
				g.prepare("edge", i%2 == 1, targets[i/2][0], targets[i/2][1])
			})
			if err != nil {
				return err
			}
			a.end()
		}
		return nil
	})
	leaf.report(b, "")
	quiet.report(b, "quiet_")
	if n := leaf.rows; len(n) > 0 && (n[0] != 1 || quiet.rows[0] != 0) {
		b.cell.Problem("%v rows per write at leaves, %v elsewhere", n, quiet.rows)
	}
	b.cell.AtMost("added_us_p50", 2)
	return err
}

// aggregates are the kinds of aggregate cells.
var aggregates = []struct {
	name, view string
	limit      float64 // µs on top of the write; 0: none
}{
	{"count-sum", "total_of", 0.2},
	{"max", "most_of", 1.5},
	{"top10", "top_of", 1.5},
	{"window10", "first_of", 1.5},
}

const saleProgram = `
+sale(shop: int, item: int, price: int)
total(S, count<I>, sum<P>) <- sale(S, I, P)
most(S, max<P>) <- sale(S, _, P)
top(S, top_k<10, P, desc>) <- sale(S, _, P)
view total_of($shop: int) := ?total($shop, N, P)
view most_of($shop: int) := ?most($shop, P)
view top_of($shop: int) := ?top($shop, P)
view first_of($shop: int) := ?sale($shop, I, P) order by P desc limit 10
`

func aggregateSpecs() []spec {
	var out []spec
	for _, group := range []int{10, 1000, 1_000_000} {
		for _, a := range aggregates {
			out = append(out, spec{
				name: fmt.Sprintf("aggregate/%s/group=%d", a.name, group),
				method: "One row of a watched group goes, another comes with another price; no " +
					"two rows have the same. added: Apply and Changes, beyond the same write " +
					"without watched keys, in turn; added_apply: Apply alone.",
				measure: func(b *bench) error {
					return measureAggregate(b, a.view, group, a.limit)
				},
			})
		}
	}
	return out
}

// sales is a pair with sales in groups of one size.
type sales struct {
	*pair
	prices []int // of each item
	groups int
	fresh  int // number of the next price
	random *rand.Rand
}

// price scatters numbers over 30 bits, each to another price. Such ints are held in
// the rows themselves.
func price(i int) int { return i * 0x9E3779B1 & (1<<30 - 1) }

func newSales(rows, group int) (*sales, error) {
	s := &sales{
		groups: rows / group, fresh: rows, prices: make([]int, rows),
		random: newRandom(13),
	}
	for i := range s.prices {
		s.prices[i] = price(i)
	}
	var err error
	s.pair, err = newPair(saleProgram, func(g *graph) error {
		return g.insert("sale", rows, func(i int, row []value.Value) {
			row[0], row[1] = value.OfInt(int64(i%s.groups)), value.OfInt(int64(i))
			row[2] = value.OfInt(int64(s.prices[i]))
		}, 3)
	})
	return s, err
}

// change is an item's new price.
type change struct{ item, before, after int }

// next makes a change at an item of a watched group.
func (s *sales) next(watched int) change {
	item := s.random.IntN(watched) + s.groups*s.random.IntN(len(s.prices)/s.groups)
	c := change{item, s.prices[item], price(s.fresh)}
	s.fresh++
	s.prices[item] = c.after
	return c
}

func measureAggregate(b *bench, view string, group int, limit float64) error {
	rows := b.pick(1_000_000, 20_000)
	if group > rows {
		group = rows
	}
	s, err := keep(b, fmt.Sprint("sales", rows, group), func() (*sales, error) {
		return newSales(rows, group)
	})
	if err != nil {
		return err
	}
	watched := min(s.groups, 1000)
	for i := range watched {
		k, err := s.watched.watch(view, i)
		if err != nil {
			return err
		}
		defer s.watched.Unwatch(k)
	}
	b.cell.Params["rows"], b.cell.Params["groups"] = rows, s.groups
	var a added
	changes := make([]change, b.pick(25_000, 500))
	err = b.runs(func() error {
		for i := range changes {
			changes[i] = s.next(watched)
		}
		err := s.writes(&a, 2*len(changes), func(g *graph, i int) {
			c, p := changes[i/2], changes[i/2].before
			if i%2 == 1 {
				p = c.after
			}
			g.prepare("sale", i%2 == 0, c.item%s.groups, c.item, p)
		})
		a.end()
		return err
	})
	a.report(b, "")
	if limit > 0 {
		b.cell.AtMost("added_us_p50", limit)
	}
	if len(a.rows) > 0 && view == "total_of" && a.rows[0] < 1 {
		b.cell.Problem("%v rows changed per write", a.rows)
	}
	return err
}
