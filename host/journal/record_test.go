package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/journal/internal/golden"
)

var vectorTime = time.UnixMilli(1_798_000_000_123)

func vectorEpoch() Epoch {
	return NewEpoch(vectorTime, [10]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
}

// vectorRecords are the records of the vectors, by file name.
func vectorRecords() map[string]Record {
	row := AppendTuple(nil, []value.Value{value.OfInt(1), value.OfInt(2)})
	text := AppendTuple(nil, []value.Value{value.OfString("a\x00b"), value.OfBool(true)})
	return map[string]Record{
		"record-empty": {Revision: 1, Epoch: vectorEpoch()},
		"record-fact": {
			Revision: 2, TimeMillis: 1_798_000_000_123, Epoch: vectorEpoch(),
			Mutations: []Mutation{{Relation: 1, Tuple: row}},
		},
		"record-full": {
			Revision: 300, TimeMillis: -1, Epoch: vectorEpoch(), Drops: []uint32{5, 200},
			Mutations: []Mutation{{Relation: 200, Tuple: text}, {Relation: 1, Tuple: row, Delete: true}},
			Program:   []byte("+edge(src: int, dst: int)\n"), Caller: "loader", IdempotencyKey: "job-7",
			RequestHash: sha256.Sum256([]byte("body")), Answer: []byte(`{"revision":300}`),
		},
	}
}

func recordFields(previous Hash, r *Record, b []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "previous %x\nepoch %s\nrevision %d\ntime %d ms\n", previous, r.Epoch, r.Revision, r.TimeMillis)
	for _, d := range r.Drops {
		fmt.Fprintf(&s, "drop relation %d\n", d)
	}
	for _, m := range r.Mutations {
		sign := "+"
		if m.Delete {
			sign = "-"
		}
		fmt.Fprintf(&s, "%s relation %d tuple %x\n", sign, m.Relation, m.Tuple)
	}
	fmt.Fprintf(&s, "caller %q\nidempotency key %q\nrequest hash %x\nanswer %q\n",
		r.Caller, r.IdempotencyKey, r.RequestHash, r.Answer)
	if r.Program != nil {
		fmt.Fprintf(&s, "program %q\n", r.Program)
	}
	fmt.Fprintf(&s, "hash %x\n", sha256.Sum256(b))
	return s.String()
}

func TestRecordVectors(t *testing.T) {
	for name, r := range vectorRecords() {
		t.Run(name, func(t *testing.T) {
			previous := Hash(sha256.Sum256([]byte("the record before")))
			b := AppendRecord(nil, &previous, &r)
			golden.Check(t, name, golden.Vector{
				Comment: "a record of format 1", Bytes: b, Fields: recordFields(previous, &r, b),
			})
			var parsed Record
			p, err := ParseRecord(&parsed, b)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := recordFields(p, &parsed, b), recordFields(previous, &r, b); got != want {
				t.Errorf("parsed\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestRecordDamage: no byte of a record can be changed, cut or added unnoticed.
func TestRecordDamage(t *testing.T) {
	for name, r := range vectorRecords() {
		b := AppendRecord(nil, &Hash{}, &r)
		var parsed Record
		for i := range b {
			damaged := bytes.Clone(b)
			damaged[i] ^= 0x10
			if _, err := ParseRecord(&parsed, damaged); !errors.Is(err, ErrRecord) {
				t.Errorf("%s: byte %d changed: %v", name, i, err)
			}
			if _, err := ParseRecord(&parsed, b[:i]); !errors.Is(err, ErrRecord) {
				t.Errorf("%s: cut to %d bytes: %v", name, i, err)
			}
		}
		if _, err := ParseRecord(&parsed, append(bytes.Clone(b), 0)); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: one byte more: %v", name, err)
		}
	}
}

func TestRecordCheck(t *testing.T) {
	for _, test := range []struct {
		name string
		r    Record
		want string
	}{
		{"caller", Record{Caller: strings.Repeat("a", 257)}, "caller: 257 bytes, at most 256"},
		{"key", Record{IdempotencyKey: strings.Repeat("a", 257)}, "idempotency key: 257 bytes"},
		{"answer", Record{IdempotencyKey: "k", Answer: make([]byte, 64<<10+1)}, "answer: 65537 bytes"},
		{"program", Record{Program: make([]byte, 4<<20+1)}, "program: 4194305 bytes"},
		{"tuple", Record{Mutations: []Mutation{{}, {Tuple: make([]byte, 1<<20+1)}}}, "tuple of mutation 1"},
		{"drops", Record{Drops: make([]uint32, 1<<16+1)}, "drops: 65537, at most 65536"},
		{"no key", Record{Answer: []byte("x")}, "without an idempotency key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := test.r.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	big := make([]byte, TupleBytesMax)
	r := Record{}
	for range RecordBytesMax/TupleBytesMax + 1 {
		r.Mutations = append(r.Mutations, Mutation{Tuple: big})
	}
	if err := r.Check(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("record over its limit: %v", err)
	}
}

func TestRecordAllocations(t *testing.T) {
	r := vectorRecords()["record-fact"]
	var parsed Record
	var b []byte
	if n := testing.AllocsPerRun(100, func() {
		b = AppendRecord(b[:0], &Hash{}, &r)
		if _, err := ParseRecord(&parsed, b); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, r := range vectorRecords() {
		f.Add(AppendRecord(nil, &Hash{}, &r)[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Record
		// Mended, or nearly nothing would get past the checksum.
		if n := len(b) - 4; n >= 0 {
			sum := Checksum(b[:n])
			b = append(bytes.Clone(b[:n]), byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
		}
		previous, err := ParseRecord(&r, b)
		if err != nil {
			if !errors.Is(err, ErrRecord) {
				t.Errorf("error %v is no ErrRecord", err)
			}
			return
		}
		if err := r.Check(); err != nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("parsed, and not to be written: %v", err)
		}
		if again := AppendRecord(nil, &previous, &r); !bytes.Equal(again, b) {
			t.Errorf("parsed and appended: %x, from %x", again, b)
		}
	})
}

func TestSequence(t *testing.T) {
	for _, test := range []struct {
		opening, publication, want uint64
		ok                         bool
	}{
		{0, 0, 0, true},
		{2526, 7, 2526<<36 + 7, true},
		{1<<17 - 1, 1<<36 - 1, 1<<53 - 1, true},
		{1, 1 << 36, 0, false},
		{1 << 17, 0, 0, false},
	} {
		got, ok := Sequence(test.opening, test.publication)
		if got != test.want || ok != test.ok {
			t.Errorf("Sequence(%d, %d) = %d, %v", test.opening, test.publication, got, ok)
		}
	}
}

func TestNextOpening(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2020, 1, 1+n, 23, 0, 0, 0, time.UTC) }
	for _, test := range []struct {
		name     string
		previous uint64
		now      time.Time
		want     uint64
		err      error
	}{
		{"first", 0, day(2526), 2526, nil},
		{"same day", 2526, day(2526), 2527, nil},
		{"ahead of the days", 9000, day(2526), 9001, nil},
		{"next day", 2526, day(2527), 2527, nil},
		{"clock before 2020", 0, day(-4000), 1, nil},
		{"zero clock", 5, time.Time{}, 6, nil},
		{"clock far ahead", 5, time.Date(2900, 1, 1, 0, 0, 0, 0, time.UTC), 6, nil},
		{"last", OpeningMax - 1, day(1), OpeningMax, nil},
		{"none left", OpeningMax, day(1), 0, ErrExhausted},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := NextOpening(test.previous, test.now)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%d, %v; want %d, %v", got, err, test.want, test.err)
			}
		})
	}
}

func TestEpoch(t *testing.T) {
	if got, want := vectorEpoch().String(), "01a2a126-bc7b-7102-8304-05060708090a"; got != want {
		t.Errorf("epoch %s, want %s", got, want)
	}
}

func TestDamageError(t *testing.T) {
	cause := errors.New("cause")
	err := error(&DamageError{
		Kind: ErrGap, Graph: "g", Where: "record 7", What: "it is missing", Remedy: "restore", Cause: cause,
	})
	want := `journal: revisions are missing: graph "g": record 7: it is missing: cause; restore`
	if err.Error() != want || !errors.Is(err, ErrGap) || !errors.Is(err, cause) || errors.Is(err, ErrCorrupt) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestFactSet(t *testing.T) {
	var s, other FactSet
	for i := range byte(200) {
		s.Add([]byte{i})
		other.Add([]byte{199 - i})
	}
	if s != other {
		t.Errorf("order matters: %+v, %+v", s, other)
	}
	for i := range byte(200) {
		s.Remove([]byte{i})
	}
	if !reflect.DeepEqual(s, FactSet{}) {
		t.Errorf("not empty again: %+v", s)
	}
}
