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
