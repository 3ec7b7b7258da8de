package ir

import (
	"slices"
	"strings"
)

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
