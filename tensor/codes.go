package tensor

import (
	"context"
	"fmt"
	"weak"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

// MatmulIntegerOp is the exact product of the rows of x and one matrix, both int8s or uint8s, as int32s:
// inputs x, y, and what means 0 in each, a number for x and a number or one for each column for y. Sums
// that need more bits wrap around. A constant y is prepared once, for all calls. With Float the int32s are
// cast to float32s, which saves making them, and an epilogue may follow.
type MatmulIntegerOp = matmulIntegerOp

type matmulIntegerOp struct{ Float bool }

// ConvLastIntegerOp is ConvLastOp for int8s or uint8s, without groups, with exact sums. The inputs and the
// results are those of MatmulIntegerOp. Padding is what means 0.
type ConvLastIntegerOp = convLastIntegerOp

type convLastIntegerOp struct {
	Window array.Window
	Float  bool
}

// MatmulInteger returns the exact product of the last dimension of x, of two or more, and a matrix y. zeroX
// is a scalar, zeroY one, or a vector with a number for each column.
func MatmulInteger(x, y, zeroX, zeroY *fgraph.Variable) *fgraph.Variable {
	return MustApply(MatmulIntegerOp{}, x, foldedView(PadLeft(y, TypeOf(x).NDim())), zeroX, zeroY)
}

// foldedView returns a view of a constant as a constant.
func foldedView(v *fgraph.Variable) *fgraph.Variable {
	if a := v.Owner(); a != nil && a.Inputs()[0].IsConstant() {
		// Weights are prepared once only if they are a constant, and a view of one is an apply.
		if folded, err := Fold(context.Background(), a); err == nil {
			return Constant(folded[0])
		}
	}
	return v
}

// ConvInteger returns the exact convolution of x with weights, as [Conv] has them. zeroX is a scalar, zeroY
// one, or a vector with a number for each channel of the result.
func ConvInteger(x, weights, zeroX, zeroY *fgraph.Variable, slide Slide) *fgraph.Variable {
	n := TypeOf(x).NDim()
	if n < 3 || n > 2+array.MaxSpatial || TypeOf(weights).NDim() != n {
		fail("conv_integer", "a %v with weights that are a %v; batch, channels and 1 to %d spatial dimensions are expected", x.Type(), weights.Type(), array.MaxSpatial)
	}
	op := ConvLastIntegerOp{Window: slide.window("conv_integer", n-2, nil)}
	return DimShuffle(MustApply(op, DimShuffle(x, ToLast(n)...), foldedView(LastWeights(weights)), zeroX, zeroY), ToSecond(n)...)
}

func (op matmulIntegerOp) String() string { return "MatmulInteger" + floatText(op.Float) }
func (op convLastIntegerOp) String() string {
	return convText("ConvLastInteger"+floatText(op.Float), op.Window, 1)
}

func floatText(float bool) string {
	if float {
		return "{float32}"
	}
	return ""
}

// sumType returns the type of the results of a product of codes.
func sumType(float bool) array.DType {
	if float {
		return array.Float32
	}
	return array.Int32
}

// inferCodes returns the type of the result of an op on codes, given that of the product of floats.
func inferCodes(op fgraph.Op, float bool, in []*fgraph.Variable, product func(floats []*fgraph.Variable) ([]fgraph.Type, error)) ([]fgraph.Type, error) {
	if len(in) != 4 {
		return nil, wrongCount(op, in, 4)
	}
	floats := make([]*fgraph.Variable, 2)
	for i, v := range in {
		t := TypeOf(v)
		if d := t.DType(); d != array.Int8 && d != array.Uint8 || t.IsCSR() || i >= 2 && d != TypeOf(in[i-2]).DType() {
			return nil, argError(op, i, "is a %v; int8s or uint8s are expected", t)
		}
		if i < 2 {
			// The rules for sizes are those of the product of floats, which is asked about floats of the same
			// shapes.
			floats[i] = fgraph.NewInput(NewType(array.Float32, t.Shape()...), "")
		}
	}
	w := TypeOf(in[1])
	if TypeOf(in[2]).NDim() != 0 {
		return nil, argError(op, 2, "is a %v, not a number", in[2].Type())
	}
	n := w.Dim(w.NDim() - 1)
	if t := TypeOf(in[3]); t.NDim() > 1 || t.NDim() == 1 && t.Dim(0) != n && t.Dim(0) != Unknown && n != Unknown {
		return nil, argError(op, 3, "is a %v, neither a number nor one for each of %d columns", t, n)
	}
	types, err := product(floats)
	if err != nil {
		return nil, err
	}
	return one(NewType(sumType(float), types[0].(Type).Shape()...)), nil
}

// preparedCodes returns what prepares the right-hand factor: once, if it and its zero are constants.
func preparedCodes(op fgraph.Op, a *fgraph.Apply) func(ws *array.Workspace, in []*array.Array) (*kernel.IntegerWeights, error) {
	var once func(*array.Workspace) *kernel.IntegerWeights
	if w, zero := ConstantOf(a.Inputs()[1]), ConstantOf(a.Inputs()[3]); w != nil && zero != nil {
		once = preparation.Once(w, codeWeights{weak.Make(zero)}, func(*kernel.Threads) *kernel.IntegerWeights { return array.NewCodeWeights(w, zero) })
	}
	return func(ws *array.Workspace, in []*array.Array) (*kernel.IntegerWeights, error) {
		w, zero := in[1], in[3]
		if n := w.Dim(w.NDim() - 1); zero.NDim() == 1 && zero.Dim(0) != n {
			return nil, fmt.Errorf("%w: %v: %d zeros for %d columns", ErrShape, op, zero.Dim(0), n)
		}
		if once != nil {
			return once(ws), nil
		}
		return array.NewCodeWeights(w, zero), nil
	}
}

// codeWeights is the form of weights with a constant that says what means 0.
type codeWeights struct{ zero weak.Pointer[array.Array] }

// Infer implements Op.
func (op matmulIntegerOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferCodes(op, op.Float, in, func(floats []*fgraph.Variable) ([]fgraph.Type, error) {
		y := TypeOf(in[1])
		if n := y.NDim(); n < 2 || TypeOf(in[0]).NDim() != n {
			return nil, argError(op, 1, "is a %v; as many dimensions as those of a %v, and at least two, are expected", y, in[0].Type())
		}
		for d := range y.NDim() - 2 {
			if y.Dim(d) != 1 {
				return nil, argError(op, 1, "is a %v, not one matrix", y)
			}
		}
		return op.base(in).Infer(floats)
	})
}

// base returns the product of floats.
func (matmulIntegerOp) base(in []*fgraph.Variable) Op {
	if TypeOf(in[0]).NDim() == 2 {
		return DotOp{}
	}
	return MatmulOp{}
}

// Compile implements Op.
func (op matmulIntegerOp) Compile(a *fgraph.Apply) (Kernel, error) { return op.compileProduct(a, nil) }

// compileProduct implements multiplier.
func (op matmulIntegerOp) compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error) {
	prepared := preparedCodes(op, a)
	return func(ws *array.Workspace, in, out []*array.Array) error {
		x, y := in[0], in[1]
		d := x.NDim() - 1
		if x.Dim(d) != y.Dim(d-1) {
			return fmt.Errorf("%w: %v of shapes %v and %v", ErrShape, op, x.Shape(), y.Shape())
		}
		var shape [array.MaxDims]int
		copy(shape[:], x.Shape())
		shape[d] = y.Dim(d)
		if err := ws.New(out[0], sumType(op.Float), shape[:d+1]...); err != nil {
			return err
		}
		if err := fitArgs(op, out[0], in[4:]); err != nil {
			return err
		}
		w, err := prepared(ws, in)
		if err != nil {
			return err
		}
		return ws.MatMulCodes(out[0], x, in[2], w, e, in[4:])
	}, nil
}

// InferShape implements ShapeInferer.
func (op matmulIntegerOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, y := a.Inputs()[0], a.Inputs()[1]
	dims := s.dims(x)
	dims[len(dims)-1] = s.Dim(y, len(dims)-1)
	return [][]*fgraph.Variable{dims}
}

// Infer implements Op.
func (op convLastIntegerOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferCodes(op, op.Float, in, convLastOp{op.Window, 1}.Infer)
}

// Compile implements Op.
func (op convLastIntegerOp) Compile(a *fgraph.Apply) (Kernel, error) {
	return op.compileProduct(a, nil)
}

// compileProduct implements multiplier.
func (op convLastIntegerOp) compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error) {
	prepared := preparedCodes(op, a)
	return func(ws *array.Workspace, in, out []*array.Array) error {
		w, err := prepared(ws, in)
		if err != nil {
			return err
		}
		return slideLast(op, convLastOp{op.Window, 1}, 4, sumType(op.Float), func(ws *array.Workspace, y *array.Array, in []*array.Array, window array.Window) error {
			return ws.ConvLastCodes(y, in[0], in[2], in[1], w, window, e, in[4:])
		})(ws, in, out)
	}, nil
}

// InferShape implements ShapeInferer.
func (op convLastIntegerOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return convLastOp{op.Window, 1}.InferShape(a, s)
}

// codesCost is the cost of a product of codes, of which the product of floats is base.
func codesCost(base Op, a *fgraph.Apply) float64 {
	var floats []*fgraph.Variable
	for _, v := range a.Inputs()[:2] {
		floats = append(floats, fgraph.NewInput(NewType(array.Float32, TypeOf(v).Shape()...), ""))
	}
	b, err := Make(base, floats...)
	if err != nil {
		return callCost
	}
	return Cost(b) / (2 * integerSpeed)
}

// Cost implements Coster.
func (op matmulIntegerOp) Cost(a *fgraph.Apply) float64 { return codesCost(op.base(a.Inputs()), a) }

// Cost implements Coster.
func (op convLastIntegerOp) Cost(a *fgraph.Apply) float64 {
	return codesCost(convLastOp{op.Window, 1}, a)
}
