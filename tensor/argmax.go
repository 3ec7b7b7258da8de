package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

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
