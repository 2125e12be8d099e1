package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// otherMemoryBytes is how much other memory a server touches between two commits
// of a graph, about: it leaves the caches cold.
const otherMemoryBytes = 3 << 20

// BenchmarkApplyKeysCold is BenchmarkApplyKeys with the caches cold before each
// commit, as in a server that encodes, stores and sends between two of them. It
// includes the rows of the changed key, which a server publishes.
func BenchmarkApplyKeysCold(b *testing.B) {
	const edges = 1_000_000
	e := loadedEngine(b, hotProgram(), edges)
	nodes := edges / edgesPerNode
	other := make([]byte, otherMemoryBytes)
	watched := 0
	for _, keys := range []int{1, 1000} {
		b.Run(fmt.Sprintf("edges=1e6/keys=%d", keys), func(b *testing.B) {
			for ; watched < keys; watched++ {
				watch(b, e, "hot", watched*2*nodes/2000)
			}
			op := []analysis.Op{ins("edge", 0, 0)}
			var rows []value.Value
			yield := func(k *Key, _ uint64, _ []Change) { rows = e.Rows(k, 0, rows[:0]) }
			var spent, applying time.Duration
			i := 0
			for b.Loop() {
				for at := 0; at < len(other); at += 64 {
					other[at]++
				}
				k, round := i*377%keys, i/keys
				op[0].Row[0] = value.OfInt(int64(k * 2 * nodes / 2000))
				op[0].Row[1] = value.OfInt(int64(nodes + round/2%1000))
				op[0].Delete = round%2 == 1
				began := time.Now()
				if _, _, err := e.Apply(uint64(i), op); err != nil {
					b.Fatal(err)
				}
				applying += time.Since(began)
				e.Changes(yield)
				spent += time.Since(began)
				i++
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "engine-ns/op")
			b.ReportMetric(float64(applying.Nanoseconds())/float64(b.N), "apply-ns/op")
		})
	}
}
