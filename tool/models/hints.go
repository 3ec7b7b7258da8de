package models

import (
	"maps"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
)

// A hinting finds sizes for symbols: weights say how many channels an input has, windows how long it is at least, and
// where values are broadcast, sizes are the same. Sizes that are computed are left out.
type hinting struct {
	known map[string]int
	order []string            // those that are known, in the order in which they were found
	same  map[string][]string // what has the size of a symbol
}

// hints returns sizes of symbols that operators ask for.
func hints(g *fgraph.FunctionGraph) map[string]int {
	h := &hinting{known: make(map[string]int), same: make(map[string][]string)}
	for a := range g.Applies() {
		h.apply(a)
	}
	least := leastSizes(g)
	for _, symbol := range slices.Sorted(maps.Keys(least)) {
		if n := least[symbol]; n > sizes[0][1] {
			h.note(symbol, 2*n) // for some positions more than one
		}
	}
	for i := 0; i < len(h.order); i++ {
		for _, s := range h.same[h.order[i]] {
			h.note(s, h.known[h.order[i]])
		}
	}
	return h.known
}

// apply notes what an apply says.
func (h *hinting) apply(a *fgraph.Apply) {
	op := a.Op().(*ir.Op)
	if op.Domain != "" || len(a.Inputs()) < 2 {
		return
	}
	x, _ := ir.TypeOf(a.Inputs()[0]).Shape()
	w, _ := ir.TypeOf(a.Inputs()[1]).Shape()
	if len(x) == 0 {
		return
	}
	switch op.Type {
	case "Conv", "ConvInteger", "QLinearConv":
		w, _ := weightsOf(a).Shape()
		if n, ok := at(w, 1).Number(); ok && len(x) > 1 {
			h.is(x[1], int(n*op.Int("group", 1)))
		}
	case "ConvTranspose", "BatchNormalization", "InstanceNormalization":
		h.equal(at(x, 1), at(w, 0))
	case "MatMul", "MatMulInteger":
		h.equal(x[len(x)-1], at(w, max(len(w)-2, 0)))
		for i := 1; i <= min(len(x), len(w))-2; i++ { // batches
			h.equal(x[len(x)-2-i], w[len(w)-2-i])
		}
	case "Gemm":
		i, j := 1, 0
		if op.Int("transA", 0) != 0 {
			i = 0
		}
		if op.Int("transB", 0) != 0 {
			j = 1
		}
		h.equal(at(x, i), at(w, j))
	case "LSTM", "GRU", "RNN":
		h.equal(at(x, 2), at(w, 2))
	case "LayerNormalization", "PRelu", "Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean", "Equal", "Greater", "Less", "Where":
		// The model may declare the result.
		for _, v := range append(a.Inputs()[1:len(a.Inputs()):len(a.Inputs())], a.Outputs()[0]) {
			y, _ := ir.TypeOf(v).Shape()
			for i := 1; i <= min(len(x), len(y)); i++ {
				h.equal(x[len(x)-i], y[len(y)-i])
			}
		}
	case "Concat":
		for _, v := range a.Inputs()[1:] {
			y, _ := ir.TypeOf(v).Shape()
			for i := range min(len(x), len(y)) {
				if axis := int(op.Int("axis", 0)); i != axis && i != axis+len(x) {
					h.equal(x[i], y[i])
				}
			}
		}
	}
}

// at returns a size, an unknown one if there is none.
func at(dims []ir.Dim, i int) ir.Dim {
	if i < len(dims) {
		return dims[i]
	}
	return ir.UnknownDim
}

// is notes the size of a symbol.
func (h *hinting) is(d ir.Dim, n int) {
	if _, ok := d.Number(); !ok && !d.IsUnknown() && n > 1 {
		h.note(d.String(), n)
	}
}

func (h *hinting) note(symbol string, n int) {
	if h.known[symbol] == 0 {
		h.known[symbol] = n
		h.order = append(h.order, symbol)
	}
}

// equal notes that two sizes are the same. One that is 1 may be broadcast, and says nothing.
func (h *hinting) equal(d, e ir.Dim) {
	n, isNumber := d.Number()
	m, too := e.Number()
	switch {
	case d.IsUnknown() || e.IsUnknown() || isNumber && too:
	case isNumber:
		h.is(e, int(n))
	case too:
		h.is(d, int(m))
	default:
		a, b := d.String(), e.String()
		h.same[a], h.same[b] = append(h.same[a], b), append(h.same[b], a)
	}
}

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
