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
		go spin()
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "fail":
		fmt.Fprintln(os.Stderr, "the disk is on fire")
		os.Exit(3)
	}
}

// spin uses processor time until the process ends.
func spin() {
	for {
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
	var cpu time.Duration
	for cpu < 20*time.Millisecond && t.Context().Err() == nil {
		before := cpu
		if cpu, err = c.CPU(); err != nil {
			t.Fatal(err)
		}
		if cpu < before {
			t.Fatalf("processor time went back from %v to %v", before, cpu)
		}
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
