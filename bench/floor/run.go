package floor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heddle-live/heddle/bench/report"
)

// warmupWrites come before what is measured: connections, allocators and the
// store's buffers are then as they stay.
const warmupWrites = 50

// Warm sends the writes that are not measured and waits until the server is
// idle.
func (f *Floor) Warm(ctx context.Context) error {
	for range warmupWrites {
		if _, _, err := f.Write(ctx); err != nil {
			return fmt.Errorf("warm-up: %w", err)
		}
	}
	return f.child.Settle(ctx)
}

// Measure sends so many writes, one at a time.
func (f *Floor) Measure(ctx context.Context, writes int) (s report.Series, err error) {
	before, err := f.CPU()
	if err != nil {
		return s, err
	}
	start := time.Now()
	for range writes {
		ack, delta, err := f.Write(ctx)
		if err != nil {
			return s, err
		}
		s.Acks = append(s.Acks, ack)
		s.Deltas = append(s.Deltas, delta)
	}
	s.Wall = time.Since(start)
	after, err := f.CPU()
	s.CPU = after - before
	return s, err
}

// Run measures one cell for each number of keys and returns the report. A cell
// that cannot be measured is not in order and says why; only the end of ctx is
// an error.
func Run(ctx context.Context, o Options, keys []int, writes int) (*report.Report, error) {
	r := report.New("floor", map[string]any{"writes": writes, "transport": o.Transport})
	for _, n := range keys {
		o.Keys = n
		cell := report.NewCell(fmt.Sprintf("keys=%d", n), map[string]any{"keys": n})
		if err := runCell(ctx, o, writes, &cell); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			cell.Problem("%v", err)
		}
		r.Cells = append(r.Cells, cell)
	}
	return r, nil
}

func runCell(ctx context.Context, o Options, writes int, cell *report.Cell) (err error) {
	f, err := Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Warm(ctx); err != nil {
		return err
	}
	s, err := f.Measure(ctx, writes)
	if err != nil {
		return err
	}
	rss, err := f.RSS()
	if err != nil {
		return err
	}
	cell.Metrics["floor_cpu_us_per_write"] = report.Micros(s.CPUPerWrite())
	cell.Metrics["floor_rss_mb"] = report.Round(float64(rss)/1e6, 1)
	s.Metrics(cell, "floor_")
	return nil
}
