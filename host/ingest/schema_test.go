package ingest_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/host/ingest"
)

func TestAddedColumnsOutliveARestart(t *testing.T) {
	const view = "view who($n: string) := ?person($n, _)\n"
	f := start(t)
	f.apply("+person(name: string, age: int)\n" + view)
	f.write(`+person[("ann", 9), ("bob", 41)]`)
	wide := "+person(name: string, years: int, town: string?, tall: bool?)\n" +
		"view who($n: string) := ?person($n, _, _, _)\n"
	f.apply(wide)
	f.write(`-person("bob", 41, null, null)`)
	f.write(`+person[("ann", 9, null, null), ("cleo", 70, null, true)]`)
	const want = `["ann" 9 null null "cleo" 70 null true]`
	for range 2 {
		if got := f.query("?person(N, Y, T, B)"); got != want {
			t.Errorf("rows %s, want %s", got, want)
		}
		f.restart()
	}
	_, err := f.loop.Apply(t.Context(), "+person(name: string, years: int, town: string, tall: bool?)\n",
		ingest.ApplyOptions{})
	if loss, ok := errors.AsType[*engine.DataLossError](err); !ok || loss.Rows != 2 {
		t.Errorf("a column with nulls that is not nullable any more: %v", err)
	}
	if got := f.query("?person(N, Y, T, B)"); got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
}

func TestRowsOfNullsOutliveARestart(t *testing.T) {
	f := start(t)
	f.apply("+one(a: int?)\n+two(a: int?, b: int?)\nview v($x: int) := ?one($x)\n")
	f.write("+one[(null), (1)]\n+two[(null, null), (1, null), (null, 1)]")
	for range 2 {
		if got := f.query("?one(A)") + f.query("?two(A, B)"); got != "[null 1][null null null 1 1 null]" {
			t.Errorf("rows %s", got)
		}
		f.restart()
	}
}

func TestRenamedRelationsOutliveARestart(t *testing.T) {
	f := start(t)
	f.apply("+person(name: string, age: int)\n+pet(name: string)\n")
	f.write(`+person[("ann", 9), ("bob", 41)]. +pet("rex")`)
	const renamed = "+people(name: string, age: int, town: string?) was person\n"
	applied, err := f.loop.Apply(t.Context(),
		renamed+"person(N) <- people(N, _, _)\n+pet(name: string)\n", ingest.ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := applied.Diff
	want := []engine.RenamedRelation{{From: "person", To: "people"}}
	if !slices.Equal(d.RenamedRelations, want) || d.AddedRelations != nil ||
		d.DroppedRelations != nil || d.Lost != nil || len(d.ChangedRelations) != 1 {
		t.Errorf("%+v", d)
	}
	f.write(`-people("bob", 41, null). +people("cleo", 70, "Bonn")`)
	check := func(want string) {
		t.Helper()
		for range 2 {
			if got := f.query("?people(N, A, T)"); got != want {
				t.Errorf("rows %s, want %s", got, want)
			}
			f.restart()
		}
	}
	check(`["ann" 9 null "cleo" 70 "Bonn"]`)
	// The text may stay, though there is a new relation of the old name meanwhile.
	f.apply(renamed + "+pet(name: string)\n")
	check(`["ann" 9 null "cleo" 70 "Bonn"]`)
	f.apply("+people(name: string, age: int, town: string?)\n+pet(name: string)\n+person(x: int)\n")
	f.write("+person(1)")
	check(`["ann" 9 null "cleo" 70 "Bonn"]`)
	_, err = f.loop.Apply(t.Context(), renamed+"+pet(name: string)\n", ingest.ApplyOptions{})
	loss, ok := errors.AsType[*engine.DataLossError](err)
	if !ok || loss.Relation != "person" || loss.Rows != 1 {
		t.Errorf("a relation that was renamed long ago: %v", err)
	}
	// Names go round.
	f.apply("+pets(name: string) was pet\n" +
		"+person(x: int)\n+people(name: string, age: int, town: string?)\n")
	if got := f.query("?pets(N)"); got != `["rex"]` {
		t.Errorf("pets: %s", got)
	}
	_, err = f.loop.Apply(t.Context(), "+animals(name: int) was pets\n"+
		"+person(x: int)\n+people(name: string, age: int, town: string?)\n", ingest.ApplyOptions{})
	if loss, ok = errors.AsType[*engine.DataLossError](err); !ok || loss.Relation != "pets" {
		t.Errorf("other types: %v", err)
	}
}

// Cells follow the names of their columns, in facts, views and the journal, over several
// changes and restarts.
func TestMovedColumnsOutliveARestart(t *testing.T) {
	f := start(t)
	const views = "view of($k: int) := ?p($k, _)\n"
	f.apply("+p(src: int, dst: int)\n" + views)
	f.write("+p[(1, 2), (3, 4)]")
	check := func(query, want string) {
		t.Helper()
		for range 2 {
			if got := f.query(query); got != want {
				t.Errorf("%s: rows %s, want %s", query, got, want)
			}
			f.restart()
		}
	}
	applied, err := f.loop.Apply(t.Context(), "+p(dst: int, src: int)\n"+views, ingest.ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(applied.Diff.ChangedColumns); got != "[{p dst moved } {p src moved }]" {
		t.Errorf("columns %s", got)
	}
	check("?p(D, S)", "[2 1 4 3]")
	f.write("-p(2, 1). +p(6, 5)")
	check("?p(D, S)", "[4 3 6 5]")
	f.apply("+p(dst: int, note: string?, src: int, more: int?)\n")
	f.write(`+p(8, "x", 7, null). -p(4, null, 3, null). +p(10, null, 9, 1)`)
	check("?p(D, N, S, M)", `[6 null 5 null 8 "x" 7 null 10 null 9 1]`)
	f.apply("+q(more: int?, dst: int, note: string?, src: int) was p\n")
	check("?q(M, D, N, S)", `[null 6 null 5 null 8 "x" 7 1 10 null 9]`)
	f.apply("+q(more: int?, to: int, note: string?, src: int)\n")
	f.apply("+q(src: int, to: int, note: string?, more: int?)\n") // as in the journal
	check("?q(S, D, N, M)", `[5 6 null null 7 8 "x" null 9 10 null 1]`)

	for program, why := range map[string]string{
		"+q(to: int, other: int, note: string?, more: int?)\n":  "its column src is gone, and to stands in its place",
		"+q(src: int, to: int, note: string?)\n":                "its column more is gone",
		"+q(to: int, src: string, note: string?, more: int?)\n": "the types of its columns change",
	} {
		_, err := f.loop.Apply(t.Context(), program, ingest.ApplyOptions{})
		if loss, ok := errors.AsType[*engine.DataLossError](err); !ok || loss.Why != why || loss.Rows != 3 {
			t.Errorf("%s: %v", program, err)
		}
	}
}

// A clock takes no facts over, and what becomes of it is told.
func TestClockOverFacts(t *testing.T) {
	f := start(t)
	f.apply("+clock(second: timestamp)\n")
	f.write(`+clock[(t"2026-11-30T12:00:00Z"), (t"2026-11-30T13:00:00Z")]`)
	_, err := f.loop.Apply(t.Context(), "clock every 1s\n", ingest.ApplyOptions{})
	if loss, ok := errors.AsType[*engine.DataLossError](err); !ok || loss.Rows != 2 {
		t.Fatalf("facts in place of a clock: %v", err)
	}
	apply := func(program string, want engine.ClockChange) {
		t.Helper()
		applied, err := f.loop.Apply(t.Context(), program, ingest.ApplyOptions{AllowLoss: true})
		if err != nil {
			t.Fatal(err)
		}
		if d := applied.Diff; d.Clock == nil || *d.Clock != want || d.Empty() {
			t.Errorf("%s: %+v", program, d)
		}
	}
	apply("clock every 1s\n", engine.ClockChange{Now: "1s"})
	if got := f.query("?clock(S)"); got != "[]" {
		t.Errorf("rows of the clock: %s", got)
	}
	apply("clock every 90s\n", engine.ClockChange{Was: "1s", Now: "1m30s"})
	apply("+p(x: int)\n", engine.ClockChange{Was: "1m30s"})
}

func TestClock(t *testing.T) {
	f := start(t)
	var millis atomic.Int64
	millis.Store(1_000_000_500)
	f.now = func() time.Time { return time.UnixMilli(millis.Load()) }
	f.restart()
	tick := func(after time.Duration, revision uint64, want string) {
		t.Helper()
		millis.Add(after.Milliseconds())
		if err := f.loop.Call(t.Context(), func(turn *ingest.Turn) { turn.TickClock() }); err != nil {
			t.Fatal(err)
		}
		if got := f.query("?clock(S)"); got != want || f.loop.Revision() != revision {
			t.Errorf("clock %s at %d, want %s at %d", got, f.loop.Revision(), want, revision)
		}
	}
	program := "+due(id: int, at: timestamp)\nclock every 10s\n" +
		"late(I) <- due(I, At), clock(S), At < S\nview is_late($i: int) := ?late($i)\n"
	f.apply(program)
	tick(0, 2, `[t"1970-01-12T13:46:40Z"]`)
	tick(9*time.Second, 2, `[t"1970-01-12T13:46:40Z"]`)
	tick(time.Second, 3, `[t"1970-01-12T13:46:50Z"]`)
	f.restart()
	tick(time.Second, 3, `[t"1970-01-12T13:46:50Z"]`)
	tick(time.Minute, 4, `[t"1970-01-12T13:47:51Z"]`)
	tick(-time.Hour, 5, `[t"1970-01-12T12:47:51Z"]`)
	f.write(`+due[(1, t"1970-01-12T12:00:00Z"), (2, t"1970-01-12T14:00:00Z")]`)
	if got := f.query("?late(I)"); got != "[1]" {
		t.Errorf("late: %s", got)
	}
	f.apply("+due(id: int, at: timestamp)\nview d($i: int) := ?due($i, At)\n") // no loss
	millis.Add(time.Hour.Milliseconds())
	if err := f.loop.Call(t.Context(), func(turn *ingest.Turn) { turn.TickClock() }); err != nil {
		t.Fatal(err)
	}
	if r := f.loop.Revision(); r != 7 {
		t.Errorf("revision %d of a graph that lost its clock", r)
	}
}
