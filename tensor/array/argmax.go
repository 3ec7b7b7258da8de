package array

import (
	"cmp"
	"fmt"
	"math"
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
	ws.pieces(len(dst)*n*compared, len(dst), 1, func(_ *Workspace, first, next int) {
		for k := first; k < next; k++ {
			dst[k] = int64(placeOfExtreme(in, v.place(k), &red, n, sign))
		}
	})
	return nil
}

// compared is what an element takes to be compared with the largest one so far, in picoseconds.
const compared = 3000

// placeOfExtreme finds the largest product of sign and one of the n elements that are reduced, of which
// the first has the offset at.
func placeOfExtreme(in *Array, at int, red *reducedDims, n int, sign int64) int {
	long := in.dtype == Int64 || in.dtype == Uint64
	var w walker
	w.start(at, red.shape, red.strides, 0)
	best, bestAt, where := math.Inf(-1), at, 0
	for i := range n {
		x := float64(sign) * elementAt(in, w.at)
		// Integers of more than 53 bits may be equal as floats, and are then compared as
		// integers.
		if x > best || x != x || i == 0 || long && x == best && compareInts(in, w.at, bestAt)*int(sign) > 0 {
			best, bestAt, where = x, w.at, i
			if x != x {
				break
			}
		}
		w.advance(1)
	}
	return where
}

// compareInts compares two integers of 64 bits by their offsets.
func compareInts(a *Array, i, j int) int {
	if d, ok := a.data.([]uint64); ok {
		return cmp.Compare(d[i], d[j])
	}
	d := dataOf[int64](a)
	return cmp.Compare(d[i], d[j])
}
