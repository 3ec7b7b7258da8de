package ir

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/lists"
)

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
