package tensorpass

import (
	"context"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// winograd returns the pass winograd: convolutions of many channels with windows of 3×3 elements
// multiply combinations of inputs and of weights, of which there are fewer.
func winograd() rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "winograd", Class: profile.ClassFusion, Fn: findWinograd,
		Doc: "convolutions with windows of 3×3 elements need 4/9 or 1/4 of the multiplications: ConvLast{2}(x, w) → Winograd{4}(x, w); rounding errors are some times as large, and what is infinite or NaN spreads to its neighbours",
	}
}

func findWinograd(_ context.Context, h *rewrite.Handle) error {
	for _, a := range those(h.Graph(), isA[tensor.ConvLastOp]) {
		op := a.Op().(tensor.ConvLastOp)
		tile := winogradTile(a, op)
		if tile == 0 {
			continue
		}
		v, err := tensor.Try(func() *variable {
			return tensor.MustApply(tensor.WinogradOp{Window: op.Window, Tile: tile}, a.Inputs()...)
		})
		if err != nil {
			continue // a window of another size, or one that moves in other steps
		}
		v.Owner().SetOrigin(a.Origin())
		if _, err := h.Replace("", a, fgraph.Replacement{Old: a.Out(), New: v}); err != nil {
			return err
		}
	}
	return nil
}

const (
	// minWinograd is the least number of channels, of the input and of the result. Combining takes as
	// long for few channels, of which products gain little.
	minWinograd = 16
	// byteFlops and movedFlops are how many operations of products take as long as reading a byte of
	// weights, and as combining a value of a tile with others (Sapphire Rapids, November 2026).
	byteFlops, movedFlops = 20, 80
)

// winogradTile returns the size of tiles that takes the least time, or 0 if that is none. Small
// results have few tiles, whose products wait for weights, of which there are more than those of the
// convolution.
func winogradTile(a *apply, op tensor.ConvLastOp) int {
	y, w := typeOf(a.Out()), tensor.ConstantOf(a.Inputs()[1])
	if op.Groups != 1 || op.Window.Dims != 2 || w == nil || w.DType() != array.Float32 || slices.Contains(y.Shape(), tensor.Unknown) {
		return 0
	}
	in, out := float64(w.Dim(2)), float64(w.Dim(3))
	if min(in, out) < minWinograd {
		return 0
	}
	best, least := 0, 9*in*out*(float64(2*y.Dim(0)*y.Dim(1)*y.Dim(2))+4*byteFlops)
	for _, tile := range []int{2, 4} {
		tiles := float64(y.Dim(0) * ((y.Dim(1) + tile - 1) / tile) * ((y.Dim(2) + tile - 1) / tile))
		points := float64((tile + 2) * (tile + 2))
		cost := points * (float64(in*out*(float64(2*tiles)+4*byteFlops)) + float64(tiles*(in+out)*movedFlops))
		if cost < least {
			best, least = tile, cost
		}
	}
	return best
}
