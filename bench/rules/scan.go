package rules

import (
	"math/rand/v2"
	"time"

	"github.com/heddle-live/heddle/engine"
)

const (
	// scanInterval is the time between two writes beside a scan: 100,000 a second.
	scanInterval = 10 * time.Microsecond
	// scanTurn is how long a scan works between two looks for writes.
	scanTurn = 30 * time.Microsecond
)

func scanSpecs() []spec {
	const method = "A write each 10 us, whether the one before is done or not, and between " +
		"them a query on a pinned revision in turns of 30 us, on one goroutine as in a server. " +
		"A write's time counts from when it was due. alone: the same without a query. turn: " +
		"what a turn of the query took. "
	return []spec{
		{
			name:   "scan/filter",
			method: method + "The query reads all edges and finds few: ?edge(X, Y), X = Y.",
			measure: func(b *bench) error {
				return measureScan(b, "?edge(X, Y), X = Y")
			},
		},
		{
			name:    "scan/all",
			method:  method + "The query returns all edges, sorted.",
			measure: func(b *bench) error { return measureScan(b, "?edge(X, Y)") },
		},
	}
}

// measureScan runs writes with and without the query beside them.
func measureScan(b *bench, text string) error {
	g, err := b.scannedGraph()
	if err != nil {
		return err
	}
	query, err := g.ask(text)
	if err != nil {
		return err
	}
	b.cell.Params["edges"] = b.edges()
	nodes := g.nodes
	writer := &toggler{g: g, random: newRandom(19), node: func(r *rand.Rand) int {
		return r.IntN(nodes)
	}}
	var beside, alone, turns series
	var seconds, writes []float64
	err = b.runs(func() error {
		want, err := g.Query(query, nil, engine.QueryOptions{})
		if err != nil {
			return err
		}
		pin, err := g.Pin(0)
		if err != nil {
			return err
		}
		scan, err := pin.Query(query, nil, engine.QueryOptions{})
		if err != nil {
			return err
		}
		began := time.Now()
		if err := scanBeside(writer, &beside, func() bool {
			begins := time.Now()
			done := scan.Step(scanTurn.Nanoseconds())
			turns.since(begins)
			return done
		}); err != nil {
			return err
		}
		seconds = append(seconds, time.Since(began).Seconds())
		writes = append(writes, float64(len(beside.samples))/seconds[len(seconds)-1])
		got, err := scan.Result()
		if err != nil {
			return err
		}
		if got.Count != want.Count {
			b.cell.Problem("the pinned query finds %d rows, want %d", got.Count, want.Count)
		}
		pin.Close()
		for g.SweepPins(scanTurn.Nanoseconds()) {
			continue
		}
		until := time.Now().Add(time.Duration(b.pick(1000, 20)) * time.Millisecond)
		err = scanBeside(writer, &alone, func() bool { return !time.Now().Before(until) })
		beside.end()
		alone.end()
		turns.end()
		return err
	})
	beside.report(b.cell, "write_us")
	alone.report(b.cell, "alone_us")
	turns.report(b.cell, "turn_us")
	b.cell.Measured("longest_turn_us", turns.longest)
	b.cell.Measured("scan_s", seconds)
	b.cell.Measured("writes_per_second", writes)
	b.cell.AtMost("write_us_p99", 100)
	return err
}

// scannedGraph is the graph with a thousand watched heads, and with a clock, which
// turns need.
func (b *bench) scannedGraph() (*graph, error) {
	return keep(b, "scanned", func() (*graph, error) {
		began := time.Now()
		g, err := hotGraphOn(func() int64 { return int64(time.Since(began)) }, b.edges())
		if err != nil {
			return nil, err
		}
		_, err = watchHeads(g, 1000)
		return g, err
	})
}

// scanBeside writes at a fixed rate, and calls step whenever no write is due, until
// that returns true.
func scanBeside(writer *toggler, s *series, step func() bool) error {
	due := time.Now()
	for {
		// What is due is taken as one batch at most, so that the scan goes on even if
		// the writes take all the time there is.
		for range 1024 {
			if time.Now().Before(due) {
				break
			}
			writer.prepare()
			if err := writer.g.write(); err != nil {
				return err
			}
			s.since(due)
			due = due.Add(scanInterval)
		}
		if step() {
			return nil
		}
	}
}
