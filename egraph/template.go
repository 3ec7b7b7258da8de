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

// step makes a node, or calls a function.
type step struct {
	op     Op // noOp if parameters are captured or computed
	sym    Symbol
	params []int         // slots of captured parameters
	param  ParamFunction // nil: the parameters of slot params[0]
	call   Function      // makes a class
	make   Maker         // makes everything
	flat   bool          // the op associates
	sorts  bool          // the op commutes
	unit   Op
	args   []arg
	plain  bool // up to two arguments, all of them values
	value  int  // where the value goes
}

// arg is an argument of a step: a value, a rest, or steps for each input of a rest.
type arg struct {
	value int
	rest  int // -1 if there is none
	each  []step
}

// template compiles a replacement.
func (c *compiler) template(e pattern.Expr) (template, error) {
	t := templateCompiler{c: c, elem: -1}
	t.values = len(c.info.slots)
	v, err := t.expr(e)
	return template{steps: t.steps, slot: v, values: t.values}, err
}

type templateCompiler struct {
	c      *compiler
	steps  []step
	values int
	rest   int // that each goes through
	elem   int // its element, or -1
}

// expr appends the steps of an expression, and returns the place of its value.
func (t *templateCompiler) expr(e pattern.Expr) (int, error) {
	switch e := e.(type) {
	case pattern.Name:
		for i, s := range t.c.info.slots {
			if s.name == string(e) && !s.param {
				return i, nil
			}
		}
		if t.elem >= 0 && t.c.info.rests[t.rest].name == string(e) {
			return t.elem, nil
		}
		return 0, fmt.Errorf("the pattern binds no class to %s", e)
	case pattern.Literal:
		if t.c.r.lang.number == nil || e.Type() != "" {
			return 0, fmt.Errorf("the language has no number %s", e)
		}
		op := t.c.r.lang.number(nil, e.Float())
		return t.add(step{op: op, sym: t.c.r.lang.ops[op].sym, plain: true}), nil
	case *pattern.Call:
		return t.call(e)
	}
	return 0, fmt.Errorf("%s can't stand in a replacement", e)
}

func (t *templateCompiler) add(s step) int {
	s.value = t.values
	t.values++
	t.steps = append(t.steps, s)
	return s.value
}

func (t *templateCompiler) call(e *pattern.Call) (int, error) {
	l := t.c.r.lang
	if op, ok := t.c.r.leafOp(e); ok {
		return t.add(step{op: op, sym: l.ops[op].sym, plain: true}), nil
	}
	if f, ok := l.makers[e.Op]; ok && len(e.Args) == 0 {
		return t.add(step{op: noOp, make: f}), nil
	}
	s := step{op: noOp}
	sym, param, err := t.c.r.opOf(e.Op)
	if f, ok := l.functions[e.Op]; ok && err != nil {
		s.call = f
	} else if err != nil {
		return 0, err
	} else {
		s.sym = sym
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
	rests := slices.ContainsFunc(s.args, func(a arg) bool { return a.rest >= 0 })
	if n := len(s.args); !rests && n < in[0] || in[1] >= 0 && n > in[1] {
		return fmt.Errorf("%s with %d arguments", l.sigs[s.sym].Name, n)
	}
	if rests && in[1] >= 0 {
		return fmt.Errorf("%s takes a certain number of arguments", l.sigs[s.sym].Name)
	}
	s.plain = !rests && len(s.args) <= 2 && s.op != noOp && !s.flat
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
			a, err := t.each(e)
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

// each compiles an expression for each input of a rest.
func (t *templateCompiler) each(e pattern.Each) (arg, error) {
	if t.elem >= 0 {
		return arg{}, errors.New("a rest stands within another one")
	}
	name := -1
	var look func(e pattern.Expr)
	look = func(e pattern.Expr) {
		switch e := e.(type) {
		case pattern.Name:
			if i := slices.IndexFunc(t.c.info.rests, func(r rest) bool { return r.name == string(e) }); i >= 0 && name < 0 {
				name = i
			}
		case *pattern.Call:
			for _, a := range e.Args {
				look(a)
			}
		}
	}
	if look(e.Expr); name < 0 {
		return arg{}, fmt.Errorf("%s names no rest", e)
	}
	outer := t.steps
	t.steps, t.rest, t.elem = nil, name, t.values
	t.values++
	elem := t.elem
	v, err := t.expr(e.Expr)
	inner := t.steps
	t.steps, t.elem = outer, -1
	return arg{value: v, rest: name, each: append(inner, step{value: elem})}, err
}

// params compiles what stands in braces behind an op in a replacement: captured parameters, or a function
// of them.
func (t *templateCompiler) params(s *step, text string) error {
	l := t.c.r.lang
	if text == "" {
		s.op = l.Op(s.sym, nil)
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
		i := slices.IndexFunc(t.c.info.slots, func(s slot) bool { return s.name == p && s.param })
		if i < 0 {
			return fmt.Errorf("the pattern captures no parameters %s", p)
		}
		s.params = append(s.params, i)
	}
	return nil
}
