package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// The writer of BenchmarkPinnedScan: one row each, whether the one before is done or
// not, and how long the loop works at the query when no write waits.
const (
	writePeriod = 10 * time.Microsecond
	turn        = 30 * time.Microsecond
)

// BenchmarkPinnedScan answers queries that read a million rows, in turns with 100,000
// writes a second. Writes wait from the moment at which they are due.
func BenchmarkPinnedScan(b *testing.B) {
	began := time.Now()
	clock := func() int64 { return time.Since(began).Nanoseconds() }
	program := hotProgram()
	e := loadedEngine(b, program, 1_000_000)
	e.clock = clock
	watch(b, e, "hot", 0)
	for _, c := range []struct {
		name string
		body []lit
	}{
		{"none", nil}, // the writer alone, for as long
		{"filter", []lit{a("edge", "X", "Y"), {"<", []any{"Y", 5}}}},
		{"all", []lit{a("edge", "X", "Y")}},
	} {
		b.Run(fmt.Sprintf("rows=1e6/%s", c.name), func(b *testing.B) {
			w := &steadyWriter{e: e, clock: clock}
			var answering int64
			for b.Loop() {
				w.due = clock()
				if c.body == nil {
					for until := clock() + 200e6; clock() < until; {
						w.write(b)
					}
					continue
				}
				start := clock()
				pin, err := e.Pin(60e9)
				if err != nil {
					b.Fatal(err)
				}
				q := program.query(nil, []string{"X", "Y"}, c.body...)
				v, err := pin.Query(q, nil, QueryOptions{MaxRows: 10_000})
				if err != nil {
					b.Fatal(err)
				}
				for !v.Step(int64(turn)) {
					w.write(b)
				}
				if _, err := v.Result(); err != nil {
					b.Fatal(err)
				}
				answering += clock() - start
				for pin.Close(); e.SweepPins(int64(turn)); {
					w.write(b)
				}
			}
			slices.Sort(w.waits)
			n := len(w.waits)
			b.ReportMetric(float64(w.waits[n/2])/1e3, "p50-us")
			b.ReportMetric(float64(w.waits[n*99/100])/1e3, "p99-us")
			b.ReportMetric(float64(w.waits[n*999/1000])/1e3, "p99.9-us")
			b.ReportMetric(float64(w.waits[n-1])/1e3, "max-us")
			b.ReportMetric(float64(answering)/1e6/float64(b.N), "answer-ms")
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "writes/s")
		})
	}
}

// steadyWriter writes one row each writePeriod.
type steadyWriter struct {
	e     *Engine
	clock func() int64
	due   int64
	i     int
	waits []int64
}

// write writes what is due.
func (w *steadyWriter) write(b *testing.B) {
	op := []analysis.Op{ins("edge", 0, 0)}
	for w.due <= w.clock() {
		// Each edge goes again after a thousand others came.
		i := w.i / 2
		if op[0].Delete = w.i%2 == 1; op[0].Delete {
			i -= 1000
		}
		op[0].Row[0] = value.OfInt(int64(uint32(i) * 2654435761 % 100_000))
		op[0].Row[1] = value.OfInt(int64(1_000_000 + uint32(i)%500_000))
		w.i++
		if _, _, err := w.e.Apply(uint64(w.i), op); err != nil {
			b.Fatal(err)
		}
		w.waits = append(w.waits, w.clock()-w.due)
		w.due += int64(writePeriod)
	}
}

// BenchmarkPinnedSteps is how long the shortest possible turns of pinned queries take.
// Turns are the same each time, so the shortest of several runs tells what a turn
// really takes (-benchtime 5x), where the machine is shared.
func BenchmarkPinnedSteps(b *testing.B) {
	program := hotProgram()
	e := loadedEngine(b, program, 1_000_000)
	pin, err := e.Pin(0)
	if err != nil {
		b.Fatal(err)
	}
	defer pin.Close()
	for _, c := range []struct {
		name string
		body []lit
	}{
		{"filter", []lit{a("edge", "X", "Y"), {"<", []any{"Y", 5}}}},
		{"all", []lit{a("edge", "X", "Y")}},
		{"join", []lit{a("edge", "X", "Y"), a("label", "Y", "=hot")}},
	} {
		b.Run(fmt.Sprintf("rows=1e6/%s", c.name), func(b *testing.B) {
			q := program.query(nil, []string{"X", "Y"}, c.body...)
			var shortest []time.Duration
			for b.Loop() {
				v, err := pin.Query(q, nil, QueryOptions{MaxRows: 10_000})
				if err != nil {
					b.Fatal(err)
				}
				for i, done := 0, false; !done; i++ {
					start := time.Now()
					done = v.Step(0)
					if d := time.Since(start); i == len(shortest) {
						shortest = append(shortest, d)
					} else {
						shortest[i] = min(shortest[i], d)
					}
				}
			}
			slices.Sort(shortest)
			n := len(shortest)
			b.ReportMetric(float64(n), "turns")
			b.ReportMetric(float64(shortest[n/2].Nanoseconds())/1e3, "p50-us")
			b.ReportMetric(float64(shortest[n*999/1000].Nanoseconds())/1e3, "p99.9-us")
			b.ReportMetric(float64(shortest[n-1].Nanoseconds())/1e3, "max-us")
		})
	}
}
