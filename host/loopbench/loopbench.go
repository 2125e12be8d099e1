// Package loopbench measures a graph's write loop with its journal, without a server
// around it: many writers, each with one transaction of one row at a time and its
// answer awaited. `heddle bench engine` runs its hidden command, since a bench imports
// nothing of the host.
package loopbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/journal/pebble"
)

// Name is what the command is called.
const Name = "loop-bench"

// graphName is the graph's.
const graphName = "bench"

const program = `
+edge(src: int, dst: int)
+label(node: int, name: string)
r1(X, Y) <- edge(X, Y), label(X, "hot")
view hot_links($head: int) := ?r1($head, Y)
`

// options is what the command is asked to do.
type options struct {
	directory            string
	writers, runs, edges int
	keys                 int
	time                 time.Duration // of a run
	queue, batch         int
	noDisk               bool
}

// Run is what one run found. Latencies are those of single transactions.
type Run struct {
	Transactions int     `json:"transactions"`
	Seconds      float64 `json:"seconds"`
	P50          float64 `json:"us_p50"`
	P99          float64 `json:"us_p99"`
	Batches      int     `json:"batches"`
	Engine       float64 `json:"engine_seconds"`
	Journal      float64 `json:"journal_seconds"`
	CPU          float64 `json:"cpu_seconds"` // of the whole process; 0 if unknown
	Rows         int     `json:"rows"`        // that watched keys were told of
}

// Command returns the hidden command. It prints a list of Run as JSON.
func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use: Name, Short: "Measure a write loop with its journal, for `bench engine`",
		Example: "  heddle " + Name + " --writers 256 --runs 3", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			runs, err := measure(cmd.Context(), o)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(runs)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.directory, "dir", "", "where the journal is made (default temporary)")
	flags.IntVar(&o.writers, "writers", 256, "writers, each with one transaction at a time")
	flags.IntVar(&o.runs, "runs", 3, "runs")
	flags.IntVar(&o.edges, "edges", 100_000, "edges in the graph")
	flags.IntVar(&o.keys, "keys", 1000, "watched keys")
	flags.DurationVar(&o.time, "time", time.Second, "how long a run lasts")
	flags.IntVar(&o.queue, "queue", 1024, "transactions that may wait")
	flags.IntVar(&o.batch, "batch", 256, "transactions of one batch")
	flags.BoolVar(&o.noDisk, "no-disk", false, "keep no log")
	return c
}

// noLog takes every record and keeps nothing.
type noLog struct {
	ingest.Journal
	position journal.Position
}

func (l *noLog) Append(_ context.Context, _ string, records []*journal.Record) (
	journal.Position, error,
) {
	l.position.Revision = records[len(records)-1].Revision
	return l.position, nil
}

func (l *noLog) Open(ctx context.Context, graph string, now time.Time) (journal.Position, error) {
	var err error
	l.position, err = l.Journal.Open(ctx, graph, now)
	return l.position, err
}

// publisher reads what a server publishes.
type publisher struct {
	rows   int
	values []value.Value
}

func (p *publisher) Publish(t *ingest.Turn) {
	began := t.Nanos()
	t.Engine.Changes(func(k *engine.Key, _ uint64, parts []engine.Change) {
		width := len(k.Columns(0))
		p.rows += (len(parts[0].Insert) + len(parts[0].Retract)) / width
		p.values = t.Engine.Rows(k, 0, p.values[:0])
	})
	t.CountEngine(t.Nanos() - began)
}

func (*publisher) Deployed(*ingest.Turn, *engine.Diff) {}

func (*publisher) Tick(*ingest.Turn, time.Time) {}

func (*publisher) Tidy(*ingest.Turn, time.Time) bool { return false }

// bench is a loop under measurement.
type bench struct {
	options
	loop      *ingest.Loop
	publisher *publisher
	metrics   ingest.Metrics
	journal   float64 // seconds; the loop's
	serial    []int   // of each writer
}

func measure(ctx context.Context, o options) (runs []Run, err error) {
	if o.writers < 1 || o.writers > o.queue || o.edges < 10 {
		return nil, errors.New("want from 1 to as many writers as may wait, and 10 edges")
	}
	directory, err := os.MkdirTemp(o.directory, "heddle-loop-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	log, err := pebble.Open(filepath.Join(directory, "journal"), pebble.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := log.Create(ctx, graphName); err != nil {
		return nil, err
	}
	b := &bench{options: o, publisher: &publisher{}, serial: make([]int, o.writers)}
	if err := b.open(ctx, log); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- b.loop.Run(running) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	for range o.runs {
		r, err := b.run(ctx)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

func (b *bench) open(ctx context.Context, log ingest.Journal) error {
	if b.noDisk {
		log = &noLog{Journal: log}
	}
	began := time.Now()
	b.metrics.JournalSeconds = func(s float64) { b.journal += s }
	var err error
	b.loop, err = ingest.Open(ctx, ingest.Config{
		Graph: graphName, Journal: log, Publisher: b.publisher, Now: time.Now,
		Nanos:             func() int64 { return int64(time.Since(began)) },
		QueueTransactions: b.queue, BatchTransactions: b.batch,
		JournalRecords: 1_000_000, QuerySteps: 1_000_000,
		Limits: engine.Limits{
			CommitRows: 1_000_000, GraphRows: 20_000_000,
			CommitBytes: 256 << 20, GraphBytes: 4 << 30,
		},
		Metrics: &b.metrics, Logger: slog.New(slog.DiscardHandler),
	})
	return err
}

// prepare applies the program, loads the facts and watches the keys.
func (b *bench) prepare(ctx context.Context) error {
	if _, err := b.loop.Apply(ctx, program, ingest.ApplyOptions{}); err != nil {
		return err
	}
	nodes := b.nodes()
	var ops []analysis.Op
	for i := range b.edges {
		ops = append(ops, edge(i%nodes, i*7919%nodes, false))
		if i < nodes {
			ops = append(ops, analysis.Op{Relation: "label", Row: []value.Value{
				value.OfInt(int64(i)), value.OfString("hot"),
			}})
		}
		if len(ops) >= 10_000 || i == b.edges-1 {
			if err := b.transact(ctx, ops); err != nil {
				return fmt.Errorf("load: %w", err)
			}
			ops = nil
		}
	}
	var failed error
	err := b.loop.Call(ctx, func(t *ingest.Turn) {
		for i := range min(b.keys, nodes) {
			if _, failed = t.Engine.Watch("hot_links", []value.Value{
				value.OfInt(int64(i)),
			}); failed != nil {
				return
			}
		}
	})
	return errors.Join(err, failed)
}

func (b *bench) nodes() int { return b.edges / 10 }

func edge(src, dst int, deletes bool) analysis.Op {
	return analysis.Op{
		Relation: "edge", Delete: deletes,
		Row: []value.Value{value.OfInt(int64(src)), value.OfInt(int64(dst))},
	}
}

func (b *bench) transact(ctx context.Context, ops []analysis.Op) error {
	_, err := b.loop.Transact(ctx, ingest.Transaction{
		Program: b.loop.Program(), Statements: engine.Plain(ops), Caller: "bench",
	})
	return err
}

// run has all writers write for a while.
func (b *bench) run(ctx context.Context) (Run, error) {
	// Between two runs nothing is queued, so the loop does not write these.
	rows, journalled := b.publisher.rows, b.journal
	commits, nanos := b.metrics.Commits.Load(), b.metrics.EngineNanos.Load()
	latencies := make([][]time.Duration, b.writers)
	failures := make([]error, b.writers)
	var writers sync.WaitGroup
	began, cpu := time.Now(), cpuSeconds()
	for w := range b.writers {
		writers.Go(func() {
			latencies[w], failures[w] = b.write(ctx, w, began.Add(b.time))
		})
	}
	writers.Wait()
	r := Run{Seconds: time.Since(began).Seconds(), CPU: cpuSeconds() - cpu}
	// A task in the loop comes after its last batch, and so after what that wrote down.
	err := b.loop.Call(ctx, func(*ingest.Turn) {
		r.Rows, r.Journal = b.publisher.rows-rows, b.journal-journalled
	})
	if err := errors.Join(append(failures, err)...); err != nil {
		return r, err
	}
	r.Batches = int(b.metrics.Commits.Load() - commits)
	r.Engine = float64(b.metrics.EngineNanos.Load()-nanos) / 1e9
	all := slices.Concat(latencies...)
	slices.Sort(all)
	r.Transactions = len(all)
	if r.Rows == 0 || len(all) == 0 {
		return r, fmt.Errorf("%d transactions changed %d rows", len(all), r.Rows)
	}
	r.P50 = float64(all[len(all)/2].Nanoseconds()) / 1e3
	r.P99 = float64(all[len(all)*99/100].Nanoseconds()) / 1e3
	return r, nil
}

// write is one writer: it inserts an edge of its own at a watched node, and deletes
// it with its next transaction.
func (b *bench) write(ctx context.Context, w int, until time.Time) ([]time.Duration, error) {
	var took []time.Duration
	keys := min(b.keys, b.nodes())
	for now := time.Now(); now.Before(until); {
		turn := b.serial[w] / 2
		src := (w*31 + turn) % max(keys, 1)
		op := edge(src, 1_000_000_000+w, b.serial[w]%2 == 1)
		b.serial[w]++
		if err := b.transact(ctx, []analysis.Op{op}); err != nil {
			return nil, err
		}
		after := time.Now()
		took = append(took, after.Sub(now))
		now = after
	}
	return took, nil
}
