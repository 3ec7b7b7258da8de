package elementary

import (
	"math"
	"math/bits"
)

// Sin returns the sine of x.
func Sin(x float64) float64 {
	q, r := quadrant(x)
	return sine(q, r)
}

// Cos returns the cosine of x.
func Cos(x float64) float64 {
	q, r := quadrant(x)
	return sine(q+1, r)
}

// Tan returns the tangent of x.
func Tan(x float64) float64 {
	if x == 0 {
		return x
	}
	q, r := quadrant(x)
	// Where the tangent is large, the error of r is multiplied by its square. For near arguments it
	// is known.
	rest := 0.0 // of r
	if x <= near && x >= -near {
		n := math.FMA(x, 2/math.Pi, magic) - magic
		rest = math.FMA(-n, halfPiLow, math.FMA(-n, halfPiHigh, x)-r)
	}
	z := float64(r * r)
	cube := float64(float64(z*r) * horner(z, sinP))
	s := r + cube
	sRest := r - s + cube
	w := math.FMA(z, 0.5, -float64(float64(z*z)*horner(z, cosP)))
	c := 1 - w
	cRest := 1 - c - w - float64(math.FMA(r, r, -z)*0.5)
	// A quarter of a turn makes the sine a cosine, and the cosine a negative sine.
	if q&1 != 0 {
		s, sRest, c, cRest = -c, -cRest, s, sRest
	}
	t := s / c
	if t-t != 0 || c == 0 {
		return t
	}
	// What rounding has lost of the sine, the cosine, the quotient and r.
	lost := math.FMA(-t, c, s) + (sRest - float64(t*cRest))
	return t + math.FMA(rest, math.FMA(t, t, 1), lost/c)
}

// Asin returns the arc sine of x.
func Asin(x float64) float64 {
	a := math.Abs(x)
	if a == 1 {
		return withSign(math.Pi/2, x)
	}
	square := float64(a * a)
	w := 1 - square
	c, cRest := rootPair(w, 1-w-square-math.FMA(a, a, -square))
	q := a / c
	qRest := (math.FMA(-q, c, a) - float64(q*cRest)) / c
	return withSign(math.FMA(qRest, w, Atan(q)), x) // w is 1/(1+q²)
}

// Acos returns the arc cosine of x.
func Acos(x float64) float64 {
	switch x {
	case 1:
		return 0
	case -1:
		return math.Pi
	}
	u, v := plus(1, -x), plus(1, x)
	s, sRest := rootPair(u.high, u.low)
	c, cRest := rootPair(v.high, v.low)
	q := s / c
	qRest := (math.FMA(-q, c, s) + (sRest - float64(q*cRest))) / c
	return 2 * math.FMA(qRest, v.high/2, Atan(q)) // v is 2/(1+q²)
}

// rootPair returns the square root of x+rest, where rest is at most a rounding error of x.
func rootPair(x, rest float64) (high, low float64) {
	high = math.Sqrt(x)
	return high, (math.FMA(-high, high, x) + rest) / (high + high)
}

// Atan returns the arc tangent of x.
func Atan(x float64) float64 {
	const (
		tan3Pi8 = 2.41421356237309504880
		rest    = 6.123233995736765886130e-17 // of π/2
	)
	a := math.Abs(x)
	var v float64
	switch {
	case a <= 0.66:
		v = atan(a)
	case a > tan3Pi8:
		v = math.Pi/2 - atan(1/a) + rest
	default:
		v = math.Pi/4 + atan((a-1)/(a+1)) + 0.5*rest
	}
	return withSign(v, x)
}

// Atan2 returns the angle of the point (x, y).
func Atan2(y, x float64) float64 {
	q := y / x
	switch {
	case x == 0 || y == 0 || x-x != 0 || y-y != 0:
		return math.Atan2(y, x) // a constant
	case x < 0 && y < 0:
		return Atan(q) - math.Pi
	case x < 0:
		return Atan(q) + math.Pi
	}
	return Atan(q)
}

// atan is Atan for 0 <= |x| <= 0.66.
func atan(x float64) float64 {
	z := float64(x * x)
	return math.FMA(x, z*horner(z, atanP)/horner(z, atanQ), x)
}

var (
	atanP = []float64{-8.750608600031904122785e-01, -1.615753718733365076637e+01, -7.500855792314704667340e+01, -1.228866684490136173410e+02, -6.485021904942025371773e+01}
	atanQ = []float64{1, 2.485846490142306297962e+01, 1.650270098316988542046e+02, 4.328810604912902668951e+02, 4.853903996359136964868e+02, 1.945506571482613964425e+02}
)

// sine returns the sine of q·π/2 + r, where |r| ≤ π/4.
func sine(q int64, r float64) float64 {
	const sign = 1 << 63
	a := math.Abs(r)
	z := float64(a * a)
	var v float64
	if q&1 == 0 {
		v = math.FMA(horner(z, sinP), float64(a*z), a)
		v = math.Float64frombits(math.Float64bits(v) ^ math.Float64bits(r)&sign)
	} else {
		v = 1 - (float64(z*0.5) - float64(float64(z*z)*horner(z, cosP)))
	}
	return math.Float64frombits(math.Float64bits(v) ^ uint64(q&2)<<62)
}

var (
	sinP = []float64{1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06, -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01}
	cosP = []float64{-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07, 2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02}
)

// π/2 in two parts.
const (
	halfPiHigh = 1.5707963267948966
	halfPiLow  = 6.123233995736766e-17
)

// near is the largest argument that Sin and Cos reduce by a simple subtraction without losing
// digits.
const near = 1 << 20

// quadrant returns q and r with x = q·π/2 + r, up to whole turns.
func quadrant(x float64) (q int64, r float64) {
	if !(x <= near && x >= -near) {
		return quadrantOfFar(x)
	}
	// The difference is a multiple of 2^-53 and less than 1, so it is exact.
	n := math.FMA(x, 2/math.Pi, magic) - magic
	r = math.FMA(-n, halfPiHigh, x)
	return int64(n), math.FMA(-n, halfPiLow, r)
}

// turn holds the binary fraction digits of 1/2π, after 64 zeros.
var turn = [...]uint64{
	0, 0x28be60db9391054a, 0x7f09d5f47d4d3770, 0x36d8a5664f10e410, 0x7f9458eaf7aef158, 0x6dc91b8e909374b8, 0x01924bba82746487,
	0x3f877ac72c4a69cf, 0xba208d7d4baed121, 0x3a671c09ad17df90, 0x4e64758e60d4ce7d, 0x272117e2ef7e4a0e, 0xc7fe25fff7816603,
	0xfbcbc462d6829b47, 0xdb4d9fb3c9f2c26d, 0xd3d18fd9a797fa8b, 0x5d49eeb1faf97c5e, 0xcf41ce7de294a4ba, 0x9afed7ec47e35742,
	0x1580cc11bf1edaea,
}

// quadrantOfFar multiplies x by those digits of 1/2π that yield neither whole turns nor negligible
// fractions (Payne and Hanek).
func quadrantOfFar(x float64) (q int64, r float64) {
	if x-x != 0 {
		return 0, math.NaN()
	}
	b := math.Float64bits(x)
	m := b&(1<<52-1) | 1<<52
	at := uint(b>>52&0x7ff) - 1075 + 64 // |x| = m·2^(at-64)
	word, shift := at/64, at%64
	// m times the digits further left is whole turns.
	digits := func(i uint) uint64 { return turn[word+i]<<shift | turn[word+i+1]>>(64-shift) }
	mid, carried := bits.Mul64(digits(1), m)
	lost, _ := bits.Mul64(digits(2), m)
	low, carry := bits.Add64(carried, lost, 0)
	high, _ := bits.Add64(digits(0)*m, mid, carry) // high and low are the binary digits of a part of a turn
	q = int64(high >> 62)
	high, low = high<<2|low>>62, low<<2
	sign := 1.0
	if high>>63 != 0 { // the next quadrant is nearer
		q++
		sign = -1
		low, carry = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, carry)
	}
	zeros := bits.LeadingZeros64(high)
	high, low = high<<zeros|low>>(64-zeros), low<<zeros
	first, rest := float64(high>>11), float64(high<<53|low>>11)*0x1p-64 // 53 bits, and those below
	r = math.FMA(first, halfPiHigh, math.FMA(first, halfPiLow, float64(rest*halfPiHigh)))
	r = float64(sign * r)
	if x < 0 {
		q, r = -q, -r
	}
	return q, math.Ldexp(r, -53-zeros)
}
