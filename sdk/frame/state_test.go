package frame

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

var randomMeta = &Meta{
	View: "v", Columns: []Column{{Name: "n", Type: Int}, {Name: "s", Type: String}},
}

// writer is a correct but simple publisher: it keeps the history of a set of
// rows and writes each publication as it pleases, as a group of its own, as a
// snapshot in parts, or as a delta appended to the open group.
type writer struct {
	random   *rand.Rand
	history  map[uint64][]Row // rows at each published revision
	rows     []Row
	revision uint64
	sequence uint64
	index    uint64
}

type sentFrame struct {
	sequence, index uint64
	payload         []byte
}

func (w *writer) publish() []sentFrame {
	base, before := w.revision, w.rows
	w.revision += 1 + w.random.Uint64N(3)
	after := slices.Clone(before)
	for range w.random.IntN(4) {
		r := Row{w.random.Int64N(6) << 51, string(rune('a' + w.random.IntN(3)))}
		if at, found := slices.BinarySearchFunc(after, r, Compare); found {
			after = slices.Delete(after, at, at+1)
		} else {
			after = slices.Insert(after, at, r)
		}
	}
	w.rows = after
	w.history[w.revision] = after
	entered, left := difference(before, after)
	h := Header{Revision: w.revision, Epoch: "e", Schema: 1}
	if base > 0 && w.random.IntN(2) == 0 {
		w.index++
		b := AppendBase(AppendFrameStart(nil, h), base)
		b = appendAll(AppendInsertStart(b), entered)
		b = appendAll(AppendRetractStart(b), left)
		return []sentFrame{{w.sequence, w.index, AppendFrameEnd(b)}}
	}
	w.sequence += 1 + w.random.Uint64N(3)
	w.index = 0
	var out []sentFrame
	for len(after) > 2 && w.random.IntN(2) == 0 {
		n := 1 + w.random.IntN(len(after)-1)
		b := appendAll(AppendSnapshotStart(AppendFrameStart(nil, h)), after[:n])
		out = append(out, sentFrame{w.sequence, w.index, AppendFrameEnd(b)})
		after = after[n:]
		w.index++
	}
	b := AppendLast(appendAll(AppendSnapshotStart(AppendFrameStart(nil, h)), after))
	if base > 0 && w.random.IntN(4) > 0 {
		b = AppendBase(b, base)
		b = appendAll(AppendInsertStart(b), entered)
		b = appendAll(AppendRetractStart(b), left)
	}
	return append(out, sentFrame{w.sequence, w.index, AppendFrameEnd(b)})
}

func appendAll(dst []byte, rows []Row) []byte {
	for _, r := range rows {
		dst = AppendRow(dst, r)
	}
	return AppendRowsEnd(dst)
}

// A reader that loses frames and gets groups late holds, after every frame, the
// exact rows of the revision that it names, and its changes add up to them.
func TestStateIsExactWhateverIsLost(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		w := &writer{random: random, history: map[uint64][]Row{}}
		loss := random.IntN(4)
		var frames, late []sentFrame
		for range 40 {
			for _, f := range w.publish() {
				switch {
				case loss > 0 && random.IntN(6) < loss:
				case loss > 1 && random.IntN(8) == 0:
					late = append(late, f)
				default:
					frames = append(frames, f)
				}
			}
			if random.IntN(5) == 0 {
				frames = append(frames, late...)
				late = nil
			}
		}
		readExactly(t, w, frames)
	}
}

func readExactly(t *testing.T, w *writer, frames []sentFrame) {
	t.Helper()
	var s State
	var replayed []Row
	for _, sent := range frames {
		f, err := ParseFrame(sent.payload, randomMeta)
		if err != nil {
			t.Fatal(err)
		}
		held := s.Revision()
		c := s.Apply(sent.sequence, sent.index, f)
		if c.Outcome != Applied {
			if c.Entered != nil || c.Left != nil || s.Revision() != held {
				t.Fatalf("outcome %v changed the state: %+v", c.Outcome, c)
			}
			continue
		}
		next, ok := patched(replayed, c.Entered, c.Left)
		if !ok {
			t.Fatalf("at %d: +%v -%v do not fit %v", s.Revision(), c.Entered, c.Left, replayed)
		}
		replayed = next
		want := w.history[s.Revision()]
		if s.Revision() < held || !sameRows(s.Rows(), want) || !sameRows(replayed, want) {
			t.Fatalf("revision %d after %d: rows %v, replayed %v, want %v\n%s",
				s.Revision(), held, s.Rows(), replayed, want, sent.payload)
		}
	}
}

func sameRows(a, b []Row) bool {
	return slices.EqualFunc(a, b, func(a, b Row) bool { return Compare(a, b) == 0 })
}

func TestStateHandsOutRowsToKeep(t *testing.T) {
	var s State
	apply := func(group uint64, text string) Change {
		t.Helper()
		f, err := ParseFrame([]byte(text), randomMeta)
		if err != nil {
			t.Fatal(err)
		}
		return s.Apply(group, 0, f)
	}
	apply(1, `{"revision":1,"epoch":"e","snapshot":[[1,"a"],[2,"b"]],"last":true}`)
	kept := s.Rows()
	apply(2, `{"revision":2,"epoch":"e","base":1,"insert":[[0,"z"],[3,"c"]],"retract":[[1,"a"]]}`)
	if want := []Row{{int64(1), "a"}, {int64(2), "b"}}; !reflect.DeepEqual(kept, want) {
		t.Errorf("rows handed out before changed to %v", kept)
	}
	want := []Row{{int64(0), "z"}, {int64(2), "b"}, {int64(3), "c"}}
	if !reflect.DeepEqual(s.Rows(), want) {
		t.Errorf("rows %v", s.Rows())
	}
	if sequence, ok := s.Sequence(); !ok || sequence != 2 || !s.Held() || s.Epoch() != "e" {
		t.Errorf("sequence %d %v, held %v, epoch %q", sequence, ok, s.Held(), s.Epoch())
	}
}

func TestCompare(t *testing.T) {
	ascending := []Row{
		{},
		{int64(-1)},
		{int64(0)},
		{int64(0), int64(5)},
		{int64(1)},
		{1.0},
		{1.5},
		{int64(2)},
		{""},
		{"B"},
		{"a"},
		{"a", int64(0)},
		{"～"},
		{"🧵"},
		{false},
		{true},
	}
	for i, a := range ascending {
		for j, b := range ascending {
			if got := Compare(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("Compare(%v, %v) = %d", a, b, got)
			}
		}
	}
}

// fuzzMetas are what FuzzParseFrame reads frames by.
var fuzzMetas = []*Meta{
	nil,
	{
		View: "v", Columns: []Column{
			{Name: "n", Type: Int},
			{Name: "f", Type: Float},
			{Name: "s", Type: String},
			{Name: "b", Type: Bool},
		},
		Parts: []Part{{"links", []Column{{Name: "Y", Type: Int}}}},
	},
	{
		View: "v", Columns: []Column{
			{Name: "d", Type: BytesType},
			{Name: "t", Type: TimestampType},
			{Name: "n", Type: Int, Nullable: true},
		},
	},
}

// FuzzParseFrame checks that no bytes cause a panic, here or in State, and that
// what was read is written and read again as the same.
func FuzzParseFrame(f *testing.F) {
	for _, v := range readStateVectors(f) {
		for _, s := range v.Steps {
			for meta := range fuzzMetas {
				f.Add(s.payload(f), uint8(meta))
			}
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte, which uint8) {
		meta := fuzzMetas[int(which)%len(fuzzMetas)]
		first, err := ParseFrame(payload, meta)
		if err != nil {
			return
		}
		first.Epoch = "" // one that was read may hold what a writer never sends
		written := appendFrame(nil, first)
		second, err := ParseFrame(written, meta)
		if err != nil {
			t.Fatalf("%q is written as %q, which fails: %v", payload, written, err)
		}
		if again := appendFrame(nil, second); string(again) != string(written) {
			t.Fatalf("%q is written as %q, then as %q", payload, written, again)
		}
		var s State
		s.Apply(1, 0, first)
		s.Apply(1, 1, second)
		s.Apply(2, 0, first)
	})
}

// appendFrame writes a parsed frame in the canonical order of members.
func appendFrame(dst []byte, f *Frame) []byte {
	dst = AppendFrameStart(dst, f.Header)
	dst = appendSnapshotOf(dst, f.Rows)
	units := func(dst []byte, units []Unit) []byte {
		for _, u := range units {
			dst = appendSnapshotOf(AppendUnitStart(dst, u.Name), u.Rows)
			dst = AppendUnitEnd(appendChangesOf(dst, u.Rows))
		}
		return AppendUnitsEnd(dst)
	}
	if f.Parts != nil {
		dst = units(AppendPartsStart(dst), f.Parts)
	}
	if f.Keys != nil {
		dst = units(AppendKeysStart(dst), f.Keys)
	}
	if f.Last {
		dst = AppendLast(dst)
	}
	if f.HasBase {
		dst = AppendBase(dst, f.Base)
	}
	return AppendFrameEnd(appendChangesOf(dst, f.Rows))
}

func appendSnapshotOf(dst []byte, r Rows) []byte {
	if !r.HasSnapshot {
		return dst
	}
	return appendAll(AppendSnapshotStart(dst), r.Snapshot)
}

func appendChangesOf(dst []byte, r Rows) []byte {
	if r.Insert != nil {
		dst = appendAll(AppendInsertStart(dst), r.Insert)
	}
	if r.Retract != nil {
		dst = appendAll(AppendRetractStart(dst), r.Retract)
	}
	if r.Stale != nil {
		dst = AppendStale(dst, *r.Stale)
	}
	if r.Closed != nil {
		dst = AppendClosed(dst, *r.Closed)
	}
	return dst
}
