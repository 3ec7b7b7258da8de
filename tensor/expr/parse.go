package expr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

type parser struct {
	scope  *Scope
	tokens []token
	next   int
	at     int // position of the operator or function that is being applied
	depth  int
	shared map[string]value // expressions that "*1 ->" has numbered
}

// deepest bounds the nesting of brackets.
const deepest = 500

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != tokenEnd {
		p.next++
	}
	return t
}

func (p *parser) fail(format string, args ...any) {
	panic(&SyntaxError{p.peek().pos + 1, fmt.Sprintf(format, fileio.Excerpts(args)...), nil})
}

func (p *parser) sign(text string) bool {
	if t := p.peek(); t.kind == tokenSign && t.text == text {
		p.next++
		return true
	}
	return false
}

func (p *parser) expect(text string) {
	if !p.sign(text) {
		p.fail("%q expected, not %s", text, p.peek())
	}
}

// binary lists the operators with their priority. All associate to the left.
var binary = map[string]struct {
	priority int
	op       array.Opcode
}{
	"<": {1, array.Lt}, ">": {1, array.Gt}, "<=": {1, array.Le}, ">=": {1, array.Ge}, "==": {1, array.Eq}, "!=": {1, array.Neq},
	"|": {2, array.Or}, "^": {3, array.Xor}, "&": {4, array.And},
	"+": {5, array.Add}, "-": {5, array.Sub}, "*": {6, array.Mul}, "/": {6, array.TrueDiv}, "//": {6, array.IntDiv}, "%": {6, array.Mod},
	"@": {6, matrixProduct},
}

// matrixProduct is the op of @, which is no element-wise operation.
const matrixProduct = array.NumOpcodes

// unaryPriority is the priority of -x and ~x, which bind less tightly than x**2.
const unaryPriority = 7

// expression reads operands and operators of at least the given priority.
func (p *parser) expression(priority int) value {
	if p.depth++; p.depth > deepest {
		p.fail("nested more than %d deep", deepest)
	}
	defer func() { p.depth-- }()
	left := p.unary()
	compared := false
	for {
		t := p.peek()
		b, ok := binary[t.text]
		if t.kind != tokenSign || !ok || b.priority < priority || b.priority == 0 {
			return left
		}
		if b.priority == 1 {
			if compared { // in Python x < y < z is "x < y and y < z", which tensors do not have
				p.fail("comparisons of tensors can't be chained; write (x < y) & (y < z)")
			}
			compared = true
		}
		p.next++
		// One higher, so that operators of one priority associate to the left.
		right := p.expression(b.priority + 1)
		// What is applied now may fail, and that is reported at the operator, and not where reading has got to.
		p.at = t.pos
		if b.op == matrixProduct {
			left = p.mark(tensorValue(mathematics["matmul"](&call{name: "matmul", args: []value{left, right}})))
			continue
		}
		left = p.apply(b.op, left, right)
	}
}

// mark notes the position in the text in all new applies of a value, so that errors at run time can
// report it.
func (p *parser) mark(x value) value {
	todo := []*fgraph.Variable{x.v}
	switch {
	case x.several:
		todo = todo[:0]
		for _, y := range x.list {
			todo = append(todo, y.v)
		}
	case x.kind != kindTensor:
		return x
	}
	for len(todo) > 0 {
		a := todo[len(todo)-1].Owner()
		todo = todo[:len(todo)-1]
		// What has a position already was made for another part of the text, with all below it.
		if a != nil && a.Origin() < 0 {
			a.SetOrigin(p.at + 1)
			todo = append(todo, a.Inputs()...)
		}
	}
	return x
}

func (p *parser) unary() value {
	t := p.peek()
	switch {
	case p.sign("+"):
		return p.expression(unaryPriority)
	case p.sign("-"):
		x := p.expression(unaryPriority)
		p.at = t.pos
		// It remains a number, whose type depends on what it meets. Its computation is what it is if it meets
		// nothing.
		if x.kind == kindNumber {
			x.num = x.num.negated()
			if x.v != nil {
				x.v = p.mark(tensorValue(tensor.Map(array.Neg, x.v))).v
			}
			return x
		}
		return p.apply(array.Neg, x)
	case p.sign("~"):
		x := p.expression(unaryPriority)
		p.at = t.pos
		return p.apply(array.Invert, x)
	}
	base := p.postfix(p.atom())
	if t := p.peek(); p.sign("**") {
		exponent := p.expression(unaryPriority) // x**-y**2 is x**(-(y**2))
		p.at = t.pos
		return p.apply(array.Pow, base, exponent)
	}
	return base
}

// apply applies an element-wise operation. Of two numbers the result is a number again, which takes
// the type of what it is combined with: x*(1/2) is x*0.5.
func (p *parser) apply(op array.Opcode, args ...value) value {
	if len(args) == 2 && args[0].kind == kindNumber && args[1].kind == kindNumber {
		n, exact := folded(op, args[0].num, args[1].num)
		if !exact { // too large for an integer
			args = []value{args[0].float(), args[1].float()}
		}
		x := p.mark(tensorValue(mapValues(op, args)))
		if n != nil {
			x.kind, x.num = kindNumber, *n
		}
		return x
	}
	for i, x := range args {
		if x.kind == kindList {
			args[i] = tensorValue(x.tensor(op.String()))
		}
	}
	return p.mark(tensorValue(mapValues(logical(op, args), args)))
}

// atom reads a number, a name, a call, a list, or an expression in brackets.
func (p *parser) atom() value {
	t := p.take()
	switch t.kind {
	case tokenNumber:
		n, ok := parseNumber(t.text)
		if !ok {
			p.next--
			p.fail("%q is not a number", t.text)
		}
		return value{kind: kindNumber, num: n}
	case tokenString:
		return value{kind: kindName, text: t.text}
	case tokenName:
		return p.name(t)
	case tokenSign:
		switch t.text {
		case "(":
			return p.brackets()
		case "[":
			return value{kind: kindList, list: p.list("]")}
		case "...":
			return value{kind: kindEllipsis}
		case "*":
			return p.reference()
		}
	}
	if t.kind != tokenEnd {
		p.next--
	}
	p.fail("an expression is expected, not %s", p.peek())
	return value{}
}

// brackets reads an expression in round brackets, or a tuple.
func (p *parser) brackets() value {
	if p.sign(")") {
		return value{kind: kindList, tuple: true}
	}
	x := p.expression(0)
	if p.sign(")") {
		return x
	}
	if !p.sign(",") {
		p.expect(")")
	}
	return value{kind: kindList, tuple: true, list: append([]value{x}, p.list(")")...)}
}

// list reads expressions up to a closing bracket.
func (p *parser) list(end string) []value {
	list := []value{}
	for !p.sign(end) {
		list = append(list, p.expression(0))
		if !p.sign(",") {
			p.expect(end)
			break
		}
	}
	return list
}

// reference reads "*1 -> expression", which numbers the expression, or "*1", which refers to it.
func (p *parser) reference() value {
	t := p.take()
	if t.kind != tokenNumber {
		p.next--
		p.fail("a number is expected after *, not %s", t)
	}
	if p.sign("->") {
		x := p.postfix(p.atom())
		p.shared[t.text] = x
		return x
	}
	x, ok := p.shared[t.text]
	if !ok {
		p.next--
		p.fail("nothing is numbered %s", t.text)
	}
	return p.postfix(x)
}

// modules are prefixes of functions, as in T.exp(x) or T.nnet.sigmoid(x). They are skipped.
var modules = map[string]bool{"theano": true, "pytensor": true, "tensor": true, "T": true, "tt": true, "at": true, "pt": true, "nnet": true, "np": true, "linalg": true, "nlinalg": true, "slinalg": true, "math": true, "special": true}

// keywords are words of Python that can't be used, with what to write instead.
var keywords = map[string]string{
	"and": "use & and brackets: (x > 0) & (y > 0)", "or": "use | and brackets: (x > 0) | (y > 0)", "not": "use ~: ~(x > 0)",
	"if": "use switch(condition, x, y)", "else": "use switch(condition, x, y)", "is": "use ==", "in": "use ==", "lambda": "write the expression alone", "for": "write the expression for whole tensors",
}

// name reads a variable, a constant of the language, or a call.
func (p *parser) name(t token) value {
	// Variables come first, so that one may be called T, or like a function.
	if v := p.scope.byName[t.text]; v != nil {
		return tensorValue(v)
	}
	// "and(p, q)" is how a graph prints the op.
	if hint, ok := keywords[t.text]; ok && !(p.scope.lang.isOp(t.text) && p.peek().text == "(") {
		p.next--
		p.fail("%s does not work on tensors; %s", t.text, hint)
	}
	if modules[t.text] && p.sign(".") {
		f := p.take()
		if f.kind != tokenName {
			p.next--
			p.fail("a name is expected after the dot")
		}
		return p.name(f)
	}
	switch t.text {
	case "None":
		return value{kind: kindNone}
	case "True", "False":
		n := number{dtype: array.Bool}
		if t.text == "True" {
			n.i, n.f = 1, 1
		}
		return value{kind: kindNumber, num: n}
	case "nan", "inf":
		f, _ := strconv.ParseFloat(t.text, 64)
		return value{kind: kindNumber, num: number{array.Float64, 0, f}}
	}
	if _, ok := array.ParseDType(t.text); ok {
		return value{kind: kindName, text: t.text}
	}
	if p.sign("(") {
		return p.call(t, nil)
	}
	if strings.Contains(t.text, "{") || p.scope.Strict || p.scope.lang.isFunction(t.text) || p.scope.lang.isOp(t.text) {
		p.next--
		if p.scope.Strict {
			p.fail("%s is not declared%s", t.text, spell.Hint(t.text, slices.Sorted(maps.Keys(p.scope.byName))))
		}
		p.fail("%s is an op and needs arguments", t.text)
	}
	v := fgraph.NewInput(tensor.ScalarType(array.Float64), t.text)
	p.scope.declare(v)
	return tensorValue(v)
}

// call reads the arguments of a function, after the opening bracket. A method has its receiver as
// first argument.
func (p *parser) call(t token, first []value) value {
	c := &call{lang: p.scope.lang, name: t.text, args: first}
	for !p.sign(")") {
		// There is a token behind each name: the end, if nothing else.
		if name := p.peek(); name.kind == tokenName && p.tokens[p.next+1].text == "=" && p.tokens[p.next+1].kind == tokenSign {
			p.next += 2
			if c.named == nil {
				c.named = make(map[string]value)
			}
			c.named[name.text] = p.expression(0)
		} else {
			c.args = append(c.args, p.expression(0))
		}
		if !p.sign(",") {
			p.expect(")")
			break
		}
	}
	p.at = t.pos
	x, ok := c.run()
	if !ok {
		panic(&SyntaxError{t.pos + 1, fmt.Sprintf("there is no function %s%s", fileio.Excerpt(t.text, 0), p.scope.lang.callHint(t.text)), nil})
	}
	return p.mark(x)
}
