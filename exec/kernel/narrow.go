package kernel

// Narrow products have sums in lanes: each is made of sumLanes chains, of every sumLanes-th product one, which at the end are added in
// pairs, neighbours first. A tile that is a vector wide has hardly more accumulators than rows, fewer than what keeps the processor
// busy, and most of their elements are padding; lanes fill the vectors along k instead. It is also the order in which
// OpenBLAS, and so Kaldi, adds up such products when there are few rows. Up to 16 columns lanes are faster; between those and 24 they are
// not, and the limits are where reference computations of Kaldi, of several hundred frames at most, have lanes too.
//
// As with chains, an element has the same bits whatever is computed with it, and with every instruction set. But its sum can't be
// divided without a trace: terms that go on with each other's sums are chains.
const (
	narrowCols  = 20
	mediumCols  = 24
	narrowSteps = minLaneSteps
	mediumSteps = 80      // as many steps and more are too many for mediumCols
	narrowSize  = 1 << 13 // W should stay in the first-level cache: every row of x passes by all of it

	narrowGroup = 4 // columns that are computed at a time
)

// IsNarrow reports whether a product of n columns, with sums of length k, is narrow. It has nothing to do with the number of rows.
func IsNarrow(n, k int) bool {
	return (n <= narrowCols || n <= mediumCols && k < mediumSteps) && k >= narrowSteps && n*k <= narrowSize
}

// isNarrow reports whether p has the form for narrow products. Those of a backward pass do without.
func (p *Weights) isNarrow() bool {
	n, k := p.shape()
	return !p.tall && n > 0 && IsNarrow(n, k)
}

// laneShape is the size of the form of W for narrow products: W itself, filled up with zeros.
func (p *Weights) laneShape() (rows, cols int) {
	if !p.isNarrow() {
		return 0, 0
	}
	n, k := p.shape()
	return (n + narrowGroup - 1) &^ (narrowGroup - 1), (k + sumLanes - 1) &^ (sumLanes - 1)
}

// packLanes fills that form.
func (p *Weights) packLanes() {
	rows, cols := p.laneShape()
	for i := range rows {
		row := p.lanes[i*cols : (i+1)*cols]
		n := 0
		if i < p.w.Rows {
			n = copy(row, Row(p.w, i))
		}
		clear(row[n:])
	}
}

// isNarrow reports whether the sums of the segment are in lanes; next is the one behind it, or nil.
func (s *Segment) isNarrow(next *Segment) bool {
	return s.W.isNarrow() && !s.transposed && !s.Continue && (next == nil || !next.Continue)
}

// narrowSums leaves the sums of a narrow segment, for so many rows from row i on, where a part would leave them.
func (p *product) narrowSums(seg *Segment, i, rows int) {
	n, cols := seg.W.laneShape()
	k := seg.k()
	blocks := k / sumLanes
	for r := i; r < i+rows; r++ {
		x := seg.X.Data[r*seg.X.Stride:]
		var tail *float32
		if rest := x[blocks*sumLanes : k]; len(rest) > 0 {
			clear(p.tail[copy(p.tail[:], rest):])
			tail = &p.tail[0]
		}
		p.set.dotLanes(&x[0], tail, &seg.W.lanes[0], uintptr(cols)*4, blocks, n/narrowGroup, &p.rest[(r-p.i0)*p.pitch])
	}
}

// dotLanesGo is what the kernels compute.
func dotLanesGo(x, tail, w *float32, wRow uintptr, blocks, groups int, dst *float32) {
	for j := range uintptr(groups * narrowGroup) {
		var sums [sumLanes]float32
		row := elem(w, j*wRow)
		for b := range uintptr(blocks) {
			for l := range uintptr(sumLanes) {
				at := (b*sumLanes + l) * 4
				sums[l] = fma32(*elem(x, at), *elem(row, at), sums[l])
			}
		}
		for l := range uintptr(sumLanes) {
			if tail != nil {
				sums[l] = fma32(*elem(tail, l*4), *elem(row, (uintptr(blocks)*sumLanes+l)*4), sums[l])
			}
		}
		*elem(dst, j*4) = addPairs(&sums)
	}
}

// addPairs adds up lanes, neighbours first.
func addPairs(sums *[sumLanes]float32) float32 {
	for n := sumLanes / 2; n > 0; n /= 2 {
		for i := range n {
			sums[i] = sums[2*i] + sums[2*i+1]
		}
	}
	return sums[0]
}
