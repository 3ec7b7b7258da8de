package ir

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Dim is the size of a dimension, or an element of a shape that is computed with: a number, an
// expression of symbols, or unknown. Two symbols of one name are the same number in every run. Dims
// are compared with ==, except for unknown ones, of which each may be another number; see [Dim.Same].
type Dim struct {
	n    int64
	expr string // in normal form; "" for a number, unknownDim if nothing is known
}

const unknownDim = "?"

// UnknownDim is a size of which nothing is known.
var UnknownDim = Dim{expr: unknownDim}

// Known returns the dim of a number.
func Known(n int64) Dim { return Dim{n: n} }

// Symbol returns the dim of a name. Names of files may be any text; an empty one is unknown.
func Symbol(name string) Dim {
	if name == "" {
		return UnknownDim
	}
	return Dim{expr: atomOf(name)}
}

// atomOf returns a name as it is in an expression: quoted unless it is an identifier.
func atomOf(name string) string {
	if isIdentifier(name) && name != "div" {
		return name
	}
	return strconv.Quote(name)
}

func isIdentifier(s string) bool {
	for i, r := range s {
		if !(r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && (r >= '0' && r <= '9' || r == '.')) {
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
	diff := d.Minus(e)
	return diff.expr == "" && diff.n != 0
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

// Meet returns what is known of a number that is both: a number rather than a symbol, and a symbol
// rather than nothing. ok is false if it can't be both.
func (d Dim) Meet(e Dim) (both Dim, ok bool) {
	switch {
	case d.Differs(e):
		return d, false
	case d.expr == "", e.expr == unknownDim:
		return d, true
	case e.expr == "", d.expr == unknownDim:
		return e, true
	}
	return d, true
}

// A polynomial is a sum: of each product of symbols, the factor. The product of none is "".
type polynomial map[string]int64

// maxTerms bounds expressions; a longer one is unknown.
const maxTerms = 32

// polynomial returns the terms of a dim that is not unknown.
func (d Dim) polynomial() polynomial {
	if d.expr == "" {
		return polynomial{"": d.n}
	}
	p := make(polynomial)
	for _, term := range splitTerms(d.expr) {
		factor := int64(1)
		if strings.HasPrefix(term, "-") {
			factor, term = -1, term[1:]
		}
		term = strings.TrimPrefix(term, "+")
		var atoms []string
		for _, f := range split(term, "*") {
			if n, err := strconv.ParseInt(f, 10, 64); err == nil {
				factor *= n
			} else {
				atoms = append(atoms, f)
			}
		}
		p[strings.Join(atoms, "*")] += factor
	}
	return p
}

// dim returns the sum in normal form: by falling degree, then by text, the number last.
func (p polynomial) dim() Dim {
	maps.DeleteFunc(p, func(_ string, f int64) bool { return f == 0 })
	if n, ok := p[""]; len(p) == 0 || len(p) == 1 && ok {
		return Known(n)
	}
	if len(p) > maxTerms {
		return UnknownDim
	}
	degree := func(m string) int {
		if m == "" {
			return 0
		}
		return len(split(m, "*"))
	}
	order := slices.SortedFunc(maps.Keys(p), func(a, b string) int { return cmp.Or(degree(b)-degree(a), strings.Compare(a, b)) })
	var text strings.Builder
	for i, m := range order {
		f := p[m]
		if f >= 0 && i > 0 {
			text.WriteByte('+')
		}
		switch {
		case m == "":
			text.WriteString(strconv.FormatInt(f, 10))
		case f == 1:
			text.WriteString(m)
		case f == -1:
			text.WriteString("-" + m)
		default:
			text.WriteString(strconv.FormatInt(f, 10) + "*" + m)
		}
	}
	return Dim{expr: text.String()}
}

// Plus returns the sum.
func (d Dim) Plus(e Dim) Dim {
	switch {
	case d.IsUnknown() || e.IsUnknown():
		return UnknownDim
	case d.expr == "" && e.expr == "":
		return checked(d.n+e.n, (e.n > 0) == (d.n+e.n > d.n) || e.n == 0)
	}
	p := d.polynomial()
	for m, f := range e.polynomial() {
		p[m] += f
	}
	return p.dim()
}

// Minus returns the difference.
func (d Dim) Minus(e Dim) Dim { return d.Plus(e.Times(Known(-1))) }

// Times returns the product.
func (d Dim) Times(e Dim) Dim {
	switch {
	case d.Is(0) || e.Is(0):
		return Known(0)
	case d.IsUnknown() || e.IsUnknown():
		return UnknownDim
	}
	p := make(polynomial)
	for m, f := range d.polynomial() {
		for k, g := range e.polynomial() {
			product := checked(f*g, f == 0 || f*g/f == g && !(f == -1 && g == math.MinInt64))
			if product.IsUnknown() {
				return UnknownDim
			}
			p[multiply(m, k)] += product.n
		}
		if len(p) > maxTerms {
			return UnknownDim
		}
	}
	return p.dim()
}

func checked(n int64, ok bool) Dim {
	if !ok {
		return UnknownDim
	}
	return Known(n)
}

// multiply returns the product of two products of symbols.
func multiply(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	atoms := append(split(a, "*"), split(b, "*")...)
	slices.Sort(atoms)
	return strings.Join(atoms, "*")
}

// Over returns the quotient, rounded down. What is not divided without rest, whatever symbols are,
// is a symbol of its own: div(n-1,2).
func (d Dim) Over(e Dim) Dim {
	if q, ok := d.Exactly(e); ok {
		return q
	}
	if d.IsUnknown() || e.IsUnknown() || e.Is(0) {
		return UnknownDim
	}
	if d.expr == "" && e.expr == "" {
		return Known(floorDiv(d.n, e.n))
	}
	return Dim{expr: "div(" + d.String() + "," + e.String() + ")"}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// Exactly returns the quotient if there is no rest, whatever symbols are. It is not the quotient where
// a symbol in e is 0.
func (d Dim) Exactly(e Dim) (Dim, bool) {
	switch {
	case d.IsUnknown() || e.IsUnknown() || e.Is(0) || d.n == math.MinInt64:
		return UnknownDim, false
	case e.Is(1):
		return d, true
	case d.Is(0):
		return d, true
	}
	p := e.polynomial()
	if len(p) != 1 {
		return Known(1), d == e
	}
	quotient := make(polynomial)
	for k, g := range p {
		for m, f := range d.polynomial() {
			rest, ok := without(m, k)
			if !ok || g == 0 || f%g != 0 {
				return UnknownDim, false
			}
			quotient[rest] += f / g
		}
	}
	return quotient.dim(), true
}

// without returns a product of symbols without some of its factors.
func without(product, factors string) (string, bool) {
	if factors == "" {
		return product, true
	}
	var atoms []string
	if product != "" {
		atoms = split(product, "*")
	}
	for _, f := range split(factors, "*") {
		i := slices.Index(atoms, f)
		if i < 0 {
			return "", false
		}
		atoms = slices.Delete(atoms, i, i+1)
	}
	return strings.Join(atoms, "*"), true
}

// split divides a text at separators that are outside of parentheses and quotes.
func split(text, separators string) []string {
	var parts []string
	start := 0
	scan(text, func(i int) {
		if strings.IndexByte(separators, text[i]) >= 0 {
			parts = append(parts, text[start:i])
			start = i + 1
		}
	})
	return append(parts, text[start:])
}

// splitTerms divides a sum into its terms, each with its sign.
func splitTerms(text string) []string {
	var parts []string
	start := 0
	scan(text, func(i int) {
		if i > start && (text[i] == '+' || text[i] == '-') {
			parts = append(parts, text[start:i])
			start = i
		}
	})
	return append(parts, text[start:])
}

// scan calls at for the places in a text that are outside of parentheses, brackets, braces and quotes.
func scan(text string, at func(i int)) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0:
			at(i)
		}
	}
}

// maxDimText bounds the text of an expression.
const maxDimText = 1 << 12

// ParseDim reads what String returns. Expressions are brought into normal form.
func ParseDim(text string) (Dim, error) {
	d, ok := parseDim(text, 0)
	if !ok {
		return UnknownDim, fmt.Errorf("%.100q is no size, such as 3, n, 2*n+1, div(n-1,2) or ?", text)
	}
	return d, nil
}

func parseDim(text string, depth int) (Dim, bool) {
	if text == unknownDim {
		return UnknownDim, true
	}
	if len(text) > maxDimText || depth > 8 {
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

// parseFactor reads a number, a name, or a quotient.
func parseFactor(text string, depth int) (Dim, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return Known(n), true
	}
	if inner, ok := strings.CutPrefix(text, "div("); ok && strings.HasSuffix(inner, ")") {
		parts := split(inner[:len(inner)-1], ",")
		if len(parts) != 2 {
			return UnknownDim, false
		}
		a, okA := parseDim(parts[0], depth+1)
		b, okB := parseDim(parts[1], depth+1)
		return a.Over(b), okA && okB
	}
	if strings.HasPrefix(text, `"`) {
		name, err := strconv.Unquote(text)
		return Symbol(name), err == nil && name != ""
	}
	return Symbol(text), isIdentifier(text)
}
