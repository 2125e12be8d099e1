package engine

import (
	"errors"
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
