package elementary

import (
	"math"
	"sync"
)

// exactErf is the series of positive terms for x**2 < 40.
func exactErf(x number) number {
	square := mul(x, x)
	term, sum := x, x
	for k := 3.0; ; k += 2 {
		term = over(mul(term, square), k/2)
		if negligible(term, sum) {
			return div(mul(shift(sum, 1), exactExp(neg(square))), root(exactPi()))
		}
		sum = add(sum, term)
	}
}

// exactErfcx is exp(x²)·erfc(x): beyond 2, a continued fraction.
func exactErfcx(x number) number {
	if rounded(x) < 2 {
		return mul(sub(one, exactErf(x)), exactExp(mul(x, x)))
	}
	v := x
	for k := 700.0; k > 0; k-- {
		v = add(x, div(numberOf(k/2), v))
	}
	return div(one, mul(v, root(exactPi())))
}

func exactErfc(x number) number {
	if v := rounded(x); v < 2 && v > -6 {
		return sub(one, exactErf(x))
	} else if v < 0 {
		return sub(numberOf(2), exactErfc(neg(x)))
	}
	return mul(exactErfcx(x), exactExp(neg(mul(x, x))))
}

// exactErfcinv improves a number that is nearly right by two steps of Newton's method.
func exactErfcinv(y number, near float64) number {
	x := numberOf(near)
	for range 2 {
		slope := div(shift(exactExp(neg(mul(x, x))), 1), root(exactPi()))
		x = add(x, div(sub(exactErfc(x), y), slope))
	}
	return x
}

// bernoulliNumbers has B₂, B₄, … up to B₁₂₀.
var bernoulliNumbers = sync.OnceValue(func() []number {
	b := []number{one, numberOf(-0.5)}
	for m := 2; m <= 120; m++ {
		sum, c := newNumber(), one // of C(m+1, k)·B(k)
		for k := range m {
			if k == 1 || k%2 == 0 {
				sum = add(sum, mul(c, b[k]))
			}
			c = over(times(c, float64(m+1-k)), float64(k+1))
		}
		if b = append(b, newNumber()); m%2 == 0 {
			b[m] = neg(over(sum, float64(m+1)))
		}
	}
	var even []number
	for m := 2; m < len(b); m += 2 {
		even = append(even, b[m])
	}
	return even
})

// far is where the asymptotic series have 200 bits.
const exactFar = 80

// exactLgamma returns the logarithm of the gamma function of x > 0.
func exactLgamma(x number) number {
	product := one
	for ; rounded(x) < exactFar; x = add(x, one) {
		product = mul(product, x)
	}
	v := sub(mul(sub(x, numberOf(0.5)), exactLog(x)), x)
	v = add(v, shift(exactLog(shift(exactPi(), 1)), -1))
	power, square := div(one, x), mul(x, x)
	for i, b := range bernoulliNumbers() {
		k := float64(2*i + 2)
		v = add(v, over(mul(b, power), k*(k-1)))
		power = div(power, square)
	}
	return sub(v, exactLog(product))
}

// exactSinPi returns the sine of πx and the cosine.
func exactSinPi(x number) (sin, cos number) {
	r := sub(x, numberOf(math.Round(rounded(x))))
	sin, cos = exactSinCos(mul(exactPi(), r))
	if math.Mod(math.Round(rounded(x)), 2) != 0 {
		sin, cos = neg(sin), neg(cos)
	}
	return sin, cos
}

func exactGamma(x number) number {
	if x.Sign() > 0 {
		return exactExp(exactLgamma(x))
	}
	sin, _ := exactSinPi(x)
	return div(exactPi(), mul(sin, exactGamma(sub(one, x))))
}

func exactDigamma(x number) number {
	if x.Sign() < 0 {
		sin, cos := exactSinPi(x)
		return sub(exactDigamma(sub(one, x)), div(mul(exactPi(), cos), sin))
	}
	sum := newNumber()
	for ; rounded(x) < exactFar; x = add(x, one) {
		sum = add(sum, div(one, x))
	}
	v := sub(exactLog(x), div(numberOf(0.5), x))
	square := mul(x, x)
	power := square
	for i, b := range bernoulliNumbers() {
		v = sub(v, div(b, times(power, float64(2*i+2))))
		power = mul(power, square)
	}
	return sub(v, sum)
}

// exactPolygamma returns the derivative of order n of digamma, by the sum of the powers and the
// formula of Euler and Maclaurin for the rest. x is positive, or negative and above -100.
func exactPolygamma(n int, x number) number {
	s := n + 1
	power := func(q number) number {
		p := one
		for range s {
			p = mul(p, q)
		}
		return div(one, p)
	}
	sum := newNumber()
	for ; rounded(x) < exactFar+float64(2*n); x = add(x, one) {
		sum = add(sum, power(x))
	}
	p := power(x)
	sum = add(sum, over(mul(p, x), float64(n)))
	sum = add(sum, shift(p, -1))
	factor := div(times(p, float64(s)), times(x, 2))
	for i, b := range bernoulliNumbers() {
		sum = add(sum, mul(b, factor))
		k := float64(2*i + 2) // the factor is s(s+1)…(s+k-2)/k! · x^-(s+k-1)
		factor = div(times(factor, (float64(s)+k-1)*(float64(s)+k)), times(mul(x, x), (k+1)*(k+2)))
	}
	for k := 1; k <= n; k++ {
		sum = times(sum, float64(k))
	}
	if n%2 == 0 {
		return neg(sum)
	}
	return sum
}
