package rules

import (
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/value"
)

func readSpecs() []spec {
	return []spec{{
		name: "read/bound",
		method: "?r1($head, Y), analysed before, at random hot heads of about ten rows. query: " +
			"Engine.Query, whole. watched: Engine.Rows of a key that is watched. subscribe: " +
			"Watch, Rows and Unwatch.",
		measure: measureReads,
	}}
}

func measureReads(b *bench) error {
	g, err := b.hotGraph()
	if err != nil {
		return err
	}
	b.cell.Params["edges"] = b.edges()
	query, err := g.ask("?r1($head, Y)")
	if err != nil {
		return err
	}
	random := newRandom(7)
	var asked, watched, subscribed series
	var rows []value.Value
	key := make([]value.Value, 1)
	err = b.runs(func() error {
		for range b.pick(50_000, 500) {
			key[0] = value.OfInt(int64(random.IntN(g.nodes/2) * 2))
			began := time.Now()
			r, err := g.Query(query, key, engine.QueryOptions{MaxRows: 1000, Budget: 1 << 20})
			asked.since(began)
			if err != nil {
				return err
			}
			began = time.Now()
			k, err := g.Watch("hot_links", key)
			if err != nil {
				return err
			}
			rows = g.Rows(k, 0, rows[:0])
			middle := time.Now()
			rows = g.Rows(k, 0, rows[:0])
			watched.since(middle)
			n := len(rows) / len(k.Columns(0))
			after := time.Now()
			g.Unwatch(k)
			subscribed.samples = append(subscribed.samples, time.Since(after)+middle.Sub(began))
			if n != r.Count {
				b.cell.Problem("head %d: a query finds %d rows, a key has %d",
					key[0].Int(), r.Count, n)
			}
		}
		asked.end()
		watched.end()
		subscribed.end()
		return nil
	})
	asked.report(b.cell, "query_us")
	watched.report(b.cell, "watched_us")
	subscribed.report(b.cell, "subscribe_us")
	b.cell.AtMost("query_us_p50", 1)
	return err
}
