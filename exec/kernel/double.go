package kernel

import "math"

// Functions of float64s, in assembly for whole blocks. The Go code computes the same bits: multiplications and additions that the assembly
// fuses are fused here as well. Errors are at most three units in the last place.
//
// Exponentials split x into n·ln 2 + r and take the Taylor series of r; logarithms and the sine are those of FreeBSD's msun, whose
// polynomials they use.

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
func DExp(dst, x []float64) { map1(dst, x, dExpAVX2, dExpAVX512, dExp) }

// DExpm1 sets dst to e**x - 1.
func DExpm1(dst, x []float64) { map1(dst, x, dExpm1AVX2, dExpm1AVX512, dExpm1) }

// DSigmoid sets dst to 1/(1+e**-x).
func DSigmoid(dst, x []float64) { map1(dst, x, dSigmoidAVX2, dSigmoidAVX512, dSigmoid) }

// DTanh sets dst to the hyperbolic tangent of x.
func DTanh(dst, x []float64) { map1(dst, x, dTanhAVX2, dTanhAVX512, dTanh) }

// DLog sets dst to the natural logarithm of x.
func DLog(dst, x []float64) { map1(dst, x, dLogAVX2, dLogAVX512, dLog) }

// DLog1p sets dst to log(1 + x).
func DLog1p(dst, x []float64) { map1(dst, x, dLog1pAVX2, dLog1pAVX512, dLog1p) }

// DSin sets dst to the sine of x.
func DSin(dst, x []float64) {
	if allNear(head(x, len(dst))) {
		map1(dst, x, dSinAVX2, dSinAVX512, dSin)
		return
	}
	for i := range dst {
		dst[i] = dSin(x[i])
	}
}

// DCos sets dst to the cosine of x.
func DCos(dst, x []float64) {
	if allNear(head(x, len(dst))) {
		map1(dst, x, dCosAVX2, dCosAVX512, dCos)
		return
	}
	for i := range dst {
		dst[i] = dCos(x[i])
	}
}

// nearest is the largest argument whose multiple of π/2 the sine takes off itself, without losing digits.
const nearest = 1 << 20

// allNear reports whether the sine can be computed of all elements.
func allNear(x []float64) bool {
	for _, v := range x {
		if !(v <= nearest && v >= -nearest) {
			return false
		}
	}
	return true
}

// Adding and subtracting 1.5·2^52 rounds a small float64 to the nearest integer.
const dMagic = 3 << 51

const (
	dLn2High = 6.93147180369123816490e-01
	dLn2Low  = 1.90821492927058770002e-10
)

// dReduce returns n = round(x/ln 2), and e**r - 1 for r = x - n·ln 2.
func dReduce(x float64) (n, s float64) {
	n = math.FMA(x, math.Log2E, dMagic) - dMagic
	r := math.FMA(-n, dLn2High, x)
	r = math.FMA(-n, dLn2Low, r)
	p := 1.0 / 6227020800
	for _, c := range [...]float64{1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5} {
		p = math.FMA(p, r, c)
	}
	return n, math.FMA(p, float64(r*r), r)
}

// dPow2 returns 2**n for a normal result.
func dPow2(n float64) float64 { return math.Float64frombits(uint64(int64(n)+1023) << 52) }

func dExp(x float64) float64 {
	if x != x {
		return x
	}
	n, s := dReduce(min(max(x, -746), 710))
	// 2^n may leave the range of normal numbers on the way, so it is applied in two halves.
	h := math.FMA(n, 0.5, dMagic) - dMagic
	return float64((s+1)*dPow2(h)) * dPow2(n-h)
}

func dSigmoid(x float64) float64 { return 1 / (dExp(-x) + 1) }

// dExpm1Of is dExpm1 for arguments whose n fits an exponent.
func dExpm1Of(x float64) float64 {
	n, s := dReduce(x)
	p := dPow2(n - 1) // of 2^1024 half is left
	v := math.FMA(s, p, p-0.5)
	return v + v
}

func dExpm1(x float64) float64 {
	if x != x {
		return x
	}
	v := dExpm1Of(min(max(x, -60), 710))
	return math.Float64frombits(math.Float64bits(v) | math.Float64bits(x)&(1<<63)) // -0 stays
}

// dTanh is em/(em+2) where em = e**2|x| - 1, with the sign of x.
func dTanh(x float64) float64 {
	if x != x {
		return x
	}
	a := math.Abs(x)
	em := dExpm1Of(min(a+a, 40))
	return math.Float64frombits(math.Float64bits(em/(em+2)) | math.Float64bits(x)&(1<<63))
}

// dLogOf is dLog of a positive finite number: with u = 2^k·(1+f), 1+f between √½ and √2, the logarithm of 1+f is a series of s = f/(2+f).
func dLogOf(u float64) float64 {
	scaled := 0.0
	if u < 0x1p-1022 {
		u *= 0x1p54
		scaled = 54
	}
	bits := math.Float64bits(u)
	e := (bits + (0x3ff<<52 - 0x3fe6a09e667f3bcd)) >> 52
	k := float64(e) - 1023 - scaled
	f := math.Float64frombits(bits-e<<52+0x3ff<<52) - 1
	s := f / (f + 2)
	z := float64(s * s)
	w := float64(z * z)
	even := float64(math.FMA(math.FMA(1.531383769920937332e-01, w, 2.222219843214978396e-01), w, 3.999999999940941908e-01) * w)
	odd := math.FMA(math.FMA(math.FMA(1.479819860511658591e-01, w, 1.818357216161805012e-01), w, 2.857142874366239149e-01), w, 6.666666666666735130e-01)
	r := math.FMA(odd, z, even)
	half := float64(float64(f*f) * 0.5)
	rest := math.FMA(s, r+half, float64(k*dLn2Low))
	return math.FMA(k, dLn2High, f-(half-rest))
}

func dLog(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x < 0:
		return math.NaN()
	case !(x < math.Inf(1)):
		return x
	}
	return dLogOf(x)
}

// dLog1p adds to log(1+x) what is lost when 1 is added.
func dLog1p(x float64) float64 {
	switch {
	case x == -1:
		return math.Inf(-1)
	case x < -1:
		return math.NaN()
	case !(x < math.Inf(1)):
		return x
	}
	u := x + 1
	v := dLogOf(u) + (x-(u-1))/u
	return math.Float64frombits(math.Float64bits(v) | math.Float64bits(x)&(1<<63)) // -0 stays
}

func dSin(x float64) float64 {
	if !(x <= nearest && x >= -nearest) {
		return math.Sin(x)
	}
	return dSine(x, 0)
}

func dCos(x float64) float64 {
	if !(x <= nearest && x >= -nearest) {
		return math.Cos(x)
	}
	return dSine(x, 1)
}

// dSine returns the sine of x + ahead·π/2.
func dSine(x float64, ahead int64) float64 {
	const sign = 1 << 63
	n := math.FMA(x, 2/math.Pi, dMagic) - dMagic
	r := math.FMA(-n, 1.5707963267948966, x)
	r = math.FMA(-n, 6.123233995736766e-17, r)
	q := int64(n) + ahead
	a := math.Abs(r)
	z := float64(a * a)
	var v float64
	if q&1 == 0 {
		p := 1.58969099521155010221e-10
		for _, c := range [...]float64{-2.50507602534068634195e-08, 2.75573137070700676789e-06, -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01} {
			p = math.FMA(p, z, c)
		}
		v = math.FMA(p, float64(a*z), a)
		v = math.Float64frombits(math.Float64bits(v) ^ math.Float64bits(r)&sign)
	} else {
		p := -1.13596475577881948265e-11
		for _, c := range [...]float64{2.08757232129817482790e-09, -2.75573143513906633035e-07, 2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02} {
			p = math.FMA(p, z, c)
		}
		v = 1 - (float64(z*0.5) - float64(float64(z*z)*p))
	}
	return math.Float64frombits(math.Float64bits(v) ^ uint64(q&2)<<62)
}
