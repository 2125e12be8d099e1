package pebble

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/journal/conformance"
	"github.com/heddle-live/heddle/host/journal/internal/golden"
)

func vectorHead() head {
	return head{
		Position: journal.Position{
			Opening:  2526,
			Epoch:    journal.NewEpoch(time.UnixMilli(1_798_000_000_123), [10]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}),
			Revision: 300, Hash: sha256.Sum256([]byte("record 300")),
		},
		first: 7, facts: journal.FactSet{Count: 41, Sum: 0x0123456789abcdef}, programRevision: 300,
	}
}

func TestHeadVector(t *testing.T) {
	h := vectorHead()
	b := appendHead(nil, &h)
	golden.Check(t, "head", golden.Vector{
		Comment: "the value of a head key", Bytes: b, Fields: fmt.Sprintf(
			"opening %d\nepoch %v\nrevision %d\nhash %x\noldest record %d\nfacts %d, sum %016x\nprogram of revision %d",
			h.Opening, h.Epoch, h.Revision, h.Hash, h.first, h.facts.Count, h.facts.Sum, h.programRevision),
	})
	parsed, err := parseHead(b)
	if err != nil || parsed != h {
		t.Errorf("parsed %+v, %v; want %+v", parsed, err, h)
	}
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 1
		if _, err := parseHead(damaged); err == nil {
			t.Errorf("byte %d changed unnoticed", i)
		}
		if _, err := parseHead(b[:i]); err == nil {
			t.Errorf("cut to %d bytes unnoticed", i)
		}
	}
}

func TestHeadImpossible(t *testing.T) {
	for name, change := range map[string]func(*head){
		"no first record":        func(h *head) { h.first = 0 },
		"first beyond newest":    func(h *head) { h.first = 301 },
		"program beyond newest":  func(h *head) { h.programRevision = 301 },
		"opening over its limit": func(h *head) { h.Opening = journal.OpeningMax + 1 },
	} {
		h := vectorHead()
		change(&h)
		if _, err := parseHead(appendHead(nil, &h)); err == nil || !strings.Contains(err.Error(), "impossible") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReceiptVector(t *testing.T) {
	r := journal.Record{Revision: 300, RequestHash: sha256.Sum256([]byte("body")), Answer: []byte(`{"revision":300}`)}
	b := appendReceipt(nil, &r)
	golden.Check(t, "receipt", golden.Vector{
		Comment: "the value of a receipt key", Bytes: b,
		Fields: fmt.Sprintf("revision %d\nrequest hash %x\nanswer %q", r.Revision, r.RequestHash, r.Answer),
	})
	parsed, err := parseReceipt(b)
	want := journal.Receipt{Revision: r.Revision, RequestHash: r.RequestHash, Answer: r.Answer}
	if err != nil || !reflect.DeepEqual(parsed, want) {
		t.Errorf("parsed %+v, %v; want %+v", parsed, err, want)
	}
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 1
		if _, err := parseReceipt(damaged); err == nil {
			t.Errorf("byte %d changed unnoticed", i)
		}
	}
}

// TestStoreVector pins every key and value that a small graph leaves.
func TestStoreVector(t *testing.T) {
	j := openGraph(t, vfs.NewMem(), "/j")
	defer j.Close()
	g := j.graphs["g"]
	g.head.Epoch = vectorHead().Epoch // not the random one
	row := journal.AppendTuple(nil, []value.Value{value.OfInt(1), value.OfString("a")})
	records := []*journal.Record{
		{Revision: 1, TimeMillis: 1_798_000_000_123, Program: []byte("+edge(src: int, dst: string)\n")},
		{
			Revision: 2, TimeMillis: 1_798_000_000_124, Caller: "me", IdempotencyKey: "k1", Answer: []byte("ok"),
			Mutations: []journal.Mutation{{Relation: 1, Tuple: row}},
		},
	}
	if _, err := j.Append(t.Context(), "g", records); err != nil {
		t.Fatal(err)
	}
	if err := j.Create(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	j.graphs["old"].head.Opening = 2526
	if err := j.Drop(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "store", golden.Vector{Comment: "every key and value of a journal with one small graph", Fields: dump(t, j.db)})
}

// dump returns a line for each key and value of a store.
func dump(t *testing.T, db *pebble.DB) string {
	t.Helper()
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var b strings.Builder
	for ok := it.First(); ok; ok = it.Next() {
		fmt.Fprintf(&b, "%q\n  %x\n", it.Key(), it.Value())
	}
	if err := it.Error(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWitnessVector(t *testing.T) {
	entries := map[string]witnessEntry{
		"shop":  {2526, 300, sha256.Sum256([]byte("record 300"))},
		"empty": {2527, 0, journal.Hash{}},
	}
	b := appendWitness(nil, entries)
	golden.Check(t, "witness", golden.Vector{Comment: "a witness file", Bytes: b, Fields: string(b)})
	parsed, err := parseWitness(b)
	if err != nil || !reflect.DeepEqual(parsed, entries) {
		t.Errorf("parsed %v, %v", parsed, err)
	}
	for i := range b {
		damaged := bytes.Clone(b)
		damaged[i] ^= 1
		if _, err := parseWitness(damaged); err == nil {
			t.Errorf("byte %d changed unnoticed", i)
		}
		if _, err := parseWitness(b[:i]); err == nil {
			t.Errorf("cut to %d bytes unnoticed", i)
		}
	}
}

func FuzzParseWitness(f *testing.F) {
	f.Add([]byte("heddle-journal witness 1\na 1 2 " + strings.Repeat("00", 32) + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = fmt.Appendf(b, "crc32c %08x\n", journal.Checksum(b))
		entries, err := parseWitness(b)
		if err != nil {
			return
		}
		again, err := parseWitness(appendWitness(nil, entries))
		if err != nil || !reflect.DeepEqual(again, entries) {
			t.Errorf("parsed again %v, %v; first %v", again, err, entries)
		}
	})
}

func FuzzParseHead(f *testing.F) {
	h := vectorHead()
	f.Add(appendHead(nil, &h))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := len(b) - 4; n >= 0 {
			b = binary.BigEndian.AppendUint32(bytes.Clone(b[:n]), journal.Checksum(b[:n]))
		}
		h, err := parseHead(b)
		if err != nil {
			return
		}
		if again := appendHead(nil, &h); !bytes.Equal(again, b) {
			t.Errorf("parsed and appended: %x, from %x", again, b)
		}
	})
}

func TestAppendAllocations(t *testing.T) {
	if checkPromises {
		t.Skip("checked promises read, and reads allocate")
	}
	j := openGraph(t, vfs.NewMem(), "/j")
	defer j.Close()
	var o oneFact
	for range 100 {
		o.next(t, j)
	}
	if n := testing.AllocsPerRun(2000, func() { o.next(t, j) }); n != 0 {
		t.Errorf("%v allocations for a record of one fact", n)
	}
}

// TestLargeRecord: a load of many facts goes in and leaves no large buffer.
func TestLargeRecord(t *testing.T) {
	j := openGraph(t, vfs.NewMem(), "/j")
	defer j.Close()
	r := &journal.Record{Revision: 1, Effective: true}
	const n = 300_000
	for i := range int64(n) {
		row := [2]value.Value{value.OfInt(i), value.OfString("some text that is not very short")}
		r.Mutations = append(r.Mutations, journal.Mutation{Relation: 1, Tuple: journal.AppendTuple(nil, row[:])})
	}
	if _, err := j.Append(t.Context(), "g", []*journal.Record{r}); err != nil {
		t.Fatal(err)
	}
	if got := len(conformance.Facts(t, j, "g")); got != n {
		t.Errorf("%d facts, want %d", got, n)
	}
	if g := j.graphs["g"]; cap(g.value) > bufferBytesMax || cap(g.key) > bufferBytesMax {
		t.Errorf("buffers of %d and %d bytes are kept", cap(g.value), cap(g.key))
	}
	if _, err := j.Append(t.Context(), "g", []*journal.Record{conformance.Record(2)}); err != nil {
		t.Fatal(err)
	}
}
