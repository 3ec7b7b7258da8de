package saturate

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// pays reports whether the graph is cheaper with replacements, also after p.Later. What saturation finds
// is cheaper by itself, but later passes may make less of it, such as where two ops can't be fused any
// more. The graph does not change.
func (s *run) pays(ctx context.Context, pairs []fgraph.Replacement) (bool, error) {
	if s.p.Later == nil {
		return true, nil
	}
	plain, _ := s.h.Graph().Clone()
	tried, m := s.h.Graph().Clone()
	c := copier{m: m, made: make(map[*fgraph.Variable]*fgraph.Variable)}
	moved := make([]fgraph.Replacement, len(pairs))
	for i, p := range pairs {
		moved[i] = fgraph.Replacement{Old: m.Of(p.Old), New: c.copy(p.New)}
	}
	if err := tried.ReplaceAllValidate(moved, nil, fgraph.Reason{Pass: s.p.Name}); err != nil {
		return false, nil
	}
	var costs [2]float64
	for i, g := range []*fgraph.FunctionGraph{plain, tried} {
		for _, r := range s.p.Earlier {
			if err := r.AddRequirements(g); err != nil {
				return false, err
			}
		}
		options := rewrite.Options{OnFailure: rewrite.Ignore, MaxUse: rewrite.OptionsFrom(ctx).MaxUse}
		err := rewrite.Run(rewrite.WithOptions(ctx, options), s.p.Later, g, nil)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			return false, nil // it will fail without saturation, too, or only with it
		}
		for a := range g.Applies() {
			costs[i] += s.b.costOf(a)
		}
	}
	return costs[1] < costs[0], nil
}

// copier copies new variables of a graph to its clone.
type copier struct {
	m    *fgraph.Mapping
	made map[*fgraph.Variable]*fgraph.Variable
	todo []*fgraph.Variable
}

// copy returns the counterpart of a variable.
func (c *copier) copy(v *fgraph.Variable) *fgraph.Variable {
	c.todo = append(c.todo[:0], v)
next:
	for len(c.todo) > 0 {
		v := c.todo[len(c.todo)-1]
		if c.of(v) == nil {
			a := v.Owner()
			if a == nil {
				c.made[v] = fgraph.NewConstant(v.Type(), v.Data(), v.Name())
				continue
			}
			inputs := make([]*fgraph.Variable, len(a.Inputs()))
			for i, in := range a.Inputs() {
				if inputs[i] = c.of(in); inputs[i] == nil {
					c.todo = append(c.todo, in)
					continue next
				}
			}
			b := newApply(a, inputs)
			for i, out := range a.Outputs() {
				c.made[out] = b.Outputs()[i]
			}
		}
		c.todo = c.todo[:len(c.todo)-1]
	}
	return c.of(v)
}

func (c *copier) of(v *fgraph.Variable) *fgraph.Variable {
	if w := c.m.Of(v); w != nil {
		return w
	}
	return c.made[v]
}
