package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
)

// TestLimits drives every kind of commit past a limit: it is refused with the rule
// named, and everything goes on as it was.
func TestLimits(t *testing.T) {
	b := hotProgram()
	b.derived("reach", "x", "y")
	b.rule(a("reach", "X", "Y"), a("edge", "X", "Y"))
	b.rule(a("reach", "X", "Z"), a("reach", "X", "Y"), a("edge", "Y", "Z"))
	b.view("reached", []string{"H"}, []string{"Y"}, a("reach", "H", "Y"))
	e := deployed(t, b)
	chain := func(from, to int) (ops []analysis.Op) {
		for i := from; i < to; i++ {
			ops = append(ops, ins("edge", i, i+1))
		}
		return ops
	}
	apply(t, e, 1, append(chain(0, 50), ins("label", 0, "hot"))...)
	k, hot := watch(t, e, "reached", 0), watch(t, e, "hot", 0)
	apply(t, e, 2, ins("edge", 0, 9))
	before := e.Stats()
	unchanged := func(what string, err error, kind LimitKind, rule string) {
		t.Helper()
		budget, ok := errors.AsType[*BudgetError](err)
		if !ok || !errors.Is(err, ErrBudget) || budget.Kind != kind ||
			!strings.Contains(budget.Rule+budget.View, rule) {
			t.Errorf("%s: %v", what, err)
		}
		if s := e.Stats(); s.Facts != before.Facts || s.DerivedRows != before.DerivedRows ||
			s.Revision != before.Revision || s.WatchedKeys != before.WatchedKeys {
			t.Errorf("%s: %+v, before %+v", what, s, before)
		}
	}
	e.SetLimits(Limits{CommitRows: 60})
	_, _, err := e.Apply(3, append(chain(50, 200), ins("edge", 0, 3)))
	unchanged("apply", err, LimitCommitRows, "{reach [X Z]}")
	_, err = e.Transact(3, []analysis.Statement{plain(ins("edge", 0, 3)), plain(chain(50, 200)...)},
		nil, TransactOptions{})
	unchanged("transact", err, LimitCommitRows, "reach")
	if s, ok := errors.AsType[*StatementError](err); !ok || s.Number != 2 {
		t.Errorf("%v", err)
	}
	e.SetLimits(Limits{CommitRows: 10})
	_, err = e.Watch("reached", vals(1))
	unchanged("watch", err, LimitCommitRows, "reach")
	_, err = e.Query(b.query(nil, []string{"X", "Y"}, a("reach", "X", "Y")), nil, QueryOptions{})
	unchanged("query", err, LimitCommitRows, "reach")
	e.SetLimits(Limits{GraphRows: uint64(before.DerivedRows) + 10})
	_, err = e.Watch("reached", vals(1))
	unchanged("watch within the graph's rows", err, LimitGraphRows, "reach")
	_, _, err = e.Apply(3, chain(50, 200))
	unchanged("apply within the graph's rows", err, LimitGraphRows, "reach")

	wide := *b
	wide.view("all", []string{"H"}, []string{"X", "Y"}, a("reach", "X", "Y"), a("edge", "H", "_"))
	*wide.Views[1].Query() = *b.query([]string{"H"}, []string{"Y"}, a("reach", "_", "Y"))
	_, err = e.Deploy(wide.program(), false)
	unchanged("deploy", err, LimitGraphRows, "")

	wantChanges(t, e, "hot[0]@2 +(0 9) -()") // 9 was reached before
	wantRows(t, e, hot, "(0 1) (0 9)")
	e.SetLimits(Limits{})
	apply(t, e, 3, chain(50, 52)...)
	wantChanges(t, e, "reached[0]@3 +(51) (52) -()")
	if rows := len(e.Rows(k, 0, nil)); rows != 52 {
		t.Errorf("%d rows", rows)
	}
	for i := range 20 {
		extra := watch(t, e, "reached", i+1)
		if rows := len(e.Rows(extra, 0, nil)); rows != 51-i {
			t.Errorf("%d rows of %d", rows, i+1)
		}
		e.Unwatch(extra)
	}
	if s := e.Stats(); s.WatchedKeys != 2 {
		t.Errorf("%+v", s)
	}
}
