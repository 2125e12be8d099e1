package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// watchedSources is how many keys of the recursive view are watched.
const watchedSources = 10

const (
	leftProgram = `
+edge(src: int, dst: int)
reach(X, Y) <- edge(X, Y)
reach(X, Z) <- reach(X, Y), edge(Y, Z)
view reachable($from: int) := ?reach($from, Y)
`
	rightProgram = `
+edge(src: int, dst: int)
reach(X, Y) <- edge(X, Y)
reach(X, Z) <- edge(X, Y), reach(Y, Z)
view reachable($from: int) := ?reach($from, Y)
`
)

// shape is a graph under the recursive view.
type shape struct {
	name    string
	program string
	edges   func(nodes int, r *rand.Rand) [][2]int
	source  func(i, nodes int) int
	changes int // deletions in a run
	// What is promised of deletions; 0 is nothing.
	timesFaster float64 // than deriving again, at the median
	timesSlower float64 // than deriving again, at most, over all of a run
	perRow      bool    // 20 µs, and 1 µs for each row that is met
}

func shapes() []shape {
	spread := func(i, nodes int) int { return i * nodes / watchedSources }
	out := []shape{
		{
			name: "grid", program: leftProgram, edges: gridEdges, source: spread,
			changes: 300, perRow: true,
		},
		{
			name: "chain", program: leftProgram, edges: chainEdges, source: spread,
			changes: 20, timesSlower: 2,
		},
		{
			name: "chains-of-100", program: leftProgram, edges: chainsEdges, source: spread,
			changes: 1000, timesSlower: 2,
		},
		{
			name: "tree", program: leftProgram, edges: treeEdges,
			source: func(i, _ int) int { return i }, changes: 1000, perRow: true,
		},
	}
	for _, degree := range []int{20, 5, 2} {
		out = append([]shape{{
			name: fmt.Sprintf("random-%d", degree), program: leftProgram,
			edges: randomEdges(degree), source: spread, changes: 1000,
			perRow: true, timesFaster: 100,
		}}, out...)
	}
	return append(out, shape{
		name: "random-5-right-linear", program: rightProgram, edges: randomEdges(5),
		source: spread, changes: 1000, perRow: true, timesFaster: 100,
	})
}

func recursionSpecs() []spec {
	var out []spec
	for _, s := range shapes() {
		out = append(out, spec{
			name: "recursion/" + s.name,
			method: "Random edges deleted and inserted again, one by one, under reach from 10 " +
				"watched nodes; Apply and Changes, in processor time. over: what a change " +
				"takes beyond 20 us and 1 us for each row that enters, leaves, or falls and " +
				"comes back. rederive: a query of each of the 10 nodes, after a deletion.",
			measure: func(b *bench) error { return s.measure(b) },
		})
	}
	return out
}

func randomEdges(degree int) func(nodes int, r *rand.Rand) [][2]int {
	return func(nodes int, r *rand.Rand) [][2]int {
		seen := map[[2]int]bool{}
		for len(seen) < nodes*degree {
			seen[[2]int{r.IntN(nodes), r.IntN(nodes)}] = true
		}
		return shuffled(seen, r)
	}
}

// shuffled returns the edges in an order that r alone decides.
func shuffled(seen map[[2]int]bool, r *rand.Rand) [][2]int {
	nodes := 0
	for e := range seen {
		nodes = max(nodes, e[0]+1, e[1]+1)
	}
	bySource := make([][]int, nodes)
	for e := range seen {
		bySource[e[0]] = append(bySource[e[0]], e[1])
	}
	var out [][2]int
	for src, targets := range bySource {
		slices.Sort(targets)
		for _, dst := range targets {
			out = append(out, [2]int{src, dst})
		}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// gridEdges lead right and down in a square.
func gridEdges(nodes int, _ *rand.Rand) (out [][2]int) {
	side := 1
	for (side+1)*(side+1) <= nodes {
		side++
	}
	for y := range side {
		for x := range side {
			if at := y*side + x; x+1 < side {
				out = append(out, [2]int{at, at + 1})
			}
			if at := y*side + x; y+1 < side {
				out = append(out, [2]int{at, at + side})
			}
		}
	}
	return out
}

func chainEdges(nodes int, _ *rand.Rand) (out [][2]int) {
	for i := range nodes - 1 {
		out = append(out, [2]int{i, i + 1})
	}
	return out
}

// chainsEdges are chains of a hundred nodes; ten of them begin at a watched node.
func chainsEdges(nodes int, _ *rand.Rand) (out [][2]int) {
	for i := range nodes - 1 {
		// Only where somebody watches: elsewhere nothing happens.
		if i%100 != 99 && i/100*100%(nodes/watchedSources) == 0 {
			out = append(out, [2]int{i, i + 1})
		}
	}
	return out
}

// treeEdges give each node a random older parent.
func treeEdges(nodes int, r *rand.Rand) (out [][2]int) {
	for i := 1; i < nodes; i++ {
		out = append(out, [2]int{r.IntN(i), i})
	}
	return out
}

// recursion is a shape under measurement.
type recursion struct {
	shape
	b       *bench
	g       *graph
	edges   [][2]int
	sources []int
	query   *analysis.Query
	random  *rand.Rand

	deleted, inserted, again  series // processor time
	wall                      series // of deletions
	overDeleted, overInserted series
	rowsDeleted, rowsReturned []float64
}

func (s shape) measure(b *bench) error {
	nodes := b.pick(10_000, 400)
	r := &recursion{shape: s, b: b, random: newRandom(9)}
	r.edges = s.edges(nodes, r.random)
	var err error
	if r.g, err = deploy(s.program); err != nil {
		return err
	}
	err = r.g.insert("edge", len(r.edges), func(i int, row []value.Value) {
		row[0], row[1] = value.OfInt(int64(r.edges[i][0])), value.OfInt(int64(r.edges[i][1]))
	}, 2)
	if err != nil {
		return err
	}
	if r.query, err = r.g.ask("?reach($from, Y)"); err != nil {
		return err
	}
	for i := range watchedSources {
		r.sources = append(r.sources, s.source(i, nodes))
		if _, err := r.g.watch("reachable", r.sources[i]); err != nil {
			return err
		}
	}
	b.cell.Params["nodes"], b.cell.Params["edges"] = nodes, len(r.edges)
	b.cell.Params["derived_rows"] = r.g.Stats().DerivedRows
	if err := b.runs(r.run); err != nil {
		return err
	}
	r.report()
	return nil
}

// run deletes and inserts random edges.
func (r *recursion) run() error {
	changes := r.b.pick(r.changes, max(r.changes/20, 5))
	every := max(changes/10, 1)
	if r.timesSlower > 0 {
		every = 1
	}
	left, returned := 0, r.g.Stats().Returned
	for i := range changes {
		e := r.edges[r.random.IntN(len(r.edges))]
		n, err := r.change(e, true, &r.deleted, &r.overDeleted)
		if err != nil {
			return err
		}
		left += n
		if i%every == 0 {
			if err := r.rederive(); err != nil {
				return err
			}
		}
		back, err := r.change(e, false, &r.inserted, &r.overInserted)
		if err != nil {
			return err
		}
		if back != n {
			r.b.cell.Problem("edge %v: %d rows left, %d came back", e, n, back)
		}
	}
	r.rowsDeleted = append(r.rowsDeleted, float64(left)/float64(changes))
	returned = r.g.Stats().Returned - returned
	r.rowsReturned = append(r.rowsReturned, float64(returned)/float64(changes))
	for _, s := range []*series{
		&r.deleted, &r.inserted, &r.overDeleted, &r.overInserted, &r.again, &r.wall,
	} {
		s.end()
	}
	return r.verify()
}

// change deletes or inserts an edge and returns how many rows that changed.
func (r *recursion) change(e [2]int, deletes bool, took, over *series) (int, error) {
	r.g.prepare("edge", deletes, e[0], e[1])
	returned := r.g.Stats().Returned
	began, wall := threadTime(), time.Now()
	err := r.g.write()
	d := threadTime() - began
	if deletes {
		r.wall.since(wall)
	}
	took.samples = append(took.samples, d)
	rows := r.g.takeChanged()
	met := rows + int(r.g.Stats().Returned-returned)
	over.samples = append(over.samples, d-time.Duration(20+met)*time.Microsecond)
	return rows, err
}

// rederive asks for all watched sources. One row of each is returned: to sort them
// all is no part of deriving.
func (r *recursion) rederive() error {
	began := threadTime()
	_, err := r.ask(1)
	r.again.samples = append(r.again.samples, threadTime()-began)
	return err
}

// ask returns how many rows queries of all sources return.
func (r *recursion) ask(most int) (rows int, err error) {
	key := make([]value.Value, 1)
	for _, source := range r.sources {
		key[0] = value.OfInt(int64(source))
		answer, err := r.g.Query(r.query, key, engine.QueryOptions{MaxRows: most})
		if err != nil {
			return 0, err
		}
		rows += answer.Count
	}
	return rows, nil
}

// verify holds that the watched keys have the rows that queries find.
func (r *recursion) verify() error {
	watched := r.g.Stats().Views[0].Rows
	rows, err := r.ask(0)
	if rows != watched {
		r.b.cell.Problem("queries find %d rows, and %d are watched", rows, watched)
	}
	return err
}

func (r *recursion) report() {
	c := r.b.cell
	r.deleted.report(c, "delete_us")
	r.wall.report(c, "delete_wall_us")
	r.inserted.report(c, "insert_us")
	r.again.report(c, "rederive_us")
	c.Measured("delete_us_mean", r.deleted.mean)
	c.Measured("rederive_us_mean", r.again.mean)
	c.Measured("delete_rows_mean", r.rowsDeleted)
	c.Measured("delete_returned_mean", r.rowsReturned)
	r.overDeleted.report(c, "delete_over_us")
	r.overInserted.report(c, "insert_over_us")
	if r.perRow {
		c.AtMost("delete_over_us_p50", 0)
		c.AtMost("delete_over_us_p99", 0)
	}
	c.Measured("rederive_times_delete", by(r.again.p50, r.deleted.p50, quotient))
	c.Measured("delete_times_rederive", by(r.deleted.mean, r.again.mean, quotient))
	if r.timesFaster > 0 {
		c.AtLeast("rederive_times_delete", r.timesFaster)
	}
	if r.timesSlower > 0 {
		c.AtMost("delete_times_rederive", r.timesSlower)
	}
}
