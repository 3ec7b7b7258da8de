package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

// ConvLastOp is ConvOp with channels last: the input x is [N, spatial…, C], the weights are [window…,
// C/groups, M], and the result is [N, positions…, M]. Constant weights are prepared once, for all
// calls. The bits are those of ConvOp.
type ConvLastOp = convLastOp

type convLastOp convOp

func (op convLastOp) String() string { return convText("ConvLast", op.Window, op.Groups) }

// ToLast returns the order of dimensions that moves the second of n, the channels, behind the others.
func ToLast(n int) []int {
	return append(slices.Delete(upTo(n), 1, 2), 1)
}

// ToSecond returns the order of dimensions that undoes ToLast.
func ToSecond(n int) []int {
	return slices.Insert(upTo(n-1), 1, n-1)
}

// LastWeights returns the weights of ConvLastOp for those of ConvOp.
func LastWeights(weights *fgraph.Variable) *fgraph.Variable {
	return DimShuffle(weights, append(allDims(weights)[2:], 1, 0)...)
}

// first returns the inputs as ConvOp has them.
func (op convLastOp) first(in []*fgraph.Variable) (x, weights *fgraph.Variable) {
	n := op.Window.Dims + 2
	order := append([]int{n - 1, n - 2}, upTo(op.Window.Dims)...)
	return DimShuffle(in[0], ToSecond(n)...), DimShuffle(in[1], order...)
}

// Infer implements Op.
func (op convLastOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	n := op.Window.Dims + 2
	for i, v := range in {
		if TypeOf(v).NDim() != n {
			return nil, argError(op, i, "is a %v, not a tensor with %d dimensions", v.Type(), n)
		}
	}
	x, weights := op.first(in)
	// There is one set of rules for both layouts: the inputs are turned, and then the result.
	types, err := ConvOp(op).Infer([]*fgraph.Variable{x, weights})
	if err != nil {
		return nil, err
	}
	s := types[0].(Type).h.Value()
	last := s
	for i, d := range ToLast(n) {
		last.shape[i] = s.shape[d]
	}
	return one(last.intern()), nil
}

// lastWeights is the form of weights of a number of groups.
type lastWeights int

// Compile implements Op.
func (op convLastOp) Compile(a *fgraph.Apply) (Kernel, error) { return op.compileProduct(a, nil) }

// compileProduct implements multiplier.
func (op convLastOp) compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error) {
	prepared := nothing[array.LastWeights]
	if w := ConstantOf(a.Inputs()[1]); w != nil && w.DType() == array.Float32 {
		prepared = preparation.Once(w, lastWeights(op.Groups), func(ws *array.Workspace) *array.LastWeights { return array.NewLastWeights(w, op.Groups, ws.Threads) })
	}
	return slideLast(op, op, 2, TypeOf(a.Out()).DType(), func(ws *array.Workspace, y *array.Array, in []*array.Array, w array.Window) error {
		return ws.ConvLast(y, in[0], in[1], prepared(ws), w, op.Groups, e, in[2:])
	}), nil
}

// Prepares implements Preparing.
func (op convLastOp) Prepares(a *fgraph.Apply, input int) bool {
	w := ConstantOf(a.Inputs()[1])
	return input == 1 && w != nil && array.PreparesLastWeights(w, op.Groups)
}

// slideLast returns the kernel of an op that computes conv with run, which sets y, of a type. The op has
// some inputs before those of an epilogue.
func slideLast(op fgraph.Op, conv convLastOp, inputs int, dtype array.DType, run func(ws *array.Workspace, y *array.Array, in []*array.Array, w array.Window) error) Kernel {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var bufX, bufW, bufY, shape [array.MaxDims]int
		n := conv.Window.Dims + 2
		x, weights, y := bufX[:n], bufW[:n], bufY[:n]
		x[0], x[1] = in[0].Dim(0), in[0].Dim(n-1)
		weights[0], weights[1] = in[1].Dim(n-1), in[1].Dim(n-2)
		y[0], y[1] = x[0], weights[0]
		w := conv.Window
		for d := range w.Dims {
			x[d+2], weights[d+2] = in[0].Dim(d+1), in[1].Dim(d)
			w.Size[d] = min(max(weights[d+2], 1), maxWindow)
			y[d+2] = w.OutputSize(d, x[d+2], false)
		}
		w, err := fitConv(op, w, conv.Groups, x, weights, y)
		if err != nil {
			return err
		}
		copy(shape[1:], y[2:])
		shape[0], shape[n-1] = y[0], y[1]
		if err := ws.New(out[0], dtype, shape[:n]...); err != nil {
			return err
		}
		if err := fitArgs(op, out[0], in[inputs:]); err != nil {
			return err
		}
		return run(ws, out[0], in, w)
	}
}

// InferShape implements ShapeInferer.
func (op convLastOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, w := a.Inputs()[0], a.Inputs()[1]
	n := op.Window.Dims + 2
	dims := []*fgraph.Variable{s.Dim(x, 0)}
	for d := range op.Window.Dims {
		dims = append(dims, slidDim(s, op.Window, d, s.Dim(x, d+1), s.Dim(w, d), false))
	}
	return [][]*fgraph.Variable{append(dims, s.Dim(w, n-1))}
}

// Grad implements Differentiable: the gradients are those of ConvOp.
func (op convLastOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	n := op.Window.Dims + 2
	x, w := op.first(a.Inputs())
	g := DimShuffle(out[0], ToSecond(n)...)
	dx, dw := slidBy(ConvTransposeOp(op), g, w, x), slidBy(ConvWeightsOp(op), x, g, w)
	return []*fgraph.Variable{DimShuffle(dx, ToLast(n)...), LastWeights(dw)}
}

// Cost implements Coster.
func (op convLastOp) Cost(a *fgraph.Apply) float64 {
	x, w := op.first(a.Inputs())
	first, err := Make(ConvOp(op), x, w)
	if err != nil {
		return callCost
	}
	return ConvOp(op).Cost(first)
}

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
		prepared = preparation.Once(w, winogradWeights(op.Tile), func(ws *array.Workspace) *array.WinogradWeights {
			return array.NewWinogradWeights(w, op.Tile, ws.Threads)
		})
	}
	return slideLast(op, op.conv(), 2, array.Float32, func(ws *array.Workspace, y *array.Array, in []*array.Array, w array.Window) error {
		return ws.Winograd(y, in[0], in[1], prepared(ws), w, op.Tile, e, in[2:])
	}), nil
}

// Prepares implements Preparing.
func (op winogradOp) Prepares(a *fgraph.Apply, input int) bool {
	w := ConstantOf(a.Inputs()[1])
	return input == 1 && w != nil && w.Len() > 0
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
