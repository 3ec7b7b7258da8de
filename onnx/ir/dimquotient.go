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

// bounds returns numbers that a dim is between, if only the least and the largest one there are.
func (d Dim) bounds(depth int) (low, high int64) {
	if d.expr == "" {
		return d.n, d.n
	}
	if d.IsUnknown() || depth > maxNesting {
		return math.MinInt64, math.MaxInt64
	}
	// Intervals, term by term. Terms that share a symbol are taken to be independent, so the bounds may
	// be wide but are never wrong.
	for _, t := range d.terms() {
		l, h := productBounds(t.product, depth)
		if t.factor < 0 {
			l, h = h, l
		}
		low, high = saturating(low, l, t.factor, math.MinInt64), saturating(high, h, t.factor, math.MaxInt64)
	}
	return low, high
}

// saturating returns sum + n*factor, or the bound if it is one already, becomes one, or would overflow.
func saturating(sum, n, factor, bound int64) int64 {
	if sum == bound || n == math.MinInt64 || n == math.MaxInt64 {
		return bound
	}
	p, ok := times(n, factor)
	if !ok {
		return bound
	}
	if sum, ok = add(sum, p); !ok {
		return bound
	}
	return sum
}

// productBounds are bounds of a product. Nothing is said of one with a factor that may be negative.
func productBounds(product string, depth int) (low, high int64) {
	low, high = 1, 1
	if product == "" {
		return low, high
	}
	for _, atom := range split(product, "*") {
		l, h := atomBounds(atom, depth)
		if l < 0 {
			// Times others its sign would exchange their bounds. Alone it has none to exchange.
			if atom == product {
				return l, h
			}
			return math.MinInt64, math.MaxInt64
		}
		var ok bool
		if low, ok = times(low, l); !ok {
			low = math.MaxInt64 / 2 // it is at least that
		}
		if h == math.MaxInt64 || high == math.MaxInt64 {
			high = math.MaxInt64
		} else if high, ok = times(high, h); !ok {
			high = math.MaxInt64
		}
	}
	return low, high
}

func atomBounds(atom string, depth int) (low, high int64) {
	if !strings.HasSuffix(atom, ")") {
		return 0, math.MaxInt64 // a symbol
	}
	if args, ok := argumentsOf(atom, "div"); ok {
		low, high = args[0].bounds(depth + 1)
		least, most := args[1].bounds(depth + 1)
		switch {
		case least > 0 && least == most: // the usual case: by a number
			if low != math.MinInt64 {
				low = floorDiv(low, least)
			}
			if high != math.MaxInt64 {
				high = floorDiv(high, least)
			}
			return low, high
		case least >= 0 && low >= 0: // by 0 there is no quotient
			return 0, high
		}
		return math.MinInt64, math.MaxInt64
	}
	kind := atom[:3]
	args, _ := argumentsOf(atom, kind)
	low, high = args[0].bounds(depth + 1)
	for _, x := range args[1:] {
		l, h := x.bounds(depth + 1)
		if kind == "min" {
			low, high = min(low, l), min(high, h)
		} else {
			low, high = max(low, l), max(high, h)
		}
	}
	return low, high
}

// Eval returns the number that a dim is if symbols are these numbers. ok is false if it is unknown, has
// another symbol, or is no number because of a quotient by 0.
func (d Dim) Eval(symbols map[string]int64) (n int64, ok bool) {
	return Compute(d, Arithmetic[int64]{
		Number: func(n int64) int64 { return n },
		Symbol: func(name string) (int64, bool) { n, ok := symbols[name]; return n, ok },
		Add:    add,
		Mul:    times,
		Div: func(x, y int64) (int64, bool) {
			if y == 0 {
				return 0, false
			}
			return floorDiv(x, y), true
		},
		Min: func(x, y int64) int64 { return min(x, y) },
		Max: func(x, y int64) int64 { return max(x, y) },
	})
}

// Arithmetic is what Compute computes with. Functions that report false end it. Quotients are rounded down.
type Arithmetic[T any] struct {
	Number        func(n int64) T
	Symbol        func(name string) (T, bool)
	Add, Mul, Div func(x, y T) (T, bool)
	Min, Max      func(x, y T) T
}

// Compute computes the expression of a dim. ok is false if nothing is known of the dim, or a function of a
// reports that.
func Compute[T any](d Dim, a Arithmetic[T]) (sum T, ok bool) {
	if n, ok := d.Number(); ok {
		return a.Number(n), true
	}
	if d.IsUnknown() {
		return sum, false
	}
	for i, t := range d.terms() {
		p, ok := a.term(t)
		if !ok {
			return sum, false
		}
		if i == 0 {
			sum = p
		} else if sum, ok = a.Add(sum, p); !ok {
			return sum, false
		}
	}
	return sum, true
}

func (a Arithmetic[T]) term(t term) (p T, ok bool) {
	if t.product == "" {
		return a.Number(t.factor), true
	}
	for i, atom := range split(t.product, "*") {
		v, ok := a.atom(atom)
		if ok && i > 0 {
			v, ok = a.Mul(p, v)
		}
		if !ok {
			return v, false
		}
		p = v
	}
	if t.factor != 1 {
		return a.Mul(p, a.Number(t.factor))
	}
	return p, true
}

func (a Arithmetic[T]) atom(atom string) (x T, ok bool) {
	if name, ok := (Dim{expr: atom}).Symbolic(); ok {
		return a.Symbol(name)
	}
	kind := atom[:3]
	args, _ := argumentsOf(atom, kind)
	for i, arg := range args {
		y, ok := Compute(arg, a)
		switch {
		case !ok:
			return y, false
		case i == 0:
			x = y
		case kind == "min":
			x = a.Min(x, y)
		case kind == "max":
			x = a.Max(x, y)
		default:
			return a.Div(x, y)
		}
	}
	return x, true
}
