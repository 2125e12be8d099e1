package ingest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
)

// TestATransactionOverItsBudgetLeavesNoTrace refuses the second of three writers,
// which may share a batch, and recovers without the limit.
func TestATransactionOverItsBudgetLeavesNoTrace(t *testing.T) {
	f := start(t, func(f *fixture) { f.limits = engine.Limits{CommitRows: 100} })
	f.apply("+edge(src: int, dst: int)\nreach(X, Y) <- edge(X, Y)\n" +
		"reach(X, Z) <- reach(X, Y), edge(Y, Z)\nview out($x: int) := ?reach($x, Y)\n")
	err := f.loop.Call(t.Context(), func(turn *ingest.Turn) {
		if _, err := turn.Engine.Watch("out", []value.Value{value.OfInt(0)}); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var chain []string
	for i := range 200 {
		chain = append(chain, fmt.Sprintf("(%d, %d)", i, i+1))
	}
	type outcome struct {
		receipt ingest.Receipt
		err     error
	}
	var outcomes []chan outcome
	for _, text := range []string{"+edge(0, 1)", "+edge[" + strings.Join(chain, ", ") + "]", "+edge(1, 2)"} {
		tx, done := f.transaction(text), make(chan outcome, 1)
		outcomes = append(outcomes, done)
		go func() {
			r, err := f.loop.Transact(t.Context(), tx)
			done <- outcome{r, err}
		}()
	}
	for i, done := range outcomes {
		o := <-done
		budget, refused := errors.AsType[*engine.BudgetError](o.err)
		if refused != (i == 1) || !refused && o.err != nil {
			t.Errorf("writer %d: %+v", i, o)
		}
		if refused && budget.Rule != "reach(X, Z) <- reach(X, Y), edge(Y, Z)" {
			t.Errorf("rule %q", budget.Rule)
		}
	}
	if r := f.loop.Revision(); r != 3 {
		t.Errorf("revision %d", r)
	}
	f.limits = engine.Limits{}
	f.restart()
	if got := f.query("?reach(0, Y)"); got != "[0 1 0 2]" || f.loop.Revision() != 3 {
		t.Errorf("rows %s at %d", got, f.loop.Revision())
	}
}
