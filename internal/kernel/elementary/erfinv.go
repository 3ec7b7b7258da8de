package elementary

import "math"

// Erfinv returns the number whose error function is y. It is infinite at ±1, and NaN beyond.
func Erfinv(y float64) float64 {
	a := math.Abs(y)
	switch {
	case !(a <= 1):
		return math.NaN()
	case a == 1:
		return math.Copysign(math.Inf(1), y)
	// Above, the error function has fewer digits than its complement, and 1-a is exact.
	case a > 0.5:
		return withSign(erfcinv(1-a), y)
	}
	// The start is the Taylor series.
	z := float64(a * a)
	x := float64(a * horner(z, []float64{0.02, 0.0866, 0.1275, 0.2320136665, math.Sqrt(math.Pi) / 2}))
	if a < 1e-9 {
		return withSign(float64(a*(math.Sqrt(math.Pi)/2)), y)
	}
	// Each step of Halley's method triples the number of correct digits.
	for range 2 {
		x = halley(x, Erf(x)-a)
	}
	return withSign(x, y)
}

// Erfcinv returns the number whose complementary error function is y. It is infinite at 0 and 2,
// and NaN unless y is between them.
func Erfcinv(y float64) float64 {
	switch {
	case !(y >= 0 && y <= 2):
		return math.NaN()
	case y == 0:
		return math.Inf(1)
	case y < 0.5:
		return erfcinv(y)
	case y > 1.5:
		return -erfcinv(2 - y)
	}
	return Erfinv(1 - y)
}

// erfcinv is Erfcinv for y between 0 and ½. The start is Winitzki's formula, which differs by less
// than one percent.
func erfcinv(y float64) float64 {
	if y == 0 {
		return math.Inf(1)
	}
	const a = 0.147
	log := Log(float64(y * (2 - y)))
	b := 2/(math.Pi*a) + float64(log*0.5)
	x := math.Sqrt(math.Sqrt(float64(b*b)-log/a) - b)
	for range 6 {
		last := x
		x = halley(x, y-Erfc(x))
		if math.Abs(x-last) < float64(x*1e-7) { // the error of the next one is its cube
			break
		}
	}
	return x
}

// halley returns a better x, by Halley's method, if erf(x) is too large by d.
func halley(x, d float64) float64 {
	u := float64(d * (math.Sqrt(math.Pi) / 2) * Exp(float64(x*x)))
	return x - u/math.FMA(x, u, 1)
}
