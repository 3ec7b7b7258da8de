package array

import (
	"math"
	"strconv"

	"github.com/nnopt/nnopt/internal/half"
)

// An F16 is a float16 of IEEE 754: a sign, 5 bits of an exponent and 10 bits of a fraction. The largest
// one is 65504.
type F16 uint16

// A BF16 is a bfloat16: the first 16 bits of a float32.
type BF16 uint16

// F16Of returns the float16 that is nearest to v, of two the one with an even last bit.
func F16Of(v float32) F16 { return F16(half.Bits(v)) }

// f16OfDouble is F16Of for float64s, which are rounded once.
func f16OfDouble(v float64) F16 {
	// A float32 whose last bit says that something was cut off is on the right side of all borders
	// between float16s, and of their middles.
	f := float32(v)
	if back := float64(f); back != v && v == v {
		bits := math.Float32bits(f)
		if math.Abs(back) > math.Abs(v) {
			bits--
		}
		f = math.Float32frombits(bits | 1)
	}
	return F16Of(f)
}

// Float32 returns the number as a float32, which has all of them.
func (h F16) Float32() float32 { return half.Float32(uint16(h)) }

// BF16Of returns the bfloat16 that is nearest to v, of two the one with an even last bit.
func BF16Of(v float32) BF16 {
	bits := math.Float32bits(v)
	if v != v {
		return BF16(bits>>16) | 0x40
	}
	return BF16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float32 returns the number as a float32, which has all of them.
func (h BF16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

// Loops of their own, and no function of a type parameter: methods of those are not inlined.

func widenF16(dst []float32, src []F16) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = v.Float32()
	}
}

func widenBF16(dst []float32, src []BF16) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = v.Float32()
	}
}

func roundF16(dst []F16, src []float32) {
	dst = dst[:len(src)]
	for i, v := range src {
		bits := math.Float32bits(v)
		if n := bits&(1<<31-1) - 0x38800000; n < 0x47800000-0x38800000 { // a normal float16, or one that rounds to infinity
			dst[i] = F16(bits>>16&0x8000) | F16((n+0x800000+0xfff+bits>>13&1)>>13)
			continue
		}
		dst[i] = F16Of(v)
	}
}

func roundBF16(dst []BF16, src []float32) {
	for i, v := range src {
		dst[i] = BF16Of(v)
	}
}

// decimal returns the number with the fewest decimal digits that is rounded to h.
func (h F16) decimal() float64 {
	return fewestDigits(float64(h.Float32()), 5, func(v float64) bool { return f16OfDouble(v) == h })
}

// decimal returns the number with the fewest decimal digits that is rounded to h.
func (h BF16) decimal() float64 {
	return fewestDigits(float64(h.Float32()), 4, func(v float64) bool { return BF16Of(float32(v)) == h })
}

// fewestDigits rounds v to the fewest digits that f accepts, which most digits are certain to be.
func fewestDigits(v float64, most int, f func(float64) bool) float64 {
	for digits := range most {
		if w, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits, 64), 64); err == nil && f(w) {
			return w
		}
	}
	return v
}
