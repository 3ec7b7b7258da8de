package tensor

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// ARangeOp makes the vector of the integers start, start+step, … before stop: inputs start, stop,
// step.
type ARangeOp = arangeOp

type arangeOp struct{ noGradient }

// ARange returns the vector of the integers start, start+step, … before stop.
func ARange(start, stop, step *fgraph.Variable) *fgraph.Variable {
	return MustApply(ARangeOp{}, AsSize("arange", start), AsSize("arange", stop), AsSize("arange", step))
}

func (arangeOp) String() string { return "ARange" }

func (op arangeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 3 {
		return nil, wrongCount(op, in, 3)
	}
	var n [3]int
	known, constant := true, true
	for i, v := range in {
		if !isSize(v) {
			return nil, argError(op, i, "is a %v, not an integer", v.Type())
		}
		k, ok := knownSize(v)
		n[i] = k
		known, constant = known && ok, constant && v.IsConstant()
	}
	if !known {
		return one(VectorType(array.Int64)), nil
	}
	length, err := rangeLength(n[0], n[1], n[2])
	switch {
	case err != nil:
		return nil, argError(op, 2, "is 0")
	case length == 1 && n[1] != 1 && !constant: // see knownSize
		return one(VectorType(array.Int64)), nil
	}
	return one(NewType(array.Int64, length)), nil
}

// rangeLength returns the number of elements, which may exceed that of any array. The distance of
// the ends may overflow an int.
func rangeLength(start, stop, step int) (int, error) {
	// As unsigned numbers, whose difference is right even where that of the ints overflows.
	span, stride := uint64(stop)-uint64(start), uint64(step)
	if step < 0 {
		start, stop, span, stride = stop, start, -span, -stride
	}
	switch {
	case step == 0:
		return 0, fmt.Errorf("%w: arange with step 0", ErrShape)
	case stop <= start:
		return 0, nil
	}
	return int(min((span-1)/stride+1, math.MaxInt)), nil
}

func (op arangeOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		start, stop, step := in[0].Int(0), in[1].Int(0), in[2].Int(0)
		n, err := rangeLength(int(start), int(stop), int(step))
		if err != nil {
			return err
		}
		if err := ws.New(out[0], array.Int64, n); err != nil {
			return err
		}
		for i := range array.Slice[int64](out[0]) {
			array.Slice[int64](out[0])[i] = start + int64(i)*step
		}
		return nil
	}, nil
}

// maxStep bounds steps: with a smaller one, a distance that overflows an int has more elements
// than fit into memory.
const maxStep = 1 << 20

func (op arangeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	start, stop, step := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2]
	n, ok := constantInt(step)
	if !ok || n == 0 || n > maxStep || n < -maxStep {
		return nil
	}
	if n < 0 {
		start, stop, n = stop, start, -n
	}
	span := intMap(array.Sub, stop, start)
	// Rounded up, because what is left at the end is a part of a step.
	if n > 1 {
		span = intMap(array.IntDiv, intMap(array.Add, span, Int(n-1)), Int(n))
	}
	// A range whose ends are the wrong way around is empty. Only one from 0 on to a size is known not to be.
	if first, ok := constantInt(start); !ok || first != 0 || !positive(span) {
		span = intMap(array.Maximum, span, Int(0))
	}
	return [][]*fgraph.Variable{{span}}
}

// Linspace returns num evenly spaced values from start to stop, or, without the endpoint, num values
// of which the next one would be stop. They make up the first dimension; start and stop are
// broadcast.
func Linspace(start, stop *fgraph.Variable, num int, endpoint bool) *fgraph.Variable {
	if num < 0 {
		fail("linspace", "%d values", num)
	}
	dtype := array.Upcast(TypeOf(start).DType(), TypeOf(stop).DType()).Float()
	start, stop = Cast(start, dtype), Cast(stop, dtype)
	ndim := max(TypeOf(start).NDim(), TypeOf(stop).NDim())
	start, stop = PadLeft(start, ndim), PadLeft(stop, ndim)
	steps := num
	if endpoint {
		steps--
	}
	y := asDim(Cast(ARange(Int(0), Int(num), Int(1)), dtype), 0, ndim+1)
	step := Sub(stop, start)
	if steps > 0 {
		step = TrueDiv(step, Number(float64(steps), step))
	}
	y = Add(Mul(y, step), start)
	if endpoint && num > 1 {
		// The last sum may miss stop by its rounding.
		y = SetSubtensor(y, stop, At(Int(-1)))
	}
	return y
}

// maxDifferences bounds how often Diff takes differences, so that a few characters don't describe a
// large graph.
const maxDifferences = 64

// Diff returns the differences of neighbours along a dimension, n times in a row. Of bools it says
// which neighbours are different.
func Diff(x *fgraph.Variable, n, axis int) *fgraph.Variable {
	const name = "diff"
	if n < 0 || n > maxDifferences {
		fail(name, "the order %d, which is not in 0 to %d", n, maxDifferences)
	}
	axis = NormalAxes(name, x, []int{axis})[0]
	op := array.Sub
	if TypeOf(x).DType() == array.Bool {
		op = array.Neq
	}
	for range n {
		x = Map(op, Subtensor(x, along(axis, SliceOf(Int(1), nil, 1))...), Subtensor(x, along(axis, SliceOf(nil, Int(-1), 1))...))
	}
	return x
}
