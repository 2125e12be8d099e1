package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/admin"
	sdk "github.com/heddle-live/heddle/sdk/client"
	"github.com/heddle-live/heddle/sdk/frame"
)

// printed returns what a watcher prints of updates.
func printed(t *testing.T, asJSON bool, columns []frame.Column, updates ...sdk.Update) string {
	t.Helper()
	var out bytes.Buffer
	w := &watcher{Command: &cobra.Command{}, asJSON: asJSON, columns: columns}
	w.SetOut(&out)
	for i := range updates {
		if err := w.print(&updates[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

var ab = []frame.Column{{Name: "a", Type: frame.String}, {Name: "b", Type: frame.Float}}

func TestWatchTextIsOneLineForEachRow(t *testing.T) {
	got := printed(t, false, ab,
		sdk.Update{Revision: 1, Rows: []frame.Row{{"x\ny\tz\x1b[2J\r\u202e", 1e21}}},
		sdk.Update{
			Revision: 2, Left: []frame.Row{{"\x07", 0.5}}, Entered: []frame.Row{{"Zoë", 3.0}},
			Stale: &frame.Stale{Message: "a\nb\x1b"},
		})
	want := "# a\tb at revision 1: 1 row\n" +
		`  x\ny\tz\x1b[2J\r\u202e` + "\t1e+21\n" +
		"# revision 2, stale: " + `a\nb\x1b` + "\n" +
		`- \a` + "\t0.5\n+ Zoë\t3\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWatchTextOfEveryKind(t *testing.T) {
	got := printed(t, false, ab, sdk.Update{Revision: 1, Rows: []frame.Row{{
		int64(-7), 0.5, "a", true, frame.Bytes("\x00\xff"), frame.Timestamp(1_796_040_000_000),
		frame.Timestamp(math.MaxInt64), nil,
	}}})
	want := "# a\tb at revision 1: 1 row\n" +
		"  -7\t0.5\ta\ttrue\tAP8=\t2026-11-30T12:00:00Z\t9223372036854775807\tnull\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Ints beyond 2^53 are strings in JSON, and digits for people, as query prints them.
func TestWatchOfLargeInts(t *testing.T) {
	update := sdk.Update{
		Revision: 1, Epoch: "e", Meta: &frame.Meta{Columns: ab},
		Rows: []frame.Row{{int64(math.MaxInt64), int64(-1)}},
	}
	want := "# a\tb at revision 1: 1 row\n  9223372036854775807\t-1\n"
	if got := printed(t, false, nil, update); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWatchOfNamedParts(t *testing.T) {
	meta := &frame.Meta{Parts: []frame.Part{{Name: "x", Columns: ab}, {Name: "y", Columns: ab[:1]}}}
	updates := []sdk.Update{
		{Revision: 1, Epoch: "e", Meta: meta, Parts: []sdk.Part{
			{Name: "x", Rows: []frame.Row{{"a", 0.5}}, Entered: []frame.Row{{"a", 0.5}}}, {Name: "y"},
		}},
		{Revision: 2, Epoch: "e", Meta: meta, Parts: []sdk.Part{
			{Name: "x", Rows: []frame.Row{{"a", 0.5}}},
			{
				Name: "y", Rows: []frame.Row{{"n"}}, Entered: []frame.Row{{"n"}}, Left: []frame.Row{{"m"}},
				Stale: &frame.Stale{Code: frame.StaleIncomplete, Message: "overflow"},
			},
		}},
	}
	got := printed(t, false, nil, updates...)
	want := "# x: a\tb at revision 1: 1 row\n  a\t0.5\n# y: a at revision 1: 0 rows\n" +
		"# revision 2\n# y, incomplete: overflow\n- m\n+ n\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got = printed(t, true, nil, updates...)
	want = `{"revision":1,"epoch":"e","rows":[],"entered":[],"left":[],"parts":{` +
		`"x":{"rows":[["a",0.5]],"entered":[],"left":[]},"y":{"rows":[],"entered":[],"left":[]}}}` + "\n" +
		`{"revision":2,"epoch":"e","entered":[],"left":[],"parts":{"x":{"entered":[],"left":[]},` +
		`"y":{"entered":[["n"]],"left":[["m"]],"stale":{"code":"incomplete","message":"overflow"}}}}` + "\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCellText(t *testing.T) {
	for _, c := range []struct{ kind, cell, want string }{
		{"int", `"9223372036854775807"`, "9223372036854775807"},
		{"timestamp", `1796040000000`, "2026-11-30T12:00:00Z"},
		{"timestamp", `"9223372036854775807"`, "9223372036854775807"},
		{"timestamp", `null`, "null"},
		{"bytes", `"AP8="`, "AP8="},
		{"string", `"a\nb"`, `a\nb`},
	} {
		if got := cellText(c.kind, json.RawMessage(c.cell)); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.cell, got, c.want)
		}
	}
}

func TestWatchJSON(t *testing.T) {
	got := printed(t, true, ab,
		sdk.Update{Revision: 1, Epoch: "e"},
		sdk.Update{
			Revision: 2, Epoch: "e", Entered: []frame.Row{{int64(math.MaxInt64), int64(7)}},
			Left: []frame.Row{{int64(-1 << 53), 0.5}},
		})
	want := `{"revision":1,"epoch":"e","rows":[],"entered":[],"left":[]}` + "\n" +
		`{"revision":2,"epoch":"e","entered":[["9223372036854775807",7]],` +
		`"left":[["-9007199254740992",0.5]]}` + "\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWatchTellsNewColumns(t *testing.T) {
	update := sdk.Update{
		Revision: 5, Rows: []frame.Row{{"x"}}, Left: []frame.Row{{"x", 1.5}},
		Entered: []frame.Row{{"x"}}, Meta: &frame.Meta{Columns: ab[:1]},
	}
	same := sdk.Update{Revision: 6, Meta: update.Meta}
	first := sdk.Update{Revision: 1, Meta: &frame.Meta{Columns: ab}}
	got := printed(t, false, ab, first, update, same)
	want := "# a\tb at revision 1: 0 rows\n# a at revision 5: 1 row\n- x\t1.5\n+ x\n# revision 6\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got = printed(t, true, ab, first, update, same)
	if strings.Count(got, `"columns":[{"name":"a","type":"string"}]`) != 1 {
		t.Errorf("got\n%s", got)
	}
}

func TestKeyValue(t *testing.T) {
	for _, c := range []struct {
		kind frame.Type
		text string
		want any // nil if it is refused
	}{
		{frame.Int, "0", int64(0)},
		{frame.Int, "-5", int64(-5)},
		{frame.Int, "+5", nil},
		{frame.Int, "007", nil},
		{frame.Int, "1.0", nil},
		{frame.Int, "", nil},
		{frame.Int, "9223372036854775808", nil},
		{frame.Int, "1_000", nil},
		{frame.Float, "-1.5", -1.5},
		{frame.Float, "2e10", 2e10},
		{frame.Float, "7", 7.0},
		{frame.Float, "0x1p4", nil},
		{frame.Float, "inf", nil},
		{frame.Float, "NaN", nil},
		{frame.Float, "1e999", nil},
		{frame.Float, ".5", nil},
		{frame.Float, "", nil},
		{frame.Bool, "true", true},
		{frame.Bool, "false", false},
		{frame.Bool, "1", nil},
		{frame.Bool, "T", nil},
		{frame.Bool, "True", nil},
		{frame.Bool, "0", nil},
		{frame.BytesType, "AP8=", frame.Bytes("\x00\xff")},
		{frame.BytesType, "", frame.Bytes("")},
		{frame.BytesType, "AP8", nil},
		{frame.TimestampType, "-7", frame.Timestamp(-7)},
		{frame.TimestampType, "2026-11-30T12:00:00Z", frame.Timestamp(1_796_040_000_000)},
		{frame.TimestampType, "2026-11-30", nil},
		{frame.TimestampType, "+7", nil},
		{frame.TimestampType, "9223372036854775808", nil},
		{frame.String, "-x", "-x"},
		{frame.String, "", ""},
	} {
		got, expected := keyValue(c.kind, c.text)
		if !reflect.DeepEqual(got, c.want) || (expected == "") != (c.want != nil) {
			t.Errorf("%s %q: %v, %q", c.kind, c.text, got, expected)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"watch", "g", "v", "-5"}, []string{"watch", "g", "v", " -5"}},
		{[]string{"watch", "g", "v", "-.5", "--json"}, []string{"watch", "g", "v", " -.5", "--json"}},
		{[]string{"watch", "--once", "g", "v", " -5"}, []string{"watch", "--once", "g", "v", "  -5"}},
		{[]string{"watch", "--key", "-5", "g"}, []string{"watch", "--key", "-5", "g"}},
		{[]string{"watch", "g", "v", "--", "-5", "-x"}, []string{"watch", "g", "v", "--", " -5", "-x"}},
		{[]string{"query", "g", "?e(X)", "--limit", "-1"}, []string{"query", "g", "?e(X)", "--limit", "-1"}},
		{[]string{"write", "g", "-e(1)"}, []string{"write", "g", " -e(1)"}},
		{nil, nil},
	} {
		got := Arguments(c.args)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
		if len(c.args) > 0 && c.args[0] == "watch" && !slices.Equal(unshielded(got), c.args) {
			t.Errorf("%q comes back as %q", c.args, unshielded(got))
		}
	}
}

func TestWatchRefusals(t *testing.T) {
	w := &watcher{Command: &cobra.Command{}, graph: "g", view: "v"}
	w.SetContext(t.Context())
	for _, c := range []struct {
		err    error
		code   int
		status int
		want   string
	}{
		{&sdk.ClosedError{Code: "not_found"}, ExitRefused, 404, "there is no graph g, or it has no view v"},
		{&sdk.ClosedError{Code: "view_dropped"}, ExitRefused, 410, "view v of graph g is gone"},
		{&sdk.ClosedError{Code: "unauthorized", Message: "why\n"}, ExitRefused, 403, `does not let you watch this key of view v (why\n)`},
		{&sdk.ClosedError{Code: "token_expired"}, ExitRefused, 403, "has expired"},
		{&sdk.ClosedError{Code: "odd"}, ExitRefused, 502, "the server ended the watch of view v: odd"},
		{fmt.Errorf("watch: %w: too long", frame.ErrKey), ExitUsage, 0, "too long"},
	} {
		e, ok := w.refusal(c.err).(*Error)
		if !ok || e.Code != c.code || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%v: %+v", c.err, e)
			continue
		}
		e.asJSON = true
		var p admin.Problem
		if err := json.Unmarshal([]byte(e.Error()), &p); err != nil || p.Status != c.status ||
			(p.Status == 0) == strings.Contains(e.Error(), `"status"`) {
			t.Errorf("%v: %s, %v", c.err, e, err)
		}
	}
}
