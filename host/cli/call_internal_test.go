package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
)

// actions is a program with actions for the fake service, which writes plain rows
// and finds no row for any condition.
const actions = `+edge(src: int, dst: int)
+at(place: string, time: timestamp, digest: bytes, ratio: float, open: bool)
action link($a: int, $b: int) := +edge($a, $b)
action note($p: string, $t: timestamp, $d: bytes, $r: float, $o: bool) := +at($p, $t, $d, $r, $o)
action tick() := +edge(1, 1)
action claim($a: int) := +edge($a, 1) <- edge(_, $a), !edge($a, _)
`

func withActions(t *testing.T) *server {
	t.Helper()
	s := newServer(t)
	tree, err := parse.Program(actions)
	if err != nil {
		t.Fatal(err)
	}
	program, err := analysis.Analyse(tree, actions)
	if err != nil {
		t.Fatal(err)
	}
	s.Put("shop", program)
	return s
}

func TestCall(t *testing.T) {
	s := withActions(t)
	s.run(t, "", "call", "shop", "tick").want(t, "revision 1: 1 row inserted, 0 deleted\n")
	s.run(t, "", "call", "shop", "tick", "--json", "--idempotency-key", "k").want(t,
		`{"revision":2,"inserted":0,"deleted":0,"replayed":false,`+
			`"statements":[{"rows":1,"inserted":0,"deleted":0}]}`+"\n")
	s.run(t, "", "call", "shop", "tick", "--idempotency-key", "k").want(t,
		"revision 2: 0 rows inserted, 0 deleted (written before, under the same idempotency key)\n")
	s.run(t, "", "call", "shop", "tick", "--expect-revision", "1").wantError(t, ExitRefused,
		"another revision")
	s.run(t, "", "call", "shop", "tick", "--expect-revision", "2").want(t,
		"revision 3: 0 rows inserted, 0 deleted\n")

	r := s.run(t, "", "call", "shop", "claim", "7")
	r.wantError(t, ExitUnmet, "nothing was written: no row meets the conditions of claim")
	if r.out != "revision 4: 0 rows inserted, 0 deleted\n" {
		t.Errorf("got %q", r.out)
	}
	s.run(t, "", "call", "shop", "claim", "7", "--json").wantError(t, ExitUnmet, `"code":"client"`)

	s.run(t, "", "call", "shop", "clam", "7").wantError(t, ExitRefused, `did you mean "claim"?`)
	s.run(t, "", "call", "shp", "claim", "7").wantError(t, ExitRefused, `no graph "shp"`)
	s.run(t, "", "call", "shop", "claim").wantError(t, ExitUsage, "0 values for 1 parameter",
		"action claim(a: int) takes one KEY")
	s.run(t, "", "call", "shop", "claim", "x").wantError(t, ExitUsage,
		`parameter a: expected an int such as -7, got "x"`)
	s.run(t, "", "call", "shop").wantError(t, ExitUsage, "takes GRAPH ACTION KEY..., and 1 was given")
}

func TestCallSpellsKeys(t *testing.T) {
	s := withActions(t)
	s.run(t, "", "call", "shop", "note", "Jörg/M", "2026-11-30T12:00:00Z", "AP8=", " -1.5e3", "true")
	if len(s.Transactions) != 1 {
		t.Fatalf("%d calls", len(s.Transactions))
	}
	got := s.Transactions[0].Parameters
	var texts []string
	for _, v := range got {
		texts = append(texts, v.String())
	}
	want := `"Jörg/M" t"2026-11-30T12:00:00Z" x"00ff" -1500.0 true`
	if strings.Join(texts, " ") != want {
		t.Errorf("got %s", texts)
	}
}

func TestWriteOptions(t *testing.T) {
	s := withActions(t)
	s.run(t, "", "write", "shop", "+edge(1, 2)", "--expect-revision", "0").want(t,
		"revision 1: 1 row inserted, 0 deleted\n")
	s.run(t, "", "write", "shop", "+edge(1, 3)", "--expect-revision", "0").wantError(t, ExitRefused,
		"another revision", "send the revision of what you read")
	s.run(t, "5,6\n", "load", "shop", "edge", "-", "--no-header", "--expect-revision", "7").
		wantError(t, ExitRefused, "another revision")
	s.run(t, "5,6\n", "load", "shop", "edge", "-", "--no-header", "--expect-revision", "1").
		want(t, "revision 2: 1 row inserted, 0 deleted\n")
}

func TestPrintReceipt(t *testing.T) {
	var out bytes.Buffer
	c := &command{Command: &cobra.Command{}}
	c.SetOut(&out)
	r := admin.Receipt{Revision: 9, Inserted: 2, Deleted: 1, Statements: []admin.StatementReceipt{
		{Rows: 1, Inserted: 2, Deleted: 1}, {}, {Rows: 1},
	}}
	if err := c.printReceipt(&r); err != nil {
		t.Fatal(err)
	}
	want := `revision 9: 2 rows inserted, 1 deleted
  statement 1: 2 rows inserted, 1 deleted
  statement 2: no row met its condition
  statement 3: 0 rows inserted, 0 deleted
`
	if out.String() != want {
		t.Errorf("got\n%s", &out)
	}
}

func TestArgumentsOfCalls(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"write|g|-a(1)", "write|g| -a(1)"},
		{"write|g|-a(X) <- a(X)", "write|g| -a(X) <- a(X)"},
		{"call|g|act|-5|--json|-7", "call|g|act| -5|--json| -7"},
		{"call|g|act|--expect-revision|-5", "call|g|act|--expect-revision|-5"},
		{"query|g|-5", "query|g|-5"},
	} {
		if got := strings.Join(Arguments(strings.Split(c.line, "|")), "|"); got != c.want {
			t.Errorf("%s: got %s", c.line, got)
		}
	}
}
