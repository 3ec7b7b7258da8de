package array

import "github.com/nnopt/nnopt/internal/kernel"

// interpolating is what a float32 of the result takes, in picoseconds, with channels last.
const interpolating = 300

// Interpolate sets y, which is contiguous, to x with other elements along a dimension: element i lies between
// two of x, at places[i], and is their sum, weighted by how near they are. Places, float64s, are moved
// into x, which has an element if y has one. Both have one type, float32 or float64.
func (ws *Workspace) Interpolate(y, x, places *Array, axis int) error {
	n, m := x.shape[axis], y.shape[axis]
	return ws.pooled(y, x, func(x *Array) {
		taps := make([]interpolated, m)
		for i := range taps {
			at := places.Float(i)
			if !(at > 0) { // also NaN
				at = 0
			}
			at = min(at, float64(n-1))
			left := int(at)
			taps[i] = interpolated{left, min(left+1, n-1), at - float64(left)}
		}
		inner := product(x.shape[axis+1 : x.ndim])
		outer := y.Len() / (m * inner)
		ws.pieces(y.Len()*interpolating, outer*m, m, func(_ *Workspace, first, next int) {
			from, to := first/m*n*inner, next/m*n*inner
			if x.dtype == Float32 {
				interpolate(Slice[float32](y)[first*inner:next*inner], Slice[float32](x)[from:to], taps, n, inner)
			} else {
				interpolate(Slice[float64](y)[first*inner:next*inner], Slice[float64](x)[from:to], taps, n, inner)
			}
		})
	})
}

// interpolated is an element between two others. The second one has a share of it.
type interpolated struct {
	left, right int
	share       float64
}

// interpolate makes an element of runs of inner elements for each of taps, of n runs at a time.
func interpolate[T float](y, x []T, taps []interpolated, n, inner int) {
	for m := len(taps) * inner; len(y) > 0; y, x = y[m:], x[n*inner:] {
		if inner > 1 {
			interpolateRuns(y[:m], x[:n*inner], taps, inner)
			continue
		}
		line, to := x[:n], y[:m]
		for i := range to {
			t := &taps[i]
			share := T(t.share)
			to[i] = T(line[t.left]*(1-share)) + T(line[t.right]*share)
		}
	}
}

func interpolateRuns[T float](y, x []T, taps []interpolated, inner int) {
	for i, t := range taps {
		share := T(t.share)
		to, left, right := y[i*inner:][:inner], x[t.left*inner:][:inner], x[t.right*inner:][:inner]
		if to, ok := any(to).([]float32); ok && inner >= leastChannels {
			kernel.ScaleVec(to, float32(1-share), any(left).([]float32))
			kernel.AddVec(to, float32(share), any(right).([]float32))
			continue
		}
		for k := range to {
			to[k] = T(left[k]*(1-share)) + T(right[k]*share)
		}
	}
}
