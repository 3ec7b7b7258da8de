package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// reduceAlloc returns the function that reduces what an Alloc repeats: a scalar, or a tensor that
// has dimensions of its own.
func reduceAlloc(scalars bool) transform {
	return func(c *rewrite.Context, n *apply) (result, error) {
		op, axes := reduceOf(n)
		a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
		if !ok || op > array.Any || axes == 0 {
			return c.Miss("it is not the reduction of an Alloc"), nil
		}
		v, sizes := a.Inputs()[0], a.Inputs()[1:]
		if isScalar(v) != scalars {
			return c.Miss("another rule reduces a value like this"), nil
		}
		padding := len(sizes) - typeOf(v).NDim()
		var repeats, kept []*variable
		var own, single array.Axes // dimensions of v that are reduced: those that are not repeated, and the others
		for d, size := range sizes {
			switch at := d - padding; {
			case !axes.Has(d):
				kept = append(kept, size)
			case at >= 0 && typeOf(v).Dim(at) != 1:
				own |= 1 << at
			default:
				repeats = append(repeats, size)
				if at >= 0 {
					single |= 1 << at
				}
			}
		}
		mayBeEmpty := func(size *variable) bool { x, ok := uniform(size); return !ok || x <= 0 }
		if op != array.Sum && op != array.Prod && slices.ContainsFunc(repeats, mayBeEmpty) {
			return c.Miss("a size may be 0"), nil // then a maximum is an error, and any and all are known
		}
		w := withoutAxes(v, single)
		if own != 0 || (op == array.All || op == array.Any) && dtypeOf(w) != array.Bool {
			w = reduceOver(op, w, renumbered(own, single))
		}
		w = castTo(w, dtypeOf(n.Out()))
		total := tensor.Int(1)
		for _, size := range repeats {
			total = combined(array.Mul, total, size)
		}
		switch total = castTo(total, dtypeOf(w)); {
		case is(total, 1):
		case op == array.Sum:
			w = tensor.Mul(w, total)
		case op == array.Prod:
			w = tensor.Pow(w, total)
		}
		if !n.Out().Type().Accepts(w.Type()) {
			w = refilled(w, kept)
		}
		return replace(c, n, w)
	}
}

// renumbered returns the numbers that dimensions have when others are dropped.
func renumbered(axes, dropped array.Axes) array.Axes {
	var r array.Axes
	next := 0
	for d := range array.MaxDims {
		if dropped.Has(d) {
			continue
		}
		if axes.Has(d) {
			r |= 1 << next
		}
		next++
	}
	return r
}
