package views

import (
	"fmt"
	"testing"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/sdk/frame"
)

func ints(from, to int) []value.Value {
	var flat []value.Value
	for i := from; i < to; i++ {
		flat = append(flat, value.OfInt(int64(i)))
	}
	return flat
}

// read applies the frames of one group.
func read(t *testing.T, s *frame.State, sequence uint64, frames []moq.Frame) frame.Change {
	t.Helper()
	var c frame.Change
	for i, f := range frames {
		parsed, err := frame.ParseFrame(f.Payload, nil)
		if err != nil {
			t.Fatalf("%v: %s", err, f.Payload)
		}
		c = s.Apply(sequence, uint64(i), parsed)
		if want := i < len(frames)-1; want != (c.Outcome == frame.Partial) {
			t.Fatalf("frame %d of %d: %v: %s", i, len(frames), c.Outcome, f.Payload)
		}
	}
	return c
}

func TestNamedPartsAreOneFrame(t *testing.T) {
	var e encoder
	turn := &ingest.Turn{Epoch: "e", Schema: 3}
	units := []unitRows{{name: "a", width: 1, rows: ints(1, 3)}, {name: "b", width: 2}}
	frames := e.group(turn, publication{revision: 5}, units, 1000)
	want := `{"revision":5,"epoch":"e","schema":3,"parts":` +
		`{"a":{"snapshot":[[1],[2]]},"b":{"snapshot":[]}},"last":true}`
	if len(frames) != 1 || string(frames[0].Payload) != want {
		t.Errorf("%s", frames[0].Payload)
	}
	units[1].rows = ints(7, 9)
	frames = e.group(turn, publication{revision: 6, base: 5, changes: []engine.Change{
		{}, {Insert: ints(7, 9)},
	}}, units, 1000)
	want = `{"revision":6,"epoch":"e","schema":3,"parts":` +
		`{"a":{"snapshot":[[1],[2]],"insert":[],"retract":[]},` +
		`"b":{"snapshot":[[7,8]],"insert":[[7,8]],"retract":[]}},"last":true,"base":5}`
	if len(frames) != 1 || string(frames[0].Payload) != want {
		t.Errorf("%s", frames[0].Payload)
	}
}

func TestLargeNamedPartsComeInPieces(t *testing.T) {
	turn := &ingest.Turn{Epoch: "e", Schema: 3}
	for _, test := range []struct {
		a, b, inserted, pieceBytes int
		base                       bool
	}{
		{a: 100, b: 100, inserted: 3, pieceBytes: 300, base: true},
		{a: 100, b: 0, inserted: 1, pieceBytes: 300, base: true},
		{a: 0, b: 100, inserted: 99, pieceBytes: 300},
		{a: 90, b: 2, inserted: 60, pieceBytes: 600, base: true},
	} {
		var e encoder
		var s frame.State
		name := fmt.Sprintf("%+v", test)
		before := []unitRows{
			{name: "a", width: 1, rows: ints(test.inserted, test.a)},
			{name: "b", width: 1, rows: ints(0, test.b)},
		}
		read(t, &s, 1, e.group(turn, publication{revision: 5}, before, test.pieceBytes))
		after := []unitRows{{name: "a", width: 1, rows: ints(0, max(test.a, test.inserted))}, before[1]}
		frames := e.group(turn, publication{revision: 6, base: 5, changes: []engine.Change{
			{Insert: ints(0, test.inserted)}, {},
		}}, after, test.pieceBytes)
		for i, f := range frames {
			if len(f.Payload) > test.pieceBytes+16 {
				t.Errorf("%s: frame %d has %d bytes", name, i, len(f.Payload))
			}
		}
		last, _ := frame.ParseFrame(frames[len(frames)-1].Payload, nil)
		if len(frames) < 2 || last.HasBase != test.base {
			t.Errorf("%s: %d frames, base %v", name, len(frames), last.HasBase)
		}
		c := read(t, &s, 2, frames)
		if len(c.Units) == 0 || len(c.Units[0].Entered) != test.inserted || len(c.Units[0].Left) > 0 {
			t.Errorf("%s: %+v", name, c)
		}
		if got := len(s.UnitRows("a")); got != max(test.a, test.inserted) {
			t.Errorf("%s: %d rows of a", name, got)
		}
		if got := len(s.UnitRows("b")); got != test.b {
			t.Errorf("%s: %d rows of b", name, got)
		}
	}
}
