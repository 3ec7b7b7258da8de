package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// NonzeroOp finds the true elements of a mask: an output for each dimension has their positions along
// it, in row-major order. Inputs are the mask and, if they are to be checked, the sizes that it must
// have.
type NonzeroOp = nonzeroOp

// RepeatIndexOp makes the vector of the integers 0, 1, …, each as often as its first input, a vector
// of counts, says. Its second input is the number of counts that there must be.
type RepeatIndexOp = repeatIndexOp

type (
	nonzeroOp     struct{ noGradient }
	repeatIndexOp struct{ noGradient }
)

// Nonzero returns, for each dimension of x, the positions of the elements that are not zero.
func Nonzero(x *fgraph.Variable) []*fgraph.Variable {
	if TypeOf(x).DType() != array.Bool {
		x = Map(array.Neq, x, Number(0, x))
	}
	a, err := Make(NonzeroOp{}, x)
	if err != nil {
		panic(err)
	}
	return a.Outputs()
}

func (nonzeroOp) String() string     { return "Nonzero" }
func (repeatIndexOp) String() string { return "RepeatIndex" }

func (op nonzeroOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, opError(op, "needs a mask")
	}
	t := TypeOf(in[0])
	if t.DType() != array.Bool || t.NDim() == 0 {
		return nil, argError(op, 0, "is a %v, not a mask: a tensor of bools with dimensions", t)
	}
	if len(in) != 1 && len(in) != 1+t.NDim() {
		return nil, opError(op, "%d sizes for a %v", len(in)-1, t)
	}
	s, err := sizesOf(op, 1, in)
	if err != nil {
		return nil, err
	}
	for d, n := range s.shape[:s.ndim] {
		if _, err := agree(op, 0, int(n), t.Dim(d)); err != nil {
			return nil, err
		}
	}
	types := make([]fgraph.Type, t.NDim())
	for d := range types {
		types[d] = VectorType(array.Int64)
	}
	return types, nil
}

func (op repeatIndexOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	t := TypeOf(in[0])
	if t.DType() != array.Int64 || t.NDim() != 1 {
		return nil, argError(op, 0, "is a %v, not a vector of integers", t)
	}
	if !isSize(in[1]) {
		return nil, argError(op, 1, "is a %v, not a size", in[1].Type())
	}
	if n, ok := constantInt(in[1]); ok && t.Dim(0) != Unknown && t.Dim(0) != n {
		return nil, argError(op, 0, "has %d counts for %d elements", t.Dim(0), n)
	}
	c := ConstantOf(in[0])
	if c == nil {
		return one(VectorType(array.Int64)), nil
	}
	total := 0
	for i := range c.Len() {
		// A negative count is an error when the op runs. Large ones are cut so that the sum can't overflow.
		total += int(min(max(c.Int(i), 0), maxOffset))
	}
	return one(NewType(array.Int64, total)), nil
}

func (op nonzeroOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		for d, size := range in[1:] {
			if n := size.Int(0); n != int64(in[0].Dim(d)) {
				return fmt.Errorf("%w: %v: a mask of size %d for size %d in dimension %d", ErrShape, op, in[0].Dim(d), n, d)
			}
		}
		return ws.NonzeroTo(out, in[0])
	}, nil
}

func (op repeatIndexOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if n := in[1].Int(0); n != int64(in[0].Len()) {
			return fmt.Errorf("%w: %v: %d counts for %d elements", ErrShape, op, in[0].Len(), n)
		}
		return shapeFault(ws.RepeatTo(out[0], in[0]))
	}, nil
}

// InferShape says that all outputs are as long as the first one.
func (op nonzeroOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	shapes := make([][]*fgraph.Variable, len(a.Outputs()))
	length := ShapeI(a.Outputs()[0], 0)
	for d := range shapes {
		shapes[d] = []*fgraph.Variable{length}
	}
	return shapes
}
