package ir

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

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
	// A sum that wraps around is on the wrong side of a.
	return n, (n > a) == (b > 0)
}

func times(a, b int64) (n int64, ok bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	n = a * b
	// The quotient alone does not see -1 times the least number, whose product wraps to itself.
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

// min returns the smaller number of both.
func (d Dim) min(e Dim) Dim { return extreme("min", d, e) }

// max returns the larger number of both.
func (d Dim) max(e Dim) Dim { return extreme("max", d, e) }

// extreme returns the minimum or maximum of both. In a minimum, an argument is left out if another one is
// known to be at most as large; in a maximum, if another one is known to be at least as large.
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
			return y.atMost(x)
		}
		return x.atMost(y)
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
	// min(a,b) and min(b,a) have to be one text, because dims are compared as texts.
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
	// min(a,b)+c is min(a+c,b+c), so an added number does not hide a minimum.
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
func nesting(text string) (most int) {
	scan(text, func(_, depth int) { most = max(most, depth) })
	return most
}
