package rules

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// pathsProgram makes two access paths to a relation, besides that by the whole row:
// one from either column.
const pathsProgram = `
+edge(src: int, dst: int)
view from($x: int) := ?edge($x, Y)
view to($y: int) := ?edge(X, $y)
`

const textProgram = `
+edge(src: string, dst: string)
view from($x: string) := ?edge($x, Y)
view to($y: string) := ?edge(X, $y)
`

// slowInsert is where an insertion counts as slow.
const slowInsert = 100 * time.Microsecond

func loadSpecs() []spec {
	const method = "1M facts of two columns with an index on each, from values in memory, in " +
		"transactions of 10,000."
	return []spec{
		{
			name: "load/ids", method: method + " Ints up to a tenth of the rows.",
			measure: func(b *bench) error { return measureLoad(b, 1, fillInts, pathsProgram) },
		},
		{
			name: "load/strings", method: method + " Two strings in each that no other fact has.",
			measure: func(b *bench) error { return measureLoad(b, 2.5, fillStrings, textProgram) },
		},
		{
			name: "load/repeated-strings", method: method + " Each string in ten facts a column.",
			measure: func(b *bench) error { return measureLoad(b, 0, fillNodes, textProgram) },
		},
	}
}

func fillInts(rows int) func(i int, row []value.Value) {
	random := newRandom(15)
	return func(i int, row []value.Value) {
		row[0] = value.OfInt(int64(i % (rows / degree)))
		row[1] = value.OfInt(int64(random.IntN(rows / degree)))
	}
}

func fillStrings(int) func(i int, row []value.Value) {
	return func(i int, row []value.Value) {
		row[0] = value.OfString(fmt.Sprintf("src-%08d", i))
		row[1] = value.OfString(fmt.Sprintf("dst-%08d", i))
	}
}

func fillNodes(rows int) func(i int, row []value.Value) {
	random := newRandom(15)
	name := func(i int) value.Value { return value.OfString(fmt.Sprintf("node-%07d", i)) }
	return func(i int, row []value.Value) {
		row[0], row[1] = name(i%(rows/degree)), name(random.IntN(rows/degree))
	}
}

// measureLoad loads the same facts in each run into a new engine.
func measureLoad(b *bench, limit float64, fill func(rows int) func(i int, row []value.Value),
	program string,
) error {
	b.kept = keeper{}
	rows := b.pick(1_000_000, 20_000)
	b.cell.Params["rows"] = rows
	next := fill(rows)
	cells := make([]value.Value, 2*rows)
	ops := make([]analysis.Op, rows)
	for i := range ops {
		row := cells[2*i : 2*i+2]
		next(i, row)
		ops[i] = analysis.Op{Relation: "edge", Row: row}
	}
	var seconds, held []float64
	err := b.runs(func() error {
		g, err := deploy(program)
		if err != nil {
			return err
		}
		began := time.Now()
		for at := 0; at < rows; at += batchRows {
			if err := g.apply(ops[at:min(at+batchRows, rows)]); err != nil {
				return err
			}
		}
		seconds = append(seconds, time.Since(began).Seconds())
		held = append(held, float64(g.Stats().Bytes)/float64(g.Stats().Facts))
		return nil
	})
	b.cell.Measured("load_s", seconds)
	b.cell.Measured("bytes_per_fact", held)
	if limit > 0 {
		b.cell.AtMost("load_s", limit)
	}
	return err
}

func growthSpecs() []spec {
	return []spec{
		{
			name: "facts/1M",
			method: "Facts of two ints with an index on each column, inserted by a transaction " +
				"each. bytes: by the engine's own count; heap: what the process holds more, " +
				"after a collection. worst: the longest insertion of those that were slow in " +
				"every fill, since growth comes at the same row each time and interruptions do " +
				"not; longest: the longest of all. mark: processor time of a whole mark phase, " +
				"by the runtime's metrics.",
			measure: func(b *bench) error { return measureFacts(b, b.pick(1_000_000, 20_000)) },
		},
		{
			name:   "facts/10M",
			method: "The same with 10M facts.",
			measure: func(b *bench) error {
				return measureFacts(b, b.pick(10_000_000, 50_000))
			},
		},
	}
}

// measureFacts fills an engine row by row. Large fills take too long for many runs.
func measureFacts(b *bench, facts int) error {
	b.kept = keeper{}
	var fills []map[int]time.Duration
	var insert series
	var bytes, heap, mark, longest []float64
	for range min(b.options.Runs, 3) {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		before := heapBytes()
		g, slow, err := fillSingly(b, facts, &insert)
		if err != nil {
			return err
		}
		insert.end()
		fills = append(fills, slow)
		n := float64(g.Stats().Facts)
		heap = append(heap, float64(heapBytes()-before)/n)
		bytes = append(bytes, float64(g.Stats().Bytes)/n)
		most := time.Duration(0)
		for _, d := range slow {
			most = max(most, d)
		}
		longest = append(longest, micros(most)/1e3)
		for range 3 {
			began := markSeconds()
			runtime.GC()
			mark = append(mark, 1e3*(markSeconds()-began))
		}
		runtime.KeepAlive(g)
	}
	b.cell.Params["facts"] = facts
	insert.report(b.cell, "insert_us")
	b.cell.Measured("bytes_per_fact", bytes)
	b.cell.Measured("heap_bytes_per_fact", heap)
	b.cell.Measured("worst_insert_ms", []float64{micros(worst(fills)) / 1e3})
	b.cell.Measured("longest_insert_ms", longest)
	b.cell.Measured("mark_ms", mark)
	b.cell.AtMost("bytes_per_fact", 64)
	b.cell.AtMost("heap_bytes_per_fact", 64)
	b.cell.AtMost("worst_insert_ms", 2)
	b.cell.AtMost("mark_ms", 10)
	return nil
}

// fillSingly inserts random distinct facts, one to a transaction, and returns the
// slow insertions by their number. One in a hundred goes into the series.
func fillSingly(b *bench, facts int, insert *series) (*graph, map[int]time.Duration, error) {
	g, err := deploy(pathsProgram)
	if err != nil {
		return nil, nil, err
	}
	slow := map[int]time.Duration{}
	random := newRandom(17)
	keys := facts / degree
	for i := range facts {
		if i%65_536 == 0 && b.ctx.Err() != nil {
			return nil, nil, b.ctx.Err()
		}
		g.prepare("edge", false, random.IntN(keys), random.IntN(keys))
		began := time.Now()
		err := g.write()
		d := time.Since(began)
		if err != nil {
			return nil, nil, err
		}
		if d > slowInsert {
			slow[i] = d
		}
		if i%100 == 0 {
			insert.samples = append(insert.samples, d)
		}
	}
	return g, slow, nil
}

// worst is the longest insertion that was slow in every fill.
func worst(fills []map[int]time.Duration) time.Duration {
	longest := time.Duration(0)
	if len(fills) == 0 {
		return 0
	}
	for i, d := range fills[0] {
		for _, other := range fills[1:] {
			d = min(d, other[i])
		}
		longest = max(longest, d)
	}
	return longest
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// markSeconds is the processor time that the collector has spent marking.
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
