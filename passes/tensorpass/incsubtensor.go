package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var onIncSubtensor = []rewrite.Track{rewrite.TrackType[*tensor.IncSubtensorOp]()}

// increments reports whether an apply adds to a part of its first input, in memory of its own.
func increments(a *apply) bool {
	if a == nil {
		return false
	}
	switch op := a.Op().(type) {
	case *tensor.IncSubtensorOp:
		return !op.Set && !op.Inplace
	case tensor.AdvancedIncSubtensorOp:
		return !op.Set && !op.Inplace
	}
	return false
}

// incSubtensorSerialize is local_IncSubtensor_serialize.
func incSubtensorSerialize() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_IncSubtensor_serialize", Doc: "increments of parts are made one after the other: x + inc(a, b) + inc(c, d) → inc(inc(x + a + c, b), d), so that they can be made in place",
		On: on(array.Add), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			movable := func(v *vari) bool {
				return increments(v.Owner()) && alone(v) && n.Out().Type().Accepts(v.Type()) && v.Type().Accepts(n.Out().Type())
			}
			var terms, moved []*vari
			for _, v := range n.Inputs() {
				if movable(v) {
					moved = append(moved, v)
				} else {
					terms = append(terms, v)
				}
			}
			if len(moved) == 0 {
				return c.Miss("no term is an increment that is used here only"), nil
			}
			for _, v := range moved {
				terms = append(terms, v.Owner().Inputs()[0])
			}
			tip := tensor.Add(terms...)
			for _, v := range moved {
				a := v.Owner()
				in := append([]*vari{tip}, a.Inputs()[1:]...)
				tip = tensor.MustApply(a.Op().(tensor.Op), in...)
			}
			return replace(c, n, tip)
		},
	}
}

// incSubtensorOfZeros is local_incsubtensor_of_zeros.
func incSubtensorOfZeros() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_incsubtensor_of_zeros", Doc: "adding zeros to a part changes nothing: inc_subtensor(x[i], 0) → x", Depth: 2,
		On: append(slices.Clone(onIncSubtensor), rewrite.TrackType[tensor.AdvancedIncSubtensorOp]()),
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if !increments(n) || !is(n.Inputs()[1], 0) {
				return c.Miss("it does not add zeros"), nil
			}
			return replace(c, n, n.Inputs()[0])
		},
	}
}

// incSubtensorToSet is local_incsubtensor_of_zeros_to_setsubtensor.
func incSubtensorToSet() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_incsubtensor_of_zeros_to_setsubtensor", Doc: "adding to zeros is setting: inc_subtensor(zeros[i], y) → set_subtensor(zeros[i], y)", On: onIncSubtensor, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if !increments(n) || !is(n.Inputs()[0], 0) {
				return c.Miss("it does not add to zeros"), nil
			}
			in := n.Inputs()
			return replace(c, n, tensor.SetSubtensor(in[0], in[1], n.Op().(*tensor.IncSubtensorOp).Indexes(n)...))
		},
	}
}

// setSubtensorOfConstants is local_setsubtensor_of_constants.
func setSubtensorOfConstants() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_setsubtensor_of_constants", Doc: "setting a part of what is full of a number to that number changes nothing", On: onIncSubtensor, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op := n.Op().(*tensor.IncSubtensorOp)
			x, ok := uniform(n.Inputs()[0])
			y, ok2 := uniform(n.Inputs()[1])
			if !op.Set || op.Inplace || !ok || !ok2 || x != y {
				return c.Miss("it does not set to the number that is there"), nil
			}
			return replace(c, n, n.Inputs()[0])
		},
	}
}

// uselessIncSubtensor is local_useless_inc_subtensor.
func uselessIncSubtensor() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_useless_inc_subtensor", Doc: "setting everything is the value: set_subtensor(x[:], y) → y", On: onIncSubtensor, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op := n.Op().(*tensor.IncSubtensorOp)
			if op.Inplace || op.NumIndexes() > 0 && !op.IsSlice(0) || slices.ContainsFunc(op.Indexes(n), func(i tensor.Index) bool { return !i.IsEverything() }) {
				return c.Miss("it changes a part"), nil
			}
			x, y := n.Inputs()[0], n.Inputs()[1]
			if !op.Set {
				return replace(c, n, tensor.Add(x, y))
			}
			if !n.Out().Type().Accepts(y.Type()) {
				return replace(c, n, tensor.Second(x, y))
			}
			return replace(c, n, y)
		},
	}
}

// subtensorIncSubtensor is local_subtensor_inc_subtensor.
func subtensorIncSubtensor() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_subtensor_inc_subtensor", Doc: "what was just set is known: set_subtensor(x[i], y)[i] → y, inc_subtensor(x[i], y)[i] → x[i] + y", On: onSubtensor, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a, op, ok := owner[*tensor.IncSubtensorOp](n.Inputs()[0])
			if !ok || op.Inplace {
				return c.Miss("the argument is no change of a part"), nil
			}
			if !sameForm(op, n.Op().(*tensor.SubtensorOp)) {
				return c.Miss("another part is read than was changed"), nil
			}
			probe := tensor.RawSubtensor(a.Inputs()[0], op.Indexes(a)...)
			if !fgraph.OpsEqual(probe.Owner().Op(), n.Op()) || !slices.Equal(probe.Owner().Inputs()[1:], n.Inputs()[1:]) {
				return c.Miss("another part is read than was changed"), nil
			}
			y := a.Inputs()[1]
			if !op.Set {
				return replace(c, n, tensor.Add(probe, y))
			}
			return replace(c, n, y, probe)
		},
	}
}

// sameForm reports whether two ops index as many dimensions, each by an element or each by a slice.
func sameForm(a *tensor.IncSubtensorOp, b *tensor.SubtensorOp) bool {
	if a.NumIndexes() != b.NumIndexes() {
		return false
	}
	for d := range a.NumIndexes() {
		if a.IsSlice(d) != b.IsSlice(d) {
			return false
		}
	}
	return true
}

// advSub1AdvIncSub1 is local_adv_sub1_adv_inc_sub1 where the indexes are known to be different: numbers, or a range.
func advSub1AdvIncSub1() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_adv_sub1_adv_inc_sub1", Doc: "rows that were just set are known, if no index is repeated: set_subtensor(x[i], y)[i] → y", Depth: 2,
		On: []rewrite.Track{rewrite.TrackType[tensor.AdvancedSubtensorOp]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a, op, ok := owner[tensor.AdvancedIncSubtensorOp](n.Inputs()[0])
			if !ok || op.Inplace || !op.Set || op.K != 1 || len(n.Inputs()) != 2 || a.Inputs()[2] != n.Inputs()[1] {
				return c.Miss("the rows were not just set"), nil
			}
			if !distinct(n.Inputs()[1]) {
				return c.Miss("an index may be repeated"), nil
			}
			return replace(c, n, a.Inputs()[1])
		},
	}
}

// distinct reports whether the elements of an integer vector are known to be different, and not negative.
func distinct(v *vari) bool {
	if a, _, ok := owner[tensor.ARangeOp](v); ok {
		start, ok := intOf(a.Inputs()[0])
		step, ok2 := intOf(a.Inputs()[2])
		return ok && ok2 && start >= 0 && step > 0
	}
	a := tensor.ConstantOf(v)
	if a == nil || a.Len() > mostFolded {
		return false
	}
	seen := make(map[int64]bool, a.Len())
	for i := range a.Len() {
		k := a.Int(i)
		if k < 0 || seen[k] {
			return false
		}
		seen[k] = true
	}
	return true
}
