package array

import (
	"math"

	"github.com/nnopt/nnopt/kernel"
)

// poolStrip is about how many float32s, with margins, are pooled at a time. They stay in the first-level cache
// until all windows have seen them.
const poolStrip = 4 << 10

// poolingSingles is what an element of a window takes, in picoseconds.
const poolingSingles = 200

// A poolStrips pools float32s in single precision, some lines at a time. Kernels for channels that come last take
// lines for positions and columns for channels, so one call does for all lines of a strip.
type poolStrips struct {
	*pool
	lines   int // of a strip, at most
	columns int // that windows begin at, or that lie between: vectors have no gaps
	width   int // columns, and the rest of the last window
	inside  bool
	taps    []kernel.Tap

	padded []float32 // a strip of the input with its margins
	tall   []float32 // largest elements of what lies one below the other
	all    []float32 // the result, of all columns
	ones   []float32 // weights of sums; nil for PoolMax
	counts []float32 // what sums are divided by, of a line
}

// singles computes some lines of the result.
func (p *pool) singles(some span, x, y []float32, kind Pooling) {
	s := &poolStrips{pool: p, columns: (p.out[2]-1)*p.stride[2] + 1, inside: p.within(1) && p.within(2)}
	s.width = s.columns + (p.size[2]-1)*p.dilation[2]
	s.lines = min(max(poolStrip/(p.size[0]*p.stride[1]*s.width), 1), p.out[1])
	if !s.inside {
		s.padded = make([]float32, min(p.size[0], p.in[0])*s.rows(s.lines)*s.width)
	}
	if kind == PoolMax {
		s.tall = make([]float32, s.lines*s.width)
	} else {
		s.ones, s.counts = make([]float32, s.columns), make([]float32, p.out[2])
		fill(s.ones, 1)
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

// compact reports whether a strip takes about as much memory as the input at most.
func (p *pool) compact() bool {
	for d := 1; d < MaxSpatial; d++ {
		if (p.size[d]-1)*p.dilation[d] > 2*p.in[d] || (p.out[d]-1)*p.stride[d] > 2*p.in[d] {
			return false
		}
	}
	return true
}

// within reports whether all windows are in the input, in a dimension.
func (s *slide) within(d int) bool {
	all := span{0, s.out[d]}
	return s.rangeOf(d, 0) == all && s.rangeOf(d, s.size[d]-1) == all
}

// rows returns how many rows of the input some lines of the result have.
func (s *poolStrips) rows(lines int) int {
	return (lines-1)*s.stride[1] + (s.size[1]-1)*s.dilation[1] + 1
}

// pool32 computes n lines of a plane.
func (s *poolStrips) pool32(y, x []float32, line, n int) {
	size, top, width := s.in[1]*s.in[2], line%s.out[1]*s.stride[1]-s.before[1], s.width
	data, images := s.padded, 0
	if s.inside {
		data, width = x, s.in[2]
	}
	across := s.size[2]
	if s.ones == nil {
		across = 1
	}
	s.taps = s.taps[:0]
	for a := range s.size[0] {
		at, ok := s.place(0, line/s.out[1], a)
		if !ok {
			continue
		}
		first := (at*s.in[1]+top)*width - s.before[2]
		if !s.inside {
			first = images * s.rows(n) * width
			s.pad(data[first:][:s.rows(n)*width], x[at*size:][:size], top)
		}
		images++
		for b := range s.size[1] {
			for c := range across {
				s.taps = append(s.taps, kernel.Tap{X: first + b*s.dilation[1]*width + c*s.dilation[2]})
			}
		}
	}
	all, step := y, s.stride[2]
	if step > 1 {
		all = s.all[:n*s.columns]
	}
	switch {
	case s.ones != nil:
		kernel.Depthwise(all, s.columns, data, s.stride[1]*width, s.ones, s.taps, n, s.columns)
	case images == 0: // these windows lie in the margins alone
		fill(all, float32(math.Inf(-1)))
	default:
		kernel.Largest(s.tall, s.width, data, s.stride[1]*width, s.taps, n, s.width)
		s.taps = s.taps[:0]
		for c := range s.size[2] {
			s.taps = append(s.taps, kernel.Tap{X: c * s.dilation[2]})
		}
		kernel.Largest(all, s.columns, s.tall, s.width, s.taps, n, s.columns)
	}
	count := -1.0
	for i := range n {
		row := y[i*s.out[2]:][:s.out[2]]
		if step > 1 {
			every(row, all[i*s.columns:][:s.columns], step)
		}
		if s.pool.counts[2] == nil {
			continue
		}
		if n := s.countLine(line + i); n != count { // most lines have that of the one before
			count = n
			for k := range s.counts {
				s.counts[k] = float32(n * s.countColumn(k))
			}
		}
		float32Kernels[TrueDiv](row, row, s.counts)
	}
}

// pad sets dst to rows of an image from top on, with margins that no window finds: zeros for sums.
func (s *poolStrips) pad(dst, x []float32, top int) {
	margin := float32(0)
	if s.ones == nil {
		margin = float32(math.Inf(-1))
	}
	lo := min(max(s.before[2], 0), s.width)
	hi := max(min(s.before[2]+s.in[2], s.width), lo)
	for ; len(dst) > 0; dst = dst[s.width:] {
		row := dst[:s.width]
		if top < 0 || top >= s.in[1] {
			fill(row, margin)
		} else {
			fill(row[:lo], margin)
			copy(row[lo:hi], x[top*s.in[2]+lo-s.before[2]:])
			fill(row[hi:], margin)
		}
		top++
	}
}

// every sets dst to elements of x that are step apart.
func every(dst, x []float32, step int) {
	if step == 2 { // half of the time
		for len(dst) >= 4 && len(x) >= 8 {
			dst[0], dst[1], dst[2], dst[3] = x[0], x[2], x[4], x[6]
			dst, x = dst[4:], x[8:]
		}
	}
	for i := range dst {
		dst[i] = x[i*step]
	}
}
