package rulefind

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/rulecheck"
)

// judge checks a candidate, with the guards that it may need, the weakest first. It sets what was found,
// or values for which the candidate is wrong.
func (s *search) judge(ctx context.Context, c *candidate) error {
	if _, seen := s.verdict[c.text]; seen {
		return nil
	}
	for _, guards := range s.guards(c) {
		rule := pattern.Rule{Cases: []pattern.Rewrite{guarded(c.rewrite, guards)}}
		r, err := s.check(ctx, &rule)
		if err != nil {
			return err
		}
		if r.Kept {
			c.found, err = s.found(ctx, c, rule, r)
			return err
		}
		if !c.cond && len(r.Wrong) > 0 {
			c.wrong = s.renamed(c, r.Wrong)
		}
	}
	return nil
}

// check checks a rule, and gives it the tags that it needs.
func (s *search) check(ctx context.Context, rule *pattern.Rule) (rulecheck.Report, error) {
	for {
		r, err := rulecheck.Check(ctx, s.d, *rule, rulecheck.Options{Seed: s.o.Seed})
		if err != nil || r.Kept || slices.Contains(rule.Tags, string(r.Class)) {
			return r, err
		}
		switch r.Class {
		case rulecheck.Wrong, rulecheck.Type, rulecheck.NeverFires:
			return r, nil
		}
		rule.Tags = append(rule.Tags, string(r.Class))
	}
}

// guards returns lists of guards to try. A rule that holds for every type needs none; one that holds for
// the values of run 0 only needs their guard for some of its variables.
func (s *search) guards(c *candidate) (list [][]pattern.Guard) {
	var types []pattern.Guard
	for k := 0; ; k++ {
		level := make(map[string][]string)
		var order []string
		for i, v := range c.vars {
			if names := s.space.Guards; names != nil && k < len(names(v.Type())) {
				name := names(v.Type())[k]
				if level[name] == nil {
					order = append(order, name)
				}
				level[name] = append(level[name], c.name(i))
			}
		}
		if len(order) == 0 {
			break
		}
		types = nil
		for _, name := range order {
			types = append(types, pattern.Guard{Func: name, Args: level[name]})
		}
		list = append(list, types)
	}
	list = append([][]pattern.Guard{nil}, list...)
	if !c.cond {
		return list
	}
	// Fewer variables are the weaker condition.
	var with [][]pattern.Guard
	for n := 1; n <= len(c.vars); n++ {
		for set := 1; set < 1<<len(c.vars); set++ {
			var args []string
			for i := range c.vars {
				if set>>i&1 == 1 {
					args = append(args, c.name(i))
				}
			}
			if len(args) == n {
				for _, types := range list {
					with = append(with, append(slices.Clone(types), pattern.Guard{Func: s.space.Guard, Args: args}))
				}
			}
		}
	}
	return with
}

// name returns the name of variable i of a candidate.
func (c *candidate) name(i int) string {
	var n rulecheck.Namer
	name := n.Next()
	for range i {
		name = n.Next()
	}
	return name
}

// guarded returns a rewrite with guards, for both directions of an equation.
func guarded(w pattern.Rewrite, guards []pattern.Guard) pattern.Rewrite {
	w.In.Guards = guards
	if w.Equation {
		w.Back = guards
	}
	return w
}

// renamed returns the values of a counterexample by the names of leaves.
func (s *search) renamed(c *candidate, values map[string]any) map[string]any {
	named := make(map[string]any)
	for i, v := range c.vars {
		if value, ok := values[c.name(i)]; ok {
			named[v.Name()] = value
		}
	}
	return named
}

// found returns what is known of a rule.
func (s *search) found(ctx context.Context, c *candidate, rule pattern.Rule, r rulecheck.Report) (*Found, error) {
	f := &Found{Rule: rule, Report: r, Before: c.before, After: c.after, sides: s.sides(c, rule.Cases[0].In.Guards)}
	if c.cond {
		// A rule with a guard for variables follows from others only where that is known to hold. Which
		// variables need it, the check has found out.
		left, err := s.follows(ctx, f)
		if c.follows = left; err != nil || left {
			return nil, err
		}
	}
	var types []string
	for _, v := range c.vars {
		if t := fmt.Sprint(v.Type()); !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	f.Types = strings.Join(types, ", ")
	f.Proved = s.space.All && r.Class == rulecheck.Exact
	f.Rule.Name = nameOf(c.rewrite)
	f.Rule.Doc = sentence(f.Rule.Cases[0])
	f.Fires, f.Not = s.examples(f)
	return f, nil
}

// sides returns both sides of a candidate, with variables for which the guard of run 0 holds where it is
// asked for.
func (s *search) sides(c *candidate, guards []pattern.Guard) [2]*fgraph.Variable {
	made := make(map[*fgraph.Variable]*fgraph.Variable)
	for i, v := range c.vars {
		for _, g := range guards {
			if g.Func == s.space.Guard && slices.Contains(g.Args, c.name(i)) {
				made[v] = s.space.Guarded(v)
			}
		}
	}
	return [2]*fgraph.Variable{substitute(c.left.v, made), substitute(c.right.v, made)}
}

// substitute returns a variable computed from others than before.
func substitute(v *fgraph.Variable, made map[*fgraph.Variable]*fgraph.Variable) *fgraph.Variable {
	if len(made) == 0 {
		return v
	}
	of := func(v *fgraph.Variable) *fgraph.Variable {
		if w := made[v]; w != nil {
			return w
		}
		return v
	}
	fgraph.Walk([]*fgraph.Variable{v}, func(v *fgraph.Variable) bool { return made[v] != nil }, func(a *fgraph.Apply) {
		inputs := slices.Clone(a.Inputs())
		for i, in := range inputs {
			inputs[i] = of(in)
		}
		made[a.Out()] = fgraph.NewApply(a.Op(), inputs, a.Out().Type()).Out()
	})
	return of(v)
}

// follows reports whether a rule follows from those that there are.
func (s *search) follows(ctx context.Context, f *Found) (bool, error) {
	t, err := newTheory(s.d, onePair, s.rules)
	if err != nil {
		return false, err
	}
	equal, err := t.ask(ctx, [][2]*fgraph.Variable{f.sides})
	return err == nil && equal[0], err
}

// nameOf makes a name of what a rule says.
func nameOf(w pattern.Rewrite) string {
	name := func(e pattern.Expr) string {
		text := strings.ReplaceAll(e.String(), "-", "minus_")
		return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }), "_")
	}
	return "found_" + name(w.In.Expr) + "_is_" + name(w.Out)
}

// sentence says what a rule says.
func sentence(w pattern.Rewrite) string {
	text := fmt.Sprintf("%s is %s", spoken(w.In.Expr), spoken(w.Out))
	for i, g := range w.In.Guards {
		text += []string{" for ", " and "}[min(i, 1)] + g.String()
	}
	return text + "."
}

// spoken writes an expression as a function of functions.
func spoken(e pattern.Expr) string {
	c, ok := e.(*pattern.Call)
	if !ok {
		return e.String()
	}
	var args []string
	for _, a := range c.Args {
		args = append(args, spoken(a))
	}
	return c.Op + "(" + strings.Join(args, ", ") + ")"
}

// examples returns an expression that a rule replaces, and one like it that it leaves: with another
// variable at one place.
func (s *search) examples(f *Found) (fires, not string) {
	r, err := compiled(s.d, f.Rule)
	if err != nil {
		return "", ""
	}
	try := func(v *fgraph.Variable) (string, bool) {
		g, err := s.d.Graph([]*fgraph.Variable{v})
		if err != nil || g.Outputs()[0].Owner() == nil {
			return "", false
		}
		result, err := r.Transform(rewrite.NewContext(context.Background(), g), g.Outputs()[0].Owner())
		return s.d.Sprint(v), err == nil && !result.Empty()
	}
	text, ok := try(f.sides[0])
	if ok {
		fires = text
	}
	for _, v := range s.others(f.sides[0]) {
		if text, ok := try(v); !ok && text != "" {
			return fires, text
		}
	}
	return fires, ""
}

// others returns expressions in which one input of one apply is another variable.
func (s *search) others(v *fgraph.Variable) (list []*fgraph.Variable) {
	a := v.Owner()
	if a == nil {
		return nil
	}
	for i, in := range a.Inputs() {
		var instead []*fgraph.Variable
		if in.Owner() == nil || in.IsConstant() {
			for _, l := range s.space.Leaves {
				if l != in && l.Type() == in.Type() {
					instead = append(instead, l)
				}
			}
		} else {
			instead = s.others(in)
		}
		for _, x := range instead {
			inputs := slices.Clone(a.Inputs())
			inputs[i] = x
			list = append(list, fgraph.NewApply(a.Op(), inputs, v.Type()).Out())
		}
	}
	return list
}
