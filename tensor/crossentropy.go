package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/kernel/elementary"
	"github.com/nnopt/nnopt/tensor/array"
)

// The cross-entropies between rows of probabilities and classes, which are given as a vector of integers.
type (
	// CrossentropyCategorical1HotOp is -log p[i, y[i]]: inputs p, y.
	CrossentropyCategorical1HotOp struct{}
	// CrossentropyCategorical1HotGradOp is its gradient with respect to p: inputs g, p, y.
	CrossentropyCategorical1HotGradOp struct{}
	// CrossentropySoftmaxArgmax1HotWithBiasOp computes at once -log softmax(x+b)[i, y[i]], the softmax, and the largest of each row:
	// inputs x, b, y. It takes the logarithm of nothing that can underflow.
	CrossentropySoftmaxArgmax1HotWithBiasOp struct{}
	// CrossentropySoftmax1HotWithBiasDxOp is the gradient of the first of these with respect to x: (softmax - onehot(y))·g, row by row.
	// Inputs g, softmax, y.
	CrossentropySoftmax1HotWithBiasDxOp struct{}
)

// CrossentropyCategorical1Hot returns -log p[i, y[i]] for each row of p.
func CrossentropyCategorical1Hot(p, y *fgraph.Variable) *fgraph.Variable {
	return Apply(CrossentropyCategorical1HotOp{}, p, y)
}

func (CrossentropyCategorical1HotOp) String() string     { return "CrossentropyCategorical1Hot" }
func (CrossentropyCategorical1HotGradOp) String() string { return "CrossentropyCategorical1HotGrad" }
func (CrossentropySoftmaxArgmax1HotWithBiasOp) String() string {
	return "CrossentropySoftmaxArgmax1HotWithBias"
}
func (CrossentropySoftmax1HotWithBiasDxOp) String() string {
	return "CrossentropySoftmax1HotWithBiasDx"
}

// classArgs checks that p is a matrix of floats and y a vector of classes of its rows.
func classArgs(op fgraph.Op, arg int, p, y *fgraph.Variable) error {
	t, u := TypeOf(p), TypeOf(y)
	if t.NDim() != 2 || !t.DType().IsFloat() || t.IsCSR() {
		return argError(op, arg, "is a %v, not a matrix of floats", t)
	}
	if u.NDim() != 1 || u.DType() != Int64 {
		return argError(op, arg+1, "is a %v, not a vector of integers", u)
	}
	_, err := agree(op, arg+1, t.Dim(0), u.Dim(0))
	return err
}

func takes(op fgraph.Op, in []*fgraph.Variable, n int) error {
	if len(in) != n {
		return &Error{op.String(), -1, fmt.Sprintf("takes %d arguments, not %d", n, len(in))}
	}
	return nil
}

// rowType returns the type of a vector with an element for each row of p.
func rowType(p *fgraph.Variable, dtype DType) Type {
	s := spec{dtype: dtype, ndim: 1}
	s.shape[0] = int32(TypeOf(p).Dim(0))
	return s.intern()
}

// Infer checks the sizes.
func (op CrossentropyCategorical1HotOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := takes(op, in, 2); err != nil {
		return nil, err
	}
	if err := classArgs(op, 0, in[0], in[1]); err != nil {
		return nil, err
	}
	return []fgraph.Type{rowType(in[0], TypeOf(in[0]).DType())}, nil
}

// Infer checks the sizes.
func (op CrossentropyCategorical1HotGradOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferClassGrad(op, in)
}

// Infer checks the sizes.
func (op CrossentropySoftmax1HotWithBiasDxOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferClassGrad(op, in)
}

func inferClassGrad(op fgraph.Op, in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := takes(op, in, 3); err != nil {
		return nil, err
	}
	if err := classArgs(op, 1, in[1], in[2]); err != nil {
		return nil, err
	}
	if t := TypeOf(in[0]); t.NDim() != 1 || t.DType() != TypeOf(in[1]).DType() {
		return nil, argError(op, 0, "is a %v, not a vector of %v", t, TypeOf(in[1]).DType())
	}
	return []fgraph.Type{in[1].Type()}, nil
}

// Infer checks the sizes.
func (op CrossentropySoftmaxArgmax1HotWithBiasOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := takes(op, in, 3); err != nil {
		return nil, err
	}
	if err := biasArgs(op, in[0], in[1]); err != nil {
		return nil, err
	}
	if err := classArgs(op, 0, in[0], in[2]); err != nil {
		return nil, argError(op, 2, "is a %v, not a vector of integers", in[2].Type())
	}
	return []fgraph.Type{rowType(in[0], TypeOf(in[0]).DType()), in[0].Type(), rowType(in[0], Int64)}, nil
}

// classes returns the classes of n rows with m elements as places.
func classes(op fgraph.Op, y *array.Array, n, m int) (func(i int) (int, error), error) {
	if y.Len() != n {
		return nil, fmt.Errorf("%w: %v: %d classes for %d rows", ErrShape, op, y.Len(), n)
	}
	return func(i int) (int, error) {
		c, err := array.Position(y.Int(i), m)
		if err != nil {
			err = fmt.Errorf("%w: %v: class of row %d: %w", ErrShape, op, i, err)
		}
		return c, err
	}, nil
}

// Compile returns the loop over the rows.
func (op CrossentropyCategorical1HotOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		p, m := in[0], in[0].Dim(1)
		class, err := classes(op, in[1], p.Dim(0), m)
		if err != nil {
			return err
		}
		if err := ws.New(out[0], p.DType(), p.Dim(0)); err != nil {
			return err
		}
		log := make([]float64, p.Dim(0))
		for i := range log {
			c, err := class(i)
			if err != nil {
				return err
			}
			out[0].SetFloat(i, -elementary.Log(p.Float(i*m+c)))
		}
		return nil
	}, nil
}

// Compile returns the loop over the rows.
func (op CrossentropyCategorical1HotGradOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		g, p, m := in[0], in[1], in[1].Dim(1)
		class, err := classes(op, in[2], p.Dim(0), m)
		if err != nil {
			return err
		}
		if err := ws.New(out[0], p.DType(), p.Shape()...); err != nil {
			return err
		}
		array.CopyTo(out[0], array.Full(p.DType(), 0))
		for i := range p.Dim(0) {
			c, err := class(i)
			if err != nil {
				return err
			}
			out[0].SetFloat(i*m+c, -g.Float(i)/p.Float(i*m+c))
		}
		return nil
	}, nil
}

// Compile returns the loop over the rows.
func (op CrossentropySoftmaxArgmax1HotWithBiasOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		nll, sm, am := out[0], out[1], out[2]
		n, m := in[0].Dim(0), in[0].Dim(1)
		class, err := classes(op, in[2], n, m)
		if err != nil {
			return err
		}
		if err := softmaxWithBias(op, ws, sm, in[0], in[1], true); err != nil {
			return err
		}
		if err := ws.New(nll, sm.DType(), n); err != nil {
			return err
		}
		if err := ws.New(am, Int64, n); err != nil {
			return err
		}
		for i := range n {
			c, err := class(i)
			if err != nil {
				return err
			}
			nll.SetFloat(i, -sm.Float(i*m+c))
		}
		if err := array.ArgMax(am, sm, 1<<1); err != nil {
			return err
		}
		for i := range sm.Len() {
			sm.SetFloat(i, elementary.Exp(sm.Float(i)))
		}
		return nil
	}, nil
}

// Compile returns the loop over the rows.
func (op CrossentropySoftmax1HotWithBiasDxOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		g, sm, m := in[0], in[1], in[1].Dim(1)
		class, err := classes(op, in[2], sm.Dim(0), m)
		if err != nil {
			return err
		}
		if g.Len() != sm.Dim(0) {
			return fmt.Errorf("%w: %v: %d gradients for %d rows", ErrShape, op, g.Len(), sm.Dim(0))
		}
		if err := ws.New(out[0], sm.DType(), sm.Shape()...); err != nil {
			return err
		}
		for i := range sm.Dim(0) {
			c, err := class(i)
			if err != nil {
				return err
			}
			gi := g.Float(i)
			for j := range m {
				v := sm.Float(i*m + j)
				if j == c {
					v--
				}
				out[0].SetFloat(i*m+j, v*gi)
			}
		}
		return nil
	}, nil
}

func rowsOf(x *fgraph.Variable, s *Shapes) []*fgraph.Variable {
	return []*fgraph.Variable{s.Dim(x, 0)}
}

// InferShape has an element per row.
func (op CrossentropyCategorical1HotOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{rowsOf(a.Inputs()[0], s)}
}

// InferShape is that of the matrix.
func (op CrossentropyCategorical1HotGradOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[1], s)
}

// InferShape is that of the matrix.
func (op CrossentropySoftmax1HotWithBiasDxOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[1], s)
}

// InferShape has an element per row for the first and the last output.
func (op CrossentropySoftmaxArgmax1HotWithBiasOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	return [][]*fgraph.Variable{rowsOf(x, s), s.Shape(x), rowsOf(x, s)}
}

// Grad divides by the probabilities.
func (op CrossentropyCategorical1HotOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return []*fgraph.Variable{Apply(CrossentropyCategorical1HotGradOp{}, out[0], a.Inputs()[0], a.Inputs()[1]), nil}
}

// Grad adds up what comes by way of the cross-entropy and of the softmax.
func (op CrossentropySoftmaxArgmax1HotWithBiasOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	sm := a.Outputs()[1]
	var dx *fgraph.Variable
	if out[0] != nil {
		dx = Apply(CrossentropySoftmax1HotWithBiasDxOp{}, out[0], sm, a.Inputs()[2])
	}
	if out[1] != nil {
		d := Apply(SoftmaxGradOp{}, out[1], sm)
		if dx != nil {
			d = Add(dx, d)
		}
		dx = d
	}
	if dx == nil {
		return make([]*fgraph.Variable, 3)
	}
	return []*fgraph.Variable{dx, Sum(dx, 0), nil}
}
