package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

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
