package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// broadcastRules lists the rules of fill and Alloc, which broadcast.
func broadcastRules() []Local {
	onElemwise, onAlloc := onType[tensor.Elemwise](), onOp(tensor.AllocOp{})
	return []Local{
		rule(Canonicalize, "local_fill_cut", onElemwise, 2, fillCut,
			"a value need not be broadcast where another argument does that: f(fill(a, b), c) → f(b, c)"),
		rule(Canonicalize, "local_fill_sink", onElemwise, 2, fillSink,
			"values are broadcast after computing: f(fill(a, b), c) → fill(a, f(b, c))"),
		rule(Canonicalize|Specialize|Useless, "local_useless_fill", on(array.Second), 1, uselessFill,
			"a value that has the shape already is not broadcast: fill(x, y) → y"),
		rule(Stabilize|Specialize, "local_fill_to_alloc", on(array.Second), 0, fillToAlloc,
			"a fill needs only the shape of its model: fill(x, v) → Alloc(v, Shape_i{0}(x))"),
		rule(Canonicalize|Stabilize|Specialize|Useless, "local_useless_alloc", onAlloc, 1, uselessAlloc,
			"an Alloc that broadcasts nothing is its value"),
		rule(Canonicalize|Useless, "local_merge_alloc", onAlloc, 2, mergeAlloc,
			"one of two Allocs is enough: Alloc(Alloc(v, n), m, n) → Alloc(v, m, n)"),
		rule(Canonicalize, "local_canonicalize_alloc", onAlloc, 1, canonicalizeAlloc,
			"leading dimensions of size 1 are added after filling, where other rules see them: "+
				"Alloc(v, 1, n) → DimShuffle{x,0}(Alloc(v, n)); uncanonicalize undoes it"),
		rule(Specialize, "local_elemwise_alloc", onElemwise, 0, elemwiseAlloc,
			"a value need not be filled in where another argument broadcasts it: Alloc(v, n) + x → DimShuffle{x}(v) + x"),
		rule(Specialize, "local_alloc_unary", onElemwise, 2, allocUnary,
			"a function of a filled tensor is computed once: exp(Alloc(v, n)) → Alloc(exp(v), n)"),
		rule(Uncanonicalize, "local_alloc_dimshuffle", onAlloc, 2, allocDimShuffle,
			"an Alloc adds leading dimensions itself: Alloc(DimShuffle{x,0}(v), m, n) → Alloc(v, m, n)"),
		rule(Uncanonicalize, "local_dimshuffle_alloc", onDimShuffle(), 2, dimShuffleAlloc,
			"new leading dimensions of an Alloc are sizes 1 of it: DimShuffle{x,0}(Alloc(v, n)) → Alloc(v, 1, n)"),
	}
}

func fillSink(c *rewrite.Context, n *apply) (result, error) {
	op, ok := elemOf(n)
	if !ok || op == array.Second && elem(n.Inputs()[1], array.Second) == nil {
		return none, nil
	}
	in, models := unfilled(n, op)
	if models == nil {
		return none, nil
	}
	v := again(n, in...)
	if op == array.Second && !n.Out().Type().Accepts(v.Type()) {
		return c.Miss("it takes both models to make the shape"), nil // in either order
	}
	return replace(c, n, v, append(in, models...)...)
}

// unfilled returns the inputs of an element-wise apply without their fills, and the models of those
// fills. It returns nil if there are none.
func unfilled(n *apply, op array.Opcode) (in, models []*variable) {
	for i, v := range n.Inputs() {
		a := elem(v, array.Second)
		if a == nil || op == array.Second && i == 0 {
			continue
		}
		if in == nil {
			in = slices.Clone(n.Inputs())
		}
		in[i] = a.Inputs()[1]
		models = append(models, a.Inputs()[0])
	}
	return in, models
}

// fillCut never fires in Theano 0.7, where it compares an op with a class. What it was meant to do
// is a special case of local_fill_sink, for which it saves a step.
func fillCut(c *rewrite.Context, n *apply) (result, error) {
	op, ok := elemOf(n)
	if !ok || op == array.Second {
		return none, nil
	}
	in, models := unfilled(n, op)
	if models == nil {
		return none, nil
	}
	v := again(n, in...)
	if !n.Out().Type().Accepts(v.Type()) {
		return c.Miss("the other arguments do not have the shape of the result"), nil
	}
	return rewrite.Replace(v), nil
}

func uselessFill(c *rewrite.Context, n *apply) (result, error) {
	if v := n.Inputs()[1]; n.Out().Type().Accepts(v.Type()) {
		return rewrite.Replace(v), nil
	}
	return c.Miss("the value does not have the shape of the model"), nil
}

func fillToAlloc(c *rewrite.Context, n *apply) (result, error) {
	out, v := n.Out(), n.Inputs()[1]
	if out.Type().Accepts(v.Type()) {
		return rewrite.Replace(v), nil
	}
	w := stripPadding(v)
	if a := tensor.ConstantOf(v); a != nil && a.Len() == 1 {
		w = tensor.Constant(a.Reshape())
	}
	return replace(c, n, tensor.Alloc(w, tensor.ShapesOf(c.Graph()).Shape(out)...))
}

// uselessAlloc keeps an Alloc that checks sizes, which may fail.
func uselessAlloc(c *rewrite.Context, n *apply) (result, error) {
	v := n.Inputs()[0]
	if !n.Out().Type().Accepts(v.Type()) {
		return c.Miss("it broadcasts a %v to a %v", v.Type(), n.Out().Type()), nil
	}
	s := tensor.ShapesOf(c.Graph())
	for d, want := range n.Inputs()[1:] {
		if typeOf(v).Dim(d) != 1 && !sameSize(s.Dim(v, d), want) {
			return c.Miss("dimension %d is not known to have that size", d), nil
		}
	}
	return rewrite.Replace(v), nil
}

func mergeAlloc(c *rewrite.Context, n *apply) (result, error) {
	a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
	if !ok {
		return c.Miss("the value is not an Alloc"), nil
	}
	outer, inner := n.Inputs()[1:], a.Inputs()[1:]
	pad := len(outer) - len(inner)
	for d, size := range inner {
		if typeOf(a.Out()).Dim(d) != 1 && !sameSize(size, outer[pad+d]) {
			return c.Miss("dimension %d is not known to have one size in both", d), nil
		}
	}
	return replace(c, n, tensor.Alloc(a.Inputs()[0], outer...))
}

func canonicalizeAlloc(c *rewrite.Context, n *apply) (result, error) {
	v, dims := n.Inputs()[0], n.Inputs()[1:]
	ones := 0
	for ones < len(dims)-typeOf(v).NDim() && is(dims[ones], 1) {
		ones++
	}
	if ones == 0 || ones == len(dims) {
		return c.Miss("no leading size is 1, or all are"), nil
	}
	return replace(c, n, tensor.PadLeft(tensor.Alloc(v, dims[ones:]...), len(dims)))
}

func elemwiseAlloc(c *rewrite.Context, n *apply) (result, error) {
	op, ok := elemOf(n)
	if !ok || op == array.Second {
		return none, nil
	}
	model := modelOf(n)
	if model == nil {
		return none, nil
	}
	var in, guard []*variable
	s := tensor.ShapesOf(c.Graph())
	for i, v := range n.Inputs() {
		a, _, ok := owner[tensor.AllocOp](v)
		if !ok || v == model || losesOnes(v, a.Inputs()[0]) {
			continue
		}
		if in == nil {
			in = slices.Clone(n.Inputs())
		}
		in[i] = tensor.PadLeft(a.Inputs()[0], typeOf(v).NDim())
		for d, size := range a.Inputs()[1:] {
			if other := s.Dim(model, d); typeOf(v).Dim(d) != 1 && !sameSize(size, other) {
				guard = append(guard, tensor.Map(array.Eq, size, other))
			}
		}
	}
	if in == nil {
		return c.Miss("no argument is an Alloc that another one broadcasts"), nil
	}
	if i := slices.Index(in, model); i >= 0 && len(guard) > 0 {
		in[i] = tensor.Assert(model, "sizes of an Alloc and of what it is combined with differ", guard...)
	}
	return replace(c, n, again(n, in...))
}

// losesOnes reports whether the type of v says that a dimension has size 1, and so is broadcast, and
// the type of what an Alloc makes v of does not.
func losesOnes(v, value *variable) bool {
	t, u := typeOf(v), typeOf(value)
	for d := 1; d <= u.NDim(); d++ {
		if t.Dim(t.NDim()-d) == 1 && u.Dim(u.NDim()-d) != 1 {
			return true
		}
	}
	return false
}

// modelOf returns an argument that has the shape of the result of an element-wise apply, if
// possible one that is not an Alloc. It returns nil if there is no such argument, or no Alloc
// beside it.
func modelOf(n *apply) *variable {
	var plain, filled *variable
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

func allocUnary(c *rewrite.Context, n *apply) (result, error) {
	if _, ok := elemOf(n); !ok || len(n.Inputs()) != 1 {
		return none, nil
	}
	a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
	if !ok {
		return none, nil
	}
	return replace(c, n, tensor.Alloc(again(n, a.Inputs()[0]), a.Inputs()[1:]...))
}
