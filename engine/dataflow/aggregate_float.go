package dataflow

import (
	"math"
	"math/bits"
)

// floatSums holds exact sums of floats, one for each group of an aggregate. A sum
// is a window of limbs of one long fixed-point number in two's complement that
// covers all floats, so that the order of additions never matters and a number
// taken out leaves nothing behind. Blocks of limbs come in a few sizes and are
// used again; there are no pointers.
type floatSums struct {
	chunks  [][]uint64
	used    int // limbs of the last chunk
	free    [len(floatLimbs)]uint32
	live    int
	scratch [floatLimbsMax + 2]uint64
}

const (
	// Bit 0 of limb 0 is 2^-floatBias. A float has bits from -1074 to 1023; the
	// limbs above the last hold the carries of any number of additions.
	floatBias     = 1088
	floatLimbsMax = 36
	// The top limb of a window stays within this magnitude: additions into it are
	// below 2^54, and widen the window before they could overflow it.
	floatTopMax = 1 << 62

	// Only the first chunk is ever recopied, while it is smaller than the others.
	floatChunkBits  = 13
	floatChunkLimbs = 1 << floatChunkBits
	floatFirstLimbs = 32
)

// floatLimbs are the sizes of windows.
var floatLimbs = [...]int{2, 4, 8, 16, floatLimbsMax}

// A sum is a word, its lowest limb's number and its class, and then the limbs.
const floatClassShift = 8

// alloc returns a sum of 0 that is not shaped yet.
func (f *floatSums) alloc(class int) uint32 {
	f.live++
	size := 1 + floatLimbs[class]
	if ref := f.free[class]; ref != 0 {
		f.free[class] = uint32(f.at(ref)[0])
		clear(f.at(ref)[:size])
		return ref
	}
	last := len(f.chunks) - 1
	switch {
	case last < 0 || f.used+size > floatChunkLimbs:
		limbs := floatChunkLimbs
		if last < 0 {
			limbs = max(floatFirstLimbs, size)
		}
		f.chunks = append(f.chunks, make([]uint64, limbs))
		f.used = 0
		last++
	case f.used+size > len(f.chunks[last]):
		limbs := min(max(2*len(f.chunks[last]), f.used+size), floatChunkLimbs)
		grown := make([]uint64, limbs)
		copy(grown, f.chunks[last])
		f.chunks[last] = grown
	}
	at := last<<floatChunkBits + f.used
	if at >= math.MaxUint32 {
		panic("dataflow: too many sums of floats")
	}
	f.used += size
	return uint32(at) + 1 // references are never 0
}

// release gives a sum back; 0 is none. With the last one goes the memory of many.
func (f *floatSums) release(ref uint32) {
	if ref == 0 {
		return
	}
	if f.live--; f.live == 0 && len(f.chunks) > 1 {
		*f = floatSums{}
		return
	}
	_, class := f.shape(ref)
	f.at(ref)[0] = uint64(f.free[class])
	f.free[class] = ref
}

// at returns the limbs from a sum's first word to the end of its chunk. The slice is
// valid until the next alloc.
func (f *floatSums) at(ref uint32) []uint64 {
	ref--
	return f.chunks[ref>>floatChunkBits][ref&(floatChunkLimbs-1):]
}

func (f *floatSums) shape(ref uint32) (low, class int) {
	word := f.at(ref)[0]
	return int(word & (1<<floatClassShift - 1)), int(word >> floatClassShift)
}

func (f *floatSums) window(ref uint32, class int) []uint64 {
	return f.at(ref)[1 : 1+floatLimbs[class]]
}

// add adds x to a sum (0: one that is not made yet), or takes it away, and returns
// the sum.
func (f *floatSums) add(ref uint32, x float64, take bool) uint32 {
	word := math.Float64bits(x)
	mantissa, exponent := word&(1<<52-1), int(word>>52&0x7FF)
	if exponent == 0 {
		exponent = 1
	} else {
		mantissa |= 1 << 52
	}
	place := exponent - 1075 + floatBias
	limb := place / 64
	hi, lo := bits.Mul64(mantissa, 1<<(place%64))
	if ref == 0 {
		ref = f.alloc(0)
		f.at(ref)[0] = uint64(limb)
	}
	low, class := f.shape(ref)
	if top := low + floatLimbs[class] - 1; limb < low || limb+1 > top {
		ref = f.widen(ref, min(low, limb), max(top, limb+1))
		low, class = f.shape(ref)
	}
	w := f.window(ref, class)
	var carry uint64
	at := limb - low
	if take == (int64(word) >= 0) { // the sign of what is added
		w[at], carry = bits.Sub64(w[at], lo, 0)
		w[at+1], carry = bits.Sub64(w[at+1], hi, carry)
		for i := at + 2; carry != 0 && i < len(w); i++ {
			w[i], carry = bits.Sub64(w[i], 0, carry)
		}
	} else {
		w[at], carry = bits.Add64(w[at], lo, 0)
		w[at+1], carry = bits.Add64(w[at+1], hi, carry)
		for i := at + 2; carry != 0 && i < len(w); i++ {
			w[i], carry = bits.Add64(w[i], 0, carry)
		}
	}
	if top := int64(w[len(w)-1]); top >= floatTopMax || top < -floatTopMax {
		ref = f.widen(ref, low, low+len(w))
	}
	return ref
}

// widen moves a sum to a window that covers the limbs from low to top at least.
func (f *floatSums) widen(ref uint32, low, top int) uint32 {
	class := 0
	for floatLimbs[class] < top-low+1 {
		class++
	}
	low = min(low, floatLimbsMax-floatLimbs[class])
	to := f.alloc(class)
	f.at(to)[0] = uint64(low) | uint64(class)<<floatClassShift
	oldLow, oldClass := f.shape(ref)
	old, w := f.window(ref, oldClass), f.window(to, class)
	n := copy(w[oldLow-low:], old)
	if int64(old[len(old)-1]) < 0 {
		for i := oldLow - low + n; i < len(w); i++ {
			w[i] = math.MaxUint64
		}
	}
	f.release(ref)
	return to
}

// quotient returns a sum divided by a number that is not 0, rounded once, to the
// nearest float and half to even, and false if that is no float.
func (f *floatSums) quotient(ref uint32, divisor uint64) (float64, bool) {
	if ref == 0 {
		return 0, true
	}
	low, class := f.shape(ref)
	w := f.window(ref, class)
	// Two limbs below the window hold the quotient's bits that rounding looks at.
	number := f.scratch[:len(w)+2]
	number[0], number[1] = 0, 0
	copy(number[2:], w)
	isNegative := int64(w[len(w)-1]) < 0
	if isNegative {
		negate(number)
	}
	return divideRound(number, isNegative, 64*(low-2)-floatBias, divisor)
}

// bytes returns the memory of all sums.
func (f *floatSums) bytes() int {
	n := 0
	for _, c := range f.chunks {
		n += 8 * len(c)
	}
	return n
}

func negate(number []uint64) {
	carry := uint64(1)
	for i := range number {
		number[i], carry = bits.Add64(^number[i], 0, carry)
	}
}

// divideRound returns a number, least limb first, times 2^exponent and divided by
// divisor, rounded to the nearest float, and false if that is no float. There must
// be 64 bits of the number's below its last significant one, or the exponent be so
// small that the floats end there. The number is overwritten.
func divideRound(number []uint64, isNegative bool, exponent int, divisor uint64) (float64, bool) {
	var rest uint64
	for i := len(number) - 1; i >= 0; i-- {
		number[i], rest = bits.Div64(rest, number[i], divisor)
	}
	top := len(number) - 1
	for top >= 0 && number[top] == 0 {
		top--
	}
	if top < 0 {
		return 0, true // floats are multiples of the smallest: nothing smaller is half of it
	}
	// The 64 bits from the first that is set.
	shift := bits.LeadingZeros64(number[top])
	head := number[top] << shift
	sticky := rest != 0
	if top > 0 {
		if shift > 0 {
			head |= number[top-1] >> (64 - shift)
		}
		sticky = sticky || number[top-1]<<shift != 0
		for _, limb := range number[:top-1] {
			sticky = sticky || limb != 0
		}
	}
	exponent += 64*top - shift // of the last bit of head
	drop := max(11, -1074-exponent)
	if drop > 64 {
		return 0, true
	}
	half := uint64(1) << (drop - 1)
	var kept uint64
	if drop < 64 {
		kept = head >> drop
	}
	tail := head & (half<<1 - 1)
	if tail > half || tail == half && (sticky || kept&1 != 0) {
		kept++
	}
	x := math.Ldexp(float64(kept), exponent+drop)
	if isNegative {
		x = -x
	}
	return x, !math.IsInf(x, 0)
}
