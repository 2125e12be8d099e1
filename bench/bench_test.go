package bench_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/bench/report"
)

// The benches run servers as processes of the same executable, so only the
// whole binary can be tested.
func buildHeddle(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "heddle")
	build := exec.Command("go", "build", "-o", path, "github.com/heddle-live/heddle")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func TestEndToEnd(t *testing.T) {
	heddle := buildHeddle(t)
	t.Run("measures", func(t *testing.T) { testMeasures(t, heddle) })
	t.Run("refuses", func(t *testing.T) { testRefuses(t, heddle) })
}

func testMeasures(t *testing.T, heddle string) {
	tests := []struct {
		name    string
		args    []string
		cells   []string
		metrics []string
	}{
		{
			"floor",
			[]string{"floor", "--keys", "1,4", "--writes", "20"},
			[]string{"keys=1", "keys=4"},
			[]string{"floor_cpu_us_per_write", "floor_delta_us_p50", "floor_ack_us_p99"},
		},
		{
			"views over quic",
			[]string{"views", "--edges", "3000", "--keys", "1,10", "--writes", "120"},
			[]string{"keys=1", "keys=10"},
			viewsMetrics,
		},
		{
			"views over webtransport",
			[]string{
				"views", "--edges", "3000", "--keys", "10", "--writes", "120",
				"--transport", "webtransport",
			},
			[]string{"keys=10"},
			viewsMetrics,
		},
		{
			"engine",
			[]string{"engine", "--quick", "--only", "loop/memory-1,loop/journal-256", "--runs", "2"},
			[]string{"loop/memory-1", "loop/journal-256"},
			[]string{"transaction_us", "answer_us_p50", "answer_us_p99", "engine_us"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"bench"}, tt.args...)
			args = append(args, "--json", "--dir", t.TempDir())
			cmd := exec.CommandContext(t.Context(), heddle, args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %v\n%s%s", cmd.Args, err, stdout.Bytes(), stderr.Bytes())
			}
			var r report.Report
			if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
				t.Fatalf("report: %v\n%s", err, stdout.Bytes())
			}
			if r.Schema != report.Schema || len(r.Cells) != len(tt.cells) {
				t.Fatalf("schema %q, %d cells; want %q, %d",
					r.Schema, len(r.Cells), report.Schema, len(tt.cells))
			}
			for i, c := range r.Cells {
				if c.Name != tt.cells[i] || !c.OK {
					t.Errorf("cell %s: ok=%v %v; want %s in order",
						c.Name, c.OK, c.Problems, tt.cells[i])
				}
				for _, m := range tt.metrics {
					if c.Metrics[m] <= 0 {
						t.Errorf("cell %s: %s = %v, want more than 0", c.Name, m, c.Metrics[m])
					}
				}
			}
		})
	}
}

var viewsMetrics = []string{
	"server_cpu_us_per_write", "floor_cpu_us_per_write", "delta_us_p50", "delta_us_p99",
	"floor_delta_us_p50", "floor_delta_us_p99", "ack_us_p50", "engine_us_per_commit", "rss_mb",
}

// testRefuses holds that a bench names what it cannot measure.
func testRefuses(t *testing.T, heddle string) {
	tests := []struct {
		name string
		args []string
		want string // in the error output
	}{
		{"no keys", []string{"floor", "--keys", "0"}, "--keys 0: want 1 to"},
		{"no writes", []string{"views", "--writes", "0"}, "--writes 0: want 1 to"},
		{
			"more keys than heads",
			[]string{"views", "--edges", "300", "--keys", "2"},
			"have 1 hot heads",
		},
		{
			"unknown transport",
			[]string{"floor", "--keys", "1", "--transport", "pigeon"},
			`--transport "pigeon": want quic`,
		},
		{"no edges", []string{"engine", "--edges", "10"}, "--edges 10: want 1000 to"},
		{"no runs", []string{"engine", "--runs", "0"}, "--runs 0: want 1 to"},
		{"unknown cell", []string{"engine", "--only", "write,nope"}, "--only nope: no cell"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"bench"}, tt.args...)
			out, err := exec.CommandContext(t.Context(), heddle, args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v: %v, want %q in\n%s", tt.args, err, tt.want, out)
			}
		})
	}
}
