package dataflow

import (
	"math"
	"math/bits"
)

// intSum is a sum of ints that cannot overflow: fewer than 2^64 numbers are below
// 2^127 together.
type intSum struct{ high, low uint64 }

// add adds x, or takes it away.
func (s *intSum) add(x int64, take bool) {
	var carry uint64
	if take {
		s.low, carry = bits.Sub64(s.low, uint64(x), 0)
		s.high, _ = bits.Sub64(s.high, uint64(x>>63), carry)
		return
	}
	s.low, carry = bits.Add64(s.low, uint64(x), 0)
	s.high, _ = bits.Add64(s.high, uint64(x>>63), carry)
}

// total returns the sum, and false if no int64 holds it.
func (s intSum) total() (int64, bool) {
	return int64(s.low), s.high == uint64(int64(s.low)>>63)
}

// average returns the sum divided by a number that is not 0, rounded once.
func (s intSum) average(divisor uint64) float64 {
	number := [4]uint64{0, 0, s.low, s.high}
	isNegative := int64(s.high) < 0
	if isNegative {
		negate(number[:])
	}
	x, ok := divideRound(number[:], isNegative, -128, divisor)
	if !ok {
		return math.NaN() // it cannot be: 2^127 is a float
	}
	return x
}
