package models

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
)

// A windowing finds how long inputs have to be for the windows that go over them: seconds of sound for a few
// positions. Sizes are known by their expressions, so what only passes a size on need not be followed.
type windowing map[string]int // the least number of elements that a size has to be

// leastSizes returns the least sizes of symbols.
func leastSizes(g *fgraph.FunctionGraph) windowing {
	w := make(windowing)
	order, err := g.Toposort()
	if err != nil {
		return w
	}
	for _, a := range slices.Backward(order) { // what is needed of a result says what is needed of inputs
		w.apply(a)
	}
	return w
}

func (w windowing) apply(a *fgraph.Apply) {
	op := a.Op().(*ir.Op)
	if op.Domain != "" || len(a.Inputs()) == 0 || len(a.Outputs()) == 0 {
		return
	}
	x, _ := ir.TypeOf(a.Inputs()[0]).Shape()
	y, _ := ir.TypeOf(a.Outputs()[0]).Shape()
	switch op.Type {
	case "Pad":
		for i := range min(len(x), len(y)) {
			if n, ok := y[i].Minus(x[i]).Number(); ok {
				w.need(x[i], w[y[i].String()]-int(n))
			}
		}
	case "STFT":
		if len(a.Inputs()) > 3 && len(x) > 1 {
			if k, ok := ir.NumbersOf(a.Inputs()[3]); ok && len(k) == 1 {
				w.need(x[1], int(k[0]))
			}
		}
	case "Conv", "ConvInteger", "QLinearConv", "MaxPool", "AveragePool", "LpPool":
		window := windowOf(a, op)
		pads, steps, gaps := op.Ints("pads"), op.Ints("strides"), op.Ints("dilations")
		for i, k := range window {
			if i+2 >= len(x) || i+2 >= len(y) || op.Text("auto_pad", "NOTSET") != "NOTSET" && op.Text("auto_pad", "") != "VALID" {
				break
			}
			reach := (int(k)-1)*numberAt(gaps, i, 1) + 1 - numberAt(pads, i, 0) - numberAt(pads, i+len(window), 0)
			w.need(x[i+2], (max(w[y[i+2].String()], 1)-1)*numberAt(steps, i, 1)+reach)
		}
	}
}

// windowOf returns the sizes of a window.
func windowOf(a *fgraph.Apply, op *ir.Op) []int64 {
	if k := op.Ints("kernel_shape"); k != nil {
		return k
	}
	dims, _ := weightsOf(a).Numbers()
	return dims[min(2, len(dims)):]
}

// weightsOf returns the type of the weights of a convolution.
func weightsOf(a *fgraph.Apply) ir.Type {
	k := 1
	if a.Op().(*ir.Op).Type == "QLinearConv" {
		k = 3
	}
	if k >= len(a.Inputs()) {
		return ir.Type{}
	}
	return ir.TypeOf(a.Inputs()[k])
}

func numberAt(list []int64, i, otherwise int) int {
	if i < len(list) {
		return int(list[i])
	}
	return otherwise
}

// need notes what a size has to be at least.
func (w windowing) need(d ir.Dim, n int) {
	if _, ok := d.Number(); !ok && !d.IsUnknown() && n > w[d.String()] && n <= maxDrawn {
		w[d.String()] = n
	}
}
