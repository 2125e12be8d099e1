package relation

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/value"
)

// degree is the mean number of rows of each key in the benchmarks' tables.
const degree = 10

// coldBytes is how much other memory is touched between two operations where a
// benchmark wants the caches cold.
const coldBytes = 3 << 20

// slowInsert is where an insertion counts as slow.
const slowInsert = 100 * time.Microsecond

// loaded returns a table of random pairs with both columns indexed, and the slow
// insertions by their number.
func loaded(rows int) (*Relation, map[int]time.Duration) {
	r, slow := New(2, 0), make(map[int]time.Duration)
	r.Index(0b01)
	r.Index(0b10)
	g := rand.New(rand.NewPCG(1, 2))
	row := make([]value.ID, 2)
	for i := range rows {
		row[0], row[1] = value.ID(g.IntN(rows/degree)), value.ID(g.IntN(rows/degree))
		start := time.Now()
		if id, made := r.Add(row); made {
			r.Show(id)
		}
		if d := time.Since(start); d > slowInsert {
			slow[i] = d
		}
	}
	return r, slow
}

// worst is the longest insertion that was slow in every fill: growth comes at the
// same row each time, the machine's interruptions do not.
func worst(fills []map[int]time.Duration) time.Duration {
	longest := time.Duration(0)
	for i, d := range fills[0] {
		for _, other := range fills[1:] {
			d = min(d, other[i])
		}
		longest = max(longest, d)
	}
	return longest
}

// BenchmarkLoad fills a table with two indexes: how long a row and the worst row
// take (run it several times: -benchtime 3x), what a row holds of memory, and the
// CPU time of a whole mark phase.
func BenchmarkLoad(b *testing.B) {
	for _, rows := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("rows=%.0e", float64(rows)), func(b *testing.B) {
			var fills []map[int]time.Duration
			var held, marked float64
			var r *Relation
			for b.Loop() {
				b.StopTimer()
				r = nil
				before := heapBytes()
				b.StartTimer()
				var slow map[int]time.Duration
				r, slow = loaded(rows)
				b.StopTimer()
				fills = append(fills, slow)
				held = float64(heapBytes() - before)
				began := markSeconds()
				runtime.GC()
				marked = markSeconds() - began
				b.StartTimer()
			}
			n := float64(r.Len())
			b.ReportMetric(float64(worst(fills).Nanoseconds()), "worst-ns")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
			b.ReportMetric(float64(r.Bytes())/n, "B/row")
			b.ReportMetric(held/n, "heap-B/row")
			b.ReportMetric(marked*1e3, "mark-ms")
		})
	}
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// markSeconds is the CPU time that the collector has spent marking.
func markSeconds() float64 {
	samples := []metrics.Sample{
		{Name: "/cpu/classes/gc/mark/assist:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/dedicated:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
	}
	metrics.Read(samples)
	seconds := 0.0
	for _, s := range samples {
		seconds += s.Value.Float64()
	}
	return seconds
}

// BenchmarkChurn inserts a row at a random key and deletes it again; cold, with
// other memory touched before each half.
func BenchmarkChurn(b *testing.B) {
	overTables(b, func(b *testing.B, r *Relation, g *rand.Rand, chill func()) {
		row := make([]value.ID, 2)
		keys, spent := r.Len()/degree, &times{}
		for b.Loop() {
			row[0], row[1] = value.ID(g.IntN(keys)), value.ID(keys+g.IntN(keys))
			chill()
			began := time.Now()
			id, _ := r.Add(row)
			r.Show(id)
			inserted := time.Since(began)
			chill()
			began = time.Now()
			r.Hide(id)
			r.Drop(id)
			spent.add(inserted + time.Since(began))
		}
		spent.report(b, "ns/pair")
	})
}

// BenchmarkReplace deletes a random old row and inserts it again.
func BenchmarkReplace(b *testing.B) {
	overTables(b, func(b *testing.B, r *Relation, g *rand.Rand, chill func()) {
		row, spent := make([]value.ID, 2), &times{}
		for b.Loop() {
			copy(row, r.Row(RowID(g.IntN(r.Made()))))
			chill()
			began := time.Now()
			id, _ := r.Find(row)
			r.Hide(id)
			r.Drop(id)
			deleted := time.Since(began)
			chill()
			began = time.Now()
			id, _ = r.Add(row)
			r.Show(id)
			spent.add(deleted + time.Since(began))
		}
		spent.report(b, "ns/pair")
	})
}

// BenchmarkLookup reads the rows of a random key.
func BenchmarkLookup(b *testing.B) {
	overTables(b, func(b *testing.B, r *Relation, g *rand.Rand, chill func()) {
		ix, key := r.Index(0b01), make([]value.ID, 1)
		keys, spent, sum := r.Len()/degree, &times{}, value.ID(0)
		for b.Loop() {
			key[0] = value.ID(g.IntN(keys))
			chill()
			began := time.Now()
			for at := ix.First(key); at != 0; at = ix.Next(at) {
				sum += r.Row(at.Row())[1]
			}
			spent.add(time.Since(began))
		}
		spent.report(b, "ns/list")
		if sum == 0 {
			b.Error("no rows")
		}
	})
}

// times collects durations in classes of 20 ns. A shared machine takes the processor
// away now and then, which the median does not see.
type times struct {
	classes [1000]int
	all     int
}

func (t *times) add(d time.Duration) {
	t.classes[min(int(d.Nanoseconds()/20), len(t.classes)-1)]++
	t.all++
}

func (t *times) report(b *testing.B, unit string) {
	for class, below := 0, 0; class < len(t.classes); class++ {
		if below += t.classes[class]; below >= t.all/2 {
			b.ReportMetric(float64(20*class), "median-"+unit)
			return
		}
	}
}

// overTables runs a benchmark over tables of two sizes, warm and cold.
func overTables(b *testing.B, run func(b *testing.B, r *Relation, g *rand.Rand, chill func())) {
	other := make([]byte, coldBytes)
	for _, rows := range []int{1_000_000, 10_000_000} {
		r, _ := loaded(rows)
		for _, cold := range []bool{false, true} {
			chill := func() {
				for at := 0; cold && at < len(other); at += 64 {
					other[at]++
				}
			}
			b.Run(fmt.Sprintf("rows=%.0e/cold=%v", float64(rows), cold), func(b *testing.B) {
				run(b, r, rand.New(rand.NewPCG(3, 4)), chill)
			})
		}
	}
}

// BenchmarkScan reads every row once.
func BenchmarkScan(b *testing.B) {
	r, _ := loaded(1_000_000)
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for id, ok := r.NextVisible(0); ok; id, ok = r.NextVisible(id + 1) {
				n++
			}
			if n != r.Len() {
				b.Fatal(n)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*r.Len()), "ns/row")
	})
	b.Run("match", func(b *testing.B) {
		for b.Loop() {
			for id, ok := r.NextMatch(0, 1, 7); ok; id, ok = r.NextMatch(id+1, 1, 7) {
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*r.Len()), "ns/row")
	})
}
