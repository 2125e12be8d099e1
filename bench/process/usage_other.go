//go:build !linux

package process

import (
	"errors"
	"fmt"
	"time"
)

// Only Linux tells the processor time of another process finely enough.

func cpuTime(int) (time.Duration, error) {
	return 0, fmt.Errorf("processor time of another process: %w", errors.ErrUnsupported)
}

func residentBytes(int) (int64, error) {
	return 0, fmt.Errorf("memory of another process: %w", errors.ErrUnsupported)
}
