package tensorpass

import (
	"context"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// channelsLast returns the pass channels_last: convolutions of float32s with constant weights read
// and write tensors whose channels are the last dimension, in place of the second, as those of integers
// do anyway. Then positions are
// rows of a product: weights are prepared once, what is added to a channel is added to a column, and
// patches are gathered in long runs. What lies between convolutions is computed in the same layout,
// so that nothing is copied there. The bits are the same.
func channelsLast() rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "channels_last", Class: profile.ClassFusion, Fn: moveChannels,
		Doc: "convolutions, and what lies between them, have the channels in the last dimension: Conv(x, w) → DimShuffle(ConvLast(DimShuffle(x), DimShuffle(w)))",
	}
}

// layouts finds for each variable the one with channels last.
type layouts struct {
	g *fgraph.FunctionGraph
	// last has the variables that are computed with channels last, by the views of them that take the
	// place of others, and views has those that are views with channels last.
	last, views map[*variable]*variable
}

func moveChannels(ctx context.Context, h *rewrite.Handle) error {
	l := &layouts{g: h.Graph(), last: make(map[*variable]*variable), views: make(map[*variable]*variable)}
	starts := func(op fgraph.Op) bool { return isConvolution(op) || isA[tensor.ConvLastIntegerOp](op) }
	if !hasOp(l.g, starts) {
		return nil
	}
	order := slices.Collect(l.g.Ordered())
	// Everything moves because a convolution in front of it does.
	first := slices.IndexFunc(order, func(a *apply) bool { return starts(a.Op()) })
	order = order[first:]
	for i, a := range order {
		if i%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if isA[tensor.DimShuffleOp](a.Op()) {
			if err := l.view(h, a); err != nil {
				return err
			}
			continue
		}
		v, err := tensor.Try(func() *variable { return l.moved(a) })
		if err != nil || v == nil {
			continue
		}
		back := v
		if _, ok := a.Op().(tensor.Reduce); !ok {
			back = tensor.DimShuffle(v, tensor.ToSecond(typeOf(v).NDim())...)
		}
		if !a.Out().Type().Accepts(back.Type()) {
			continue
		}
		if v.Owner() != nil {
			v.Owner().SetOrigin(a.Origin())
		}
		old := a.Out()
		if done, err := h.Replace("", a, fgraph.Replacement{Old: old, New: back}); err != nil || !done {
			if err != nil {
				return err
			}
			continue
		}
		if back != v {
			l.last[back] = v
		}
	}
	return nil
}

// view knows a result of a convolution of integers, whose channels are last, by the view that has them second. Where a
// variable is known, it takes the place of its view with channels last.
func (l *layouts) view(h *rewrite.Handle, a *apply) error {
	x, order := a.Inputs()[0], a.Op().(tensor.DimShuffleOp).NewOrder()
	if len(order) < 3 || len(order) != typeOf(x).NDim() {
		return nil
	}
	switch last := l.last[x]; {
	case last != nil && slices.Equal(order, tensor.ToLast(len(order))):
		_, err := h.Replace("", a, fgraph.Replacement{Old: a.Out(), New: last})
		return err
	case x.Owner() != nil && isA[tensor.ConvLastIntegerOp](x.Owner().Op()) && slices.Equal(order, tensor.ToSecond(len(order))):
		l.last[a.Out()] = x
	}
	return nil
}

// moved returns the result of an apply with channels last, or nil if it is better as it is.
func (l *layouts) moved(a *apply) *variable {
	if len(a.Outputs()) != 1 {
		return nil
	}
	switch op := a.Op().(type) {
	case tensor.ConvOp:
		return l.conv(a, op)
	case tensor.ConvTransposeOp:
		return l.apart(a, op)
	case tensor.ReshapeOp:
		return l.repeated(a)
	case tensor.PoolOp:
		// One channel is last as it is, and lines are longer than it.
		if l.any(a) && dtypeOf(a.Out()) == array.Float32 && typeOf(a.Out()).Dim(1) != 1 {
			return l.again(tensor.PoolLastOp(op), a)
		}
	case tensor.Elemwise:
		if op.Inplace == 0 {
			return l.elementwise(a)
		}
	case tensor.JoinOp:
		if l.any(a) && typeOf(a.Out()).NDim() >= 3 {
			op.Axis = int8(placeOf(int(op.Axis), typeOf(a.Out()).NDim()))
			return l.again(op, a)
		}
	case tensor.InterpolateOp:
		if x := l.last[a.Inputs()[0]]; x != nil {
			op.Axis = int8(placeOf(int(op.Axis), typeOf(x).NDim()))
			return tensor.MustApply(op, x, a.Inputs()[1])
		}
	case *tensor.SubtensorOp:
		return l.selected(a, op)
	case tensor.Reduce:
		return l.reduced(a, op)
	}
	return nil
}

// selected moves the channels of a part, if it has all dimensions.
func (l *layouts) selected(a *apply, op *tensor.SubtensorOp) *variable {
	x := l.last[a.Inputs()[0]]
	n := typeOf(a.Inputs()[0]).NDim()
	if x == nil || typeOf(a.Out()).NDim() != n {
		return nil
	}
	indexes := everything(n)
	for d, i := range op.Indexes(a) {
		indexes[placeOf(d, n)] = i
	}
	return tensor.Subtensor(x, indexes...)
}

// reduced moves the channels of what is reduced to channels, or to nothing with positions: to what
// has the same layout in both.
func (l *layouts) reduced(a *apply, op tensor.Reduce) *variable {
	n := typeOf(a.Inputs()[0]).NDim()
	if !l.any(a) || n < 3 || op.All {
		return nil
	}
	var axes array.Axes
	positions, channels := false, false // that stay
	for d := range n {
		switch {
		case op.Axes&(1<<d) != 0:
			axes |= 1 << placeOf(d, n)
		case d == 1:
			channels = true
		case d > 1:
			positions = true
		}
	}
	if positions && channels {
		return nil
	}
	op.Axes = axes
	return l.again(op, a)
}

// conv moves the channels of a convolution that is computed in single precision with constant weights.
func (l *layouts) conv(a *apply, op tensor.ConvOp) *variable {
	x, w := a.Inputs()[0], a.Inputs()[1]
	weights := tensor.ConstantOf(w)
	if weights == nil || weights.DType() != array.Float32 {
		return nil
	}
	in, out := weights.Dim(1), weights.Dim(0)/op.Groups
	// A channel that a few others are made of is repeated, so that each has its own.
	repeated := op.Groups >= 8 && in == 1 && out > 1 && out <= 4
	// Other groups of a few channels are products that are too narrow to pay, unless a window makes them long: 3×3 of 4 channels
	// took 0.90 times as long, 1×1 2.75 times (Zen 4, 2026-11-30).
	least := 8
	if weights.Len() > weights.Dim(0)*in {
		least = 4
	}
	if op.Groups > 1 && in*out > 1 && min(in, out) < least && !repeated {
		return nil
	}
	// A channel is multiplied line by line where it is. Where channels are last, less than a vector of them has
	// to become lines.
	if op.Groups > 1 && weights.Dim(1) == 1 && weights.Dim(0) < 8 && l.last[x] == nil {
		return nil
	}
	// A sum of channels at each position is one of lines. With the channels last, most of a vector would be empty.
	if op.Groups == 1 && weights.Dim(0) == 1 && weights.Len() == weights.Dim(1) && l.last[x] == nil {
		return nil
	}
	turned := tensor.LastWeights(w)
	if view := turned.Owner(); view != nil && view.Inputs()[0] == w {
		last := weights.Transpose(view.Op().(tensor.DimShuffleOp).NewOrder()...)
		// What is prepared once is read where it is.
		if !array.PreparesLastWeights(last, op.Groups) {
			last = last.Clone()
		}
		turned = tensor.Constant(last)
	}
	x = l.channelsLast(x)
	if repeated {
		last, n := typeOf(x).NDim()-1, tensor.Int(out)
		sizes := slices.Clone(tensor.ShapesOf(w.Graph()).Shape(x))
		x = tensor.Alloc(tensor.DimShuffle(x, append(upTo(last+1), array.NewAxis)...), append(sizes, n)...)
		sizes[last] = tensor.MapSizes(array.Mul, sizes[last], n)
		x, op.Groups = tensor.Reshape(x, sizes...), weights.Dim(0)
	}
	return tensor.MustApply(tensor.ConvLastOp(op), x, turned)
}

// apart makes a product of a transposed convolution whose windows lie side by side in the result: each
// position of the input has a row of the product, which is moved to the window.
func (l *layouts) apart(a *apply, op tensor.ConvTransposeOp) *variable {
	x, w := a.Inputs()[0], a.Inputs()[1]
	weights, dims := tensor.ConstantOf(w), op.Window.Dims
	if weights == nil || weights.DType() != array.Float32 || op.Groups != 1 {
		return nil
	}
	shape := typeOf(x).Shape()
	sizes := slices.Clone(shape[:1]) // of the product: N, positions, window, channels
	window, rows, positions := []int{}, 1, 1
	for d := range dims {
		n := weights.Dim(d + 2)
		if op.Window.Stride[d] != n || op.Window.Dilation[d] != 1 || typeOf(a.Out()).Dim(d+2) != shape[d+2]*n || op.Window.Before[d] != 0 {
			return nil
		}
		window, rows, positions = append(window, n), rows*n, positions*shape[d+2]
	}
	if slices.Contains(shape, tensor.Unknown) || 2+2*dims > array.MaxDims {
		return nil
	}
	channels := weights.Dim(1)
	sizes = append(append(append(sizes, shape[2:]...), window...), channels)
	order, result := []int{0}, []int{shape[0]}
	for d := range dims {
		order, result = append(order, 1+d, 1+dims+d), append(result, shape[d+2]*window[d])
	}
	// In memory, the elements of the window are behind the channels of the input, and before those of
	// the result.
	turned := []int{0}
	for d := range dims {
		turned = append(turned, d+2)
	}
	matrix := tensor.Constant(weights.Transpose(append(turned, 1)...).Clone().Reshape(weights.Dim(0), rows*channels))
	if l.last[x] == nil && rows*channels < 8 {
		// Channels are summed up where they are: lines fill vectors, and so few columns do not.
		sizes = append(append(append(shape[:1:1], window...), channels), shape[2:]...)
		for d := range dims {
			order[1+2*d], order[2+2*d] = 2+dims+d, 1+d
		}
		lines := tensor.Reshape(x, ints([]int{shape[0], shape[1], positions})...)
		y := tensor.Reshape(tensor.Matmul(folded(tensor.Transpose(matrix)), lines), ints(sizes)...)
		return tensor.Reshape(tensor.DimShuffle(y, append(order, 1+dims)...), ints(append(result, channels))...)
	}
	y := tensor.Reshape(tensor.Matmul(l.channelsLast(x), matrix), ints(sizes)...)
	return tensor.Reshape(tensor.DimShuffle(y, append(order, 1+2*dims)...), ints(append(result, channels))...)
}

// ints returns constants.
func ints(list []int) []*variable {
	return lists.Map(list, tensor.Int)
}

// repeated moves the channels of what repeats positions: of a Reshape of an Alloc of a DimShuffle that
// adds a dimension behind another one, as tensor.Repeat makes it. Rules may have moved the DimShuffle to
// the inputs of an element-wise op.
func (l *layouts) repeated(a *apply) *variable {
	alloc, _, ok := owner[tensor.AllocOp](a.Inputs()[0])
	if !ok {
		return nil
	}
	v := alloc.Inputs()[0]
	from, to := typeOf(v).Shape(), typeOf(alloc.Out()).Shape()
	added := slices.IndexFunc(upTo(len(from)), func(k int) bool { return from[k] != to[k] })
	if len(from) != len(to) || added < 3 || from[added] != 1 || slices.Contains(to, tensor.Unknown) || !slices.Equal(from[added+1:], to[added+1:]) {
		return nil
	}
	n, d, times := len(to)-1, added-1, to[added] // dimension d of n is repeated
	sizes := slices.Delete(slices.Clone(to), added, added+1)
	sizes[d] *= times
	// The next repetition may have added its dimension already.
	out := typeOf(a.Out()).Shape()
	next := slices.IndexFunc(upTo(len(out)), func(k int) bool {
		return k >= 2 && out[k] == 1 && slices.Equal(slices.Delete(slices.Clone(out), k, k+1), sizes)
	})
	if next < 0 && !slices.Equal(out, sizes) {
		return nil
	}
	last := l.without(v, added)
	if last == nil {
		return nil
	}
	place := placeOf(d, n)
	result := slices.Clone(typeOf(last).Shape())
	order := slices.Insert(upTo(n), place+1, array.NewAxis)
	repeats := tensor.Alloc(tensor.DimShuffle(last, order...), ints(slices.Insert(slices.Clone(result), place+1, times))...)
	if result[place] *= times; next >= 0 {
		result = slices.Insert(result, placeOf(next, len(out)), 1)
	}
	return tensor.Reshape(repeats, ints(result)...)
}

// without returns v without dimension d, which has size 1, and with channels last; or nil if it is not
// made of something that is known like that.
func (l *layouts) without(v *variable, d int) *variable {
	if x := l.last[v]; x != nil {
		n := typeOf(x).NDim()
		return tensor.DimShuffle(x, slices.Delete(upTo(n), placeOf(d, n), placeOf(d, n)+1)...)
	}
	if x := dropped(v, d); x != nil {
		return l.last[x]
	}
	a := v.Owner()
	if _, ok := elemOf(a); !ok {
		return nil
	}
	in := slices.Clone(a.Inputs())
	known := false
	for i, u := range in {
		if in[i] = dropped(u, d); in[i] == nil {
			if typeOf(u).Dim(d) != 1 {
				return nil
			}
			in[i] = tensor.DimShuffle(u, slices.Delete(upTo(typeOf(u).NDim()), d, d+1)...)
		}
		known = known || l.last[in[i]] != nil
	}
	if !known {
		return nil
	}
	return tensor.MustApply(a.Op().(tensor.Op), mapped(in, l.channelsLast)...)
}

// dropped returns the variable of which v is a view with a new dimension d, or nil.
func dropped(v *variable, d int) *variable {
	view, op, ok := owner[tensor.DimShuffleOp](v)
	if !ok {
		return nil
	}
	order := op.NewOrder()
	if x := view.Inputs()[0]; order[d] == array.NewAxis && slices.Equal(slices.Delete(slices.Clone(order), d, d+1), upTo(typeOf(x).NDim())) {
		return x
	}
	return nil
}

// upTo returns 0, 1, …, n-1.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// folded returns a constant view as a constant of its own.
func folded(v *variable) *variable {
	a := v.Owner()
	if a == nil || !a.Inputs()[0].IsConstant() {
		return v
	}
	op := a.Op().(tensor.DimShuffleOp)
	return tensor.Constant(tensor.ConstantOf(a.Inputs()[0]).Transpose(op.NewOrder()...).Clone())
}

// elementwise moves the channels of an element-wise op, if those of a full input are last already.
func (l *layouts) elementwise(a *apply) *variable {
	if typeOf(a.Out()).NDim() < 3 || !l.any(a) {
		return nil
	}
	return l.again(a.Op().(tensor.Op), a)
}

// any reports whether an input is known with channels last.
func (l *layouts) any(a *apply) bool {
	return slices.ContainsFunc(a.Inputs(), func(v *variable) bool { return l.last[v] != nil })
}

// again applies an op to the inputs with channels last.
func (l *layouts) again(op tensor.Op, a *apply) *variable {
	return tensor.MustApply(op, mapped(a.Inputs(), l.channelsLast)...)
}

// channelsLast returns v with channels last.
func (l *layouts) channelsLast(v *variable) *variable {
	if last := l.last[v]; last != nil {
		return last
	}
	view := l.views[v]
	if view == nil {
		view = folded(shuffled(v, tensor.NewDimShuffle(tensor.ToLast(typeOf(v).NDim())...)))
		l.views[v] = view
	}
	return view
}

// placeOf returns where a dimension of n is when channels are last.
func placeOf(d, n int) int { return slices.Index(tensor.ToLast(n), d) }
