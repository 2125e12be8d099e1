package cli

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
)

var divided = admin.RuleErrors{
	Rule: "r(X) <- a(A, B), X = A / B", Line: 3, Column: 1, Count: 3,
	Rows: []admin.RowErrorInfo{
		{Code: "division_by_zero", Message: "1 / 0", Bindings: map[string]string{"B": "0", "A": "1"}},
		{Code: "overflow", Message: "a\x1b"},
	},
}

func TestErrors(t *testing.T) {
	s := newServer(t)
	s.run(t, "", "errors", "shop").want(t, "graph shop: no row errors at revision 0\n")
	s.run(t, "", "errors", "shp").wantError(t, ExitRefused, `no graph "shp"`)
	var out bytes.Buffer
	c := &command{Command: &cobra.Command{}}
	c.SetOut(&out)
	list := admin.ErrorList{Revision: 9, Errors: []admin.RuleErrors{
		divided, {View: "v", Line: 5, Count: 1},
	}}
	if err := c.printErrors("shop", &list); err != nil {
		t.Fatal(err)
	}
	want := `graph shop: row errors at revision 9
  line 3: r(X) <- a(A, B), X = A / B cannot be computed for 3 rows
    1 / 0 for A = 1, B = 0
    a\x1b
    and 1 more
  line 5: view v cannot be computed for 1 row
    and 1 more
`
	if out.String() != want {
		t.Errorf("got\n%s", &out)
	}
}

// Who asks a query is told if rows may be missing.
func TestQueryTellsErrors(t *testing.T) {
	var out bytes.Buffer
	c := &command{Command: &cobra.Command{}}
	c.SetOut(&out)
	if err := c.printAnswer(&answered{Revision: 9, Errors: []admin.RuleErrors{divided}}); err != nil {
		t.Fatal(err)
	}
	want := `(0 rows at revision 9)
rows may be missing: r(X) <- a(A, B), X = A / B cannot be computed for 3 rows: 1 / 0 for A = 1, B = 0
`
	if out.String() != want {
		t.Errorf("got\n%s", &out)
	}
}
