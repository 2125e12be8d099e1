package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/journal/conformance"
)

// openGraph returns a journal with one open graph "g".
func openGraph(t testing.TB, fs vfs.FS, dir string) *Journal {
	t.Helper()
	j, err := Open(dir, Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Create(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Open(t.Context(), "g", conformance.Day); err != nil {
		t.Fatal(err)
	}
	return j
}

// oneFact appends record after record of one fact each.
type oneFact struct {
	row     [2]value.Value
	tuple   []byte
	change  [1]journal.Mutation
	record  journal.Record
	records [1]*journal.Record
}

func (o *oneFact) next(t testing.TB, j *Journal) {
	o.record.Revision++
	o.record.TimeMillis = 1_780_000_000_000
	o.record.Effective = true
	o.row = [2]value.Value{value.OfInt(int64(o.record.Revision % 1000)), value.OfInt(int64(o.record.Revision))}
	o.tuple = journal.AppendTuple(o.tuple[:0], o.row[:])
	o.change[0] = journal.Mutation{Relation: 1, Tuple: o.tuple}
	o.record.Mutations = o.change[:]
	o.records[0] = &o.record
	if _, err := j.Append(t.Context(), "g", o.records[:]); err != nil {
		t.Fatal(err)
	}
}

// bareBatch does what oneFact needs from the store and nothing else: one synced
// batch of three keys of the same sizes.
func bareBatch(t testing.TB, db *pebble.DB, revision uint64) {
	var buffer [64]byte
	var value [160]byte
	b := db.NewBatch()
	key := binary.BigEndian.AppendUint64(append(buffer[:0], "g/x/t/"...), revision)
	if err := b.Set(key, value[:119], nil); err != nil {
		t.Fatal(err)
	}
	key = append(buffer[:0], "g/x/f/\x00\x00\x00\x01"...)
	key = append(binary.BigEndian.AppendUint64(append(key, 1), revision%1000), 1)
	key = binary.BigEndian.AppendUint64(key, revision)
	if err := b.Set(key, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Set([]byte("g/x/h"), value[:headBytes], nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkAppend measures a transaction of one fact, on the disk.
func BenchmarkAppend(b *testing.B) {
	j := openGraph(b, nil, b.TempDir())
	defer j.Close()
	var o oneFact
	b.ReportAllocs()
	for b.Loop() {
		o.next(b, j)
	}
}

// BenchmarkAppendBare measures the floor under BenchmarkAppend.
func BenchmarkAppendBare(b *testing.B) {
	j := openGraph(b, nil, b.TempDir())
	defer j.Close()
	revision := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		revision++
		bareBatch(b, j.db, revision)
	}
}

// BenchmarkAppendOverBare does both in turn, so that the noise of the disk falls
// on both alike, and reports the ratio of their medians.
func BenchmarkAppendOverBare(b *testing.B) {
	for _, storage := range []struct {
		name string
		fs   vfs.FS
	}{{"disk", nil}, {"memory", vfs.NewMem()}} {
		b.Run(storage.name, func(b *testing.B) {
			j := openGraph(b, storage.fs, b.TempDir())
			defer j.Close()
			var o oneFact
			var ours, bare []time.Duration
			revision := uint64(0)
			for b.Loop() {
				start := time.Now()
				o.next(b, j)
				middle := time.Now()
				revision++
				bareBatch(b, j.db, revision)
				ours = append(ours, middle.Sub(start))
				bare = append(bare, time.Since(middle))
			}
			slices.Sort(ours)
			slices.Sort(bare)
			median, floor := ours[len(ours)/2], bare[len(bare)/2]
			b.ReportMetric(float64(median.Nanoseconds()), "append-p50-ns")
			b.ReportMetric(float64(floor.Nanoseconds()), "bare-p50-ns")
			b.ReportMetric(float64(median)/float64(floor), "append/bare")
		})
	}
}

// BenchmarkLoad measures records of a thousand new facts each.
func BenchmarkLoad(b *testing.B) {
	for _, effective := range []bool{true, false} {
		b.Run(fmt.Sprintf("effective=%v", effective), func(b *testing.B) {
			j := openGraph(b, nil, b.TempDir())
			defer j.Close()
			r := &journal.Record{Effective: effective, Mutations: make([]journal.Mutation, 1000)}
			n := int64(0)
			for b.Loop() {
				r.Revision++
				for i := range r.Mutations {
					n++
					row := []value.Value{value.OfInt(n * 7919 % 1_000_003), value.OfInt(n)}
					r.Mutations[i] = journal.Mutation{Relation: 1, Tuple: journal.AppendTuple(nil, row)}
				}
				if _, err := j.Append(b.Context(), "g", []*journal.Record{r}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "facts/s")
		})
	}
}

// BenchmarkState measures opening a journal of 300,000 facts and visiting them.
func BenchmarkState(b *testing.B) {
	dir := b.TempDir()
	j := openGraph(b, nil, dir)
	const facts = 300_000
	r := &journal.Record{Effective: true}
	for n := int64(0); n < facts; {
		r.Revision++
		r.Mutations = r.Mutations[:0]
		for range 10_000 {
			n++
			row := []value.Value{value.OfInt(n * 7919 % 1_000_003), value.OfInt(n)}
			tuple := journal.AppendTuple(nil, row)
			r.Mutations = append(r.Mutations, journal.Mutation{Relation: 1, Tuple: tuple})
		}
		if _, err := j.Append(b.Context(), "g", []*journal.Record{r}); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	var row []value.Value
	for b.Loop() {
		j, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		_, err = j.State(b.Context(), "g", func(m journal.Mutation) (err error) {
			row, err = journal.ParseTuple(row[:0], m.Tuple)
			return err
		})
		if err := errors.Join(err, j.Close()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(facts*float64(b.N)/b.Elapsed().Seconds(), "facts/s")
}
