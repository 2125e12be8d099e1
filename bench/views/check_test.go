package views

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/bench/graph"
	"github.com/heddle-live/heddle/sdk/frame"
)

func TestModelReplacesTheRowOfTheWriteBefore(t *testing.T) {
	m := newModel(graph.New(3_000))
	head := m.graph.Head(1)
	first, other, second := m.next(head), m.next(0), m.next(head)
	for _, tt := range []struct {
		name string
		got  write
		want string
	}{
		{"first", first, `{"insert":{"edge":[[400,5000]]}}`},
		{"other key", other, `{"insert":{"edge":[[0,5001]]}}`},
		{"second", second, `{"insert":{"edge":[[400,5002]]},"delete":{"edge":[[400,5000]]}}`},
	} {
		if string(tt.got.body) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, tt.got.body, tt.want)
		}
	}
	if got := m.rows(head); !equalRows(got, []frame.Row{row(400, 401), row(400, 5002)}) {
		t.Errorf("rows %v", got)
	}
	if got := m.rows(800); !equalRows(got, []frame.Row{row(800, 801)}) {
		t.Errorf("rows of a head without a write: %v", got)
	}
}

func TestCheck(t *testing.T) {
	m := newModel(graph.New(3_000))
	m.next(400)
	w := m.next(400)
	w.revision = 9
	good := frame.Change{
		Outcome: frame.Applied, Revision: 9,
		Entered: []frame.Row{row(400, 5001)}, Left: []frame.Row{row(400, 5000)},
	}
	tests := []struct {
		name   string
		change func(c *frame.Change)
		want   string // in the problem; "" is none
	}{
		{"as written", func(*frame.Change) {}, ""},
		{"another revision", func(c *frame.Change) { c.Revision = 8 }, "revision 8, the write has 9"},
		{"skipped", func(c *frame.Change) { c.Skipped = true }, "skipped=true"},
		{"gap", func(c *frame.Change) { c.Outcome = frame.Gap }, "was gap"},
		{
			"foreign row", func(c *frame.Change) { c.Entered = []frame.Row{row(0, 5001)} },
			"entered [[0 5001]]",
		},
		{"nothing entered", func(c *frame.Change) { c.Entered = nil }, "entered []"},
		{"row stayed", func(c *frame.Change) { c.Left = nil }, "left []"},
		{
			"closed", func(c *frame.Change) { c.Closed = &frame.Closed{Code: "busy"} },
			"busy",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := good
			tt.change(&c)
			got := w.check(event{key: 1, change: c})
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("check = %q, want %q in it", got, tt.want)
			}
		})
	}
	if got := w.check(event{key: 1, err: io.EOF}); !strings.Contains(got, "ended: EOF") {
		t.Errorf("check of an end = %q", got)
	}
}

func TestParseMetrics(t *testing.T) {
	const text = `# HELP heddle_a_total Of things.
# TYPE heddle_a_total counter
heddle_a_total{graph="x",what="a b}c"} 3
heddle_a_total{graph="y"} 4 1700000000000
heddle_b_seconds 1.5e-05
heddle_c NaN

`
	got, err := parseMetrics(text)
	if err != nil {
		t.Fatal(err)
	}
	delete(got, "heddle_c") // not equal to itself
	want := map[string]float64{"heddle_a_total": 7, "heddle_b_seconds": 1.5e-05}
	if !maps.Equal(got, want) {
		t.Errorf("parsed %v, want %v", got, want)
	}
	for _, bad := range []string{"name", "name ", "name{a=\"b\"}", "name x", "name{"} {
		if _, err := parseMetrics(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestLoadStreamsAndReportsBothEnds(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		got = r.URL.Path + " " + string(body)
	}))
	defer server.Close()
	r := &rest{base: server.URL, key: "k", client: server.Client()}
	rows := func(w *bufio.Writer) error {
		_, err := w.WriteString("a,b\n1,2\n")
		return err
	}
	if err := r.load(t.Context(), "g", "edge", rows); err != nil {
		t.Fatal(err)
	}
	if want := "/v1/graphs/g/relations/edge/rows a,b\n1,2\n"; got != want {
		t.Errorf("server got %q, want %q", got, want)
	}
	broken := errors.New("source broke")
	err := r.load(t.Context(), "g", "edge", func(*bufio.Writer) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("load = %v, want %v", err, broken)
	}
	r.key = ""
	err = r.load(t.Context(), "g", "edge", rows)
	if err == nil || !strings.Contains(err.Error(), "who are you") {
		t.Errorf("load without the key = %v, want the server's words", err)
	}
}
