package report

import (
	"math"
	"slices"
	"time"
)

// Percentile returns the nearest-rank percentile of samples, p in (0, 1]: the
// smallest sample that at least the fraction p of all samples does not exceed.
// It sorts samples in place and returns 0 for none.
func Percentile(samples []time.Duration, p float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	slices.Sort(samples)
	// The product of p and the count may miss a whole number by a rounding
	// error, and would then skip a rank.
	rank := int(math.Ceil(p*float64(len(samples)) - 1e-9))
	return samples[min(max(rank, 1), len(samples))-1]
}

// Micros returns d in microseconds, to a tenth.
func Micros(d time.Duration) float64 { return Round(float64(d)/1e3, 1) }

// Round rounds v to so many decimal places: a report should not claim digits
// that the measurement does not have.
func Round(v float64, places int) float64 {
	scale := math.Pow10(places)
	return math.Round(v*scale) / scale
}

// Series collects what the writes of one cell cost. For one goroutine.
type Series struct {
	Acks, Deltas []time.Duration // one of each write
	CPU          time.Duration   // of the server, over all writes
	Wall         time.Duration   // over all writes
}

// Add appends another run of the same cell.
func (s *Series) Add(o Series) {
	s.Acks = append(s.Acks, o.Acks...)
	s.Deltas = append(s.Deltas, o.Deltas...)
	s.CPU += o.CPU
	s.Wall += o.Wall
}

// CPUPerWrite is the server's processor time for one write, 0 without writes.
func (s *Series) CPUPerWrite() time.Duration {
	if len(s.Acks) == 0 {
		return 0
	}
	return s.CPU / time.Duration(len(s.Acks))
}

// Metrics adds the series to a cell. The names of latencies begin with prefix,
// which is "" for the server under test and "floor_" for the floor beside it.
func (s *Series) Metrics(c *Cell, prefix string) {
	for _, m := range []struct {
		name    string
		samples []time.Duration
	}{{"ack_us", s.Acks}, {"delta_us", s.Deltas}} {
		c.Metrics[prefix+m.name+"_p50"] = Micros(Percentile(m.samples, 0.50))
		c.Metrics[prefix+m.name+"_p99"] = Micros(Percentile(m.samples, 0.99))
	}
	if s.Wall > 0 {
		c.Metrics[prefix+"writes_per_second"] = Round(float64(len(s.Acks))/s.Wall.Seconds(), 0)
	}
}
