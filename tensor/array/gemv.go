package array

import (
	"fmt"
	"time"

	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/nnopt/nnopt/internal/kernel"
)

// Gemv sets y to alpha·a·x + beta·y, for a matrix a and vectors of floats of one type. If beta is
// 0, y is not read. With byBLAS it calls the BLAS that is registered with gonum, unless that is
// gonum's own.
func (ws *Workspace) Gemv(alpha float64, a, x *Array, beta float64, y *Array, byBLAS bool) error {
	if a.shape[1] != x.shape[0] || a.shape[0] != y.shape[0] {
		return fmt.Errorf("array: product of shapes %v and %v into %v", a.Shape(), x.Shape(), y.Shape())
	}
	// A BLAS may leave out products with 0, and so lose NaN and infinities.
	if !byBLAS || !otherBLAS(a.dtype) || a.Len() == 0 || x.strides[0] <= 0 || y.strides[0] <= 0 || !allFinite(a) || !allFinite(x) {
		return ws.ownGemv(alpha, a, x, beta, y)
	}
	m, transposed, release, err := ws.asFactor(a)
	if err != nil {
		return err
	}
	defer release()
	flag := blasFlag(transposed)
	if a.dtype == Float32 {
		blas32.Gemv(flag, float32(alpha), general32(&m), vector32(x), float32(beta), vector32(y))
	} else {
		blas64.Gemv(flag, alpha, general64(&m), vector64(x), beta, vector64(y))
	}
	return nil
}

// maxTerms is the length of the longest sum that is added up in one go, as in products of matrices:
// see package kernel.
const maxTerms = 1 << 14

// ownGemv is Gemv without a BLAS.
func (ws *Workspace) ownGemv(alpha float64, a, x *Array, beta float64, y *Array) error {
	if x.shape[0] <= maxTerms {
		ws.gemv(alpha, a, x, beta, y)
		return nil
	}
	// Sums are added up piece by piece, because one that goes on for millions of float32s outgrows
	// its terms. The pieces have a vector of their own: the sums of a matrix with contiguous
	// columns would go on with what is in y.
	t, b, v := new(Array), *a, *x
	if err := ws.New(t, y.dtype, y.shape[0]); err != nil {
		return err
	}
	defer ws.Release(t)
	for first := 0; first < x.shape[0]; first += maxTerms {
		n := min(maxTerms, x.shape[0]-first)
		b.offset, b.shape[1] = a.offset+first*a.strides[1], n
		v.offset, v.shape[0] = x.offset+first*x.strides[0], n
		if first == 0 {
			ws.gemv(alpha, &b, &v, beta, y)
			continue
		}
		ws.gemv(alpha, &b, &v, 0, t)
		ws.Add(y, t)
	}
	return nil
}

func gemvOf(alpha float64, a, x *Array, beta float64, y *Array) {
	if a.dtype == Float32 {
		gemv(float32(alpha), a, x, float32(beta), y)
	} else {
		gemv(alpha, a, x, beta, y)
	}
}

// allFinite reports whether an array of floats has neither NaN nor infinities.
func allFinite(a *Array) bool {
	if a.dtype == Float32 {
		return finiteElements[float32](a)
	}
	return finiteElements[float64](a)
}

func finiteElements[T float](a *Array) bool {
	data := dataOf[T](a)
	w := walk(a.offset, a.Shape(), a.strides[:a.ndim], 0)
	for left := a.Len(); left > 0; {
		n, step := w.run(left)
		at := w.at
		for range n {
			if v := data[at]; v-v != 0 {
				return false
			}
			at += step
		}
		left -= n
		w.advance(n)
	}
	return true
}

// gemv goes along the rows of a, or along its columns if these are contiguous.
func gemv[T float](alpha T, a, x *Array, beta T, y *Array) {
	if a.shape[0] == 0 {
		return // its offset may be anything
	}
	if a.strides[0] == 1 && a.strides[1] != 1 {
		gemvColumns(alpha, a, x, beta, y)
	} else {
		gemvRows(alpha, a, x, beta, y)
	}
}

// columnStrip is how many float32s of a result stay in the first-level cache while columns are added to them.
const columnStrip = 2 << 10

func gemvColumns[T float](alpha T, a, x *Array, beta T, y *Array) {
	// Columns are added one after the other, four at a time, so that y is read and written a
	// quarter as often. Each element still gets its terms in order.
	da, dx, dy := dataOf[T](a), dataOf[T](x), dataOf[T](y)
	for i := range y.shape[0] {
		at := y.offset + i*y.strides[0]
		if beta == 0 {
			dy[at] = 0
		} else {
			dy[at] *= beta
		}
	}
	column := func(j int) ([]T, T) {
		return da[a.offset+j*a.strides[1]:][:a.shape[0]], alpha * dx[x.offset+j*x.strides[0]]
	}
	if dy, ok := any(dy).([]float32); ok && y.strides[0] == 1 {
		for lo := 0; lo < y.shape[0]; lo += columnStrip {
			next := min(lo+columnStrip, y.shape[0])
			for j := range x.shape[0] {
				col, v := column(j)
				kernel.AddVec(dy[y.offset+lo:y.offset+next], float32(v), any(col).([]float32)[lo:next])
			}
		}
		return
	}
	j := 0
	for ; j+4 <= x.shape[0]; j += 4 {
		c0, v0 := column(j)
		c1, v1 := column(j + 1)
		c2, v2 := column(j + 2)
		c3, v3 := column(j + 3)
		c1, c2, c3 = c1[:len(c0)], c2[:len(c0)], c3[:len(c0)]
		at := y.offset
		for i, e := range c0 {
			dy[at] = dy[at] + T(e*v0) + T(c1[i]*v1) + T(c2[i]*v2) + T(c3[i]*v3)
			at += y.strides[0]
		}
	}
	for ; j < x.shape[0]; j++ {
		col, v := column(j)
		at := y.offset
		for _, e := range col {
			dy[at] += T(e * v)
			at += y.strides[0]
		}
	}
}

func gemvRows[T float](alpha T, a, x *Array, beta T, y *Array) {
	da, dx, dy := dataOf[T](a), dataOf[T](x), dataOf[T](y)
	row := func(i int) []T { return da[a.offset+i*a.strides[0]:] }
	for i := 0; i < y.shape[0]; {
		var sums [4]T
		n := 1
		switch {
		// A row has one sum, whether it is computed alone or with others: the bits don't depend on
		// the number of rows.
		case a.strides[1] == 1 && x.strides[0] == 1 && i+4 <= y.shape[0]:
			sums, n = fourDots(row(i), row(i+1), row(i+2), row(i+3), dx[x.offset:][:x.shape[0]]), 4
		default:
			at, from := a.offset+i*a.strides[0], x.offset
			for range x.shape[0] {
				sums[0] += T(da[at] * dx[from])
				at += a.strides[1]
				from += x.strides[0]
			}
		}
		for _, sum := range sums[:n] {
			v := &dy[y.offset+i*y.strides[0]]
			if beta == 0 {
				*v = alpha * sum
			} else {
				*v = T(alpha*sum) + T(beta**v)
			}
			i++
		}
	}
}

// fourDots returns four scalar products with x at once, as additions to one sum have to wait for
// each other.
func fourDots[T float](a, b, c, d, x []T) (sums [4]T) {
	if x, ok := any(x).([]float32); ok {
		return any(kernel.FourDots(any(a).([]float32), any(b).([]float32), any(c).([]float32), any(d).([]float32), x)).([4]T)
	}
	a, b, c, d = a[:len(x)], b[:len(x)], c[:len(x)], d[:len(x)]
	var s0, s1, s2, s3 T
	for i, v := range x {
		s0 += T(a[i] * v)
		s1 += T(b[i] * v)
		s2 += T(c[i] * v)
		s3 += T(d[i] * v)
	}
	return [4]T{s0, s1, s2, s3}
}

func vector64(a *Array) blas64.Vector {
	return blas64.Vector{N: a.shape[0], Inc: a.strides[0], Data: dataOf[float64](a)[a.offset:]}
}

func vector32(a *Array) blas32.Vector {
	return blas32.Vector{N: a.shape[0], Inc: a.strides[0], Data: dataOf[float32](a)[a.offset:]}
}

// Ger adds alpha·x·yᵀ to c, for vectors and a matrix of floats of one type. With byBLAS it calls
// the BLAS that is registered with gonum, unless that is gonum's own.
func (ws *Workspace) Ger(alpha float64, x, y, c *Array, byBLAS bool) error {
	if x.shape[0] != c.shape[0] || y.shape[0] != c.shape[1] {
		return fmt.Errorf("array: outer product of shapes %v and %v into %v", x.Shape(), y.Shape(), c.Shape())
	}
	byBLAS = byBLAS && otherBLAS(c.dtype)
	fits := c.Len() > 0 && (!byBLAS || allFinite(x) && allFinite(y)) && x.strides[0] > 0 && y.strides[0] > 0 &&
		(c.shape[1] == 1 || c.strides[1] == 1) && (c.shape[0] == 1 || c.strides[0] >= c.shape[1])
	switch {
	case byBLAS && fits && c.dtype == Float32:
		blas32.Ger(float32(alpha), vector32(x), vector32(y), general32(c))
	case byBLAS && fits:
		blas64.Ger(alpha, vector64(x), vector64(y), general64(c))
	case c.dtype == Float32:
		ger(float32(alpha), x, y, c)
	default:
		ger(alpha, x, y, c)
	}
	return nil
}

func ger[T float](alpha T, x, y, c *Array) {
	dx, dy, dc := dataOf[T](x), dataOf[T](y), dataOf[T](c)
	for i := range c.shape[0] {
		v := alpha * dx[x.offset+i*x.strides[0]]
		at, from := c.offset+i*c.strides[0], y.offset
		if c.strides[1] == 1 && y.strides[0] == 1 {
			addScaled(dc[at:][:c.shape[1]], v, dy[from:][:c.shape[1]])
			continue
		}
		for range c.shape[1] {
			dc[at] += T(v * dy[from])
			at += c.strides[1]
			from += y.strides[0]
		}
	}
}

// addScaled adds v·y to x.
func addScaled[T float](x []T, v T, y []T) {
	if x, ok := any(x).([]float32); ok {
		kernel.AddVec(x, float32(v), any(y).([]float32))
		return
	}
	y = y[:len(x)]
	for j := range x {
		x[j] += T(v * y[j])
	}
}

// gemvArgs are those of a product of a matrix and a vector of which some elements are computed at a time.
type gemvArgs struct {
	alpha, beta float64
	a, x, y     Array
}

// gemv is gemvOf, by several threads if that is worth it.
func (ws *Workspace) gemv(alpha float64, a, x *Array, beta float64, y *Array) {
	t := ws.Threads
	parts := 1
	if t != nil {
		parts = min(t.Parts(time.Duration(a.Len()*a.dtype.Size())*gemvWork/1000), a.shape[0]/gemvUnit)
	}
	if parts <= 1 {
		gemvOf(alpha, a, x, beta, y)
		return
	}
	ws.crewOf().vector.run(ws, min(parts, 2*t.Size()), a.shape[0], gemvUnit, gemvArgs{alpha, beta, *a, *x, *y}, gemvSome)
}

const (
	gemvWork = 40 // for a byte of the matrix, in picoseconds
	gemvUnit = 4  // rows
)

// gemvSome computes some elements.
func gemvSome(ws *Workspace, p *gemvArgs, first, next int) error {
	a, x, y := &ws.headers[0], &ws.headers[1], &ws.headers[2]
	*a, *x, *y = p.a.stretch(0, first, next), p.x, p.y.stretch(0, first, next)
	gemvOf(p.alpha, a, x, p.beta, y)
	return nil
}
