package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// incSubtensorRules lists the rules of changed parts and of joins.
func incSubtensorRules() []Local {
	onAdvanced, onIncSubtensor := onType[tensor.AdvancedSubtensorOp](), onType[*tensor.IncSubtensorOp]()
	onAnyIncSubtensor := append(onType[*tensor.IncSubtensorOp](), onType[tensor.AdvancedIncSubtensorOp]()...)
	onJoin := onType[tensor.JoinOp]()
	return []Local{
		rule(Canonicalize|Specialize, "local_subtensor_inc_subtensor", onType[*tensor.SubtensorOp](), 2, subtensorIncSubtensor,
			"a part that was just changed is known: set_subtensor(x[i], y)[i] → y, inc_subtensor(x[i], y)[i] → x[i] + y"),
		rule(Canonicalize|Stabilize, "local_adv_sub1_adv_inc_sub1", onAdvanced, 2, advSub1AdvIncSub1,
			"rows that were just set are known, if no index is repeated: set_subtensor(x[i], y)[i] → y"),
		rule(Canonicalize, "local_IncSubtensor_serialize", on(array.Add), 2, incSubtensorSerialize,
			"increments of parts follow each other, so that they can be in place: x + inc(a, b) + inc(c, d) → inc(inc(x + a + c, b), d)"),
		rule(Canonicalize|Stabilize, "local_incsubtensor_of_zeros", onAnyIncSubtensor, 2, incSubtensorOfZeros,
			"adding zeros to a part changes nothing: inc_subtensor(x[i], 0) → x"),
		rule(Canonicalize|Specialize, "local_incsubtensor_of_zeros_to_setsubtensor", onIncSubtensor, 2, incSubtensorToSet,
			"adding to zeros is setting: inc_subtensor(zeros[i], y) → set_subtensor(zeros[i], y)"),
		rule(Canonicalize|Specialize, "local_setsubtensor_of_constants", onIncSubtensor, 2, setSubtensorOfConstants,
			"setting a part of a filled tensor to the number that is there changes nothing"),
		rule(Canonicalize|Specialize|Useless, "local_useless_inc_subtensor", onIncSubtensor, 2, uselessIncSubtensor,
			"setting everything is the value: set_subtensor(x[:], y) → y"),
		rule(Canonicalize|Specialize|Useless, "local_join_1", onJoin, 1, joinOne, "the join of one tensor is the tensor: join(0, x) → x"),
		rule(Canonicalize|Specialize|Useless, "local_join_empty", onJoin, 1, joinEmpty,
			"tensors without elements are not joined: join(0, x, zeros(0)) → x"),
		rule(Canonicalize|Specialize|Useless, "local_join_make_vector", onJoin, 2, joinMakeVector,
			"joined MakeVectors are one MakeVector: join(0, [a, b], [c]) → [a, b, c]"),
	}
}

// increments reports whether an apply adds to a part of its first input, not in place. a may be
// nil.
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

// sets reports whether an apply sets a part of its first input, not in place. a may be nil.
func sets(a *apply) bool {
	if a == nil {
		return false
	}
	op, ok := a.Op().(*tensor.IncSubtensorOp)
	return ok && op.Set && !op.Inplace
}

func incSubtensorSerialize(c *rewrite.Context, n *apply) (result, error) {
	t := n.Out().Type()
	moved, terms := partition(n.Inputs(), func(v *variable) bool {
		return increments(v.Owner()) && usedOnce(v) && t.Accepts(v.Type()) && v.Type().Accepts(t)
	})
	if len(moved) == 0 {
		return c.Miss("no term is an increment with a single use"), nil
	}
	for _, v := range moved {
		terms = append(terms, v.Owner().Inputs()[0])
	}
	tip := tensor.Add(terms...)
	for _, v := range moved {
		tip = withFirst(v.Owner(), tip)
	}
	return replace(c, n, tip)
}

func incSubtensorOfZeros(c *rewrite.Context, n *apply) (result, error) {
	if !increments(n) || !is(n.Inputs()[1], 0) {
		return c.Miss("it does not add zeros"), nil
	}
	return replace(c, n, n.Inputs()[0])
}

func incSubtensorToSet(c *rewrite.Context, n *apply) (result, error) {
	x, y := n.Inputs()[0], n.Inputs()[1]
	if !increments(n) || !is(x, 0) {
		return c.Miss("it does not add to zeros"), nil
	}
	return replace(c, n, tensor.SetSubtensor(x, y, opOf[*tensor.IncSubtensorOp](n).Indexes(n)...))
}

func setSubtensorOfConstants(c *rewrite.Context, n *apply) (result, error) {
	if sets(n) {
		x, ok := uniform(n.Inputs()[0])
		if ok && is(n.Inputs()[1], x) {
			return replace(c, n, n.Inputs()[0])
		}
	}
	return c.Miss("it does not set the number that is there"), nil
}

func uselessIncSubtensor(c *rewrite.Context, n *apply) (result, error) {
	op := opOf[*tensor.IncSubtensorOp](n)
	isPart := func(i tensor.Index) bool { return !i.IsEverything() }
	if op.Inplace || op.NumIndexes() > 0 && !op.IsSlice(0) || slices.ContainsFunc(op.Indexes(n), isPart) {
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
}

func subtensorIncSubtensor(c *rewrite.Context, n *apply) (result, error) {
	a, op, ok := owner[*tensor.IncSubtensorOp](n.Inputs()[0])
	if !ok || op.Inplace {
		return c.Miss("the argument is not a changed part"), nil
	}
	if !sameForm(op, opOf[*tensor.SubtensorOp](n)) {
		return c.Miss("it reads another part than was changed"), nil
	}
	probe := tensor.RawSubtensor(a.Inputs()[0], op.Indexes(a)...)
	if !fgraph.OpsEqual(probe.Owner().Op(), n.Op()) || !slices.Equal(probe.Owner().Inputs()[1:], n.Inputs()[1:]) {
		return c.Miss("it reads another part than was changed"), nil
	}
	y := a.Inputs()[1]
	if !op.Set {
		return replace(c, n, tensor.Add(probe, y))
	}
	return replace(c, n, y, probe)
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

// advSub1AdvIncSub1 takes indexes that are known to be different: numbers, or a range.
func advSub1AdvIncSub1(c *rewrite.Context, n *apply) (result, error) {
	a, op, ok := owner[tensor.AdvancedIncSubtensorOp](n.Inputs()[0])
	if !ok || op.Inplace || !op.Set || op.K != 1 || len(n.Inputs()) != 2 || a.Inputs()[2] != n.Inputs()[1] {
		return c.Miss("the rows were not just set"), nil
	}
	if !distinct(n.Inputs()[1]) {
		return c.Miss("an index may be repeated"), nil
	}
	return replace(c, n, a.Inputs()[1])
}

// distinct reports whether the elements of an integer vector are known to be different, and not
// negative.
func distinct(v *variable) bool {
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

func joinOne(c *rewrite.Context, n *apply) (result, error) {
	if len(n.Inputs()) != 1 {
		return c.Miss("there are several tensors"), nil
	}
	return replace(c, n, n.Inputs()[0])
}

func joinEmpty(c *rewrite.Context, n *apply) (result, error) {
	axis := int(opOf[tensor.JoinOp](n).Axis)
	rest := slices.DeleteFunc(slices.Clone(n.Inputs()), func(v *variable) bool { return typeOf(v).Dim(axis) == 0 })
	if len(rest) == len(n.Inputs()) || len(rest) == 0 {
		return c.Miss("no tensor is known to be empty, or all are"), nil
	}
	return replace(c, n, tensor.Join(axis, rest...))
}

func joinMakeVector(c *rewrite.Context, n *apply) (result, error) {
	var joined []*variable
	for _, v := range n.Inputs() {
		a, _, ok := owner[tensor.MakeVectorOp](v)
		if ok && len(joined) > 0 {
			if b, _, ok := owner[tensor.MakeVectorOp](joined[len(joined)-1]); ok {
				joined[len(joined)-1] = again(a, slices.Concat(b.Inputs(), a.Inputs())...)
				continue
			}
		}
		joined = append(joined, v)
	}
	switch len(joined) {
	case len(n.Inputs()):
		return c.Miss("no two neighbours are MakeVectors"), nil
	case 1:
		return replace(c, n, joined[0])
	}
	return replace(c, n, tensor.Join(0, joined...))
}
