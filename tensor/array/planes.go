package array

import (
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor/array/internal/interleave"
)

// planes are what sums of one channel each need, of float32s: vectors are of positions. Lines of the input are copied so that
// each element of a window meets a vector of them at all positions: padding is written out as zeros, and elements that are a
// stride apart lie side by side, in a phase for each remainder of the division by the stride. Sums have the order of
// directForward, which adds nothing for padding. So zeros need weights that are numbers.
type planes struct {
	s       *slide
	memory  [2]Array
	x       []float32 // lines of the input, for each slice that the window has
	weights []float32 // each of them for all lanes
	taps    []kernel.Tap
	sums    []float32 // of some lines, if the result has them in another order
	width   int       // elements of a line of the result, and some if it would be too short for the kernel
	lines   int       // of the result that are summed up at a time, or fewer
	rows    int       // lines of the input that these read, in a slice
	row     int       // elements of such a line
	phase   int       // and of a phase
}

const (
	planeLanes = 16 // positions of a vector
	leastLanes = 8  // of the kernel
	planeBytes = 96 << 10
	leastLines = 4 // fewer would read too many lines of the input again
)

// begin plans sums of as many channels of the result side by side, and gets memory.
func (p *planes) begin(ws *Workspace, s *slide, channels int) error {
	step := s.stride[2]
	p.s, p.width = s, max(s.out[2], leastLanes)
	p.phase = p.width + (s.size[2]-1)*s.dilation[2]/step
	p.row = p.phase * step
	p.lines = min(s.out[1], max(planeBytes/(4*p.row*s.stride[1]*s.size[0]), leastLines))
	p.rows = (p.lines-1)*s.stride[1] + (s.size[1]-1)*s.dilation[1] + 1
	if err := ws.New(&p.memory[0], Float32, s.size[0], p.rows, p.row); err != nil {
		return err
	}
	if err := ws.New(&p.memory[1], Float32, p.lines*p.width*channels+s.window()*planeLanes); err != nil {
		ws.Release(&p.memory[0])
		return err
	}
	p.x, p.sums = Slice[float32](&p.memory[0]), Slice[float32](&p.memory[1])
	p.weights = p.sums[p.lines*p.width*channels:]
	p.taps = p.taps[:0]
	for k := range s.window() {
		e := s.element(k)
		line, at := e[0]*p.rows+e[1]*s.dilation[1], e[2]*s.dilation[2]
		p.taps = append(p.taps, kernel.Tap{X: line*p.row + at%step*p.phase + at/step, W: k * planeLanes})
	}
	return nil
}

func (p *planes) end(ws *Workspace) {
	ws.Release(&p.memory[0])
	ws.Release(&p.memory[1])
	*p = planes{taps: p.taps[:0]}
}

// linesFrom returns how many lines of the result are summed up together, from one on: neighbours in a slice.
func (p *planes) linesFrom(first, end int) int {
	return min(p.lines, p.s.out[1]-first%p.s.out[1], end-first)
}

// fill copies what some lines of the result read of a channel, whose elements are so far apart.
func (p *planes) fill(x []float32, apart, first, lines int) {
	s := p.s
	i, j := first/s.out[1], first%s.out[1]*s.stride[1]-s.before[1]
	rows := (lines-1)*s.stride[1] + (s.size[1]-1)*s.dilation[1] + 1
	for a := range s.size[0] {
		slice, ok := s.place(0, i, a)
		to := p.x[a*p.rows*p.row:][:rows*p.row]
		for in := j; in < j+rows; in, to = in+1, to[p.row:] {
			if !ok || in < 0 || in >= s.in[1] {
				clear(to[:p.row])
				continue
			}
			p.split(to, x[(slice*s.in[1]+in)*s.in[2]*apart:], apart)
		}
	}
}

// split copies a line in phases.
func (p *planes) split(to, line []float32, apart int) {
	s := p.s
	step := s.stride[2]
	for r := range step {
		part := to[r*p.phase:][:p.phase]
		// Element i is column i·stride + r - before. Both bounds are rounded up, as in covered.
		shift := r - s.before[2]
		lo := min(max(0, divideDown(-shift+step-1, step)), len(part))
		hi := min(max(lo, divideDown(s.in[2]-shift+step-1, step)), len(part))
		clear(part[:lo])
		clear(part[hi:])
		if part = part[lo:hi]; len(part) == 0 {
			continue
		}
		at := (lo*step + shift) * apart
		if step*apart == 1 {
			copy(part, line[at:])
			continue
		}
		for i := range part {
			part[i] = line[at]
			at += step * apart
		}
	}
}

// weigh takes the weights of a channel, which are so far apart.
func (p *planes) weigh(w []float32, apart int) {
	for k := range p.taps {
		v, lanes := w[k*apart], p.weights[k*planeLanes:][:planeLanes]
		for i := range lanes {
			lanes[i] = v
		}
	}
}

// sum sets as many lines as were filled, width elements long, to the sums of a channel.
func (p *planes) sum(y []float32, lines int) {
	at := kernel.Positions{
		Lines: max(p.width/planeLanes, 1), Each: lines,
		DstLine: planeLanes, DstStep: p.width, XLine: planeLanes, XStep: p.s.stride[1] * p.row,
	}
	if at.Lines > at.Each {
		at = kernel.Positions{Lines: at.Each, Each: at.Lines, DstLine: at.DstStep, DstStep: at.DstLine, XLine: at.XStep, XStep: at.XLine}
	}
	kernel.Depthwise(y, p.x, p.weights, p.taps, at, min(p.width, planeLanes), nil, false)
	if last := p.width - planeLanes; last > 0 && p.width%planeLanes > 0 { // positions of which some are there already
		at = kernel.Positions{Lines: 1, Each: lines, DstStep: p.width, XStep: p.s.stride[1] * p.row}
		kernel.Depthwise(y[last:], p.x[last:], p.weights, p.taps, at, planeLanes, nil, false)
	}
}

// byPlanes reports whether planes compute a convolution whose groups have one channel of the input.
func byPlanes(w *Array) bool { return w.dtype == Float32 && allFinite(w) }

// planesForward is directForward for float32s.
func (c *convolution) planesForward() error {
	s := c.slide
	xs, ys, w := Slice[float32](c.x), Slice[float32](c.y), Slice[float32](c.w)
	size, all, n := s.window(), s.out[0]*s.out[1], s.out[2]
	return c.ws.tryPieces(c.y.Len()*size*summedDirectly, c.groups*c.out, 1, func(ws *Workspace, first, next int) error {
		p := &ws.planes
		if err := p.begin(ws, s, 1); err != nil {
			return err
		}
		defer p.end(ws)
		for item := range c.x.shape[0] {
			for group := first / c.out; group*c.out < next; group++ {
				for line, lines := 0, 0; line < all; line += lines {
					lines = p.linesFrom(line, all)
					p.fill(xs[c.inputAt(item, group):], 1, line, lines)
					for channel := max(first, group*c.out); channel < min(next, (group+1)*c.out); channel++ {
						p.weigh(w[channel*size:], 1)
						y := ys[(item*c.groups*c.out+channel)*c.columns+line*n:][:lines*n]
						if p.width == n {
							p.sum(y, lines)
							continue
						}
						p.sum(p.sums, lines)
						for i := range lines {
							copy(y[i*n:][:n], p.sums[i*p.width:])
						}
					}
				}
			}
		}
		return nil
	})
}

// planesLast is directLastForward for few channels.
func (c *lastConvolution) planesLast() error {
	s, m, n := c.slide, c.groups*c.out, c.slide.out[2]
	p, x, w := &c.ws.planes, Slice[float32](c.x), Slice[float32](c.w)
	if err := p.begin(c.ws, s, m); err != nil {
		return err
	}
	defer p.end(c.ws)
	all := s.out[0] * s.out[1]
	for line, lines := c.first/n, 0; line < c.rows/n; line += lines {
		item, at := line/all, line%all
		lines = p.linesFrom(at, min(all, at+c.rows/n-line))
		y := Slice[float32](c.y)[line*n*m:][:lines*n*m]
		part := lines * p.width
		for i := range m {
			if i%c.out == 0 {
				p.fill(x[item*s.inputs()*c.groups+i/c.out:], c.groups, at, lines)
			}
			p.weigh(w[i:], m)
			p.sum(p.sums[i*part:], lines)
		}
		if p.width == n {
			interleave.Block(y, p.sums, part, m, part)
		} else {
			for k := range lines {
				interleave.Block(y[k*n*m:][:n*m], p.sums[k*p.width:], part, m, n)
			}
		}
		c.complete.run(line*n*m, lines*n*m)
	}
	return nil
}
