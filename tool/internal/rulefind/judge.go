package rulefind

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// judge checks a candidate, with the guards that it may need, the weakest first. It sets what was found,
// or values for which the candidate is wrong.
func (s *search) judge(ctx context.Context, c *candidate) error {
	if _, seen := s.verdict[c.text]; seen {
		return nil
	}
	// Of an equation, one direction may be right where the other one is not, such as (xor x 1) => (invert x), which
	// is wrong for a bool and an integer.
	ways := []pattern.Rewrite{c.rewrite}
	if w := c.rewrite; w.Equation {
		w.Equation = false
		back := w
		back.In.Expr, back.Out = w.Out, w.In.Expr
		ways = append(ways, w, back)
	}
	for _, w := range ways {
		for _, types := range s.types(c) {
			rule := pattern.Rule{Cases: []pattern.Rewrite{guarded(w, slices.Concat(types, s.guardsOf(c), c.conditions))}}
			// What one seed does not find another one does, such as a tag. A form that says more than the values do is backed by
			// nothing but the machine.
			times := uint64(twice)
			if c.general || len(c.params()) > 0 {
				times = severe
			}
			r, err := s.check(ctx, &rule, 0)
			for k := uint64(1); k < times && err == nil && r.Kept; k++ {
				tags := len(rule.Tags)
				var again rulecheck.Report
				if again, err = s.check(ctx, &rule, k); !again.Kept || len(rule.Tags) > tags {
					r = again
				}
			}
			if err != nil {
				return err
			}
			if r.Kept {
				proved, wrong := s.prove(ctx, c)
				if c.wrong = wrong; wrong == nil {
					c.found = s.found(c, rule, r)
					c.found.Proved = proved
				}
				return nil
			}
			if !c.cond && !c.general && len(c.params()) == 0 && len(r.Wrong) > 0 {
				c.wrong = s.renamed(c, r.Wrong)
			}
		}
	}
	return nil
}

// prove compares both sides of a candidate for all values of its variables, if they are few. It returns those for
// which the sides differ.
func (s *search) prove(ctx context.Context, c *candidate) (proved bool, wrong map[string]any) {
	if s.space.Every == nil || c.general || c.cond || len(c.params()) > 0 {
		return false, nil
	}
	every := s.space.Every(c.vars)
	if every == nil {
		return false, nil
	}
	w := &space{Ground: every}
	for _, run := range every.Runs {
		if ctx.Err() != nil {
			return false, nil
		}
		if !w.agree(ctx, c.vars, run, c.left.v, c.right.v) {
			wrong = make(map[string]any)
			for i, v := range c.vars {
				wrong[v.Name()] = run[i]
			}
			return false, wrong
		}
	}
	return true, nil
}

// twice is how often a rule is checked.
const twice = 2

// severe is how often a rule is checked whose conditions or parameters are a guess: conditions of relational
// algebra pass one check of a hundred wrongly, where tables are small.
const severe = 4

// check checks a rule, and gives it the tags that it needs. seed is for other values.
func (s *search) check(ctx context.Context, rule *pattern.Rule, seed uint64) (rulecheck.Report, error) {
	r, err := rulecheck.Check(ctx, s.d, *rule, rulecheck.Options{Seed: s.o.Seed + seed, Brief: true})
	switch r.Class {
	case rulecheck.Wrong, rulecheck.Type, rulecheck.NeverFires:
	default:
		for _, tag := range r.Tags {
			if !slices.Contains(rule.Tags, tag) {
				rule.Tags = append(rule.Tags, tag)
			}
		}
		r.Kept = err == nil
	}
	return r, err
}

// guardsOf returns the guard of run 0 for the variables of a candidate that need it.
func (s *search) guardsOf(c *candidate) []pattern.Guard {
	g := pattern.Guard{Func: s.space.Guard}
	for i := range c.vars {
		if c.guarded>>i&1 == 1 {
			g.Args = append(g.Args, c.name(i))
		}
	}
	if g.Args == nil {
		return nil
	}
	return []pattern.Guard{g}
}

// types returns lists of guards of types to try. A rule that holds for every type needs none.
func (s *search) types(c *candidate) (list [][]pattern.Guard) {
	list = [][]pattern.Guard{nil}
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
			return list
		}
		types := lists.Map(order, func(name string) pattern.Guard { return pattern.Guard{Func: name, Args: level[name]} })
		list = append(list, types)
	}
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
func (s *search) found(c *candidate, rule pattern.Rule, r rulecheck.Report) *Found {
	f := &Found{Rule: rule, Report: r, Before: c.before, After: c.after, Occurs: c.occurs, theorem: theorem{sides: c.sides, general: c.general, more: c.more, weight: c.size + c.literals, cost: c.before + c.after}}
	var types []string
	for _, v := range c.vars {
		if t := fmt.Sprint(v.Type()); !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	f.Types = strings.Join(types, ", ")
	f.Rule.Name = nameOf(c.rewrite)
	f.Rule.Doc = sentence(f.Rule.Cases[0])
	f.Fires, f.Not = s.examples(f)
	return f
}

// sides returns both sides of a candidate, with variables for which the guard of run 0 holds where it is
// asked for.
func (s *search) sides(c *candidate) [2]*fgraph.Variable {
	made := make(map[*fgraph.Variable]*fgraph.Variable)
	for i, v := range c.vars {
		if c.guarded>>i&1 == 1 {
			made[v] = s.space.Guarded(v)
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
	args := lists.Map(c.Args, spoken)
	return c.Op + "(" + strings.Join(args, ", ") + ")"
}

// examples returns an expression that a rule replaces, and one like it that it leaves: with another
// variable at one place.
func (s *search) examples(f *Found) (fires, not string) {
	r, err := compiled(s.d, f.Rule)
	if err != nil {
		return "", ""
	}
	if v := f.sides[0]; s.fires(context.Background(), r, v) {
		fires = fgraph.Text(0, v)
	}
	for _, v := range s.others(f.sides[0]) {
		if !s.fires(context.Background(), r, v) {
			return fires, fgraph.Text(0, v)
		}
	}
	return fires, ""
}

// fires reports whether a rule replaces a variable.
func (s *search) fires(ctx context.Context, r rewrite.NodeRewriter, v *fgraph.Variable) bool {
	g, err := s.d.Graph([]*fgraph.Variable{v})
	if err != nil || g.Outputs()[0].Owner() == nil {
		return false
	}
	result, err := r.Transform(rewrite.NewContext(ctx, g), g.Outputs()[0].Owner())
	return err == nil && !result.Empty()
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
