package kernel

// tallFactors is a product with a tall left factor of which several threads compute rows or columns.
type tallFactors struct {
	factors
	set         kernelSet
	alpha, beta float32
	c           Matrix
	weights     *Weights // of the right factor, if all share them; nil if each makes its own
	cols        bool     // columns are divided, not rows
	parts       int
}

// share computes the product with several threads. It reports false, and does nothing, if that is not
// worth it.
func (f *factors) share(set kernelSet, ws *workspace, w *Weights, alpha, beta float32, c Matrix) bool {
	t := f.threads
	if t == nil {
		return false
	}
	// A thread makes the transpose of its part of the left factor, and without shared weights the
	// packed form of its part of the right one. It also makes that of the whole other factor, so the
	// larger one is divided, into as many parts as there are threads. Threads that shared one transpose,
	// made by both, took 1.03 times as long: half of it is in the cache of another processor (Sapphire
	// Rapids, 2026-11-26).
	p := &ws.tall
	*p = tallFactors{factors: *f, set: set, alpha: alpha, beta: beta, c: c, weights: w, cols: w == nil && c.Cols > c.Rows}
	p.threads = nil
	n, unit := p.divided()
	p.parts = min(t.Parts(set.duration(c.Rows, c.Cols, f.a.Rows)), t.Size(), (n+unit-1)/unit)
	if p.parts <= 1 {
		return false
	}
	t.Do(p.parts, p)
	return true
}

// divided returns how many rows or columns are divided, and what their numbers are multiples of.
func (f *tallFactors) divided() (n, unit int) {
	if f.cols {
		return f.c.Cols, f.set.panelCols()
	}
	return f.c.Rows, maxTileRows
}

// Part computes some rows or columns.
func (f *tallFactors) Part(i int) {
	ws := getWorkspace()
	defer ws.put()
	n, unit := f.divided()
	first, next := span(i, f.parts, n, unit)
	part, c := f.factors, f.c
	if f.cols {
		part.b, c = Cols(f.b, first, next-first), Cols(c, first, next-first)
	} else {
		part.a, c = Cols(f.a, first, next-first), Rows(c, first, next-first)
	}
	if f.weights != nil {
		part.mulBlocks(f.set, ws, f.weights, f.alpha, f.beta, c)
	} else {
		part.mulTall(f.set, ws, f.alpha, f.beta, c)
	}
}
