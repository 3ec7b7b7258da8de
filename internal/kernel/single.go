package kernel

import (
	"math"
	"unsafe"

	"github.com/nnopt/nnopt/internal/half"
)

// Float32Map returns the function with the given name on vectors of float32s, or nil if there is
// none: add, sub, mul, div, max and min of x and y; abs, neg, sqrt, round (to even), floor, ceil, trunc,
// erf, erfc and expm1 of x, which ignore y. The others are at least as long as x, and dst may be x or y. The larger and the
// smaller of two numbers are NaN if one of them is, and x where both are zeros.
func Float32Map(name string) func(dst, x, y []float32) { return float32Maps[name] }

var float32Maps = map[string]func(dst, x, y []float32){
	"add": single2(func(x, y float32) float32 { return x + y }, sumBlocks),
	"sub": single2(func(x, y float32) float32 { return x - y }, subBlocks),
	"mul": single2(func(x, y float32) float32 { return x * y }, mulBlocks),
	"div": single2(func(x, y float32) float32 { return x / y }, divBlocks),
	"max": largerVec,
	"min": smallerVec,
	"neg": single1(func(x float32) float32 { return -x }, negBlocks, negBlocks),
	// The square root of a float64 that is rounded again is rounded as if once.
	"sqrt":  single1(func(x float32) float32 { return float32(math.Sqrt(float64(x))) }, sqrtBlocks, sqrtBlocks),
	"abs":   single1(func(x float32) float32 { return float32(math.Abs(float64(x))) }, absBlocks, absBlocks),
	"round": single1(func(x float32) float32 { return float32(math.RoundToEven(float64(x))) }, roundBlocks, roundBlocks),
	"floor": single1(func(x float32) float32 { return float32(math.Floor(float64(x))) }, floorBlocks, floorBlocks),
	"ceil":  single1(func(x float32) float32 { return float32(math.Ceil(float64(x))) }, ceilBlocks, ceilBlocks),
	"trunc": single1(func(x float32) float32 { return float32(math.Trunc(float64(x))) }, truncBlocks, truncBlocks),
	"erf":   single1(erf, erfBlocks, erfAVX512),
	"erfc":  single1(erfc, erfcBlocks, erfcAVX512),
	"expm1": single1(expm1, expm1Blocks, expm1AVX512),
}

// single1 returns the function on vectors that runs assembly on whole blocks, and one on the rest.
func single1(one func(x float32) float32, narrow, avx512 func(dst, x *float32, blocks int)) func(dst, x, _ []float32) {
	return func(dst, x, _ []float32) {
		dst, n := head(dst, len(x)), wholeBlocks(len(x))
		if n > 0 {
			wide(avx512, narrow)(&dst[0], &x[0], n)
		}
		for i := n * block; i < len(x); i++ {
			dst[i] = one(x[i])
		}
	}
}

// single2 is single1 for functions of two arguments. Wider vectors would not help: these move
// memory more than they compute.
func single2(one func(x, y float32) float32, blocks func(dst, x, y *float32, blocks int)) func(dst, x, y []float32) {
	return func(dst, x, y []float32) {
		dst, y, n := head(dst, len(x)), head(y, len(x)), wholeBlocks(len(x))
		if n > 0 {
			blocks(&dst[0], &x[0], &y[0], n)
		}
		for i := n * block; i < len(x); i++ {
			dst[i] = one(x[i], y[i])
		}
	}
}

// largerVec and smallerVec compute the rest in a block of their own, because branches on random
// numbers take longer: pools have as many elements as there are channels.
func largerVec(dst, x, y []float32) {
	dst, y, n := head(dst, len(x)), head(y, len(x)), wholeBlocks(len(x))
	if n > 0 {
		largerBlocks(&dst[0], &x[0], &y[0], n)
	}
	if n *= block; n < len(x) && bestSet.assembly() {
		var a, b [block]float32
		copy(a[:], x[n:])
		copy(b[:], y[n:])
		largerBlocks(&a[0], &a[0], &b[0], 1)
		n += copy(dst[n:len(x)], a[:])
	}
	for i := n; i < len(x); i++ {
		dst[i] = larger(x[i], y[i])
	}
}

func smallerVec(dst, x, y []float32) {
	dst, y, n := head(dst, len(x)), head(y, len(x)), wholeBlocks(len(x))
	if n > 0 {
		smallerBlocks(&dst[0], &x[0], &y[0], n)
	}
	if n *= block; n < len(x) && bestSet.assembly() {
		var a, b [block]float32
		copy(a[:], x[n:])
		copy(b[:], y[n:])
		smallerBlocks(&a[0], &a[0], &b[0], 1)
		n += copy(dst[n:len(x)], a[:])
	}
	for i := n; i < len(x); i++ {
		dst[i] = smaller(x[i], y[i])
	}
}

func larger(x, y float32) float32 {
	if x >= y || x != x {
		return x
	}
	return y
}

func smaller(x, y float32) float32 {
	if x <= y || x != x {
		return x
	}
	return y
}

// BytesVec sets dst to the last 8 bits of the integers that x is rounded to towards zero: of two's complement,
// those of an int8 and of a uint8. They are 0 for what is no int32, such as NaN. dst is at least as long as x.
func BytesVec(dst []byte, x []float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		bytesBlocks(&dst[0], &x[0], n)
	}
	for i := n * block; i < len(x); i++ {
		dst[i] = byteOf(x[i])
	}
}

func byteOf(v float32) byte {
	if v >= -1<<31 && v < 1<<31 {
		return byte(int32(v))
	}
	return 0
}

// CodesVec sets dst to x/scale, rounded to the nearest integer with halves to even, plus zero, but at least lo and at most
// hi; as bytes, like BytesVec. dst, scale and zero are at least as long as x.
func CodesVec(dst []byte, x, scale, zero []float32, lo, hi float32) {
	dst, scale, zero = head(dst, len(x)), head(scale, len(x)), head(zero, len(x))
	n := wholeBlocks(len(x))
	if n > 0 {
		codesBlocks(&dst[0], &x[0], &scale[0], &zero[0], n, lo, hi)
	}
	for i := n * block; i < len(x); i++ {
		v := float32(math.RoundToEven(float64(x[i]/scale[i]))) + zero[i]
		dst[i] = byteOf(min(max(v, lo), hi))
	}
}

// WidenHalf sets dst to float16s, of which x has the bits. dst is at least as long as x.
func WidenHalf[H ~uint16](dst []float32, x []H) {
	dst = head(dst, len(x))
	n := wholeBlocks(len(x))
	if n > 0 {
		widenHalfBlocks(&dst[0], (*uint16)(unsafe.Pointer(&x[0])), n)
	}
	for i := n * block; i < len(x); i++ {
		dst[i] = half.Float32(uint16(x[i]))
	}
}

// RoundHalf sets dst to the bits of the float16s that are nearest to x, of two the ones with an even last bit. dst is at
// least as long as x.
func RoundHalf[H ~uint16](dst []H, x []float32) {
	dst = head(dst, len(x))
	n := wholeBlocks(len(x))
	if n > 0 {
		roundHalfBlocks((*uint16)(unsafe.Pointer(&dst[0])), &x[0], n)
	}
	for i := n * block; i < len(x); i++ {
		bits := math.Float32bits(x[i])
		if n := bits&(1<<31-1) - 0x38800000; n < 0x47800000-0x38800000 { // a normal float16, or one that rounds to infinity
			dst[i] = H(bits>>16&0x8000) | H((n+0x800000+0xfff+bits>>13&1)>>13)
			continue
		}
		dst[i] = H(half.Bits(x[i]))
	}
}

// EverySecond sets dst to every second element of x, which has an even number of them, from the first one on. dst is
// at least half as long.
func EverySecond(dst, x []float32) {
	dst = head(dst, len(x)/2)
	n := wholeBlocks(len(dst))
	if n > 0 {
		evensBlocks(&dst[0], &x[0], n)
	}
	for i := n * block; i < len(dst); i++ {
		dst[i] = x[2*i]
	}
}

// Interleave sets dst to x[0], y[0], x[1], y[1] and so on. y is at least as long as x, and dst twice as long.
func Interleave(dst, x, y []float32) {
	dst, y, n := head(dst, 2*len(x)), head(y, len(x)), wholeBlocks(len(x))
	if n > 0 {
		interleaveBlocks(&dst[0], &x[0], &y[0], n)
	}
	for i := n * block; i < len(x); i++ {
		dst[2*i], dst[2*i+1] = x[i], y[i]
	}
}

// Interleave3 is Interleave for three vectors: y and z are at least as long as x, and dst three times as long.
func Interleave3(dst, x, y, z []float32) {
	dst, y, z, n := head(dst, 3*len(x)), head(y, len(x)), head(z, len(x)), wholeBlocks(len(x))
	if n > 0 {
		interleave3Blocks(&dst[0], &x[0], &y[0], &z[0], n)
	}
	for i := n * block; i < len(x); i++ {
		row := dst[3*i:][:3]
		row[0], row[1], row[2] = x[i], y[i], z[i]
	}
}

// GELUVec sets dst to x·erfc(-t), element by element. With t = x/√2 that is twice the Gaussian error
// linear unit (Hendrycks and Gimpel, 2016).
func GELUVec(dst, x, t []float32) {
	dst, t, n := head(dst, len(x)), head(t, len(x)), wholeBlocks(len(x))
	if n > 0 {
		wide(geluAVX512, geluBlocks)(&dst[0], &x[0], &t[0], n)
	}
	for i := n * block; i < len(x); i++ {
		dst[i] = x[i] * erfc(-t[i])
	}
}

// GELUOfVec sets dst to x·erfc(-x/root)·factor, element by element: with √2 and 0.5, the Gaussian error linear unit.
// Each operation is rounded by itself.
func GELUOfVec(dst, x []float32, root, factor float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		wide(geluOfAVX512, geluOfBlocks)(&dst[0], &x[0], n, root, factor)
	}
	for i := n * block; i < len(x); i++ {
		dst[i] = float32(x[i]*erfc(-(x[i]/root))) * factor
	}
}

// HardSigmoidVec sets dst to max(lo, min(hi, slope·x + offset)). The offset is not zero, so that the
// sum is no negative zero. NaN stays.
func HardSigmoidVec(dst, x []float32, slope, offset, lo, hi float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		hardSigmoidBlocks(&dst[0], &x[0], n, slope, offset, lo, hi)
	}
	for i := n * block; i < len(x); i++ {
		dst[i] = hardSigmoid(x[i], slope, offset, lo, hi)
	}
}

// HardSwishVec sets dst to x times what HardSigmoidVec computes.
func HardSwishVec(dst, x []float32, slope, offset, lo, hi float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		hardSwishBlocks(&dst[0], &x[0], n, slope, offset, lo, hi)
	}
	for i := n * block; i < len(x); i++ {
		dst[i] = x[i] * hardSigmoid(x[i], slope, offset, lo, hi)
	}
}

func hardSigmoid(x, slope, offset, lo, hi float32) float32 {
	v := float32(slope*x) + offset
	if hi < v {
		v = hi
	}
	if lo > v {
		v = lo
	}
	return v
}

// LeakyReLUVec sets dst to max(lo, max(x, slope·x)). The slope is positive. NaN stays.
func LeakyReLUVec(dst, x []float32, slope, lo float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		leakyBlocks(&dst[0], &x[0], n, slope, lo)
	}
	for i := n * block; i < len(x); i++ {
		v, w := x[i], float32(slope*x[i])
		if w > v {
			v = w
		}
		if lo > v {
			v = lo
		}
		dst[i] = v
	}
}
