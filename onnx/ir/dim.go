package ir

import (
	"slices"
	"strconv"
	"strings"
)

// A Dim is the size of a dimension, or an element of a shape that is computed with: a number, an
// expression of symbols, or unknown. A symbol is a size, so never negative, and two symbols of one
// name are the same number in every run. Dims are compared with ==, except for unknown ones, of which
// each may be another number; see [Dim.Same].
//
// Expressions are sums of products of numbers, symbols, and div(a,b), min(a,b,…) and max(a,b,…), in
// a normal form: what is equal by the laws of sums and products, and for many quotients, is one text.
// Sizes are far below 2^63, so sums and products of them do not overflow; numbers that would are
// unknown.
type Dim struct {
	n    int64
	expr string // in normal form; "" for a number, unknownDim if nothing is known
}

const unknownDim = "?"

// UnknownDim is a size of which nothing is known.
var UnknownDim = Dim{expr: unknownDim}

// These bound expressions, because files may ask for any. What is beyond them is unknown.
const (
	maxTerms     = 32      // of a sum
	maxArguments = 8       // of min and max
	maxNesting   = 8       // of quotients in quotients
	maxCompared  = 3       // of minima in maxima that are compared one by one
	maxDimText   = 1 << 12 // bytes
)

// Known returns the dim of a number.
func Known(n int64) Dim { return Dim{n: n} }

// Symbol returns the dim of a name. Names of files may be any text; an empty one is unknown.
func Symbol(name string) Dim {
	if name == "" {
		return UnknownDim
	}
	text := name
	if !isIdentifier(name) || name == "div" || name == "min" || name == "max" {
		text = strconv.Quote(name)
	}
	if len(text) > maxDimText {
		return UnknownDim
	}
	return Dim{expr: text}
}

func isIdentifier(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && (c >= '0' && c <= '9' || c == '.')) {
			return false
		}
	}
	return s != ""
}

// Number returns the number that a dim is.
func (d Dim) Number() (int64, bool) { return d.n, d.expr == "" }

// Is reports whether a dim is known to be a number.
func (d Dim) Is(n int64) bool { return d.expr == "" && d.n == n }

// IsUnknown reports whether nothing is known of a dim.
func (d Dim) IsUnknown() bool { return d.expr == unknownDim }

// Same reports whether two dims are known to be the same number.
func (d Dim) Same(e Dim) bool { return d == e && d.expr != unknownDim }

// Differs reports whether two dims are known to be different numbers.
func (d Dim) Differs(e Dim) bool {
	if d.expr == "" && e.expr == "" {
		return d.n != e.n
	}
	if d == e || d.IsUnknown() || e.IsUnknown() {
		return false
	}
	// In normal form common terms cancel, so n and n+1 differ whatever n is.
	difference := d.Minus(e)
	if difference.IsUnknown() {
		return false
	}
	if low, high := difference.bounds(0); low > 0 || high < 0 {
		return true
	}
	// 2*n-1 is not 0, because 1 is no multiple of 2.
	factor, number := int64(0), int64(0)
	for _, t := range difference.terms() {
		if t.product == "" {
			number = t.factor
		} else {
			factor = gcd(factor, t.factor)
		}
	}
	return factor != 0 && number%factor != 0
}

// atMost reports whether d is known to be at most e.
func (d Dim) atMost(e Dim) bool { return d.notAbove(e, 0) }

func (d Dim) notAbove(e Dim, depth int) bool {
	switch {
	case d.IsUnknown() || e.IsUnknown() || depth > maxCompared:
		return false
	case d.expr == "" && e.expr == "":
		return d.n <= e.n
	case d == e:
		return true
	}
	// Again by what is left of a difference: n is at most n+1, though neither has a bound.
	if low, _ := e.Minus(d).bounds(0); low >= 0 {
		return true
	}
	below := func(x Dim) bool { return x.notAbove(e, depth+1) }
	above := func(x Dim) bool { return d.notAbove(x, depth+1) }
	// One argument of a minimum on the left, or of a maximum on the right, is enough. On the other
	// sides all of them have to hold.
	if list, ok := d.arguments("min"); ok && slices.ContainsFunc(list, below) {
		return true
	}
	if list, ok := e.arguments("max"); ok && slices.ContainsFunc(list, above) {
		return true
	}
	if list, ok := d.arguments("max"); ok && !slices.ContainsFunc(list, func(x Dim) bool { return !below(x) }) {
		return true
	}
	list, ok := e.arguments("min")
	return ok && !slices.ContainsFunc(list, func(x Dim) bool { return !above(x) })
}

// String returns a number, an expression such as 2*n+1, or "?".
func (d Dim) String() string {
	if d.expr == "" {
		return strconv.FormatInt(d.n, 10)
	}
	return d.expr
}

// Symbolic returns the name of the symbol that a dim is, if it is a symbol alone.
func (d Dim) Symbolic() (name string, ok bool) {
	if strings.HasPrefix(d.expr, `"`) {
		if s, err := strconv.Unquote(d.expr); err == nil {
			return s, true
		}
	}
	return d.expr, isIdentifier(d.expr)
}

// meet returns what is known of a number that is both: a number rather than a symbol, and a symbol
// rather than nothing. ok is false if it can't be both.
func (d Dim) meet(e Dim) (both Dim, ok bool) {
	switch {
	case d.Differs(e):
		return d, false
	case d.expr == "", e.expr == unknownDim:
		return d, true
	case e.expr == "", d.expr == unknownDim:
		return e, true
	}
	// Two expressions that may be one number: neither says more than the other.
	return d, true
}
