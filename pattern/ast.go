package pattern

import (
	"slices"
	"strconv"
	"strings"
)

// An Expr is a pattern or a part of one: [Name], [Any], [Literal], [Call],
// [Bind], [Or] or [Rest]. Its String is the text that parses to it.
type Expr interface {
	String() string
	expr()
}

// Name stands for any variable, and for the same variable wherever it is
// repeated. Constants are the same when they are equal by their type's notion.
type Name string

// Any stands for any variable, "_" in text.
type Any struct{}

// Literal is a number: a constant that the vocabulary holds equal to it.
type Literal string

// Call is an op applied to arguments: "(op x y)". In a pattern it stands for a
// variable that such an apply computes, in a replacement it makes one. The op is
// a name, with parameters in braces where the vocabulary has such ops:
// "sum{axis=0}".
type Call struct {
	Op     string
	Args   []Expr
	Output int // which output; "(op x).1" is the second
	Pos    int // column in the text, counted in bytes from 1; 0 without text
}

// Bind matches a pattern and names the variable that it matched: "x@(exp y)".
type Bind struct {
	Name string
	Expr Expr
}

// Or matches the first alternative that fits: "(or (exp x) (expm1 x))". All
// alternatives bind the same names.
type Or []Expr

// Rest stands for the remaining inputs of an op, as the last of its arguments:
// "...rest" or "…rest". In a replacement it is spliced in where it stands. In a
// pattern its name may be empty.
type Rest string

// A Guard is a condition on what was matched: the name of a Go function, and the
// names whose variables it is given, those of a rest one after the other.
type Guard struct {
	Func string
	Args []string
	Not  bool // the function has to say no
	Pos  int  // column in the text, 0 without text
}

// A Pattern is an expression and the guards on what it matches:
// "(mul x y) && isZero(x)".
type Pattern struct {
	Expr   Expr
	Guards []Guard
}

// A Rule is a pattern and what replaces it: "(mul x 1) => x".
type Rule struct {
	In  Pattern
	Out Expr
}

func (Name) expr()    {}
func (Any) expr()     {}
func (Literal) expr() {}
func (*Call) expr()   {}
func (*Bind) expr()   {}
func (Or) expr()      {}
func (Rest) expr()    {}

func (n Name) String() string    { return string(n) }
func (Any) String() string       { return "_" }
func (l Literal) String() string { return string(l) }
func (c *Call) String() string   { return text(c) }
func (b *Bind) String() string   { return text(b) }
func (o Or) String() string      { return text(o) }
func (r Rest) String() string    { return "..." + string(r) }

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

// String returns the rule as text.
func (r Rule) String() string { return r.In.String() + " => " + text(r.Out) }

// Apply returns the expression of an op applied to arguments, for patterns that
// are built in Go.
func Apply(op string, args ...Expr) *Call { return &Call{Op: op, Args: args} }

// text writes an expression. Expressions nest as deep as their author wrote
// them, at most maxDepth.
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

// Float returns the number.
func (l Literal) Float() float64 {
	v, _ := strconv.ParseFloat(string(l), 64)
	return v
}

// Int returns the number if it is written as an integer.
func (l Literal) Int() (int64, bool) {
	v, err := strconv.ParseInt(string(l), 10, 64)
	return v, err == nil
}

// children returns the parts of an expression.
func children(e Expr) []Expr {
	switch e := e.(type) {
	case *Call:
		return e.Args
	case Or:
		return e
	case *Bind:
		return []Expr{e.Expr}
	}
	return nil
}

// walk calls f for every part of the expression, in the order of the text.
func walk(e Expr, f func(Expr)) {
	stack := []Expr{e}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		f(top)
		parts := children(top)
		for _, part := range slices.Backward(parts) {
			stack = append(stack, part)
		}
	}
}
