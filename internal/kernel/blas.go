package kernel

import (
	"math"

	"gonum.org/v1/gonum/blas"
)

// gonum's Sgemm computes a product of fewer than 4 blocks of 64×64 in one goroutine, with the inner
// dimension in one piece. So the result of a row doesn't depend on the other rows. Larger products
// are computed in pieces of that size.
const (
	pieceRows = 64
	pieceCols = 192
	// A piece of a right-hand factor that is not tall should stay in the first-level cache while
	// the rows pass by.
	pieceElems = 6144
	// With fewer rows a plain loop is as fast as looking for infinities in the other factor first.
	fewRows = 8
)

// multiplyBLAS computes y = ep(Σ_s x_s·W_sᵀ), a pass for each step.
func multiplyBLAS(ws *workspace, segs []Segment, ep *Epilogue, y Matrix) {
	residual := ep.Residual
	if ep.Alpha != 0 && Same(residual, y) {
		residual = Matrix{Rows: y.Rows, Cols: y.Cols, Stride: y.Cols, Data: ws.floats(y.Rows * y.Cols)}
		Copy(residual, y)
	}
	beta := float32(0)
	if ep.Accumulate || segs[0].Continue {
		beta = 1
	}
	for i := range segs {
		blasTerm(segs[i].X, segs[i].W, beta, y)
		if ep.Bias != nil && (ep.BiasFirst && i == 0 || !ep.BiasFirst && i == len(segs)-1) {
			AddRow(y, 1, ep.Bias)
		}
		beta = 1
	}
	if ep.ReLU {
		MapRows(y, y, ReLUVec)
	}
	if ep.Scale != nil {
		scaleOffset(y, y, ep.Scale, ep.Offset)
	}
	if ep.Alpha != 0 {
		Add(y, ep.Alpha, residual)
	}
	if ep.LastReLU {
		MapRows(y, y, ReLUVec)
	}
}

// blasTerm computes y = x·Wᵀ + beta·y.
func blasTerm(x Matrix, w *Weights, beta float32, y Matrix) {
	switch {
	case x.Cols == 0:
		Scale(y, beta)
	case x.Rows > 1 && x.Stride < x.Cols:
		// BLAS wants rows that don't overlap.
		for i := range x.Rows {
			row := x.Data[i*x.Stride : i*x.Stride+x.Cols]
			blasTerm(Matrix{Rows: 1, Cols: x.Cols, Stride: x.Cols, Data: row}, w, beta, Rows(y, i, 1))
		}
	default:
		f := factors{a: x, b: w.Matrix(), bTall: w.tall}
		f.inChains(blasSet, 1, beta, y)
	}
}

// blas is inChains with the implementation of blas32, for one chain.
func (f *factors) blas(alpha, beta float32, c Matrix) {
	tA, tB := blas.NoTrans, blas.Trans
	if f.aTall {
		tA = blas.Trans
	}
	width := pieceCols
	if f.bTall {
		tB = blas.NoTrans
	} else {
		width = min(max(pieceElems/f.b.Cols, 8), pieceCols)
	}
	switch {
	case !ownBLAS():
		gemm(tA, tB, alpha, f.a, f.b, beta, c)
	case f.bTall && (c.Rows < fewRows || !allFinite(f.b)):
		Scale(c, beta)
		row, col := f.a.Stride, 1
		if f.aTall {
			row, col = col, row
		}
		for i := range c.Rows {
			for l := range f.b.Rows {
				AddVec(Row(c, i), alpha*f.a.Data[i*row+l*col], Row(f.b, l))
			}
		}
	default:
		for j := 0; j < c.Cols; j += width {
			n := min(width, c.Cols-j)
			for i := 0; i < c.Rows; i += pieceRows {
				m := min(pieceRows, c.Rows-i)
				gemm(tA, tB, alpha, slice(f.a, f.aTall, i, m), slice(f.b, f.bTall, j, n), beta, View(c, i, m, j, n))
			}
		}
	}
}

// slice returns n rows of m, or n columns if it is tall.
func slice(m Matrix, tall bool, first, n int) Matrix {
	if tall {
		return Cols(m, first, n)
	}
	return Rows(m, first, n)
}

func gemm(tA, tB blas.Transpose, alpha float32, a, b Matrix, beta float32, c Matrix) {
	k := a.Cols
	if tA == blas.Trans {
		k = a.Rows
	}
	implementation().Sgemm(tA, tB, c.Rows, c.Cols, k, alpha, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
}

// allFinite reports whether m holds neither NaN nor infinities. gonum would lose them: it skips a
// row of the right-hand factor where the left-hand element is zero.
func allFinite(m Matrix) bool {
	const exponent = 0x7f800000
	for i := range m.Rows {
		for _, v := range Row(m, i) {
			if math.Float32bits(v)&exponent == exponent {
				return false
			}
		}
	}
	return true
}
