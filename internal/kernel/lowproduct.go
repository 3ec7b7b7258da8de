package kernel

import "github.com/nnopt/nnopt/internal/divide"

// Products of few rows and not many weights, as small networks have them, take less time than a plan of
// how to divide them: one tile of rows meets all panels, once. The tile stays on the stack.

// mulLow computes y = ep(x·Wᵀ), which fits, if that is one tile of rows and one group of columns. It
// reports false if not, and does nothing. Its bits are those of any product.
func (p *Weights) mulLow(x *Matrix, ep *Epilogue, y *Matrix) bool {
	if !p.isLow(ep, y) {
		return false
	}
	p.low(x, ep, y, nil)
	return true
}

// isLow reports whether mulLow computes a product.
func (p *Weights) isLow(ep *Epilogue, y *Matrix) bool {
	n, k := p.shape()
	if y.Rows > maxTileRows || y.Rows == 0 || n == 0 || k == 0 || k > maxTerms || ep.Accumulate || p.isNarrow() || p.set == blasSet || p.set != p.current() {
		return false
	}
	if t := ep.Threads; t != nil && (divide.Always.Load() || p.set.duration(y.Rows, n, k) >= minHot) {
		return false
	}
	cols, steps := blocking(p.set, 1, n, k)
	return steps == 0 && cols >= n
}

// A Repetition is a product of few rows that is computed again and again in the same memory: its tiles are kept.
type Repetition struct {
	x, y  Matrix
	ep    Epilogue
	w     *Weights
	set   kernelSet
	tiles []tile
}

// Repeat prepares ep.Mul(x, w, y) to be computed again. It returns nil unless that is one tile of rows and
// one group of columns: what others take to begin does not matter.
func (ep *Epilogue) Repeat(x *Matrix, w *Weights, y *Matrix) *Repetition {
	checkApart(y)
	w.checkFactor(x, y)
	checkEpilogue(ep, y)
	if !w.isLow(ep, y) {
		return nil
	}
	r := &Repetition{x: *x, y: *y, ep: *ep, w: w, set: w.set}
	r.ep.Threads, r.ep.Next = nil, nil
	w.low(&r.x, &r.ep, &r.y, &r.tiles)
	return r
}

// Run computes the product. Its bits are those of Mul.
func (r *Repetition) Run() {
	if r.set != r.w.current() {
		r.ep.Mul(&r.x, r.w, &r.y)
		return
	}
	for i := range r.tiles {
		r.set.tile(&r.tiles[i])
	}
}

// low computes a product that isLow, or keeps its tiles instead.
func (p *Weights) low(x *Matrix, ep *Epilogue, y *Matrix, keep *[]tile) {
	n, k := p.shape()
	t := &tile{rows: y.Rows, k: k, mul: 1}
	t.x, t.xRow, t.xStep = &x.Data[0], uintptr(x.Stride)*4, 4
	t.yRow = uintptr(y.Stride) * 4
	t.flags = ep.lastFlags()
	if ep.Bias != nil {
		t.flags |= tileBias
	}
	j, wide := 0, 1
	if y.Rows == 1 && p.set == avx2Set {
		wide = 4 // panels: see rowVecs in internal/gen/gemm.go
	}
	for ; wide >= 1; wide /= 2 {
		width := wide * p.set.panelCols()
		if panels := (n - j) / width; panels > 0 {
			p.lowPanels(t, ep, y, j, panels, width, wide, keep)
			j += panels * width
		}
	}
	if j < n {
		p.lowPanels(t, ep, y, j, 1, n-j, 1, keep)
	}
}

// lowPanels computes some groups of wide panels, of the given width in all, from column j on.
func (p *Weights) lowPanels(t *tile, ep *Epilogue, y *Matrix, j, groups, width, wide int, keep *[]tile) {
	t.span(p.set, groups, width)
	t.w, t.wStep, t.wSkip = p.panel(j, t.vecs*p.set.lanes()/wide, 0, t.k)
	t.wPanel = uintptr(t.k)*t.wStep + t.wSkip
	t.wSkip += uintptr(wide-1) * t.wPanel
	t.y = &y.Data[j]
	t.pointAt(ep, j)
	t.pointAtResidual(ep, 0, j)
	if keep != nil {
		*keep = append(*keep, *t)
		t = &(*keep)[len(*keep)-1]
	}
	new(ahead).during(t) // fetches nothing
	if keep == nil {
		p.set.tile(t)
	}
}

// lowBytes is how much of a factor is packed at a time if it meets one tile only: what is packed is read
// from the first-level cache. All of it at once would go through the second-level cache twice.
const lowBytes = 16 << 10

// mulLow computes C = A·B or A·Bᵀ if that is one tile of rows. It reports false if not, and does nothing. Its
// bits are those of any product.
func (f *factors) mulLow(set kernelSet, ws *workspace, c *Matrix) bool {
	n, k := shape(&f.b, f.bTall)
	if c.Rows > maxTileRows || f.aTall || !f.bTall && isNarrow(n, k) || panelBytes(set, k) > longPanel {
		return false
	}
	if f.threads != nil && (divide.Always.Load() || set.duration(c.Rows, n, k) >= minHot) {
		return false
	}
	if f.bTall {
		ws.prepare(set, nil, f.b, true, c.Rows)
		ws.weights.low(&f.a, &Epilogue{}, c, nil)
		return true
	}
	done := set.rowChains(&f.a, &f.b, c)
	width := max(lowBytes/panelBytes(set, k), 1) * set.panelCols()
	w := &ws.weights
	panels := ws.floats(min(width, set.padded(n)) * k)
	for j := done; j < n; j += width {
		*w = Weights{w: Rows(f.b, j, min(width, n-j)), set: set, panels: panels}
		pack(set, panels, w.w)
		y := Cols(*c, j, w.w.Rows)
		w.low(&f.a, &Epilogue{}, &y, nil)
	}
	return true
}

// rowChains sets the first elements of y, one row, to those of x·Wᵀ, and returns how many.
func (s kernelSet) rowChains(x, w, y *Matrix) int {
	blocks := w.Rows / cacheLine
	if !s.haveRowChains() || x.Rows != 1 || blocks == 0 || x.Cols == 0 || x.Cols%cacheLine != 0 {
		return 0
	}
	rowChainsBlocks(&x.Data[0], x.Cols/cacheLine, &w.Data[0], uintptr(w.Stride)*4, blocks, &y.Data[0])
	return blocks * cacheLine
}
