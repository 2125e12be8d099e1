package engine

import (
	"testing"

	"github.com/heddle-live/heddle/engine/value"
)

// TestQuerySymbols gives ids to values that a graph knows and to many that it does not.
func TestQuerySymbols(t *testing.T) {
	in := value.NewInterner()
	known, err := in.Intern(value.OfString("known"))
	if err != nil {
		t.Fatal(err)
	}
	s := &querySymbols{interner: in}
	ids := map[value.ID]value.Value{}
	for round := range 2 {
		for i := range 1000 {
			v := value.OfInt(int64(-1 - i))
			id, err := s.ID(v)
			if err != nil {
				t.Fatal(err)
			}
			if have, ok := ids[id]; ok != (round > 0) || ok && have != v {
				t.Fatalf("%v has the id %#x of %v", v, id, have)
			}
			ids[id] = v
			if !s.isExtra(id) || s.Value(id) != v {
				t.Fatalf("id %#x stands for %v, want %v", id, s.Value(id), v)
			}
		}
	}
	for _, v := range []value.Value{
		value.OfString("known"), value.OfNull(), value.OfBool(false), value.OfBool(true), value.OfInt(7),
	} {
		id, err := s.ID(v)
		if err != nil || s.isExtra(id) || s.Value(id) != v {
			t.Errorf("%v has the id %#x, %v, which stands for %v", v, id, err, s.Value(id))
		}
		for extra, w := range ids {
			if got, want := s.Compare(id, extra), value.Compare(v, w); got != want {
				t.Fatalf("Compare(%v, %v) = %d, want %d", v, w, got, want)
			}
		}
	}
	if id, _ := s.ID(value.OfString("known")); id != known {
		t.Errorf("a known value has the id %#x, want %#x", id, known)
	}
	if in.Len() != 1 {
		t.Errorf("the query left %d values in the dictionary", in.Len()-1)
	}
}
