package onnxpass

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
)

// normFunctions are about means of x and its squares over dimensions i.
var normFunctions = []pattern.Function{
	pattern.NewGuard("same_reduction({k}, {l}, x, i, j)", 1, "reductions of x over the dimensions i and j keep dimensions and are over the same", func(a pattern.Args) bool {
		p, ok := keptAxes(a.Params[0], a.Vars[0], a.Vars[1])
		q, too := keptAxes(a.Params[1], a.Vars[0], a.Vars[2])
		return ok && too && slices.Equal(p, q)
	}),
	pattern.NewGuard("trailing({k}, x, i)", 1, "a reduction of x is over the last dimensions i, whose sizes are known, and keeps them", func(a pattern.Args) bool {
		_, ok := trailing(a.Params[0], a.Vars[0], a.Vars[1])
		return ok
	}),
	attributesFunction("norm({k}, x, i, e)", "the attributes of a normalization of x over the dimensions i with the term e", func(a pattern.Args, _ attributeList) attributeList {
		sizes, _ := trailing(a.Params[0], a.Vars[0], a.Vars[1])
		return attributeList{ir.Int("axis", -int64(len(sizes))), ir.Float("epsilon", numberAt(a, 2))}
	}),
	pattern.NewBuilder("(ones x i)", 1, "ones with the sizes of the dimensions i of x, which are the last", func(a pattern.Args) (*fgraph.Variable, error) {
		sizes, ok := trailing(Attributes(""), a.Vars[0], a.Vars[1])
		if !ok {
			return nil, fmt.Errorf("%w: unknown sizes", errNotComputed)
		}
		return ir.Filled(1, ir.TypeOf(a.Vars[0]).Elem(), sizes...)
	}),
	pattern.NewGuard("sized_like(g, n)", 2, "g has the shape of the dimensions that n is normalized over", func(a pattern.Args) bool {
		g, ranked := ir.TypeOf(a.Vars[0]).Shape()
		dims, ok := normalizedOver(a.Vars[1])
		return ok && ranked && ir.TypeOf(a.Vars[0]).Elem() == ir.TypeOf(a.Vars[1]).Elem() && slices.EqualFunc(g, dims, ir.Dim.Same)
	}),
	pattern.NewGuard("within(g, n)", 2, "g is broadcast to the shape of the dimensions that n is normalized over", func(a pattern.Args) bool {
		g, ranked := ir.TypeOf(a.Vars[0]).Shape()
		dims, ok := normalizedOver(a.Vars[1])
		return ok && ranked && fitsInto(g, dims)
	}),
	pattern.NewGuard("spatial({k}, x, i)", 1, "a reduction of x is over the dimensions i, which are all behind that of channels, and keeps them", func(a pattern.Args) bool {
		axes, ok := keptAxes(a.Params[0], a.Vars[0], a.Vars[1])
		rank := ir.TypeOf(a.Vars[0]).Rank()
		return ok && rank >= 3 && len(axes) == rank-2 && axes[0] == 2
	}),
	pattern.NewGuardOfEach("image(x)", 1, "x has at least two dimensions behind that of channels", func(x *fgraph.Variable) bool { return ir.TypeOf(x).Rank() >= 4 }),
	pattern.NewGuard("of_norm(x, m)", 0, "m, a mean of x, is a part of a normalization: it is subtracted from x, or x is a square", func(a pattern.Args) bool {
		x, m := a.Vars[0], a.Vars[1]
		if isOp(x, "Pow", "Mul") {
			return true
		}
		return slices.ContainsFunc(m.Clients(), func(c fgraph.Client) bool {
			return c.Apply != nil && isOp(c.Apply.Out(), "Sub") && slices.Contains(c.Apply.Inputs(), x)
		})
	}),
	attributesFunction("epsilon_of(e)", "the attribute epsilon", func(a pattern.Args, _ attributeList) attributeList {
		return attributeList{ir.Float("epsilon", numberAt(a, 0))}
	}),
	pattern.NewBuilder("(channel_of c x)", 1, "the number c for each channel of x", func(a pattern.Args) (*fgraph.Variable, error) {
		dims, ranked := ir.TypeOf(a.Vars[1]).Shape()
		if !ranked || len(dims) < 2 {
			return nil, fmt.Errorf("%w: no channels", errNotComputed)
		}
		size, known := dims[1].Number()
		c, ok := ir.NumberOf(a.Vars[0])
		if !known || !ok {
			return nil, fmt.Errorf("%w: an unknown number of channels", errNotComputed)
		}
		return ir.Filled(c, ir.TypeOf(a.Vars[1]).Elem(), size)
	}),
}

// reductionFunctions are about other reductions of x over dimensions i.
var reductionFunctions = []pattern.Function{
	pattern.NewGuard("reducing({a}, x, i)", 1, "a reduction of x, which has dimensions, is over those of the constant i, or over all", func(a pattern.Args) bool {
		if ir.TypeOf(a.Vars[0]).Rank() < 1 {
			return false
		}
		if len(a.Vars) == 1 || ir.IsOmitted(a.Vars[1]) {
			return parse(a.Params[0]).Int("noop_with_empty_axes", 0) == 0
		}
		list, ok := ir.NumbersOf(a.Vars[1])
		return ok && len(list) > 0 && isConstant(a.Vars[1])
	}),
	attributesFunction("keepdims({a})", "whether a reduction keeps dimensions", func(a pattern.Args, list attributeList) attributeList {
		return list.without("noop_with_empty_axes")
	}),
	pattern.NewGuard("one_axis({k}, x, i)", 1, "a reduction of x is over one dimension i, and keeps it", func(a pattern.Args) bool {
		axes, ok := keptAxes(a.Params[0], a.Vars[0], a.Vars[1])
		return ok && len(axes) == 1
	}),
	attributesFunction("axis_of(x, i)", "the attribute axis", func(a pattern.Args, _ attributeList) attributeList {
		return attributeList{ir.Int("axis", int64(axisAt(a)))}
	}),
	attributesFunction("lp_1(x, i)", "the attributes of a norm of absolute values", func(a pattern.Args, _ attributeList) attributeList {
		return attributeList{ir.Int("axis", int64(axisAt(a))), ir.Int("p", 1)}
	}),
	attributesFunction("lp_2(x, i)", "the attributes of a norm of squares", func(a pattern.Args, _ attributeList) attributeList {
		return attributeList{ir.Int("axis", int64(axisAt(a))), ir.Int("p", 2)}
	}),
}

// keptAxes returns the dimensions, in order, that a reduction with captured attributes is over. ok is
// false if they are not known, all that there are because none is given, or not kept.
func keptAxes(captured any, x, axes *fgraph.Variable) (list []int, ok bool) {
	rank := ir.TypeOf(x).Rank()
	numbers, known := ir.NumbersOf(axes)
	if rank < 0 || !known || len(numbers) == 0 || parse(captured).Int("keepdims", 1) != 1 {
		return nil, false
	}
	for _, n := range numbers {
		k, in := normalized(n, rank)
		if !in || slices.Contains(list, k) {
			return nil, false
		}
		list = append(list, k)
	}
	slices.Sort(list)
	return list, true
}

// trailing returns the sizes of dimensions that a reduction is over if they are the last ones.
func trailing(captured any, x, axes *fgraph.Variable) (sizes []int64, ok bool) {
	list, ok := keptAxes(captured, x, axes)
	dims, _ := ir.TypeOf(x).Shape()
	if !ok || list[0] != len(dims)-len(list) {
		return nil, false
	}
	for _, k := range list {
		n, known := dims[k].Number()
		if !known {
			return nil, false
		}
		sizes = append(sizes, n)
	}
	return sizes, true
}

// normalizedOver returns the sizes of the dimensions over which LayerNormalization normalizes.
func normalizedOver(n *fgraph.Variable) ([]ir.Dim, bool) {
	if !isOp(n, "LayerNormalization") || len(n.Owner().Outputs()) != 1 {
		return nil, false
	}
	dims, ranked := ir.TypeOf(n).Shape()
	axis, ok := axisOf(opOf(n), -1, len(dims))
	if !ranked || !ok {
		return nil, false
	}
	return dims[axis:], true
}

// axisAt returns the dimension of Vars[0] that Vars[1] is, for which one_axis holds.
func axisAt(a pattern.Args) int {
	list, ok := keptAxes(Attributes(""), a.Vars[0], a.Vars[1])
	if !ok || len(list) != 1 {
		return 0
	}
	return list[0] - ir.TypeOf(a.Vars[0]).Rank()
}
