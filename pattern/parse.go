package pattern

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nnopt/nnopt/internal/fileio"
)

// ErrSyntax means that [Parse], [ParseExpr] or [ParseRewrite] can't read a text.
var ErrSyntax = errors.New("bad pattern")

// Bounds on patterns, so that no text can exhaust the stack. The largest pattern in Theano has
// 20 parts and a depth of 5.
const (
	maxDepth = 100
	maxParts = 10000
)

// Parse reads a pattern with its guards: "(mul x y) && isZero(x) && !isOne(y)". Errors wrap
// [ErrSyntax] and give the column, counted in bytes from 1.
func Parse(text string) (Pattern, error) { return parse(text, (*parser).pattern) }

// ParseExpr reads an expression: a pattern without guards, or a replacement.
func ParseExpr(text string) (Expr, error) {
	return parse(text, func(p *parser) (Expr, error) { return p.expr(0) })
}

// ParseRewrite reads a pattern and its replacement, "(mul x 1) => x", or an equation, whose
// replacement is a pattern, too: "(exp (neg x)) <=> (inv (exp x))".
func ParseRewrite(text string) (Rewrite, error) {
	return parse(text, func(p *parser) (Rewrite, error) {
		in, err := p.pattern()
		if err != nil {
			return Rewrite{}, err
		}
		if p.take("<=>") {
			out, err := p.pattern()
			return Rewrite{In: in, Out: out.Expr, Equation: true, Back: out.Guards}, err
		}
		if !p.take("=>") {
			return Rewrite{}, p.fault(p.at, "\"=>\" and a replacement are missing")
		}
		out, err := p.expr(0)
		return Rewrite{In: in, Out: out}, err
	})
}

// parse reads a whole text by means of read.
func parse[T any](text string, read func(*parser) (T, error)) (T, error) {
	p := parser{text: text}
	tree, err := read(&p)
	if err == nil {
		err = p.end()
	}
	if err != nil {
		var none T
		return none, err
	}
	return tree, nil
}

type parser struct {
	text  string
	at    int
	parts int
}

func (p *parser) fault(at int, format string, args ...any) error {
	return fmt.Errorf("%w %q: column %d: %s", ErrSyntax, fileio.Excerpt(p.text, at), at+1, fmt.Sprintf(format, fileio.Excerpts(args)...))
}

func (p *parser) pattern() (Pattern, error) {
	e, err := p.expr(0)
	if err != nil {
		return Pattern{}, err
	}
	pat := Pattern{Expr: e}
	for p.take("&&") {
		g, err := p.guard()
		if err != nil {
			return Pattern{}, err
		}
		pat.Guards = append(pat.Guards, g)
	}
	return pat, nil
}

// guard reads "name(x, y)" or "!name(x, y)".
func (p *parser) guard() (Guard, error) {
	g := Guard{Not: p.take("!")}
	p.space()
	g.Pos = p.at + 1
	if g.Func = p.name(); g.Func == "" {
		return g, p.fault(p.at, "the name of a guard is missing")
	}
	if !p.take("(") {
		return g, p.fault(p.at, "\"(\" is missing after the guard %s", g.Func)
	}
	for !p.take(")") {
		if len(g.Args) > 0 && !p.take(",") {
			return g, p.fault(p.at, "\",\" or \")\" is missing in the guard %s", g.Func)
		}
		p.space()
		at := p.at
		name := p.name()
		if name == "" || name == "_" {
			return g, p.fault(at, "the arguments of a guard are names")
		}
		g.Args = append(g.Args, name)
	}
	return g, nil
}

func (p *parser) expr(depth int) (Expr, error) {
	p.space()
	// Everything that looks at the expression later recurses as deep as it is. Refusing it here is
	// the only place that bounds untrusted input.
	if p.parts++; p.parts > maxParts || depth > maxDepth {
		return nil, p.fault(p.at, "the pattern is too large")
	}
	start := p.at
	switch {
	case p.at == len(p.text):
		return nil, p.fault(p.at, "an expression is missing")
	case p.text[p.at] == '(':
		return p.list(depth)
	case p.text[p.at] == '{':
		return p.calc()
	case p.take("...") || p.take("…"):
		if p.at < len(p.text) && p.text[p.at] == '(' {
			e, err := p.list(depth + 1)
			return Each{e}, err
		}
		return Rest(p.name()), nil
	}
	var e Expr
	var err error
	if name := p.name(); name != "" {
		e, err = p.named(name, start, depth)
	} else {
		e, err = p.literal()
	}
	if err == nil && p.at < len(p.text) && strings.IndexByte(" \t\r\n()&=<", p.text[p.at]) < 0 {
		return nil, p.fault(p.at, "unexpected %q after %s", p.text[p.at:], e)
	}
	return e, err
}

// named reads what follows a name, to which it may be bound.
func (p *parser) named(name string, start, depth int) (Expr, error) {
	if p.at == len(p.text) || p.text[p.at] != '@' {
		switch name {
		case "_":
			return Any{}, nil
		case "nan":
			return Literal(name), nil
		}
		return Name(name), nil
	}
	if name == "_" {
		return nil, p.fault(start, "\"_\" names nothing, it can't be bound")
	}
	p.at++
	e, err := p.expr(depth + 1)
	if err != nil {
		return nil, err
	}
	switch e.(type) {
	case *Call, Or, Literal:
		return &Bind{name, e}, nil
	}
	return nil, p.fault(start, "%s@ is followed by %s, not by an op, an alternative or a number", name, e)
}

// list reads "(op args...)", followed by ".n" for output n, or "(or alternatives...)".
func (p *parser) list(depth int) (Expr, error) {
	open := p.at
	p.at++
	p.space()
	op := p.op()
	if op == "" {
		return nil, p.fault(p.at, "the name of an op is missing after \"(\"")
	}
	var args []Expr
	for !p.take(")") {
		if p.at == len(p.text) {
			return nil, p.fault(open, "\"(\" is never closed")
		}
		e, err := p.expr(depth + 1)
		if err != nil {
			return nil, err
		}
		args = append(args, e)
	}
	if op == "or" {
		if len(args) == 0 {
			return nil, p.fault(open, "\"or\" without alternatives")
		}
		return Or(args), nil
	}
	output, err := p.output()
	return &Call{Op: op, Args: args, Output: output, Pos: open + 1}, err
}

func (p *parser) output() (int, error) {
	start := p.at
	if p.at == len(p.text) || p.text[p.at] != '.' || strings.HasPrefix(p.text[p.at:], "...") {
		return 0, nil
	}
	p.at++
	from := p.at
	for p.at < len(p.text) && isDigit(p.text[p.at]) {
		p.at++
	}
	n, err := strconv.ParseUint(p.text[from:p.at], 10, 16)
	if err != nil {
		return 0, p.fault(start, "the number of an output is missing after \".\"")
	}
	return int(n), nil
}

func (p *parser) literal() (Expr, error) {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.0123456789eEinf", p.text[p.at]) >= 0 {
		p.at++
	}
	word := p.text[start:p.at]
	if word == "" {
		r, size := utf8.DecodeRuneInString(p.text[start:])
		p.at += size
		return nil, p.fault(start, "unexpected %q", r)
	}
	if _, err := strconv.ParseFloat(word, 64); err != nil {
		return nil, p.fault(start, "%q is not a number", word)
	}
	if p.at < len(p.text) && p.text[p.at] == ':' {
		p.at++
		typ := p.name()
		if typ == "" {
			return nil, p.fault(p.at, "the type of %s is missing after \":\"", word)
		}
		word += ":" + typ
	}
	return Literal(word), nil
}

// calc reads a formula in braces.
func (p *parser) calc() (Expr, error) {
	start := p.at
	end := strings.IndexByte(p.text[start:], '}')
	if end < 0 {
		return nil, p.fault(start, "\"{\" is never closed")
	}
	formula := p.text[start+1 : start+end]
	if _, err := parseFormula(formula); err != nil {
		return nil, p.fault(start, "%v", err)
	}
	p.at = start + end + 1
	return Calc(strings.Join(strings.Fields(formula), " ")), nil
}

// op reads the name of an op: letters, digits, "_", "." and "-", and anything in balanced
// braces.
func (p *parser) op() string {
	start := p.at
	depth := 0
	for ; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == '{' && p.at > start:
			depth++
		case c == '}' && depth > 0:
			depth--
		case depth > 0:
		case isLetter(c), isDigit(c), p.at > start && (c == '.' || c == '-'):
		default:
			if depth > 0 {
				p.at = start
			}
			return p.text[start:p.at]
		}
	}
	if depth > 0 {
		p.at = start
	}
	return p.text[start:p.at]
}

// name reads an identifier, or returns "".
func (p *parser) name() string {
	start := p.at
	for p.at < len(p.text) && (isLetter(p.text[p.at]) || p.at > start && isDigit(p.text[p.at])) {
		p.at++
	}
	return p.text[start:p.at]
}

// take skips spaces and then s, and reports whether s was there.
func (p *parser) take(s string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

func (p *parser) end() error {
	if p.space(); p.at < len(p.text) {
		return p.fault(p.at, "unexpected %q", p.text[p.at:])
	}
	return nil
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
