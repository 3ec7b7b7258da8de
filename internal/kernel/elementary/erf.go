package elementary

import "math"

// Erf returns the error function of x.
func Erf(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x:
		return x
	case a < 0.84375:
		return math.FMA(x, erfNear(a), x)
	case a < 6:
		return withSign(1-erfc(a), x)
	}
	return withSign(1, x)
}

// Erfc returns 1 - Erf(x), precisely also where that is small.
func Erfc(x float64) float64 {
	a := math.Abs(x)
	switch {
	case x != x:
		return x
	case a < 0.84375 && x < 0.5:
		return 1 - math.FMA(x, erfNear(a), x)
	case a < 0.84375:
		return math.FMA(-x, erfNear(a), 1-x) // 1-x is exact
	case x > 28:
		return 0
	case x > 0:
		return erfc(a)
	case x > -6:
		return 2 - erfc(a)
	}
	return 2
}

// Erfcx returns exp(x²)·Erfc(x), which decreases like 1/x.
func Erfcx(x float64) float64 {
	switch {
	case x != x:
		return x
	case x < -27:
		return math.Inf(1)
	case x >= 1.25:
		return Exp(-0.5625+erfcFar(x)) / x
	}
	// A rounding error of the square is a relative error of its exponential. So expPair gets it,
	// too.
	square := float64(x * x)
	return expPair(square, math.FMA(x, x, -square)) * Erfc(x)
}

// erfNear returns erf(x)/x - 1 for x below 0.84375.
func erfNear(x float64) float64 {
	z := float64(x * x)
	return horner(z, erfNearP) / horner(z, erfNearQ)
}

// erfc is Erfc for x from 0.84375 to 28.
func erfc(x float64) float64 {
	if x < 1.25 {
		s := x - 1
		v := hornerPair(s, erfcOneQ).divide(hornerPair(s, erfcOneP))
		w := plus(1-8.45062911510467529297e-01, -v.high)
		return w.high + (w.low - v.low)
	}
	// The logarithm of the result is -x² - 0.5625 + erfcFar(x) - log(x). -x² may be as large as
	// 784, so the rounding errors of the sum would cost up to ten bits: they are collected.
	square := float64(x * x)
	minus := plus(-square, -0.5625)
	sum := plus(minus.high, erfcFar(x))
	return expPair(sum.high, sum.low+minus.low-math.FMA(x, x, -square)) / x
}

// hornerPair returns the value of a polynomial at z, whose last step is exact.
func hornerPair(z float64, coefficients []float64) pair {
	n := len(coefficients) - 1
	t := horner(z, coefficients[:n])
	h := float64(z * t)
	p := plus(h, coefficients[n])
	return pair{p.high, p.low + math.FMA(z, t, -h)}
}

// erfcFar returns the logarithm of x·Erfcx(x) plus 0.5625, for x from 1.25.
func erfcFar(x float64) float64 {
	s := 1 / float64(x*x)
	if x < 1/0.35 {
		return horner(s, erfcMidP) / horner(s, erfcMidQ)
	}
	return horner(s, erfcFarP) / horner(s, erfcFarQ)
}

// The coefficients of the polynomials, the highest first: numerators and denominators.
var (
	erfNearP = []float64{-2.37630166566501626084e-05, -5.77027029648944159157e-03, -2.84817495755985104766e-02, -3.25042107247001499370e-01, 1.28379167095512558561e-01}
	erfNearQ = []float64{-3.96022827877536812320e-06, 1.32494738004321644526e-04, 5.08130628187576562776e-03, 6.50222499887672944485e-02, 3.97917223959155352819e-01, 1}
	erfcOneP = []float64{-2.16637559486879084300e-03, 3.54783043256182359371e-02, -1.10894694282396677476e-01, 3.18346619901161753674e-01, -3.72207876035701323847e-01, 4.14856118683748331666e-01, -2.36211856075265944077e-03}
	erfcOneQ = []float64{1.19844998467991074170e-02, 1.36370839120290507362e-02, 1.26171219808761642112e-01, 7.18286544141962662868e-02, 5.40397917702171048937e-01, 1.06420880400844228286e-01, 1}
	erfcMidP = []float64{-9.81432934416914548592e+00, -8.12874355063065934246e+01, -1.84605092906711035994e+02, -1.62396669462573470355e+02, -6.23753324503260060396e+01, -1.05586262253232909814e+01, -6.93858572707181764372e-01, -9.86494403484714822705e-03}
	erfcMidQ = []float64{-6.04244152148580987438e-02, 6.57024977031928170135e+00, 1.08635005541779435134e+02, 4.29008140027567833386e+02, 6.45387271733267880336e+02, 4.34565877475229228821e+02, 1.37657754143519042600e+02, 1.96512716674392571292e+01, 1}
	erfcFarP = []float64{-4.83519191608651397019e+02, -1.02509513161107724954e+03, -6.37566443368389627722e+02, -1.60636384855821916062e+02, -1.77579549177547519889e+01, -7.99283237680523006574e-01, -9.86494292470009928597e-03}
	erfcFarQ = []float64{-2.24409524465858183362e+01, 4.74528541206955367215e+02, 2.55305040643316442583e+03, 3.19985821950859553908e+03, 1.53672958608443695994e+03, 3.25792512996573918826e+02, 3.03380607434824582924e+01, 1}
)
