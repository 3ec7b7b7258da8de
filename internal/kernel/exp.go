package kernel

import "math"

// The exponential splits x into n·ln 2 + r with |r| <= ln 2 / 2, and multiplies a polynomial of r
// by 2^n. The polynomial and the two parts of ln 2 are those of Cephes' expf. Multiplications and additions
// are fused explicitly, or not at all, so that all processors compute the same bits.
const (
	log2e   = 1.44269504088896341
	ln2High = 0.693359375
	ln2Low  = -2.12194440e-4
	// Adding and subtracting 1.5·2^23 rounds a small float32 to the nearest integer.
	roundMagic = 12582912
)

// expSeries are the coefficients of the polynomial, the lowest first, without those of e**0 and of x.
var expSeries = [...]float32{5.0000001201e-1, 1.6666665459e-1, 4.1665795894e-2, 8.3334519073e-3, 1.3981999507e-3, 1.9875691500e-4}

// exp returns e**x to within about one unit in the last place, zero below about -103.97 and +Inf
// above about 88.72.
func exp(x float32) float32 {
	if x != x {
		return x
	}
	x = min(max(x, -104), 89)
	n, r := reduced(x)
	return scaled(expReduced(r), n)
}

// reduced returns n and r of x = n·ln 2 + r.
func reduced(x float32) (n int32, r float32) {
	m := fma32(x, log2e, roundMagic) - roundMagic
	return int32(m), fma32(-m, ln2Low, fma32(-m, ln2High, x))
}

// expReduced returns e**r.
func expReduced(r float32) float32 {
	return fma32(fma32(polynomial(r, expSeries[:]), r, 1), r, 1)
}

// expm1Reduced returns e**r - 1.
func expm1Reduced(r float32) float32 {
	return fma32(float32(polynomial(r, expSeries[:])*r), r, r)
}

// scaled returns 2**n·x. 2**n may leave the range of normal numbers on the way, so it is applied in two halves.
func scaled(x float32, n int32) float32 {
	h := n >> 1
	return float32(float32(x*pow2(n-h)) * pow2(h))
}

// pow2 returns 2**n for -126 <= n <= 127.
func pow2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// sigmoid returns 1/(1+e**-x).
func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }

// tanh returns the hyperbolic tangent of x, as h/(h+1) where h = (e**2|x| - 1)/2, with the sign of
// x.
func tanh(x float32) float32 {
	if x != x {
		return x
	}
	const sign = 1 << 31
	bits := math.Float32bits(x)
	t := math.Float32frombits(bits&^sign) * 2
	if t > 20 {
		t = 20 // the result is 1
	}
	h := halfExpm1(t)
	return math.Float32frombits(math.Float32bits(h/(h+1)) | bits&sign)
}

// erfcSeries are the coefficients of a polynomial of t = 1/(1 + |x|/2), the lowest first, which is
// erfc(|x|)·exp(x²)/t. Its relative error is 1.7e-8 at most, up to where erfc(x) is no normal
// float32; it was fitted by least squares with weights that grow with the error (2026-11-26).
var erfcSeries = [...]float32{
	0.28205883502960205, 0.2829740643501282, 0.2376202642917633, 0.23054181039333344, -0.11334241926670074,
	0.45018500089645386, -0.7057485580444336, 0.45634785294532776, -0.135147824883461, 0.01451097335666418,
}

// erfc returns 1 - erf(x) to within 6 units in the last place, half a unit on average.
func erfc(x float32) float32 {
	if x != x {
		return x
	}
	a := float32(math.Abs(float64(x)))
	if a > 11 {
		a = 11 // the result is 0 or 2
	}
	// The square is h + low: its rounding would be multiplied by it in the result.
	h := float32(a * a)
	low := fma32(a, a, -h)
	t := 1 / fma32(0.5, a, 1)
	n, r := reduced(max(-h, -104))
	p := float32(float32(polynomial(t, erfcSeries[:])*t) * scaled(expReduced(r-low), n))
	if math.Signbit(float64(x)) {
		return 2 - p
	}
	return p
}

// erfAbove and erfBelow are polynomials of x², the lowest coefficients first, whose ratio is erf(x)/x. Its
// relative error is 1.9e-8 at most up to erfEnd, from where erf(x) is 1. They were fitted by least squares with
// weights that grow with the error (2026-11-29).
var (
	erfAbove = [...]float32{1.1283791065216064, 0.1904057413339615, 0.05274863913655281, 0.003765589790418744, 0.00028488278621807694, 2.0501011022133753e-06}
	erfBelow = [...]float32{1, 0.5020754337310791, 0.11410882323980331, 0.01496916078031063, 0.0011625302722677588, 3.8091864553280175e-05}
)

const erfEnd = 3.92

// erf returns the error function to within 6 units in the last place, one on average.
func erf(x float32) float32 {
	if x != x {
		return x
	}
	const sign = 1 << 31
	bits := math.Float32bits(x)
	t := min(math.Float32frombits(bits&^sign), erfEnd)
	u := float32(t * t)
	above, below := polynomial(u, erfAbove[:]), polynomial(u, erfBelow[:])
	return math.Float32frombits(math.Float32bits(min(float32(above*t)/below, 1)) | bits&sign)
}

// polynomial returns that of x with some coefficients, the lowest first.
func polynomial(x float32, coefficients []float32) float32 {
	last := len(coefficients) - 1
	p := coefficients[last]
	for i := last - 1; i >= 0; i-- {
		if s := mulAdd(p, x, coefficients[i]); roundsOnce(s) {
			p = float32(s)
		} else {
			p = fma32(p, x, coefficients[i])
		}
	}
	return p
}

// expm1 returns e**x - 1 to within about two units in the last place, with the sign of x.
func expm1(x float32) float32 {
	if x != x {
		return x
	}
	const sign = 1 << 31
	h := halfExpm1(min(max(x, -20), 89)) // the result is -1 or +Inf beyond
	return math.Float32frombits(math.Float32bits(h+h) | math.Float32bits(x)&sign)
}

// halfExpm1 returns (e**x - 1)/2, since 2**n may be infinite where that is not.
func halfExpm1(x float32) float32 {
	n, r := reduced(x)
	s := pow2(n - 1)
	return fma32(s, expm1Reduced(r), s-0.5)
}

// ExpVec sets dst to exp(x-shift) and returns the sum.
func ExpVec(dst, x []float32, shift float32) (sum float32) {
	dst = head(dst, len(x))
	var sums [block]float64
	n := wholeBlocks(len(x))
	if n > 0 {
		expSome(&dst[0], &x[0], n, shift, &sums)
	}
	if n *= block; n < len(x) && bestSet.assembly() {
		var rest [block]float32
		var own [block]float64
		copy(rest[:], x[n:])
		expSome(&rest[0], &rest[0], 1, shift, &own)
		for j := range copy(dst[n:], rest[:]) {
			sums[j] += own[j]
		}
		n = len(x)
	}
	for j := n; j < len(x); j++ {
		e := exp(x[j] - shift)
		dst[j] = e
		sums[j%block] += float64(e)
	}
	return float32(total(&sums))
}

// expSome sets dst to exp(x-shift) and adds it to sums.
func expSome(dst, x *float32, blocks int, shift float32, sums *[block]float64) {
	if bestSet == avx512Set {
		expAVX512(dst, x, blocks, shift, sums)
	} else {
		expBlocks(dst, x, blocks, shift, sums)
	}
}

// expSum returns the sum of e**(x-shift).
func expSum(x []float32, shift float32) float64 {
	var sums [block]float64
	n := wholeBlocks(len(x))
	switch {
	case n == 0:
	case bestSet == avx512Set:
		expSumAVX512(&x[0], n, shift, &sums)
	default:
		expSumBlocks(&x[0], n, shift, &sums)
	}
	for j := n * block; j < len(x); j++ {
		sums[j%block] += float64(exp(x[j] - shift))
	}
	return total(&sums)
}

// logSoftmaxDeriv sets dst to dy - e**y·sum.
func logSoftmaxDeriv(dst, y, dy []float32, sum float32) {
	dst, y, n := head(dst, len(dy)), head(y, len(dy)), wholeBlocks(len(dy))
	if n > 0 {
		wide(logSoftmaxDerivAVX512, logSoftmaxDerivBlocks)(&dst[0], &y[0], &dy[0], n, sum)
	}
	for j := n * block; j < len(dy); j++ {
		dst[j] = dy[j] - float32(exp(y[j])*sum)
	}
}

// SigmoidVec sets dst to 1/(1+exp(-x)).
func SigmoidVec(dst, x []float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		sigmoidSome(&dst[0], &x[0], n)
	}
	if n *= block; n < len(x) && bestSet.assembly() {
		var rest [block]float32
		copy(rest[:], x[n:])
		sigmoidSome(&rest[0], &rest[0], 1)
		n += copy(dst[n:len(x)], rest[:])
	}
	for j := n; j < len(x); j++ {
		dst[j] = sigmoid(x[j])
	}
}

func sigmoidSome(dst, x *float32, blocks int) {
	if bestSet == avx512Set {
		sigmoidAVX512(dst, x, blocks)
	} else {
		sigmoidBlocks(dst, x, blocks)
	}
}

// TanhVec sets dst to the hyperbolic tangent of x.
func TanhVec(dst, x []float32) {
	dst, n := head(dst, len(x)), wholeBlocks(len(x))
	if n > 0 {
		tanhSome(&dst[0], &x[0], n)
	}
	if n *= block; n < len(x) && bestSet.assembly() {
		var rest [block]float32
		copy(rest[:], x[n:])
		tanhSome(&rest[0], &rest[0], 1)
		n += copy(dst[n:len(x)], rest[:])
	}
	for j := n; j < len(x); j++ {
		dst[j] = tanh(x[j])
	}
}

func tanhSome(dst, x *float32, blocks int) {
	if bestSet == avx512Set {
		tanhAVX512(dst, x, blocks)
	} else {
		tanhBlocks(dst, x, blocks)
	}
}
