package report

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i) // 100 … 1, to be sorted
	}
	tests := []struct {
		name    string
		samples []time.Duration
		p       float64
		want    time.Duration
	}{
		{"none", nil, 0.5, 0},
		{"one", []time.Duration{7}, 0.99, 7},
		{"median of two is the lower", []time.Duration{9, 3}, 0.5, 3},
		{"median of three", []time.Duration{9, 3, 5}, 0.5, 5},
		{"p50 of a hundred", hundred, 0.5, 50},
		{"p99 of a hundred", hundred, 0.99, 99},
		{"p100 is the largest", hundred, 1, 100},
		{"a small p is the smallest", hundred, 0.0001, 1},
		{"rounding does not skip a rank", hundred[:10], 0.7, 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Percentile(slices.Clone(tt.samples), tt.p); got != tt.want {
				t.Errorf("Percentile(%v) = %d, want %d", tt.p, got, tt.want)
			}
			slices.Sort(tt.samples)
		})
	}
}

func TestMicros(t *testing.T) {
	if got := Micros(1234567 * time.Nanosecond); got != 1234.6 {
		t.Errorf("Micros = %v, want 1234.6", got)
	}
}

func sample() *Report {
	r := New("floor", map[string]any{"writes": 10})
	r.Commit, r.Machine = "abc", Machine{CPU: "x", Cores: 2, Kernel: "linux 6", Go: "go1"}
	a := NewCell("keys=1", map[string]any{"keys": 1})
	a.Metrics["ack_us_p50"] = 370.25
	b := NewCell("keys=9", map[string]any{"keys": 9})
	b.Metrics["rss_mb"] = 20
	r.Cells = append(r.Cells, a, b)
	return r
}

func TestWriteJSON(t *testing.T) {
	var out strings.Builder
	if err := sample().Write(&out, true); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got["schema"] != "heddle-bench/1" || got["name"] != "floor" || got["commit"] != "abc" {
		t.Errorf("head of the report: %v", got)
	}
	cell := got["cells"].([]any)[0].(map[string]any)
	if problems, ok := cell["problems"].([]any); !ok || len(problems) != 0 {
		t.Errorf("problems = %v, want an empty list", cell["problems"])
	}
	if cell["ok"] != true || cell["metrics"].(map[string]any)["ack_us_p50"] != 370.25 {
		t.Errorf("cell: %v", cell)
	}
}

func TestWriteTable(t *testing.T) {
	r := sample()
	r.Cells[1].Problem("viewer %d got a foreign row", 3)
	var out strings.Builder
	if err := r.Write(&out, false); !errors.Is(err, ErrNotOK) {
		t.Fatalf("Write = %v, want ErrNotOK", err)
	}
	const want = `floor at abc on x (2 cores), linux 6, go1
writes=10

              keys=1  keys=9
        keys       1       9
  ack_us_p50     370       -
      rss_mb       -      20
          ok    true   false
keys=9: viewer 3 got a foreign row
`
	if out.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	c := NewCell("c", nil)
	for range 1000 {
		c.Problem("again")
	}
	if c.OK || len(c.Problems) != problemsMax {
		t.Errorf("ok=%v with %d problems, want %d", c.OK, len(c.Problems), problemsMax)
	}
}

func TestCPUModel(t *testing.T) {
	const text = "processor\t: 0\nmodel name\t: Fast: 9000\nmodel name\t: other\n"
	if got := cpuModel(text); got != "Fast: 9000" {
		t.Errorf("cpuModel = %q", got)
	}
	if got := cpuModel("nothing"); got != "unknown" {
		t.Errorf("cpuModel = %q", got)
	}
}

func TestWriteList(t *testing.T) {
	r := sample()
	r.List = true
	c := &r.Cells[0]
	c.Method = "One thing after the other."
	c.Measured("write_us_p50", []float64{3, 1.00004, 2})
	c.AtMost("write_us_p50", 1.5)
	c.Measured("ratio", []float64{210})
	c.AtLeast("ratio", 200)
	var out strings.Builder
	if err := r.Write(&out, false); err != nil {
		t.Fatal(err)
	}
	const want = `floor at abc on x (2 cores), linux 6, go1
writes=10

keys=1  keys=1
  One thing after the other.
  ack_us_p50    370  
  ratio         210          at least 200: held
  write_us_p50  2    1 to 3  at most 1.500: MISSED

keys=9  keys=9
  rss_mb  20  

1 of 2 limits held
`
	if out.String() != want {
		t.Errorf("list:\n%s\nwant:\n%s", out.String(), want)
	}
	c.AtMost("nothing", 1)
	if c.OK {
		t.Error("a limit on a metric that is not there is in order")
	}
}
