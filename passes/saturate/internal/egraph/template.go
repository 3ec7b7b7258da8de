package egraph

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/pattern"
)

// template makes the replacement of a rewrite: steps whose values follow those of the slots.
type template struct {
	steps  []step
	slot   int // the whole replacement, if there are no steps
	values int
}

// step makes a node, or the whole replacement.
type step struct {
	sym   Symbol
	op    Op    // noOp if parameters are captured
	param int   // the slot that captures them
	make  Maker // makes the whole replacement, or nil
	sorts bool  // the op commutes
	args  []arg
	plain bool // up to two arguments, all of them values
	value int  // where the value goes
}

// arg is an argument of a step: a value, or a rest.
type arg struct {
	value int
	rest  int // -1 if there is none
}

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
}

// expr appends the steps of an expression, and returns the place of its value.
func (t *templateCompiler) expr(e pattern.Expr) (int, error) {
	switch e := e.(type) {
	case pattern.Name:
		if i := t.c.info.slot(string(e)); i >= 0 {
			return i, nil
		}
		return 0, fmt.Errorf("the pattern binds no class to %s", e)
	case pattern.Literal:
		op, err := t.c.r.lang.leafOf(e)
		return t.add(step{op: op, plain: true}), err
	case *pattern.Call:
		return t.call(e)
	}
	return 0, fmt.Errorf("%s is not allowed in a replacement: a maker can do what it says", e)
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
		return t.add(step{op: op, plain: true}), nil
	}
	if f, ok := l.makers[e.Op]; ok && len(e.Args) == 0 {
		return t.add(step{op: noOp, make: f}), nil
	}
	sym, param, err := t.c.r.symbolOf(e.Op)
	if err != nil {
		return 0, err
	}
	sig := &l.sigs[sym]
	s := step{sym: sym, op: noOp, sorts: sig.Commutes}
	if param == "" {
		s.op = l.Intern(sym, nil)
	} else if s.param = slices.IndexFunc(t.c.info.slots, func(s slot) bool { return s.name == param && s.param }); s.param < 0 {
		return 0, fmt.Errorf("the pattern captures no parameters %s", param)
	}
	rests, err := t.args(&s, e.Args)
	if err != nil {
		return 0, err
	}
	in := sig.Inputs
	if n := len(s.args); !rests && n < in[0] || in[1] >= 0 && n > in[1] {
		return 0, fmt.Errorf("%s with %d arguments", sig.Name, n)
	}
	if rests && in[1] >= 0 {
		return 0, fmt.Errorf("%s takes a certain number of arguments", sig.Name)
	}
	s.plain = !rests && len(s.args) <= 2 && s.op != noOp
	v := t.add(s)
	if sig.Outputs > 0 {
		v = t.add(step{op: l.Output(e.Output), args: []arg{{value: v, rest: -1}}, plain: true})
	}
	return v, nil
}

// args compiles the arguments of a call, and reports whether there are rests among them.
func (t *templateCompiler) args(s *step, list []pattern.Expr) (rests bool, err error) {
	for _, e := range list {
		a := arg{rest: -1}
		if r, ok := e.(pattern.Rest); ok {
			rests = true
			if a.rest = slices.IndexFunc(t.c.info.rests, func(have rest) bool { return have.name == string(r) }); a.rest < 0 {
				return false, fmt.Errorf("the pattern does not bind ...%s", string(r))
			}
		} else if a.value, err = t.expr(e); err != nil {
			return false, err
		}
		s.args = append(s.args, a)
	}
	return rests, nil
}
