package kernel

import (
	"math"

	"gonum.org/v1/gonum/blas"
)

// gonum's Sgemm computes a product of fewer than 4 blocks of 64×64 in one goroutine with the inner dimension in one
// piece, so the result of a row doesn't depend on the other rows. Larger products are handed over in pieces of that size.
const (
	pieceRows = 64
	pieceCols = 192
	// A piece of the right-hand factor should stay in the first-level cache while the rows pass by.
	pieceElems = 6144
	// Below this many rows a plain loop is as fast as looking for infinities in the other factor first.
	fewRows = 8
)

// multiplyBLAS computes y = Σ_s x_s·W_sᵀ and what ep adds to it, a pass for each step.
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
		ReLU(y, y)
	}
	if ep.Scale != nil {
		ScaleOffset(y, y, ep.Scale, ep.Offset)
	}
	if ep.Alpha != 0 {
		Add(y, ep.Alpha, residual)
	}
}

// blasTerm computes y = x·Wᵀ + beta·y.
func blasTerm(x Matrix, w *Weights, beta float32, y Matrix) {
	mul := blasNT
	if w.tall {
		mul = blasNN
	}
	switch {
	case x.Cols == 0:
		Scale(beta, y)
	case x.Rows > 1 && x.Stride < x.Cols:
		// BLAS wants rows that do not overlap.
		for i := range x.Rows {
			row := x.Data[i*x.Stride : i*x.Stride+x.Cols]
			mul(1, Matrix{Rows: 1, Cols: x.Cols, Stride: x.Cols, Data: row}, w.w, beta, Rows(y, i, 1))
		}
	default:
		mul(1, x, w.w, beta, y)
	}
}

// blasNT is MulNT with what blas32 computes with.
func blasNT(alpha float32, a, b Matrix, beta float32, c Matrix) {
	if !ownBLAS() {
		gemm(blas.NoTrans, blas.Trans, alpha, a, b, beta, c)
		return
	}
	cols := min(max(pieceElems/a.Cols, 8), pieceCols)
	for j := 0; j < c.Cols; j += cols {
		bj := Rows(b, j, min(cols, c.Cols-j))
		for i := 0; i < c.Rows; i += pieceRows {
			n := min(pieceRows, c.Rows-i)
			gemm(blas.NoTrans, blas.Trans, alpha, Rows(a, i, n), bj, beta, View(c, i, n, j, bj.Rows))
		}
	}
}

// blasNN is MulNN with what blas32 computes with.
func blasNN(alpha float32, a, b Matrix, beta float32, c Matrix) {
	switch {
	case !ownBLAS():
		gemm(blas.NoTrans, blas.NoTrans, alpha, a, b, beta, c)
	case a.Rows < fewRows || !allFinite(b):
		Scale(beta, c)
		for i := range c.Rows {
			for l, v := range Row(a, i) {
				AddVec(Row(c, i), alpha*v, Row(b, l))
			}
		}
	default:
		pieces(c, func(i, m, j, n int) {
			gemm(blas.NoTrans, blas.NoTrans, alpha, Rows(a, i, m), Cols(b, j, n), beta, View(c, i, m, j, n))
		})
	}
}

// blasTN is MulTN with what blas32 computes with.
func blasTN(alpha float32, a, b Matrix, beta float32, c Matrix) {
	switch {
	case !ownBLAS():
		gemm(blas.Trans, blas.NoTrans, alpha, a, b, beta, c)
	case a.Cols < fewRows || !allFinite(b):
		Scale(beta, c)
		for l := range a.Rows {
			for i, v := range Row(a, l) {
				AddVec(Row(c, i), alpha*v, Row(b, l))
			}
		}
	default:
		pieces(c, func(i, m, j, n int) {
			gemm(blas.Trans, blas.NoTrans, alpha, Cols(a, i, m), Cols(b, j, n), beta, View(c, i, m, j, n))
		})
	}
}

// pieces calls f with the rectangles [i, i+m)×[j, j+n) that C is computed in.
func pieces(c Matrix, f func(i, m, j, n int)) {
	for i := 0; i < c.Rows; i += pieceRows {
		for j := 0; j < c.Cols; j += pieceCols {
			f(i, min(pieceRows, c.Rows-i), j, min(pieceCols, c.Cols-j))
		}
	}
}

func gemm(tA, tB blas.Transpose, alpha float32, a, b Matrix, beta float32, c Matrix) {
	k := a.Cols
	if tA == blas.Trans {
		k = a.Rows
	}
	implementation().Sgemm(tA, tB, c.Rows, c.Cols, k, alpha, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
}

// allFinite reports whether m holds neither NaN nor infinities. gonum skips a row of the right-hand factor where the
// left-hand element is zero, which would lose them.
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
