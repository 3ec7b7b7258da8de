package array

import (
	"fmt"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/nnopt/nnopt/internal/kernel"
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
		ws.Copy(c, t)
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
	if chained(c, a.shape[1]) {
		return ws.gemmInChains(alpha, a, b, beta, c)
	}
	// Our product of float64s takes factors with any strides, so there is nothing to copy. Gonum's
	// omits products with zero, and so loses NaN and infinities.
	if c.dtype == Float64 && (usesDGemm() || !allFinite(a) || !allFinite(b)) {
		if beta != 1 {
			scale64(beta, c)
		}
		ws.Threads.DGemm(alpha, strided(a), strided(b), dataOf[float64](c)[c.offset:], c.stride())
		return nil
	}
	// Other products want contiguous rows of the factor or of its transpose.
	fa, ta, freeA, err := ws.asFactor(a)
	if err != nil {
		return err
	}
	defer freeA()
	fb, tb, freeB, err := ws.asFactor(b)
	if err != nil {
		return err
	}
	defer freeB()
	if c.dtype == Float32 {
		return ws.gemm32(float32(alpha), general32(&fa), ta, general32(&fb), tb, float32(beta), general32(c))
	}
	blas64.Gemm(blasFlag(ta), blasFlag(tb), alpha, general64(&fa), general64(&fb), beta, general64(c))
	return nil
}

// usesDGemm reports whether products of float64s are ours.
func usesDGemm() bool { return !otherBLAS(Float64) && kernel.HasDGemm() }

func blasFlag(transposed bool) blas.Transpose {
	if transposed {
		return blas.Trans
	}
	return blas.NoTrans
}

// scratchCopy returns a contiguous copy in memory of the workspace.
func (ws *Workspace) scratchCopy(a *Array) (*Array, error) {
	t := new(Array)
	if err := ws.New(t, a.dtype, a.Shape()...); err != nil {
		return nil, err
	}
	ws.Copy(t, a)
	return t, nil
}

// copied is scratchCopy with a function that releases the copy.
func (ws *Workspace) copied(a *Array) (t *Array, release func(), err error) {
	if t, err = ws.scratchCopy(a); err != nil {
		return nil, nil, err
	}
	return t, func() { ws.Release(t) }, nil
}

// contiguous returns a, or else what copied does.
func (ws *Workspace) contiguous(a *Array) (t *Array, release func(), err error) {
	if a.Contiguous() {
		return a, func() {}, nil
	}
	return ws.copied(a)
}

// asFactor returns a matrix or its transpose with contiguous rows: a view of a, or else a copy,
// which the function releases.
func (ws *Workspace) asFactor(a *Array) (m Array, transposed bool, release func(), err error) {
	m = *a
	switch {
	case rowsFit(a.shape[0], a.shape[1], a.strides[0], a.strides[1]):
		return m, false, func() {}, nil
	case rowsFit(a.shape[1], a.shape[0], a.strides[1], a.strides[0]):
		m.shape[0], m.shape[1] = a.shape[1], a.shape[0]
		m.strides[0], m.strides[1] = a.strides[1], a.strides[0]
		return m, true, func() {}, nil
	}
	t, release, err := ws.copied(a)
	if err == nil {
		m = *t
	}
	return m, false, release, err
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

func general32(a *Array) (m kernel.Matrix) {
	a.header32(&m)
	return m
}

// header32 makes m a view of a matrix.
func (a *Array) header32(m *kernel.Matrix) {
	m.Rows, m.Cols, m.Stride, m.Data = a.shape[0], a.shape[1], a.stride(), dataOf[float32](a)[a.offset:]
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

// gemm32 is Gemm of factors from asFactor.
func (ws *Workspace) gemm32(alpha float32, a kernel.Matrix, ta bool, b kernel.Matrix, tb bool, beta float32, c kernel.Matrix) error {
	switch {
	case !ta && !tb:
		ws.Threads.MulNN(alpha, a, b, beta, c)
	case !ta && tb:
		ws.Threads.MulNT(alpha, a, b, beta, c)
	case ta && !tb:
		ws.Threads.MulTN(alpha, a, b, beta, c)
	default: // the product of the factors in the other order is the transpose of c
		scratch := new(Array)
		if err := ws.New(scratch, Float32, c.Cols, c.Rows); err != nil {
			return err
		}
		defer ws.Release(scratch)
		t := general32(scratch)
		ws.Threads.MulNN(alpha, b, a, 0, t)
		for i := range c.Rows {
			row := kernel.Row(c, i)
			for j := range row {
				v := t.Data[j*t.Stride+i]
				if beta != 0 {
					v += float32(beta * row[j])
				}
				row[j] = v
			}
		}
	}
	return nil
}

// MatMul sets c, which is contiguous, to the matrix product of a and b. The elements may be of any
// type, which all three have; bools are combined with "and" and "or".
func (ws *Workspace) MatMul(c, a, b *Array) error {
	if c.dtype.IsFloat() && a.shape[1] != 1 {
		return ws.Gemm(1, a, b, 0, c)
	}
	if a.shape[1] != b.shape[0] {
		return fmt.Errorf("array: product of shapes %v and %v", a.Shape(), b.Shape())
	}
	if c.dtype.IsFloat() { // an element is its only term, also -0, as where rules know that there is one
		ws.Map(mulPrograms[c.dtype], []*Array{c}, []*Array{a, b})
		return nil
	}
	ws.pieces(c.Len()*a.shape[1]*multiplied, c.shape[0], 1, func(_ *Workspace, first, next int) {
		some, part := a.stretch(0, first, next), c.stretch(0, first, next)
		numerics[c.dtype].multiply(&part, &some, b)
	})
	return nil
}

// multiplied is what a multiply-add of integers takes, in picoseconds.
const multiplied = 500

// A product of few elements with long sums, such as the scalar product of two vectors, is made in
// chains of maxTerms terms, as are all long sums of float32s in products: each chain is a product by
// itself, and they are added in order. So several threads may make them, and the bits don't depend on
// their number.

// mostChained is the number of elements up to which a product is made so. Larger ones are divided by
// elements.
const mostChained = 256

// chained reports whether a product is made in chains.
func chained(c *Array, terms int) bool {
	return terms > maxTerms && c.Len() <= mostChained && !otherBLAS(c.dtype)
}

// gemmInChains is Gemm of a product that is made in chains.
func (ws *Workspace) gemmInChains(alpha float64, a, b *Array, beta float64, c *Array) error {
	n := a.shape[1]
	chains := (n + maxTerms - 1) / maxTerms
	sums := new(Array)
	if err := ws.New(sums, c.dtype, chains, c.shape[0], c.shape[1]); err != nil {
		return err
	}
	defer ws.Release(sums)
	takes := max(int(kernel.ProductTime(c.shape[0], c.shape[1], n)/time.Nanosecond)*1000, (c.shape[0]+c.shape[1])*n*packed)
	err := ws.tryPieces(takes, chains, 1, func(ws *Workspace, first, next int) error {
		for i := first; i < next; i++ {
			lo, hi := i*maxTerms, min((i+1)*maxTerms, n)
			left, right, sum := a.stretch(1, lo, hi), b.stretch(0, lo, hi), sums.stretch(0, i, i+1)
			sum.ndim = 2
			copy(sum.shape[:2], c.shape[:2])
			copy(sum.strides[:2], []int{c.shape[1], 1})
			if err := ws.Gemm(alpha, &left, &right, 0, &sum); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.dtype == Float32 {
		kernel.Scale(general32(c), float32(beta))
		addChains[float32](c, sums)
	} else {
		scale64(beta, c)
		addChains[float64](c, sums)
	}
	return nil
}

// packed is what an element of a factor takes, in picoseconds, where there is little to multiply it with.
const packed = 1000

// addChains adds matrices, one after the other, to c, whose rows are contiguous.
func addChains[T float](c, sums *Array) {
	s := Slice[T](sums)
	for len(s) > 0 {
		for i := range c.shape[0] {
			row := dataOf[T](c)[c.offset+i*c.strides[0]:][:c.shape[1]]
			for j := range row {
				row[j] += s[j]
			}
			s = s[len(row):]
		}
	}
}
