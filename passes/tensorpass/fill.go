package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// broadcastRules are the rules of fill and Alloc, which broadcast.
var broadcastRules = goRules{
	"local_fill_cut":           {onElemwise, of(on(array.Second)), 2, unfill(true)},
	"local_fill_sink":          {onElemwise, of(on(array.Second)), 2, unfill(false)},
	"local_fill_to_alloc":      {on(array.Second), nil, 0, fillToAlloc},
	"local_canonicalize_alloc": {onAlloc, nil, 1, canonicalizeAlloc},
	"local_elemwise_alloc":     {onElemwise, of(onAlloc, onDimShuffle), 0, elemwiseAlloc},
	"local_alloc_unary":        {onElemwise, of(onAlloc, onDimShuffle), 3, allocUnary},
	"local_dimshuffle_alloc":   {onDimShuffle, of(onAlloc), 2, dimShuffleOfAlloc(true)},
}

var onElemwise, onAlloc = onType[tensor.Elemwise](), onOp(tensor.AllocOp{})

// unfill returns the function of local_fill_cut or that of local_fill_sink. The first one never
// fires in Theano 0.7, where it compares an op with a class. It saves a step where the other
// arguments have the shape of the result.
func unfill(cut bool) transform {
	return func(c *rewrite.Context, n *apply) (result, error) {
		op, ok := elemOf(n)
		if !ok || op == array.Second && (cut || elem(n.Inputs()[1], array.Second) == nil) {
			return none, nil
		}
		in, models := unfilled(n, op)
		if models == nil {
			return none, nil
		}
		v := again(n, in...)
		if (cut || op == array.Second) && !n.Out().Type().Accepts(v.Type()) {
			return c.Miss("the other arguments, or one of two models, do not have the shape of the result"), nil
		}
		return replace(c, n, v, append(in, models...)...)
	}
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

// hasSizes reports whether v is known to have the last of some sizes, except where it is broadcast.
func hasSizes(s *tensor.Shapes, v *variable, sizes []*variable) bool {
	for d, want := range sizes[len(sizes)-typeOf(v).NDim():] {
		if typeOf(v).Dim(d) != 1 && !sameSize(s.Dim(v, d), want) {
			return false
		}
	}
	return true
}

func canonicalizeAlloc(c *rewrite.Context, n *apply) (result, error) {
	v, dims := stripPadding(n.Inputs()[0]), n.Inputs()[1:]
	ones := 0
	for ones < len(dims)-typeOf(v).NDim() && is(dims[ones], 1) {
		ones++
	}
	if ones == 0 || ones == len(dims) {
		return c.Miss("no leading size is 1, or all are"), nil
	}
	return replace(c, n, tensor.PadLeft(tensor.Alloc(v, dims[ones:]...), len(dims)))
}

// elemwiseAlloc takes one Alloc after the other, from the last one, as those that are left
// broadcast it. Where it is not known that a size is that of the other argument, it is checked.
func elemwiseAlloc(c *rewrite.Context, n *apply) (result, error) {
	op, ok := elemOf(n)
	isAlloc := func(v *variable) bool { _, _, ok := owner[tensor.AllocOp](stripPadding(v)); return ok }
	if !ok || op == array.Second || len(n.Inputs()) == 1 || !slices.ContainsFunc(n.Inputs(), isAlloc) {
		return none, nil
	}
	s := tensor.ShapesOf(c.Graph())
	in := slices.Clone(n.Inputs())
	checks := make([][]*variable, len(in))
	for i, v := range slices.Backward(n.Inputs()) {
		a, _, ok := owner[tensor.AllocOp](stripPadding(v))
		if !ok || losesOnes(v, a.Inputs()[0]) {
			continue
		}
		in[i] = tensor.PadLeft(a.Inputs()[0], typeOf(v).NDim())
		of := make([]int, typeOf(v).NDim()) // the argument that has a dimension
		for d := range of {
			if of[d] = -1; typeOf(v).Dim(d) != 1 {
				if of[d] = broadcasts(s, in, d, s.Dim(v, d)); of[d] < 0 {
					in[i] = v
					break
				}
			}
		}
		if in[i] == v {
			continue
		}
		for d, k := range of {
			if k >= 0 {
				checks[k] = append(checks[k], equalSizes(s.Dim(v, d), s.Dim(in[k], d)))
			}
		}
	}
	if slices.Equal(in, n.Inputs()) {
		return c.Miss("no argument is an Alloc that others broadcast"), nil
	}
	for k, list := range checks {
		in[k] = provided(in[k], "sizes of an Alloc and of what it is combined with differ", list...)
	}
	return replace(c, n, again(n, in...))
}

// losesOnes reports whether the type of v says that a dimension has size 1, and so is broadcast,
// and the type of what an Alloc makes v of does not.
func losesOnes(v, value *variable) bool {
	sizes := typeOf(value).Shape()
	for d, size := range typeOf(v).Shape()[typeOf(v).NDim()-len(sizes):] {
		if size == 1 && sizes[d] != 1 {
			return true
		}
	}
	return false
}

// broadcasts returns which argument gives the result its dimension d: one that is known to have a
// size, or else one that is not an Alloc, or any. It returns -1 if there is none.
func broadcasts(s *tensor.Shapes, in []*variable, d int, size *variable) int {
	best, found := -1, 0
	for k, v := range in {
		if typeOf(v).Dim(d) == 1 {
			continue
		}
		_, _, alloc := owner[tensor.AllocOp](stripPadding(v))
		rank := 2
		switch {
		case sameSize(size, s.Dim(v, d)):
			rank = 3
		case alloc:
			rank = 1
		}
		if rank > found {
			best, found = k, rank
		}
	}
	return best
}

// allocUnary is not text because every element-wise apply is shown to it: matching would take a
// fifth of the time of specialize.
func allocUnary(c *rewrite.Context, n *apply) (result, error) {
	var filled *apply
	op, isElem := elemOf(n)
	in := slices.Clone(n.Inputs())
	for i, v := range in {
		a, _, ok := owner[tensor.AllocOp](stripPadding(v))
		switch {
		case ok && filled == nil && !isScalar(v):
			filled, in[i] = a, tensor.PadLeft(a.Inputs()[0], typeOf(v).NDim())
		case !isScalar(v):
			return none, nil // or another Alloc
		}
	}
	if filled == nil || !isElem || op == array.Second {
		return none, nil
	}
	sizes := filled.Inputs()[1:]
	for len(sizes) < typeOf(n.Out()).NDim() {
		sizes = append([]*variable{tensor.Int(1)}, sizes...)
	}
	return replace(c, n, tensor.Alloc(stripElemwisePadding(again(n, in...)), sizes...))
}

// stripElemwisePadding returns an element-wise apply without leading dimensions that all its arguments
// have got in addition.
func stripElemwisePadding(v *variable) *variable {
	a, least := v.Owner(), 0
	for _, x := range a.Inputs() {
		x = stripPadding(x)
		if c := tensor.ConstantOf(x); c != nil && c.Len() == 1 {
			continue
		}
		least = max(least, typeOf(x).NDim())
	}
	if least >= typeOf(v).NDim() {
		return v
	}
	return again(a, mapped(a.Inputs(), func(x *variable) *variable {
		x = stripPadding(x)
		if c := tensor.ConstantOf(x); c != nil && c.Len() == 1 {
			x = tensor.Constant(c.Reshape())
		}
		return tensor.PadLeft(x, least)
	})...)
}
