package ir

import (
	"cmp"
	"math"
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

// AtMost reports whether d is known to be at most e.
func (d Dim) AtMost(e Dim) bool { return d.atMost(e, 0) }

func (d Dim) atMost(e Dim, depth int) bool {
	switch {
	case d.IsUnknown() || e.IsUnknown() || depth > maxCompared:
		return false
	case d.expr == "" && e.expr == "":
		return d.n <= e.n
	case d == e:
		return true
	}
	if low, _ := e.Minus(d).bounds(0); low >= 0 {
		return true
	}
	below := func(x Dim) bool { return x.atMost(e, depth+1) }
	above := func(x Dim) bool { return d.atMost(x, depth+1) }
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

// A term is a product of symbols, quotients, minima and maxima, sorted and with asterisks between
// them, and a number. The product of none is "".
type term struct {
	product string
	degree  int // how many there are in the product
	factor  int64
}

// compareProducts is the order of a sum: by falling degree, then by text, so that the number is last.
func compareProducts(a, b term) int {
	return cmp.Or(b.degree-a.degree, strings.Compare(a.product, b.product))
}

// terms returns the sum that a dim is, in order. It has to be known.
func (d Dim) terms() []term {
	if d.expr == "" {
		if d.n == 0 {
			return nil
		}
		return []term{{factor: d.n}}
	}
	var list []term
	for _, text := range splitTerms(d.expr) {
		t := term{factor: 1}
		if sign := text[0]; sign == '+' || sign == '-' {
			if text = text[1:]; sign == '-' {
				t.factor = -1
			}
		}
		digits := 0
		for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
			digits++
		}
		if digits > 0 {
			n, _ := strconv.ParseInt(text[:digits], 10, 64) // it was printed by us
			t.factor *= n
			text = strings.TrimPrefix(text[digits:], "*")
		}
		if t.product = text; text != "" {
			t.degree = len(split(text, "*"))
		}
		list = append(list, t)
	}
	return list
}

// dimOf returns the sum of terms that are in order, each product once.
func dimOf(list []term) Dim {
	switch {
	case len(list) == 0:
		return Known(0)
	case len(list) == 1 && list[0].product == "":
		return Known(list[0].factor)
	case len(list) > maxTerms:
		return UnknownDim
	case len(list) == 1 && list[0].factor == 1:
		return Dim{expr: list[0].product}
	}
	text := make([]byte, 0, 32)
	for i, t := range list {
		if t.factor == math.MinInt64 { // whose absolute value is no number
			return UnknownDim
		}
		if t.factor >= 0 && i > 0 {
			text = append(text, '+')
		}
		switch {
		case t.product == "":
			text = strconv.AppendInt(text, t.factor, 10)
			continue
		case t.factor == -1:
			text = append(text, '-')
		case t.factor != 1:
			text = append(strconv.AppendInt(text, t.factor, 10), '*')
		}
		text = append(text, t.product...)
	}
	if len(text) > maxDimText {
		return UnknownDim
	}
	return Dim{expr: string(text)}
}

// sum brings terms in order and adds those of one product. It takes the list. ok is false if a number
// overflows.
func sum(list []term) (sorted []term, ok bool) {
	slices.SortFunc(list, compareProducts)
	sorted = list[:0]
	for _, t := range list {
		if last := len(sorted) - 1; last >= 0 && sorted[last].product == t.product {
			if sorted[last].factor, ok = add(sorted[last].factor, t.factor); !ok {
				return nil, false
			}
			continue
		}
		sorted = append(sorted, t)
	}
	return slices.DeleteFunc(sorted, func(t term) bool { return t.factor == 0 }), true
}

func add(a, b int64) (n int64, ok bool) {
	n = a + b
	return n, (n > a) == (b > 0)
}

func times(a, b int64) (n int64, ok bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	n = a * b
	return n, n/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
}

func checked(n int64, ok bool) Dim {
	if !ok {
		return UnknownDim
	}
	return Known(n)
}

func sumOf(list []term) Dim {
	sorted, ok := sum(list)
	if !ok {
		return UnknownDim
	}
	return dimOf(sorted)
}

// Plus returns the sum.
func (d Dim) Plus(e Dim) Dim {
	switch {
	case d.IsUnknown() || e.IsUnknown():
		return UnknownDim
	case d.expr == "" && e.expr == "":
		return checked(add(d.n, e.n))
	case d.Is(0):
		return e
	case e.Is(0):
		return d
	}
	return sumOf(append(d.terms(), e.terms()...))
}

// Minus returns the difference.
func (d Dim) Minus(e Dim) Dim {
	if d.Same(e) {
		return Known(0)
	}
	return d.Plus(e.Times(Known(-1)))
}

// Times returns the product.
func (d Dim) Times(e Dim) Dim {
	switch {
	case d.Is(0) || e.Is(0):
		return Known(0)
	case d.IsUnknown() || e.IsUnknown():
		return UnknownDim
	case d.expr == "" && e.expr == "":
		return checked(times(d.n, e.n))
	case d.Is(1):
		return e
	case e.Is(1):
		return d
	}
	a, b := d.terms(), e.terms()
	if len(a)*len(b) > maxTerms*maxTerms/2 {
		return UnknownDim
	}
	list := make([]term, 0, len(a)*len(b))
	for _, t := range a {
		for _, u := range b {
			f, ok := times(t.factor, u.factor)
			if !ok {
				return UnknownDim
			}
			list = append(list, term{multiply(t.product, u.product), t.degree + u.degree, f})
		}
	}
	return sumOf(list)
}

// multiply returns the product of two products.
func multiply(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	atoms := append(split(a, "*"), split(b, "*")...)
	slices.Sort(atoms)
	return strings.Join(atoms, "*")
}

// Over returns the quotient, rounded down: div(n+1,2) unless it is without rest for any number that a
// symbol may be.
func (d Dim) Over(e Dim) Dim {
	if d.IsUnknown() || e.IsUnknown() || e.Is(0) {
		return UnknownDim
	}
	if q, ok := d.Exactly(e); ok {
		return q
	}
	c, isNumber := e.Number()
	switch {
	case !isNumber:
		return call("div", d, e)
	case c == math.MinInt64:
		return UnknownDim
	case c < 0:
		return d.Times(Known(-1)).Over(Known(-c))
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
	for i, t := range rest {
		rest[i].factor = floorDiv(t.factor, divisor)
	}
	rest = slices.DeleteFunc(rest, func(t term) bool { return t.factor == 0 })
	if len(rest) == 0 { // but for a number less than c
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
				if inner >= 0 {
					inner = -1
					break
				}
				inner, a, b = i, parts[0], n
			}
		}
	}
	if n, ok := times(b, c); inner >= 0 && ok {
		others := slices.Delete(slices.Clone(list), inner, inner+1)
		return a.Plus(dimOf(others).Times(Known(b))).Over(Known(n))
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

// Exactly returns the quotient if there is no rest, whatever symbols are. It is not the quotient where
// e is 0.
func (d Dim) Exactly(e Dim) (Dim, bool) {
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

// Min returns the smaller number of both.
func (d Dim) Min(e Dim) Dim { return extreme("min", d, e) }

// Max returns the larger number of both.
func (d Dim) Max(e Dim) Dim { return extreme("max", d, e) }

// extreme returns the minimum or maximum without those that another one is known to be beyond.
func extreme(kind string, d, e Dim) Dim {
	if d.IsUnknown() || e.IsUnknown() {
		return UnknownDim
	}
	if d.expr == "" && e.expr == "" {
		if (kind == "min") == (d.n < e.n) {
			return d
		}
		return e
	}
	list := append(flattened(kind, d), flattened(kind, e)...)
	beyond := func(x, y Dim) bool {
		if kind == "min" {
			return y.AtMost(x)
		}
		return x.AtMost(y)
	}
	var kept []Dim
	for _, x := range list {
		if slices.ContainsFunc(kept, func(y Dim) bool { return beyond(x, y) }) {
			continue
		}
		kept = append(slices.DeleteFunc(kept, func(y Dim) bool { return beyond(y, x) }), x)
	}
	if len(kept) == 1 {
		return kept[0]
	}
	if len(kept) > maxArguments {
		return UnknownDim
	}
	slices.SortFunc(kept, func(x, y Dim) int { return strings.Compare(x.String(), y.String()) })
	return call(kind, kept...)
}

// flattened returns what d is the minimum or maximum of.
func flattened(kind string, d Dim) []Dim {
	if list, ok := d.arguments(kind); ok {
		return list
	}
	return []Dim{d}
}

// arguments returns what d is the minimum or maximum of, also if a number was added to it.
func (d Dim) arguments(kind string) ([]Dim, bool) {
	if !strings.Contains(d.expr, kind) {
		return nil, false
	}
	list := d.terms()
	if len(list) > 2 || list[0].factor != 1 || len(list) == 2 && list[1].product != "" {
		return nil, false
	}
	args, ok := argumentsOf(list[0].product, kind)
	if ok && len(list) == 2 {
		for i := range args {
			if args[i] = args[i].Plus(Known(list[1].factor)); args[i].IsUnknown() {
				return nil, false
			}
		}
	}
	return args, ok
}

// call returns the expression of a function.
func call(function string, arguments ...Dim) Dim {
	var b strings.Builder
	b.WriteString(function)
	b.WriteByte('(')
	b.WriteString(joinDims(arguments))
	b.WriteByte(')')
	text := b.String()
	if len(text) > maxDimText || nesting(text) > maxNesting {
		return UnknownDim
	}
	return Dim{expr: text}
}

// argumentsOf returns those of an expression of a function.
func argumentsOf(text, function string) ([]Dim, bool) {
	if len(text) < len(function)+2 || text[len(function)] != '(' || text[:len(function)] != function {
		return nil, false
	}
	inner := text[len(function)+1 : len(text)-1]
	// A product of two functions ends with a parenthesis, too.
	if len(split(text, "*")) > 1 {
		return nil, false
	}
	return trustedDims(inner), true
}

// nesting returns how deep parentheses are in parentheses.
func nesting(text string) int {
	depth, most, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
			most = max(most, depth)
		case c == ')':
			depth--
		}
	}
	return most
}
