package tensorpass

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// winogradPass is the pass winograd: convolutions of many channels with windows of 3×3 elements multiply
// combinations of inputs and of weights, of which there are fewer. Its settings are about the processor.
type winogradPass struct {
	rewrite.Global
	costs winogradCosts
}

// winogradCosts say when tiles pay.
type winogradCosts struct {
	// least is the least number of channels, of the input and of the result. Combining takes as long for
	// few channels, of which products gain little.
	least float64
	// byteFlops and movedFlops are how many operations of products take as long as reading a byte of
	// weights, and as combining a value of a tile with others.
	byteFlops, movedFlops float64
	// preparedFlops are a tenth of those that take as long as preparing a weight, once: so tiles pay after some
	// ten runs. At few positions they save little, and have most weights: they would delay the first result.
	preparedFlops float64
}

// usualCosts are those of a Zen 4 with AVX2, where a byte that is in no cache takes 5 operations and preparing a weight
// 200 to 400; a byte counts twice as much for the sake of AVX-512, whose products take half as long, since choices must
// not depend on kernels, or bits would. With 20 and 200, 14² positions of 256 channels had no tiles, and 28² of 128 had
// tiles of 2×2: those take 1.3 ms instead of 2.7 now, and 0.9 instead of 1.4 (2026-11-30).
var usualCosts = winogradCosts{least: 16, byteFlops: 10, movedFlops: 25, preparedFlops: 40}

func winograd(costs winogradCosts) winogradPass {
	return winogradPass{costs: costs, Global: rewrite.Global{
		Name: "winograd", Class: profile.ClassFusion,
		Doc: "convolutions with windows of 3×3 elements need 4/9 or 1/4 of the multiplications: ConvLast{2}(x, w) → Winograd{4}(x, w); errors are up to 3 times as large by norm, and what is infinite or NaN spreads to its neighbours",
		Fn:  swap{kind: isA[tensor.ConvLastOp], propose: ofResult(costs.tiled)}.run,
	}}
}

// winogradSetting is a setting, and where it is.
type winogradSetting struct {
	name, doc    string
	value, usual *float64
}

// settings returns the settings of costs.
func (c *winogradCosts) settings() []winogradSetting {
	usual := usualCosts
	return []winogradSetting{
		{"min-channels", "the least number of channels of the input and of the result", &c.least, &usual.least},
		{"byte-flops", "how many operations of a product take as long as reading a byte of weights", &c.byteFlops, &usual.byteFlops},
		{"moved-flops", "how many operations of a product take as long as combining a value with others", &c.movedFlops, &usual.movedFlops},
		{"prepared-flops", "how many operations of a product take as long as preparing a weight, divided by the runs it has to pay in", &c.preparedFlops, &usual.preparedFlops},
	}
}

// Settings returns min-channels, byte-flops, moved-flops and prepared-flops.
func (p winogradPass) Settings() []rewrite.Setting {
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	return lists.Map(p.costs.settings(), func(s winogradSetting) rewrite.Setting {
		return rewrite.Setting{Name: s.name, Value: text(*s.value), Default: text(*s.usual), Doc: s.doc}
	})
}

// Configured returns the pass with another number.
func (p winogradPass) Configured(name, value string) (rewrite.Configurable, error) {
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || !(x >= 0) || math.IsInf(x, 0) {
		return nil, fmt.Errorf("%q is not a number of at least 0", value)
	}
	costs := p.costs
	for _, s := range costs.settings() {
		if s.name == name {
			*s.value = x
		}
	}
	return winograd(costs), nil
}

// tiled returns the op by tiles, or nil if it takes more time. It panics for a window of another size, or one that moves
// in other steps.
func (c winogradCosts) tiled(a *apply) *variable {
	op := a.Op().(tensor.ConvLastOp)
	tile := c.tile(a, op)
	if tile == 0 {
		return nil
	}
	return tensor.MustApply(tensor.WinogradOp{Window: op.Window, Tile: tile}, a.Inputs()...)
}

// manyItems is what a batch of more items, or of any number, counts as. So a function for any batch, which is one of
// two items or more, has the tiles, and the bits, of a function for the batch that it is called with.
const manyItems = 2

// tile returns the size of tiles that takes the least time, or 0 if the convolution is faster without
// tiles. Small results have few tiles, whose products wait for weights, and there are more weights than
// those of the convolution.
func (c winogradCosts) tile(a *apply, op tensor.ConvLastOp) int {
	y, w := typeOf(a.Out()), tensor.ConstantOf(a.Inputs()[1])
	if op.Groups != 1 || op.Window.Dims != 2 || w == nil || w.DType() != array.Float32 || slices.Contains(y.Shape()[1:], tensor.Unknown) {
		return 0
	}
	items := y.Dim(0)
	if items == tensor.Unknown || items > manyItems {
		items = manyItems
	}
	in, out := float64(w.Dim(2)), float64(w.Dim(3))
	if min(in, out) < c.least {
		return 0
	}
	weight := float64(4*c.byteFlops) + c.preparedFlops
	best, least := 0, 9*in*out*(float64(2*items*y.Dim(1)*y.Dim(2))+weight)
	for _, tile := range []int{2, 4} {
		tiles := float64(items)
		for d := range 2 { // a dilation makes as many images of one
			far := op.Window.Dilation[d]
			tiles *= float64(far * ((y.Dim(1+d) + far*tile - 1) / (far * tile)))
		}
		points := float64((tile + 2) * (tile + 2))
		cost := points * (float64(in*out*(float64(2*tiles)+weight)) + float64(tiles*(in+out)*c.movedFlops))
		if cost < least {
			best, least = tile, cost
		}
	}
	return best
}
