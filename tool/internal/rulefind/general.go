package rulefind

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// A formula computes a number of a right side of two of the left side.
type formula struct {
	text string
	of   func(c, d float64) float64
}

var formulas = []formula{
	{"c", func(c, _ float64) float64 { return c }}, {"d", func(_, d float64) float64 { return d }},
	{"c + d", func(c, d float64) float64 { return c + d }}, {"c * d", func(c, d float64) float64 { return c * d }},
	{"c - d", func(c, d float64) float64 { return c - d }}, {"d - c", func(c, d float64) float64 { return d - c }},
	{"-c", func(c, _ float64) float64 { return -c }},
}

// samples are numbers with which forms of a rule are tried.
var samples = []float64{2, -1, 0.5, 3, 0, -2.5, 1, -0.5, 7, -3}

// forms returns forms of a candidate that say more: with names in place of one or two numbers, under the
// weakest conditions under which the sides agree; and, of one with parameters of ops, itself and forms
// with conditions for those, which only the machine can tell from wrong ones.
func (s *search) forms(ctx context.Context, c *candidate) (list []*candidate) {
	if params := c.params(); len(params) > 0 {
		list = append(list, c)
		for _, k := range s.space.Conditions {
			for _, args := range assignments(k.Args, map[string][]string{"p": params, "x": c.variables()}) {
				list = append(list, c.with(c.rewrite, pattern.Guard{Func: k.Func, Args: args, Not: k.Not}))
			}
		}
		return list
	}
	list = s.plain(ctx, c)
	left, right := literals(c.rewrite.In.Expr), literals(c.rewrite.Out)
	if len(left) == 0 || len(left) > 2 || len(slices.Compact(right)) > 1 || s.space.Wide == nil {
		return list
	}
	terms := len(list)
	numbers := make([]float64, 2)
	for i, l := range left {
		numbers[i], _ = strconv.ParseFloat(string(l), 64)
	}
	for _, f := range formulas {
		if len(right) > 0 && pattern.Literal(strconv.FormatFloat(f.of(numbers[0], numbers[1]), 'g', -1, 64)) != right[0] || len(left) == 1 && strings.Contains(f.text, "d") {
			continue
		}
		w := c.rewrite
		named := []pattern.Expr{pattern.Name("c"), pattern.Name("d")}
		w.In.Expr, _ = replaced(w.In.Expr, named)
		var value pattern.Expr = pattern.Name(f.text)
		if len(f.text) > 1 {
			value, w.Equation = pattern.Calc(f.text), false
		}
		w.Out, _ = replaced(w.Out, slices.Repeat([]pattern.Expr{value}, len(right)))
		for _, k := range s.space.Conditions {
			for _, args := range assignments(k.Args, map[string][]string{"c": []string{"c", "d"}[:len(left)]}) {
				swapped := args[0] == "d"
				if len(args) < len(left) {
					continue
				}
				holds := func(c, d float64) bool {
					if swapped {
						c, d = d, c
					}
					return k.Holds([]float64{c, d}[:len(left)])
				}
				if !holds(numbers[0], numbers[1]) {
					continue
				}
				if more := s.instances(ctx, c, f, len(left), holds); len(more) > 2 {
					form := c.with(w, pattern.Guard{Func: k.Func, Args: args})
					form.more = more[:3]
					list = append(list, form)
				}
			}
		}
		if len(list) > terms || len(right) == 0 {
			break
		}
	}
	return list[:min(len(list), terms+2)]
}

// plain returns forms of a candidate with variables in place of what its first op is applied to, under a condition that
// holds for that: what the op does with terms of a sign or of an order it does with any such.
func (s *search) plain(ctx context.Context, c *candidate) (list []*candidate) {
	call, inputs := c.rewrite.In.Expr.(*pattern.Call), c.left.v.Owner().Inputs()
	if c.cond || len(inputs) != len(call.Args) || s.space.Cells == nil {
		return nil
	}
	w, in := c.rewrite, &pattern.Call{Op: call.Op}
	var namer rulecheck.Namer
	var names []string
	var terms []pattern.Expr
	var vars []*fgraph.Variable
	for i, a := range call.Args {
		k := slices.IndexFunc(terms, func(e pattern.Expr) bool { return same(e, a) })
		if k < 0 {
			leaf := slices.IndexFunc(s.space.Leaves, func(v *fgraph.Variable) bool { return v.Type() == inputs[i].Type() })
			if leaf < 0 {
				return nil
			}
			k = len(terms)
			names, terms, vars = append(names, namer.Next()), append(terms, a), append(vars, s.space.Leaves[leaf])
		}
		in.Args = append(in.Args, pattern.Name(names[k]))
	}
	var known bool
	w.In.Expr, w.Equation = in, false
	if w.Out, known = abstracted(w.Out, terms, names); !known || same(in, call) {
		return nil
	}
	for _, k := range s.space.Conditions {
		if strings.Trim(strings.Join(k.Args, ""), "x") != "" {
			continue
		}
		for _, args := range assignments(k.Args, map[string][]string{"x": names}) {
			form := c.with(w, pattern.Guard{Func: k.Func, Args: args})
			form.vars = vars
			r, err := pattern.New(s.d.Vocabulary(), pattern.Rule{Name: "form", Cases: []pattern.Rewrite{guarded(w, form.conditions)}}, pattern.Shared())
			if err == nil && s.fires(ctx, r, c.sides[0]) {
				list = append(list, form)
			}
		}
	}
	return list
}

// abstracted puts names in the places of terms. It reports whether no other names are left.
func abstracted(e pattern.Expr, terms []pattern.Expr, names []string) (pattern.Expr, bool) {
	if i := slices.IndexFunc(terms, func(t pattern.Expr) bool { return same(t, e) }); i >= 0 {
		return pattern.Name(names[i]), true
	}
	call, ok := e.(*pattern.Call)
	if !ok {
		_, name := e.(pattern.Name)
		return e, !name
	}
	made := &pattern.Call{Op: call.Op}
	for _, a := range call.Args {
		a, known := abstracted(a, terms, names)
		if !known {
			return nil, false
		}
		made.Args = append(made.Args, a)
	}
	return made, true
}

// with returns a candidate of the same sides with another rewrite, and a condition for it.
func (c *candidate) with(w pattern.Rewrite, g pattern.Guard) *candidate {
	k := *c
	k.rewrite, k.conditions, k.general = w, []pattern.Guard{g}, true
	k.text = guarded(w, k.conditions).String()
	return &k
}

// instances returns both sides with other numbers for which a condition holds, or nil if they do not agree.
func (s *search) instances(ctx context.Context, c *candidate, f formula, n int, holds func(c, d float64) bool) (list [][2]*fgraph.Variable) {
	for i, x := range samples {
		for j, y := range samples {
			if n == 1 && j > 0 || n == 2 && (i+j)%3 != 0 || !holds(x, y) {
				continue
			}
			number := func(x float64) pattern.Expr { return pattern.Literal(strconv.FormatFloat(x, 'g', -1, 64)) }
			left, _ := replaced(c.left.expr, []pattern.Expr{number(x), number(y)})
			right, _ := replaced(c.right.expr, slices.Repeat([]pattern.Expr{number(f.of(x, y))}, len(literals(c.right.expr))))
			l, r := s.made(left), s.made(right)
			if l == nil || r == nil || !s.agree(ctx, l, r, c, c.guarded) {
				return nil
			}
			list = append(list, [2]*fgraph.Variable{l, r})
		}
	}
	return list
}

// made makes a variable of an expression, or returns nil.
func (s *search) made(e pattern.Expr) *fgraph.Variable {
	switch e := e.(type) {
	case pattern.Name:
		return s.space.leaf(string(e))
	case pattern.Literal:
		v, err := s.d.Vocabulary().Constant(e, s.space.Leaves[0])
		if err == nil {
			return v
		}
	case *pattern.Call:
		vars := make([]*fgraph.Variable, len(e.Args))
		for i, a := range e.Args {
			if vars[i] = s.made(a); vars[i] == nil {
				return nil
			}
		}
		i := slices.IndexFunc(s.space.ops, func(op symbol) bool { return op.name == e.Op })
		if v, err := make1(s.space.ops[i].op, vars); err == nil {
			return v
		}
	}
	return nil
}

// literals returns the numbers of an expression.
func literals(e pattern.Expr) (list []pattern.Literal) {
	pattern.Walk(e, func(e pattern.Expr) {
		if l, ok := e.(pattern.Literal); ok {
			list = append(list, l)
		}
	})
	return list
}

// replaced puts others in the places of the numbers of an expression, and returns those that are left.
func replaced(e pattern.Expr, by []pattern.Expr) (pattern.Expr, []pattern.Expr) {
	switch e := e.(type) {
	case pattern.Literal:
		return by[0], by[1:]
	case *pattern.Call:
		call := &pattern.Call{Op: e.Op}
		for _, a := range e.Args {
			a, by = replaced(a, by)
			call.Args = append(call.Args, a)
		}
		return call, by
	}
	return e, by
}

// params returns the names that rename gives to the parameters of a candidate: not the 0 of Shape_i{0}.
func (c *candidate) params() (list []string) {
	pattern.Walk(c.rewrite.In.Expr, func(e pattern.Expr) {
		if call, ok := e.(*pattern.Call); ok {
			if _, p, ok := strings.Cut(strings.TrimSuffix(call.Op, "}"), "{"); ok && len(p) == 1 && p[0]-'p' < 8 && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	})
	return list
}

func (c *candidate) variables() (list []string) {
	for i := range c.vars {
		list = append(list, c.name(i))
	}
	return list
}

// assignments returns all ways to put different names in the places of letters.
func assignments(letters []string, names map[string][]string) (list [][]string) {
	if len(letters) == 0 {
		return [][]string{nil}
	}
	for _, rest := range assignments(letters[:len(letters)-1], names) {
		for _, name := range names[letters[len(letters)-1]] {
			if !slices.Contains(rest, name) {
				list = append(list, append(slices.Clip(rest), name))
			}
		}
	}
	return list
}
