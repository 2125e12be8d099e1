package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
)

// TestWatchTime has a clock that goes on with each look: what holds up writers for
// longer than it may is refused as too expensive, however few its steps, and nothing of
// it remains.
func TestWatchTime(t *testing.T) {
	var now, perLook int64
	e := New(func() int64 { now += perLook; return now })
	b := hotProgram()
	if _, err := e.Deploy(b.program(), false); err != nil {
		t.Fatal(err)
	}
	ops := []analysis.Op{ins("label", 1, "hot"), ins("label", 2, "hot")}
	for i := range 5000 {
		ops = append(ops, ins("edge", 1, i))
	}
	apply(t, e, 1, append(ops, ins("edge", 2, 1))...)
	few, before := watch(t, e, "hot", 2), e.Stats()
	const enough = 1_000_000
	const limit = 100 * time.Millisecond
	e.SetLimits(Limits{WatchNanos: int64(limit)})
	hot := b.query(nil, []string{"X"}, a("edge", "X", "_"), a("label", "X", "_"))
	moves := []analysis.Statement{
		plain(ins("edge", 7, 7)),
		{Query: hot, Heads: []analysis.WriteHead{
			{Relation: "edge", Terms: []analysis.Term{{Var: 0}, {Var: 0}}},
		}},
	}
	transact := func() error {
		_, err := e.Transact(2, moves, nil, TransactOptions{Budget: enough})
		return err
	}
	perLook = int64(60 * time.Millisecond)
	_, err := e.WatchWithin("hot", vals(1), enough)
	for what, err := range map[string]error{"watch": err, "condition": transact()} {
		budget, ok := errors.AsType[*BudgetError](err)
		if !ok || !errors.Is(err, ErrBudget) || budget.Kind != LimitTime ||
			budget.Max != uint64(limit) || !strings.Contains(err.Error(), "longer than 100ms") {
			t.Errorf("%s: %v", what, err)
		}
	}
	after := e.Stats()
	after.ApplyNanoseconds = before.ApplyNanoseconds
	if after.Facts != before.Facts || after.DerivedRows != before.DerivedRows ||
		after.WatchedKeys != before.WatchedKeys || after.Revision != before.Revision {
		t.Errorf("%+v, before %+v", after, before)
	}
	wantChanges(t, e)
	perLook = 0
	k, err := e.WatchWithin("hot", vals(1), enough)
	if err != nil {
		t.Fatal(err)
	}
	if err := transact(); err != nil {
		t.Fatal(err)
	}
	wantChanges(t, e, "hot[2]@2 +(2 2) -()")
	wantRows(t, e, few, "(2 1) (2 2)")
	if n := len(e.Rows(k, 0, nil)) / 2; n != 5000 {
		t.Errorf("%d rows", n)
	}
}
