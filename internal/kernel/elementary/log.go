package elementary

import "math"

// Log returns the natural logarithm of x.
func Log(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x < 0:
		return math.NaN()
	case !(x < math.Inf(1)):
		return x
	}
	return logOf(x)
}

// Log1p returns log(1+x), corrected for the rounding of 1+x.
func Log1p(x float64) float64 {
	switch {
	case x == -1:
		return math.Inf(-1)
	case x < -1:
		return math.NaN()
	case !(x < math.Inf(1)):
		return x
	}
	// What u has lost of 1+x changes the logarithm by that over u, up to terms of second order.
	u := x + 1
	v := logOf(u) + (x-(u-1))/u
	return withSign(v, x) // -0 stays
}

// Log2 returns the binary logarithm of x.
func Log2(x float64) float64 {
	if !(x > 0 && x < math.Inf(1)) {
		return Log(x)
	}
	// Powers of two have f = 1, whose logarithm is 0: so their binary logarithms are exact.
	f, e := split(x)
	return math.FMA(logOf(f), math.Log2E, e)
}

// Log10 returns the decimal logarithm of x.
func Log10(x float64) float64 {
	if !(x > 0 && x < math.Inf(1)) {
		return Log(x)
	}
	const (
		high = 3.01029995663611771306e-01 // log10(2) in two parts
		low  = 3.69423907715893078616e-13
	)
	f, e := split(x)
	return math.FMA(e, high, math.FMA(e, low, float64(logOf(f)*math.Log10E)))
}

// LogAddExp returns log(exp(x) + exp(y)) without overflow.
func LogAddExp(x, y float64) float64 {
	switch {
	case x != x || y != y:
		return math.NaN()
	case x == y: // infinities of one sign, too
		return x + math.Ln2
	}
	return max(x, y) + Log1p(Exp(-math.Abs(x-y)))
}

// Log1mexp returns log(1 - exp(x)). It is NaN for x > 0.
func Log1mexp(x float64) float64 {
	switch {
	// Whichever of the two functions has a small value, so that its digits count, is computed
	// directly.
	case x < -math.Ln2:
		return Log1p(-expPair(max(x, -1000), 0))
	case math.Abs(x) < 0x1p-54: // the smallest numbers lose their bits in Expm1
		return Log(-x)
	}
	return Log(-Expm1(x))
}

// Xlogy returns x·log(y), and 0 if x is 0, unless y is NaN.
func Xlogy(x, y float64) float64 {
	if x == 0 && y == y {
		return 0
	}
	return float64(x * Log(y))
}

// Xlog1py returns x·log(1 + y), and 0 if x is 0, unless y is NaN.
func Xlog1py(x, y float64) float64 {
	if x == 0 && y == y {
		return 0
	}
	return float64(x * Log1p(y))
}

// Asinh returns the inverse hyperbolic sine of x.
func Asinh(x float64) float64 {
	a := math.Abs(x)
	if a >= far {
		return withSign(Log(a)+math.Ln2, x)
	}
	// The argument of Log1p is a + √(a²+1) - 1, where the difference would cancel for small a.
	s := float64(a * a)
	return withSign(Log1p(a+s/(1+math.Sqrt(s+1))), x)
}

// Acosh returns the inverse hyperbolic cosine of x.
func Acosh(x float64) float64 {
	switch {
	case x < 1:
		return math.NaN()
	case x >= far:
		return Log(x) + math.Ln2
	}
	t := x - 1
	return Log1p(t + math.Sqrt(t*(x+1)))
}

// Atanh returns the inverse hyperbolic tangent of x.
func Atanh(x float64) float64 {
	a := math.Abs(x)
	return withSign(Log1p((a+a)/(1-a))/2, x)
}

// far is a number whose square doesn't change noticeably by one.
const far = 1 << 28

// split returns f and e with x = f·2**e and f between √½ and √2.
func split(x float64) (f, e float64) {
	f, n := math.Frexp(x)
	if f < math.Sqrt2/2 {
		return f + f, float64(n - 1)
	}
	return f, float64(n)
}

// logOf is Log of a positive finite number: with u = 2^k·(1+f), 1+f between √½ and √2, the
// logarithm of 1+f is a series of s = f/(2+f).
func logOf(u float64) float64 {
	scaled := 0.0
	if u < 0x1p-1022 {
		u *= 0x1p54
		scaled = 54
	}
	// Adding what √½ lacks of 1 carries into the exponent where the mantissa is √2 or more. So e is
	// the exponent of the nearest power of two, and 1+f the quotient of u and that.
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
	// log(1+f) = f - (f²/2 - s·(f²/2 + r)): the largest term is f, which is exact, and everything
	// else is added to it at the end, beginning with the smallest.
	half := float64(float64(f*f) * 0.5)
	rest := math.FMA(s, r+half, float64(k*ln2Low))
	return math.FMA(k, ln2High, f-(half-rest))
}
