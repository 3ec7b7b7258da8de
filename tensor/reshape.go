package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// ReshapeOp gives the elements of its first input, in row-major order, the shape that is its second
// input: a vector of as many integers as its field NDim says. One of them may be -1: it follows
// from the number of elements.
type ReshapeOp = reshapeOp

type reshapeOp struct {
	viewsFirst
	NDim int8
}

// Reshape returns the elements of x in another shape. One size may be the constant -1.
func Reshape(x *fgraph.Variable, dims ...*fgraph.Variable) *fgraph.Variable {
	return ReshapeTo(x, sizeVector(dims), len(dims))
}

// sizeVector returns the vector of sizes, which is a constant if all of them are.
func sizeVector(dims []*fgraph.Variable) *fgraph.Variable {
	sizes := make([]int64, len(dims))
	in := make([]*fgraph.Variable, len(dims))
	constant := true
	for i, d := range dims {
		in[i] = AsSize("Reshape", d)
		n, ok := constantInt(in[i])
		sizes[i] = int64(n)
		constant = constant && ok
	}
	if constant {
		return Constant(array.Of(sizes, len(sizes)))
	}
	return MakeVector(in...)
}

// ReshapeTo is Reshape with the shape as a vector of ndim integers.
func ReshapeTo(x, shape *fgraph.Variable, ndim int) *fgraph.Variable {
	if ndim > array.MaxDims {
		fail("Reshape", "%d dimensions, there can be %d", ndim, array.MaxDims)
	}
	return MustApply(ReshapeOp{NDim: int8(ndim)}, x, shape)
}

// Flatten returns x with its dimensions from ndim-1 on merged into one, so that ndim remain.
func Flatten(x *fgraph.Variable, ndim int) *fgraph.Variable {
	t := TypeOf(x)
	if ndim < 1 || ndim > max(1, t.NDim()) {
		fail("flatten", "%d dimensions of a %v", ndim, t)
	}
	return Reshape(x, append(dimSizes(x)[:ndim-1], Int(-1))...)
}

func (op reshapeOp) String() string { return fmt.Sprintf("Reshape{%d}", op.NDim) }

// ElementsOf returns the elements of a vector of integers as scalars, if it is a constant or a
// MakeVector.
func ElementsOf(v *fgraph.Variable) ([]*fgraph.Variable, bool) {
	if a := ConstantOf(v); a != nil {
		elements := make([]*fgraph.Variable, a.Len())
		for i := range elements {
			elements[i] = Int(int(a.Int(i)))
		}
		return elements, true
	}
	if _, ok := OpOf(v).(MakeVectorOp); ok {
		return v.Owner().Inputs(), true
	}
	return nil, false
}

func (op reshapeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	x, v := TypeOf(in[0]).h.Value(), TypeOf(in[1])
	if v.NDim() != 1 || v.DType() != array.Int64 || v.Dim(0) != Unknown && v.Dim(0) != int(op.NDim) || x.csr {
		return nil, argError(op, 1, "is a %v, not a vector of %d integers", v, op.NDim)
	}
	s := spec{dtype: x.dtype, ndim: uint8(op.NDim)}
	for i := range op.NDim {
		s.shape[i] = Unknown
	}
	dims, ok := ElementsOf(in[1])
	if !ok {
		// The shape of another tensor is known as far as its type tells.
		if _, shape := OpOf(in[1]).(ShapeOp); shape {
			s.shape = TypeOf(in[1].Owner().Inputs()[0]).h.Value().shape
		}
		return one(s.intern()), nil
	}
	known, rest := 1, -1
	for i, d := range dims {
		n, ok := knownSize(d)
		switch {
		case !ok:
			known = -1
		case n == -1 && rest >= 0:
			return nil, argError(op, 1, "has two sizes -1")
		case n == -1:
			rest = i
		case n < 0:
			return nil, argError(op, 1, "has the size %d", n)
		default:
			s.shape[i] = staticSize(n)
			known = timesSize(known, n)
		}
	}
	total := 1
	for _, n := range x.shape[:x.ndim] {
		total = timesSize(total, int(n))
	}
	switch {
	case total < 0 || known < 0:
	case rest < 0 && known != total, rest >= 0 && (known == 0 || total%known != 0):
		return nil, argError(op, 0, "is a %v, which can't be reshaped to %v", in[0].Type(), in[1])
	case rest >= 0:
		s.shape[rest] = staticSize(total / known)
	}
	return one(s.intern()), nil
}

func (op reshapeOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		shape := buf[:op.NDim]
		if err := op.sizes(shape, in); err != nil {
			return err
		}
		if in[0].ReshapeTo(out[0], shape...) {
			return nil
		}
		// The output counts as a view, so nothing releases the copy before the next call.
		var c array.Array
		if err := ws.Lend(&c, in[0]); err != nil {
			return err
		}
		c.ReshapeTo(out[0], shape...)
		return nil
	}, nil
}

// sizes sets the sizes of the output for the inputs of a kernel.
func (op reshapeOp) sizes(shape []int, in []*array.Array) error {
	x := in[0]
	if in[1].Len() != int(op.NDim) {
		return fmt.Errorf("%w: %v with %d sizes", ErrShape, op, in[1].Len())
	}
	known, rest := 1, -1
	for i := range shape {
		n := in[1].Int(i)
		switch {
		case n == -1 && rest < 0:
			rest = i
		case n < 0:
			return fmt.Errorf("%w: %v to %v", ErrShape, op, in[1])
		default:
			shape[i] = int(n)
			known = timesSize(known, int(n))
		}
	}
	total := x.Len()
	if known < 0 {
		return fmt.Errorf("%w: %v to %v, which no memory holds", ErrShape, op, in[1])
	}
	if rest >= 0 && known == 0 {
		return fmt.Errorf("%w: %v to %v: the size -1 may be any, as another one is 0", ErrShape, op, in[1])
	}
	if rest >= 0 && total%known == 0 {
		shape[rest] = total / known
		known = total
	}
	if known != total {
		return fmt.Errorf("%w: %v of an array of shape %v to %v", ErrShape, op, x.Shape(), in[1])
	}
	return nil
}

// timesSize multiplies two sizes. The result is Unknown if one is or if it is more than any array has.
func timesSize(m, n int) int {
	if m < 0 || n < 0 || n > 0 && m > math.MaxInt/n {
		return Unknown
	}
	return m * n
}

// LayOut implements Viewing.
func (op reshapeOp) LayOut(a *fgraph.Apply, x, v *array.Array) bool {
	return x.ReshapeTo(v, TypeOf(a.Out()).Shape()...)
}

// CompileCopy implements Copying.
func (op reshapeOp) CompileCopy(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		shape := buf[:op.NDim]
		if err := op.sizes(shape, in); err != nil {
			return err
		}
		if err := ws.New(out[0], in[0].DType(), shape...); err != nil {
			return err
		}
		// The elements are written in the order of the input.
		as := ws.View(0)
		out[0].ReshapeTo(as, in[0].Shape()...)
		ws.Copy(as, in[0])
		*as = array.Array{}
		return nil
	}, nil
}

func (op reshapeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	dims := make([]*fgraph.Variable, op.NDim)
	elements, ok := ElementsOf(a.Inputs()[1])
	rest := -1
	for i := range dims {
		if n, ok := s.number(a.Out(), i); ok {
			dims[i] = s.size(n)
			continue
		}
		if !ok {
			return nil
		}
		n, constant := constantInt(elements[i])
		switch {
		case constant && n == -1:
			rest = i
		case constant || positive(elements[i]):
			dims[i] = elements[i]
		default: // it might be -1
			return nil
		}
	}
	if rest >= 0 {
		known := append(append([]*fgraph.Variable{}, dims[:rest]...), dims[rest+1:]...)
		total := product(s, s.Shape(x))
		dims[rest] = total
		if p := product(s, known); !isOne(p) {
			dims[rest] = MustApply(OpFor(array.IntDiv), total, p)
		}
	}
	return [][]*fgraph.Variable{dims}
}

func (op reshapeOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x := a.Inputs()[0]
	if slices.Contains(TypeOf(x).Shape(), 1) { // which broadcasts, and has to remain so
		return []*fgraph.Variable{Reshape(out[0], dimSizes(x)...), nil}
	}
	return []*fgraph.Variable{ReshapeTo(out[0], Shape(x), TypeOf(x).NDim()), nil}
}
