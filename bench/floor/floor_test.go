package floor

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"
)

// TestMain lets the test binary be the server that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv("BENCH_FLOOR_SERVER") == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := Serve(ctx, os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func options(t *testing.T) Options {
	return Options{Env: []string{"BENCH_FLOOR_SERVER=1"}, Directory: t.TempDir()}
}

func TestRunBothTransports(t *testing.T) {
	for _, transport := range []string{"quic", "webtransport"} {
		t.Run(transport, func(t *testing.T) {
			o := options(t)
			o.Transport = transport
			r, err := Run(t.Context(), o, []int{1, 3}, 20)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Cells) != 2 {
				t.Fatalf("%d cells, want 2", len(r.Cells))
			}
			for _, c := range r.Cells {
				if !c.OK {
					t.Errorf("%s: %v", c.Name, c.Problems)
				}
				for _, m := range []string{
					"floor_cpu_us_per_write", "floor_ack_us_p50", "floor_ack_us_p99",
					"floor_delta_us_p50", "floor_delta_us_p99", "floor_rss_mb",
				} {
					if c.Metrics[m] <= 0 {
						t.Errorf("%s: %s = %v, want more than 0", c.Name, m, c.Metrics[m])
					}
				}
			}
			if left, err := os.ReadDir(o.Directory); err != nil || len(left) != 0 {
				t.Errorf("the store is not removed: %v, %v", left, err)
			}
		})
	}
}

func TestACellThatCannotBeMeasuredSaysWhy(t *testing.T) {
	o := options(t)
	o.Transport = "pigeon"
	r, err := Run(t.Context(), o, []int{1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Cells[0]; c.OK || len(c.Problems) == 0 {
		t.Errorf("cell %+v, want a problem", c)
	}
}
