package array

import (
	"math"

	"github.com/nnopt/nnopt/kernel"
)

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
