package engine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

func TestWatchWithin(t *testing.T) {
	e := deployed(t, hotProgram())
	ops := []analysis.Op{ins("label", 1, "hot"), ins("label", 2, "hot")}
	for i := range 1000 {
		ops = append(ops, ins("edge", 1, i))
	}
	ops = append(ops, ins("edge", 2, 1))
	if _, _, err := e.Apply(1, ops); err != nil {
		t.Fatal(err)
	}
	key := func(i int64) []value.Value { return []value.Value{value.OfInt(i)} }
	before := e.Stats()
	within := func(view string, key []value.Value, steps uint64) error {
		k, err := e.WatchWithin(view, key, steps)
		if err == nil {
			e.Unwatch(k)
		}
		return err
	}
	if err := within("hot", key(1), 500); !errors.Is(err, ErrBudget) {
		t.Errorf("1,000 rows within 500 steps: %v", err)
	}
	if err := within("hot", key(2), 500); err != nil {
		t.Errorf("one row: %v", err)
	}
	if err := within("hot", key(1), 1_000_000); err != nil {
		t.Errorf("1,000 rows within a million steps: %v", err)
	}
	if err := within("cold", key(1), 500); !errors.Is(err, ErrUnknownView) {
		t.Errorf("an unknown view: %v", err)
	}
	if err := within("hot", nil, 500); !errors.Is(err, ErrArity) {
		t.Errorf("no key: %v", err)
	}
	if after := e.Stats(); after.DerivedRows != before.DerivedRows || after.WatchedKeys != 0 {
		t.Errorf("a watch kept something: %+v, before %+v", after, before)
	}
	k := watch(t, e, "hot", 1)
	if err := within("hot", key(1), 500); err != nil {
		t.Errorf("a watched key: %v", err)
	}
	apply(t, e, 2, ins("edge", 1, 5000))
	wantChanges(t, e, "hot[1]@2 +(1 5000) -()")
	e.Unwatch(k)
}

// TestStrangeKeys watches keys that no fact holds until there is no memory for
// more of them: keys that facts hold are watched all the same.
func TestStrangeKeys(t *testing.T) {
	b := (&builder{}).base("label", "node", "text:string")
	b.view("named", []string{"T:string"}, []string{"N"}, a("label", "N", "T"))
	e := deployed(t, b)
	e.strangeBytesMax = 1000
	if _, _, err := e.Apply(1, []analysis.Op{ins("label", 1, "known")}); err != nil {
		t.Fatal(err)
	}
	watched := 0
	for i := range 100 {
		k, err := e.Watch("named", []value.Value{value.OfString(fmt.Sprint("stranger ", i))})
		if err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			continue
		}
		watched++
		e.Unwatch(k)
	}
	if watched < 5 || watched > 15 {
		t.Errorf("%d strange keys of about 74 bytes went into 1,000 bytes", watched)
	}
	for _, key := range []string{"known", "stranger 0"} {
		if _, err := e.Watch("named", []value.Value{value.OfString(key)}); err != nil {
			t.Errorf("key %q, which the dictionary knows: %v", key, err)
		}
	}
}
