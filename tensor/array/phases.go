package array

import (
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor/array/internal/interleave"
)

// A transposed convolution with stride s is s ordinary ones in each dimension: elements of the result that are s apart,
// which are a phase, see every s-th element of the window, in the opposite order. So nothing is added to what is there
// already. If the stride divides the window, all phases see as many elements, and are the channels of one convolution.
// Otherwise, and for groups of one channel, each phase is one by itself.

const (
	// morePhases bounds what phases compute beside what is asked for: windows at borders, as a part of the positions.
	// Adding windows of 4×4 up took 1.2 to 1.9 times as long as phases of 8² positions, where that part is 1.27, and 1.6
	// times at 4², where it is 1.56 (Zen 4, 2026-12-01).
	morePhases = 1.6
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
	depthwise, each    bool // a phase is a convolution by itself, perhaps of groups of one channel
	pixel, apart       int  // how far elements of a phase, and phases, are from each other
}

// phasesOf returns the phases of a transposed convolution of y with result x, or false if it takes less time to add up windows.
func phasesOf(x, y, weights *Array, w Window, groups int) (p *phases, ok bool) {
	depthwise := weights.shape[1] == 1 && weights.shape[0] == groups && groups >= leastPhaseChannels
	if x.dtype != Float32 || groups != 1 && !depthwise || x.Len() == 0 || y.Len() == 0 || weights.Len() == 0 {
		return nil, false
	}
	p = &phases{channels: x.shape[1], phases: 1, depthwise: depthwise, each: depthwise}
	p.become(&w, x.Shape()[2:], y.Shape()[2:])
	all, asked, overlap := 1.0, 1.0, false
	for d, step := range p.stride {
		if p.dilation[d] > 1 || p.size[d] < step {
			return nil, false
		}
		p.each = p.each || p.size[d]%step > 0
		p.first[d] = divideDown(p.before[d], step)
		p.skip[d] = p.before[d] - p.first[d]*step
		p.count[d] = divideDown(p.before[d]+p.in[d]-1, step) - p.first[d] + 1
		p.taps[d], p.phases = (p.size[d]+step-1)/step, p.phases*step
		all, asked, overlap = all*float64(p.count[d]), asked*float64(p.out[d]), overlap || p.taps[d] > 1
	}
	columns := p.phases * p.channels // of a product
	if p.pixel, p.apart = columns, p.channels; p.each {
		p.pixel, p.apart, columns = p.channels, x.shape[0]*p.count[0]*p.count[1]*p.count[2]*p.channels, p.channels
	}
	return p, overlap && p.phases > 1 && columns >= leastPhaseChannels && all <= morePhases*asked
}

// PhaseWeights returns the weights of ConvTranspose without groups, [M, C, window…], as those of phases, [taps…, M, phases·C] or
// [taps…, M, C] of each, prepared. It returns nil if that gains nothing.
func PhaseWeights(weights *Array, w Window, t *kernel.Threads) *LastWeights {
	if v, taps, phases := splitWeights(weights, w); v != nil {
		turned := v.Transpose(slices.Concat(taps, []int{0}, phases, []int{1})...).Clone()
		shape := turned.Shape()[:w.Dims+1]
		return NewLastWeights(turned.Reshape(append(slices.Clone(shape), turned.Len()/product(shape))...), 1, t)
	}
	p := &LastWeights{}
	for i := range product(w.Stride[:w.Dims]) {
		phase := NewLastWeights(weightsOfPhase(weights, w, i, 0, 1).Clone(), 1, t)
		if phase == nil {
			return nil
		}
		p.phases = append(p.phases, phase)
	}
	return p
}

// weightsOfPhase returns a view of the weights of a phase, of taps in the opposite order, before two dimensions of weights.
func weightsOfPhase(weights *Array, w Window, phase int, before ...int) *Array {
	ranges := []Range{{0, 1, weights.shape[0], false}, {0, 1, weights.shape[1], false}}
	var order []int
	for d := range w.Dims {
		step, inner := w.Stride[d], product(w.Stride[d+1:w.Dims])
		first := phase / inner % step
		n := (weights.shape[d+2] - first + step - 1) / step
		ranges, order = append(ranges, Range{first + (n-1)*step, -step, n, false}), append(order, d+2)
	}
	v := new(Array)
	weights.RangeTo(v, ranges...)
	return v.Transpose(append(order, before...)...)
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
	shape := []int{y.shape[0]}
	shape = append(shape, p.count[MaxSpatial-w.Dims:]...)
	sums := new(Array)
	if err := ws.New(sums, Float32, p.phases*product(shape)*p.channels); err != nil {
		return err
	}
	defer ws.Release(sums)
	if p.each {
		err = ws.eachPhase(p, sums.Reshape(append(append([]int{p.phases}, shape...), p.channels)...), from, weights, prepared, w)
	} else {
		like := new(Array) // all that is read of weights that are prepared
		like.layOut(Float32, append(slices.Clone(p.taps[MaxSpatial-w.Dims:]), y.shape[1], p.pixel))
		err = ws.ConvLast(sums.Reshape(append(shape, p.pixel)...), from, like, prepared(ws), p.window(like, w.Dims), 1, nil, nil)
	}
	if err != nil {
		return err
	}
	lines := x.shape[0] * p.in[0] * p.in[1]
	ws.pieces(x.Len()*gathered, lines, 1, func(_ *Workspace, first, next int) {
		p.join(Slice[float32](x), Slice[float32](sums), span{first, next})
	})
	return nil
}

// window returns that of the convolution of a phase, whose weights begin with the taps.
func (p *phases) window(weights *Array, dims int) Window {
	w := Window{Dims: dims}
	for d, n := range weights.shape[:dims] {
		w.Size[d], w.Stride[d], w.Dilation[d], w.Before[d] = n, 1, 1, n-1-p.first[MaxSpatial-dims+d]
	}
	return w
}

// eachPhase sets all to the phases, each by itself.
func (ws *Workspace) eachPhase(p *phases, all, from, weights *Array, prepared func(ws *Workspace) *LastWeights, w Window) error {
	groups, order, ready := 1, []int{0, 1}, (*LastWeights)(nil)
	if p.depthwise {
		groups, order = p.channels, []int{1, 0}
	} else {
		ready = prepared(ws)
	}
	for i := range p.phases {
		turned, phase := weightsOfPhase(weights, w, i, order...), (*LastWeights)(nil)
		if ready != nil {
			phase = ready.phases[i]
		} else {
			turned = turned.Clone()
		}
		if err := ws.ConvLast(all.item(i), from, turned, phase, p.window(turned, w.Dims), groups, nil, nil); err != nil {
			return err
		}
	}
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
	row := p.channels * n
	turned, joined := make([]float32, step*row), make([]float32, step*row)
	for line := lines.lo; line < lines.hi; line++ {
		from, phase := line/p.in[1]/p.in[0], 0
		for d, at := range [2]int{line / p.in[1] % p.in[0], line % p.in[1]} {
			at += p.skip[d]
			from, phase = from*p.count[d]+at/p.stride[d], phase*p.stride[d]+at%p.stride[d]
		}
		for r := range step {
			at := from*n*p.pixel + (phase*step+r)*p.apart
			m := kernel.Matrix{Rows: n, Cols: p.channels, Stride: p.pixel, Data: sums[at:][:(n-1)*p.pixel+p.channels]}
			kernel.Transpose(turned[r*row:], n, m)
		}
		interleave.Block(joined, turned, row, step, row)
		for c := range p.channels {
			plane := line/p.in[1]/p.in[0]*p.channels + c
			copy(x[(plane*p.in[0]*p.in[1]+line%(p.in[0]*p.in[1]))*p.in[2]:][:p.in[2]], joined[c*n*step+p.skip[2]:])
		}
	}
}
