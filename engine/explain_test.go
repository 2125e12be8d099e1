package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestExplainIsBounded explains one of thousands of rules, which is done between two
// commits: it shows the first and says how many more there are.
func TestExplainIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("+e(a: int, b: int)\nr0(X, Y) <- e(X, Y)\n")
	const rules = 4000
	for i := range rules {
		fmt.Fprintf(&b, "r%d(X, Z) <- r%d(X, Y), e(Y, Z)\n", i+1, i)
	}
	fmt.Fprintf(&b, "view v($x: int) := ?r%d($x, Y)\n", rules)
	e := New(nil)
	if _, err := e.Deploy(analysed(t, b.String()), false); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	plan, err := e.Explain("v")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rules in %v", len(plan.Rules), time.Since(start))
	if len(plan.Rules) > 200 || len(plan.Notes) > 300 || len(plan.Sets) > 1000 ||
		!strings.Contains(plan.Notes[0], " rules more are not shown") {
		t.Errorf("%d rules, %d sets, notes %q", len(plan.Rules), len(plan.Sets), plan.Notes[:1])
	}
}
