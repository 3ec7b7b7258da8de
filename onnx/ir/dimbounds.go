package ir

import (
	"math"
	"slices"
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
	if d.expr == "" {
		return d.n, true
	}
	if d.IsUnknown() {
		return 0, false
	}
	for _, t := range d.terms() {
		p := t.factor
		if t.product != "" {
			for _, atom := range split(t.product, "*") {
				v, ok := evalAtom(atom, symbols)
				if !ok {
					return 0, false
				}
				if p, ok = times(p, v); !ok {
					return 0, false
				}
			}
		}
		if n, ok = add(n, p); !ok {
			return 0, false
		}
	}
	return n, true
}

func evalAtom(atom string, symbols map[string]int64) (int64, bool) {
	if name, ok := (Dim{expr: atom}).Symbolic(); ok {
		n, ok := symbols[name]
		return n, ok
	}
	kind := atom[:3]
	args, _ := argumentsOf(atom, kind)
	list := make([]int64, len(args))
	for i, a := range args {
		var ok bool
		if list[i], ok = a.Eval(symbols); !ok {
			return 0, false
		}
	}
	switch {
	case kind == "min":
		return slices.Min(list), true
	case kind == "max":
		return slices.Max(list), true
	case list[1] == 0:
		return 0, false
	}
	return floorDiv(list[0], list[1]), true
}
