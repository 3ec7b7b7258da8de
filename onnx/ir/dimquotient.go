package ir

import (
	"math"
	"slices"
	"strings"
)

// over returns the quotient, rounded down. It is an expression such as div(n+1,2), unless there is no rest
// whatever the symbols are.
func (d Dim) over(e Dim) Dim {
	if d.IsUnknown() || e.IsUnknown() || e.Is(0) {
		return UnknownDim
	}
	if q, ok := d.exactly(e); ok {
		return q
	}
	c, isNumber := e.Number()
	switch {
	case !isNumber:
		return call("div", d, e)
	case c == math.MinInt64:
		return UnknownDim
	case c < 0:
		return d.Times(Known(-1)).over(Known(-c))
	case d.expr == "":
		return Known(floorDiv(d.n, c))
	}
	// What is a multiple of c is no part of the quotient: div(3*n-1,2) is n-1+div(n+1,2). Then the
	// factors of what is left and c have no divisor in common: div(2*n+3,4) is div(n+1,2).
	var whole, rest []term
	divisor := c
	for _, t := range d.terms() {
		f := t.factor
		if t.factor = floorDiv(f, c); t.factor != 0 {
			whole = append(whole, t)
		}
		if t.factor = f - c*t.factor; t.factor != 0 {
			rest = append(rest, t)
			if t.product != "" {
				divisor = gcd(divisor, t.factor)
			}
		}
	}
	// Of div(2*n+3,2) only the number is rounded, and div(div(x,2),2) is div(x,4).
	for i, t := range rest {
		rest[i].factor = floorDiv(t.factor, divisor)
	}
	rest = slices.DeleteFunc(rest, func(t term) bool { return t.factor == 0 })
	if len(rest) == 0 { // the rest is a number less than c
		return dimOf(whole)
	}
	return dimOf(whole).Plus(quotient(dimOf(rest), c/divisor))
}

// quotient returns the quotient of a sum whose factors are less than c. A quotient in it becomes part
// of it: div(div(h+1,2)+1,2) is div(h+3,4).
func quotient(d Dim, c int64) Dim {
	inner := -1
	list := d.terms()
	var a Dim
	var b int64
	for i, t := range list {
		if parts, ok := argumentsOf(t.product, "div"); ok && t.factor == 1 && t.degree == 1 {
			if n, isNumber := parts[1].Number(); isNumber && n > 0 {
				// Of a sum of two quotients neither can take in the other.
				if inner >= 0 {
					inner = -1
					break
				}
				inner, a, b = i, parts[0], n
			}
		}
	}
	// div(div(a,b)+k,c) is div(a+k*b,b*c), because k is a whole number.
	if n, ok := times(b, c); inner >= 0 && ok {
		others := slices.Delete(slices.Clone(list), inner, inner+1)
		return a.Plus(dimOf(others).Times(Known(b))).over(Known(n))
	}
	return call("div", d, Known(c))
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// exactly returns the quotient if there is no rest, whatever symbols are. It is not the quotient where
// e is 0.
func (d Dim) exactly(e Dim) (Dim, bool) {
	switch {
	case d.IsUnknown() || e.IsUnknown() || e.Is(0) || d.Is(math.MinInt64):
		return UnknownDim, false
	case e.Is(1):
		return d, true
	case d.Is(0):
		return d, true
	case d == e:
		return Known(1), true
	case d.expr == "" && e.expr == "":
		return Known(d.n / e.n), d.n%e.n == 0
	}
	// Division of polynomials: the first term of what is left is divided by that of e.
	by := e.terms()
	left := d.terms()
	var q []term
	// Each round takes away the leading term. A quotient of more terms would not be a dim anyway.
	for range maxTerms {
		if len(left) == 0 {
			sorted, ok := sum(q)
			return dimOf(sorted), ok && len(sorted) <= maxTerms
		}
		rest, ok := without(left[0].product, by[0].product)
		if !ok || left[0].factor == math.MinInt64 || left[0].factor%by[0].factor != 0 {
			return UnknownDim, false
		}
		t := term{rest, left[0].degree - by[0].degree, left[0].factor / by[0].factor}
		q = append(q, t)
		for _, u := range by {
			f, ok := times(-t.factor, u.factor)
			if !ok {
				return UnknownDim, false
			}
			left = append(left, term{multiply(t.product, u.product), t.degree + u.degree, f})
		}
		if left, ok = sum(left); !ok {
			return UnknownDim, false
		}
	}
	return UnknownDim, false
}

// without returns a product without some of its factors.
func without(product, factors string) (string, bool) {
	switch factors {
	case "":
		return product, true
	case product:
		return "", true
	}
	if product == "" {
		return "", false
	}
	atoms := split(product, "*")
	for _, f := range split(factors, "*") {
		i := slices.Index(atoms, f)
		if i < 0 {
			return "", false
		}
		atoms = slices.Delete(atoms, i, i+1)
	}
	return strings.Join(atoms, "*"), true
}
