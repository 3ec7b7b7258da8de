package array

import (
	"cmp"
	"fmt"
)

// ArgMax sets out to the positions of the largest elements, counted in row-major order over the
// dimensions in axes. Of equal ones it takes the first, and a NaN is larger than any number. The
// error wraps ErrEmpty.
func (ws *Workspace) ArgMax(out, in *Array, axes Axes) error {
	return ws.argExtreme(out, in, axes, 1)
}

// ArgMin is ArgMax for the smallest elements. A NaN is smaller than any number.
func (ws *Workspace) ArgMin(out, in *Array, axes Axes) error {
	return ws.argExtreme(out, in, axes, -1)
}

// argExtreme finds the largest products of elements and sign, which is 1 or -1.
func (ws *Workspace) argExtreme(out, in *Array, axes Axes, sign int64) error {
	v, red := in.sortAxes(axes)
	n, dst := red.len(), Slice[int64](out)
	if n == 0 && len(dst) > 0 {
		return fmt.Errorf("%w: the position of an extreme of shape %v", ErrEmpty, in.Shape())
	}
	size := ws.Threads.Size()
	// Few results don't keep all threads busy. Then they share the elements of each.
	if blocks := (n + blockTerms - 1) / blockTerms; blocks > 1 && len(dst) < 2*size {
		if parts := ws.partsOf(len(dst)*n*compared, blocks, 1); parts > 1 {
			ws.argShared(dst, in, v, red, n, blocks, parts, sign)
			return nil
		}
	}
	ws.pieces(len(dst)*n*compared, len(dst), 1, func(_ *Workspace, first, next int) {
		for k := first; k < next; k++ {
			e := extremeOf{in: in, sign: sign}
			e.look(v.place(k), &red, 0, n)
			dst[k] = int64(e.where)
		}
	})
	return nil
}

// argShared finds the positions of few extremes, each among blocks of elements at a time.
func (ws *Workspace) argShared(dst []int64, in, v *Array, red reducedDims, n, blocks, parts int, sign int64) {
	found := make([]extremeOf, blocks)
	for k := range dst {
		ws.inParts(parts, blocks, 1, func(_ *Workspace, first, next int) {
			for b := first; b < next; b++ {
				found[b] = extremeOf{in: in, sign: sign}
				found[b].look(v.place(k), &red, b*blockTerms, min((b+1)*blockTerms, n))
			}
		})
		e := extremeOf{in: in, sign: sign}
		// In the order of the elements, so that of equal ones the first wins, as it does without blocks.
		for _, f := range found {
			e.offer(f.best, f.at, f.where)
		}
		dst[k] = int64(e.where)
	}
}

// compared is what an element takes to be compared with the largest one so far, in picoseconds.
const compared = 3000

// extremeOf is the largest product of sign and an element so far.
type extremeOf struct {
	in    *Array
	sign  int64
	any   bool
	best  float64
	at    int // offset
	where int // position
}

// look looks at elements lo to hi of those that are reduced, of which the first has the offset at.
func (e *extremeOf) look(at int, red *reducedDims, lo, hi int) {
	w := walk(at, red.shape, red.strides, lo)
	// Nothing is larger than a NaN: behind the first one, no element can change the result.
	for i := lo; i < hi && e.best == e.best; i++ {
		e.offer(float64(e.sign)*elementAt(e.in, w.at), w.at, i)
		w.advance(1)
	}
}

// offer takes an element if it is larger. The first NaN is larger than any number.
func (e *extremeOf) offer(x float64, at, where int) {
	switch {
	case !e.any, x > e.best, x != x && e.best == e.best:
	// Integers of more than 53 bits may be equal as floats, and are then compared as integers.
	case x == e.best && (e.in.dtype == Int64 || e.in.dtype == Uint64) && compareInts(e.in, at, e.at)*int(e.sign) > 0:
	default:
		return
	}
	e.any, e.best, e.at, e.where = true, x, at, where
}

// compareInts compares two integers of 64 bits by their offsets.
func compareInts(a *Array, i, j int) int {
	if d, ok := a.data.([]uint64); ok {
		return cmp.Compare(d[i], d[j])
	}
	d := dataOf[int64](a)
	return cmp.Compare(d[i], d[j])
}
