package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// loopKind is a way to run a write loop.
type loopKind struct {
	name         string
	writers      int
	queue, batch int
	disk         bool
	limit        float64 // µs for a transaction; 0: none
}

func loopSpecs() []spec {
	var out []spec
	for _, k := range []loopKind{
		{name: "memory-1", writers: 1, queue: 1024, batch: 256},
		{name: "memory-256", writers: 256, queue: 1024, batch: 256, limit: 2},
		{name: "memory-4096", writers: 4096, queue: 8192, batch: 4096, limit: 2},
		{name: "journal-1", writers: 1, queue: 1024, batch: 256, disk: true},
		{name: "journal-256", writers: 256, queue: 1024, batch: 256, disk: true, limit: 2},
		{name: "journal-4096", writers: 4096, queue: 8192, batch: 4096, disk: true, limit: 2},
	} {
		out = append(out, spec{
			name: "loop/" + k.name,
			method: "A graph's write loop in a process of its own, 100,000 edges, 1,000 " +
				"watched keys: so many writers (the number in the name) have one transaction " +
				"of one row at a time and await its answer. transaction_us: the time of a run " +
				"by its transactions; answer_us: what a writer waits. journal: every batch " +
				"synced to the log on disk; memory: no log. engine and journal are the loop's " +
				"own counts by transaction, cpu the processor time of the process, writers " +
				"included. Batches are 256 transactions at most, as a server's by default, " +
				"with 4,096 writers 4,096.",
			measure: func(b *bench) error { return measureLoop(b, k) },
		})
	}
	return out
}

// loopRun is what the other process prints of a run.
type loopRun struct {
	Transactions int     `json:"transactions"`
	Seconds      float64 `json:"seconds"`
	P50          float64 `json:"us_p50"`
	P99          float64 `json:"us_p99"`
	Batches      int     `json:"batches"`
	Engine       float64 `json:"engine_seconds"`
	Journal      float64 `json:"journal_seconds"`
	CPU          float64 `json:"cpu_seconds"`
	Rows         int     `json:"rows"`
}

func measureLoop(b *bench, k loopKind) error {
	b.kept = keeper{} // it shares the machine with the other process
	runs, err := b.runLoop(k)
	if err != nil {
		return err
	}
	b.cell.Params["writers"] = k.writers
	for _, m := range []struct {
		name  string
		value func(r loopRun) float64
	}{
		{"transaction_us", func(r loopRun) float64 { return each(1e6*r.Seconds, r) }},
		{"transactions_per_second", func(r loopRun) float64 {
			return float64(r.Transactions) / r.Seconds
		}},
		{"answer_us_p50", func(r loopRun) float64 { return r.P50 }},
		{"answer_us_p99", func(r loopRun) float64 { return r.P99 }},
		{"transactions_per_batch", func(r loopRun) float64 {
			return float64(r.Transactions) / float64(max(r.Batches, 1))
		}},
		{"cpu_us", func(r loopRun) float64 { return each(1e6*r.CPU, r) }},
		{"engine_us", func(r loopRun) float64 { return each(1e6*r.Engine, r) }},
		{"journal_us", func(r loopRun) float64 { return each(1e6*r.Journal, r) }},
	} {
		var values []float64
		for _, r := range runs {
			values = append(values, m.value(r))
		}
		b.cell.Measured(m.name, values)
	}
	for _, r := range runs {
		if r.Rows != r.Transactions {
			b.cell.Problem("%d transactions changed %d rows", r.Transactions, r.Rows)
		}
	}
	if k.limit > 0 {
		b.cell.AtMost("transaction_us", k.limit)
	}
	return nil
}

// each is a sum by the transactions of the run.
func each(sum float64, r loopRun) float64 { return sum / float64(max(r.Transactions, 1)) }

// runLoop runs the other process to its end.
func (b *bench) runLoop(k loopKind) ([]loopRun, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own executable: %w", err)
	}
	number := func(flag string, n int) string { return flag + "=" + strconv.Itoa(n) }
	args := append(b.options.Loop[:len(b.options.Loop):len(b.options.Loop)],
		number("--writers", k.writers), number("--queue", k.queue), number("--batch", k.batch),
		number("--runs", b.options.Runs), number("--edges", b.pick(100_000, 5000)),
		fmt.Sprintf("--time=%dms", b.pick(1000, 100)),
	)
	if b.options.Directory != "" {
		args = append(args, "--dir="+b.options.Directory)
	}
	if !k.disk {
		args = append(args, "--no-disk")
	}
	cmd := exec.CommandContext(b.ctx, self, args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, problems.String())
	}
	var runs []loopRun
	if err := json.Unmarshal(out.Bytes(), &runs); err != nil {
		return nil, fmt.Errorf("%s printed something else: %w", args[0], err)
	}
	return runs, nil
}
