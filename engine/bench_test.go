package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// edgesPerNode is the degree of the benchmarks' graphs.
const edgesPerNode = 10

// loadedEngine returns an engine with a random graph whose even nodes are hot.
func loadedEngine(tb testing.TB, b *builder, edges int) *Engine {
	tb.Helper()
	e := deployed(tb, b)
	g := rand.New(rand.NewPCG(1, 2))
	nodes := edges / edgesPerNode
	ops := make([]analysis.Op, 0, 10_000)
	flush := func() {
		if _, _, err := e.Apply(1, ops); err != nil {
			tb.Fatal(err)
		}
		ops = ops[:0]
	}
	for i := range edges {
		ops = append(ops, ins("edge", i%nodes, g.IntN(nodes)))
		if len(ops) == cap(ops) {
			flush()
		}
	}
	for i := 0; i < nodes; i += 2 {
		ops = append(ops, ins("label", i, "hot"))
		if len(ops) == cap(ops) {
			flush()
		}
	}
	flush()
	return e
}

// BenchmarkApplyKeys is one commit of one row that changes one watched key,
// with its changes: what a keyed view costs the engine per write.
func BenchmarkApplyKeys(b *testing.B) {
	const edges = 1_000_000
	e := loadedEngine(b, hotProgram(), edges)
	nodes := edges / edgesPerNode
	watched := 0
	for _, keys := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("edges=1e6/keys=%d", keys), func(b *testing.B) {
			for ; watched < keys; watched++ {
				watch(b, e, "hot", watched*2)
			}
			op := []analysis.Op{ins("edge", 0, 0)}
			changes := 0
			yield := func(_ *Key, _ uint64, parts []Change) {
				changes += len(parts[0].Insert) + len(parts[0].Retract)
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				// Insert a new edge at each key in turn, then delete them in turn.
				k, round := i%keys, i/keys
				op[0].Row[0] = value.OfInt(int64(k * 2))
				op[0].Row[1] = value.OfInt(int64(nodes + round/2%1000))
				op[0].Delete = round%2 == 1
				if _, _, err := e.Apply(uint64(i), op); err != nil {
					b.Fatal(err)
				}
				e.Changes(yield)
				i++
			}
			b.StopTimer()
			if changes != 2*i {
				b.Errorf("%d cells changed in %d commits", changes, i)
			}
			for k := range keys { // leave no row behind
				op[0].Row[0] = value.OfInt(int64(k * 2))
				op[0].Row[1] = value.OfInt(int64(nodes + i/keys/2%1000))
				op[0].Delete = true
				if _, _, err := e.Apply(uint64(i), op); err != nil {
					b.Fatal(err)
				}
			}
			e.Changes(yield)
		})
	}
}

// BenchmarkApplyUnwatched is one commit of one row that no watched key sees.
func BenchmarkApplyUnwatched(b *testing.B) {
	const edges = 1_000_000
	e := loadedEngine(b, hotProgram(), edges)
	for _, keys := range []int{1, 1000} {
		b.Run(fmt.Sprintf("edges=1e6/keys=%d", keys), func(b *testing.B) {
			for k := range keys {
				watch(b, e, "hot", k*2)
			}
			g := rand.New(rand.NewPCG(3, 4))
			op := []analysis.Op{ins("edge", 0, 0)}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if op[0].Delete = i%2 == 1; !op[0].Delete {
					op[0].Row[0] = value.OfInt(int64(g.IntN(edges/edgesPerNode/2)*2 + 1))
					op[0].Row[1] = value.OfInt(int64(edges + g.IntN(edges)))
				}
				if _, _, err := e.Apply(uint64(i), op); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkLargeKey is one commit that changes a key of many rows, and its rows.
func BenchmarkLargeKey(b *testing.B) {
	for _, rows := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			e := deployed(b, hotProgram())
			ops := []analysis.Op{ins("label", 1, "hot")}
			for i := range rows {
				ops = append(ops, ins("edge", 1, i*7%1_000_003))
			}
			if _, _, err := e.Apply(1, ops); err != nil {
				b.Fatal(err)
			}
			k := watch(b, e, "hot", 1)
			var flat []value.Value
			op := []analysis.Op{ins("edge", 1, 2_000_000)}
			yield := func(k *Key, _ uint64, _ []Change) { flat = e.Rows(k, 0, flat[:0]) }
			flat = e.Rows(k, 0, flat)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				op[0].Delete = i%2 == 1
				op[0].Row[1] = value.OfInt(int64(i / 2 % 900_000 * 2))
				if _, _, err := e.Apply(2, op); err != nil {
					b.Fatal(err)
				}
				e.Changes(yield)
				i++
			}
		})
	}
}

// BenchmarkWatch is Watch, Rows and Unwatch of a key of ten rows.
func BenchmarkWatch(b *testing.B) {
	for _, edges := range []int{100_000, 1_000_000} {
		e := loadedEngine(b, hotProgram(), edges)
		b.Run(fmt.Sprintf("edges=%d", edges), func(b *testing.B) {
			g := rand.New(rand.NewPCG(3, 4))
			var rows []value.Value
			b.ReportAllocs()
			for b.Loop() {
				k := watch(b, e, "hot", g.IntN(edges/edgesPerNode/2)*2)
				rows = e.Rows(k, 0, rows[:0])
				e.Unwatch(k)
			}
		})
	}
}

// BenchmarkQuery is a bound query of ten rows, compiled and answered.
func BenchmarkQuery(b *testing.B) {
	for _, edges := range []int{100_000, 1_000_000} {
		program := hotProgram()
		e := loadedEngine(b, program, edges)
		q := program.query([]string{"H"}, []string{"Y"}, a("r1", "H", "Y"))
		b.Run(fmt.Sprintf("edges=%d", edges), func(b *testing.B) {
			g := rand.New(rand.NewPCG(3, 4))
			key := vals(0)
			b.ReportAllocs()
			for b.Loop() {
				key[0] = value.OfInt(int64(g.IntN(edges/edgesPerNode/2) * 2))
				if _, err := e.Query(q, key, QueryOptions{Budget: 1 << 20}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkQueryScan is a bound query on a column without an index.
func BenchmarkQueryScan(b *testing.B) {
	const edges = 1_000_000
	program := hotProgram()
	e := loadedEngine(b, program, edges)
	q := program.query([]string{"H"}, []string{"X"}, a("edge", "X", "H"))
	b.Run("edges=1e6", func(b *testing.B) {
		g := rand.New(rand.NewPCG(3, 4))
		key := vals(0)
		b.ReportAllocs()
		for b.Loop() {
			key[0] = value.OfInt(int64(g.IntN(edges / edgesPerNode)))
			if _, err := e.Query(q, key, QueryOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLoad inserts rows in one transaction.
func BenchmarkLoad(b *testing.B) {
	const rows = 200_000
	g := rand.New(rand.NewPCG(5, 6))
	ops := make([]analysis.Op, rows)
	for i := range ops {
		ops[i] = ins("edge", g.IntN(rows/edgesPerNode), g.IntN(rows/edgesPerNode))
	}
	b.ReportAllocs()
	for b.Loop() {
		e := deployed(b, hotProgram())
		if _, _, err := e.Apply(1, ops); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}

// BenchmarkReach deletes and re-inserts random edges under a recursive view of
// ten keys.
func BenchmarkReach(b *testing.B) {
	for _, degree := range []int{1, 2, 5} {
		b.Run(fmt.Sprintf("nodes=1e4/degree=%d", degree), func(b *testing.B) {
			const nodes = 10_000
			program := (&builder{}).base("edge", "src", "dst").derived("reach", "x", "y")
			program.rule(a("reach", "X", "Y"), a("edge", "X", "Y"))
			program.rule(a("reach", "X", "Z"), a("reach", "X", "Y"), a("edge", "Y", "Z"))
			program.view("from", []string{"H"}, []string{"Y"}, a("reach", "H", "Y"))
			e := deployed(b, program)
			g := rand.New(rand.NewPCG(7, 8))
			var ops []analysis.Op
			for range nodes * degree {
				ops = append(ops, ins("edge", g.IntN(nodes), g.IntN(nodes)))
			}
			if _, _, err := e.Apply(1, ops); err != nil {
				b.Fatal(err)
			}
			for k := range 10 {
				watch(b, e, "from", k*500)
			}
			steps := e.network.Steps()
			b.ReportAllocs()
			for b.Loop() {
				op := ops[g.IntN(len(ops))]
				for _, op.Delete = range []bool{true, false} {
					if _, _, err := e.Apply(2, []analysis.Op{op}); err != nil {
						b.Fatal(err)
					}
				}
				e.Changes(func(*Key, uint64, []Change) {})
			}
			b.ReportMetric(float64(e.network.Steps()-steps)/float64(b.N), "steps/op")
		})
	}
}

func TestApplyAllocatesNothing(t *testing.T) {
	e := loadedEngine(t, hotProgram(), 2000)
	watch(t, e, "hot", 2)
	watch(t, e, "hot", 4)
	op := []analysis.Op{ins("edge", 2, 900)}
	changed := 0
	yield := func(*Key, uint64, []Change) { changed++ }
	revision := uint64(2)
	got := testing.AllocsPerRun(1000, func() {
		revision++
		op[0].Row[0] = value.OfInt(int64(2 + revision/2%3*2))
		op[0].Delete = revision%2 == 0
		if err := e.Check(op); err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.Apply(revision, op); err != nil {
			t.Fatal(err)
		}
		e.Changes(yield)
	})
	if got != 0 {
		t.Errorf("%v allocations per commit", got)
	}
	if changed == 0 {
		t.Error("no key changed")
	}
}
