package loopbench

import "golang.org/x/sys/unix"

// cpuSeconds is the processor time of this process, all its threads, so far.
func cpuSeconds() float64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return float64(ts.Nano()) / 1e9
}
