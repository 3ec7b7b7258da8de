package kernel

import "github.com/nnopt/nnopt/internal/divide"

// Products of few rows and not many weights, as small networks have them, take less time than a plan of
// how to divide them: one tile of rows meets all panels, once. The tile stays on the stack.

// mulLow computes y = ep(x·Wᵀ), which fits, if that is one tile of rows and one group of columns. It
// reports false if not, and does nothing. Its bits are those of any product.
func (p *Weights) mulLow(x *Matrix, ep *Epilogue, y *Matrix) bool {
	n, k := p.shape()
	if y.Rows > maxTileRows || y.Rows == 0 || n == 0 || k == 0 || k > maxTerms || ep.Accumulate || p.isNarrow() || p.set == blasSet || p.set != currentSet() {
		return false
	}
	if t := ep.Threads; t != nil && (divide.Always.Load() || p.set.duration(y.Rows, n, k) >= minHot) {
		return false
	}
	if cols, steps := blocking(p.set, 1, n, k); steps > 0 || cols < n {
		return false
	}
	t := &tile{rows: y.Rows, k: k, mul: 1}
	t.x, t.xRow, t.xStep = &x.Data[0], uintptr(x.Stride)*4, 4
	t.yRow = uintptr(y.Stride) * 4
	t.flags = ep.lastFlags()
	if ep.Bias != nil {
		t.flags |= tileBias
	}
	width := p.set.panelCols()
	rest := n % width
	if n > rest {
		p.lowPanels(t, ep, y, 0, n/width, width)
	}
	if rest > 0 {
		p.lowPanels(t, ep, y, n-rest, 1, rest)
	}
	return true
}

// lowPanels computes some panels of the given width from column j on.
func (p *Weights) lowPanels(t *tile, ep *Epilogue, y *Matrix, j, panels, width int) {
	t.span(p.set, panels, width)
	t.w, t.wStep, t.wSkip = p.panel(j, t.vecs*p.set.lanes(), 0, t.k)
	t.y = &y.Data[j]
	t.pointAt(ep, j)
	t.pointAtResidual(ep, 0, j)
	new(ahead).during(t) // fetches nothing
	p.set.tile(t)
}
