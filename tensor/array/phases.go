package array

import (
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor/array/internal/interleave"
)

// A transposed convolution with stride s is s ordinary ones in each dimension: elements of the result that are s apart,
// which are a phase, see every s-th element of the window, in the opposite order. So nothing is added to what is there
// already. If the stride divides the window, all phases see as many elements, and are the channels of one convolution.

const (
	// morePhases bounds what phases compute beside what is asked for: windows at borders, as a part of the positions.
	// Adding windows of 4×4 up took 1.26 times as long (Zen 4, 2026-11-30).
	morePhases = 1.25
	// leastPhaseChannels is how many columns a product has at least that is quicker than adding up.
	leastPhaseChannels = 16
)

// phases are those of a transposed convolution. Element p of the result is element (p + skip) / stride of phase (p + skip) mod
// stride, in each dimension.
type phases struct {
	slide
	first, count, skip [MaxSpatial]int // the position of the first element of a phase, and how many it has
	taps               [MaxSpatial]int // of a window that a phase sees
	channels, columns  int             // of the result, and of all phases
}

// phasesOf returns the phases of a transposed convolution of y with result x, or false if it takes less time to add up windows.
func phasesOf(x, y, weights *Array, w Window, groups int) (p *phases, ok bool) {
	if x.dtype != Float32 || groups != 1 || x.Len() == 0 || y.Len() == 0 || weights.Len() == 0 {
		return nil, false
	}
	p = &phases{channels: weights.shape[1]}
	p.become(&w, x.Shape()[2:], y.Shape()[2:])
	all, asked, overlap := 1.0, 1.0, false
	p.columns = p.channels
	for d, step := range p.stride {
		if p.dilation[d] > 1 || p.size[d]%step > 0 {
			return nil, false
		}
		p.first[d] = divideDown(p.before[d], step)
		p.skip[d] = p.before[d] - p.first[d]*step
		p.count[d] = divideDown(p.before[d]+p.in[d]-1, step) - p.first[d] + 1
		p.taps[d], p.columns = p.size[d]/step, p.columns*step
		all, asked, overlap = all*float64(p.count[d]), asked*float64(p.out[d]), overlap || p.taps[d] > 1
	}
	return p, overlap && p.columns > p.channels && p.columns >= leastPhaseChannels && all <= morePhases*asked
}

// PhaseWeights returns the weights of ConvTranspose, [M, C, window…], as those of phases, [taps…, M, phases·C], prepared. It
// returns nil if strides don't divide windows.
func PhaseWeights(weights *Array, w Window, t *kernel.Threads) *LastWeights {
	split, ranges := []int{weights.shape[0], weights.shape[1]}, []Range{{0, 1, weights.shape[0], false}, {0, 1, weights.shape[1], false}}
	var taps, phases []int
	columns := weights.shape[1]
	for d := range w.Dims {
		step := w.Stride[d]
		n := weights.shape[d+2] / step
		if n*step != weights.shape[d+2] {
			return nil
		}
		columns *= step
		taps, phases = append(taps, len(split)), append(phases, len(split)+1)
		split, ranges = append(split, n, step), append(ranges, Range{n - 1, -1, n, false}, Range{0, 1, step, false})
	}
	v := new(Array)
	weights.Clone().Reshape(split...).RangeTo(v, ranges...)
	turned := v.Transpose(append(append(append(taps, 0), phases...), 1)...).Clone()
	return NewLastWeights(turned.Reshape(append(turned.Shape()[:w.Dims+1:w.Dims+1], columns)...), 1, t)
}

// byPhases is ConvTranspose for weights that are prepared.
func (ws *Workspace) byPhases(p *phases, x, y *Array, weights *LastWeights, w Window) error {
	sums, like := new(Array), new(Array)
	shape, window := []int{y.shape[0]}, []int{}
	conv := Window{Dims: w.Dims}
	for d := range w.Dims {
		e := MaxSpatial - w.Dims + d
		shape, window = append(shape, p.count[e]), append(window, p.taps[e])
		conv.Size[d], conv.Stride[d], conv.Dilation[d], conv.Before[d] = p.taps[e], 1, 1, p.taps[e]-1-p.first[e]
	}
	if err := ws.New(sums, Float32, append(shape, p.columns)...); err != nil {
		return err
	}
	defer ws.Release(sums)
	like.layOut(Float32, append(window, y.shape[1], p.columns)) // all that is read of weights that are prepared
	if err := ws.ConvLast(sums, y.lastChannels(), like, weights, conv, 1, nil, nil); err != nil {
		return err
	}
	lines := x.shape[0] * p.in[0] * p.in[1]
	ws.pieces(x.Len()*gathered, lines, 1, func(_ *Workspace, first, next int) {
		p.join(Slice[float32](x), Slice[float32](sums), span{first, next})
	})
	return nil
}

// join sets some lines of all channels of the result x to those of phases, whose channels are last.
func (p *phases) join(x, sums []float32, lines span) {
	n, step := p.count[2], p.stride[2]
	turned, parts := make([]float32, step*p.channels*n), make([][]float32, step)
	for line := lines.lo; line < lines.hi; line++ {
		from, phase := line/p.in[1]/p.in[0], 0
		for d, at := range [2]int{line / p.in[1] % p.in[0], line % p.in[1]} {
			at += p.skip[d]
			from, phase = from*p.count[d]+at/p.stride[d], phase*p.stride[d]+at%p.stride[d]
		}
		for r := range step {
			at := from*n*p.columns + (phase*step+r)*p.channels
			m := kernel.Matrix{Rows: n, Cols: p.channels, Stride: p.columns, Data: sums[at:][:(n-1)*p.columns+p.channels]}
			kernel.Transpose(turned[r*p.channels*n:], n, m)
		}
		for c := range p.channels {
			for r := range parts {
				parts[r] = turned[(r*p.channels+c)*n:][:n]
			}
			plane := line/p.in[1]/p.in[0]*p.channels + c
			joinLine(x[(plane*p.in[0]*p.in[1]+line%(p.in[0]*p.in[1]))*p.in[2]:][:p.in[2]], parts, p.skip[2])
		}
	}
}

// joinLine interleaves phases, without some elements at the beginning and what is too much at the end.
func joinLine(dst []float32, phases [][]float32, skip int) {
	step := len(phases)
	one := func(p int) { dst[p] = phases[(p+skip)%step][(p+skip)/step] }
	begin := min((step-skip)%step, len(dst))
	whole := (len(dst) - begin) / step
	for p := range begin {
		one(p)
	}
	interleave.Lines(dst[begin:][:whole*step], phases, (begin+skip)/step)
	for p := begin + whole*step; p < len(dst); p++ {
		one(p)
	}
}
