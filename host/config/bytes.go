package config

import (
	"errors"
	"strconv"
	"strings"
)

// Bytes is a number of bytes, spelled with a unit: 256KiB.
type Bytes int64

var byteUnits = []struct {
	name string
	size int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String returns the number with the largest unit that leaves it whole.
func (b Bytes) String() string {
	for _, u := range byteUnits {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return "0B"
}

var errBytes = errors.New("expected a whole number and one of B, KiB, MiB, GiB, TiB or none")

// parseBytes reads a number that is not negative, a unit, and a space between
// them if there is one.
func parseBytes(s string) (Bytes, error) {
	size := int64(1)
	for _, u := range byteUnits {
		if number, ok := strings.CutSuffix(s, u.name); ok {
			s, size = strings.TrimSuffix(number, " "), u.size
			break
		}
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || int64(n) > (1<<63-1)/size {
		return 0, errBytes
	}
	return Bytes(int64(n) * size), nil
}
