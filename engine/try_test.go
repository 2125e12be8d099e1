package engine

import (
	"errors"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

func TestTry(t *testing.T) {
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
	if err := e.Try("hot", key(1), 500); !errors.Is(err, ErrBudget) {
		t.Errorf("1,000 rows within 500 steps: %v", err)
	}
	if err := e.Try("hot", key(2), 500); err != nil {
		t.Errorf("one row: %v", err)
	}
	if err := e.Try("hot", key(1), 1_000_000); err != nil {
		t.Errorf("1,000 rows within a million steps: %v", err)
	}
	if err := e.Try("cold", key(1), 500); !errors.Is(err, ErrUnknownView) {
		t.Errorf("an unknown view: %v", err)
	}
	if err := e.Try("hot", nil, 500); !errors.Is(err, ErrArity) {
		t.Errorf("no key: %v", err)
	}
	if after := e.Stats(); after.DerivedRows != before.DerivedRows ||
		after.Symbols != before.Symbols || after.WatchedKeys != 0 {
		t.Errorf("Try kept something: %+v, before %+v", after, before)
	}
	watch(t, e, "hot", 1)
	if err := e.Try("hot", key(1), 500); err != nil {
		t.Errorf("a watched key: %v", err)
	}
}
