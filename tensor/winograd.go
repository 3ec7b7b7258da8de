package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

// WinogradOp is ConvLastOp for windows of 3×3 elements that move by 1, computed in tiles of Tile×Tile
// positions, 2 or 4, with 4/9 or 1/4 of the multiplications (Winograd, 1980). Results differ in
// rounding, and what is infinite, NaN or nearly too large spreads in its tile.
type WinogradOp = winogradOp

type winogradOp struct {
	Window array.Window
	Tile   int
}

func (op winogradOp) String() string {
	return fmt.Sprintf("Winograd{%d}", op.Tile) + windowText(op.Window)
}

func (op winogradOp) conv() convLastOp { return convLastOp{op.Window, 1} }

// maxWinogradDilation bounds the memory for phases, of which some are empty if the image is smaller.
const maxWinogradDilation = 64

// Infer implements Op.
func (op winogradOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	types, err := op.conv().Infer(in)
	if err != nil {
		return nil, err
	}
	w := op.Window
	if op.Tile != 2 && op.Tile != 4 || w.Dims != 2 {
		return nil, opError(op, "tiles of %d positions in %d dimensions", op.Tile, w.Dims)
	}
	for d := range w.Dims {
		if far := w.Dilation[d]; w.Stride[d] != 1 || far > maxWinogradDilation || min(w.Before[d], w.After[d]) < 0 || max(w.Before[d], w.After[d]) > 2*far {
			return nil, opError(op, "strides must be 1, dilations at most %d, and pads 0 to twice the dilation", maxWinogradDilation)
		}
		if TypeOf(in[1]).Dim(d) != 3 {
			return nil, argError(op, 1, "is a %v, and does not have a window of 3×3 elements", in[1].Type())
		}
	}
	if TypeOf(in[0]).DType() != array.Float32 {
		return nil, argError(op, 0, "is a %v; float32s are expected", in[0].Type())
	}
	return types, nil
}

// winogradWeights is the form of weights combined for a size of tiles.
type winogradWeights int

// Compile implements Op.
func (op winogradOp) Compile(a *fgraph.Apply) (Kernel, error) { return op.compileProduct(a, nil) }

// compileProduct implements multiplier.
func (op winogradOp) compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error) {
	prepared := nothing[array.WinogradWeights]
	if w := ConstantOf(a.Inputs()[1]); w != nil && w.Len() > 0 {
		prepared = preparation.Once(w, winogradWeights(op.Tile), func(t *kernel.Threads) *array.WinogradWeights { return array.NewWinogradWeights(w, op.Tile, t) })
	}
	return slideLast(op, op.conv(), 2, array.Float32, func(ws *array.Workspace, y *array.Array, in []*array.Array, w array.Window) error {
		return ws.Winograd(y, in[0], in[1], prepared(ws), w, op.Tile, e, in[2:])
	}), nil
}

// InferShape implements ShapeInferer.
func (op winogradOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return op.conv().InferShape(a, s)
}

// Cost implements Coster.
func (op winogradOp) Cost(a *fgraph.Apply) float64 {
	n := float64(op.Tile)
	// A tile of n×n positions takes (n+2)² multiplications in place of 9 for each position.
	return op.conv().Cost(a) * (n + 2) * (n + 2) / (9 * n * n)
}
