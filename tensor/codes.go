package tensor

import (
	"context"
	"fmt"
	"weak"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/lists"
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
		once = preparation.Once(w, codeWeights{weak.Make(zero)}, func(*array.Workspace) *kernel.IntegerWeights { return array.NewCodeWeights(w, zero) })
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
	floats := lists.Map(a.Inputs()[:2], func(v *fgraph.Variable) *fgraph.Variable {
		return fgraph.NewInput(NewType(array.Float32, TypeOf(v).Shape()...), "")
	})
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

// BlockMatmulOp is the product of x, along its last dimension of so many Terms, and a matrix whose codes of 2, 4 or
// 8 Bits stay what they are in memory. The inputs are x, codes, scales and zeros. Codes are uint8s of shape [columns,
// blocks, bytes of a block]. Scales are a float for each block, in any shape; zeros are such, or one for all, or
// uint8s with so many bits for each block, those of a column from a byte of their own on. A code means
// (code - zero)·scale. Codes of 8 bits may be uint8s or int8s of shape [terms, columns], too, with scales and zeros
// that are numbers, or have one for each column. Constant ones are prepared once, for all calls.
type BlockMatmulOp = blockMatmulOp

type blockMatmulOp struct {
	Bits, Terms int
	// Rounded says that codes of 2 or 4 bits are multiplied with x rounded to 8 bits, block by block.
	Rounded bool
}

// String returns for example BlockMatmul{4,768} or BlockMatmul{4,768,rounded}.
func (op blockMatmulOp) String() string {
	rounded := ""
	if op.Rounded {
		rounded = ",rounded"
	}
	return fmt.Sprintf("BlockMatmul{%d,%d%s}", op.Bits, op.Terms, rounded)
}

// Infer implements Op.
func (op blockMatmulOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 4 {
		return nil, wrongCount(op, in, 4)
	}
	if op.Bits != 2 && op.Bits != 4 && op.Bits != 8 || op.Terms < 0 {
		return nil, opError(op, "no such codes")
	}
	codes := TypeOf(in[1])
	for i, v := range in {
		d := TypeOf(v).DType()
		bytes := i > 0 && i != 2 && (d == array.Uint8 || d == array.Int8 && codes.NDim() == 2)
		if TypeOf(v).IsCSR() || !bytes && (i == 1 || d != array.Float32 && (i < 2 || !d.IsHalf())) {
			return nil, argError(op, i, "is a %v", v.Type())
		}
	}
	if TypeOf(in[0]).NDim() < 1 || codes.NDim() != 3 && (codes.NDim() != 2 || op.Bits != 8) {
		return nil, argError(op, 1, "is a %v, for a product with a %v", codes, in[0].Type())
	}
	x := TypeOf(in[0])
	d := x.NDim() - 1
	if n := x.Dim(d); n != op.Terms && n != Unknown {
		return nil, argError(op, 0, "has %d terms", n)
	}
	shape := append([]int(nil), x.Shape()...)
	shape[d] = codes.Dim(columnsOf(in[1]))
	return one(NewType(array.Float32, shape...)), nil
}

// columnsOf returns the dimension of codes that has the columns of the product.
func columnsOf(codes *fgraph.Variable) int { return 3 - TypeOf(codes).NDim() }

// blockWeights is the form of codes with constants that say what they mean.
type blockWeights struct {
	op            blockMatmulOp
	scales, zeros meaning
}

// A meaning is a constant, of which a number is what it is, wherever it comes from.
type meaning struct {
	dtype    array.DType
	number   float64
	constant weak.Pointer[array.Array]
}

func meaningOf(a *array.Array) meaning {
	// Equal numbers may be different constants. By value, codes that several applies have in common are
	// prepared once.
	if a.Len() == 1 {
		return meaning{dtype: a.DType(), number: a.Float(0)}
	}
	return meaning{dtype: a.DType(), constant: weak.Make(a)}
}

// Compile implements Op.
func (op blockMatmulOp) Compile(a *fgraph.Apply) (Kernel, error) { return op.compileProduct(a, nil) }

// compileProduct implements multiplier.
func (op blockMatmulOp) compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error) {
	prepared := func(ws *array.Workspace, in []*array.Array) *kernel.BlockWeights {
		return array.NewBlockWeights(ws.Threads, op.Bits, op.Terms, op.Rounded, in[1], in[2], in[3])
	}
	codes, scales, zeros := ConstantOf(a.Inputs()[1]), ConstantOf(a.Inputs()[2]), ConstantOf(a.Inputs()[3])
	if codes != nil && scales != nil && zeros != nil {
		once := preparation.Once(codes, blockWeights{op, meaningOf(scales), meaningOf(zeros)}, func(ws *array.Workspace) *kernel.BlockWeights {
			return array.NewBlockWeights(ws.Threads, op.Bits, op.Terms, op.Rounded, codes, scales, zeros)
		})
		prepared = func(ws *array.Workspace, _ []*array.Array) *kernel.BlockWeights { return once(ws) }
	}
	return func(ws *array.Workspace, in, out []*array.Array) error {
		x := in[0]
		d := x.NDim() - 1
		if x.Dim(d) != op.Terms || !op.fit(in[1], in[2], in[3]) {
			return fmt.Errorf("%w: %v of shape %v, with codes of shape %v, scales of %v and zeros of %v", ErrShape, op, x.Shape(), in[1].Shape(), in[2].Shape(), in[3].Shape())
		}
		w := prepared(ws, in)
		var shape [array.MaxDims]int
		copy(shape[:], x.Shape())
		shape[d], _ = w.Shape()
		if err := ws.New(out[0], array.Float32, shape[:d+1]...); err != nil {
			return err
		}
		if err := fitArgs(op, out[0], in[4:]); err != nil {
			return err
		}
		return ws.BlockMatMul(out[0], x, w, e, in[4:])
	}, nil
}

// fit reports whether codes, scales and zeros fit each other and the terms.
func (op blockMatmulOp) fit(codes, scales, zeros *array.Array) bool {
	if codes.NDim() == 2 {
		n := codes.Dim(1)
		return codes.Dim(0) == op.Terms && (scales.Len() == n || scales.Len() == 1) && (zeros.Len() == n || zeros.Len() == 1)
	}
	columns, blocks, block := codes.Dim(0), codes.Dim(1), codes.Dim(2)*8/op.Bits
	want := columns * blocks
	if zeros.DType() == array.Uint8 {
		want = columns * ((blocks*op.Bits + 7) / 8)
	}
	return block >= kernel.LeastBlock && block <= kernel.LargestBlock && block&(block-1) == 0 && blocks == (op.Terms+block-1)/block &&
		scales.Len() == columns*blocks && (zeros.Len() == want || zeros.NDim() == 0 && zeros.DType() != array.Uint8)
}

// InferShape implements ShapeInferer.
func (op blockMatmulOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	dims := s.dims(x)
	dims[len(dims)-1] = s.Dim(a.Inputs()[1], columnsOf(a.Inputs()[1]))
	return [][]*fgraph.Variable{dims}
}

// unpackCost is what a code costs beside the multiplications, in picoseconds.
const unpackCost = 30.0

// Cost implements Coster.
func (op blockMatmulOp) Cost(a *fgraph.Apply) float64 {
	each := single
	if op.Rounded {
		each /= 2
	}
	return callCost + float64(writeCost*bytes(a.Outputs())) + float64(elements(a.Out())*float64(op.Terms)*each) + float64(unpackCost*size(a.Inputs()[1], columnsOf(a.Inputs()[1]))*float64(op.Terms))
}
