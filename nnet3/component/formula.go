package component

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
)

// A Formula is what components compute, written down in steps instead of being computed. Others
// translate the steps: package exec/internal/export writes them as nodes of ONNX.
//
// A value is an array with a first axis of rows. It stands for one sequence: the steps are the same
// for each sequence of a batch, and no step but OpBatchMean looks at two of them.
type Formula struct {
	steps   []Step
	faults  []FormulaFault
	current Component // that is being written down
}

// maxSteps bounds the steps of a formula, and maxSums the terms of sums that are written down one by
// one. Parameters of a few megabytes could ask for so many that there is no memory for them.
const (
	maxSteps = 1 << 18
	maxSums  = 1 << 25
)

// A Term is a value in a formula: the number of the step that makes it, from 1 on. The zero Term is
// no value.
type Term int32

// A FormulaOp is an operation of a formula. It has the name of an operator of ONNX, if one does that.
type FormulaOp string

// The operations. Unless it says something else, the result has the sizes of the argument.
const (
	OpInput    FormulaOp = "input"    // an operand
	OpConstant FormulaOp = "Constant" // Values
	OpProduct  FormulaOp = "MatMul"   // of the last axis and Wᵀ
	OpConvolve FormulaOp = "Conv"     // of channels×times×heights with the filters W and the bias Values

	OpSigmoid    FormulaOp = "Sigmoid"
	OpTanh       FormulaOp = "Tanh"
	OpReLU       FormulaOp = "Relu"
	OpLog        FormulaOp = "Log"
	OpSqrt       FormulaOp = "Sqrt"
	OpReciprocal FormulaOp = "Reciprocal"

	// Sizes of two arguments are equal, or one of them is 1 and repeated.
	OpAdd      FormulaOp = "Add"
	OpSubtract FormulaOp = "Sub"
	OpMultiply FormulaOp = "Mul"
	OpDivide   FormulaOp = "Div"
	OpMaximum  FormulaOp = "Max"

	OpSlice     FormulaOp = "Slice"     // Ints[1] elements of Axis, from Ints[0] on
	OpTake      FormulaOp = "Gather"    // elements Ints of Axis; zeros for -1
	OpConcat    FormulaOp = "Concat"    // at Axis
	OpReshape   FormulaOp = "Reshape"   // to Dims
	OpTranspose FormulaOp = "Transpose" // axis i is axis Ints[i] of the argument

	// Axis has one element in the result.
	OpSum     FormulaOp = "ReduceSum"
	OpMean    FormulaOp = "ReduceMean"
	OpLargest FormulaOp = "ReduceMax"

	OpSoftmax    FormulaOp = "Softmax"    // over Axis
	OpLogSoftmax FormulaOp = "LogSoftmax" // over Axis

	// OpBatchMean is the mean over all rows of all sequences: one row, the same for all of them.
	OpBatchMean FormulaOp = "batch mean"
)

// A Step makes a value of others.
type Step struct {
	Op     FormulaOp
	Args   []Term
	Dims   []int // sizes of the result
	Axis   int
	Ints   []int32
	Values []float32     // not to be changed
	W      kernel.Matrix // not to be changed
	Window Window
}

// A Window is how the filters of OpConvolve move over time and height. A row of W is a filter: its
// elements are ordered by time, then height, then channel of the input.
type Window struct {
	Size, Stride, Dilation [2]int
	Before, After          [2]int // zeros around the input
}

// places returns the number of places of the window.
func (w Window) places(axis, size int) int {
	return (size+w.Before[axis]+w.After[axis]-(w.Size[axis]-1)*w.Dilation[axis]-1)/w.Stride[axis] + 1
}

// A FormulaFault says why a component can't be written down.
type FormulaFault struct {
	Component Component // nil if none is to blame
	Reason    string
}

// Expressible is a component that can write down what Propagate computes. A component that only
// copies its input (Identity) need not be.
type Expressible interface {
	// Express returns the output, which for a component that adds is what it adds. A derived
	// component adds to a.Y, if there is one.
	Express(f *Formula, a Operands) Term
}

// Operands are what Propagate gets, as terms of a formula.
type Operands struct {
	X, Y Term // the input, and what a derived component adds to; each may be missing
	Rows int  // of the output
	Pre  Precomputed
}

// Steps returns the steps. Each uses those before it.
func (f *Formula) Steps() []Step { return f.steps }

// Faults returns why components could not be written down. The terms of a formula with faults have
// no meaning.
func (f *Formula) Faults() []FormulaFault { return f.faults }

// Fail notes that a component can't be written down.
func (f *Formula) Fail(c Component, format string, args ...any) Term {
	f.faults = append(f.faults, FormulaFault{c, fmt.Sprintf(format, args...)})
	return 0
}

// Express returns what a component computes of its operands.
func (f *Formula) Express(c Component, a Operands) Term {
	if id, ok := c.(Identity); ok && id.IsIdentity() && a.X != 0 {
		return a.X
	}
	if t, ok := c.(TestModer); ok && c.Properties().Has(Random) && !t.TestMode() {
		return f.Fail(c, "draws random numbers, since it is not in test mode")
	}
	e, ok := c.(Expressible)
	if !ok {
		return f.Fail(c, "has no formula")
	}
	before := f.current
	f.current = c
	y := e.Express(f, a)
	f.current = before
	if y == 0 && len(f.faults) == 0 { // otherwise the operands may be missing
		return f.Fail(c, "has a formula without a result")
	}
	return y
}

// Dims returns the sizes of a value. They may not be changed.
func (f *Formula) Dims(x Term) []int {
	if x <= 0 || int(x) > len(f.steps) {
		return nil
	}
	return f.steps[x-1].Dims
}

func (f *Formula) add(s Step) Term {
	// What a fault left has no sizes, and nothing that is made of it is looked at.
	if slices.Contains(s.Args, 0) {
		return 0
	}
	if len(f.steps) >= maxSteps {
		if len(f.faults) == 0 {
			f.Fail(f.current, "takes more than %d steps", maxSteps)
		}
		return 0
	}
	f.steps = append(f.steps, s)
	return Term(len(f.steps))
}

// Input returns an operand with the given sizes.
func (f *Formula) Input(dims ...int) Term { return f.add(Step{Op: OpInput, Dims: dims}) }

// Constant returns an array that is the same for all sequences. The values belong to the formula.
func (f *Formula) Constant(values []float32, dims ...int) Term {
	return f.add(Step{Op: OpConstant, Values: values, Dims: dims})
}

// Row returns a constant of one row.
func (f *Formula) Row(values []float32) Term { return f.Constant(values, 1, len(values)) }

// Number returns a constant of one element that fits any value with two axes.
func (f *Formula) Number(x float32) Term { return f.Constant([]float32{x}, 1, 1) }

// Affine returns x·Wᵀ + b. There may be no b.
func (f *Formula) Affine(x Term, w kernel.Matrix, b []float32) Term {
	if x == 0 {
		return 0
	}
	dims := slices.Clone(f.Dims(x))
	dims[len(dims)-1] = w.Rows
	y := f.add(Step{Op: OpProduct, Args: []Term{x}, W: w, Dims: dims})
	if len(b) == 0 {
		return y
	}
	return f.Binary(OpAdd, y, f.last(y, b))
}

// Convolve moves filters over channels×times×heights.
func (f *Formula) Convolve(x Term, w Window, filters kernel.Matrix, bias []float32) Term {
	if x == 0 {
		return 0
	}
	d := f.Dims(x)
	return f.add(Step{Op: OpConvolve, Args: []Term{x}, W: filters, Values: bias, Window: w,
		Dims: []int{filters.Rows, w.places(0, d[1]), w.places(1, d[2])}})
}

// last returns a vector as a constant along the last axis of x.
func (f *Formula) last(x Term, v []float32) Term {
	dims := slices.Repeat([]int{1}, len(f.Dims(x)))
	if len(dims) == 0 {
		return 0
	}
	dims[len(dims)-1] = len(v)
	return f.Constant(v, dims...)
}

// Map applies a function to each element.
func (f *Formula) Map(op FormulaOp, x Term) Term {
	return f.add(Step{Op: op, Args: []Term{x}, Dims: f.Dims(x)})
}

// Binary combines two values element by element.
func (f *Formula) Binary(op FormulaOp, x, y Term) Term {
	a, b := f.Dims(x), f.Dims(y)
	if len(a) != len(b) {
		return 0
	}
	dims := slices.Clone(a)
	for i := range dims {
		dims[i] = max(a[i], b[i])
	}
	return f.add(Step{Op: op, Args: []Term{x, y}, Dims: dims})
}

// Scale multiplies by a number.
func (f *Formula) Scale(x Term, by float32) Term {
	if by == 1 || x == 0 {
		return x
	}
	return f.Binary(OpMultiply, x, f.last(x, []float32{by}))
}

// Columns returns n elements of the last axis.
func (f *Formula) Columns(x Term, first, n int) Term { return f.Slice(x, len(f.Dims(x))-1, first, n) }

// Slice returns n elements of an axis.
func (f *Formula) Slice(x Term, axis, first, n int) Term {
	if x == 0 || first == 0 && n == f.Dims(x)[axis] {
		return x
	}
	dims := slices.Clone(f.Dims(x))
	dims[axis] = n
	return f.add(Step{Op: OpSlice, Args: []Term{x}, Axis: axis, Ints: []int32{int32(first), int32(n)}, Dims: dims})
}

// Take returns elements of an axis, zeros for those with the number -1.
func (f *Formula) Take(x Term, axis int, which []int32) Term {
	if x == 0 {
		return 0
	}
	dims := slices.Clone(f.Dims(x))
	dims[axis] = len(which)
	return f.add(Step{Op: OpTake, Args: []Term{x}, Axis: axis, Ints: which, Dims: dims})
}

// Concat joins values at an axis.
func (f *Formula) Concat(axis int, list ...Term) Term {
	if len(list) == 1 {
		return list[0]
	}
	if slices.Contains(list, 0) {
		return 0
	}
	dims := slices.Clone(f.Dims(list[0]))
	for _, x := range list[1:] {
		dims[axis] += f.Dims(x)[axis]
	}
	return f.add(Step{Op: OpConcat, Args: list, Axis: axis, Dims: dims})
}

// Reshape returns the elements in the same order in an array of other sizes.
func (f *Formula) Reshape(x Term, dims ...int) Term {
	if slices.Equal(dims, f.Dims(x)) {
		return x
	}
	return f.add(Step{Op: OpReshape, Args: []Term{x}, Dims: dims})
}

// Transpose puts the axes in another order.
func (f *Formula) Transpose(x Term, axes ...int32) Term {
	old := f.Dims(x)
	dims := make([]int, len(old))
	for i := range dims {
		dims[i] = old[axes[i]]
	}
	return f.add(Step{Op: OpTranspose, Args: []Term{x}, Ints: axes, Dims: dims})
}

// Reduce sums, averages or compares the elements of an axis.
func (f *Formula) Reduce(op FormulaOp, x Term, axis int) Term {
	if x == 0 {
		return 0
	}
	dims := slices.Clone(f.Dims(x))
	dims[axis] = 1
	return f.add(Step{Op: op, Args: []Term{x}, Axis: axis, Dims: dims})
}

// Softmax is OpSoftmax or OpLogSoftmax over an axis.
func (f *Formula) Softmax(op FormulaOp, x Term, axis int) Term {
	return f.add(Step{Op: op, Args: []Term{x}, Axis: axis, Dims: f.Dims(x)})
}

// BatchMean returns the mean of all rows of all sequences, as one row.
func (f *Formula) BatchMean(x Term) Term {
	if x == 0 {
		return 0
	}
	dims := slices.Clone(f.Dims(x))
	dims[0] = 1
	return f.add(Step{Op: OpBatchMean, Args: []Term{x}, Dims: dims})
}

// SumSets returns, for each set, the sum of the elements of an axis with these numbers.
func (f *Formula) SumSets(x Term, axis int, sets [][]int32) Term {
	if x == 0 {
		return 0
	}
	most := 1
	for _, s := range sets {
		most = max(most, len(s))
	}
	if most > maxSums/max(len(sets), 1) {
		return f.Fail(f.current, "sums up to %d elements in %d places, which is too much to write down", most, len(sets))
	}
	// All sets get the size of the largest by zeros, and an axis of their own to be summed over.
	which := make([]int32, 0, len(sets)*most)
	for _, s := range sets {
		which = append(which, s...)
		which = append(which, slices.Repeat([]int32{-1}, most-len(s))...)
	}
	parts := f.Take(x, axis, which)
	if most == 1 {
		return parts
	}
	dims := slices.Clone(f.Dims(parts))
	final := slices.Clone(dims)
	final[axis] = len(sets)
	wide := slices.Concat(dims[:axis], []int{len(sets), most}, dims[axis+1:])
	return f.Reshape(f.Reduce(OpSum, f.Reshape(parts, wide...), axis+1), final...)
}
