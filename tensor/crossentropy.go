package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/tensor/array"
)

// The cross-entropies between rows of probabilities and classes, which are a vector of integers.
type (
	// CrossentropyCategorical1HotOp computes -log p[i, y[i]]: inputs p, y.
	CrossentropyCategorical1HotOp = crossentropyOp
	// CrossentropyCategorical1HotGradOp computes the gradient of a CrossentropyCategorical1HotOp with
	// respect to p: inputs g, p, y.
	CrossentropyCategorical1HotGradOp = crossentropyGradOp
	// CrossentropySoftmaxArgmax1HotWithBiasOp computes -log softmax(x+b)[i, y[i]], the softmax, and
	// the column of the maximum of each row: inputs x, b, y. It takes no logarithm of a number that
	// may underflow.
	CrossentropySoftmaxArgmax1HotWithBiasOp = crossentropySoftmaxOp
	// CrossentropySoftmax1HotWithBiasDxOp computes the gradient of the first output of a
	// CrossentropySoftmaxArgmax1HotWithBiasOp with respect to x, which is (softmax - onehot(y))·g,
	// row by row: inputs g, softmax, y.
	CrossentropySoftmax1HotWithBiasDxOp = crossentropySoftmaxGradOp
)

type (
	crossentropyOp            struct{}
	crossentropyGradOp        struct{ likeSecond }
	crossentropySoftmaxOp     struct{}
	crossentropySoftmaxGradOp struct{ likeSecond }
)

// CrossentropyCategorical1Hot returns -log p[i, y[i]] for each row of p.
func CrossentropyCategorical1Hot(p, y *fgraph.Variable) *fgraph.Variable {
	return MustApply(CrossentropyCategorical1HotOp{}, p, y)
}

func (crossentropyOp) String() string            { return "CrossentropyCategorical1Hot" }
func (crossentropyGradOp) String() string        { return "CrossentropyCategorical1HotGrad" }
func (crossentropySoftmaxOp) String() string     { return "CrossentropySoftmaxArgmax1HotWithBias" }
func (crossentropySoftmaxGradOp) String() string { return "CrossentropySoftmax1HotWithBiasDx" }

// classArgs checks that p is a matrix of floats and y a vector of classes of its rows.
func classArgs(op fgraph.Op, arg int, p, y *fgraph.Variable) error {
	t, u := TypeOf(p), TypeOf(y)
	if t.NDim() != 2 || !t.DType().IsFloat() || t.IsCSR() {
		return argError(op, arg, "is a %v, not a matrix of floats", t)
	}
	if u.NDim() != 1 || u.DType() != array.Int64 {
		return argError(op, arg+1, "is a %v, not a vector of integers", u)
	}
	_, err := agree(op, arg+1, t.Dim(0), u.Dim(0))
	return err
}

func (op crossentropyOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	if err := classArgs(op, 0, in[0], in[1]); err != nil {
		return nil, err
	}
	return one(NewType(TypeOf(in[0]).DType(), TypeOf(in[0]).Dim(0))), nil
}

func (op crossentropyGradOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferClassGrad(op, in)
}

func (op crossentropySoftmaxGradOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferClassGrad(op, in)
}

func inferClassGrad(op fgraph.Op, in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 3 {
		return nil, wrongCount(op, in, 3)
	}
	if err := classArgs(op, 1, in[1], in[2]); err != nil {
		return nil, err
	}
	if t := TypeOf(in[0]); t.NDim() != 1 || t.DType() != TypeOf(in[1]).DType() {
		return nil, argError(op, 0, "is a %v, not a vector of %v", t, TypeOf(in[1]).DType())
	}
	return []fgraph.Type{in[1].Type()}, nil
}

func (op crossentropySoftmaxOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 3 {
		return nil, wrongCount(op, in, 3)
	}
	if err := biasArgs(op, in[0], in[1]); err != nil {
		return nil, err
	}
	if err := classArgs(op, 0, in[0], in[2]); err != nil {
		return nil, argError(op, 2, "is a %v, not a vector of integers", in[2].Type())
	}
	x := TypeOf(in[0])
	return []fgraph.Type{NewType(x.DType(), x.Dim(0)), x, NewType(array.Int64, x.Dim(0))}, nil
}

// oneGradientEach returns an error unless g has one element for each row of x.
func oneGradientEach(op fgraph.Op, g, x *array.Array) error {
	if g.Len() != x.Dim(0) {
		return fmt.Errorf("%w: %v: %d gradients for %d rows", ErrShape, op, g.Len(), x.Dim(0))
	}
	return nil
}

// eachClass calls f for each of n rows of m columns with its class, which is a column.
func eachClass(op fgraph.Op, y *array.Array, n, m int, f func(row, class int)) error {
	if y.Len() != n {
		return fmt.Errorf("%w: %v: %d classes for %d rows", ErrShape, op, y.Len(), n)
	}
	for i := range n {
		c, err := array.Position(y.Int(i), m)
		if err != nil {
			return fmt.Errorf("%w: %v: class of row %d: %w", ErrShape, op, i, err)
		}
		f(i, c)
	}
	return nil
}

func (op crossentropyOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		p, n, m := in[0], in[0].Dim(0), in[0].Dim(1)
		if err := ws.New(out[0], p.DType(), n); err != nil {
			return err
		}
		return eachClass(op, in[1], n, m, func(i, c int) { out[0].SetFloat(i, -elementary.Log(p.Float(i*m+c))) })
	}, nil
}

func (op crossentropyGradOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		g, p, m := in[0], in[1], in[1].Dim(1)
		if err := oneGradientEach(op, g, p); err != nil {
			return err
		}
		if err := ws.New(out[0], p.DType(), p.Shape()...); err != nil {
			return err
		}
		ws.Copy(out[0], array.Full(p.DType(), 0))
		return eachClass(op, in[2], p.Dim(0), m, func(i, c int) { out[0].SetFloat(i*m+c, -g.Float(i)/p.Float(i*m+c)) })
	}, nil
}

func (op crossentropySoftmaxOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		nll, sm, am := out[0], out[1], out[2]
		n, m := in[0].Dim(0), in[0].Dim(1)
		// The logarithm of the softmax comes first. The cross-entropy is an element of it, and exp makes it the
		// softmax. The other way around, log would get numbers that have become 0.
		if err := softmaxWithBias(op, ws, sm, in[0], in[1], true); err != nil {
			return err
		}
		if err := ws.New(nll, sm.DType(), n); err != nil {
			return err
		}
		if err := ws.New(am, array.Int64, n); err != nil {
			return err
		}
		if err := eachClass(op, in[2], n, m, func(i, c int) { nll.SetFloat(i, -sm.Float(i*m+c)) }); err != nil {
			return err
		}
		// Before exp, which may make different numbers equal.
		if err := ws.ArgMax(am, sm, 1<<1); err != nil {
			return err
		}
		for i := range sm.Len() {
			sm.SetFloat(i, elementary.Exp(sm.Float(i)))
		}
		return nil
	}, nil
}

func (op crossentropySoftmaxGradOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		g, sm, m := in[0], in[1], in[1].Dim(1)
		if err := oneGradientEach(op, g, sm); err != nil {
			return err
		}
		if err := ws.New(out[0], sm.DType(), sm.Shape()...); err != nil {
			return err
		}
		return eachClass(op, in[2], sm.Dim(0), m, func(i, c int) {
			gi := g.Float(i)
			for j := range m {
				v := sm.Float(i*m + j)
				if j == c {
					v--
				}
				out[0].SetFloat(i*m+j, v*gi)
			}
		})
	}, nil
}

func (op crossentropyOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{{s.Dim(a.Inputs()[0], 0)}}
}

func (op crossentropySoftmaxOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	rows := []*fgraph.Variable{s.Dim(x, 0)}
	return [][]*fgraph.Variable{rows, s.Shape(x), rows}
}

func (op crossentropyOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return []*fgraph.Variable{MustApply(CrossentropyCategorical1HotGradOp{}, out[0], a.Inputs()[0], a.Inputs()[1]), nil}
}

// Grad differentiates -g/p, which is 0 except at the classes.
func (op crossentropyGradOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	g, p, y := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2]
	rows := ARange(Int(0), ShapeI(p, 0), Int(1))
	atP, atG := Take(p, rows, y), Take(out[0], rows, y)
	dp := IncTake(ZerosLike(p), TrueDiv(Mul(atG, g), Sqr(atP)), rows, y)
	return []*fgraph.Variable{Neg(TrueDiv(atG, atP)), dp, nil}
}

// Grad differentiates g·(p - 1) at the classes, and g·p elsewhere.
func (op crossentropySoftmaxGradOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	g, p, y := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2]
	rows := ARange(Int(0), ShapeI(p, 0), Int(1))
	dg := Sub(Sum(Mul(out[0], p), 1), Take(out[0], rows, y))
	return []*fgraph.Variable{dg, Mul(out[0], DimShuffle(g, 0, array.NewAxis)), nil}
}

// Grad adds the gradients by way of the cross-entropy and of the softmax.
func (op crossentropySoftmaxOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	sm := a.Outputs()[1]
	var dx *fgraph.Variable
	if out[0] != nil {
		dx = MustApply(CrossentropySoftmax1HotWithBiasDxOp{}, out[0], sm, a.Inputs()[2])
	}
	if out[1] != nil {
		d := MustApply(SoftmaxGradOp{}, out[1], sm)
		if dx != nil {
			d = Add(dx, d)
		}
		dx = d
	}
	if dx == nil {
		return gradients(a)
	}
	// The bias was added to every row.
	return []*fgraph.Variable{dx, Sum(dx, 0), nil}
}
