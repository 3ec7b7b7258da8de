package kernel

import "math"

// The exponential splits x into n·ln 2 + r with |r| <= ln 2 / 2, and multiplies a polynomial of r
// by 2^n. The polynomial and the two parts of ln 2 are those of Cephes' expf. Products are rounded
// explicitly, so that all processors compute the same bits.
const (
	log2e   = 1.44269504088896341
	ln2High = 0.693359375
	ln2Low  = -2.12194440e-4
	// Adding and subtracting 1.5·2^23 rounds a small float32 to the nearest integer.
	roundMagic = 12582912

	exp0 = 1.9875691500e-4
	exp1 = 1.3981999507e-3
	exp2 = 8.3334519073e-3
	exp3 = 4.1665795894e-2
	exp4 = 1.6666665459e-1
	exp5 = 5.0000001201e-1
)

// exp returns e**x to within about one unit in the last place, zero below about -103.97 and +Inf
// above about 88.72.
func exp(x float32) float32 {
	if x > -87 && x < 88 {
		n := float32(x*log2e) + roundMagic - roundMagic
		return (expm1Reduced(x, n) + 1) * pow2(int32(n))
	}
	return expFar(x)
}

// expFar is exp for results that are not normal numbers, or nearly not.
func expFar(x float32) float32 {
	if x != x {
		return x
	}
	x = min(max(x, -104), 89)
	n := float32(x*log2e) + roundMagic - roundMagic
	// 2^n may leave the range of normal numbers on the way, so it is applied in two halves.
	i := int32(n)
	h := i >> 1
	return (expm1Reduced(x, n) + 1) * pow2(h) * pow2(i-h)
}

// expm1Reduced returns e**r - 1 for r = x - n·ln 2.
func expm1Reduced(x, n float32) float32 {
	return expm1Rest(reduced(x, n))
}

// reduced returns x - n·ln 2.
func reduced(x, n float32) float32 {
	r := x - float32(n*ln2High)
	return r - float32(n*ln2Low)
}

// expm1Rest returns e**r - 1.
func expm1Rest(r float32) float32 {
	p := float32(exp0*r) + exp1
	p = float32(p*r) + exp2
	p = float32(p*r) + exp3
	p = float32(p*r) + exp4
	p = float32(p*r) + exp5
	return float32(p*float32(r*r)) + r
}

// pow2 returns 2**n for -126 <= n <= 127.
func pow2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// sigmoid returns 1/(1+e**-x).
func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }

// tanh returns the hyperbolic tangent of x, as em/(em+2) where em = e**2|x| - 1, with the sign of
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
	n := float32(t*log2e) + roundMagic - roundMagic
	s := pow2(int32(n))
	em := float32(s*expm1Reduced(t, n)) + (s - 1)
	return math.Float32frombits(math.Float32bits(em/(em+2)) | bits&sign)
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
	t := 1 / (1 + float32(0.5*a))
	h = max(-h, -104)
	n := float32(h*log2e) + roundMagic - roundMagic
	i := int32(n)
	half := i >> 1
	e := (expm1Rest(reduced(h, n)-low) + 1) * pow2(half) * pow2(i-half)
	p := erfcSeries[len(erfcSeries)-1]
	for k := len(erfcSeries) - 2; k >= 0; k-- {
		p = float32(p*t) + erfcSeries[k]
	}
	p = float32(float32(p*t) * e)
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
	above, below := erfAbove[len(erfAbove)-1], erfBelow[len(erfBelow)-1]
	for i := len(erfAbove) - 2; i >= 0; i-- {
		above, below = float32(above*u)+erfAbove[i], float32(below*u)+erfBelow[i]
	}
	return math.Float32frombits(math.Float32bits(min(float32(above*t)/below, 1)) | bits&sign)
}

// expm1 returns e**x - 1 to within about two units in the last place, with the sign of x.
func expm1(x float32) float32 {
	if x != x {
		return x
	}
	const sign = 1 << 31
	t := min(max(x, -20), 89) // the result is -1 or +Inf
	n := float32(t*log2e) + roundMagic - roundMagic
	// Half of it, because 2**n may be infinite where the result is not.
	h := pow2(int32(n) - 1)
	h = float32(h*expm1Reduced(t, n)) + (h - 0.5)
	return math.Float32frombits(math.Float32bits(h+h) | math.Float32bits(x)&sign)
}
