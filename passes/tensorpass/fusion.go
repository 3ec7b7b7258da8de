package tensorpass

import (
	"context"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

func flattenAddMul(c *rewrite.Context, n *apply) (result, error) {
	z := &products
	if op, _ := elemOf(n); op == array.Add {
		z = &sums
	}
	terms, _, saves := z.flat(n)
	if !saves || z.nested(n.Out(), onlyClient(n.Out())) {
		return c.Miss("no term is a sum or product of its own, with a single use, or it is a term of a larger one"), nil
	}
	return replace(c, n, tensor.Map(z.main, terms...))
}

// What a fused op may grow to. Theano allows 1024 inputs in C and 31 without.
const (
	maxInputs = 100 // an in-place op can number that many
	maxFused  = 400 // the intermediate results fit in the first-level cache
)

// elemwiseFusion returns the pass composite_elemwise_fusion: element-wise applies that compute from
// each other, on tensors of one shape, become one apply that goes through memory once. It takes
// time in proportion to the graph.
//
// Two applies can be fused if no path leads from one to the other by way of something that is not
// fused with them. To see that without searching, every apply gets a rank, which grows along every
// edge that is not fused. So applies of one rank that fusable edges connect have no other path
// between them.
func elemwiseFusion() rewrite.GraphRewriter {
	return rewrite.Global{
		Name:  "composite_elemwise_fusion",
		Doc:   "element-wise ops become one op that goes through memory once: exp(x)*y + 1 → Composite(x, y)",
		Class: profile.ClassFusion, Fn: fuseElemwise,
	}
}

func fuseElemwise(ctx context.Context, h *rewrite.Handle) error {
	f := &fusing{g: h.Graph(), h: h}
	f.order = slices.Collect(f.g.Ordered())
	f.guards = tensor.GuardsOf(f.g, slices.Values(f.order))
	f.rankUp()
	f.rankDown()
	fused, replaced := 0, 0
	for i, group := range f.groups() {
		if i%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		done, err := f.fuse(group)
		if err != nil {
			return err
		}
		if done {
			fused, replaced = fused+1, replaced+len(group)
		}
	}
	rec := h.Recorder()
	rec.Count("nb_iter", 1, "")
	rec.Count("nb_fused", float64(fused), "")
	rec.Count("nb_replacement", float64(replaced), "")
	rec.Count("nb_inconsistency_replace", float64(h.Refused()), "")
	return nil
}

// fusing is a run of the pass. Tables are indexed by the numbers of applies.
type fusing struct {
	g      *fgraph.FunctionGraph
	h      *rewrite.Handle
	order  []*apply
	guards *tensor.Guards
	rank   []int
}

// fusable reports whether an apply is element-wise and not in place.
func fusable(a *apply) bool {
	switch op := a.Op().(type) {
	case tensor.Elemwise:
		return op.Inplace == 0
	case *tensor.CompositeOp:
		return len(op.DestroyMap()) == 0
	case tensor.Fusible:
		return len(a.Outputs()) == 1 && !destroys(op)
	}
	return false
}

// joins reports whether a and its reader b may become one: both are element-wise, a is not broadcast, and
// b is not only a matter of a branch while others need a.
func (f *fusing) joins(a, b *apply) bool {
	return fusable(a) && fusable(b) && samePattern(a.Out(), b.Out()) && f.guards.Same(a, b)
}

// rankUp gives every apply the lowest rank that it can have.
func (f *fusing) rankUp() {
	f.rank = make([]int, f.g.NumApplyIDs())
	for _, b := range f.order {
		r := 0
		for _, v := range b.Inputs() {
			if a := v.Owner(); a != nil {
				step := 1
				if f.joins(a, b) {
					step = 0
				}
				r = max(r, f.rank[a.ID()]+step)
			}
		}
		f.rank[b.ID()] = r
	}
}

// rankDown raises the rank of an apply to that of a client that it can be fused with, where the
// other clients allow it.
func (f *fusing) rankDown() {
	for i := len(f.order) - 1; i >= 0; i-- {
		a := f.order[i]
		if !fusable(a) {
			continue
		}
		bound, meets := -1, false
		for _, v := range a.Outputs() {
			for _, c := range v.Clients() {
				if c.Apply == nil {
					continue
				}
				r, join := f.rank[c.Apply.ID()], f.joins(a, c.Apply)
				if !join {
					r--
				}
				if bound < 0 || r < bound {
					bound, meets = r, join
				} else if r == bound {
					meets = meets || join
				}
			}
		}
		if meets && bound > f.rank[a.ID()] {
			f.rank[a.ID()] = bound
		}
	}
}

// groups returns the groups of applies that become one. The members of a group are in order, and
// the groups are in the order of their last members.
func (f *fusing) groups() [][]*apply {
	parent := make([]int32, f.g.NumApplyIDs())
	for i := range parent {
		parent[i] = int32(i)
	}
	find := func(i int32) int32 {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for _, b := range f.order {
		for _, v := range b.Inputs() {
			if a := v.Owner(); a != nil && f.joins(a, b) && f.rank[a.ID()] == f.rank[b.ID()] {
				parent[find(int32(a.ID()))] = find(int32(b.ID()))
			}
		}
	}
	// A group is cut where it grows too large. A complete part comes before what is computed from
	// it.
	open := make([]int32, f.g.NumApplyIDs()) // by representative: 1 + the index of the group that is being filled
	inputs := make([]int, 0, 64)
	var groups [][]*apply
	for _, a := range f.order {
		if !fusable(a) {
			continue
		}
		r := find(int32(a.ID()))
		k := int(open[r]) - 1
		if k < 0 || len(groups[k]) >= maxFused || inputs[k]+len(a.Inputs()) > maxInputs {
			k = len(groups)
			groups, inputs = append(groups, nil), append(inputs, 0)
			open[r] = int32(k + 1)
		}
		groups[k] = append(groups[k], a)
		for _, v := range a.Inputs() { // an upper bound: it counts shared inputs several times
			if p := v.Owner(); (p == nil || find(int32(p.ID())) != r) && !tensor.Inlined(v) {
				inputs[k]++
			}
		}
	}
	return groups
}

// fuse replaces the members of a group with one apply.
func (f *fusing) fuse(group []*apply) (bool, error) {
	if len(group) < 2 || slices.ContainsFunc(group, func(a *apply) bool { return !f.g.Contains(a) }) {
		return false, nil
	}
	a, old, err := tensor.Fuse(group)
	if a == nil || err != nil || len(a.Inputs()) > maxInputs {
		return false, err
	}
	a.SetOrigin(group[len(group)-1].Origin())
	pairs := make([]fgraph.Replacement, len(old))
	for i, v := range old {
		if !v.Type().Accepts(a.Outputs()[i].Type()) {
			return false, nil
		}
		pairs[i] = fgraph.Replacement{Old: v, New: a.Outputs()[i]}
	}
	return f.h.Replace("", group[len(group)-1], pairs...)
}
