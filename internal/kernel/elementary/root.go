package elementary

import "math"

// Cbrt returns the cube root of x.
func Cbrt(x float64) float64 {
	if x == 0 || x-x != 0 {
		return x
	}
	f, e := math.Frexp(math.Abs(x))
	// The root of 2^e is exact only if e is a multiple of three.
	for e%3 != 0 { // f is between ⅛ and 1
		f /= 2
		e++
	}
	t := horner(f, []float64{0.395, -0.98, 1.24, 0.345}) // which is nearly the root
	for range 3 {
		t -= (float64(t*t) - f/t) / (t + t + t)
	}
	s := float64(t * t)
	// A last step of Newton's with the exact difference of t³ and f: s has lost a part of t².
	rest := math.FMA(s, t, -f) + float64(math.FMA(t, t, -s)*t)
	return math.Copysign(math.Ldexp(t-rest/(s+s+s), e/3), x)
}

// Hypot returns the square root of x² + y² without overflow.
func Hypot(x, y float64) float64 {
	x, y = math.Abs(x), math.Abs(y)
	switch {
	case math.IsInf(x, 1) || math.IsInf(y, 1):
		return math.Inf(1)
	case x != x || y != y:
		return math.NaN()
	case x < y:
		x, y = y, x
	}
	if y == 0 {
		return x
	}
	f, e := math.Frexp(x)
	// Scaled by a power of two, the squares neither overflow nor, where they count, underflow.
	g := math.Ldexp(y, -e)
	square := math.FMA(f, f, float64(g*g))
	h := math.Sqrt(square)
	// What rounding has lost, of the squares and of the root.
	hh, ff := float64(h*h), float64(f*f)
	rest := math.FMA(-g, g, hh-ff) + math.FMA(h, h, -hh) - math.FMA(f, f, -ff)
	return math.Ldexp(h-rest/(h+h), e)
}
