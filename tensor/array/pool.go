package array

import (
	"math"

	"github.com/nnopt/nnopt/kernel"
)

// A Pooling says what a pool computes from the elements of a window that are in the input.
type Pooling uint8

// The poolings.
const (
	PoolMax        Pooling = iota // the largest one; NaN if there is one
	PoolMean                      // their mean
	PoolPaddedMean                // their sum over the number of elements in input and padding
	PoolSum                       // their sum
)

// Pool sets y to what a window finds in x: shapes [N, C, positions…] and [N, C, spatial…]. Both
// have one type, floats except for PoolMax, and y is contiguous. Sums of at most
// singleTerms float32s add those of the columns of a window; others have the order of the window, and are in double
// precision. Each window has an element in the input, except for sums and PoolPaddedMean.
func (ws *Workspace) Pool(y, x *Array, w Window, kind Pooling) error {
	if x.dtype == Float32 && x.shape[1] >= leastTurnedChannels && y.shape[y.ndim-1] < mostTurnedColumns && x.Len() > 0 && y.Len() > 0 {
		return ws.poolTurned(y, x, w, kind)
	}
	return ws.pooled(y, x, func(x *Array) {
		p := newPool(w, x, y, kind)
		singly := x.dtype == Float32 && (kind == PoolMax || p.slide.window() <= singleTerms)
		switch {
		case singly:
			ws.pieces(p.planes*p.positions()*p.slide.window()*poolingSingles, p.planes*p.out[0]*p.out[1], 1, func(_ *Workspace, first, next int) {
				p.singles(span{first, next}, Slice[float32](x), Slice[float32](y), kind)
			})
		case kind != PoolMax && x.dtype == Float32:
			ws.poolLines(p, 1, func(ws *Workspace, lines span) {
				poolSums(p, lines, Slice[float32](x), Slice[float32](y), ws.accumulators((p.out[2]-1)*p.stride[2]+1), kernel.AddVecToDoubles)
			})
		case kind != PoolMax:
			ws.poolLines(p, 1, func(ws *Workspace, lines span) {
				poolSums(p, lines, Slice[float64](x), Slice[float64](y), ws.accumulators((p.out[2]-1)*p.stride[2]+1), addDoubles)
			})
		case x.dtype == Float64:
			ws.poolLines(p, 1, func(_ *Workspace, lines span) {
				poolMax(p, lines, Slice[float64](x), Slice[float64](y), math.Inf(-1), float64Kernels[Maximum])
			})
		default:
			ws.poolLines(p, 1, func(_ *Workspace, lines span) {
				poolMax(p, lines, Slice[int64](x), Slice[int64](y), math.MinInt64, int64Kernels[Maximum])
			})
		}
	})
}

// singleTerms is how many float32s are added in single precision: their sum is off by as many roundings at most.
const singleTerms = 32

// leastTurnedChannels is how many channels fill vectors. Then it takes less time to move them behind the others
// and back than to pool lines: 0.2 to 0.5 of it on a Zen 5 (2026-11-28).
const leastTurnedChannels = 16

// mostTurnedColumns is from which length on lines fill vectors better than channels do that have to be moved.
const mostTurnedColumns = 24

// poolTurned is Pool by PoolLast.
func (ws *Workspace) poolTurned(y, x *Array, w Window, kind Pooling) error {
	last, err := ws.scratchCopy(x.lastChannels())
	if err != nil {
		return err
	}
	defer ws.Release(last)
	to := y.lastChannels()
	pooled := new(Array)
	if err := ws.New(pooled, y.dtype, to.Shape()...); err != nil {
		return err
	}
	defer ws.Release(pooled)
	if err := ws.PoolLast(pooled, last, w, kind); err != nil {
		return err
	}
	ws.Copy(to, pooled)
	return nil
}

// lastChannels returns a view of [N, C, spatial…] as [N, spatial…, C].
func (a *Array) lastChannels() *Array {
	n := int(a.ndim)
	var order [MaxDims]int
	for d := 1; d < n-1; d++ {
		order[d] = d + 1
	}
	order[n-1] = 1
	return a.Transpose(order[:n]...)
}

// PoolPlaces sets y, which holds integers, to the places of the elements that PoolMax finds: of
// equal ones the first. They count through all elements of x in row-major order.
func (ws *Workspace) PoolPlaces(y, x *Array, w Window) error {
	return ws.pooled(y, x, func(x *Array) {
		p, places := newPool(w, x, y, PoolMax), Slice[int64](y)
		ws.poolLines(p, 1, func(_ *Workspace, lines span) {
			switch x.dtype {
			case Float32:
				poolPlaces(p, lines, Slice[float32](x), places)
			case Float64:
				poolPlaces(p, lines, Slice[float64](x), places)
			default:
				poolPlaces(p, lines, Slice[int64](x), places)
			}
		})
	})
}

// PoolGrad sets x to the gradient with respect to the input of a pool of means or sums, given that
// with respect to its result y. Both are of one type of floats, and x is contiguous.
func (ws *Workspace) PoolGrad(x, y *Array, w Window, kind Pooling) error {
	x.zero()
	return ws.pooled(x, y, func(y *Array) {
		p := newPool(w, x, y, kind)
		// The windows of several lines have elements of x in common, but not those of several planes.
		ws.poolLines(p, p.out[0]*p.out[1], func(_ *Workspace, lines span) {
			if x.dtype == Float32 {
				poolGrad(p, lines, Slice[float32](x), Slice[float32](y))
			} else {
				poolGrad(p, lines, Slice[float64](x), Slice[float64](y))
			}
		})
	})
}

// pooled calls f with a contiguous copy of src, unless there is nothing to compute.
func (ws *Workspace) pooled(dst, src *Array, f func(src *Array)) error {
	if dst.Len() == 0 || src.Len() == 0 && dst.dtype == Int64 {
		return nil
	}
	src, release, err := ws.contiguous(src)
	if err != nil {
		return err
	}
	defer release()
	f(src)
	return nil
}

// A pool is a window that moves over the channels of all items.
type pool struct {
	*slide
	planes int
	counts [MaxSpatial][]float64 // what to divide sums by, in each dimension; nil for 1
}

// newPool takes input and result.
func newPool(w Window, x, y *Array, kind Pooling) *pool {
	p := &pool{slide: newSlide(&w, x.Shape()[2:], y.Shape()[2:]), planes: x.shape[0] * x.shape[1]}
	p.countCovered(&w, kind)
	return p
}

// countCovered finds what to divide sums by.
func (p *pool) countCovered(w *Window, kind Pooling) {
	if kind != PoolMean && kind != PoolPaddedMean {
		return
	}
	// The elements of a window are a product over the dimensions, so each dimension is counted by itself.
	for d := range w.Dims {
		e := MaxSpatial - w.Dims + d
		p.counts[e] = make([]float64, p.out[e])
		for i := range p.counts[e] {
			p.counts[e][i] = float64(w.Covered(d, p.in[e], i, kind == PoolPaddedMean))
		}
	}
}

// countLine returns what to divide sums of a line by, times what countColumn returns.
func (p *pool) countLine(line int) float64 {
	if p.counts[2] == nil {
		return 1
	}
	n := 1.0
	for d, i := range [...]int{line / p.out[1], line % p.out[1]} {
		if p.counts[d] != nil {
			n *= p.counts[d][i]
		}
	}
	return n
}

// countColumn returns what to divide sums of a column by.
func (p *pool) countColumn(i int) float64 {
	if p.counts[2] == nil {
		return 1
	}
	return p.counts[2][i]
}

// pooling is what an element of a window takes, in picoseconds.
const pooling = 700

// poolLines calls f for all rows of the result, or for some of them at a time, a multiple of unit.
func (ws *Workspace) poolLines(p *pool, unit int, f func(ws *Workspace, lines span)) {
	n := p.planes * p.out[0] * p.out[1]
	ws.pieces(n*p.out[2]*p.window()*pooling, n, unit, func(ws *Workspace, first, next int) { f(ws, span{first, next}) })
}

// lines calls f for some rows of the result: with its plane, its number in the plane, and the number of
// its first element among all.
func (p *pool) lines(some span, f func(plane, line, first int)) {
	n := p.out[0] * p.out[1]
	for row := some.lo; row < some.hi; row++ {
		f(row/n, row%n, row*p.out[2])
	}
}

// elements calls f for each element of the window that belongs to a row of the result: with the
// positions at which it is in the input, and with its place in the plane at the first of these.
func (p *pool) elements(line int, f func(r span, at int)) {
	p.rows(line, func(in, _ int) {
		for k, r := range p.ranges {
			if r.lo < r.hi {
				f(r, in*p.in[2]+r.lo*p.stride[2]-p.before[2]+k*p.dilation[2])
			}
		}
	})
}

// poolMax finds the largest elements of columns first, and then those of windows: of a whole line in vectors.
func poolMax[T number](p *pool, some span, x, y []T, lowest T, larger blockFunc[T]) {
	columns, before, step := p.in[2], p.before[2], p.stride[2]
	most := make([]T, (p.out[2]-1)*step+1)
	// The line with its margins.
	line := make([]T, len(most)+(p.size[2]-1)*p.dilation[2])
	fill(line, lowest)
	lo, hi := max(0, -before), min(columns, len(line)-before)
	part := line[min(lo+before, len(line)) : max(lo, hi)+before]
	p.lines(some, func(plane, number, first int) {
		data, rows, before := x[plane*p.inputs():][:p.inputs()], 0, []T(nil)
		p.rows(number, func(in, _ int) {
			row := data[in*columns:][lo:][:len(part)]
			if rows > 0 {
				larger(part, before, row)
				row = part
			}
			rows, before = rows+1, row
		})
		switch rows {
		case 0:
			fill(part, lowest)
		case 1:
			copy(part, before)
		}
		row := y[first:][:p.out[2]]
		if step == 1 {
			most = row
		}
		left := line[:len(most)]
		for e := 1; e < p.size[2]; e++ {
			larger(most, left, line[e*p.dilation[2]:][:len(most)])
			left = most
		}
		if p.size[2] == 1 {
			copy(most, left)
		}
		if step > 1 {
			for i := range row {
				row[i] = most[i*step]
			}
		}
	})
}

func poolPlaces[T number](p *pool, some span, x []T, places []int64) {
	size, step := p.inputs(), p.stride[2]
	p.lines(some, func(plane, line, first int) {
		row, start := places[first:][:p.out[2]], plane*size
		fill(row, -1)
		p.elements(line, func(r span, at int) {
			part := row[r.lo:r.hi]
			at += start
			for i, best := range part {
				// NaN is the largest of all, and of several NaN the first one stays.
				if best < 0 {
					part[i] = int64(at)
				} else if v, most := x[at], x[best]; v > most || v != v && most == most {
					part[i] = int64(at)
				}
				at += step
			}
		})
	})
}

func poolSums[T float](p *pool, some span, x, y []T, sums []float64, add func(sums []float64, x []T)) {
	step, counts, count := p.stride[2], make([]float64, p.out[2]), -1.0
	p.lines(some, func(plane, line, first int) {
		data := x[plane*p.inputs():][:p.inputs()]
		clear(sums)
		p.rows(line, func(in, _ int) {
			row := data[in*p.in[2]:][:p.in[2]]
			for e := range p.size[2] {
				// Also the sums of windows between two that are asked for: vectors have no gaps.
				at := e*p.dilation[2] - p.before[2]
				if lo, hi := max(0, -at), min(len(sums), len(row)-at); lo < hi {
					add(sums[lo:hi], row[lo+at:hi+at])
				}
			}
		})
		if n := p.countLine(line); n != count { // most lines have that of the one before
			count = n
			for i := range counts {
				counts[i] = n * p.countColumn(i)
			}
		}
		for i, n := range counts {
			y[first+i] = T(sums[i*step] / n)
		}
	})
}

func poolGrad[T float](p *pool, some span, x, y []T) {
	size, step := p.inputs(), p.stride[2]
	share := make([]T, p.out[2])
	p.lines(some, func(plane, line, first int) {
		for i := range share {
			share[i] = T(float64(y[first+i]) / (p.countLine(line) * p.countColumn(i)))
		}
		data := x[plane*size:][:size]
		p.elements(line, func(r span, at int) {
			for _, v := range share[r.lo:r.hi] {
				data[at] += v
				at += step
			}
		})
	})
}
