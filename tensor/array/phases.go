package array

import (
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor/array/internal/interleave"
)

// A transposed convolution with stride s is s ordinary ones in each dimension: elements of the result that are s apart,
// which are a phase, see every s-th element of the window, in the opposite order. So nothing is added to what is there
// already. If the stride divides the window, all phases see as many elements, and are the channels of one convolution.

const (
	// morePhases bounds what phases compute beside what is asked for: windows at borders, as a part of the positions.
	// Adding windows of 4×4 up took 1.26 times as long as phases, and 1.9 times channel by channel (Zen 4, 2026-11-30).
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
	phases, channels   int
	depthwise          bool // each phase is a convolution by itself, of groups of one channel
	pixel, apart       int  // how far elements of a phase, and phases, are from each other
}

// phasesOf returns the phases of a transposed convolution of y with result x, or false if it takes less time to add up windows.
func phasesOf(x, y, weights *Array, w Window, groups int) (p *phases, ok bool) {
	depthwise := weights.shape[1] == 1 && weights.shape[0] == groups && groups >= leastPhaseChannels
	if x.dtype != Float32 || groups != 1 && !depthwise || x.Len() == 0 || y.Len() == 0 || weights.Len() == 0 {
		return nil, false
	}
	p = &phases{channels: x.shape[1], phases: 1, depthwise: depthwise}
	p.become(&w, x.Shape()[2:], y.Shape()[2:])
	all, asked, overlap := 1.0, 1.0, false
	for d, step := range p.stride {
		if p.dilation[d] > 1 || p.size[d]%step > 0 {
			return nil, false
		}
		p.first[d] = divideDown(p.before[d], step)
		p.skip[d] = p.before[d] - p.first[d]*step
		p.count[d] = divideDown(p.before[d]+p.in[d]-1, step) - p.first[d] + 1
		p.taps[d], p.phases = p.size[d]/step, p.phases*step
		all, asked, overlap = all*float64(p.count[d]), asked*float64(p.out[d]), overlap || p.taps[d] > 1
	}
	if p.pixel, p.apart = p.phases*p.channels, p.channels; depthwise {
		p.pixel, p.apart = p.channels, x.shape[0]*p.count[0]*p.count[1]*p.count[2]*p.channels
	}
	return p, overlap && p.phases > 1 && p.phases*p.channels >= leastPhaseChannels && all <= morePhases*asked
}

// PhaseWeights returns the weights of ConvTranspose without groups, [M, C, window…], as those of phases, [taps…, M, phases·C],
// prepared. It returns nil if strides don't divide windows.
func PhaseWeights(weights *Array, w Window, t *kernel.Threads) *LastWeights {
	v, taps, phases := splitWeights(weights, w)
	if v == nil {
		return nil
	}
	turned := v.Transpose(slices.Concat(taps, []int{0}, phases, []int{1})...).Clone()
	shape := turned.Shape()[:w.Dims+1]
	return NewLastWeights(turned.Reshape(append(slices.Clone(shape), turned.Len()/product(shape))...), 1, t)
}

// splitWeights returns weights with two dimensions for each of a window, of taps in the opposite order and of phases, and which
// these are; or nil if strides don't divide windows.
func splitWeights(weights *Array, w Window) (v *Array, taps, phases []int) {
	split := []int{weights.shape[0], weights.shape[1]}
	ranges := []Range{{0, 1, weights.shape[0], false}, {0, 1, weights.shape[1], false}}
	for d := range w.Dims {
		step := w.Stride[d]
		n := weights.shape[d+2] / step
		if n*step != weights.shape[d+2] {
			return nil, nil, nil
		}
		taps, phases = append(taps, len(split)), append(phases, len(split)+1)
		split, ranges = append(split, n, step), append(ranges, Range{n - 1, -1, n, false}, Range{0, 1, step, false})
	}
	v = new(Array)
	weights.inRows().Reshape(split...).RangeTo(v, ranges...)
	return v, taps, phases
}

// byPhases is ConvTranspose by phases, for weights of which prepared returns what is prepared without groups.
func (ws *Workspace) byPhases(p *phases, x, y, weights *Array, prepared func(ws *Workspace) *LastWeights, w Window) error {
	from, release, err := ws.contiguous(y.lastChannels())
	if err != nil {
		return err
	}
	defer release()
	shape, window := []int{y.shape[0]}, []int{}
	conv := Window{Dims: w.Dims}
	for d := range w.Dims {
		e := MaxSpatial - w.Dims + d
		shape, window = append(shape, p.count[e]), append(window, p.taps[e])
		conv.Size[d], conv.Stride[d], conv.Dilation[d], conv.Before[d] = p.taps[e], 1, 1, p.taps[e]-1-p.first[e]
	}
	sums := new(Array)
	if err := ws.New(sums, Float32, p.phases*product(shape)*p.channels); err != nil {
		return err
	}
	defer ws.Release(sums)
	if p.depthwise {
		v, taps, phases := splitWeights(weights, w)
		turned := v.Transpose(slices.Concat(phases, taps, []int{1, 0})...).Clone().Reshape(append(append([]int{p.phases}, window...), 1, p.channels)...)
		all := sums.Reshape(append(append([]int{p.phases}, shape...), p.channels)...)
		for i := range p.phases {
			if err := ws.ConvLast(all.item(i), from, turned.item(i), nil, conv, p.channels, nil, nil); err != nil {
				return err
			}
		}
	} else {
		like := new(Array) // all that is read of weights that are prepared
		like.layOut(Float32, append(window, y.shape[1], p.pixel))
		if err := ws.ConvLast(sums.Reshape(append(shape, p.pixel)...), from, like, prepared(ws), conv, 1, nil, nil); err != nil {
			return err
		}
	}
	lines := x.shape[0] * p.in[0] * p.in[1]
	ws.pieces(x.Len()*gathered, lines, 1, func(_ *Workspace, first, next int) {
		p.join(Slice[float32](x), Slice[float32](sums), span{first, next})
	})
	return nil
}

// item returns element i of the first dimension.
func (a *Array) item(i int) *Array {
	v := new(Array)
	a.RangeTo(v, Range{Start: i, Drop: true})
	return v
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
			at := from*n*p.pixel + (phase*step+r)*p.apart
			m := kernel.Matrix{Rows: n, Cols: p.channels, Stride: p.pixel, Data: sums[at:][:(n-1)*p.pixel+p.channels]}
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
