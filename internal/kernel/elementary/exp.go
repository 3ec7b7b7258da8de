package elementary

import "math"

// Exp returns e**x.
func Exp(x float64) float64 {
	if x != x {
		return x
	}
	// Beyond the bounds the result is 0 or infinite, as it is at them, and n stays small enough for
	// exponents.
	n, s := reduce(min(max(x, -746), 710))
	return times2(s+1, n)
}

// Exp2 returns 2**x.
func Exp2(x float64) float64 {
	if x != x {
		return x
	}
	x = min(max(x, -1080), 1025)
	n := x + magic - magic
	return times2(series((x-n)*math.Ln2)+1, n)
}

// Expm1 returns e**x - 1.
func Expm1(x float64) float64 {
	if x != x {
		return x
	}
	return withSign(expm1(min(max(x, -60), 710)), x) // -0 stays
}

// Sigmoid returns 1/(1+e**-x).
func Sigmoid(x float64) float64 { return 1 / (Exp(-x) + 1) }

// Tanh returns the hyperbolic tangent of x: em/(em+2) where em = e**2|x| - 1, with the sign of x.
func Tanh(x float64) float64 {
	if x != x {
		return x
	}
	a := math.Abs(x)
	// em/(em+2) keeps all digits near zero, where a quotient of exponentials would lose them. From
	// 20 on the result is 1.
	em := expm1(min(a+a, 40))
	return withSign(em/(em+2), x)
}

// Sinh returns the hyperbolic sine of x.
func Sinh(x float64) float64 {
	a := math.Abs(x)
	// The exponential overflows before its half does. NaN goes this way, too.
	if !(a < 709) {
		h := Exp(a / 2)
		return withSign(h/2*h, x)
	}
	// e**a - e**-a in terms of e**a - 1, so that nothing cancels near zero.
	em := expm1(a)
	return withSign((em+em/(em+1))/2, x)
}

// Cosh returns the hyperbolic cosine of x.
func Cosh(x float64) float64 {
	a := math.Abs(x)
	if !(a < 709) {
		h := Exp(a / 2)
		return h / 2 * h
	}
	e := Exp(a)
	return (e + 1/e) / 2
}

// Adding and subtracting 1.5·2^52 rounds a small float64 to the nearest integer.
const magic = 3 << 51

const (
	ln2High = 6.93147180369123816490e-01
	ln2Low  = 1.90821492927058770002e-10
)

// reduce returns n = round(x/ln 2), and e**r - 1 for r = x - n·ln 2.
func reduce(x float64) (n, s float64) {
	n = math.FMA(x, math.Log2E, magic) - magic
	// ln2High ends in enough zeros that its product with n is exact, and close to x, so
	// that the difference is, too.
	r := math.FMA(-n, ln2High, x)
	return n, series(math.FMA(-n, ln2Low, r))
}

// series returns e**r - 1 for a small r.
func series(r float64) float64 {
	// The Taylor series of degree 13: for |r| ≤ ln(2)/2 the next term is below 2^-56 of r.
	p := 1.0 / 6227020800
	for _, c := range [...]float64{1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5} {
		p = math.FMA(p, r, c)
	}
	return math.FMA(p, float64(r*r), r)
}

// expm1 is Expm1 for arguments whose n fits an exponent.
func expm1(x float64) float64 {
	n, s := reduce(x)
	p := pow2(n - 1) // half, because 2^1024 is infinite
	v := math.FMA(s, p, p-0.5)
	return v + v
}

// times2 returns v·2**n. 2**n may leave the range of normal numbers, so it is applied in two
// halves.
func times2(v, n float64) float64 {
	h := math.FMA(n, 0.5, magic) - magic
	return float64(v*pow2(h)) * pow2(n-h)
}

// pow2 returns 2**n for a normal result.
func pow2(n float64) float64 { return math.Float64frombits(uint64(int64(n)+1023) << 52) }
