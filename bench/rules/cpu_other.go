//go:build !linux

package rules

import "time"

var processBegan = time.Now()

// threadTime is the wall clock's: only Linux is asked for the time of a thread.
func threadTime() time.Duration { return time.Since(processBegan) }
