package tensor

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

// IntegersOp is a product of float32s, a [MatmulOp], a [Dot22Op] or a [ConvLastOp] without groups, whose
// factors are rounded to integers before they are multiplied, if the last input is a constant. Sums are
// exact, so that results are the same on all processors. See [array.Workspace.IntegerMatMul] and
// [array.Workspace.IntegerConvLast] for how they are rounded.
type IntegersOp = integersOp

type integersOp struct {
	base      multiplier
	precision kernel.Precision
}

// NewIntegers returns the op for a product in a precision, or nil if there is none.
func NewIntegers(base Op, p kernel.Precision) Op {
	if p != kernel.Int8 && p != kernel.Int16 {
		return nil
	}
	switch op := base.(type) {
	case matmulOp, dot22Op:
	case convLastOp:
		if op.Groups != 1 {
			return nil
		}
	default:
		return nil
	}
	return integersOp{base.(multiplier), p}
}

// Base returns the product.
func (op integersOp) Base() Op { return op.base }

// Precision returns the precision of the factors.
func (op integersOp) Precision() kernel.Precision { return op.precision }

// String returns for example Integers{int8}{ConvLast}{2}.
func (op integersOp) String() string {
	name, params, _ := strings.Cut(op.base.String(), "{")
	text := fmt.Sprintf("Integers{%v}{%s}", op.precision, name)
	if params != "" {
		text += "{" + params
	}
	return text
}

// Infer implements Op.
func (op integersOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	types, err := op.base.Infer(in)
	if err != nil {
		return nil, err
	}
	for i, v := range in {
		if TypeOf(v).DType() != array.Float32 {
			return nil, argError(op, i, "is a %v; float32s are expected", v.Type())
		}
	}
	return types, nil
}

// integerWeights and integerFactor are the forms of weights of convolutions and of factors in a precision.
type (
	integerWeights kernel.Precision
	integerFactor  kernel.Precision
)

// Compile implements Op.
func (op integersOp) Compile(a *fgraph.Apply) (Kernel, error) { return op.compileProduct(a, nil) }

// compileProduct implements multiplier.
func (op integersOp) compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error) {
	w := ConstantOf(a.Inputs()[1])
	if conv, ok := op.base.(convLastOp); ok {
		prepared := nothing[array.IntegerWeights]
		if w != nil {
			prepared = preparation.Once(w, integerWeights(op.precision), func(*array.Workspace) *array.IntegerWeights { return array.NewIntegerWeights(w, op.precision) })
		}
		return slideLast(op, conv, 2, array.Float32, func(ws *array.Workspace, y *array.Array, in []*array.Array, w array.Window) error {
			return ws.IntegerConvLast(y, in[0], in[1], prepared(ws), w, e, in[2:])
		}), nil
	}
	prepared := nothing[array.IntegerFactor]
	if w != nil {
		prepared = preparation.Once(w, integerFactor(op.precision), func(*array.Workspace) *array.IntegerFactor { return array.NewIntegerFactor(w, op.precision) })
	}
	return productKernel(op, a, func(ws *array.Workspace, y *array.Array, in []*array.Array) error {
		return ws.IntegerMatMul(y, in[0], in[1], prepared(ws), e, in[2:])
	}), nil
}

// InferShape implements ShapeInferer.
func (op integersOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	inferer, ok := op.base.(ShapeInferer)
	if !ok {
		return nil
	}
	return inferer.InferShape(a, s)
}

// integerSpeed is how many times faster products of integers are: with 16 bits, and twice that with 8.
const integerSpeed = 2

// Cost implements Coster.
func (op integersOp) Cost(a *fgraph.Apply) float64 {
	base, err := Make(op.base, a.Inputs()...)
	if err != nil {
		return callCost
	}
	speed := float64(integerSpeed)
	if op.precision == kernel.Int8 {
		speed *= 2
	}
	return Cost(base) / speed
}
