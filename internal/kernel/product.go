package kernel

// MulNT computes C = alpha·A·Bᵀ + beta·C, where A is m×k, B is n×k and C is m×n. With beta 0 the
// old contents of C are not read. C must not overlap the factors.
func (t *Threads) MulNT(alpha float32, a, b Matrix, beta float32, c Matrix) {
	f := factors{a: a, b: b, threads: t}
	f.multiply(alpha, beta, c)
}

// MulNN computes C = alpha·A·B + beta·C, where A is m×k, B is k×n and C is m×n. Otherwise it is
// like MulNT.
func MulNN(alpha float32, a, b Matrix, beta float32, c Matrix) {
	(*Threads)(nil).MulNN(alpha, a, b, beta, c)
}

// MulNN is the function MulNN.
func (t *Threads) MulNN(alpha float32, a, b Matrix, beta float32, c Matrix) {
	f := factors{a: a, b: b, bTall: true, threads: t}
	f.multiply(alpha, beta, c)
}

// MulTN computes C = alpha·Aᵀ·B + beta·C, where A is k×m, B is k×n and C is m×n. Otherwise it is
// like MulNT.
func (t *Threads) MulTN(alpha float32, a, b Matrix, beta float32, c Matrix) {
	f := factors{a: a, b: b, aTall: true, bTall: true, threads: t}
	f.multiply(alpha, beta, c)
}

// factors are the factors of a product, neither of them prepared. A tall one has k rows, any other
// k columns.
type factors struct {
	a, b         Matrix
	aTall, bTall bool
	threads      *Threads
}

const (
	// tallRows is how many rows a tall left factor may have to be read in place, an element of each
	// in turn. Cache lines of more rows evict each other, most of all with a round number of
	// columns (Emerald Rapids, November 2026).
	tallRows = 64
	// tallBytes is how much of the transpose of such a factor is made at a time, and minTall the
	// least number of its rows. It should stay in the second-level cache while it is multiplied
	// with panels of W, which are read again for the next rows. A W of more than farBytes is not in
	// a cache then, and maxTall rows pay (Zen 5 with 1 MB, November 2026).
	tallBytes = 256 << 10
	minTall   = 96
	maxTall   = 384
	farBytes  = 8 << 20
	// sliceSteps is how many rows of two tall factors are multiplied at a time where C has at most
	// sliceElements: their packed forms, and the sums so far, then stay in the second-level cache.
	sliceSteps    = 512
	sliceElements = 1 << 18
	// setBytes is how far apart lines are that share a set of a second-level cache (1 MB in 16
	// ways), and maxWays how many of its ways a panel that is read in place may take; a part of a
	// divided k, which meets few tiles before the next part, may take twice as many. firstSetBytes
	// is the distance in a first-level cache. A product of fewInPlace rows bears more, because
	// packing would cost it as much (Zen 5, November 2026). With more rows, panels of one line are
	// packed: each step would wait for a line of its own, and products that update parameters took
	// 1.07 to 1.19 times as long (AVX2 on Zen 3, November 2026).
	setBytes      = 64 << 10
	firstSetBytes = 4 << 10
	maxWays       = 8
	fewInPlace    = 96
)

// shape returns the shape of a matrix, or that of its transpose if it is tall.
func shape(m *Matrix, tall bool) (n, k int) {
	if tall {
		return m.Cols, m.Rows
	}
	return m.Rows, m.Cols
}

// check panics unless the factors and C have their elements.
func (f *factors) check(c Matrix) {
	checkApart(&f.a)
	checkApart(&f.b)
	checkApart(&c)
}

// multiply computes C = alpha·A·B + beta·C.
func (f *factors) multiply(alpha, beta float32, c Matrix) {
	m, k := shape(&f.a, f.aTall)
	n, kOfB := shape(&f.b, f.bTall)
	if m != c.Rows || n != c.Cols || k != kOfB {
		panic(errShape)
	}
	f.check(c)
	if k == 0 || m == 0 || n == 0 {
		Scale(c, beta)
		return
	}
	f.inChains(currentSet(), alpha, beta, c)
}

// inChains is multiply with a set of kernels, one chain of the sums after the other. Nothing may be
// empty.
func (f *factors) inChains(set kernelSet, alpha, beta float32, c Matrix) {
	_, k := shape(&f.a, f.aTall)
	terms := maxTerms
	if set == blasSet && !ownBLAS() {
		terms = k // a foreign BLAS has an order of its own
	}
	// The factors are divided here, and not where their product is planned, because packing them
	// takes memory in proportion to k: vectors, which are padded, take sixteen times theirs.
	for l := 0; l < k; l += terms {
		part := *f
		if k > terms {
			n := min(terms, k-l)
			part.a, part.b = slice(f.a, !f.aTall, l, n), slice(f.b, !f.bTall, l, n)
		}
		if set == blasSet {
			part.blas(alpha, beta, c)
		} else {
			part.mul(set, alpha, beta, c)
		}
		beta = 1
	}
}

// mul is multiply with our kernels, for one chain.
func (f *factors) mul(set kernelSet, alpha, beta float32, c Matrix) {
	ws := getWorkspace()
	defer ws.put()
	if alpha == 1 && beta == 0 && f.mulLow(set, ws, &c) {
		return
	}
	// A tall left factor is read down its columns. With few rows that is as good as along them.
	if f.aTall && f.a.Rows > tallRows {
		f.mulTall(set, ws, alpha, beta, c)
		return
	}
	ws.prepare(set, f.threads, f.b, f.bTall, c.Rows)
	ws.segs[0] = Segment{X: f.a, W: &ws.weights, transposed: f.aTall}
	ws.addTo(set, f.threads, alpha, beta, c)
}

// mulTall is mul for a tall left factor, which is transposed. If both are tall, either can be the
// left one.
func (f *factors) mulTall(set kernelSet, ws *workspace, alpha, beta float32, c Matrix) {
	k := f.a.Rows
	if f.bTall && c.Rows*c.Cols <= sliceElements {
		// One of two tall factors has to be transposed, and it should be the smaller one. If that
		// is B, the result is the transpose of C, which is transposed at the end.
		swap := k*c.Rows > k*c.Cols+c.Rows*c.Cols // B and the transpose of C have fewer elements than A
		if swap || k >= 2*sliceSteps {
			if !f.share(set, ws, nil, alpha, beta, c) {
				f.mulSlices(set, ws, swap, alpha, beta, c)
			}
			return
		}
	}
	ws.prepare(set, f.threads, f.b, f.bTall, c.Rows)
	if !f.share(set, ws, &ws.weights, alpha, beta, c) {
		f.mulBlocks(set, ws, &ws.weights, alpha, beta, c)
	}
}

// mulBlocks is mulTall for a right factor that is prepared. It transposes some rows at a time.
func (f *factors) mulBlocks(set kernelSet, ws *workspace, w *Weights, alpha, beta float32, c Matrix) {
	k := f.a.Rows
	n := max(tallBytes/(4*k)/maxTileRows*maxTileRows, minTall)
	if 4*k*c.Cols > farBytes {
		n = max(n, maxTall)
	}
	// All transposes have the same place in the workspace: the next one is written when the product
	// with the one before is done, and is then still in the cache.
	used := ws.used
	for i := 0; i < c.Rows; i += n {
		ws.used = used
		rows := min(n, c.Rows-i)
		ws.segs[0] = Segment{X: ws.transposed(set, Cols(f.a, i, rows)), W: w}
		ws.addTo(set, nil, alpha, beta, Rows(c, i, rows))
	}
}

// mulSlices is mulTall for two tall factors and a small C. It multiplies some of their rows at a
// time. With swap it computes the transpose of C.
func (f *factors) mulSlices(set kernelSet, ws *workspace, swap bool, alpha, beta float32, c Matrix) {
	left, right := f.a, f.b
	if swap {
		left, right = right, left
	}
	k := left.Rows
	slices := (k + sliceSteps - 1) / sliceSteps
	sums := Matrix{Rows: left.Cols, Cols: right.Cols, Stride: set.padded(right.Cols)}
	sums.Data = ws.floats(sums.Rows * sums.Stride)
	used := ws.used
	for s := range slices {
		ws.used = used
		first, last := s*k/slices, (s+1)*k/slices
		ws.prepare(set, nil, Rows(right, first, last-first), true, left.Cols)
		ws.segs[0] = Segment{X: ws.transposed(set, Rows(left, first, last-first)), W: &ws.weights, Continue: s > 0}
		// Slices continue the sums of those before, so the sums are the chains of the whole
		// product. The epilogue can't be that of the last slice, because C may be the transpose of
		// sums.
		multiply(set, ws, ws.segs[:], &Epilogue{}, 1, sums)
	}
	if swap {
		sums = ws.transposed(set, sums)
	}
	// The roundings are those of an epilogue.
	Scale(sums, alpha)
	switch beta {
	case 0:
		Copy(c, sums)
	default:
		Scale(c, beta)
		Add(c, 1, sums)
	}
}

// prepare makes weights of m, or of its transpose if it is tall, for a product of a number of rows.
func (w *workspace) prepare(set kernelSet, t *Threads, m Matrix, tall bool, rows int) {
	w.weights = Weights{w: m, tall: tall, inPlace: tall && readInPlace(set, &m, rows), set: set}
	w.weights.place(w.floats(w.weights.size()))
	w.weights.pack(t, nil)
}

// readInPlace reports whether the panels of a tall factor, for a product of a number of rows, are
// better read in it than packed. Its rows evict each other from the caches if many of them begin in
// the same sets, as they do with round numbers of columns.
func readInPlace(set kernelSet, m *Matrix, rows int) bool {
	if rows > fewInPlace && panelBytes(set, 1) <= lineBytes {
		return false
	}
	// A step of a panel is a piece of a row. Rows whose distance is a multiple of a power of two
	// share the sets of a cache that are as far apart: count how many lines meet in a set, and
	// compare with what the cache holds in one.
	steps, most := m.Rows, maxWays
	if panelBytes(set, steps) > longPanel {
		steps, most = partSteps, 2*maxWays
	}
	apart := min(4*m.Stride&-(4*m.Stride), setBytes)
	ways := steps * max(panelBytes(set, 1), apart) / setBytes
	return ways <= most && apart < firstSetBytes || ways <= 4*maxWays && rows <= fewInPlace
}

// panelBytes is the size of some steps of a panel.
func panelBytes(set kernelSet, steps int) int { return 4 * set.panelCols() * steps }

// transposed returns the transpose of m.
func (w *workspace) transposed(set kernelSet, m Matrix) Matrix {
	// Rows are an odd number of cache lines apart, so that they don't evict each other.
	lines := (m.Rows+cacheLine-1)/cacheLine | 1
	t := Matrix{Rows: m.Cols, Cols: m.Rows, Stride: lines * cacheLine}
	t.Data = w.floats(t.Rows * t.Stride)
	transpose(set, t.Data, t.Stride, m)
	return t
}

// addTo computes C = alpha·X·Wᵀ + beta·C for the one segment.
func (w *workspace) addTo(set kernelSet, t *Threads, alpha, beta float32, c Matrix) {
	ep := Epilogue{Threads: t}
	// Both products with alpha and beta are rounded before they are added, here as in a tile:
	// beta·C is its residual.
	switch beta {
	case 0:
	case 1:
		ep.Accumulate = true
	default:
		ep.Alpha, ep.Residual = beta, c
	}
	multiply(set, w, w.segs[:], &ep, alpha, c)
}
