package onnxpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
)

// nopFunctions are guards of nodes that do nothing.
var nopFunctions = []pattern.Function{
	pattern.NewGuard("same_elements(x)", 1, "the elements of x have the type of those of the result", func(a pattern.Args) bool {
		elem := ir.TypeOf(a.Vars[0]).Elem()
		return elem != onnx.Undefined && elem == ir.TypeOf(a.Root.Out()).Elem()
	}),
	pattern.NewGuardOfEach("float(x)", 1, "the elements of x are floats", isFloat),
	pattern.NewGuard("in_place({p}, x)", 1, "the order p of a Transpose of x moves nothing", func(a pattern.Args) bool {
		perm, ok := permutation(parse(a.Params[0]), ir.TypeOf(a.Vars[0]).Rank())
		return ok && slices.IsSorted(perm)
	}),
	pattern.NewGuard("in_order({p}, x)", 1, "the order p of a Transpose moves only dimensions of x of size 1", func(a pattern.Args) bool {
		return keepsOrder(parse(a.Params[0]), a.Vars[0])
	}),
	pattern.NewGuard("copies({a}, x, s)", 1, "every size that a Reshape to s has is that of x", func(a pattern.Args) bool {
		dims, ranked := ir.TypeOf(a.Vars[0]).Shape()
		s, ok := ir.NumbersOf(a.Vars[1])
		if !ranked || !ok || len(s) != len(dims) || parse(a.Params[0]).Int("allowzero", 0) != 0 {
			return false
		}
		open := 0
		for i, n := range s {
			switch {
			case n == -1:
				open++
			case n != 0 && !dims[i].Is(n):
				return false
			}
		}
		return open <= 1
	}),
	pattern.NewGuard("none(a)", 1, "a has no elements", func(a pattern.Args) bool {
		list, ok := ir.NumbersOf(a.Vars[0])
		return ok && len(list) == 0
	}),
	pattern.NewGuard("covers(x, s)", 1, "an Expand of x to the sizes s is x", func(a pattern.Args) bool {
		s, ok := ir.TypeOf(a.Vars[1]).Data()
		dims, ranked := ir.TypeOf(a.Vars[0]).Shape()
		return ok && ranked && fitsInto(s, dims)
	}),
	pattern.NewGuard("forward(s)", 1, "the steps s of a Slice are positive", func(a pattern.Args) bool {
		list, ok := ir.NumbersOf(a.Vars[0])
		return ok && !slices.ContainsFunc(list, func(n int64) bool { return n <= 0 })
	}),
	pattern.NewGuard("everything(b, e)", 1, "the starts b and the ends e of a Slice are those of any size", func(a pattern.Args) bool {
		begin, ok := ir.NumbersOf(a.Vars[0])
		end, too := ir.NumbersOf(a.Vars[1])
		return ok && too && !slices.ContainsFunc(begin, func(n int64) bool { return n != 0 }) &&
			!slices.ContainsFunc(end, func(n int64) bool { return n < math.MaxInt32 })
	}),
	pattern.NewGuard("steps_of_one(x)", 1, "the Slice of x has steps of 1", func(a pattern.Args) bool {
		in := a.Root.Inputs()
		if len(in) <= 4 {
			return true
		}
		list, ok := ir.NumbersOf(in[4])
		return ok && !slices.ContainsFunc(list, func(n int64) bool { return n != 1 })
	}),
	pattern.NewGuard("counts({a}, x, i)", 1, "the indexes i of a Gather are all of x, in order", func(a pattern.Args) bool {
		dims, ranked := ir.TypeOf(a.Vars[0]).Shape()
		list, ok := ir.NumbersOf(a.Vars[1])
		axis, exists := axisOf(parse(a.Params[0]), 0, len(dims))
		if !ranked || !ok || !exists || ir.TypeOf(a.Vars[1]).Rank() != 1 || !dims[axis].Is(int64(len(list))) {
			return false
		}
		for i, n := range list {
			if n != int64(i) && n != int64(i)-int64(len(list)) {
				return false
			}
		}
		return true
	}),
	pattern.NewGuard("unscaled({a}, x)", 1, "the Resize keeps all sizes of x, and coordinates remain what they are", unscaled),
	pattern.NewGuard("reduces({a})", 1, "the reduction is one also where it has no dimensions", func(a pattern.Args) bool {
		return parse(a.Params[0]).Int("noop_with_empty_axes", 0) == 0
	}),
	pattern.NewGuard("drops_ones({a}, x, d)", 1, "the reduction drops its dimensions d of x, which have size 1", func(a pattern.Args) bool {
		op := parse(a.Params[0])
		dims, ranked := ir.TypeOf(a.Vars[0]).Shape()
		axes, ok := ir.NumbersOf(a.Vars[1])
		if !ranked || !ok || len(axes) == 0 || op.Int("keepdims", 1) != 0 {
			return false
		}
		return !slices.ContainsFunc(axes, func(n int64) bool {
			i, ok := normalized(n, len(dims))
			return !ok || !dims[i].Is(1)
		})
	}),
	pattern.NewGuard("same_axis({a}, {b}, x)", 1, "an ArgMax is along the dimension of x that a Softmax is along", sameAxis(0)),
	pattern.NewGuard("same_axis_of_softmax({a}, {b}, x)", 1, "two LogSoftmax of x are along one dimension", sameAxis(-1)),
}

// parse returns an op with captured attributes, for looking them up.
func parse(captured any) *ir.Op {
	list, err := ir.ParseAttributes(string(captured.(Attributes)))
	if err != nil {
		return &ir.Op{}
	}
	return &ir.Op{Attributes: list}
}

// normalized returns an axis, which may count from the end, of n.
func normalized(axis int64, n int) (int, bool) {
	if axis < 0 {
		axis += int64(n)
	}
	return int(axis), axis >= 0 && axis < int64(n)
}

// axisOf returns the attribute axis of an op on tensors of n dimensions.
func axisOf(op *ir.Op, otherwise int64, n int) (int, bool) {
	return normalized(op.Int("axis", otherwise), n)
}

// sameAxis reports of two nodes, the second one like Softmax, whether they are along one dimension of a value. The first
// one has an axis by default.
func sameAxis(otherwise int64) func(a pattern.Args) bool {
	return func(a pattern.Args) bool {
		rank := ir.TypeOf(a.Vars[0]).Rank()
		i, ok := axisOf(parse(a.Params[0]), otherwise, rank)
		j, too := axisOf(parse(a.Params[1]), -1, rank)
		return ok && too && i == j
	}
}

// permutation returns the order of dimensions that a Transpose has; rank may be -1.
func permutation(op *ir.Op, rank int) ([]int64, bool) {
	perm := op.Ints("perm")
	if op.Attribute("perm") == nil {
		for i := rank - 1; i >= 0; i-- {
			perm = append(perm, int64(i))
		}
		return perm, rank >= 0
	}
	if rank >= 0 && len(perm) != rank {
		return nil, false
	}
	seen := make([]bool, len(perm))
	for _, k := range perm {
		if k < 0 || k >= int64(len(perm)) || seen[k] {
			return nil, false
		}
		seen[k] = true
	}
	return perm, true
}

// keepsOrder reports whether a Transpose of x moves only dimensions of size 1.
func keepsOrder(op *ir.Op, x *fgraph.Variable) bool {
	dims, ranked := ir.TypeOf(x).Shape()
	perm, ok := permutation(op, len(dims))
	if !ranked || !ok {
		return false
	}
	last := int64(-1)
	for _, k := range perm {
		if dims[k].Is(1) {
			continue
		}
		if k < last {
			return false
		}
		last = k
	}
	return true
}

// unscaled reports whether a Resize takes every element from where it is. A size that is the same by
// rounding of a scale near 1 is not enough.
func unscaled(a pattern.Args) bool {
	op := parse(a.Params[0])
	// In these modes a place is mapped to itself if the size stays. tf_half_pixel_for_nn adds a half,
	// and tf_crop_and_resize reads a region.
	switch op.Text("coordinate_transformation_mode", "half_pixel") {
	case "half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners":
	default:
		return false
	}
	in := a.Root.Inputs()
	if len(in) > 2 && !ir.IsOmitted(in[2]) {
		scale, ok := ir.NumberOf(in[2])
		return ok && scale == 1
	}
	return len(in) > 3 && op.Text("keep_aspect_ratio_policy", "stretch") == "stretch" && sameShape(a.Vars[0], a.Root.Out())
}
