package views

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heddle-live/heddle/bench/floor"
	"github.com/heddle-live/heddle/bench/report"
	"github.com/heddle-live/heddle/sdk/frame"
)

const (
	// blockWrites are sent to one server before it is the other's turn: few
	// enough that both meet the same machine, enough that each runs warm.
	blockWrites = 100
	// warmupWrites come before what is measured.
	warmupWrites = 50
	// deltaTimeout bounds the wait for one write's frame.
	deltaTimeout = 20 * time.Second
	// emptyTimeout bounds the wait for watched keys to be gone after a cell; the
	// server keeps them for two seconds.
	emptyTimeout = 15 * time.Second
)

// Names of the server's metrics that a cell reads.
const (
	metricEngineSeconds = "heddle_engine_commit_seconds_total"
	metricCommits       = "heddle_commits_total"
	metricFramesSent    = "heddle_frames_sent_total"
	metricWatchedKeys   = "heddle_watched_keys"
)

// cell is one number of keys under measurement.
type cell struct {
	server  *server
	model   *model
	viewers *viewers
	floor   *floor.Floor
	report  *report.Cell
	turn    int // writes sent in this cell
}

// runCell measures one cell: it connects the viewers of both servers, warms
// both, and lets them take turns.
func (s *server) runCell(
	ctx context.Context, o Options, m *model, keys int, r *report.Cell,
) (err error) {
	c := &cell{server: s, model: m, report: r}
	c.viewers, err = connect(ctx, s, o.Transport, m, keys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.leave(ctx)) }()
	r.Metrics["subscribe_us_p50"] = report.Micros(report.Percentile(c.viewers.subscribe, 0.5))

	o.Floor.Keys, o.Floor.Transport = keys, o.Transport
	if c.floor, err = floor.Start(ctx, o.Floor); err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	defer func() { err = errors.Join(err, c.floor.Close()) }()
	if err := c.floor.Warm(ctx); err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	if _, err := c.measure(ctx, warmupWrites); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	if err := s.child.Settle(ctx); err != nil {
		return err
	}
	if err := c.takeTurns(ctx, o.Writes); err != nil {
		return err
	}
	return c.verify(ctx)
}

// takeTurns measures floor and server in blocks and reports both.
func (c *cell) takeTurns(ctx context.Context, writes int) error {
	before, err := c.server.admin.metrics(ctx)
	if err != nil {
		return err
	}
	var own, floors report.Series
	for done := 0; done < writes; done += blockWrites {
		block := min(blockWrites, writes-done)
		s, err := c.floor.Measure(ctx, block)
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		floors.Add(s)
		if s, err = c.measure(ctx, block); err != nil {
			return err
		}
		own.Add(s)
	}
	after, err := c.server.admin.metrics(ctx)
	if err != nil {
		return err
	}
	rss, err := c.server.child.RSS()
	if err != nil {
		return err
	}
	own.Metrics(c.report, "")
	floors.Metrics(c.report, "floor_")
	m := c.report.Metrics
	m["server_cpu_us_per_write"] = report.Micros(own.CPUPerWrite())
	m["floor_cpu_us_per_write"] = report.Micros(floors.CPUPerWrite())
	m["cpu_times_floor"] = report.Round(
		float64(own.CPUPerWrite())/float64(max(floors.CPUPerWrite(), 1)), 2)
	m["rss_mb"] = report.Round(float64(rss)/1e6, 1)
	c.compareMetrics(before, after, writes)
	return nil
}

// compareMetrics takes the engine's time from the server's own figures, and
// holds that it sent one frame for each write: the silence of all others, as
// the server counts it.
func (c *cell) compareMetrics(before, after map[string]float64, writes int) {
	for _, name := range []string{metricEngineSeconds, metricCommits, metricFramesSent} {
		if _, ok := after[name]; !ok {
			c.report.Problem("the server has no metric %s", name)
			return
		}
	}
	commits := after[metricCommits] - before[metricCommits]
	frames := after[metricFramesSent] - before[metricFramesSent]
	if commits != float64(writes) || frames != float64(writes) {
		c.report.Problem("the server counts %v commits and %v frames for %d writes",
			commits, frames, writes)
		return
	}
	seconds := after[metricEngineSeconds] - before[metricEngineSeconds]
	c.report.Metrics["engine_us_per_commit"] = report.Round(seconds/commits*1e6, 2)
}

// measure sends so many writes, one at a time, to the keys in turn.
func (c *cell) measure(ctx context.Context, writes int) (s report.Series, err error) {
	before, err := c.server.child.CPU()
	if err != nil {
		return s, err
	}
	began := time.Now()
	for range writes {
		if err := c.write(ctx, &s); err != nil {
			return s, err
		}
	}
	s.Wall = time.Since(began)
	after, err := c.server.child.CPU()
	s.CPU = after - before
	return s, err
}

// write sends one write and waits for its answer and for its viewer's frame.
// What another viewer gets meanwhile is a problem.
func (c *cell) write(ctx context.Context, s *report.Series) error {
	key := c.turn % c.viewers.count
	c.turn++
	w := c.model.next(c.model.graph.Head(key))
	ctx, cancel := context.WithTimeout(ctx, deltaTimeout)
	defer cancel()
	start := time.Now()
	var err error
	if w.revision, err = c.server.admin.transact(ctx, graphName, w.body); err != nil {
		return err
	}
	s.Acks = append(s.Acks, time.Since(start))
	for {
		select {
		case e := <-c.viewers.events:
			if e.key != key {
				c.report.Problem("viewer %d got %s during a write to key %d", e.key, e, key)
				if e.err != nil {
					return fmt.Errorf("viewer %d ended: %w", e.key, e.err)
				}
				continue
			}
			if problem := w.check(e); problem != "" {
				c.report.Problem("%s", problem)
			}
			if e.err != nil {
				return fmt.Errorf("viewer %d ended: %w", e.key, e.err)
			}
			s.Deltas = append(s.Deltas, e.at.Sub(start))
			return nil
		case <-ctx.Done():
			return fmt.Errorf("viewer %d got nothing for revision %d: %w",
				key, w.revision, ctx.Err())
		}
	}
}

// verify holds, when all is written, that nothing more arrives and that what
// each viewer sees, what was written, and a fresh query are the same.
func (c *cell) verify(ctx context.Context) error {
	if err := c.server.child.Settle(ctx); err != nil {
		return err
	}
	for range len(c.viewers.events) {
		e := <-c.viewers.events
		c.report.Problem("viewer %d got %s after the last write", e.key, e)
	}
	for key := range c.viewers.count {
		head := c.model.graph.Head(key)
		want := c.model.rows(head)
		if got := c.viewers.rows(key); !equalRows(got, want) {
			c.report.Problem("viewer %d sees %v, want %v", key, got, want)
		}
		answer, err := c.server.admin.links(ctx, graphName, head)
		if err != nil {
			return err
		}
		got := make([]frame.Row, 0, len(answer))
		for _, r := range answer {
			got = append(got, row(r[0], r[1]))
		}
		if !equalRows(got, want) {
			c.report.Problem("a query of head %d finds %v, want %v", head, got, want)
		}
	}
	return nil
}

// leave disconnects the viewers and waits until the server watches no key, so
// that the next cell begins with none.
func (c *cell) leave(ctx context.Context) error {
	c.viewers.close()
	ctx, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		m, err := c.server.admin.metrics(ctx)
		if err != nil {
			return err
		}
		if m[metricWatchedKeys] == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%v keys are still watched after all viewers left",
				m[metricWatchedKeys])
		}
	}
}
