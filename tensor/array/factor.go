package array

import (
	"errors"
	"math"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
)

// ErrSingular is wrapped if a matrix has no inverse.
var ErrSingular = errors.New("singular matrix")

// factor overwrites a square matrix with its factors L and U, by Gaussian elimination with partial
// pivoting. Swap is called for every two rows that change places, and eliminate for every row from
// which a multiple of a row above is subtracted. Both may be nil. It returns the number of
// exchanges.
//
// Products are rounded before they are subtracted, so that the result is the same on every
// processor.
func factor(a []float64, n int, swap func(i, k int), eliminate func(i, k int, f float64)) (exchanges int) {
	for k := range n {
		pivot := k
		for i := k + 1; i < n; i++ {
			// NaN becomes the pivot, so that it spreads to all of the result.
			if !(math.Abs(a[i*n+k]) <= math.Abs(a[pivot*n+k])) {
				pivot = i
			}
		}
		if pivot != k {
			exchanges++
			swapRows(a, n, pivot, k)
			if swap != nil {
				swap(pivot, k)
			}
		}
		// The matrix is singular. Its callers find that by the zero, which stays on the diagonal.
		if a[k*n+k] == 0 {
			continue
		}
		for i := k + 1; i < n; i++ {
			f := a[i*n+k] / a[k*n+k]
			subtractRow(a, n, i, k, k+1, f)
			if eliminate != nil {
				eliminate(i, k, f)
			}
		}
	}
	return exchanges
}

func swapRows(a []float64, n, i, k int) {
	x, y := a[i*n:][:n], a[k*n:][:n]
	for j := range x {
		x[j], y[j] = y[j], x[j]
	}
}

// subtractRow subtracts f times row k from row i, from column first on.
func subtractRow(a []float64, n, i, k, first int, f float64) {
	x, y := a[i*n:][first:n], a[k*n:][first:n]
	for j, v := range y {
		x[j] -= float64(f * v)
	}
}

// squareCopy returns the elements of a square matrix as float64s in memory of the workspace, which
// the caller releases.
func (ws *Workspace) squareCopy(a *Array) (*Array, error) {
	c := new(Array)
	if err := ws.New(c, Float64, a.shape[0], a.shape[0]); err != nil {
		return nil, err
	}
	if a.dtype == Float64 {
		CopyTo(c, a)
		return c, nil
	}
	for i, d := 0, Slice[float64](c); i < len(d); i++ {
		d[i] = a.Float(i)
	}
	return c, nil
}

// pivots calls visit for each element of the diagonal of U. It returns -1 if L and U are those of
// an odd permutation of the rows, else 1.
func (ws *Workspace) pivots(a *Array, visit func(u float64)) (sign float64, err error) {
	c, err := ws.squareCopy(a)
	if err != nil {
		return 0, err
	}
	defer ws.Release(c)
	n, u := a.shape[0], Slice[float64](c)
	exchanges := factor(u, n, nil, nil)
	for k := range n {
		visit(u[k*n+k])
	}
	return float64(1 - 2*(exchanges%2)), nil
}

// Determinant returns the determinant of a square matrix.
func (ws *Workspace) Determinant(a *Array) (float64, error) {
	det := 1.0
	sign, err := ws.pivots(a, func(u float64) { det *= u })
	return sign * det, err
}

// LogDeterminant returns the sign of the determinant of a square matrix, -1, 0 or 1, and the
// logarithm of its absolute value.
func (ws *Workspace) LogDeterminant(a *Array) (sign, log float64, err error) {
	product, singular := 1.0, false // of signs
	sign, err = ws.pivots(a, func(u float64) {
		switch {
		case u == 0:
			singular = true
		case u < 0:
			product = -product
		case u != u:
			product = u
		}
		log += elementary.Log(math.Abs(u))
	})
	if singular {
		return 0, math.Inf(-1), nil
	}
	return sign * product, log, err
}

// Inverse sets out, which has the shape of a, to the inverse of a square matrix. The error wraps
// ErrSingular.
func (ws *Workspace) Inverse(out, a *Array) error {
	c, err := ws.squareCopy(a)
	if err != nil {
		return err
	}
	defer ws.Release(c)
	x := new(Array)
	n := a.shape[0]
	if err := ws.New(x, Float64, n, n); err != nil {
		return err
	}
	defer ws.Release(x)
	u, v := Slice[float64](c), Slice[float64](x)
	clear(v)
	for k := range n {
		v[k*n+k] = 1
	}
	// What is done to the rows of a is done to those of the identity, which becomes the inverse.
	factor(u, n, func(i, k int) { swapRows(v, n, i, k) }, func(i, k int, f float64) { subtractRow(v, n, i, k, 0, f) })
	for k := n - 1; k >= 0; k-- {
		if u[k*n+k] == 0 {
			return ErrSingular
		}
		row := v[k*n:][:n]
		for j := range row {
			row[j] /= u[k*n+k]
		}
		for i := range k {
			subtractRow(v, n, i, k, 0, u[i*n+k])
		}
	}
	if out.dtype == Float64 {
		CopyTo(out, x)
		return nil
	}
	for i := range v {
		out.SetFloat(i, v[i])
	}
	return nil
}
