package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

// JoinOp joins its inputs, which have the same number of dimensions, along one dimension: its field
// Axis.
type JoinOp = joinOp

type joinOp struct{ Axis int8 }

// Join joins tensors along a dimension; a negative one counts from the end. They are upcast to one
// element type.
func Join(axis int, xs ...*fgraph.Variable) *fgraph.Variable {
	if len(xs) == 0 {
		fail("join", "no tensors")
	}
	axis = NormalAxes("join", xs[0], []int{axis})[0]
	types := dtypesOf(xs)
	in := make([]*fgraph.Variable, len(xs))
	dtype := array.Upcast(types[0], types[1:]...) // once: there may be 100,000
	for i, x := range xs {
		in[i] = Cast(x, dtype)
	}
	return MustApply(JoinOp{Axis: int8(axis)}, in...)
}

// Stack joins tensors along a new dimension of the result; a negative one counts from the end.
func Stack(axis int, xs ...*fgraph.Variable) *fgraph.Variable {
	if len(xs) == 0 {
		fail("stack", "no tensors")
	}
	n := TypeOf(xs[0]).NDim()
	at := axis
	if at < 0 {
		at += n + 1
	}
	if at < 0 || at > n {
		fail("stack", "axis %d of a tensor of %d dimensions", axis, n+1)
	}
	if n == 0 {
		return MakeVector(xs...)
	}
	order := slices.Insert(upTo(n), at, array.NewAxis)
	in := make([]*fgraph.Variable, len(xs))
	for i, x := range xs {
		if TypeOf(x).NDim() != n {
			fail("stack", "a %v and a %v", xs[0].Type(), x.Type())
		}
		in[i] = DimShuffle(x, order...)
	}
	return Join(at, in...)
}

func (op joinOp) String() string { return fmt.Sprintf("Join{%d}", op.Axis) }

func (op joinOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, opError(op, "needs tensors")
	}
	s := TypeOf(in[0]).h.Value()
	if int(op.Axis) >= int(s.ndim) || s.csr {
		return nil, argError(op, 0, "is a %v", in[0].Type())
	}
	total := s.shape[op.Axis]
	for i, v := range in[1:] {
		t := TypeOf(v).h.Value()
		if t.ndim != s.ndim || t.dtype != s.dtype || t.csr {
			return nil, argError(op, i+1, "is a %v, the first one is a %v", v.Type(), in[0].Type())
		}
		for d, n := range t.shape[:t.ndim] {
			if d == int(op.Axis) {
				if total == Unknown || n == Unknown {
					total = Unknown
				} else {
					total = staticSize(int(total) + int(n))
				}
				continue
			}
			m, err := agree(op, i+1, int(s.shape[d]), int(n))
			if err != nil {
				return nil, err
			}
			s.shape[d] = m
		}
	}
	s.shape[op.Axis] = total
	return one(s.intern()), nil
}

func (op joinOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		shape := buf[:copy(buf[:], in[0].Shape())]
		for _, x := range in[1:] {
			for d, n := range x.Shape() {
				if d == int(op.Axis) {
					shape[d] += n
				} else if n != shape[d] {
					return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, in[0].Shape(), x.Shape())
				}
			}
		}
		if err := ws.New(out[0], in[0].DType(), shape...); err != nil {
			return err
		}
		var ranges [array.MaxDims]array.Range
		for d, n := range shape {
			ranges[d] = array.Range{Step: 1, Count: n}
		}
		place := ws.View(0)
		r := &ranges[op.Axis]
		for _, x := range in {
			r.Count = x.Dim(int(op.Axis))
			out[0].RangeTo(place, ranges[:len(shape)]...)
			if !x.Begins(out[0]) || r.Start > 0 { // what is there already has memory to grow, see exec.Runner.LendRoom
				ws.Copy(place, x)
			}
			r.Start += r.Count
		}
		return nil
	}, nil
}

func (op joinOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	dims := append([]*fgraph.Variable{}, s.Shape(a.Inputs()[0])...)
	for _, x := range a.Inputs()[1:] {
		dims[op.Axis] = intMap(array.Add, dims[op.Axis], s.Dim(x, int(op.Axis)))
	}
	return [][]*fgraph.Variable{dims}
}

func (op joinOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	start := Int(0)
	for i, x := range a.Inputs() {
		stop := intMap(array.Add, start, sizeOf(x, int(op.Axis)))
		grads[i] = Subtensor(out[0], along(int(op.Axis), SliceOf(start, stop, 1))...)
		start = stop
	}
	return grads
}

// MakeVectorOp makes a vector of scalars, which have the element type that its field DType names.
type MakeVectorOp = makeVectorOp

type makeVectorOp struct{ DType array.DType }

// MakeVector returns a vector of scalars, upcast to one element type, which is int64 if there are
// none.
func MakeVector(xs ...*fgraph.Variable) *fgraph.Variable {
	op := MakeVectorOp{DType: array.Int64}
	if len(xs) > 0 {
		types := dtypesOf(xs)
		op.DType = array.Upcast(types[0], types[1:]...)
	}
	in := lists.Map(xs, func(x *fgraph.Variable) *fgraph.Variable { return castConstant(x, op.DType) })
	return MustApply(op, in...)
}

// castConstant is Cast, but converts a constant of one element right away.
func castConstant(x *fgraph.Variable, to array.DType) *fgraph.Variable {
	if a := ConstantOf(x); a != nil && a.DType() != to && a.Len() == 1 {
		return Constant(a.Cast(to))
	}
	return Cast(x, to)
}

func (op makeVectorOp) String() string { return "MakeVector{" + op.DType.String() + "}" }

func (op makeVectorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	for i, v := range in {
		if TypeOf(v) != ScalarType(op.DType) {
			return nil, argError(op, i, "is a %v", v.Type())
		}
	}
	return []fgraph.Type{NewType(op.DType, len(in))}, nil
}

func (op makeVectorOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], op.DType, len(in)); err != nil {
			return err
		}
		place := ws.View(0)
		for i, x := range in {
			out[0].RangeTo(place, array.Range{Start: i, Drop: true})
			array.CopyTo(place, x)
		}
		return nil
	}, nil
}

func (op makeVectorOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{{s.size(len(a.Inputs()))}}
}

func (op makeVectorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	grads := make([]*fgraph.Variable, len(a.Inputs()))
	for i := range grads {
		grads[i] = Subtensor(out[0], At(Int(i)))
	}
	return grads
}

// MaxParts bounds the parts of a tensor, so that a few characters don't describe a large graph.
const MaxParts = 256

// Split cuts x along a dimension into parts of one size. The error at run time wraps ErrAssert if
// that is not possible.
func Split(x *fgraph.Variable, parts, axis int) []*fgraph.Variable {
	const name = "split"
	axis = checkParts(name, x, parts, axis)
	n := sizeOf(x, axis)
	if k, ok := constantInt(n); ok && k%parts != 0 {
		fail(name, "size %d of dimension %d is not a multiple of %d", k, axis, parts)
	} else if !ok && parts > 1 {
		n = Assert(n, fmt.Sprintf("split: the size is not a multiple of %d", parts), Map(array.Eq, Map(array.Mod, n, Int(parts)), Int(0)))
	}
	size, cuts := intMap(array.IntDiv, n, Int(parts)), make([]*fgraph.Variable, parts-1)
	for i := range cuts {
		cuts[i] = intMap(array.Mul, size, Int(i+1))
	}
	return SplitAt(x, axis, cuts...)
}

// ArraySplit cuts x along a dimension into parts of nearly one size: the first ones may be larger by
// one.
func ArraySplit(x *fgraph.Variable, parts, axis int) []*fgraph.Variable {
	axis = checkParts("array_split", x, parts, axis)
	n := sizeOf(x, axis)
	size, cuts := intMap(array.IntDiv, n, Int(parts)), make([]*fgraph.Variable, parts-1)
	rest := intMap(array.Sub, n, intMap(array.Mul, size, Int(parts)))
	for i := range cuts {
		// The first parts, as many as rest, have an element more. So the first i+1 have i+1 more, but not more
		// than rest.
		cuts[i] = intMap(array.Add, intMap(array.Mul, size, Int(i+1)), intMap(array.Minimum, Int(i+1), rest))
	}
	return SplitAt(x, axis, cuts...)
}

func checkParts(op string, x *fgraph.Variable, parts, axis int) int {
	if parts < 1 || parts > MaxParts {
		fail(op, "%d parts, there can be 1 to %d", parts, MaxParts)
	}
	return NormalAxes(op, x, []int{axis})[0]
}

// SplitAt cuts x along a dimension before the positions cuts, which are bounds of slices.
func SplitAt(x *fgraph.Variable, axis int, cuts ...*fgraph.Variable) []*fgraph.Variable {
	axis = NormalAxes("split", x, []int{axis})[0]
	parts := make([]*fgraph.Variable, len(cuts)+1)
	var start *fgraph.Variable
	for i := range parts {
		var stop *fgraph.Variable
		if i < len(cuts) {
			stop = cuts[i]
		}
		parts[i] = Subtensor(x, along(axis, SliceOf(start, stop, 1))...)
		start = stop
	}
	return parts
}

// SplitSizes cuts x along a dimension into parts of these sizes, which are integer scalars. The error
// at run time wraps ErrAssert if they are not all of x.
func SplitSizes(x *fgraph.Variable, axis int, sizes ...*fgraph.Variable) []*fgraph.Variable {
	axis = NormalAxes("split", x, []int{axis})[0]
	var cuts []*fgraph.Variable
	end, signs := Int(0), []*fgraph.Variable{}
	for _, n := range sizes {
		n = AsSize("split", n)
		if !positive(n) {
			signs = append(signs, Map(array.Ge, n, Int(0)))
		}
		end = intMap(array.Add, end, n)
		cuts = append(cuts, end)
	}
	if n := sizeOf(x, axis); !SameSize(end, n) {
		signs = append(signs, Map(array.Eq, end, n))
	}
	if len(signs) > 0 {
		x = Assert(x, "split: the sizes of the parts are not those of a tensor of this size", signs...)
	}
	return SplitAt(x, axis, cuts[:len(cuts)-1]...)
}

// SpliceMatmulOp is the product of MatmulOp of N tensors, joined along their last dimension, and a
// single matrix: inputs x₁, …, x_N, and y. It reads the tensors where they are. If y is a constant, it
// is prepared once, for all calls. The bits are those of MatmulOp.
type SpliceMatmulOp = spliceMatmulOp

type spliceMatmulOp struct{ N int8 }

func (op spliceMatmulOp) String() string { return fmt.Sprintf("SpliceMatmul{%d}", op.N) }

// Infer implements Op.
func (op spliceMatmulOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	n := int(op.N)
	if n < 1 || len(in) != n+1 {
		return nil, wrongCount(op, in, max(n, 1)+1)
	}
	for i, v := range in {
		if t := TypeOf(v); t.DType() != array.Float32 || t.NDim() < 3 || t.NDim() != TypeOf(in[0]).NDim() || t.IsCSR() {
			return nil, argError(op, i, "is a %v, not a tensor of float32s of three or more dimensions like the first one", t)
		}
	}
	joined, err := Make(JoinOp{Axis: int8(TypeOf(in[0]).NDim() - 1)}, in[:n]...)
	if err != nil {
		return nil, err
	}
	y := TypeOf(in[n])
	for d := range y.NDim() - 2 {
		if y.Dim(d) != 1 {
			return nil, argError(op, n, "is a %v, not a single matrix", y)
		}
	}
	return MatmulOp{}.Infer([]*fgraph.Variable{joined.Out(), in[n]})
}

// factors is the form of the parts of a factor, with their numbers of rows.
type factors string

// Compile implements Op.
func (op spliceMatmulOp) Compile(a *fgraph.Apply) (Kernel, error) { return op.compileProduct(a, nil) }

// compileProduct implements multiplier.
func (op spliceMatmulOp) compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error) {
	n := int(op.N)
	var none []*array.Factor
	prepared := func(*array.Workspace) *[]*array.Factor { return &none }
	if y := ConstantOf(a.Inputs()[n]); y != nil {
		d := y.NDim()
		sizes := make([]int, n)
		known := true
		for i, x := range a.Inputs()[:n] {
			sizes[i] = TypeOf(x).Dim(d - 1)
			known = known && sizes[i] != Unknown
		}
		// The matrix is cut into parts with as many rows as the tensors have columns, so it can be prepared
		// only if all of these are known before a run.
		if known {
			prepared = preparation.Once(y, factors(fmt.Sprint(sizes)), func(ws *array.Workspace) *[]*array.Factor {
				list := array.NewFactors(y, sizes, ws.Threads)
				return &list
			})
		}
	}
	return func(ws *array.Workspace, in, out []*array.Array) error {
		d := in[0].NDim() - 1
		var shape [array.MaxDims]int
		copy(shape[:], in[0].Shape())
		terms := 0
		for i, x := range in[:n] {
			for k, m := range x.Shape()[:d] {
				if m != shape[k] {
					return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, in[0].Shape(), in[i].Shape())
				}
			}
			terms += x.Dim(d)
		}
		if m := in[n].Dim(d - 1); m != terms {
			return fmt.Errorf("%w: %v of %d columns and shape %v", ErrShape, op, terms, in[n].Shape())
		}
		shape[d] = in[n].Dim(d)
		if err := ws.New(out[0], array.Float32, shape[:d+1]...); err != nil {
			return err
		}
		if err := fitArgs(op, out[0], in[n+1:]); err != nil {
			return err
		}
		return ws.SpliceMatMul(out[0], in[:n], in[n], *prepared(ws), e, in[n+1:])
	}, nil
}

// InferShape implements ShapeInferer.
func (op spliceMatmulOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, y := a.Inputs()[0], a.Inputs()[op.N]
	d := TypeOf(x).NDim() - 1
	var dims []*fgraph.Variable
	for k := range d {
		dims = append(dims, s.Dim(x, k))
	}
	return [][]*fgraph.Variable{append(dims, s.Dim(y, d))}
}

// whole returns the product of the joined tensor.
func (op spliceMatmulOp) whole(in []*fgraph.Variable) *fgraph.Variable {
	return Matmul(Join(-1, in[:op.N]...), in[op.N])
}

// Cost implements Coster.
func (op spliceMatmulOp) Cost(a *fgraph.Apply) float64 { return Cost(op.whole(a.Inputs()).Owner()) }
