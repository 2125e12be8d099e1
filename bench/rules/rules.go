// Package rules measures the rule engine in this process: what a write, a read, a
// recursive change, an aggregate and a fact cost, and how that grows. Package bench
// offers it as the command `bench engine`. It starts one process, the hidden command
// that measures a write loop with its journal, which belongs to the host.
//
// Every cell repeats what it measures several times and states the median over these
// runs, and the spread. A sample is one operation: by the wall clock if it is short,
// so that figures hold what the clock itself costs, which the report says, or by the
// processor time of its thread if it may be long. Where the clock would matter, cells
// compare two series of samples.
package rules

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/heddle-live/heddle/bench/report"
)

// Options says what to measure.
type Options struct {
	Edges int  // of the graph under the writes and reads
	Runs  int  // of each cell
	Quick bool // small and short: says little, but that all cells work
	// Only names the cells to measure, or patterns of path.Match; a part of a name up to
	// a slash stands for all that follow. Empty: all.
	Only []string
	// Loop is the command line of the executable that measures a write loop.
	Loop []string
	// Directory is where that makes its journal; "" is a temporary one.
	Directory string
	// Progress is told the name of each cell before it begins; may be nil.
	Progress func(name string)
}

// EdgesMin is the smallest graph that has heads enough to write to.
const EdgesMin = 1000

// spec is a cell that can be measured.
type spec struct {
	name    string
	method  string
	measure func(b *bench) error
}

// bench is what the cell being measured knows.
type bench struct {
	ctx     context.Context
	options Options
	cell    *report.Cell
	kept    keeper
}

// specs lists all cells, those that can use what the one before made next to it.
func specs() []spec {
	return slices.Concat(
		writeSpecs(), readSpecs(), recursionSpecs(), negationSpecs(), aggregateSpecs(),
		scanSpecs(), churnSpecs(), loadSpecs(), growthSpecs(), loopSpecs(),
	)
}

// Names lists the names of all cells.
func Names() []string {
	var names []string
	for _, s := range specs() {
		names = append(names, s.name)
	}
	return names
}

// Select returns the names of the cells that patterns choose, or the pattern that
// chooses none.
func Select(patterns []string) (names []string, unknown string) {
	used := make([]bool, len(patterns))
	for _, name := range Names() {
		chosen := len(patterns) == 0
		for i, p := range patterns {
			ok, err := path.Match(p, name)
			if err == nil && ok || strings.HasPrefix(name, strings.TrimSuffix(p, "/")+"/") {
				used[i], chosen = true, true
			}
		}
		if chosen {
			names = append(names, name)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, patterns[i]
	}
	return names, ""
}

// Run measures and reports. A cell that finds a wrong result is not in order; one
// that cannot be measured ends the run.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	names, unknown := Select(o.Only)
	if unknown != "" {
		return nil, fmt.Errorf("no cell is called %s", unknown)
	}
	// The processor time of a sample is that of its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := report.New("engine", map[string]any{
		"edges": o.Edges, "runs": o.Runs, "quick": o.Quick,
		"clock_ns": clockNanos(), "thread_clock_ns": threadClockNanos(),
	})
	r.List = true
	b := &bench{ctx: ctx, options: o}
	for _, s := range specs() {
		if !slices.Contains(names, s.name) {
			continue
		}
		if o.Progress != nil {
			o.Progress(s.name)
		}
		cell := report.NewCell(s.name, map[string]any{})
		cell.Method = s.method
		b.cell = &cell
		if err := s.measure(b); err != nil {
			return nil, fmt.Errorf("cell %s: %w", s.name, err)
		}
		r.Cells = append(r.Cells, cell)
	}
	return r, nil
}

// keeper holds the one thing that cells in a row share, because making it takes long.
type keeper struct {
	key  string
	what any
}

// keep returns what the cells with this key share, and makes it if the cell before
// used something else, which goes first.
func keep[T any](b *bench, key string, make func() (T, error)) (T, error) {
	if b.kept.key == key {
		return b.kept.what.(T), nil
	}
	b.kept = keeper{}
	runtime.GC()
	what, err := make()
	if err == nil {
		b.kept = keeper{key, what}
	}
	return what, err
}

// pick returns the first number, or with --quick the second.
func (b *bench) pick(full, quick int) int {
	if b.options.Quick {
		return quick
	}
	return full
}

// runs calls run for each run of the cell, with a clean heap, until the context ends.
func (b *bench) runs(run func() error) error {
	for range b.options.Runs {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		runtime.GC()
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

// series is the samples of one kind of operation: those of the present run, and what
// the runs before came to, in microseconds.
type series struct {
	samples  []time.Duration
	p50, p99 []float64
	mean     []float64
	longest  []float64
}

// since adds the time since an operation began.
func (s *series) since(began time.Time) { s.samples = append(s.samples, time.Since(began)) }

// end ends a run.
func (s *series) end() {
	if len(s.samples) == 0 {
		return
	}
	sum := time.Duration(0)
	for _, d := range s.samples {
		sum += d
	}
	s.mean = append(s.mean, micros(sum)/float64(len(s.samples)))
	s.p50 = append(s.p50, micros(report.Percentile(s.samples, 0.5)))
	s.p99 = append(s.p99, micros(report.Percentile(s.samples, 0.99)))
	s.longest = append(s.longest, micros(report.Percentile(s.samples, 1)))
	s.samples = s.samples[:0]
}

// report adds median and p99 of the runs under a name that ends in its unit.
func (s *series) report(c *report.Cell, name string) {
	c.Measured(name+"_p50", s.p50)
	c.Measured(name+"_p99", s.p99)
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// by returns for each run what f makes of its values.
func by(a, b []float64, f func(a, b float64) float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = f(a[i], b[i])
	}
	return out
}

func quotient(a, b float64) float64   { return a / max(b, 1e-9) }
func difference(a, b float64) float64 { return a - b }

// threadClockNanos is the same of the thread's clock.
func threadClockNanos() int64 {
	var s []time.Duration
	for range 1000 {
		began := threadTime()
		s = append(s, threadTime()-began)
	}
	return report.Percentile(s, 0.5).Nanoseconds()
}

// clockNanos is what a pair of clock readings takes, which every sample holds.
func clockNanos() int64 {
	var s []time.Duration
	for range 10_000 {
		s = append(s, time.Since(time.Now()))
	}
	return report.Percentile(s, 0.5).Nanoseconds()
}
