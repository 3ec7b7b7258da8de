package kernel

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// doubleBlock is how many elements the assembly for float64s takes at a time.
const doubleBlock = 8

// Float64Map returns the function with the given name on vectors of float64s, or nil if there is
// none: add, sub, mul and div of x and y; sqrt, abs, neg, exp, expm1, sigmoid, tanh, log, log1p,
// sin and cos of x, which ignore y. Arguments are at least as long as dst, and may be dst. Errors
// are at most four units in the last place.
func Float64Map(name string) func(dst, x, y []float64) { return float64Maps[name] }

// The Go code computes the bits of the assembly: the same multiplications and additions are fused.
var float64Maps = map[string]func(dst, x, y []float64){
	"add":     map2(func(x, y float64) float64 { return x + y }, dAddBlocks, dAddAVX512),
	"sub":     map2(func(x, y float64) float64 { return x - y }, dSubBlocks, dSubAVX512),
	"mul":     map2(func(x, y float64) float64 { return x * y }, dMulBlocks, dMulAVX512),
	"div":     map2(func(x, y float64) float64 { return x / y }, dDivBlocks, dDivAVX512),
	"sqrt":    map1(math.Sqrt, dSqrtBlocks, dSqrtAVX512),
	"abs":     map1(math.Abs, dAbsBlocks, dAbsAVX512),
	"neg":     map1(func(x float64) float64 { return -x }, dNegBlocks, dNegAVX512),
	"exp":     map1(elementary.Exp, dExpBlocks, dExpAVX512),
	"expm1":   map1(elementary.Expm1, dExpm1Blocks, dExpm1AVX512),
	"sigmoid": map1(elementary.Sigmoid, dSigmoidBlocks, dSigmoidAVX512),
	"tanh":    map1(elementary.Tanh, dTanhBlocks, dTanhAVX512),
	"log":     map1(elementary.Log, dLogBlocks, dLogAVX512),
	"log1p":   map1(elementary.Log1p, dLog1pBlocks, dLog1pAVX512),
	"sin":     ifNear(elementary.Sin, map1(elementary.Sin, dSinBlocks, dSinAVX512)),
	"cos":     ifNear(elementary.Cos, map1(elementary.Cos, dCosBlocks, dCosAVX512)),
}

// map1 returns the function on vectors that runs assembly on whole blocks, and one on the rest.
func map1(one func(float64) float64, narrow, avx512 func(dst, x *float64, blocks int)) func(dst, x, _ []float64) {
	return func(dst, x, _ []float64) {
		x = head(x, len(dst))
		n := doubleBlocks(len(x))
		if n > 0 {
			wide(avx512, narrow)(&dst[0], &x[0], n)
		}
		for i := n * doubleBlock; i < len(x); i++ {
			dst[i] = one(x[i])
		}
	}
}

// map2 is map1 for functions of two arguments.
func map2(one func(x, y float64) float64, narrow, avx512 func(dst, x, y *float64, blocks int)) func(dst, x, y []float64) {
	return func(dst, x, y []float64) {
		x, y = head(x, len(dst)), head(y, len(dst))
		n := doubleBlocks(len(x))
		if n > 0 {
			wide(avx512, narrow)(&dst[0], &x[0], &y[0], n)
		}
		for i := n * doubleBlock; i < len(x); i++ {
			dst[i] = one(x[i], y[i])
		}
	}
}

// doubleBlocks is how many blocks of n elements the assembly takes.
func doubleBlocks(n int) int {
	if !bestSet.assembly() {
		return 0
	}
	return n / doubleBlock
}

// near is the largest argument of the sine and the cosine in assembly.
const near = 1 << 20

// ifNear returns all, except that one computes vectors with an argument that is too large for
// assembly.
func ifNear(one func(float64) float64, all func(dst, x, _ []float64)) func(dst, x, _ []float64) {
	return func(dst, x, _ []float64) {
		for _, v := range head(x, len(dst)) {
			if !(v <= near && v >= -near) {
				for i := range dst {
					dst[i] = one(x[i])
				}
				return
			}
		}
		all(dst, x, nil)
	}
}
