package elementary

import "math"

// Gamma returns the gamma function of x. At zero and at negative integers it is infinite, with the
// sign of a zero, and positive at the others.
func Gamma(x float64) float64 {
	switch n := math.Round(x); {
	case x != x || math.IsInf(x, 0):
		return x
	case x == 0:
		return math.Copysign(math.Inf(1), x)
	case x < 0 && x == n:
		return math.Inf(1)
	case x > maxGamma:
		return math.Inf(1)
	case x < minGamma:
		if math.Mod(math.Floor(x), 2) == 0 {
			return 0
		}
		return math.Copysign(0, -1)
	// The difference x-n is exact, and Γ(x) = Γ(x-n+2)·(x-n+2)···(x-1). The product is kept in two
	// parts, because up to 170 factors would add up their errors.
	case n >= 2:
		return factors(gammaNearTwo(x-n), x, 2-int(n), 0).high
	default: // two divisors, since the product of all factors may overflow
		last := 2 - int(n)
		v := factors(1, x, last/2, last).divide(pair{gammaNearTwo(x - n), 0})
		v = factors(1, x, 0, last/2).divide(v)
		return v.high + v.low
	}
}

const (
	maxGamma = 171.62437695630272 // the gamma function of larger numbers overflows
	minGamma = -184               // that of smaller ones underflows
)

// gammaNearTwo returns the gamma function of 2+z for |z| ≤ ½.
func gammaNearTwo(z float64) float64 { return math.FMA(z, horner(z, gammaP), 1) }

// A pair is the sum of two numbers, of which the second is at most the rounding error of the first.
type pair struct{ high, low float64 }

// plus returns x+y, with what rounding loses of it.
func plus(x, y float64) pair {
	sum := x + y
	part := sum - x
	return pair{sum, (x - (sum - part)) + (y - part)}
}

// factors returns v times the product of the numbers x+k for first ≤ k < last.
func factors(v, x float64, first, last int) pair {
	p := pair{v, 0}
	for k := float64(first); k < float64(last); k++ {
		f := plus(x, k)
		h := float64(p.high * f.high)
		l := math.FMA(p.high, f.high, -h) + float64(p.low*f.high) + float64(p.high*f.low)
		p.high = h + l
		p.low = l - (p.high - h)
	}
	return p
}

// divide returns v/p.
func (p pair) divide(v pair) pair {
	q := v.high / p.high
	if q-q != 0 || p.high-p.high != 0 {
		return pair{q, 0}
	}
	rest := math.FMA(-q, p.high, v.high) + (v.low - float64(q*p.low))
	return pair{q, rest / p.high}
}

// Lgamma returns the logarithm of the absolute value of the gamma function. It is accurate to a few
// units in the last place for x > 0. Near zeros at negative x the absolute error is small.
func Lgamma(x float64) float64 {
	switch {
	case x != x:
		return x
	case math.IsInf(x, 0) || x <= 0 && x == math.Round(x):
		return math.Inf(1)
	case x < 0x1p-60 && x > -0x1p-60:
		return -Log(math.Abs(x))
	case x < 0:
		// Reflection: Γ(x)·Γ(-x) = -π/(x·sin πx). The sine of the distance from the nearest integer
		// keeps its digits near the poles.
		f := x - math.Round(x)
		return Log(math.Pi/float64(math.Abs(Sin(math.Pi*f))*-x)) - Lgamma(-x)
	case x < 0.5:
		return float64(x*horner(x, lgammaP)) - Log1p(x) - Log(x)
	case x < 1.25:
		z := x - 1
		return float64(z*horner(z, lgammaP)) - Log1p(z)
	case x < 1.5: // the terms nearly cancel
		const first = 4.942915152430645e-18 // what is missing of the last coefficient
		z := x - 1
		log := logPair(x)
		n := len(lgammaP) - 1
		linear := float64(z * lgammaP[n])
		rest := math.FMA(z, lgammaP[n], -linear) + float64(z*first) - log.low
		return linear - log.high + math.FMA(float64(z*z), horner(z, lgammaP[:n]), rest)
	case x < 10:
		n := math.Round(x)
		if x < 2.5 {
			n = 2
		}
		z := x - n
		v := float64(z * horner(z, lgammaP))
		if n > 2 {
			v += Log(factors(1, x, 2-int(n), 0).high)
		}
		return v
	case x > 1e17:
		return float64(x * (Log(x) - 1))
	}
	// Of the terms of Stirling, the first is the largest.
	log := logPair(x)
	less := plus(log.high, -1)
	first := float64((x - 0.5) * less.high)
	rest := math.FMA(x-0.5, less.high, -first) + float64((x-0.5)*(less.low+log.low))
	return first + (halfLog2Pi + (rest + horner(float64(1/(x*x)), stirling)/x))
}

// halfLog2Pi is (log(2π) - 1)/2.
const halfLog2Pi = 0.4189385332046727

// Digamma returns the derivative of the logarithm of the gamma function. It is accurate to a few
// units in the last place for x > 0. At zero it is infinite, and NaN at negative integers.
func Digamma(x float64) float64 {
	switch {
	case x == 0:
		return math.Copysign(math.Inf(1), -x)
	case x < 0 && x > -0x1p-54:
		// Euler's constant, the next term of the series at zero, is less than half a unit in the
		// last place. The reflection below would square the cotangent, which overflows.
		return -1 / x
	case x < 0:
		f := x - math.Round(x)
		if !(f != 0) {
			return math.NaN()
		}
		// Reflection: ψ(x) = ψ(1-x) - π·cot πx. Near poles and near zeros of ψ the error of the
		// angle matters: rest is that of the product and of π, times the derivative of the
		// cotangent.
		angle := float64(math.Pi * f)
		rest := math.FMA(math.Pi, f, -angle) + float64(f*1.2246467991473532e-16)
		cot := 1 / Tan(angle)
		cot -= float64(rest * math.FMA(cot, cot, 1))
		return math.FMA(-math.Pi, cot, Digamma(1-x))
	case x < 1:
		// ψ(x) = ψ(x+1) - 1/x, with the polynomial at its distance from the zero of ψ, so that the
		// result is precise near it.
		q := 1 / x
		v := math.FMA((x-(digammaZero-1))-digammaRest, horner(x-0.5, digammaP), -q) // at x+1, minus 1/x
		if q > 1<<50 {
			return v
		}
		return v - float64(math.FMA(-q, x, 1)*q)
	case x >= 10 || x != x:
		z := 1 / x / x
		return Log(x) - 0.5/x - float64(z*horner(z, digammaFar))
	}
	sum, lost := 0.0, 0.0
	// ψ(x) = ψ(x-1) + 1/(x-1). Up to eight terms are added with what rounding loses of them.
	for x > 2 {
		x--
		q := 1 / x
		p := plus(sum, q)
		sum = p.high
		lost += p.low + float64(math.FMA(-q, x, 1)*q)
	}
	return math.FMA((x-digammaZero)-digammaRest, horner(x-1.5, digammaP), sum) + lost
}

// The positive zero of Digamma in two parts.
const (
	digammaZero = 1.4616321449683622
	digammaRest = 9.549995429965697e-17
)

// Polygamma returns the derivative of order n of [Digamma]. It is NaN unless n is an integer that
// is not negative. At zero and at negative integers it is infinite.
func Polygamma(n, x float64) float64 {
	switch {
	case !(n >= 0) || n != math.Floor(n) || x != x:
		return math.NaN()
	case n == 0:
		return Digamma(x)
	}
	sign := 1.0
	if math.Mod(n, 2) == 0 {
		sign = -1
	}
	near := math.Round(x)
	f := x - near
	if math.IsInf(x, 0) {
		f = 0
	}
	var sum float64 // of the powers 1/(x+k)ⁿ⁺¹
	switch s := n + 1; {
	case x <= 0 && f == 0:
		return math.Inf(int(sign))
	case x > 0.5:
		sum = zeta(s, pair{x, 0})
	case x >= 0:
		sum = Pow(x, -s) + zeta(s, plus(x, 1))
	default: // those to the left of zero are those of another series, up to the sign
		left := zeta(s, plus(1, -f)) - zeta(s, plus(1, -x))
		sum = Pow(f, -s) + zeta(s, plus(1, f)) + float64(sign*left)
	}
	return float64(sign*Gamma(n+1)) * sum
}

// zeta returns the sum of (x+k)⁻ˢ over all k ≥ 0, for s ≥ 2 and x ≥ ½: the first terms, and the
// rest by the formula of Euler and Maclaurin, whose terms decrease fast if x+k is larger than s.
func zeta(s float64, x pair) float64 {
	sum, lost := 0.0, 0.0
	q := x
	power := func() (v, rest float64) {
		v = Pow(q.high, -s)
		return v, float64(float64(v*s) * (-q.low / q.high))
	}
	// The terms of the formula of Euler and Maclaurin decrease while s and their number are small
	// against 2π(x+k). With x+k above s+6, the twelve that follow are enough.
	least := max(10, min(s, 1000)+6)
	for k := 1.0; q.high < least; k++ {
		term, rest := power()
		p := plus(sum, term)
		sum = p.high
		// For a large s the terms decrease so fast that the rest of the sum, too, is below half a
		// unit in the last place.
		if lost += p.low + rest; term < sum*0x1p-60 {
			return sum + lost
		}
		q = plus(x.high, k)
		q.low += x.low
	}
	if q.high > 1e8 {
		return sum + float64(Pow(q.high, 1-s)*(1/(s-1)+0.5/q.high))
	}
	last, rest := power()
	lost += float64(rest*q.high)/(s-1) + float64(last*q.low)/(s-1) + float64(last*0.5)
	factor := float64(s*last) / q.high
	for i, c := range bernoulli {
		lost += float64(c * factor)
		k := float64(2 * i)
		factor = float64(factor/q.high*(s+k+1)) / q.high
		factor = float64(factor * (s + k + 2))
	}
	return sum + (float64(last*q.high)/(s-1) + lost)
}

// The coefficients of the polynomials, the highest first. Those for short intervals interpolate at
// Chebyshev's points. The others are Bernoulli's numbers B₂, B₄, … over 2k(2k-1), over 2k, and over
// (2k)!, of which the last are in ascending order.
var (
	gammaP = []float64{-1.2922677220574865e-06, 2.584210735300929e-06, -3.6328579080563787e-06, 7.2632956346064904e-06, -1.5285314654361767e-05, 3.0554308764876926e-05, -6.078457313978775e-05, 0.00012165717113737426, -0.00024094226106895087, 0.0004903901012192666,
		-0.0009195737909004152, 0.0021039332448517375, -0.0028526458226594102, 0.01115404572113896, -0.00026698206872359645, 0.07424901075347107, 0.08157691924708618, 0.41184033042643986, 0.42278433509846713}
	lgammaP = []float64{6.379047507619774e-08, -1.3412819758517287e-07, 2.0304806751615227e-07, -4.303558760359961e-07, 9.578663334114758e-07, -2.0449201467015115e-06, 4.374374916915131e-06, -9.438458716242811e-06, 2.050726741605779e-05, -4.4926351103833334e-05,
		9.945750909889392e-05, -0.00022315475074520367, 0.0005096695248853096, -0.0011927539120010226, 0.002890510330738737, -0.0073855510286681535, 0.02058080842778457, -0.06735230105319814, 0.3224670334241132, 0.42278433509846713}
	digammaP = []float64{-8.153978973309418e-05, 0.00012230983055406747, -6.11554261750751e-05, 9.173383289174792e-05, -0.0002178682145501451, 0.0003268068044141764, -0.0004599625144612576, 0.0006899717801166841, -0.001042261556504223, 0.0015635679757533885, -0.002344650082351321, 0.0035180800751066694,
		-0.00528001782089874, 0.007927024067961237, -0.011908215172584002, 0.017907248195969127, -0.02697579684427536, 0.04076083394462657, -0.06192213327165706, 0.09498872445283, -0.14840492305391761, 0.24054248424078736, -0.42362742128146047, 0.9510558760318328}
	stirling   = []float64{-1.3924322169059011, 0.17964437236883057, -0.029550653594771242, 0.00641025641025641, -0.0019175269175269176, 0.0008417508417508417, -0.0005952380952380953, 0.0007936507936507937, -0.002777777777777778, 0.08333333333333333}
	digammaFar = []float64{3.0539543302701198, -0.4432598039215686, 0.08333333333333333, -0.021092796092796094, 0.007575757575757576, -0.004166666666666667, 0.003968253968253968, -0.008333333333333333, 0.08333333333333333}
	bernoulli  = []float64{0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07, 2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15, -2.174868698558062e-16, 5.5090028283602295e-18, -1.3954464685812522e-19}
)
