package elementary

import (
	"math"
	"math/big"
	"sync"
)

// Functions of this file and of exactgamma_test.go compute with 320 bits, which leaves more than
// 200 that are right.
const exactBits = 320

type number = *big.Float

func newNumber() number                { return new(big.Float).SetPrec(exactBits) }
func numberOf(x float64) number        { return newNumber().SetFloat64(x) }
func add(x, y number) number           { return newNumber().Add(x, y) }
func sub(x, y number) number           { return newNumber().Sub(x, y) }
func mul(x, y number) number           { return newNumber().Mul(x, y) }
func div(x, y number) number           { return newNumber().Quo(x, y) }
func neg(x number) number              { return newNumber().Neg(x) }
func root(x number) number             { return newNumber().Sqrt(x) }
func times(x number, k float64) number { return mul(x, numberOf(k)) }
func over(x number, k float64) number  { return div(x, numberOf(k)) }
func shift(x number, e int) number     { return newNumber().SetMantExp(x, e) }
func rounded(x number) float64         { v, _ := x.Float64(); return v }

// negligible reports whether adding a term to a sum changes none of its bits.
func negligible(term, sum number) bool {
	return term.Sign() == 0 || sum.Sign() != 0 && term.MantExp(nil) < sum.MantExp(nil)-exactBits
}

var (
	one     = numberOf(1)
	exactLn = sync.OnceValue(func() number { return times(exactAtanh(over(one, 3)), 2) }) // of 2
	exactPi = sync.OnceValue(func() number {                                              // Machin's formula, for angles up to 2^1024
		const bits = exactBits + 1200
		atan := func(k int64) number {
			n := func(v int64) number { return new(big.Float).SetPrec(bits).SetInt64(v) }
			term, sum := new(big.Float).Quo(n(1), n(k)), n(0)
			for i := int64(1); term.MantExp(nil) > -bits; i += 2 {
				sum.Add(sum, new(big.Float).Quo(term, n(i)))
				term.Quo(term, n(-k*k))
			}
			return sum
		}
		a, b := atan(5), atan(239)
		a.SetMantExp(a, 4)
		return a.Sub(a, b.SetMantExp(b, 2))
	})
)

// exactAtanh is the Taylor series, for |x| < ½.
func exactAtanh(x number) number {
	square, power, sum := mul(x, x), x, x
	for k := 3.0; ; k += 2 {
		power = mul(power, square)
		term := over(power, k)
		if negligible(term, sum) {
			return sum
		}
		sum = add(sum, term)
	}
}

// exactExpm1 returns e**x - 1.
func exactExpm1(x number) number {
	if math.Abs(rounded(x)) >= 0.25 {
		return sub(exactExp(x), one)
	}
	term, sum := x, x
	for k := 2.0; ; k++ {
		term = over(mul(term, x), k)
		if negligible(term, sum) {
			return sum
		}
		sum = add(sum, term)
	}
}

func exactExp(x number) number {
	n := math.Round(rounded(x) / math.Ln2)
	r := add(exactExpm1(shift(sub(x, times(exactLn(), n)), -8)), one)
	for range 8 {
		r = mul(r, r)
	}
	return shift(r, int(n))
}

// exactLog1p returns log(1+x).
func exactLog1p(x number) number {
	if x.Sign() == 0 || x.MantExp(nil) < -6 {
		return times(exactAtanh(div(x, add(x, numberOf(2)))), 2)
	}
	return exactLog(add(x, one))
}

func exactLog(x number) number {
	if d := sub(x, one); d.Sign() == 0 || d.MantExp(nil) < -6 {
		return exactLog1p(d)
	}
	m := newNumber()
	e := float64(x.MantExp(m))
	if rounded(m) < math.Sqrt2/2 {
		m, e = shift(m, 1), e-1
	}
	near := math.Log(rounded(m))
	t := sub(mul(m, exactExp(numberOf(-near))), one)
	return add(add(exactLog1p(t), numberOf(near)), times(exactLn(), e))
}

func exactLog1mexp(x number) number {
	if rounded(x) < -1 {
		return exactLog1p(neg(exactExp(x)))
	}
	return exactLog(neg(exactExpm1(x)))
}

// exactSinCos returns the sine and the cosine of x.
func exactSinCos(x number) (sin, cos number) {
	pi := exactPi()
	wide := new(big.Float).SetPrec(pi.Prec())
	quarters := wide.Quo(x, pi)
	quarters.SetMantExp(quarters, 1)
	quarters.Add(quarters, big.NewFloat(math.Copysign(0.5, rounded(x))))
	q, _ := quarters.Int(nil)
	turned := new(big.Float).SetPrec(pi.Prec()).SetInt(q)
	turned.Mul(turned, pi)
	r := sub(new(big.Float).SetPrec(pi.Prec()).Set(x), turned.SetMantExp(turned, -1))
	square := neg(mul(r, r))
	series := func(term number, k float64) number {
		sum := term
		for ; ; k += 2 {
			term = over(mul(term, square), k*(k+1))
			if negligible(term, sum) {
				return sum
			}
			sum = add(sum, term)
		}
	}
	sin, cos = series(r, 2), series(one, 1)
	switch new(big.Int).And(q, big.NewInt(3)).Int64() {
	case 1:
		sin, cos = cos, neg(sin)
	case 2:
		sin, cos = neg(sin), neg(cos)
	case 3:
		sin, cos = neg(cos), sin
	}
	return sin, cos
}

// exactAtan2 returns the angle of the point (x, y), which is not the origin.
func exactAtan2(y, x number) number {
	near := math.Atan2(rounded(y), rounded(x))
	if h := root(add(mul(x, x), mul(y, y))); h.Sign() != 0 {
		near = math.Atan2(rounded(div(y, h)), rounded(div(x, h)))
	}
	if math.Abs(near) < 0.01 { // the tangent is small
		near = 0
	}
	sin, cos := exactSinCos(numberOf(near))
	t := div(sub(mul(y, cos), mul(x, sin)), add(mul(x, cos), mul(y, sin)))
	square, power, sum := neg(mul(t, t)), t, t
	for k := 3.0; ; k += 2 {
		power = mul(power, square)
		term := over(power, k)
		if negligible(term, sum) {
			return add(sum, numberOf(near))
		}
		sum = add(sum, term)
	}
}

func exactSinh(x number) number {
	if x.Sign() < 0 {
		return neg(exactSinh(neg(x)))
	}
	e := exactExpm1(x)
	return shift(add(e, div(e, add(e, one))), -1)
}

func exactTanh(x number) number {
	e := exactExpm1(shift(x, 1))
	return div(e, add(e, numberOf(2)))
}

// exactAcosh is the inverse of the hyperbolic cosine of 1+t.
func exactAcosh(t number) number { return exactLog1p(add(t, root(mul(t, add(t, numberOf(2)))))) }

// exactAsinh is odd; the formula is for x ≥ 0.
func exactAsinh(x number) number {
	if x.Sign() < 0 {
		return neg(exactAsinh(neg(x)))
	}
	square := mul(x, x)
	return exactLog1p(add(x, div(square, add(one, root(add(square, one))))))
}

func exactPow(x, y number) number {
	if x.Sign() == 0 {
		return numberOf(0)
	}
	return exactExp(mul(exactLog(x), y))
}
