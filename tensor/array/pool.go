package array

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
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

// Pool sets y to what a window finds in x: shapes [N, C, positions…] and [N, C, spatial…]. Both have one type, floats except
// for PoolMax, and y is contiguous. Sums of float32s add those of the columns of a window, if that is at most maxSingle
// additions; others have the order of the window, and are in double precision. Each window has an element in the input, except
// for sums and PoolPaddedMean.
func (ws *Workspace) Pool(y, x *Array, w Window, kind Pooling) error {
	if x.dtype == Float32 && x.shape[1] >= leastTurnedChannels && y.shape[y.ndim-1] < mostTurnedColumns && x.Len() > 0 && y.Len() > 0 {
		return ws.poolTurned(y, x, w, kind)
	}
	return ws.pooled(y, x, func(x *Array) {
		p := newPool(w, x, y, kind)
		singly := x.dtype == Float32 && (kind == PoolMax || p.slide.additions() <= maxSingle)
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

// maxSingle is how many float32s are added one after the other in single precision: a sum is off by as many roundings.
const maxSingle = 31

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

// poolStrip is about how many float32s, with margins, are pooled at a time. They stay in the first-level cache
// between the two steps.
const poolStrip = 2 << 10

// poolingSingles is what an element of a window takes, in picoseconds.
const poolingSingles = 200

// A poolStrips pools float32s in single precision, some lines at a time: first what lies one below the other, and then
// what that comes to side by side. Kernels for channels that come last take lines for positions and columns for
// channels, so one call does for all lines of a strip.
type poolStrips struct {
	*pool
	lines   int  // of a strip, at most
	columns int  // that windows begin at, or that lie between or behind them: vectors have no gaps
	width   int  // columns, and the rest of the last window
	inside  span // columns of the input, in the width
	taps    []kernel.Tap

	tall   []float32 // sums or largest elements of columns, between margins that no window finds
	all    []float32 // the result, of all columns
	counts []float32 // what sums are divided by; nil for PoolMax

	lineCounts []float64 // by line of a plane, what the divisors are multiples of
	counted    []float64 // by line of the strip, those of counts
}

// singles computes some lines of the result.
func (p *pool) singles(some span, x, y []float32, kind Pooling) {
	s := &poolStrips{pool: p, columns: p.out[2] * p.stride[2]}
	s.width = s.columns + (p.size[2]-1)*p.dilation[2]
	s.inside.lo = min(max(p.before[2], 0), s.width)
	s.inside.hi = max(min(p.before[2]+p.in[2], s.width), s.inside.lo)
	s.lines = min(max(poolStrip/s.width, 1), p.out[1])
	s.tall = make([]float32, s.lines*s.width)
	if kind == PoolMax {
		fill(s.tall, float32(math.Inf(-1)))
	} else {
		s.counts, s.counted = make([]float32, s.lines*p.out[2]), make([]float64, s.lines)
		s.lineCounts = make([]float64, p.out[0]*p.out[1])
		for i := range s.lineCounts {
			s.lineCounts[i] = p.countLine(i)
		}
	}
	if p.stride[2] > 1 {
		s.all = make([]float32, s.lines*s.columns)
	}
	lines := p.out[0] * p.out[1]
	for at := some.lo; at < some.hi; {
		n := min(s.lines, some.hi-at, p.out[1]-at%p.out[1])
		s.pool32(y[at*p.out[2]:][:n*p.out[2]], x[at/lines*p.inputs():][:p.inputs()], at%lines, n)
		at += n
	}
}

// pool32 computes n lines of a plane.
func (s *poolStrips) pool32(y, x []float32, line, n int) {
	lo, hi := s.inside.lo, s.inside.hi
	for i, next := 0, 0; i < n; i = next {
		next = i + min(s.alike(line+i), n-i)
		s.taps = s.taps[:0]
		s.rows(line+i, func(in, _ int) { s.taps = append(s.taps, kernel.Tap{X: in*s.in[2] + lo - s.before[2]}) })
		reduceTaps(s.tall[i*s.width+lo:], x, s.counts == nil, s.taps, inARow(next-i, s.width, s.stride[1]*s.in[2]), hi-lo)
	}
	all, step := y, s.stride[2]
	if step > 1 {
		all = s.all[:n*s.columns]
	}
	s.taps = s.taps[:0]
	for c := range s.size[2] {
		s.taps = append(s.taps, kernel.Tap{X: c * s.dilation[2]})
	}
	reduceTaps(all, s.tall, s.counts == nil, s.taps, inARow(n, s.columns, s.width), s.columns)
	switch step {
	case 1:
	case 2:
		kernel.EverySecond(y, all)
	default:
		for i := range y {
			y[i] = all[i*step]
		}
	}
	if s.pool.counts[2] == nil {
		return
	}
	for i, c := range s.lineCounts[line:][:n] {
		if c != s.counted[i] { // most strips have those of the one before
			s.counted[i] = c
			for k := range s.out[2] {
				s.counts[i*s.out[2]+k] = float32(c * s.countColumn(k))
			}
		}
	}
	float32Kernels[TrueDiv](y, y, s.counts)
}

// reduceTaps is kernel.Sums or Largest. A window that lies in margins alone has nothing to find there.
func reduceTaps(dst, x []float32, largest bool, taps []kernel.Tap, p kernel.Positions, channels int) {
	switch {
	case !largest:
		kernel.Sums(dst, x, taps, p, channels)
	case len(taps) > 0:
		kernel.Largest(dst, x, taps, p, channels)
	default:
		for i := range p.Each {
			fill(dst[i*p.DstStep:][:channels], float32(math.Inf(-1)))
		}
	}
}

// inARow are n positions one behind the other.
func inARow(n, dstStep, xStep int) kernel.Positions {
	return kernel.Positions{Lines: 1, Each: n, DstStep: dstStep, XStep: xStep}
}
