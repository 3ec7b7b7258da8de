package kernel

import (
	"math"
	"sync"
)

// A Strided is a matrix of float64s whose element (i, j) is Data[First + i·Row + j·Col]. It may be
// a transpose or another view.
type Strided struct {
	Rows, Cols int
	Row, Col   int // steps, which may be zero or negative
	First      int // index of element (0, 0)
	Data       []float64
}

// holds reports whether Data has all elements.
func (m *Strided) holds() bool {
	if m.Rows <= 0 || m.Cols <= 0 {
		return m.Rows >= 0 && m.Cols >= 0
	}
	most := len(m.Data) - 1
	if m.First < 0 || m.First > most || !reaches(m.Rows-1, abs(m.Row), most) || !reaches(m.Cols-1, abs(m.Col), most) {
		return false
	}
	down, right := (m.Rows-1)*m.Row, (m.Cols-1)*m.Col
	return m.First+min(down, 0)+min(right, 0) >= 0 && m.First+max(down, 0)+max(right, 0) <= most
}

// abs returns |n|. That of the least int is correct as a uint64.
func abs(n int) int { return max(n, -n) }

// Products of float64s compute c in tiles that fit the registers. Both factors are packed, dDepth
// steps of the inner dimension at a time: a block of b that fits the second-level cache, and rows
// of a. Every element is a chain of fused multiply-adds for each dDepth steps, and alpha times it
// is added to c, fused. So the bits are the same with any instruction set.
const (
	dDepth = 192
	dCols  = 1032 // a multiple of the width of all tiles
	dRows  = 128  // a multiple of the height of all tiles
	maxDMR = 8
	maxDNR = 24
)

// dTileSize returns the rows and columns of a tile.
func (s kernelSet) dTileSize() (rows, cols int) { return s.byWidth(8, 4), s.byWidth(24, 12) }

// doubleScratch is scratch memory of a product.
type doubleScratch struct {
	a, b []float64
	edge [maxDMR * maxDNR]float64
}

var doubleScratches = sync.Pool{New: func() any {
	return &doubleScratch{a: make([]float64, dRows*dDepth), b: make([]float64, dCols*dDepth)}
}}

// HasDGemm reports whether to use DGemm for products of float64s, and not gonum's as the set of
// kernels "blas" does.
func HasDGemm() bool { return bestSet != blasSet }

// DGemm adds alpha·a·b to c, whose rows are contiguous and stride apart. NaN and infinities
// propagate. c must not overlap a or b. It panics if the shapes don't fit, a matrix has too few
// elements, or rows of c overlap.
func (t *Threads) DGemm(alpha float64, a, b Strided, c []float64, stride int) {
	rows, cols := a.Rows, b.Cols
	if a.Cols != b.Rows || !a.holds() || !b.holds() || rows > 1 && stride < cols || !holds(len(c), rows, cols, stride) {
		panic(errShape)
	}
	if rows == 0 || cols == 0 || a.Cols == 0 {
		return
	}
	if smallProduct(rows, cols, a.Cols) {
		smallDGemm(alpha, &a, &b, c, stride)
		return
	}
	if rows == 1 && cols == 1 && a.Col == 1 && b.Row == 1 {
		c[0] = dotDoubles(alpha, a.Data[a.First:][:a.Cols], b.Data[b.First:][:a.Cols], c[0])
		return
	}
	s := bestSet
	if t != nil && t.shareDouble(&doubleJob{s, alpha, a, b, c, stride, false, 1}) {
		return
	}
	s.dGemm(alpha, &a, &b, c, stride)
}

// dGemm is DGemm for one thread.
func (s kernelSet) dGemm(alpha float64, a, b *Strided, c []float64, stride int) {
	w := doubleScratches.Get().(*doubleScratch)
	defer doubleScratches.Put(w)
	mr, nr := s.dTileSize()
	// The order of the loops decides what stays where: a block of b in the second-level cache while
	// all rows of a pass, a block of rows of a in the first-level cache while the columns of b
	// pass, and a tile of c in registers for dDepth steps. Only the order of steps matters for the
	// bits.
	for j0 := 0; j0 < b.Cols; j0 += dCols {
		cols := min(dCols, b.Cols-j0)
		for k0 := 0; k0 < a.Cols; k0 += dDepth {
			depth := min(dDepth, a.Cols-k0)
			packLines(s, w.b, b.First+k0*b.Row+j0*b.Col, b.Data, b.Col, b.Row, cols, depth, nr)
			for i0 := 0; i0 < a.Rows; i0 += dRows {
				rows := min(dRows, a.Rows-i0)
				packLines(s, w.a, a.First+i0*a.Row+k0*a.Col, a.Data, a.Row, a.Col, rows, depth, mr)
				for j := 0; j < cols; j += nr {
					for i := 0; i < rows; i += mr {
						at := (i0+i)*stride + j0 + j
						w.tile(s, alpha, w.a[i*depth:], w.b[j*depth:], depth, c[at:], stride, min(mr, rows-i), min(nr, cols-j))
					}
				}
			}
		}
	}
}

// doubleJob is a product of float64s of which some rows or columns are computed at a time.
type doubleJob struct {
	set    kernelSet
	alpha  float64
	a, b   Strided
	c      []float64
	stride int
	cols   bool // columns are divided, not rows
	parts  int
}

// divided returns how many rows or columns are divided, and what their numbers are multiples of.
func (j *doubleJob) divided() (n, unit int) {
	height, width := j.set.dTileSize()
	if j.cols {
		return j.b.Cols, width
	}
	return j.a.Rows, height
}

// shareDouble computes a product if it is worth dividing, and reports false if not.
func (t *Threads) shareDouble(j *doubleJob) bool {
	// Every part packs all of the other factor, so the longer side is divided.
	j.cols = j.b.Cols > j.a.Rows
	n, unit := j.divided()
	j.parts = min(t.Parts(2*j.set.duration(j.a.Rows, j.b.Cols, j.a.Cols)), t.Size(), (n+unit-1)/unit)
	if j.parts <= 1 {
		return false
	}
	t.double = *j
	t.Do(j.parts, &t.double)
	t.double = doubleJob{}
	return true
}

// Part computes some rows or columns.
func (j *doubleJob) Part(i int) {
	n, unit := j.divided()
	first, next := span(i, j.parts, n, unit)
	a, b, c := j.a, j.b, j.c
	if j.cols {
		b.First, b.Cols, c = b.First+first*b.Col, next-first, c[first:]
	} else {
		a.First, a.Rows, c = a.First+first*a.Row, next-first, c[first*j.stride:]
	}
	j.set.dGemm(j.alpha, &a, &b, c, j.stride)
}

// tile adds to rows×cols elements of c. Partial tiles are computed in scratch memory.
func (w *doubleScratch) tile(s kernelSet, alpha float64, a, b []float64, depth int, c []float64, stride, rows, cols int) {
	mr, nr := s.dTileSize()
	if rows == mr && cols == nr {
		s.dTile(alpha, a, b, depth, c, stride)
		return
	}
	// The kernel reads and writes whole tiles. The padding of the packed factors is zero, so what
	// it adds outside of c is harmless, and is dropped.
	edge := w.edge[:mr*nr]
	for i := range rows {
		copy(edge[i*nr:][:cols], c[i*stride:])
	}
	s.dTile(alpha, a, b, depth, edge, nr)
	for i := range rows {
		copy(c[i*stride:][:cols], edge[i*nr:])
	}
}

// checkTile panics unless the factors and c have the elements of a tile.
func (s kernelSet) checkTile(a, b []float64, depth int, c []float64, stride int) {
	mr, nr := s.dTileSize()
	_, _, _ = a[mr*depth-1], b[nr*depth-1], c[(mr-1)*stride+nr-1]
}

// dTileGo is dTile in Go.
func (s kernelSet) dTileGo(alpha float64, a, b []float64, depth int, c []float64, stride int) {
	mr, nr := s.dTileSize()
	for i := range mr {
		for j := 0; j < nr; j += 4 {
			var sum [4]float64 // several at a time, because each step waits for the one before
			for k := range depth {
				x, y := a[k*mr+i], b[k*nr+j:][:4]
				sum[0] = math.FMA(x, y[0], sum[0])
				sum[1] = math.FMA(x, y[1], sum[1])
				sum[2] = math.FMA(x, y[2], sum[2])
				sum[3] = math.FMA(x, y[3], sum[3])
			}
			for l, v := range sum {
				c[i*stride+j+l] = math.FMA(v, alpha, c[i*stride+j+l])
			}
		}
	}
}

// packLines packs n lines of a matrix in groups of width lines. Lines are across elements apart.
// depth elements of each are taken, which are along apart. Elements with the same number are side
// by side in a group. The last group is padded with zeros.
func packLines(s kernelSet, dst []float64, at int, src []float64, across, along, n, depth, width int) {
	whole := n / width * width
	switch {
	// Lines that are side by side in memory are copied in stripes, contiguous lines are transposed
	// four at a time, and any others go element by element.
	case across == 1:
		packStripes(s, dst, src, at, along, depth, depth, whole, width)
	case along == 1 && across >= 0:
		for i := 0; i < whole; i += 4 {
			group := dst[i/width*width*depth+i%width:]
			packFour(s, group, src[at+i*across:], across, depth, width)
		}
	default:
		for i := range whole {
			packLine(dst[i/width*width*depth+i%width:], src, at+i*across, along, depth, width)
		}
	}
	if whole == n {
		return
	}
	group := dst[whole*depth:][:width*depth]
	clear(group)
	for i := whole; i < n; i++ {
		packLine(group[i-whole:], src, at+i*across, along, depth, width)
	}
}

// packLine copies a line of a group.
func packLine(group, src []float64, at, along, depth, width int) {
	for k := range depth {
		group[k*width] = src[at+k*along]
	}
}

// packFour packs four lines with contiguous elements.
func packFour(s kernelSet, dst, src []float64, across, depth, width int) {
	k := s.transpose4(dst, width, src, across, depth)
	a, b, c, d := src[:depth], src[across:][:depth], src[2*across:][:depth], src[3*across:][:depth]
	for ; k < depth; k++ {
		q := dst[k*width:][:4]
		q[0], q[1], q[2], q[3] = a[k], b[k], c[k], d[k]
	}
}
