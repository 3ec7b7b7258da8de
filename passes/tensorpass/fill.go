package tensorpass

import (
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// fillSink is local_fill_sink.
func fillSink() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_fill_sink", Doc: "broadcasting comes after computing: f(fill(a, b), c) → fill(a, f(b, c))", Depth: 2,
		On: []rewrite.Track{rewrite.TrackType[tensor.Elemwise]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, ok := elemOf(n)
			if !ok || op == array.Second && elem(n.Inputs()[1], array.Second) == nil {
				return none, nil
			}
			in, models := unfilled(n, op)
			if models == nil {
				return none, nil
			}
			v := tensor.MustApply(n.Op().(tensor.Elemwise), in...)
			if op == array.Second && !n.Out().Type().Accepts(v.Type()) {
				return c.Miss("it takes both models to make the shape"), nil // in either order
			}
			return replace(c, n, v, append(in, models...)...)
		},
	}
}

// unfilled returns the inputs of an element-wise apply with values in the place of what broadcasts them, and what they were broadcast to;
// nil if there is nothing of the sort.
func unfilled(n *apply, op array.Opcode) (in, models []*vari) {
	for i, v := range n.Inputs() {
		a := elem(v, array.Second)
		if a == nil || op == array.Second && i == 0 {
			continue
		}
		if in == nil {
			in = append(in, n.Inputs()...)
		}
		in[i] = a.Inputs()[1]
		models = append(models, a.Inputs()[0])
	}
	return in, models
}

// fillCut is local_fill_cut. In Theano 0.7 it compares an op with a class and never fires; what it was to do is a special case of
// local_fill_sink, for which it saves a step.
func fillCut() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_fill_cut", Doc: "a value need not be broadcast where another argument does that: f(fill(a, b), c) → f(b, c)", Depth: 2,
		On: []rewrite.Track{rewrite.TrackType[tensor.Elemwise]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, ok := elemOf(n)
			if !ok || op == array.Second {
				return none, nil
			}
			in, models := unfilled(n, op)
			if models == nil {
				return none, nil
			}
			v := tensor.MustApply(n.Op().(tensor.Elemwise), in...)
			if !n.Out().Type().Accepts(v.Type()) {
				return c.Miss("the other arguments do not have the shape of the result"), nil
			}
			return rewrite.Replace(v), nil
		},
	}
}

// uselessFill is local_useless_fill.
func uselessFill() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_useless_fill", Doc: "a value that has the shape already is not broadcast: fill(x, y) → y", On: on(array.Second), Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if v := n.Inputs()[1]; n.Out().Type().Accepts(v.Type()) {
				return rewrite.Replace(v), nil
			}
			return c.Miss("the value has not the shape of the model"), nil
		},
	}
}

// fillToAlloc is local_fill_to_alloc.
func fillToAlloc() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_fill_to_alloc", Doc: "of the model of a fill only the shape is needed: fill(x, v) → Alloc(v, Shape_i{0}(x))", On: on(array.Second),
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			out, v := n.Out(), n.Inputs()[1]
			if out.Type().Accepts(v.Type()) {
				return rewrite.Replace(v), nil
			}
			return replace(c, n, tensor.Alloc(shrunk(v), tensor.ShapesOf(c.Graph()).Shape(out)...))
		},
	}
}

// shrunk returns a value to broadcast without dimensions in front that it does not need.
func shrunk(v *vari) *vari {
	if a := tensor.ConstantOf(v); a != nil && a.Len() == 1 {
		return tensor.Constant(a.Reshape())
	}
	return stripPadding(v)
}

// uselessAlloc is local_useless_alloc.
func uselessAlloc() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_useless_alloc", Doc: "an Alloc that broadcasts nothing is its value", On: []rewrite.Track{rewrite.TrackOp(tensor.AllocOp{})}, Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v := n.Inputs()[0]
			if !n.Out().Type().Accepts(v.Type()) {
				return c.Miss("it broadcasts a %v to a %v", v.Type(), n.Out().Type()), nil
			}
			s := tensor.ShapesOf(c.Graph())
			for d, want := range n.Inputs()[1:] {
				if typ(v).Dim(d) != 1 && !sameSize(s.Dim(v, d), want) {
					// The Alloc checks that the sizes are the same; so does an Assert.
					return c.Miss("it is not known that dimension %d has that size", d), nil
				}
			}
			return rewrite.Replace(v), nil
		},
	}
}

// sameSize reports whether two integer scalars are known to be equal: they are one variable, equal constants, or the same dimension
// of one variable.
func sameSize(a, b *vari) bool {
	if a == b {
		return true
	}
	x, ok := uniform(a)
	y, ok2 := uniform(b)
	if ok || ok2 {
		return ok && ok2 && x == y
	}
	if p, op, ok := owner[tensor.ShapeIOp](a); ok {
		q, op2, ok := owner[tensor.ShapeIOp](b)
		return ok && op == op2 && p.Inputs()[0] == q.Inputs()[0]
	}
	return false
}

// mergeAlloc is local_merge_alloc.
func mergeAlloc() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_merge_alloc", Doc: "of two Allocs one is enough: Alloc(Alloc(v, n), m, n) → Alloc(v, m, n)", On: []rewrite.Track{rewrite.TrackOp(tensor.AllocOp{})}, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
			if !ok {
				return c.Miss("the value is no Alloc"), nil
			}
			outer, inner := n.Inputs()[1:], a.Inputs()[1:]
			pad := len(outer) - len(inner)
			for d, size := range inner {
				if typ(a.Out()).Dim(d) != 1 && !sameSize(size, outer[pad+d]) {
					return c.Miss("it is not known that dimension %d has one size in both", d), nil
				}
			}
			return replace(c, n, tensor.Alloc(a.Inputs()[0], outer...))
		},
	}
}

// canonicalizeAlloc is local_canonicalize_alloc.
func canonicalizeAlloc() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_canonicalize_alloc", Doc: "dimensions of size 1 in front are added after filling, where others see them: Alloc(v, 1, n) → DimShuffle{x,0}(Alloc(v, n)); uncanonicalize undoes it", Depth: 1,
		On: []rewrite.Track{rewrite.TrackOp(tensor.AllocOp{})},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v, dims := n.Inputs()[0], n.Inputs()[1:]
			ones := 0
			for ones < len(dims)-typ(v).NDim() && is(dims[ones], 1) {
				ones++
			}
			if ones == 0 || ones == len(dims) {
				return c.Miss("no size in front is 1, or all are"), nil
			}
			return replace(c, n, tensor.PadLeft(tensor.Alloc(v, dims[ones:]...), len(dims)))
		},
	}
}

// elemwiseAlloc is local_elemwise_alloc.
func elemwiseAlloc() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_elemwise_alloc", Doc: "a value need not be filled in where another argument broadcasts it: Alloc(v, n) + x → DimShuffle{x}(v) + x",
		On: []rewrite.Track{rewrite.TrackType[tensor.Elemwise]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, ok := elemOf(n)
			if !ok || op == array.Second {
				return none, nil
			}
			var in, guard []*vari
			s := tensor.ShapesOf(c.Graph())
			model := modelOf(n)
			if model == nil {
				return none, nil
			}
			for i, v := range n.Inputs() {
				a, _, ok := owner[tensor.AllocOp](v)
				if !ok || v == model {
					continue
				}
				if in == nil {
					in = append(in, n.Inputs()...)
				}
				in[i] = tensor.PadLeft(a.Inputs()[0], typ(v).NDim())
				for d, size := range a.Inputs()[1:] {
					if other := s.Dim(model, d); typ(v).Dim(d) != 1 && !sameSize(size, other) {
						guard = append(guard, tensor.Map(array.Eq, size, other))
					}
				}
			}
			if in == nil {
				return c.Miss("no argument is an Alloc that another one broadcasts"), nil
			}
			if len(guard) > 0 {
				for i, v := range in {
					if v == model {
						in[i] = tensor.Assert(v, "sizes of an Alloc and of what it is combined with differ", guard...)
						break
					}
				}
			}
			return replace(c, n, tensor.MustApply(n.Op().(tensor.Elemwise), in...))
		},
	}
}

// modelOf returns an argument that has the shape of the result of an element-wise apply: one that is no Alloc if possible. It is nil
// where no argument has it, or where there is no Alloc beside it.
func modelOf(n *apply) *vari {
	var plain, filled *vari
	allocs := 0
	for _, v := range n.Inputs() {
		_, _, isAlloc := owner[tensor.AllocOp](v)
		if isAlloc {
			allocs++
		}
		switch {
		case !samePattern(v, n.Out()):
		case isAlloc && filled == nil:
			filled = v
		case !isAlloc && plain == nil:
			plain = v
		}
	}
	switch {
	case allocs > 0 && plain != nil:
		return plain
	case allocs > 1:
		return filled
	}
	return nil
}

// samePattern reports whether two tensors have size 1 in the same dimensions, as far as it is known.
func samePattern(v, w *vari) bool {
	t, u := typ(v), typ(w)
	for d := range t.NDim() {
		if (t.Dim(d) == 1) != (u.Dim(d) == 1) {
			return false
		}
	}
	return true
}

// allocUnary is local_alloc_unary.
func allocUnary() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_alloc_unary", Doc: "a function of a filled tensor is computed once: exp(Alloc(v, n)) → Alloc(exp(v), n)", Depth: 2,
		On: []rewrite.Track{rewrite.TrackType[tensor.Elemwise]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if _, ok := elemOf(n); !ok || len(n.Inputs()) != 1 {
				return none, nil
			}
			a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
			if !ok {
				return none, nil
			}
			v := tensor.MustApply(n.Op().(tensor.Elemwise), a.Inputs()[0])
			return replace(c, n, tensor.Alloc(v, a.Inputs()[1:]...))
		},
	}
}
