package pattern

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A formula is the content of a [Calc]: sums, products and powers of numbers and names, with
// parentheses.
type formula struct {
	op    byte // '+', '-', '*', '/', '^' (for "**"), '~' (negation), 'n' (number), 'x' (name)
	value float64
	name  int // index in the names of the whole
	args  []*formula
}

// A calculation is what a [Calc] computes.
type calculation struct {
	root  *formula
	names []string
	pow   func(x, y float64) float64
}

// calculation parses the formula. pow computes its powers; if it is nil,
// exponents must be whole numbers up to 64.
func (c Calc) calculation(pow func(x, y float64) float64) (*calculation, error) {
	f, err := parseFormula(string(c))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	f.pow = pow
	return f, nil
}

// wholePower computes powers with small whole exponents. Those of package math do not have the same
// bits on every processor.
func wholePower(x, y float64) (float64, bool) {
	const most = 64
	if y != math.Trunc(y) || math.Abs(y) > most {
		return 0, false
	}
	z := 1.0
	for range int(math.Abs(y)) {
		z *= x
	}
	if y < 0 {
		z = 1 / z
	}
	return z, true
}

// parseFormula reads a formula. It nests at most maxDepth deep.
func parseFormula(text string) (*calculation, error) {
	p := formulaParser{text: text}
	root, err := p.sum(0)
	if err == nil && p.peek() != 0 {
		err = p.fault("unexpected %q", p.text[p.at:])
	}
	return &calculation{root: root, names: p.names}, err
}

type formulaParser struct {
	text  string
	at    int
	names []string
}

func (p *formulaParser) fault(format string, args ...any) error {
	return fmt.Errorf("formula {%s}: %s", p.text, fmt.Sprintf(format, args...))
}

// peek skips spaces and returns the next byte, or 0 at the end.
func (p *formulaParser) peek() byte {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *formulaParser) sum(depth int) (*formula, error) {
	return p.chain(depth, "+-", (*formulaParser).product)
}

func (p *formulaParser) product(depth int) (*formula, error) {
	return p.chain(depth, "*/", (*formulaParser).power)
}

// chain reads operands between left-associative operators.
func (p *formulaParser) chain(depth int, operators string, operand func(*formulaParser, int) (*formula, error)) (*formula, error) {
	f, err := operand(p, depth)
	for length := 0; err == nil; length++ {
		op := p.peek()
		if op == 0 || strings.IndexByte(operators, op) < 0 {
			break
		}
		// A chain makes a tree as deep as it is long: evaluating it recurses as deep.
		if length > maxDepth {
			return nil, p.fault("it is too long")
		}
		p.at++
		var g *formula
		g, err = operand(p, depth+1)
		f = &formula{op: op, args: []*formula{f, g}}
	}
	return f, err
}

func (p *formulaParser) power(depth int) (*formula, error) {
	if depth > maxDepth {
		return nil, p.fault("it is too deep")
	}
	if p.peek() == '-' {
		p.at++
		f, err := p.power(depth + 1)
		return &formula{op: '~', args: []*formula{f}}, err
	}
	f, err := p.atom(depth)
	if err != nil || p.peek() != '*' || !strings.HasPrefix(p.text[p.at:], "**") {
		return f, err
	}
	p.at += 2
	g, err := p.power(depth + 1)
	return &formula{op: '^', args: []*formula{f, g}}, err
}

func (p *formulaParser) atom(depth int) (*formula, error) {
	c := p.peek()
	start := p.at
	switch {
	case c == '(':
		p.at++
		f, err := p.sum(depth + 1)
		if err == nil && p.peek() != ')' {
			err = p.fault("\")\" is missing")
		}
		p.at++
		return f, err
	case isLetter(c):
		for p.at < len(p.text) && (isLetter(p.text[p.at]) || isDigit(p.text[p.at])) {
			p.at++
		}
		return &formula{op: 'x', name: place(&p.names, p.text[start:p.at])}, nil
	}
	for p.at < len(p.text) && (isDigit(p.text[p.at]) || p.text[p.at] == '.') {
		p.at++
	}
	v, err := strconv.ParseFloat(p.text[start:p.at], 64)
	if err != nil {
		return nil, p.fault("a number, a name or \"(\" is missing at %q", p.text[start:])
	}
	return &formula{op: 'n', value: v}, nil
}

// eval computes a part of the formula from the values of its names, which are given by number. It reports
// false if one is unknown.
func (f *calculation) eval(part *formula, of func(name int) (float64, bool)) (float64, bool) {
	switch part.op {
	case 'n':
		return part.value, true
	case 'x':
		return of(part.name)
	}
	var v [2]float64
	for i, a := range part.args {
		var ok bool
		if v[i], ok = f.eval(a, of); !ok {
			return 0, false
		}
	}
	switch part.op {
	case '+':
		return v[0] + v[1], true
	case '-':
		return v[0] - v[1], true
	case '*':
		return v[0] * v[1], true
	case '/':
		return v[0] / v[1], true
	case '^':
		if f.pow != nil {
			return f.pow(v[0], v[1]), true
		}
		return wholePower(v[0], v[1])
	}
	return -v[0], true
}
