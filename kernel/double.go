package kernel

import (
	"math"

	"github.com/nnopt/nnopt/kernel/elementary"
)

// Functions of float64s, in assembly for whole blocks. The Go code computes the same bits: multiplications and additions that the assembly
// fuses are fused here as well. Errors are at most three units in the last place.

// doubleBlock is how many elements the assembly treats at a time.
const doubleBlock = 8

// map1 runs assembly on whole blocks of x, and a function on the rest.
func map1(dst, x []float64, avx2, avx512 func(dst, x *float64, blocks int), one func(float64) float64) {
	x = head(x, len(dst))
	done := 0
	if n := len(x) / doubleBlock; n > 0 && bestSet >= avx2Set {
		done = n * doubleBlock
		if bestSet == avx512Set {
			avx512(&dst[0], &x[0], n)
		} else {
			avx2(&dst[0], &x[0], n)
		}
	}
	for i := done; i < len(x); i++ {
		dst[i] = one(x[i])
	}
}

func map2(dst, x, y []float64, avx2, avx512 func(dst, x, y *float64, blocks int), one func(x, y float64) float64) {
	x, y = head(x, len(dst)), head(y, len(dst))
	done := 0
	if n := len(x) / doubleBlock; n > 0 && bestSet >= avx2Set {
		done = n * doubleBlock
		if bestSet == avx512Set {
			avx512(&dst[0], &x[0], &y[0], n)
		} else {
			avx2(&dst[0], &x[0], &y[0], n)
		}
	}
	for i := done; i < len(x); i++ {
		dst[i] = one(x[i], y[i])
	}
}

// DAdd sets dst to x + y, element by element. As with all functions here, dst may be an argument.
func DAdd(dst, x, y []float64) {
	map2(dst, x, y, dAddAVX2, dAddAVX512, func(x, y float64) float64 { return x + y })
}

// DSub sets dst to x - y.
func DSub(dst, x, y []float64) {
	map2(dst, x, y, dSubAVX2, dSubAVX512, func(x, y float64) float64 { return x - y })
}

// DMul sets dst to x·y.
func DMul(dst, x, y []float64) {
	map2(dst, x, y, dMulAVX2, dMulAVX512, func(x, y float64) float64 { return x * y })
}

// DDiv sets dst to x/y.
func DDiv(dst, x, y []float64) {
	map2(dst, x, y, dDivAVX2, dDivAVX512, func(x, y float64) float64 { return x / y })
}

// DSqrt sets dst to the square root of x.
func DSqrt(dst, x []float64) { map1(dst, x, dSqrtAVX2, dSqrtAVX512, math.Sqrt) }

// DAbs sets dst to |x|.
func DAbs(dst, x []float64) { map1(dst, x, dAbsAVX2, dAbsAVX512, math.Abs) }

// DNeg sets dst to -x.
func DNeg(dst, x []float64) {
	map1(dst, x, dNegAVX2, dNegAVX512, func(x float64) float64 { return -x })
}

// DExp sets dst to e**x.
func DExp(dst, x []float64) { map1(dst, x, dExpAVX2, dExpAVX512, elementary.Exp) }

// DExpm1 sets dst to e**x - 1.
func DExpm1(dst, x []float64) { map1(dst, x, dExpm1AVX2, dExpm1AVX512, elementary.Expm1) }

// DSigmoid sets dst to 1/(1+e**-x).
func DSigmoid(dst, x []float64) { map1(dst, x, dSigmoidAVX2, dSigmoidAVX512, elementary.Sigmoid) }

// DTanh sets dst to the hyperbolic tangent of x.
func DTanh(dst, x []float64) { map1(dst, x, dTanhAVX2, dTanhAVX512, elementary.Tanh) }

// DLog sets dst to the natural logarithm of x.
func DLog(dst, x []float64) { map1(dst, x, dLogAVX2, dLogAVX512, elementary.Log) }

// DLog1p sets dst to log(1 + x).
func DLog1p(dst, x []float64) { map1(dst, x, dLog1pAVX2, dLog1pAVX512, elementary.Log1p) }

// DSin sets dst to the sine of x.
func DSin(dst, x []float64) {
	if allNear(head(x, len(dst))) {
		map1(dst, x, dSinAVX2, dSinAVX512, elementary.Sin)
		return
	}
	for i := range dst {
		dst[i] = elementary.Sin(x[i])
	}
}

// DCos sets dst to the cosine of x.
func DCos(dst, x []float64) {
	if allNear(head(x, len(dst))) {
		map1(dst, x, dCosAVX2, dCosAVX512, elementary.Cos)
		return
	}
	for i := range dst {
		dst[i] = elementary.Cos(x[i])
	}
}

// allNear reports whether the sine can be computed of all elements.
func allNear(x []float64) bool {
	for _, v := range x {
		if !(v <= elementary.Near && v >= -elementary.Near) {
			return false
		}
	}
	return true
}
