package egraph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/pattern"
)

// template makes the replacement of a rewrite: steps whose values follow those of the slots.
type template struct {
	steps  []step
	slot   int // the whole replacement, if there are no steps
	values int
}

// step makes a node, a number, or calls a function.
type step struct {
	kind    stepKind
	op      Op // noOp if parameters are captured or computed
	sym     Symbol
	params  []paramArg    // captured parameters, or the arguments of param
	param   ParamFunction // nil: the parameters are params[0]
	call    Function
	make    Maker
	literal pattern.Literal
	like    int   // slot of the class that has the type of the number, or -1: what is replaced
	calc    *calc // computes the number, or nil
	flat    bool  // the op associates
	sorts   bool  // the op commutes
	unit    Op
	args    []arg
	plain   bool // up to two arguments, all of them values
	value   int  // where the value goes
}

// paramArg is a slot or a rest.
type paramArg struct{ slot, rest int }

type stepKind uint8

const (
	makesNode stepKind = iota
	makesNumber
	makesTyped // a node, by [Types.Make]
	calls      // a function
	makesAll   // the whole replacement, by a maker
)

// arg is an argument of a step: a value, a rest, or steps for each input of rests.
type arg struct {
	value int
	rest  int // -1 if there is none
	each  []step
	elems []elem
}

// elem is where the next input of a rest goes.
type elem struct{ rest, value int }

// template compiles a replacement.
func (c *compiler) template(e pattern.Expr) (template, error) {
	t := templateCompiler{c: c}
	t.values = len(c.info.slots)
	v, err := t.expr(e)
	return template{steps: t.steps, slot: v, values: t.values}, err
}

type templateCompiler struct {
	c      *compiler
	steps  []step
	values int
	each   bool   // within an expression for each input of rests
	elems  []elem // the rests that it names
}

// expr appends the steps of an expression, and returns the place of its value.
func (t *templateCompiler) expr(e pattern.Expr) (int, error) {
	switch e := e.(type) {
	case pattern.Name:
		if i := t.c.info.slot(string(e)); i >= 0 {
			return i, nil
		}
		return t.element(string(e))
	case pattern.Literal:
		return t.number(e)
	case pattern.Calc:
		return t.calc(e)
	case *pattern.Call:
		return t.call(e)
	}
	return 0, fmt.Errorf("%s is not allowed in a replacement", e)
}

// element returns the place of the inputs of a rest, one after the other.
func (t *templateCompiler) element(name string) (int, error) {
	rest := slices.IndexFunc(t.c.info.rests, func(r rest) bool { return r.name == name })
	if rest < 0 || !t.each {
		return 0, fmt.Errorf("the pattern binds no class to %s", name)
	}
	for _, x := range t.elems {
		if x.rest == rest {
			return x.value, nil
		}
	}
	t.elems = append(t.elems, elem{rest, t.values})
	t.values++
	return t.values - 1, nil
}

func (t *templateCompiler) add(s step) int {
	s.value = t.values
	t.values++
	t.steps = append(t.steps, s)
	return s.value
}

func (t *templateCompiler) call(e *pattern.Call) (int, error) {
	l := t.c.r.lang
	if op, ok := t.c.r.leafOp(e); ok && l.types.Make == nil {
		return t.add(step{op: op, sym: l.ops[op].sym, plain: true}), nil
	}
	if f, ok := l.makers[e.Op]; ok && len(e.Args) == 0 {
		return t.add(step{kind: makesAll, op: noOp, make: f}), nil
	}
	s := step{op: noOp}
	sym, op, param, err := t.c.r.opOf(e.Op)
	if f, ok := l.functions[e.Op]; ok && err != nil {
		s.kind, s.call = calls, f
	} else if err != nil {
		return 0, err
	} else {
		s.sym, s.op = sym, op
		if l.types.Make != nil {
			s.kind = makesTyped
		}
		sig := &l.sigs[sym]
		s.flat, s.sorts, s.unit = sig.Associates, sig.Commutes, sig.Unit
		if err := t.params(&s, param); err != nil {
			return 0, err
		}
	}
	if err := t.args(&s, e.Args, e.Op); err != nil {
		return 0, err
	}
	if s.call == nil {
		if err := t.count(&s, l); err != nil {
			return 0, err
		}
	}
	v := t.add(s)
	if s.call == nil && l.sigs[sym].Outputs > 0 {
		v = t.add(step{op: l.Output(e.Output), sym: l.output, args: []arg{{value: v, rest: -1}}, plain: true})
	}
	return v, nil
}

// count checks the number of arguments, and finds out whether they are plain.
func (t *templateCompiler) count(s *step, l *Language) error {
	in := l.sigs[s.sym].Inputs
	rests := slices.ContainsFunc(s.args, func(a arg) bool { return a.rest >= 0 || a.elems != nil })
	if n := len(s.args); !rests && n < in[0] || in[1] >= 0 && n > in[1] {
		return fmt.Errorf("%s with %d arguments", l.sigs[s.sym].Name, n)
	}
	if rests && in[1] >= 0 {
		return fmt.Errorf("%s takes a certain number of arguments", l.sigs[s.sym].Name)
	}
	s.plain = !rests && len(s.args) <= 2 && s.op != noOp && !s.flat && s.kind == makesNode
	return nil
}

// args compiles the arguments of a call. Those of an op that associates take in the arguments of
// such calls among them.
func (t *templateCompiler) args(s *step, list []pattern.Expr, op string) error {
	for _, e := range list {
		switch e := e.(type) {
		case *pattern.Call:
			if s.flat && e.Op == op {
				if err := t.args(s, e.Args, op); err != nil {
					return err
				}
				continue
			}
		case pattern.Rest:
			i := slices.IndexFunc(t.c.info.rests, func(r rest) bool { return r.name == string(e) })
			if i < 0 {
				return fmt.Errorf("the pattern does not bind ...%s", string(e))
			}
			s.args = append(s.args, arg{rest: i})
			continue
		case pattern.Each:
			a, err := t.eachOf(e)
			if err != nil {
				return err
			}
			s.args = append(s.args, a)
			continue
		}
		v, err := t.expr(e)
		if err != nil {
			return err
		}
		s.args = append(s.args, arg{value: v, rest: -1})
	}
	return nil
}

// eachOf compiles an expression for each input of rests.
func (t *templateCompiler) eachOf(e pattern.Each) (arg, error) {
	if t.each {
		return arg{}, errors.New("a rest within another one")
	}
	outer := t.steps
	t.steps, t.each, t.elems = nil, true, nil
	v, err := t.expr(e.Expr)
	a := arg{value: v, rest: -1, each: t.steps, elems: t.elems}
	t.steps, t.each = outer, false
	if err == nil && len(a.elems) == 0 {
		err = fmt.Errorf("%s names no rest", e)
	}
	return a, err
}

// params compiles what is in braces after an op in a replacement: captured parameters, or a
// function of them.
func (t *templateCompiler) params(s *step, text string) error {
	l := t.c.r.lang
	if text == "" {
		if s.op == noOp {
			s.op = l.Op(s.sym, nil)
		}
		return nil
	}
	name, list, calls := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	if !calls {
		list = text
	} else if s.param = l.params[name]; s.param == nil {
		return fmt.Errorf("the language has no function %s of parameters", name)
	}
	for _, p := range strings.Split(list, ",") {
		p = strings.TrimSpace(p)
		a, err := t.c.checkArg(p)
		if err != nil || !calls && !a.param {
			return fmt.Errorf("the pattern captures no parameters %s", p)
		}
		s.params = append(s.params, paramArg{
			slices.IndexFunc(t.c.info.slots, func(s slot) bool { return s.name == p }),
			slices.IndexFunc(t.c.info.rests, func(r rest) bool { return r.name == p }),
		})
	}
	return nil
}
