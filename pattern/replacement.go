package pattern

import (
	"slices"
)

// A splice is a rest in the arguments of a replacement, before argument at.
type splice struct{ at, slot int }

// A function is called in a replacement. Its arguments are args if it computes parameters, and
// those of the call if it makes a variable.
type function struct {
	Function
	args []ref
}

// replacement compiles an expression of a replacement.
func (c *compiler) replacement(e Expr) *node {
	n := &node{op: &noOp, slot: none, rest: none, param: none, like: none, expr: e}
	switch e := e.(type) {
	case Name:
		n.kind = isName
		if n.slot = slices.Index(c.slots, string(e)); n.slot >= 0 {
			break
		}
		if n.rest = slices.Index(c.rests, string(e)); c.each && n.rest >= 0 {
			n.kind = isElement
			break
		}
		c.fault(0, ErrUnbound, "%s in the replacement", e)
	case Literal:
		n.kind, n.lit = isLiteral, e
		if i := slices.Index(c.slots, e.Type()); i >= 0 {
			n.lit, n.like = Literal(e.number()), i
		}
	case Calc:
		n.kind = isCalc
		c.calc(n, e)
	case *Call:
		n.kind = isCall
		c.construction(n, e)
	case nil:
		c.fault(0, ErrForm, "no replacement")
	default:
		c.fault(0, ErrForm, "%s in a replacement", e)
	}
	return n
}

// calc compiles a formula.
func (c *compiler) calc(n *node, e Calc) {
	var pow func(x, y float64) float64
	if p, ok := c.vocab.(Powerer); ok {
		pow = p.Pow
	}
	f, err := e.calculation(pow)
	if err != nil {
		c.faults = append(c.faults, err)
		return
	}
	n.calc = f
	if _, ok := c.vocab.(Numberer); !ok {
		c.fault(0, ErrForm, "%s: the vocabulary does not know the values of variables", e)
	}
	for _, name := range f.names {
		slot := slices.Index(c.slots, name)
		if slot < 0 {
			c.fault(0, ErrUnbound, "%s in %s", name, e)
		}
		n.order = append(n.order, slot)
	}
}

func (c *compiler) construction(n *node, e *Call) {
	n.output = e.Output
	if f, ok := c.opts.function(e.Op); ok && f.Build != nil {
		n.fn = &function{Function: f}
	} else {
		op, inBraces, ok := c.operator(e.Op)
		switch {
		case !ok:
			c.fault(e.Pos, ErrUnknownOp, "%s%s", e.Op, c.hint(e.Op))
		case op.Make == nil:
			c.fault(e.Pos, ErrForm, "the op %s can be matched, but not made", e.Op)
		}
		n.op = &op
		if inBraces != "" {
			c.parameters(n, e, inBraces)
		}
	}
	fixed, rest := 0, false
	for _, a := range e.Args {
		if each, ok := a.(Each); ok {
			rest = true
			n.args = append(n.args, c.elements(each))
			continue
		}
		r, isRest := a.(Rest)
		if !isRest {
			fixed++
			n.args = append(n.args, c.replacement(a))
			continue
		}
		rest = true
		slot := slices.Index(c.rests, string(r))
		if slot < 0 {
			c.fault(e.Pos, ErrUnbound, "%s in the replacement", r)
		}
		n.splice = append(n.splice, splice{len(n.args), slot})
	}
	if n.op.Make != nil {
		c.arity(e, *n.op, fixed, rest)
	}
}

// elements compiles an expression of each variable of a rest.
func (c *compiler) elements(e Each) *node {
	if c.each {
		c.fault(0, ErrForm, "%s inside of another", e)
	}
	c.each = true
	n := &node{kind: isEach, op: &noOp, slot: none, rest: none, param: none, expr: e, args: []*node{c.replacement(e.Expr)}}
	c.each = false
	Walk(e.Expr, func(e Expr) {
		if name, ok := e.(Name); ok {
			if slot := slices.Index(c.rests, string(name)); slot >= 0 {
				n.order = append(n.order, slot)
			}
		}
	})
	if len(n.order) == 0 {
		c.fault(0, ErrUnbound, "%s without the name of a rest", e)
	}
	return n
}

// parameters compiles what is written for the parameters of an op in a replacement: a captured
// name, or a function of captured names and variables.
func (c *compiler) parameters(n *node, e *Call, text string) {
	if isIdentifier(text) {
		if n.param = slices.Index(c.params, text); n.param < 0 {
			c.fault(e.Pos, ErrUnbound, "%s in %s", text, e.Op)
		}
		return
	}
	p := parser{text: text}
	g, err := p.guard()
	if err == nil {
		err = p.end()
	}
	f, ok := c.opts.function(g.Func)
	switch {
	case err != nil || g.Not:
		c.fault(e.Pos, ErrForm, "%s: a name or a function of names is expected in braces", e.Op)
	case !ok || f.Param == nil:
		c.fault(e.Pos, ErrUnknownFunc, "%s in %s%s", g.Func, e.Op, c.opts.functionHint(g.Func))
	default:
		n.fn = &function{f, c.refs(e.Pos, g.Args, "function "+g.String())}
		c.usage(g, f, n.fn.args)
	}
}
