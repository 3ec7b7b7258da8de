package elementary

import "math"

// Pow returns x**y, with an error of at most 0.53 units in the last place. Special cases are those
// of IEEE 754: x**0 and 1**y are 1, even of NaN, and -1 to an infinite power is 1. A negative
// number to a power that is no integer is NaN.
func Pow(x, y float64) float64 {
	switch y { // rounded once; and most powers are these
	case 1:
		return x
	case 2:
		return x * x
	case -1:
		return 1 / x
	}
	// The usual case comes before the special ones. y-y is NaN for infinities and NaN.
	if x > 0 && x <= math.MaxFloat64 && y-y == 0 {
		return powOf(x, y)
	}
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return math.NaN()
	case y-y != 0 && x == -1:
		return 1
	case y-y != 0 && (math.Abs(x) > 1) == (y > 0):
		return math.Inf(1)
	case y-y != 0:
		return 0
	}
	negative := math.Signbit(x) && odd(y)
	var v float64
	switch {
	case x == 0 && y < 0 || x-x != 0 && y > 0:
		v = math.Inf(1)
	case x == 0 || x-x != 0:
		v = 0
	case y != math.Trunc(y):
		return math.NaN()
	default:
		v = powOf(-x, y)
	}
	if negative {
		v = -v
	}
	return v
}

// odd reports whether a finite number is an odd integer.
func odd(y float64) bool { return math.Abs(y) < 1<<53 && int64(y)&1 != 0 && y == math.Trunc(y) }

// powOf is Pow for a positive finite x and a finite y.
func powOf(x, y float64) float64 {
	// A relative error of the logarithm becomes one of the power times y·log x, which may be 745:
	// ten bits. So the logarithm, and its product with y, have two parts.
	l := logPair(x)
	high := float64(y * l.high)
	low := math.FMA(y, l.low, math.FMA(y, l.high, -high))
	if !(math.Abs(high) < 1100) { // too large or too small in any case
		high, low = math.Copysign(1100, high), 0
	}
	return expPair(high, low)
}

// expPair returns e**(high+low) for |high| ≤ 1100 and a low that is at most a rounding error of it:
// 2^(i/128) from a table, times e**r by its Taylor series.
func expPair(high, low float64) float64 {
	const (
		stepHigh = 0.005415212348452769 // ln(2)/128 in two parts; the first has 30 bits
		stepLow  = -3.2819649005320973e-13
	)
	// n is the nearest multiple of ln(2)/128. Its last seven bits choose a root of two, the others
	// are an exponent.
	n := math.FMA(high, powSteps/math.Ln2, magic) - magic
	r := math.FMA(-n, stepLow, math.FMA(-n, stepHigh, high)) + low
	k := int64(n)
	t := &powRoots[k&(powSteps-1)]
	z := float64(r * r)
	series := math.FMA(math.FMA(1.0/120, z, 1.0/6), r, math.FMA(1.0/24, z, 0.5)) // of (e**r - 1 - r)/r²
	v := math.FMA(t.root, t.rest+r+float64(z*series), t.root)
	return times2(v, float64(k>>7))
}

// logPair returns the logarithm of a positive finite number, with a relative error below 2^-67. The
// mantissa times the inverse from a table is 1+r, and the logarithm of 1+r is its Taylor series.
func logPair(x float64) pair {
	bits := math.Float64bits(x)
	k := -1023.0
	if bits>>52 == 0 {
		bits = math.Float64bits(x * 0x1p54)
		k -= 54
	}
	k += float64(bits >> 52)
	i := bits >> (52 - 7) & (powSteps - 1)
	one := uint64(0x3ff) // the exponent of the number from √½ to √2
	if i >= powHalf {
		one--
		k++
	}
	z := math.Float64frombits(bits&(1<<52-1) | one<<52)
	t := &powLogs[i]
	r := math.FMA(z, t.inverse, -1) // exact, as is whole
	whole := math.FMA(k, powLn2High, t.high)
	h1 := whole + r
	l1 := whole - h1 + r
	half := float64(r * -0.5)
	square := float64(r * half)
	h2 := h1 + square
	l2 := math.FMA(r, half, -square) + (h1 - h2 + square)
	z2 := float64(r * r)
	p := math.FMA(math.FMA(math.FMA(-1.0/10, r, 1.0/9), z2, math.FMA(-1.0/8, r, 1.0/7)), float64(z2*z2),
		math.FMA(math.FMA(-1.0/6, r, 1.0/5), z2, math.FMA(-1.0/4, r, 1.0/3)))
	rest := math.FMA(k, powLn2Low, t.low) + l1 + l2
	rest = math.FMA(float64(z2*r), p, rest)
	h := h2 + rest
	return pair{h, h2 - h + rest}
}

// ln(2) in two parts, of which the first is a multiple of 2^-42.
const (
	powLn2High = 0.6931471805598903
	powLn2Low  = 5.497923018708371e-14
)
