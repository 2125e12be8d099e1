//go:build !linux

package loopbench

// cpuSeconds is unknown: only Linux is asked.
func cpuSeconds() float64 { return 0 }
