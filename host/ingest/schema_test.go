package ingest_test

import (
	"errors"
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
