package tensor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Reduce reduces its input over some dimensions.
type Reduce struct {
	Op   array.Reduction
	Axes array.Axes // the dimensions, unless All is set
	All  bool       // over all dimensions
}

// reduceAxes returns the op that reduces over the given dimensions, or over all if there are none.
func reduceAxes(op array.Reduction, axes ...int) Reduce {
	r := Reduce{Op: op, All: len(axes) == 0}
	for _, d := range axes {
		if d < 0 || d >= array.MaxDims {
			fail(op.String(), "axis %d", d)
		}
		r.Axes |= 1 << d
	}
	return r
}

// String returns for example sum{axis=0}, or sum for all dimensions.
func (r Reduce) String() string {
	if r.All {
		return r.Op.String()
	}
	var dims []string
	for d := range array.MaxDims {
		if r.Axes.Has(d) {
			dims = append(dims, strconv.Itoa(d))
		}
	}
	return r.Op.String() + "{axis=" + strings.Join(dims, ",") + "}"
}

// Over returns the dimensions of a tensor of ndim dimensions that are reduced.
func (r Reduce) Over(ndim int) array.Axes {
	if r.All {
		return 1<<ndim - 1
	}
	return r.Axes
}

// Infer drops the reduced dimensions.
func (r Reduce) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, wrongCount(r, in, 1)
	}
	t := TypeOf(in[0]).h.Value()
	if t.csr {
		return nil, argError(r, 0, "is a sparse matrix")
	}
	axes := r.Over(int(t.ndim))
	if axes>>t.ndim != 0 {
		return nil, argError(r, 0, "has only %d dimensions", t.ndim)
	}
	s := spec{dtype: r.Op.Result(t.dtype)}
	for d := range int(t.ndim) {
		if !axes.Has(d) {
			s.shape[s.ndim] = t.shape[d]
			s.ndim++
		}
	}
	return one(s.intern()), nil
}

// reducedShape returns the remaining sizes of an array.
func reducedShape(buf *[array.MaxDims]int, a *array.Array, axes array.Axes) []int {
	shape := buf[:0]
	for d, n := range a.Shape() {
		if !axes.Has(d) {
			shape = append(shape, n)
		}
	}
	return shape
}

// Compile returns the reduction.
func (r Reduce) Compile(a *fgraph.Apply) (Kernel, error) {
	axes := r.Over(TypeOf(a.Inputs()[0]).NDim())
	dtype := TypeOf(a.Out()).DType()
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		if err := ws.New(out[0], dtype, reducedShape(&buf, in[0], axes)...); err != nil {
			return err
		}
		return ws.Reduce(r.Op, out[0], in[0], axes)
	}, nil
}

// InferShape drops the reduced dimensions.
func (r Reduce) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, dims := a.Inputs()[0], []*fgraph.Variable{}
	axes := r.Over(TypeOf(x).NDim())
	for d := range TypeOf(x).NDim() {
		if !axes.Has(d) {
			dims = append(dims, s.Dim(x, d))
		}
	}
	return [][]*fgraph.Variable{dims}
}

// Grad broadcasts the gradient over the reduced dimensions.
func (r Reduce) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, g := a.Inputs()[0], out[0]
	axes := r.Over(TypeOf(x).NDim())
	g, y := keepDims(g, axes, TypeOf(x).NDim()), keepDims(a.Out(), axes, TypeOf(x).NDim())
	switch r.Op {
	case array.Sum:
		return []*fgraph.Variable{Second(x, g)}
	case array.Prod: // the product of the other elements, even if one is zero
		return []*fgraph.Variable{Mul(g, prodOfOthers(x, y, r))}
	case array.Max, array.Min: // as in Theano, every element that attains the extreme gets the gradient
		return []*fgraph.Variable{Mul(g, Cast(Map(array.Eq, x, y), TypeOf(g).DType()))}
	case array.LogSumExp:
		return []*fgraph.Variable{Mul(g, Exp(Sub(x, y)))}
	}
	return []*fgraph.Variable{nil}
}

// prodOfOthers returns for each element of x the product of all others; y is the product of all. If
// there is one zero, only its product is not zero, and if there are two, none is.
func prodOfOthers(x, y *fgraph.Variable, r Reduce) *fgraph.Variable {
	axes := r.Over(TypeOf(x).NDim())
	zero := Map(array.Eq, x, Number(0, x))
	zeros := keepDims(MustApply(Reduce{Op: array.Sum, Axes: axes}, Cast(zero, array.Int64)), axes, TypeOf(x).NDim())
	rest := keepDims(MustApply(Reduce{Op: array.Prod, Axes: axes}, Switch(zero, Number(1, x), x)), axes, TypeOf(x).NDim())
	none := Map(array.Eq, zeros, Number(0, zeros))
	one := Map(array.Eq, zeros, Number(1, zeros))
	// The quotient is right as long as nothing is 0. Where one element is, it would be 0/0.
	return Switch(none, TrueDiv(y, x), Switch(Map(array.And, zero, one), rest, Number(0, rest)))
}

// KeepDims returns y, which is x reduced over the named dimensions or over all, with dimensions of
// size 1 in their places, so that it broadcasts against x.
func KeepDims(y, x *fgraph.Variable, axes ...int) *fgraph.Variable {
	ndim := TypeOf(x).NDim()
	return keepDims(y, reduceAxes(array.Sum, NormalAxes("KeepDims", x, axes)...).Over(ndim), ndim)
}

func keepDims(x *fgraph.Variable, axes array.Axes, ndim int) *fgraph.Variable {
	order := make([]int, ndim)
	next := 0
	for d := range order {
		order[d] = array.NewAxis
		if !axes.Has(d) {
			order[d] = next
			next++
		}
	}
	return DimShuffle(x, order...)
}

// ReduceOver returns the reduction of x over the named dimensions, or over all if none is named.
// Negative dimensions count from the end: -1 is the last.
func ReduceOver(op array.Reduction, x *fgraph.Variable, axes ...int) *fgraph.Variable {
	return MustApply(reduceAxes(op, NormalAxes(op.String(), x, axes)...), x)
}

// NormalAxes returns dimensions of x counted from the front: negative ones count from the end. It
// panics with an *Error in the name of op if there is no such dimension.
func NormalAxes(op string, x *fgraph.Variable, axes []int) []int {
	normal, n := make([]int, len(axes)), TypeOf(x).NDim()
	for i, d := range axes {
		if normal[i] = d; d < 0 {
			normal[i] += n
		}
		if normal[i] < 0 || normal[i] >= n {
			fail(op, "axis %d of a %v", d, x.Type())
		}
	}
	return normal
}

// Sum returns the sum of x over the named dimensions; see ReduceOver.
func Sum(x *fgraph.Variable, axes ...int) *fgraph.Variable { return ReduceOver(array.Sum, x, axes...) }

// Mean returns the mean of x over the named dimensions; see ReduceOver. Integers are added as
// floats, as in NumPy, and do not wrap around. The mean of half floats is computed in float32.
func Mean(x *fgraph.Variable, axes ...int) *fgraph.Variable {
	dtype := TypeOf(x).DType().Float()
	float := dtype
	if dtype.IsHalf() {
		float = array.Float32
	}
	return Cast(TrueDiv(Sum(Cast(x, float), axes...), Cast(CountOver(x, axes...), float)), dtype)
}

// CountOver returns the number of elements of x over the named dimensions, or over all if none is
// named, as an integer scalar; see ReduceOver.
func CountOver(x *fgraph.Variable, axes ...int) *fgraph.Variable {
	if len(axes) == 0 {
		axes = allDims(x)
	}
	count := Int(1)
	for i, d := range NormalAxes("sum", x, axes) {
		if n := ShapeI(x, d); i == 0 {
			count = n
		} else {
			count = Mul(count, n)
		}
	}
	return count
}

// ArgmaxOp finds the position of the maximum, or with the field Min that of the minimum, over the
// dimensions that its fields Axes and All describe as in Reduce.
type ArgmaxOp = argmaxOp

type argmaxOp struct {
	noGradient
	Axes array.Axes
	All  bool
	Min  bool
}

// Argmax returns the position of the maximum of x over the named dimensions, counted in
// row-major order over these; see ReduceOver.
func Argmax(x *fgraph.Variable, axes ...int) *fgraph.Variable {
	r := reduceAxes(array.Max, NormalAxes("argmax", x, axes)...)
	return MustApply(ArgmaxOp{Axes: r.Axes, All: r.All}, x)
}

// Argmin is Argmax for the minimum.
func Argmin(x *fgraph.Variable, axes ...int) *fgraph.Variable {
	r := reduceAxes(array.Min, NormalAxes("argmin", x, axes)...)
	return MustApply(ArgmaxOp{Axes: r.Axes, All: r.All, Min: true}, x)
}

func (op argmaxOp) String() string { return "arg" + op.reduction().String() }

// reduction returns the reduction over the same dimensions.
func (op argmaxOp) reduction() Reduce {
	if op.Min {
		return Reduce{array.Min, op.Axes, op.All}
	}
	return Reduce{array.Max, op.Axes, op.All}
}

func (op argmaxOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	types, err := op.reduction().Infer(in)
	if err != nil {
		// Whoever reads the error has an argmax in the graph, and no maximum.
		err.(*Error).Op = op.String()
		return nil, err
	}
	return []fgraph.Type{types[0].(Type).With(array.Int64)}, nil
}

func (op argmaxOp) Compile(a *fgraph.Apply) (Kernel, error) {
	axes := op.reduction().Over(TypeOf(a.Inputs()[0]).NDim())
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		if err := ws.New(out[0], array.Int64, reducedShape(&buf, in[0], axes)...); err != nil {
			return err
		}
		if op.Min {
			return ws.ArgMin(out[0], in[0], axes)
		}
		return ws.ArgMax(out[0], in[0], axes)
	}, nil
}

func (op argmaxOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return op.reduction().InferShape(a, s)
}

// CumulativeOp computes the sums of all elements up to each one along the dimension Axis, or with the
// field Prod the products.
type CumulativeOp = cumulativeOp

type cumulativeOp struct {
	likeFirst
	Prod bool
	Axis int8
}

// Cumsum returns the sums of the elements of x up to each one along a dimension.
func Cumsum(x *fgraph.Variable, axis int) *fgraph.Variable { return cumulate("cumsum", false, x, axis) }

// Cumprod returns the products of the elements of x up to each one along a dimension.
func Cumprod(x *fgraph.Variable, axis int) *fgraph.Variable {
	return cumulate("cumprod", true, x, axis)
}

func cumulate(name string, prod bool, x *fgraph.Variable, axis int) *fgraph.Variable {
	axis = NormalAxes(name, x, []int{axis})[0]
	return MustApply(CumulativeOp{Prod: prod, Axis: int8(axis)}, x)
}

func (op cumulativeOp) String() string {
	if op.Prod {
		return fmt.Sprintf("cumprod{axis=%d}", op.Axis)
	}
	return fmt.Sprintf("cumsum{axis=%d}", op.Axis)
}

// alongAxis checks the input of an op that works along a dimension.
func alongAxis(op fgraph.Op, in []*fgraph.Variable, axis int8) (Type, error) {
	if len(in) != 1 {
		return Type{}, wrongCount(op, in, 1)
	}
	t := TypeOf(in[0])
	if t.IsCSR() || int(axis) >= t.NDim() {
		return t, argError(op, 0, "is a %v, which has no dimension %d to work along", t, axis)
	}
	return t, nil
}

func (op cumulativeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	t, err := alongAxis(op, in, op.Axis)
	if err != nil {
		return nil, err
	}
	return one(t.With(array.Sum.Result(t.DType()))), nil
}

func (op cumulativeOp) Compile(a *fgraph.Apply) (Kernel, error) {
	dtype := TypeOf(a.Out()).DType()
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], dtype, in[0].Shape()...); err != nil {
			return err
		}
		ws.Cumulate(out[0], in[0], int(op.Axis), op.Prod)
		return nil
	}, nil
}

// Grad sums from the end. The derivative of a product is the quotient of product and factor before
// the first zero. At the first zero it is the product without that factor, and behind it, it is 0.
func (op cumulativeOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, g := a.Inputs()[0], out[0]
	axis := int(op.Axis)
	if !op.Prod {
		return []*fgraph.Variable{sumFromEnd(g, axis)}
	}
	zero := Map(array.Eq, x, Number(0, x))
	zeros := Cumsum(Cast(zero, array.Int64), axis)
	first := Map(array.And, zero, Map(array.Eq, zeros, Number(1, zeros)))
	// The first zero counts as 1 here. A second one makes 0 of all that follows, as it does in the products.
	others := Cumprod(Switch(first, Number(1, x), x), axis)
	before := Map(array.Eq, zeros, Number(0, zeros))
	// Behind the first zero the quotient is not taken, but it must not divide by 0 there.
	quotient := TrueDiv(sumFromEnd(Mul(g, a.Out()), axis), Switch(before, x, Number(1, x)))
	rest := Switch(first, sumFromEnd(Mul(g, others), axis), Number(0, g))
	return []*fgraph.Variable{Switch(before, quotient, rest)}
}

// sumFromEnd returns the sums of the elements from each one to the end of a dimension.
func sumFromEnd(x *fgraph.Variable, axis int) *fgraph.Variable {
	return reversed(Cumsum(reversed(x, axis), axis), axis)
}

// reversed returns x with the elements of a dimension in reverse order.
func reversed(x *fgraph.Variable, axis int) *fgraph.Variable {
	return Subtensor(x, along(axis, SliceOf(nil, nil, -1))...)
}
