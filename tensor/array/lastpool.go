package array

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
)

// PoolLast is Pool for arrays of floats whose last dimension is the channels: x is [N, spatial…, C],
// and y [N, positions…, C]. Of two zeros, the largest is the one that comes first.
func (ws *Workspace) PoolLast(y, x *Array, w Window, kind Pooling) error {
	return ws.pooled(y, x, func(x *Array) {
		last := int(x.ndim) - 1
		p := &lastPool{pool: pool{slide: newSlide(&w, x.Shape()[1:last], y.Shape()[1:last])}, items: x.shape[0], channels: x.shape[last], kind: kind}
		p.countCovered(&w, kind)
		n := p.items * p.out[0] * p.out[1]
		each := poolingLast
		if x.dtype == Float64 {
			each *= 2
		}
		ws.pieces(n*p.out[2]*p.slide.window()*p.channels*each, n, 1, func(ws *Workspace, first, next int) {
			some := span{first, next}
			switch {
			case x.dtype == Float32 && (kind == PoolMax || p.slide.additions() <= maxSingle):
				p.singles(some, Slice[float32](x), Slice[float32](y))
			case x.dtype == Float32:
				poolLast(p, some, Slice[float32](x), Slice[float32](y), 0, nil, kernel.AddVecToDoubles, ws.accumulators(2*p.channels))
			default:
				poolLast(p, some, Slice[float64](x), Slice[float64](y), math.Inf(-1), float64Kernels[Maximum], addDoubles, ws.accumulators(2*p.channels))
			}
		})
	})
}

// poolingLast is what a float32 of a window takes, in picoseconds.
const poolingLast = 60

// A lastPool is a pool with channels last.
type lastPool struct {
	pool
	items, channels int
	kind            Pooling
}

// poolLast computes some lines of the result.
func poolLast[T float](p *lastPool, some span, x, y []T, lowest T, larger func(dst, x, y []T), add func(sums []float64, x []T), doubles []float64) {
	sums, counts, count := doubles[:p.channels], doubles[p.channels:], -1.0
	lines, size := p.out[0]*p.out[1], p.inputs()*p.channels
	y = y[some.lo*p.out[2]*p.channels:]
	for line := some.lo; line < some.hi; line++ {
		data := x[line/lines*size:][:size]
		for k := range p.out[2] {
			row := y[:p.channels]
			y = y[p.channels:]
			if p.kind == PoolMax {
				fill(row, lowest)
				p.window(line%lines, k, func(at int) { larger(row, row, data[at*p.channels:][:p.channels]) })
				continue
			}
			clear(sums)
			p.window(line%lines, k, func(at int) { add(sums, data[at*p.channels:][:p.channels]) })
			if n := p.countLine(line%lines) * p.countColumn(k); n != count { // most positions have that of the one before
				count = n
				fill(counts, n)
			}
			divideBlock(sums, sums, counts)
			for c, v := range sums {
				row[c] = T(v)
			}
		}
	}
}

// singles computes some lines of the result in single precision, first what lies one below the other. Positions whose
// windows are in the input in the same way are computed together.
func (p *lastPool) singles(some span, x, y []float32) {
	lines, size, c := p.out[0]*p.out[1], p.inputs()*p.channels, p.channels
	row := p.in[2] * c
	tall := make([]float32, row)
	wide := min(row, 16) // a line of a cache, of which the kernel reads four at a time
	var taps []kernel.Tap
	runs := p.runs(nil)
	largest := p.kind == PoolMax
	counts := make([]float32, c)
	y = y[some.lo*p.out[2]*c:]
	for line := some.lo; line < some.hi; line++ {
		taps = taps[:0]
		p.rows(line%lines, func(in, _ int) { taps = append(taps, kernel.Tap{X: in * row}) })
		x := x[line/lines*size:][:size]
		reduceTaps(tall, x, largest, taps, inARow(row/wide, wide, wide), wide)
		if row%wide > 0 { // what is left, and some of what is there already
			reduceTaps(tall[row-wide:], x[row-wide:], largest, taps, inARow(1, wide, wide), wide)
		}
		for _, r := range runs {
			taps = taps[:0]
			for e := r.lo; e < r.hi; e++ {
				taps = append(taps, kernel.Tap{X: (r.first*p.stride[2] - p.before[2] + e*p.dilation[2]) * c})
			}
			run := y[:r.n*c]
			y = y[r.n*c:]
			reduceTaps(run, tall, largest, taps, inARow(r.n, c, p.stride[2]*c), c)
			if largest {
				continue
			}
			if count := p.countLine(line%lines) * p.countColumn(r.first); count != 1 {
				fill(counts, float32(count))
				for ; len(run) > 0; run = run[c:] {
					float32Kernels[TrueDiv](run[:c], run[:c], counts)
				}
			}
		}
	}
}

// window calls f for each element of the window at a position that is in the input.
func (p *lastPool) window(line, k int, f func(at int)) {
	lo, hi := p.covered(k)
	p.rows(line, func(in, _ int) {
		for e := lo; e < hi; e++ {
			f(in*p.in[2] + k*p.stride[2] - p.before[2] + e*p.dilation[2])
		}
	})
}
