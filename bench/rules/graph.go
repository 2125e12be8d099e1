package rules

import (
	"fmt"
	"math/rand/v2"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

const (
	// degree is how many edges a node of the large graphs has.
	degree = 10
	// batchRows is how many facts a load inserts in one transaction.
	batchRows = 10_000
	// commitRows and graphRows are the limits that a server has by default: keeping to
	// them is part of the cost.
	commitRows = 1_000_000
	graphRows  = 20_000_000
)

// graph is an engine under measurement, and what writes to it need.
type graph struct {
	*engine.Engine
	revision uint64
	op       [1]analysis.Op // of single writes, used again
	cells    [4]value.Value
	changed  int // rows that entered or left since the last count
	counts   func(*engine.Key, uint64, []engine.Change)
	nodes    int
}

// deploy returns an engine with a program, and with no clock: that would be a part of
// every sample.
func deploy(source string) (*graph, error) { return deployOn(nil, source) }

func deployOn(clock func() int64, source string) (*graph, error) {
	file, err := parse.Program(source)
	if err != nil {
		return nil, err
	}
	program, err := analysis.Analyse(file, source)
	if err != nil {
		return nil, err
	}
	g := &graph{Engine: engine.New(clock)}
	g.SetLimits(engine.Limits{CommitRows: commitRows, GraphRows: graphRows})
	if _, err := g.Deploy(program, false); err != nil {
		return nil, err
	}
	g.counts = func(k *engine.Key, _ uint64, parts []engine.Change) {
		for i, p := range parts {
			width := max(len(k.Columns(i)), 1)
			g.changed += (len(p.Insert) + len(p.Retract)) / width
		}
	}
	return g, nil
}

// insert loads so many rows, in transactions of batchRows. The row that next returns
// is used again.
func (g *graph) insert(relation string, rows int, next func(i int, row []value.Value),
	arity int,
) error {
	ops := make([]analysis.Op, 0, min(rows, batchRows))
	cells := make([]value.Value, cap(ops)*arity)
	for i := range rows {
		row := cells[len(ops)*arity : (len(ops)+1)*arity]
		next(i, row)
		ops = append(ops, analysis.Op{Relation: relation, Row: row})
		if len(ops) == cap(ops) || i == rows-1 {
			if err := g.apply(ops); err != nil {
				return err
			}
			ops = ops[:0]
		}
	}
	return nil
}

func (g *graph) apply(ops []analysis.Op) error {
	g.revision++
	_, _, err := g.Apply(g.revision, ops)
	return err
}

// prepare makes the next single write. It is apart from write so that what a writer
// does before the engine is not measured.
func (g *graph) prepare(relation string, deletes bool, cells ...int) {
	for i, c := range cells {
		g.cells[i] = value.OfInt(int64(c))
	}
	g.op[0] = analysis.Op{Relation: relation, Row: g.cells[:len(cells)], Delete: deletes}
}

// write commits the prepared write and collects what watched keys are told.
func (g *graph) write() error {
	g.revision++
	_, _, err := g.Apply(g.revision, g.op[:])
	g.Changes(g.counts)
	return err
}

// takeChanged returns how many rows entered and left since the last call.
func (g *graph) takeChanged() int {
	n := g.changed
	g.changed = 0
	return n
}

// watch watches a view at a key of one int.
func (g *graph) watch(view string, key int) (*engine.Key, error) {
	k, err := g.Watch(view, []value.Value{value.OfInt(int64(key))})
	if err != nil {
		return nil, fmt.Errorf("watch %s at %d: %w", view, key, err)
	}
	return k, nil
}

// ask analyses a query.
func (g *graph) ask(text string) (*analysis.Query, error) {
	tree, err := parse.Query(text)
	if err != nil {
		return nil, err
	}
	return analysis.AnalyseQuery(g.Program(), tree)
}

// newRandom returns the numbers that follow from a seed.
func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// hotProgram is that of the keyed benches.
const hotProgram = `
+edge(src: int, dst: int)
+label(node: int, name: string)
r1(X, Y) <- edge(X, Y), label(X, "hot")
view hot_links($head: int) := ?r1($head, Y)
`

// hotGraph has so many edges over a tenth as many nodes, of which the even ones are
// hot.
func hotGraph(edges int) (*graph, error) { return hotGraphOn(nil, edges) }

func hotGraphOn(clock func() int64, edges int) (*graph, error) {
	g, err := deployOn(clock, hotProgram)
	if err != nil {
		return nil, err
	}
	g.nodes = edges / degree
	random := newRandom(1)
	err = g.insert("edge", edges, func(i int, row []value.Value) {
		row[0] = value.OfInt(int64(i % g.nodes))
		row[1] = value.OfInt(int64(random.IntN(g.nodes)))
	}, 2)
	if err != nil {
		return nil, err
	}
	hot := value.OfString("hot")
	return g, g.insert("label", g.nodes/2, func(i int, row []value.Value) {
		row[0], row[1] = value.OfInt(int64(2*i)), hot
	}, 2)
}

func (b *bench) hotGraph() (*graph, error) {
	edges := b.edges()
	return keep(b, fmt.Sprint("hot", edges), func() (*graph, error) { return hotGraph(edges) })
}

// edges is the size of the large graph.
func (b *bench) edges() int { return b.options.Edges }
