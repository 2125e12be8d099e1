package process

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the child that the tests start.
func TestMain(m *testing.M) {
	switch os.Getenv("BENCH_PROCESS_CHILD") {
	case "":
		os.Exit(m.Run())
	case "serve":
		fmt.Println("ready at 7")
		spin(30 * time.Millisecond)
		fmt.Println("spun")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "fail":
		fmt.Fprintln(os.Stderr, "the disk is on fire")
		os.Exit(3)
	}
}

// spin uses about d of processor time.
func spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
		_ = strings.Repeat("x", 1000)
	}
}

func TestChildIsMeasuredAndStopped(t *testing.T) {
	c, err := StartSelf(t.Context(), []string{"BENCH_PROCESS_CHILD=serve"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Ready != "ready at 7" {
		t.Errorf("ready line %q", c.Ready)
	}
	deadline := time.Now().Add(10 * time.Second)
	var cpu time.Duration
	for cpu < 20*time.Millisecond && time.Now().Before(deadline) {
		if cpu, err = c.CPU(); err != nil {
			t.Fatal(err)
		}
	}
	if cpu < 20*time.Millisecond || cpu > 5*time.Second {
		t.Errorf("processor time %v after 30 ms of work", cpu)
	}
	if rss, err := c.RSS(); err != nil || rss < 1<<20 {
		t.Errorf("RSS = %d, %v; want more than 1 MiB", rss, err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

func TestFailedStartTellsWhatTheChildSaid(t *testing.T) {
	_, err := StartSelf(t.Context(), []string{"BENCH_PROCESS_CHILD=fail"})
	if err == nil || !strings.Contains(err.Error(), "the disk is on fire") {
		t.Errorf("error %v, want the child's own words in it", err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	tl := &tail{max: 5}
	for _, s := range []string{"abc", "defg", "h"} {
		if _, err := io.WriteString(tl, s); err != nil {
			t.Fatal(err)
		}
	}
	if got := tl.text(); got != "\ndefgh" {
		t.Errorf("kept %q", got)
	}
}
