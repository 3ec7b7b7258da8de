package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/lists"
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

// split divides a text at separators, of one byte, that are outside of parentheses and quotes.
func split(text, separator string) []string {
	if !strings.Contains(text, separator) {
		return []string{text}
	}
	var parts []string
	start := 0
	scan(text, func(i, depth int) {
		if depth == 0 && text[i] == separator[0] {
			parts = append(parts, text[start:i])
			start = i + 1
		}
	})
	return append(parts, text[start:])
}

// splitTerms divides a sum into its terms, each with its sign.
func splitTerms(text string) []string {
	if strings.IndexByte(text, '+') < 0 && strings.IndexByte(text, '-') < 0 {
		return []string{text}
	}
	var parts []string
	start := 0
	scan(text, func(i, depth int) {
		if depth == 0 && i > start && (text[i] == '+' || text[i] == '-') {
			parts = append(parts, text[start:i])
			start = i
		}
	})
	return append(parts, text[start:])
}

// scan calls at for the places in a text that are outside of quotes. depth is how many parentheses, brackets and
// braces are around: one that opens or closes is within itself.
func scan(text string, at func(i, depth int)) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '[' || c == '{':
			depth++
			at(i, depth)
		case c == ')' || c == ']' || c == '}':
			at(i, depth)
			depth--
		default:
			at(i, depth)
		}
	}
}

// countDims returns how many sizes there are in what joinDims wrote.
func countDims(text string) int {
	switch {
	case text == "":
		return 0
	case strings.IndexByte(text, '(') < 0 && strings.IndexByte(text, '"') < 0: // the usual case
		return 1 + strings.Count(text, ",")
	}
	return len(split(text, ","))
}

// trustedDims reads what joinDims wrote.
func trustedDims(text string) []Dim {
	if text == "" {
		return nil
	}
	if strings.IndexByte(text, '(') < 0 && strings.IndexByte(text, '"') < 0 { // the usual case
		dims := make([]Dim, 0, countDims(text))
		for part := range strings.SplitSeq(text, ",") {
			dims = append(dims, trustedDim(part))
		}
		return dims
	}
	parts := split(text, ",")
	return lists.Map(parts, trustedDim)
}

// trustedDim reads what String returned.
func trustedDim(text string) Dim {
	if c := text[0]; c == '-' || c >= '0' && c <= '9' {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return Known(n)
		}
	}
	return Dim{expr: text}
}

// readDim reads what String returns. Expressions are brought into normal form.
func readDim(text string) (Dim, error) {
	d, ok := parseDim(text, 0)
	if !ok {
		return UnknownDim, fmt.Errorf("%.100q is no size, such as 3, n, 2*n+1, div(n+1,2) or ?", text)
	}
	return d, nil
}

func parseDim(text string, depth int) (Dim, bool) {
	if text == unknownDim {
		return UnknownDim, true
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Known(n), true
	}
	if text == "" || len(text) > maxDimText || depth > maxNesting {
		return UnknownDim, false
	}
	sum := Known(0)
	for _, term := range splitTerms(text) {
		product := Known(1)
		if strings.HasPrefix(term, "-") {
			product = Known(-1)
		}
		for _, factor := range split(strings.TrimLeft(term, "+-"), "*") {
			f, ok := parseFactor(factor, depth)
			if !ok {
				return UnknownDim, false
			}
			product = product.Times(f)
		}
		sum = sum.Plus(product)
	}
	return sum, true
}

// parseFactor reads a number, a name, or a quotient, minimum or maximum.
func parseFactor(text string, depth int) (Dim, bool) {
	// A sign belongs to the term, not to a factor of it.
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && text[0] != '+' {
		return Known(n), true
	}
	if strings.HasPrefix(text, `"`) {
		name, err := strconv.Unquote(text)
		return Symbol(name), err == nil && name != ""
	}
	if !strings.HasSuffix(text, ")") {
		return Symbol(text), isIdentifier(text) && text != "div" && text != "min" && text != "max"
	}
	function, inner, _ := strings.Cut(text[:len(text)-1], "(")
	var args []Dim
	for _, part := range split(inner, ",") {
		d, ok := parseDim(part, depth+1)
		if !ok {
			return UnknownDim, false
		}
		args = append(args, d)
	}
	if len(args) < 2 || len(args) > maxArguments {
		return UnknownDim, false
	}
	d := args[0]
	for _, e := range args[1:] {
		switch {
		case function == "div" && len(args) == 2:
			d = d.over(e)
		case function == "min":
			d = d.min(e)
		case function == "max":
			d = d.max(e)
		default:
			return UnknownDim, false
		}
	}
	return d, true
}
