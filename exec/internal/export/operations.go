package export

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
)

// zeros returns zeros, in one row for all.
func (w *writer) zeros(rows, cols int) value {
	return w.filled(0, rows, cols)
}

// filled returns a matrix of one number.
func (w *writer) filled(x float32, rows, cols int) value {
	return value{name: w.floats(slices.Repeat([]float32{x}, cols), 1, 1, cols), dims: []int{rows, cols}, one: rows > 1}
}

// slice returns every step-th of the elements [first, end) of an axis.
func (w *writer) slice(v value, axis, first, end, step int) value {
	n := (end - first + step - 1) / step
	dims := slices.Clone(v.dims)
	dims[axis] = n
	if first == 0 && n == v.dims[axis] {
		return v
	}
	if axis == 0 && v.one {
		v.dims, v.one = dims, n > 1
		return v
	}
	inputs := []string{v.name, w.integers(first), w.integers(end), w.integers(axis + 1)}
	if step != 1 {
		inputs = append(inputs, w.integers(step))
	}
	v.name, v.dims = w.node("Slice", inputs), dims
	return v
}

// take returns elements of an axis, zeros for negative numbers.
func (w *writer) take(v value, axis int, which []int32) value {
	dims := slices.Clone(v.dims)
	dims[axis] = len(which)
	missing := slices.ContainsFunc(which, func(i int32) bool { return i < 0 })
	if axis == 0 && v.one && !missing {
		v.dims, v.one = dims, len(which) > 1
		return v
	}
	if axis == 0 {
		v = w.allRows(v)
	}
	first, end, step, regular := progression(which)
	switch {
	case regular && step > 0:
		return w.slice(v, axis, first, end, step)
	case regular && step == 0 && axis == 0:
		v = w.slice(v, axis, first, first+1, 1)
		v.dims, v.one = dims, true
		return v
	}
	if missing {
		before, inside, after := trimmed(which)
		if first, end, step, regular := progression(inside); regular && step > 0 {
			return w.pad(w.slice(v, axis, first, end, step), axis, before, after)
		}
		// Otherwise there are zeros among the others: they are taken from behind the end.
		n := v.dims[axis]
		v = w.pad(v, axis, 0, 1)
		which = slices.Clone(which)
		for i, k := range which {
			if k < 0 {
				which[i] = int32(n)
			}
		}
	}
	list := lists.Map(which, func(k int32) int { return int(k) })
	v.name, v.dims = w.node("Gather", []string{v.name, w.integers(list...)}, intAttribute("axis", axis+1)), dims
	return v
}

// progression reports whether numbers are first, first+step and so on before end, none negative. The
// step isn't negative either. One number is a progression by 1.
func progression(list []int32) (first, end, step int, ok bool) {
	if len(list) == 0 || list[0] < 0 {
		return 0, 0, 0, false
	}
	step = 1
	if len(list) > 1 {
		step = int(list[1] - list[0])
	}
	for i := 1; i < len(list); i++ {
		if int(list[i]-list[i-1]) != step || list[i] < 0 {
			return 0, 0, 0, false
		}
	}
	return int(list[0]), int(list[len(list)-1]) + 1, step, step >= 0
}

// trimmed returns how many numbers are negative before and after the others.
func trimmed(list []int32) (before int, inside []int32, after int) {
	for before < len(list) && list[before] < 0 {
		before++
	}
	for inside = list[before:]; len(inside) > 0 && inside[len(inside)-1] < 0; after++ {
		inside = inside[:len(inside)-1]
	}
	return before, inside, after
}

// pad puts zeros before and after an axis.
func (w *writer) pad(v value, axis, before, after int) value {
	pads := make([]int, 2*(len(v.dims)+1))
	pads[axis+1], pads[len(v.dims)+1+axis+1] = before, after
	v.dims = slices.Clone(v.dims)
	v.dims[axis] += before + after
	v.name = w.node("Pad", []string{v.name, w.integers(pads...)})
	return v
}

// concat joins values at an axis. They have the same rows, unless that is the axis.
func (w *writer) concat(axis int, list []value) value {
	if len(list) == 1 {
		return list[0]
	}
	out := value{dims: slices.Clone(list[0].dims)}
	out.dims[axis] = 0
	rows := axis == 0 // whether each row is there by itself
	for _, v := range list {
		out.dims[axis] += v.dims[axis]
		out.batched = out.batched || v.batched
		rows = rows || !v.one
	}
	out.one = !rows
	inputs := make([]string, len(list))
	for i, v := range list {
		if rows {
			v = w.allRows(v)
		}
		if out.batched {
			v = w.allSequences(v)
		}
		inputs[i] = v.name
	}
	out.name = w.node("Concat", inputs, intAttribute("axis", axis+1))
	return out
}

// binary combines two values element by element.
func (w *writer) binary(op component.FormulaOp, a, b value) value {
	dims := slices.Clone(a.dims)
	for i := range dims {
		dims[i] = max(dims[i], b.dims[i])
	}
	return value{
		name: w.node(string(op), []string{a.name, b.name}), dims: dims, batched: a.batched || b.batched,
		one: dims[0] > 1 && a.rows() == 1 && b.rows() == 1,
	}
}

// scaled multiplies by a number.
func (w *writer) scaled(v value, by float32) value {
	if by == 1 {
		return v
	}
	v.name = w.node("Mul", []string{v.name, w.floats([]float32{by}, 1, 1, 1)})
	return v
}

// reshape returns the elements in an array of other sizes.
func (w *writer) reshape(v value, dims []int) value {
	if slices.Equal(dims, v.dims) {
		return v
	}
	if dims[0] != v.dims[0] {
		v = w.allRows(v)
	}
	v.dims = dims
	shape := slices.Concat([]int{-1, v.rows()}, dims[1:])
	v.name = w.node("Reshape", []string{v.name, w.integers(shape...)})
	return v
}

func (w *writer) transpose(v value, axes []int32) value {
	if axes[0] != 0 {
		v = w.allRows(v)
	}
	old, perm := v.dims, []int{0}
	v.dims = make([]int, len(old))
	for i, a := range axes {
		v.dims[i] = old[a]
		perm = append(perm, int(a)+1)
	}
	v.name = w.node("Transpose", []string{v.name}, intsAttribute("perm", perm...))
	return v
}

// reduce makes one element of all along an axis.
func (w *writer) reduce(op component.FormulaOp, v value, axis int) value {
	if axis == 0 {
		v = w.allRows(v)
	}
	v.dims = slices.Clone(v.dims)
	v.dims[axis] = 1
	v.name = w.reduction(op, v.name, axis+1)
	return v
}

// reduction applies an operator, which gets the axes as an input if it is ReduceSum.
func (w *writer) reduction(op component.FormulaOp, x string, axes ...int) string {
	if op == component.OpSum {
		return w.node(string(op), []string{x, w.integers(axes...)}, intAttribute("keepdims", 1))
	}
	return w.node(string(op), []string{x}, intsAttribute("axes", axes...), intAttribute("keepdims", 1))
}

// batchMean returns the mean of all rows of all sequences.
func (w *writer) batchMean(v value) value {
	// One row that stands for several is their mean.
	dims := slices.Clone(v.dims)
	dims[0] = 1
	return value{name: w.reduction(component.OpMean, v.name, 0, 1), dims: dims}
}

// multiply returns the product of the last axis and the transpose of a matrix.
func (w *writer) multiply(v value, m kernel.Matrix) value {
	v.dims = slices.Clone(v.dims)
	v.dims[len(v.dims)-1] = m.Rows
	v.name = w.node("MatMul", []string{v.name, w.transposed(m)})
	return v
}

// convolve moves filters over channels×times×heights.
func (w *writer) convolve(v value, s component.Step) value {
	v = w.allRows(v)
	channels, win := v.dims[0], s.Window
	// ONNX has channels before places in a filter.
	size := win.Size[0] * win.Size[1]
	filters := make([]float32, 0, s.W.Rows*s.W.Cols)
	for i := range s.W.Rows {
		row := kernel.Row(s.W, i)
		for c := range channels {
			for place := range size {
				filters = append(filters, row[place*channels+c])
			}
		}
	}
	inputs := []string{v.name, w.floats(filters, s.W.Rows, channels, win.Size[0], win.Size[1]), w.floats(s.Values, len(s.Values))}
	v.dims = s.Dims
	v.name = w.node("Conv", inputs, intsAttribute("kernel_shape", win.Size[:]...), intsAttribute("strides", win.Stride[:]...),
		intsAttribute("dilations", win.Dilation[:]...), intsAttribute("pads", win.Before[0], win.Before[1], win.After[0], win.After[1]))
	return v
}

// steps makes nodes of a formula, and returns its values in order. operands are the values of its
// inputs, in order.
func (w *writer) steps(f *component.Formula, operands []value) ([]value, error) {
	values := make([]value, 0, len(f.Steps()))
	for _, s := range f.Steps() {
		if s.Op == component.OpInput {
			values, operands = append(values, operands[0]), operands[1:]
			continue
		}
		args := lists.Map(s.Args, func(a component.Term) value { return values[a-1] })
		v, err := w.step(s, args)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

func (w *writer) step(s component.Step, args []value) (value, error) {
	switch s.Op {
	case component.OpConstant:
		dims := append([]int{1}, s.Dims...)
		return value{name: w.floats(s.Values, dims...), dims: s.Dims}, nil
	case component.OpProduct:
		return w.multiply(args[0], s.W), nil
	case component.OpAdd, component.OpSubtract, component.OpMultiply, component.OpDivide, component.OpMaximum:
		return w.binary(s.Op, args[0], args[1]), nil
	case component.OpConcat:
		return w.concat(s.Axis, args), nil
	}
	v := args[0]
	switch s.Op {
	case component.OpSigmoid, component.OpTanh, component.OpReLU, component.OpLog, component.OpSqrt, component.OpReciprocal:
		v.name = w.node(string(s.Op), []string{v.name})
		return v, nil
	case component.OpSlice:
		return w.slice(v, s.Axis, int(s.Ints[0]), int(s.Ints[0]+s.Ints[1]), 1), nil
	case component.OpTake:
		return w.take(v, s.Axis, s.Ints), nil
	case component.OpReshape:
		return w.reshape(v, s.Dims), nil
	case component.OpTranspose:
		return w.transpose(v, s.Ints), nil
	case component.OpSum, component.OpMean, component.OpLargest:
		return w.reduce(s.Op, v, s.Axis), nil
	case component.OpSoftmax, component.OpLogSoftmax:
		if s.Axis == 0 {
			v = w.allRows(v)
		}
		v.name = w.node(string(s.Op), []string{v.name}, intAttribute("axis", s.Axis+1))
		return v, nil
	case component.OpConvolve:
		return w.convolve(v, s), nil
	case component.OpBatchMean:
		return w.batchMean(v), nil
	}
	return value{}, fmt.Errorf("export: a formula has the unknown operation %q", s.Op)
}
