package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// MakeVectorOp makes a vector of scalars.
type MakeVectorOp struct{ DType DType }

// MakeVector returns a vector of scalars, upcast to one type; of integers if there are none.
func MakeVector(xs ...*fgraph.Variable) *fgraph.Variable {
	op := MakeVectorOp{Int64}
	if len(xs) > 0 {
		types := dtypesOf(xs)
		op.DType = array.Upcast(types[0], types[1:]...)
	}
	in := make([]*fgraph.Variable, len(xs))
	for i, x := range xs {
		in[i] = castConstant(x, op.DType)
	}
	return Apply(op, in...)
}

// castConstant is Cast that converts constants right away.
func castConstant(x *fgraph.Variable, to DType) *fgraph.Variable {
	if a := ConstantOf(x); a != nil && a.DType() != to && a.Len() == 1 {
		return Constant(a.Cast(to))
	}
	return Cast(x, to)
}

// String returns for example MakeVector{int64}.
func (op MakeVectorOp) String() string { return "MakeVector{" + op.DType.String() + "}" }

// Infer wants scalars.
func (op MakeVectorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	for i, v := range in {
		if TypeOf(v) != ScalarType(op.DType) {
			return nil, argError(op, i, "is a %v", v.Type())
		}
	}
	return []fgraph.Type{NewType(op.DType, len(in))}, nil
}

// Compile returns the gathering.
func (op MakeVectorOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], op.DType, len(in)); err != nil {
			return err
		}
		var place array.Array
		for i, x := range in {
			out[0].RangeTo(&place, array.Range{Start: i, Drop: true})
			array.CopyTo(&place, x)
		}
		return nil
	}, nil
}

// InferShape knows the length.
func (op MakeVectorOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{{s.Size(len(a.Inputs()))}}
}

// Grad takes the vector apart.
func (op MakeVectorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	for i := range grads {
		grads[i] = Subtensor(out[0], At(Int(i)))
	}
	return grads
}

// ReshapeOp gives the elements of its first input, in row-major order, the shape that is its second input, a vector of NDim
// integers. One of them may be -1: what is left.
type ReshapeOp struct{ NDim int8 }

// Reshape returns the elements of x in another shape. One size may be the constant -1.
func Reshape(x *fgraph.Variable, dims ...*fgraph.Variable) *fgraph.Variable {
	return ReshapeTo(x, SizeVector("Reshape", dims), len(dims))
}

// SizeVector returns the vector of sizes: a constant if all of them are.
func SizeVector(op string, dims []*fgraph.Variable) *fgraph.Variable {
	sizes := make([]int64, len(dims))
	in := make([]*fgraph.Variable, len(dims))
	constant := true
	for i, d := range dims {
		in[i] = AsSize(op, d)
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
	if ndim > MaxDims {
		fail("Reshape", "%d dimensions, there can be %d", ndim, MaxDims)
	}
	return Apply(ReshapeOp{int8(ndim)}, x, shape)
}

// Flatten returns x with its dimensions from ndim-1 on united into one, so that ndim remain.
func Flatten(x *fgraph.Variable, ndim int) *fgraph.Variable {
	t := TypeOf(x)
	if ndim < 1 || ndim > max(1, t.NDim()) {
		fail("flatten", "%d dimensions of a %v", ndim, t)
	}
	dims := make([]*fgraph.Variable, ndim)
	for d := range ndim - 1 {
		dims[d] = ShapeI(x, d)
		if n := t.Dim(d); n != Unknown {
			dims[d] = Int(n)
		}
	}
	dims[ndim-1] = Int(-1)
	return Reshape(x, dims...)
}

// String returns for example Reshape{2}.
func (op ReshapeOp) String() string { return fmt.Sprintf("Reshape{%d}", op.NDim) }

// ViewMap tells that the output may show the input.
func (op ReshapeOp) ViewMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }

// ElementsOf returns the elements of a vector of integers as scalars, as far as they can be seen: those of a constant or a MakeVector.
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

// Infer takes sizes from constants.
func (op ReshapeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, &Error{op.String(), -1, "takes two arguments"}
	}
	x, v := TypeOf(in[0]).h.Value(), TypeOf(in[1])
	if v.NDim() != 1 || v.DType() != Int64 || v.Dim(0) != Unknown && v.Dim(0) != int(op.NDim) || x.csr {
		return nil, argError(op, 1, "is a %v, not a vector of %d integers", v, op.NDim)
	}
	s := spec{dtype: x.dtype, ndim: uint8(op.NDim)}
	for i := range op.NDim {
		s.shape[i] = Unknown
	}
	dims, ok := ElementsOf(in[1])
	if !ok {
		return []fgraph.Type{s.intern()}, nil
	}
	known, rest := 1, -1
	for i, d := range dims {
		n, ok := constantInt(d)
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
			if known >= 0 {
				known *= n
			}
		}
	}
	total := 1
	for _, n := range x.shape[:x.ndim] {
		if n == Unknown || total < 0 {
			total = -1
			break
		}
		total *= int(n)
	}
	switch {
	case total < 0 || known < 0:
	case rest < 0 && known != total, rest >= 0 && (known == 0 || total%known != 0):
		return nil, argError(op, 0, "is a %v, which can't be reshaped to %v", in[0].Type(), in[1])
	case rest >= 0:
		s.shape[rest] = staticSize(total / known)
	}
	return []fgraph.Type{s.intern()}, nil
}

// Compile makes a view where the elements lie in order, and else a copy.
func (op ReshapeOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		x := in[0]
		if in[1].Len() != int(op.NDim) {
			return fmt.Errorf("%w: %v with %d sizes", ErrShape, op, in[1].Len())
		}
		var buf [MaxDims]int
		shape := buf[:op.NDim]
		known, rest := 1, -1
		for i := range shape {
			n := in[1].Int(i)
			switch {
			case n == -1 && rest < 0:
				rest = i
			case n < 0 || n > 1<<40 || known > 1<<40:
				return fmt.Errorf("%w: %v to %v", ErrShape, op, in[1])
			default:
				shape[i] = int(n)
				known *= int(n)
			}
		}
		total := x.Len()
		if rest >= 0 && known > 0 && total%known == 0 {
			shape[rest] = total / known
			known = total
		}
		if known != total {
			return fmt.Errorf("%w: %v of an array of shape %v to %v", ErrShape, op, x.Shape(), in[1])
		}
		if x.ReshapeTo(out[0], shape...) {
			return nil
		}
		// The copy is ordinary memory: nothing gives it back, as the output counts as a view.
		x.Clone().ReshapeTo(out[0], shape...)
		return nil
	}, nil
}

// InferShape takes the sizes, and computes one that is -1.
func (op ReshapeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, t := a.Inputs()[0], TypeOf(a.Out())
	dims := make([]*fgraph.Variable, op.NDim)
	elements, ok := ElementsOf(a.Inputs()[1])
	rest := -1
	for i := range dims {
		if n := t.Dim(i); n != Unknown {
			dims[i] = s.Size(n)
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
			dims[rest] = Apply(OpFor(array.IntDiv), total, p)
		}
	}
	return [][]*fgraph.Variable{dims}
}

func isOne(v *fgraph.Variable) bool {
	n, ok := constantInt(v)
	return ok && n == 1
}

// positive reports whether an integer scalar is a size, and thus not -1.
func positive(v *fgraph.Variable) bool {
	if n, ok := constantInt(v); ok {
		return n >= 0
	}
	switch op := OpOf(v).(type) {
	case ShapeIOp:
		return true
	case Elemwise:
		if op.Op == array.Mul || op.Op == array.Add || op.Op == array.Maximum || op.Op == array.IntDiv {
			for _, in := range v.Owner().Inputs() {
				if in.Owner() != nil { // one level is enough for what shapes are made of
					if _, ok := OpOf(in).(ShapeIOp); !ok {
						return false
					}
				} else if n, ok := constantInt(in); !ok || n < 0 {
					return false
				}
			}
			return true
		}
	}
	return false
}

// Grad gives the gradient the shape of x.
func (op ReshapeOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x := a.Inputs()[0]
	return []*fgraph.Variable{ReshapeTo(out[0], Shape(x), TypeOf(x).NDim()), nil}
}
