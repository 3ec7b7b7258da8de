package kernel

// Narrow products have sums in lanes. Such a sum is made of sumLanes chains, one of every
// sumLanes-th product, which are added in pairs at the end, neighbours first. Chains fill vectors
// with columns, and with few columns they reach at most three quarters of the peak: a tile of one
// vector of 16 has six accumulators, where two units with a latency of four cycles want eight, and
// two vectors are padded. With fewer columns or rows it is less. Lanes fill vectors along k
// instead, for any number of columns. But their final additions are most of the work if each has
// only one or two products. And a sum in lanes can't be divided, as some passes want to. So lanes
// have to be faster by a fifth, also for many rows.
//
// On Zen 5 with AVX-512 lanes take, for 4, 12, 16, 20, 24 and 32 columns, 0.22, 0.58, 0.78, 0.72,
// 0.87 and 1.12 times as long as chains for 200 rows and 512 steps, and 0.21, 0.30, 0.34, 0.38,
// 0.55 and 0.84 times for one row (November 2026).
//
// The rule looks at the sizes of W alone. So, as with chains, the bits of an element depend neither
// on the other elements nor on the instruction set. Terms that continue each other's sums are
// chains. Parts along k of a product that is not narrow are not narrow either.
const (
	narrowCols  = 20
	narrowSteps = 2 * sumLanes

	narrowGroup = 4 // columns that are computed at a time
)

// Divisible reports whether a product with n columns and sums of length k can be divided along k,
// into products that continue each other's sums, without changing a bit. It can if every sum is one
// chain. The number of rows doesn't matter.
func Divisible(n, k int) bool { return !isNarrow(n, k) && k <= maxTerms }

// isNarrow reports whether a product with n columns and sums of length k is narrow.
func isNarrow(n, k int) bool { return n <= narrowCols && k >= narrowSteps }

// isNarrow reports whether p has a form for narrow products. Weights of a backward pass don't.
func (p *Weights) isNarrow() bool {
	n, k := p.shape()
	return !p.tall && n > 0 && isNarrow(n, k)
}

// laneShape is the shape of the form for narrow products: W itself, padded with zeros.
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
	// Rows and steps of zeros make the kernel regular: it always computes narrowGroup columns, and
	// blocks of W as long as those of x.
	for i := range rows {
		row := p.lanes[i*cols : (i+1)*cols]
		n := 0
		if i < p.w.Rows {
			n = copy(row, Row(p.w, i))
		}
		clear(row[n:])
	}
}

// isNarrow reports whether the sums of the segment are in lanes. next is the next segment, or nil.
func (s *Segment) isNarrow(next *Segment) bool {
	return s.W.isNarrow() && !s.transposed && !s.Continue && (next == nil || !next.Continue)
}

// laneTile is the argument of a kernel of narrow products, which computes the sums of some rows.
// Distances are in bytes.
type laneTile struct {
	rows, cols int // cols is a multiple of narrowGroup
	x          *float32
	xRow       uintptr
	w          *float32
	wRow       uintptr
	blocks     int    // of sumLanes steps, at least one
	tail       int    // remaining steps
	mask       uint32 // the same as bits
	dst        *float32
	dstRow     uintptr
}

// narrowSums computes the sums of a narrow part for some rows, from row i on, to p.rest.
func (p *product) narrowSums(part *part, i, rows int) {
	seg := part.seg
	n, cols := seg.W.laneShape()
	t := &p.lanes
	// Of the chains of a long sum, only the last one may have a tail. So what a kernel reads behind
	// the last block, and multiplies with zeros, is the padding of W, and not elements of it, which
	// may be infinite.
	t.cols, t.w, t.wRow = n, &seg.W.lanes[part.k0], uintptr(cols)*4
	t.blocks, t.tail = part.lanes/sumLanes, part.lanes%sumLanes
	t.mask = 1<<t.tail - 1
	t.xRow, t.dstRow = uintptr(seg.X.Stride)*4, uintptr(p.pitch)*4
	for last := i + rows; i < last; i += t.rows {
		t.rows = min(last-i, p.set.laneRows())
		t.x, t.dst = seg.at(i, part.k0), &p.rest[(i-p.i0)*p.pitch]
		p.set.dotLanes(t)
	}
}

// dotLanesGo is dotLanes in Go. Kernels pad a tail with zeros, which turns a negative zero into a
// positive one.
func dotLanesGo(t *laneTile) {
	for i := range uintptr(t.rows) {
		for j := range uintptr(t.cols) {
			var sums [sumLanes]float32
			x, w := elem(t.x, i*t.xRow), elem(t.w, j*t.wRow)
			steps := uintptr(t.blocks*sumLanes + t.tail)
			for l := range steps {
				sums[l%sumLanes] = fma32(*elem(x, 4*l), *elem(w, 4*l), sums[l%sumLanes])
			}
			// The lanes beyond the tail get a product of zeros in assembly.
			for l := steps; l%sumLanes > 0; l++ {
				sums[l%sumLanes] += 0
			}
			*elem(t.dst, i*t.dstRow+4*j) = addPairs(&sums)
		}
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
