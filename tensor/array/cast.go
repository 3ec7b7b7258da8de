package array

import (
	"math"
	"strconv"

	"github.com/nnopt/nnopt/internal/half"
	"github.com/nnopt/nnopt/internal/kernel"
)

// runCast converts a block. Half floats take the way over float32s, for which there is a lane.
func runCast(from, to DType, dst, a, wide *lane, n int) {
	switch {
	case from.IsHalf() && to == Float32:
		a.widen(from, dst.f[:n])
		return
	case from.IsHalf():
		a.widen(from, wide.f[:n])
		from, a = Float32, wide
	case to == Float16 && from == Float64: // rounded once
		for i, v := range a.d[:n] {
			dst.h[i] = f16OfDouble(v)
		}
		return
	}
	if to.IsHalf() {
		if from != Float32 {
			runCast(from, Float32, wide, a, nil, n)
			a = wide
		}
		dst.round(to, a.f[:n])
		return
	}
	numerics[from].cast(to, dst, a, n)
}

// castFloats is castNumbers with vector code for bytes, which quantizing makes.
func castFloats(to DType, dst *lane, a []float32) {
	switch n := len(a); to {
	case Int8:
		kernel.BytesVec(bytesOf(dst.i8[:n]), a)
	case Uint8:
		kernel.BytesVec(dst.u8[:n], a)
	default:
		castNumbers(to, dst, a)
	}
}

func castNumbers[T number](to DType, dst *lane, a []T) {
	switch n := len(a); to {
	case Bool:
		boolBlock(dst.b[:n], a)
	case Int8:
		castBlock(dst.i8[:n], a)
	case Int16:
		castBlock(dst.i16[:n], a)
	case Int32:
		castBlock(dst.i32[:n], a)
	case Int64:
		castBlock(dst.i[:n], a)
	case Uint8:
		castBlock(dst.u8[:n], a)
	case Uint16:
		castBlock(dst.u16[:n], a)
	case Uint32:
		castBlock(dst.u32[:n], a)
	case Uint64:
		castBlock(dst.u[:n], a)
	case Float32:
		castBlock(dst.f[:n], a)
	case Float64:
		castBlock(dst.d[:n], a)
	}
}

// widen converts half floats of a type.
func (l *lane) widen(t DType, dst []float32) {
	if t == Float16 {
		kernel.WidenHalf(dst, l.h[:len(dst)])
	} else {
		widenBF16(dst, l.bh[:len(dst)])
	}
}

// round makes half floats of a type.
func (l *lane) round(t DType, src []float32) {
	if t == Float16 {
		kernel.RoundHalf(l.h[:len(src)], src)
	} else {
		roundBF16(l.bh[:len(src)], src)
	}
}

// isFloat reports whether numbers have fractions. It is a constant to the compiler, which leaves out what follows for
// other types; with the DType, all loops of castBlock were compiled for all pairs of types.
func isFloat[T number]() bool { return T(1)/2 != 0 }

// castBlock is Cast between numbers; see toInt, toInt32 and toUint.
func castBlock[R, T number](dst []R, a []T) {
	switch to := dtypeOf[R](); {
	case isFloat[R]() || !isFloat[T]():
		for i := range dst {
			dst[i] = R(a[i])
		}
	case to == Uint64:
		for i := range dst {
			dst[i] = R(toUint(float64(a[i])))
		}
	case to == Int64 || to == Uint32:
		for i := range dst {
			dst[i] = R(toInt(float64(a[i])))
		}
	default:
		for i := range dst {
			dst[i] = R(toInt32(float64(a[i])))
		}
	}
}

// ofDouble is castBlock of a number.
func ofDouble[T number](v float64) T {
	var to [1]T
	castBlock(to[:], []float64{v})
	return to[0]
}

func boolBlock[T number](dst []bool, a []T) {
	for i := range dst {
		dst[i] = a[i] != 0
	}
}

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

func widenBF16(dst []float32, src []BF16) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = v.Float32()
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
