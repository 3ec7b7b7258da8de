package array

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/nnopt/nnopt/kernel"
)

// Gemm sets c to alpha·a·b + beta·c, for matrices of floats of one type, which may be any
// views. If beta is 0, c is not read. C must not overlap a and b.
func (ws *Workspace) Gemm(alpha float64, a, b *Array, beta float64, c *Array) error {
	if a.shape[1] != b.shape[0] || a.shape[0] != c.shape[0] || b.shape[1] != c.shape[1] {
		return fmt.Errorf("array: product of shapes %v and %v into %v", a.Shape(), b.Shape(), c.Shape())
	}
	// Products are written to rows that are contiguous and do not overlap. Other results take a
	// copy, which also holds what beta multiplies.
	if c.shape[1] > 1 && c.strides[1] != 1 || c.shape[0] > 1 && c.strides[0] < c.shape[1] {
		t, err := ws.scratchCopy(c)
		if err != nil {
			return err
		}
		defer ws.Release(t)
		if err := ws.Gemm(alpha, a, b, beta, t); err != nil {
			return err
		}
		CopyTo(c, t)
		return nil
	}
	if c.Len() == 0 {
		return nil
	}
	if a.shape[1] == 0 { // whose first elements may lie outside of their memory
		if c.dtype == Float32 {
			kernel.Scale(general32(c), float32(beta))
		} else {
			scale64(beta, c)
		}
		return nil
	}
	// Our product of float64s takes factors with any strides, so there is nothing to copy. Those of
	// float32s and of a foreign BLAS want contiguous rows of the factor or of its transpose.
	if usesDGemm(c.dtype) {
		if beta != 1 {
			scale64(beta, c)
		}
		kernel.DGemm(alpha, strided(a), strided(b), dataOf[float64](c)[c.offset:], c.stride())
		return nil
	}
	a, ta, freeA, err := ws.asFactor(a)
	if err != nil {
		return err
	}
	defer freeA()
	b, tb, freeB, err := ws.asFactor(b)
	if err != nil {
		return err
	}
	defer freeB()
	if c.dtype == Float32 {
		var scratch kernel.Matrix
		// Both transposed: the product of the factors in the other order is the transpose of c.
		if ta && tb {
			scratch = kernel.New(c.shape[1], c.shape[0])
		}
		gemm32(float32(alpha), a, ta, b, tb, float32(beta), c, scratch)
		return nil
	}
	gemm64(alpha, a, ta, b, tb, beta, c)
	return nil
}

// usesDGemm reports whether Gemm calls kernel.DGemm, which takes any strides.
func usesDGemm(dtype DType) bool {
	return dtype == Float64 && !otherBLAS(dtype) && kernel.HasDGemm()
}

// scratchCopy returns a contiguous copy in memory of the workspace.
func (ws *Workspace) scratchCopy(a *Array) (*Array, error) {
	t := new(Array)
	if err := ws.New(t, a.dtype, a.Shape()...); err != nil {
		return nil, err
	}
	CopyTo(t, a)
	return t, nil
}

// asFactor returns a matrix or its transpose with contiguous rows: a view of a, or else a copy,
// which the function releases.
func (ws *Workspace) asFactor(a *Array) (m *Array, transposed bool, release func(), err error) {
	switch {
	case rowsFit(a.shape[0], a.shape[1], a.strides[0], a.strides[1]):
		return a, false, func() {}, nil
	case rowsFit(a.shape[1], a.shape[0], a.strides[1], a.strides[0]):
		return a.Transpose(1, 0), true, func() {}, nil
	}
	t, err := ws.scratchCopy(a)
	if err != nil {
		return nil, false, nil, err
	}
	return t, false, func() { ws.Release(t) }, nil
}

// rowsFit reports whether the rows of a matrix are contiguous and do not overlap.
func rowsFit(rows, cols, rowStep, colStep int) bool {
	return (cols <= 1 || colStep == 1) && (rows <= 1 || rowStep >= max(1, cols))
}

// stride returns the distance between rows of a matrix.
func (a *Array) stride() int {
	if a.shape[0] <= 1 {
		return max(1, a.shape[1])
	}
	return a.strides[0]
}

func general64(a *Array) blas64.General {
	return blas64.General{Rows: a.shape[0], Cols: a.shape[1], Stride: a.stride(), Data: dataOf[float64](a)[a.offset:]}
}

func general32(a *Array) kernel.Matrix {
	return kernel.Matrix{Rows: a.shape[0], Cols: a.shape[1], Stride: a.stride(), Data: dataOf[float32](a)[a.offset:]}
}

// otherBLAS reports whether the BLAS that is registered with gonum is neither gonum's, whose bits
// depend on the processor, nor ours.
func otherBLAS(dtype DType) bool {
	var impl any = blas64.Implementation()
	if dtype == Float32 {
		impl = blas32.Implementation()
	}
	switch impl.(type) {
	case gonum.Implementation, kernel.BLAS:
		return false
	}
	return true
}

func strided(a *Array) kernel.Strided {
	return kernel.Strided{Rows: a.shape[0], Cols: a.shape[1], Row: a.strides[0], Col: a.strides[1], First: a.offset, Data: dataOf[float64](a)}
}

func gemm64(alpha float64, a *Array, ta bool, b *Array, tb bool, beta float64, c *Array) {
	flag := func(transposed bool) blas.Transpose {
		if transposed {
			return blas.Trans
		}
		return blas.NoTrans
	}
	if !allFinite(a) || !allFinite(b) { // gonum omits products with zero, and so loses NaN and infinities
		slowGemm64(alpha, a, ta, b, tb, beta, c)
		return
	}
	blas64.Gemm(flag(ta), flag(tb), alpha, general64(a), general64(b), beta, general64(c))
}

// slowGemm64 is a Gemm that omits no product.
func slowGemm64(alpha float64, a *Array, ta bool, b *Array, tb bool, beta float64, c *Array) {
	if ta {
		a = a.Transpose(1, 0)
	}
	if tb {
		b = b.Transpose(1, 0)
	}
	scale64(beta, c)
	da, db, dc := dataOf[float64](a), dataOf[float64](b), dataOf[float64](c)
	for i := range c.shape[0] {
		for k := range a.shape[1] {
			v := alpha * da[a.offset+i*a.strides[0]+k*a.strides[1]]
			to, from := c.offset+i*c.strides[0], b.offset+k*b.strides[0]
			for range c.shape[1] {
				dc[to] += float64(v * db[from])
				to += c.strides[1]
				from += b.strides[1]
			}
		}
	}
}

func scale64(beta float64, c *Array) {
	g := general64(c)
	for i := range g.Rows {
		row := g.Data[i*g.Stride:][:g.Cols]
		for j := range row {
			if beta == 0 {
				row[j] = 0
			} else {
				row[j] *= beta
			}
		}
	}
}

// gemm32 is Gemm of factors from asFactor. If both are transposed, t has the shape of the transpose
// of c.
func gemm32(alpha float32, a *Array, ta bool, b *Array, tb bool, beta float32, c *Array, t kernel.Matrix) {
	ga, gb, gc := general32(a), general32(b), general32(c)
	switch {
	case !ta && !tb:
		kernel.MulNN(alpha, ga, gb, beta, gc)
	case !ta && tb:
		kernel.MulNT(alpha, ga, gb, beta, gc)
	case ta && !tb:
		kernel.MulTN(alpha, ga, gb, beta, gc)
	default: // (b·a)ᵀ
		kernel.MulNN(alpha, gb, ga, 0, t)
		for i := range gc.Rows {
			row := kernel.Row(gc, i)
			for j := range row {
				v := t.Data[j*t.Stride+i]
				if beta != 0 {
					v += float32(beta * row[j])
				}
				row[j] = v
			}
		}
	}
}

// MatMul sets c, which is contiguous, to the matrix product of a and b. The elements may be of any
// type; bools are combined with "and" and "or".
func (ws *Workspace) MatMul(c, a, b *Array) error {
	if c.dtype.IsFloat() {
		return ws.Gemm(1, a, b, 0, c)
	}
	if a.shape[1] != b.shape[0] {
		return fmt.Errorf("array: product of shapes %v and %v", a.Shape(), b.Shape())
	}
	if c.dtype == Int64 {
		mulInts(c, a, b)
		return nil
	}
	for i := range c.shape[0] {
		for j := range c.shape[1] {
			var sum int64
			for k := range a.shape[1] {
				sum += a.Int(i*a.shape[1]+k) * b.Int(k*b.shape[1]+j)
			}
			c.SetFloat(i*c.shape[1]+j, float64(sum))
		}
	}
	return nil
}

// mulInts is MatMul of int64s.
func mulInts(c, a, b *Array) {
	left, right, dst := dataOf[int64](a), dataOf[int64](b), Slice[int64](c)
	fill(dst, 0)
	for i := range c.shape[0] {
		row := dst[i*c.shape[1]:][:c.shape[1]]
		for k := range a.shape[1] {
			v, at := left[a.offset+i*a.strides[0]+k*a.strides[1]], b.offset+k*b.strides[0]
			for j := range row {
				row[j] += v * right[at]
				at += b.strides[1]
			}
		}
	}
}
