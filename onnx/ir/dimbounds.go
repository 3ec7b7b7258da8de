package ir

import (
	"math"
	"strings"
)

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
