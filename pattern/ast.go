package pattern

import (
	"fmt"
	"strconv"
	"strings"
)

// An Expr is an expression: [Name], [Any], [Literal], [Calc], [Call], [Bind], [Or], [Rest] or
// [Each]. String returns the text that parses to it.
type Expr interface {
	String() string
	expr()
}

// Name matches any variable. If it occurs again, it matches only the same variable, or a
// constant that is equal according to its type.
type Name string

// Any matches any variable, "_" in text.
type Any struct{}

// Literal is a number. It matches what the vocabulary considers equal. A type may follow it,
// "1:int64"; in a replacement also the name of a variable, whose type the number gets: "1:x".
type Literal string

// Calc is a number that a replacement computes: "{a*b - 1}". Its names are bound to variables whose
// value is a number that the vocabulary knows. If one is not, the rule does not match.
type Calc string

// Call is an op applied to arguments: "(op x y)". In a pattern it matches an output of such an
// apply, in a replacement it makes one. Op is the name, with what follows it in braces:
// parameters of the op, as in "sum{axis=0}", or the name to which a pattern binds them,
// "sum{a}". In a replacement, a function may compute the parameters: "sum{union(a, b)}".
type Call struct {
	Op     string
	Args   []Expr
	Output int // index of the output; "(op x).1" is the second
	Pos    int // column in the text, counted in bytes from 1, or 0
}

// Bind binds a name to the variable that an expression matches: "x@(exp y)".
type Bind struct {
	Name string
	Expr Expr
}

// Or matches the first alternative that does: "(or (exp x) (expm1 x))". All alternatives bind
// the same names.
type Or []Expr

// Rest matches the remaining inputs of an op, as its last argument: "...rest" or "…rest". Its
// name may be empty. In a replacement it is spliced into the arguments.
type Rest string

// Each is an argument of a replacement: an expression of each variable of a rest, whose
// name is in the expression: "...(abs xs)". The variables of several rests are taken in step.
type Each struct{ Expr Expr }

// A Guard is a condition on a match: the name of a Go function, and the names of its arguments.
// The name of a rest means all its variables.
type Guard struct {
	Func string
	Args []string
	Not  bool // the function must return false
	Pos  int  // column in the text, counted in bytes from 1, or 0
}

// A Pattern is an expression with guards: "(mul x y) && isZero(x)".
type Pattern struct {
	Expr   Expr
	Guards []Guard
}

// A Rewrite is a pattern and its replacement: "(mul x 1) => x". An equation is one in both
// directions: "(exp (add x y)) && float(x) <=> (mul (exp x) (exp y)) && float(x)".
type Rewrite struct {
	In       Pattern
	Out      Expr
	Equation bool    // Out is a pattern as well, and the expression of In its replacement
	Back     []Guard // of Out as the pattern of an equation
	Line     int     // where it begins in a file of rules, from 1, or 0
}

// A Rule is a named list of rewrites. The first that matches replaces an apply.
type Rule struct {
	Name   string
	Doc    string // a sentence
	Groups []string
	Tags   []string
	Cases  []Rewrite
	Go     string // in place of cases: why the rule is a Go function, which has its name
	File   string // that the rule was read from, or ""
	Line   int    // of the name in the text, from 1, or 0
}

// Locate returns an error with the name of the rule in front, and, if it was read from a file, the name
// of the file and the line.
func (r Rule) Locate(err error) error { return r.locate(r.Line, err) }

func (r Rule) locate(line int, err error) error {
	if r.File == "" {
		return fmt.Errorf("rule %s: %w", r.Name, err)
	}
	return fmt.Errorf("%s:%d: rule %s: %w", r.File, line, r.Name, err)
}

func (Name) expr()    {}
func (Any) expr()     {}
func (Literal) expr() {}
func (Calc) expr()    {}
func (*Call) expr()   {}
func (*Bind) expr()   {}
func (Or) expr()      {}
func (Rest) expr()    {}
func (Each) expr()    {}

// String returns the name.
func (n Name) String() string { return string(n) }

// String returns "_".
func (Any) String() string { return "_" }

// String returns the number as it was written.
func (l Literal) String() string { return string(l) }

// String returns the formula in braces.
func (c Calc) String() string { return "{" + string(c) + "}" }

// String returns the call as text.
func (c *Call) String() string { return text(c) }

// String returns the name and the expression as text.
func (b *Bind) String() string { return text(b) }

// String returns the alternatives as text.
func (o Or) String() string { return text(o) }

// String returns the name after "...".
func (r Rest) String() string { return "..." + string(r) }

// String returns the expression as text after "...".
func (e Each) String() string { return "..." + text(e.Expr) }

// String returns the guard as text.
func (g Guard) String() string {
	not := ""
	if g.Not {
		not = "!"
	}
	return not + g.Func + "(" + strings.Join(g.Args, ", ") + ")"
}

// String returns the pattern as text.
func (p Pattern) String() string {
	s := text(p.Expr)
	for _, g := range p.Guards {
		s += " && " + g.String()
	}
	return s
}

// String returns the rewrite as text.
func (r Rewrite) String() string {
	if r.Equation {
		return r.In.String() + " <=> " + Pattern{r.Out, r.Back}.String()
	}
	return r.In.String() + " => " + text(r.Out)
}

// String returns the rule as it is written in a file, see [ParseRules]. A rule without a name
// prints as its cases.
func (r Rule) String() string {
	var b strings.Builder
	if r.Doc != "" {
		b.WriteString("# " + strings.ReplaceAll(r.Doc, "\n", "\n# ") + "\n")
	}
	indent := ""
	if r.Name != "" {
		b.WriteString(r.Name + ":")
		for _, g := range r.Groups {
			b.WriteString(" " + g)
		}
		if len(r.Tags) > 0 {
			b.WriteString("; " + strings.Join(r.Tags, " "))
		}
		b.WriteString("\n")
		indent = "    "
	}
	for _, c := range r.Cases {
		b.WriteString(indent + c.String() + "\n")
	}
	if r.Go != "" {
		b.WriteString(indent + goPrefix + " " + r.Go + "\n")
	}
	return b.String()
}

// NewCall returns an op applied to arguments, for patterns that are built in Go.
func NewCall(op string, args ...Expr) *Call { return &Call{Op: op, Args: args} }

// text returns an expression as text. Parsed expressions nest at most maxDepth deep.
func text(e Expr) string {
	var b strings.Builder
	write(&b, e)
	return b.String()
}

func write(b *strings.Builder, e Expr) {
	list := func(head string, args []Expr) {
		b.WriteString("(" + head)
		for _, a := range args {
			b.WriteByte(' ')
			write(b, a)
		}
		b.WriteByte(')')
	}
	switch e := e.(type) {
	case nil:
		b.WriteString("<nil>")
	case *Call:
		list(e.Op, e.Args)
		if e.Output != 0 {
			b.WriteString("." + strconv.Itoa(e.Output))
		}
	case Or:
		list("or", e)
	case *Bind:
		b.WriteString(e.Name + "@")
		write(b, e.Expr)
	default:
		b.WriteString(e.String())
	}
}

// Float returns the number as a float.
func (l Literal) Float() float64 {
	v, _ := strconv.ParseFloat(l.number(), 64)
	return v
}

// Int returns the number and true if it is written as an integer.
func (l Literal) Int() (int64, bool) {
	v, err := strconv.ParseInt(l.number(), 10, 64)
	return v, err == nil
}

// Type returns the type that follows the number, or "".
func (l Literal) Type() string {
	_, t, _ := strings.Cut(string(l), ":")
	return t
}

func (l Literal) number() string {
	n, _, _ := strings.Cut(string(l), ":")
	return n
}

// Walk calls f for every part of the expression, in the order of the text.
func Walk(e Expr, f func(Expr)) {
	f(e)
	switch e := e.(type) {
	case *Call:
		for _, arg := range e.Args {
			Walk(arg, f)
		}
	case Or:
		for _, alt := range e {
			Walk(alt, f)
		}
	case *Bind:
		Walk(e.Expr, f)
	case Each:
		Walk(e.Expr, f)
	}
}
