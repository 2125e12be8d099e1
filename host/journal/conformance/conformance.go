// Package conformance holds a journal to the behaviour that journal.Journal
// promises. Tests of each implementation call Run; it does no I/O itself.
package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/heddle-live/heddle/host/journal"
)

// Open opens the storage of one test, which is empty at first. Called again
// after Close it opens the same storage.
type Open func(t *testing.T) journal.Journal

// Run runs the suite. storage returns new, empty storage.
func Run(t *testing.T, storage func(t *testing.T) Open) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open Open)
	}{
		{"graphs", testGraphs},
		{"names", testNames},
		{"openings", testOpenings},
		{"append", testAppend},
		{"refused", testRefused},
		{"sets", testSets},
		{"drops", testDrops},
		{"program", testProgram},
		{"receipts", testReceipts},
		{"replay", testReplay},
		{"trim", testTrim},
		{"recreate", testRecreate},
		{"concurrent", testConcurrent},
		{"closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, storage(t)) })
	}
}

// Day is a time whose day number since 2020 is 2526.
var Day = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

// Fact returns an insert of a tuple of one relation.
func Fact(relation uint32, tuple string) journal.Mutation {
	return journal.Mutation{Relation: relation, Tuple: []byte(tuple)}
}

// Without returns a delete of a tuple of one relation.
func Without(relation uint32, tuple string) journal.Mutation {
	return journal.Mutation{Relation: relation, Tuple: []byte(tuple), Delete: true}
}

// Record returns a record with some mutations.
func Record(revision uint64, mutations ...journal.Mutation) *journal.Record {
	return &journal.Record{
		Revision: revision, TimeMillis: 1_000 + int64(revision), Mutations: mutations,
	}
}

// Facts returns a graph's facts, spelled relation:tuple, in the order of State.
func Facts(t *testing.T, j journal.Journal, graph string) []string {
	t.Helper()
	var facts []string
	_, err := j.State(t.Context(), graph, func(m journal.Mutation) error {
		if m.Delete {
			t.Errorf("State gave a delete of %q", m.Tuple)
		}
		facts = append(facts, fmt.Sprintf("%d:%s", m.Relation, m.Tuple))
		return nil
	})
	if err != nil {
		t.Fatalf("State: %v", err)
	}
	return facts
}

// opened returns a journal with one open graph "g".
func opened(t *testing.T, open Open) journal.Journal {
	t.Helper()
	j := open(t)
	must(t, j.Create(t.Context(), "g"))
	if _, err := j.Open(t.Context(), "g", Day); err != nil {
		t.Fatal(err)
	}
	return j
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustAppend(t *testing.T, j journal.Journal, records ...*journal.Record) journal.Position {
	t.Helper()
	p, err := j.Append(t.Context(), "g", records)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

func wantFacts(t *testing.T, j journal.Journal, want ...string) {
	t.Helper()
	if got := Facts(t, j, "g"); !slices.Equal(got, want) {
		t.Errorf("facts %q, want %q", got, want)
	}
}

func testGraphs(t *testing.T, open Open) {
	ctx := t.Context()
	j := open(t)
	for _, name := range []string{"b", "a.b", "a"} {
		must(t, j.Create(ctx, name))
	}
	wantError(t, "create twice", j.Create(ctx, "a"), journal.ErrExists)
	must(t, j.Drop(ctx, "b"))
	wantError(t, "drop twice", j.Drop(ctx, "b"), journal.ErrNotFound)
	_, err := j.Head(ctx, "b")
	wantError(t, "head of a dropped graph", err, journal.ErrNotFound)
	must(t, j.Close())
	j = open(t)
	names, err := j.Graphs(ctx)
	must(t, err)
	if want := []string{"a", "a.b"}; !slices.Equal(names, want) {
		t.Errorf("graphs %q, want %q", names, want)
	}
	p, err := j.Head(ctx, "a")
	must(t, err)
	if p != (journal.Position{}) {
		t.Errorf("head of a graph never opened: %+v", p)
	}
	must(t, j.Close())
}

func testNames(t *testing.T, open Open) {
	j := open(t)
	for _, name := range []string{"", "a/b", ".hidden", "ä", "a b", string(make([]byte, 129))} {
		wantError(t, fmt.Sprintf("create %q", name), j.Create(t.Context(), name), journal.ErrName)
		_, err := j.Head(t.Context(), name)
		wantError(t, fmt.Sprintf("head of %q", name), err, journal.ErrName)
	}
	must(t, j.Close())
}

func testOpenings(t *testing.T, open Open) {
	ctx := t.Context()
	j := opened(t, open)
	p, err := j.Head(ctx, "g")
	must(t, err)
	if p.Opening != 2526 || p.Epoch == (journal.Epoch{}) {
		t.Errorf("first opening: %+v", p)
	}
	q, err := j.NextOpening(ctx, "g", Day)
	must(t, err)
	if q.Opening != 2527 || q.Epoch == p.Epoch {
		t.Errorf("next opening on the same day: %+v after %+v", q, p)
	}
	must(t, j.Close())
	j = open(t)
	_, err = j.NextOpening(ctx, "g", Day)
	wantError(t, "next opening before the first", err, journal.ErrNotOpen)
	_, err = j.Append(ctx, "g", []*journal.Record{Record(1)})
	wantError(t, "append before open", err, journal.ErrNotOpen)
	p, err = j.Open(ctx, "g", Day.AddDate(-10, 0, 0))
	must(t, err)
	if p.Opening != 2528 {
		t.Errorf("opening with a clock that went back: %d", p.Opening)
	}
	p, err = j.Open(ctx, "g", Day.AddDate(0, 0, 30))
	must(t, err)
	if p.Opening != 2556 {
		t.Errorf("opening 30 days later: %d", p.Opening)
	}
	must(t, j.Close())
}

func testAppend(t *testing.T, open Open) {
	ctx := t.Context()
	j := opened(t, open)
	one := mustAppend(t, j, Record(1, Fact(7, "a"), Fact(3, "b")))
	three := mustAppend(t, j, Record(2, Fact(3, "a")), Record(3, Without(7, "a")))
	if one.Revision != 1 || three.Revision != 3 || one.Hash == three.Hash {
		t.Errorf("positions %+v, %+v", one, three)
	}
	if p := mustAppend(t, j); p != three {
		t.Errorf("appending nothing moved the head to %+v", p)
	}
	wantFacts(t, j, "3:a", "3:b")
	must(t, j.Close())
	j = open(t)
	p, err := j.Head(ctx, "g")
	must(t, err)
	if p != three {
		t.Errorf("head after reopening %+v, want %+v", p, three)
	}
	wantFacts(t, j, "3:a", "3:b")
	if p, err = j.Open(ctx, "g", Day); err != nil || p.Hash != three.Hash || p.Revision != 3 {
		t.Errorf("open: %+v, %v", p, err)
	}
	mustAppend(t, j, Record(4, Fact(3, "c")))
	wantFacts(t, j, "3:a", "3:b", "3:c")
	must(t, j.Close())
}

func testRefused(t *testing.T, open Open) {
	ctx := t.Context()
	j := opened(t, open)
	mustAppend(t, j, Record(1, Fact(1, "a")))
	before, err := j.Head(ctx, "g")
	must(t, err)
	large := Record(3, Fact(1, string(make([]byte, journal.TupleBytesMax+1))))
	insert := Record(2, Fact(1, "x"))
	done, cancel := context.WithCancel(ctx)
	cancel()
	for _, test := range []struct {
		name    string
		ctx     context.Context
		records []*journal.Record
		want    error
	}{
		{"a gap", ctx, []*journal.Record{Record(3)}, journal.ErrSequence},
		{"a repetition", ctx, []*journal.Record{Record(1)}, journal.ErrSequence},
		{"a gap inside", ctx, []*journal.Record{insert, Record(4)}, journal.ErrSequence},
		{"a large tuple", ctx, []*journal.Record{insert, large}, journal.ErrTooLarge},
		{"an ended context", done, []*journal.Record{insert}, context.Canceled},
	} {
		_, err := j.Append(test.ctx, "g", test.records)
		wantError(t, test.name, err, test.want)
	}
	after, err := j.Head(ctx, "g")
	must(t, err)
	if before != after {
		t.Errorf("refused appends moved the head from %+v to %+v", before, after)
	}
	wantFacts(t, j, "1:a")
	must(t, j.Close())
}

// testSets: an insert of a present fact and a delete of an absent one change
// nothing, in one record, in one batch and over batches.
func testSets(t *testing.T, open Open) {
	j := opened(t, open)
	mustAppend(t, j, Record(1, Fact(1, "a"), Fact(1, "a"), Without(1, "b")))
	wantFacts(t, j, "1:a")
	mustAppend(t, j, Record(2, Fact(1, "a"), Fact(1, "b")),
		Record(3, Fact(1, "b"), Without(1, "a"), Without(1, "a")))
	wantFacts(t, j, "1:b")
	mustAppend(t, j, Record(4, Without(1, "b"), Fact(1, "b"), Without(1, "b")))
	wantFacts(t, j)
	effective := Record(5, Fact(1, "a"), Without(1, "a"), Fact(1, "a"), Fact(1, ""))
	effective.Effective = true
	mustAppend(t, j, effective)
	wantFacts(t, j, "1:", "1:a")
	must(t, j.Close())
}

func testDrops(t *testing.T, open Open) {
	j := opened(t, open)
	mustAppend(t, j, Record(1, Fact(0, "z"), Fact(1, "a"), Fact(2, "a"), Fact(1<<32-1, "a")))
	drop := Record(3, Fact(1, "new"))
	drop.Drops = []uint32{1, 1<<32 - 1, 9}
	mustAppend(t, j, Record(2, Fact(1, "b")), drop)
	wantFacts(t, j, "0:z", "1:new", "2:a")
	all := Record(4)
	all.Drops = []uint32{0, 1, 2}
	mustAppend(t, j, all)
	wantFacts(t, j)
	must(t, j.Close())
}

func testProgram(t *testing.T, open Open) {
	ctx := t.Context()
	j := opened(t, open)
	check := func(text string, revision uint64) {
		t.Helper()
		b, r, err := j.Program(ctx, "g")
		must(t, err)
		inState, err := j.State(ctx, "g", func(journal.Mutation) error { return nil })
		must(t, err)
		same := string(b) == text && r == revision && bytes.Equal(b, inState)
		if !same || (revision > 0) != (b != nil) {
			t.Errorf("program %q of %d, in state %q; want %q of %d", b, r, inState, text, revision)
		}
	}
	check("", 0)
	one, two, three := Record(1), Record(2), Record(4)
	one.Program, two.Program, three.Program = []byte("one"), []byte("two"), []byte{}
	mustAppend(t, j, one, two)
	mustAppend(t, j, Record(3))
	check("two", 2)
	must(t, j.Close())
	j = open(t)
	check("two", 2)
	_, err := j.Open(ctx, "g", Day)
	must(t, err)
	mustAppend(t, j, three)
	check("", 4)
	must(t, j.Close())
}

func testReceipts(t *testing.T, open Open) {
	ctx := t.Context()
	j := opened(t, open)
	r := Record(1, Fact(1, "a"))
	r.Caller, r.IdempotencyKey, r.Answer = "ab", "c", []byte(`{"revision":1}`)
	r.RequestHash[0] = 9
	mustAppend(t, j, r)
	must(t, j.Close())
	j = open(t)
	got, err := j.Idempotent(ctx, "g", "ab", "c")
	must(t, err)
	want := &journal.Receipt{Revision: 1, RequestHash: r.RequestHash, Answer: r.Answer}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("receipt %+v", got)
	}
	for _, other := range [][2]string{{"a", "bc"}, {"ab", "d"}, {"", "abc"}, {"ab", ""}} {
		if got, err := j.Idempotent(ctx, "g", other[0], other[1]); err != nil || got != nil {
			t.Errorf("receipt of %q: %+v, %v", other, got, err)
		}
	}
	must(t, j.Close())
}

func testReplay(t *testing.T, open Open) {
	ctx := t.Context()
	j := opened(t, open)
	full := &journal.Record{
		Revision: 2, TimeMillis: -5, Drops: []uint32{4},
		Mutations: []journal.Mutation{Fact(1, "a"), Without(2, "")},
		Program:   []byte("p"), Caller: "me", IdempotencyKey: "k",
		RequestHash: journal.Hash{7}, Answer: []byte("ok"),
	}
	head := mustAppend(t, j, Record(1), full, Record(3, Fact(1, "b")))
	must(t, j.Close())
	j = open(t)
	var seen []uint64
	for r, err := range j.Replay(ctx, "g", 0) {
		must(t, err)
		seen = append(seen, r.Revision)
		if r.Epoch != head.Epoch {
			t.Errorf("record %d of epoch %v, want %v", r.Revision, r.Epoch, head.Epoch)
		}
		if r.Revision != 2 {
			continue
		}
		got, want := fmt.Sprintf("%+v", withoutEpoch(r)), fmt.Sprintf("%+v", *full)
		if got != want {
			t.Errorf("record\n%s\nwant\n%s", got, want)
		}
	}
	if !slices.Equal(seen, []uint64{1, 2, 3}) {
		t.Errorf("replayed %d", seen)
	}
	wantReplay(t, j, 3, nil, 3)
	wantReplay(t, j, 4, nil)
	wantReplay(t, j, 5, journal.ErrGap)
	for range j.Replay(ctx, "g", 1) {
		break // a reader may leave
	}
	must(t, j.Close())
}

func withoutEpoch(r *journal.Record) journal.Record {
	copied := *r
	copied.Epoch = journal.Epoch{}
	return copied
}

func wantReplay(t *testing.T, j journal.Journal, from uint64, want error, revisions ...uint64) {
	t.Helper()
	var seen []uint64
	var last error
	for r, err := range j.Replay(t.Context(), "g", from) {
		if last = err; err == nil {
			seen = append(seen, r.Revision)
		}
	}
	if !slices.Equal(seen, revisions) || !errors.Is(last, want) {
		t.Errorf("replay from %d gave %d, %v; want %d, %v", from, seen, last, revisions, want)
	}
}

func testTrim(t *testing.T, open Open) {
	ctx := t.Context()
	j := opened(t, open)
	keyed := func(revision uint64, key string) *journal.Record {
		r := Record(revision, Fact(1, fmt.Sprint(revision)))
		r.Caller, r.IdempotencyKey = "me", key
		return r
	}
	mustAppend(t, j, keyed(1, "one"), keyed(2, "again"), keyed(3, "three"))
	mustAppend(t, j, keyed(4, "again"), keyed(5, "five"))
	must(t, j.Trim(ctx, "g", 4))
	must(t, j.Trim(ctx, "g", 2)) // forgotten already
	for key, want := range map[string]uint64{"one": 0, "three": 0, "again": 4, "five": 5} {
		got, err := j.Idempotent(ctx, "g", "me", key)
		must(t, err)
		if (got == nil) != (want == 0) || got != nil && got.Revision != want {
			t.Errorf("receipt of %q: %+v, want revision %d", key, got, want)
		}
	}
	wantReplay(t, j, 0, nil, 4, 5)
	wantReplay(t, j, 3, journal.ErrGap)
	wantFacts(t, j, "1:1", "1:2", "1:3", "1:4", "1:5")
	must(t, j.Trim(ctx, "g", 1<<60)) // the newest stays
	must(t, j.Close())
	j = open(t)
	wantReplay(t, j, 0, nil, 5)
	_, err := j.Open(ctx, "g", Day)
	must(t, err)
	mustAppend(t, j, Record(6))
	wantReplay(t, j, 0, nil, 5, 6)
	must(t, j.Close())
}

// testRecreate: nothing of a dropped graph is left but its opening number.
func testRecreate(t *testing.T, open Open) {
	ctx := t.Context()
	j := opened(t, open)
	r := Record(1, Fact(1, "a"))
	r.IdempotencyKey, r.Program = "k", []byte("p")
	mustAppend(t, j, r)
	for range 3 {
		_, err := j.NextOpening(ctx, "g", Day)
		must(t, err)
	}
	must(t, j.Drop(ctx, "g"))
	must(t, j.Close())
	j = open(t)
	must(t, j.Create(ctx, "g"))
	p, err := j.Open(ctx, "g", Day)
	must(t, err)
	if p.Opening != 2530 || p.Revision != 0 || p.Hash != (journal.Hash{}) {
		t.Errorf("opened again: %+v", p)
	}
	wantFacts(t, j)
	wantReplay(t, j, 0, nil)
	receipt, err := j.Idempotent(ctx, "g", "", "k")
	must(t, err)
	program, _, err := j.Program(ctx, "g")
	must(t, err)
	if receipt != nil || program != nil {
		t.Errorf("left over: receipt %+v, program %q", receipt, program)
	}
	mustAppend(t, j, Record(1, Fact(2, "b")))
	wantFacts(t, j, "2:b")
	must(t, j.Close())
}

// testConcurrent: graphs do not disturb each other, and readers see one revision.
func testConcurrent(t *testing.T, open Open) {
	ctx := t.Context()
	j := open(t)
	const graphs, records = 4, 25
	done := make(chan error, graphs)
	for i := range graphs {
		name := fmt.Sprint("g", i)
		must(t, j.Create(ctx, name))
		_, err := j.Open(ctx, name, Day)
		must(t, err)
		go func() { done <- writeAndRead(ctx, j, name, records) }()
	}
	for range graphs {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	must(t, j.Close())
}

// writeAndRead appends records of two facts each and, after each one, looks
// that a reader sees both of each or none.
func writeAndRead(ctx context.Context, j journal.Journal, name string, records uint64) error {
	for revision := uint64(1); revision <= records; revision++ {
		r := Record(revision, Fact(1, fmt.Sprint(revision)), Fact(2, fmt.Sprint(revision)))
		if _, err := j.Append(ctx, name, []*journal.Record{r}); err != nil {
			return err
		}
		facts := uint64(0)
		count := func(journal.Mutation) error { facts++; return nil }
		if _, err := j.State(ctx, name, count); err != nil {
			return err
		}
		if facts != 2*revision {
			return fmt.Errorf("%s: %d facts at revision %d", name, facts, revision)
		}
	}
	return nil
}

func testClosed(t *testing.T, open Open) {
	ctx := t.Context()
	j := opened(t, open)
	must(t, j.Close())
	wantError(t, "close twice", j.Close(), journal.ErrClosed)
	_, err := j.Head(ctx, "g")
	wantError(t, "head", err, journal.ErrClosed)
	_, err = j.Append(ctx, "g", []*journal.Record{Record(1)})
	wantError(t, "append", err, journal.ErrClosed)
	wantError(t, "create", j.Create(ctx, "h"), journal.ErrClosed)
	wantError(t, "drop", j.Drop(ctx, "g"), journal.ErrClosed)
	wantError(t, "trim", j.Trim(ctx, "g", 1), journal.ErrClosed)
	_, err = j.Graphs(ctx)
	wantError(t, "graphs", err, journal.ErrClosed)
	for _, err := range j.Replay(ctx, "g", 0) {
		wantError(t, "replay", err, journal.ErrClosed)
	}
}
