package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
)

// TestLimitsOfBytes computes ever longer texts, of which a few rows take all memory:
// every kind of evaluation ends soon, names the rule, and gives back what it took.
func TestLimitsOfBytes(t *testing.T) {
	const source = `
+s(a: string)
+n(a: int)
text(S) <- s(S)
text(concat(S, "a")) <- text(S), len(S) < 1000000
big(X, Z) <- n(X), n(Y), Z = X * Y + 4294967296, Z < 0
view texts($n: int) := ?text(S), len(S) = $n
view bigs($x: int) := ?big($x, Z)
`
	p := analysed(t, source)
	e := New(nil)
	if _, err := e.Deploy(p, false); err != nil {
		t.Fatal(err)
	}
	e.SetLimits(Limits{CommitRows: 1_000_000, GraphRows: 20_000_000, CommitBytes: 8 << 20})
	if _, _, err := e.Apply(1, []analysis.Op{ins("s", "ab")}); err != nil {
		t.Fatal(err)
	}
	before := e.symbols.Held()
	refused := func(what string, err error, kind LimitKind, rule string) {
		t.Helper()
		budget, ok := errors.AsType[*BudgetError](err)
		if !ok || budget.Kind != kind || !strings.HasPrefix(budget.Rule, rule) {
			t.Errorf("%s: %v", what, err)
		}
		if held := e.symbols.Held(); held > before+1<<16 {
			t.Errorf("%s: values hold %d bytes, before %d", what, held, before)
		}
		if bytes := e.symbols.Bytes(); bytes > 12<<20 {
			t.Errorf("%s: the dictionary holds %d bytes", what, bytes)
		}
	}
	const text, big = `text(concat(S, "a"))`, "big(X, Z)"
	_, err := e.WatchWithin("texts", vals(3), 200_000_000)
	refused("watch", err, LimitCommitBytes, text)
	_, err = e.WatchWithin("texts", vals(3), 100_000)
	refused("watch within steps", err, LimitSteps, text)
	_, err = e.Query(analysedQuery(t, p, "?text(S)"), nil, QueryOptions{})
	refused("query", err, LimitCommitBytes, text)
	_, err = e.Query(analysedQuery(t, p, "?text(S)"), nil, QueryOptions{Budget: 100_000})
	refused("query within steps", err, LimitSteps, text)
	_, err = e.Why(analysedQuery(t, p, `?text("abaa")`), nil, WhyOptions{})
	refused("why", err, LimitCommitBytes, text)
	pin, err := e.Pin(0)
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := pin.Query(analysedQuery(t, p, "?text(S)"), nil, QueryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for !pinned.Step(1 << 20) {
	}
	_, err = pinned.Result()
	refused("pinned query", err, LimitCommitBytes, text)
	pin.Close()

	// Values that no row ever holds count as well.
	watch(t, e, "bigs", 1)
	var numbers []analysis.Op
	for i := range 2000 {
		numbers = append(numbers, ins("n", 1_000_003*i+1))
	}
	e.SetLimits(Limits{CommitRows: 1_000_000, CommitBytes: 1 << 15})
	_, _, err = e.Apply(2, numbers)
	refused("apply", err, LimitCommitBytes, big)
	_, err = e.Transact(2, []analysis.Statement{plain(ins("n", 5)), plain(numbers...)}, nil,
		TransactOptions{})
	refused("transact", err, LimitCommitBytes, big)
	e.SetLimits(Limits{GraphBytes: 1 << 15})
	_, _, err = e.Apply(2, numbers)
	refused("apply within the graph's bytes", err, LimitGraphBytes, big)
	if s := e.Stats(); s.Facts != 1 || s.Revision != 1 || s.WatchedKeys != 1 {
		t.Errorf("%+v", s)
	}
}
