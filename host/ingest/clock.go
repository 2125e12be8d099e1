package ingest

import (
	"context"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// callerClock is the caller of the clock's transactions.
const callerClock = "clock"

// tickClock replaces the row of the clock, if the program has one and its interval
// has passed, by a transaction like any other. Time reaches rules in no other way, so
// that the log replays to the same state.
func (l *Loop) tickClock(ctx context.Context) {
	program := l.program.Load().checked
	if program.ClockMillis == 0 || l.readOnly.Load() {
		return
	}
	second := l.turn.NowMilli / 1000 * 1000
	turn := second / program.ClockMillis
	var ops []analysis.Op
	due := true
	l.engine.Facts(engine.ClockRelation, func(row []value.Value) bool {
		due = row[0].Int()/program.ClockMillis != turn
		ops = append(ops, analysis.Op{
			Relation: engine.ClockRelation, Delete: true, Row: []value.Value{row[0]},
		})
		return due
	})
	if !due {
		return
	}
	ops = append(ops, analysis.Op{
		Relation: engine.ClockRelation, Row: []value.Value{value.OfTimestamp(second)},
	})
	l.began = l.cfg.Nanos()
	l.stage(ctx, &pending{
		tx:       Transaction{Program: program, Statements: engine.Plain(ops), Caller: callerClock},
		progress: progress{done: make(chan struct{})},
	})
	l.flush(ctx)
}
