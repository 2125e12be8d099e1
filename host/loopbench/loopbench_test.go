package loopbench

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

func TestRunsWriteAndLeaveNothing(t *testing.T) {
	for _, disk := range []bool{true, false} {
		dir := t.TempDir()
		var out bytes.Buffer
		c := Command()
		c.SetOut(&out)
		args := []string{
			"--dir", dir, "--runs", "2", "--time", "50ms", "--edges", "2000",
			"--writers", "8", "--keys", "10",
		}
		if !disk {
			args = append(args, "--no-disk")
		}
		c.SetArgs(args)
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		var runs []Run
		if err := json.Unmarshal(out.Bytes(), &runs); err != nil {
			t.Fatal(err)
		}
		if len(runs) != 2 {
			t.Fatalf("%d runs", len(runs))
		}
		for _, r := range runs {
			// Every write changes one row of a watched key, which is told of.
			if r.Transactions < 8 || r.Rows != r.Transactions || r.Batches > r.Transactions ||
				r.P50 <= 0 || r.P99 < r.P50 || r.Engine <= 0 {
				t.Errorf("disk=%v: %+v", disk, r)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%d files are left, %v", len(left), err)
		}
	}
}
