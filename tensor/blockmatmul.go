package tensor

import (
	"fmt"
	"weak"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

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
		once := preparation.Once(codes, blockWeights{op, meaningOf(scales), meaningOf(zeros)}, func(t *kernel.Threads) *kernel.BlockWeights {
			return array.NewBlockWeights(t, op.Bits, op.Terms, op.Rounded, codes, scales, zeros)
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
