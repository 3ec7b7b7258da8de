package rulefind

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// A theory is what rules say.
type theory struct {
	domain rulecheck.Domain
	pass   saturate.Pass
}

// The limits of saturation: for many pairs at once, which drops most of what follows; for one; and for a rule that is
// dropped, since what follows from it has to follow from the others with one step more.
var (
	manyPairs = saturate.Pass{Nodes: 8000, Laps: 4, Matches: 2000}
	onePair   = saturate.Pass{Nodes: 4000, Laps: 8, Matches: 1000}
	easily    = saturate.Pass{Nodes: 2000, Laps: 4, Matches: 1000}
	oneCase   = saturate.Pass{Nodes: 2000, Laps: 6, Matches: 1000}
)

// batch is how many pairs are asked about at once.
const batch = 128

// newTheory compiles rules.
func newTheory(d rulecheck.Domain, limits saturate.Pass, rules []rewrite.NodeRewriter) (*theory, error) {
	t := &theory{domain: d, pass: limits.With(rules)}
	if len(t.pass.Rules) == 0 {
		return t, nil
	}
	return t, t.pass.Prepare()
}

// compatible returns the rules that can be used together: a name may be an op in one and a family in another.
func compatible(rules []rewrite.NodeRewriter) (list []rewrite.NodeRewriter) {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r rewrite.NodeRewriter) bool { return saturate.Check(r) != nil })
	if p := (saturate.Pass{Rules: rules}); p.Prepare() == nil {
		return rules
	}
	for _, r := range rules {
		if p := (saturate.Pass{Rules: append(slices.Clip(list), r)}); p.Prepare() == nil {
			list = append(list, r)
		}
	}
	return list
}

// compiled returns a rule as saturation takes it, in both directions where it has no more variables on one side: that
// two terms are equal may show in a third one, which is dearer than both.
func compiled(d rulecheck.Domain, r pattern.Rule) (rewrite.NodeRewriter, error) {
	two := r
	two.Cases = slices.Clone(r.Cases)
	for i, w := range r.Cases {
		if _, ok := w.Out.(*pattern.Call); ok && !w.Equation && maps.Equal(names(w.In.Expr), names(w.Out)) {
			two.Cases[i].Equation, two.Cases[i].Back = true, w.In.Guards
		}
	}
	if s, err := pattern.New(d.Vocabulary(), two, pattern.Shared()); err == nil {
		return s, nil
	}
	return pattern.New(d.Vocabulary(), r, pattern.Shared())
}

// names returns the names in an expression.
func names(e pattern.Expr) map[pattern.Name]bool {
	set := make(map[pattern.Name]bool)
	pattern.Walk(e, func(e pattern.Expr) {
		if n, ok := e.(pattern.Name); ok {
			set[n] = true
		}
	})
	return set
}

// derives reports which of the pairs follow.
func (t *theory) derives(ctx context.Context, pairs [][2]*fgraph.Variable) ([]bool, error) {
	lists, err := rulecheck.ForAll(slices.Collect(slices.Chunk(pairs, batch)), func(pairs [][2]*fgraph.Variable) ([]bool, error) { return t.ask(ctx, pairs, nil) })
	return slices.Concat(lists...), err
}

// ask asks about some pairs at once. Where rules make everything equal, which shows in two inputs that
// are, the pairs are halved until the term that is to blame is alone.
func (t *theory) ask(ctx context.Context, pairs [][2]*fgraph.Variable, given map[string][2]float64) ([]bool, error) {
	if len(t.pass.Rules) == 0 {
		return make([]bool, len(pairs)), ctx.Err()
	}
	var outputs []*fgraph.Variable
	for _, p := range pairs {
		outputs = append(outputs, p[0], p[1])
	}
	g, err := t.domain.Graph(outputs)
	if err != nil {
		return nil, err
	}
	equal, err := t.pass.Equal(ctx, g, given)
	if !errors.Is(err, saturate.ErrCollapsed) {
		return equal, err
	}
	if len(pairs) == 1 {
		return []bool{false}, nil
	}
	left, err := t.ask(ctx, pairs[:len(pairs)/2], given)
	if err != nil {
		return nil, err
	}
	right, err := t.ask(ctx, pairs[len(pairs)/2:], given)
	return append(left, right...), err
}

// underived returns the candidates that do not follow from rules.
func underived(ctx context.Context, d rulecheck.Domain, limits saturate.Pass, rules []rewrite.NodeRewriter, list []*candidate) ([]*candidate, error) {
	t, err := newTheory(d, limits, rules)
	if err != nil {
		return nil, err
	}
	pairs := lists.Map(list, func(c *candidate) [2]*fgraph.Variable { return c.sides })
	of := t.derives
	if limits.Nodes == onePair.Nodes {
		of = t.alone
	}
	equal, err := of(ctx, pairs)
	return without(list, equal), err
}

// without returns what is left of a list without those that follow.
func without(list []*candidate, follows []bool) (left []*candidate) {
	for i, does := range follows {
		if !does {
			left = append(left, list[i])
		}
	}
	return left
}

// alone reports which of the pairs follow, each asked about alone.
func (t *theory) alone(ctx context.Context, pairs [][2]*fgraph.Variable) ([]bool, error) {
	return rulecheck.ForAll(pairs, func(p [2]*fgraph.Variable) (bool, error) {
		equal, err := t.ask(ctx, [][2]*fgraph.Variable{p}, nil)
		return err == nil && equal[0], err
	})
}

// uncased returns the candidates that do not follow by cases either: by the signs of variables, and on what sides they are
// of the numbers in terms.
func (s *search) uncased(ctx context.Context, rules []rewrite.NodeRewriter, list []*candidate) ([]*candidate, error) {
	if s.space.Cells == nil {
		return list, nil
	}
	t, err := newTheory(s.d, oneCase, rules)
	if err != nil {
		return nil, err
	}
	numbers := []float64{0}
	for _, l := range s.o.Constants {
		if x, err := strconv.ParseFloat(string(l), 64); err == nil {
			numbers = append(numbers, x)
		}
	}
	slices.Sort(numbers)
	cells := s.space.Cells(slices.Compact(numbers))
	follows, err := rulecheck.ForAll(list, func(c *candidate) (bool, error) {
		names := lists.Map(c.vars, (*fgraph.Variable).Name)
		return t.cases(ctx, c.sides, cells, names, make(map[string][2]float64))
	})
	return without(list, follows), err
}

// cases reports whether both sides of a pair are equal wherever its variables are in the cells of a list: each in those
// of one variable, or else of the others besides.
func (t *theory) cases(ctx context.Context, p [2]*fgraph.Variable, cells [][2]float64, vars []string, given map[string][2]float64) (bool, error) {
	for i, name := range vars {
		holds := true
		for _, c := range cells {
			in := maps.Clone(given)
			in[name] = c
			equal, err := t.ask(ctx, [][2]*fgraph.Variable{p}, in)
			if err == nil && !equal[0] {
				equal[0], err = t.cases(ctx, p, cells, vars[i+1:], in)
			}
			if err != nil {
				return false, err
			}
			if holds = equal[0]; !holds {
				break
			}
		}
		if holds {
			return true, nil
		}
	}
	return false, nil
}

// independent returns those of a list of rules that do not follow from the others and from known ones. The last
// ones go first.
func independent[T any](ctx context.Context, s *search, known []rewrite.NodeRewriter, list []T, of func(T) theorem) ([]T, error) {
	// What has gone must follow from what stays: from a rule that goes later, too, it may only follow because that
	// was there, since a rule from left to right does not say how to get back.
	var gone [][2]*fgraph.Variable
	for i := len(list) - 1; i >= 0; i-- {
		this := of(list[i])
		if this.general && len(this.more) == 0 {
			continue // of whose parameters there is one instance only
		}
		others := slices.Clone(known)
		for k, x := range list {
			if k != i {
				others = append(others, of(x).rule)
			}
		}
		t, err := newTheory(s.d, easily, others)
		if err != nil {
			return nil, err
		}
		pairs := append(slices.Clip(this.more), this.sides)
		equal, err := t.ask(ctx, pairs, nil)
		if err != nil {
			return nil, err
		}
		if slices.Contains(equal, false) {
			continue
		}
		pairs = append(pairs, gone...)
		if equal, err = t.alone(ctx, pairs); err != nil {
			return nil, err
		}
		if !slices.Contains(equal, false) {
			list, gone = slices.Delete(list, i, i+1), pairs
		}
	}
	return list, nil
}
