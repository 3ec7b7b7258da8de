package array

import (
	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
)

// winogradRows is about how many tiles are multiplied at a time. With fewer, products wait for the
// weights; the values of more would leave the second-level cache.
const winogradRows = 96

// WinogradWeights are weights of a convolution, combined for Winograd and prepared once. Any number
// of goroutines may use them.
type WinogradWeights struct {
	factors []*Factor // by point
}

// NewWinogradWeights combines weights, [3, 3, C, M] of float32s, for tiles of 2×2 or 4×4 positions.
// They are combined as float64s and rounded once. Threads share some of the work, unless t is nil.
func NewWinogradWeights(weights *Array, tile int, t *kernel.Threads) *WinogradWeights {
	points, in, out := tile+2, weights.shape[2], weights.shape[3]
	first := weights.channelsFirst().inRows()
	var one, two, three = kernel.WinogradWeights(tile, 1, 0, 0), kernel.WinogradWeights(tile, 0, 1, 0), kernel.WinogradWeights(tile, 0, 0, 1)
	p := &WinogradWeights{}
	w, combined := Slice[float32](first), make([]float32, points*in*out)
	for k := range points {
		// Along one dimension of the window, and then what comes of it along the other.
		a, b, c := one[k], two[k], three[k]
		for i := range in * out {
			w := w[9*i:][:9]
			x := float64(a*float64(w[0])) + float64(b*float64(w[3])) + float64(c*float64(w[6]))
			y := float64(a*float64(w[1])) + float64(b*float64(w[4])) + float64(c*float64(w[7]))
			z := float64(a*float64(w[2])) + float64(b*float64(w[5])) + float64(c*float64(w[8]))
			// Points ±p come one after the other: an even part plus or minus an odd one.
			combined[i], combined[(points-1)*in*out+i] = float32(x), float32(z)
			for j := 1; j < points-1; j += 2 {
				even, odd := float64(one[j]*x)+float64(three[j]*z), float64(two[j]*y)
				combined[j*in*out+i], combined[(j+1)*in*out+i] = float32(even+odd), float32(even-odd)
			}
		}
		for j := range points {
			f := &Factor{rows: in, cols: out}
			f.weights.SetWindows(t, kernel.Matrix{Rows: out, Cols: in, Stride: in, Data: combined[j*in*out:][:in*out]}, 1)
			p.factors = append(p.factors, f)
		}
	}
	return p
}

// A winograd is a convolution that is computed tile by tile.
type winograd struct {
	*lastConvolution
	factors      []*Factor
	tile, points int
	enter, leave kernel.Winograd
	// A dilation d makes an image d·d images, of every d-th line and pixel from one of the first ones on: these are
	// phases, down and across. Neighbours in a tile are of one phase.
	phases [2]int
	each   int // tiles across, of a phase
	// Rows of tiles of an item, and tiles of a row: phases follow each other across, and alternate down.
	down, across int

	// Memory. Values at the points of tiles are in planes, which are not a power of two apart.
	lines    []float32 // of the input, where some of them are padding
	combined []float32 // the lines of a row of tiles, combined
	values   []float32 // by point, tile and channel
	products []float32 // the same for the channels of the result
	parts    []float32 // products of a row of tiles, combined to lines
	last     []float32 // the result of a tile that is cut off
}

// Winograd is ConvLast for a window of 3×3 elements and strides of 1, with 4/9 of the
// multiplications for tiles of 2×2 positions, and 1/4 for tiles of 4×4. Results differ in rounding, and
// an element that is infinite, NaN or nearly too large makes others of its tile so. The weights may have
// been prepared; otherwise prepared is nil.
func (ws *Workspace) Winograd(y, x, weights *Array, prepared *WinogradWeights, w Window, tile int, e *Epilogue, args []*Array) error {
	if y.Len() == 0 || x.Len() == 0 || weights.Len() == 0 {
		return ws.ConvLast(y, x, weights, nil, w, 1, e, args)
	}
	if prepared == nil {
		prepared = NewWinogradWeights(weights, tile, ws.Threads)
	}
	x, release, err := ws.contiguous(x)
	if err != nil {
		return err
	}
	defer release()
	c := &winograd{lastConvolution: &lastConvolution{ws: ws, x: x, y: y, groups: 1, in: x.shape[3], out: y.shape[3]},
		factors: prepared.factors, tile: tile, points: tile + 2, enter: kernel.Winograd2In, leave: kernel.Winograd2Out}
	if tile == 4 {
		c.enter, c.leave = kernel.Winograd4In, kernel.Winograd4Out
	}
	c.slide = newSlide(&w, x.Shape()[1:3], y.Shape()[1:3])
	c.phases = [2]int{c.slide.dilation[1], c.slide.dilation[2]}
	tiles := func(d int) int { // of a phase, the first of which is one of the largest
		size := (c.slide.out[d] + c.slide.dilation[d] - 1) / c.slide.dilation[d]
		return (size + tile - 1) / tile
	}
	c.each = tiles(2)
	c.down, c.across = tiles(1)*c.phases[0], c.each*c.phases[1]
	rows := x.shape[0] * c.down
	// All products of a part read all weights, so parts should not be low.
	unit := max(min(winogradRows/4/c.across, rows), 1)
	if divide.Always.Load() {
		unit = 1
	}
	picoseconds := 1000 * int(kernel.ProductTime(rows*c.across*c.points*c.points, c.out, c.in))
	return ws.tryPieces(picoseconds, rows, unit, func(ws *Workspace, first, next int) error { return c.compute(ws, first, next, e, args) })
}

// compute computes some rows of tiles, with memory of its own.
func (c *winograd) compute(ws *Workspace, first, next int, e *Epilogue, args []*Array) error {
	own, convolution := *c, *c.lastConvolution
	c = &own
	c.lastConvolution = &convolution
	if err := ws.complete(&c.complete, e, c.y, args, false); err != nil {
		return err
	}
	defer c.complete.end()
	most := min(max(winogradRows/c.across, 1), next-first) // rows of tiles at a time
	memory := new(Array)
	if err := ws.New(memory, Float32, c.divide(nil, most)); err != nil {
		return err
	}
	defer ws.Release(memory)
	c.divide(Slice[float32](memory), most)
	for ; first < next; first += most {
		c.tiles(first, min(most, next-first))
	}
	return nil
}

// apart returns the distance of planes of a number of elements.
func apart(n int) int { return n + 16 }

// width is how many elements a row of tiles sees of a line.
func (c *winograd) width() int { return (c.across*c.tile + 2*c.phases[1]) * c.in }

// top is the first line of the result of a row of tiles.
func (c *winograd) top(row int) int {
	row %= c.down
	return row/c.phases[0]*c.tile*c.phases[0] + row%c.phases[0]
}

// divide divides memory for some rows of tiles, and returns how much they take.
func (c *winograd) divide(memory []float32, rows int) int {
	tiles, width := rows*c.across, c.width()
	total := 0
	for _, p := range []struct {
		part *[]float32
		n    int
	}{
		{&c.lines, c.points * c.slide.in[2] * c.in},
		{&c.combined, c.points * width},
		{&c.values, c.points * c.points * apart(tiles*c.in)},
		{&c.products, c.points * c.points * apart(tiles*c.out)},
		{&c.parts, c.tile * c.points * apart(c.across*c.out)},
		{&c.last, c.tile * c.out},
	} {
		if memory != nil {
			*p.part = memory[total:][:p.n]
		}
		total += p.n
	}
	clear(c.combined) // what lies beside the input stays zero
	return total
}

// tiles computes some rows of tiles of all items.
func (c *winograd) tiles(first, rows int) {
	var next [1]*kernel.Weights
	n := rows * c.across
	for r := range rows {
		c.prepare(first+r, r*c.across*c.in, apart(n*c.in))
	}
	for k, f := range c.factors {
		x := kernel.Matrix{Rows: n, Cols: c.in, Stride: c.in, Data: c.values[k*apart(n*c.in):][:n*c.in]}
		y := kernel.Matrix{Rows: n, Cols: c.out, Stride: c.out, Data: c.products[k*apart(n*c.out):][:n*c.out]}
		var e kernel.Epilogue
		if k+1 < len(c.factors) {
			next[0] = &c.factors[k+1].weights
			e.Next = next[:]
		}
		f.weights.Mul(x, e, y)
	}
	for r := range rows {
		c.finish(first+r, r*c.across*c.out, apart(n*c.out))
	}
}

// prepare sets the values of a row of tiles, from an element of each plane on.
func (c *winograd) prepare(row, at, plane int) {
	s := c.slide
	line := s.in[2] * c.in // elements
	item, top, step := row/c.down, c.top(row)-s.before[1], c.phases[0]
	x := Slice[float32](c.x)[item*s.in[1]*line:][:s.in[1]*line]
	// Tiles at the edge reach into the padding, which needs lines of zeros. All others read x where it is.
	if top < 0 || top+(c.points-1)*step >= s.in[1] {
		for i := range c.points {
			to := c.lines[i*line:][:line]
			if z := top + i*step; z < 0 || z >= s.in[1] {
				clear(to)
			} else {
				copy(to, x[z*line:])
			}
		}
		x, top, step = c.lines, 0, 1
	}
	width := c.width()
	left := s.before[2] * c.in
	n := min(line, width-left)
	// Down first, for the whole width: neighbouring tiles have two columns in common, which are combined once.
	c.enter.Combine(kernel.Lines{Data: c.combined[left:], Line: width}, kernel.Lines{Data: x[top*line:], Line: step * line}, 1, n)
	pixel := c.phases[1] * c.in // to the next one of a phase
	for i := range c.points {
		for phase := range c.phases[1] {
			from := kernel.Lines{Data: c.combined[i*width:][:width][phase*c.in:], Line: pixel, Next: c.tile * pixel}
			to := kernel.Lines{Data: c.values[i*c.points*plane+at+phase*c.each*c.in:], Line: plane, Next: c.in}
			c.enter.Combine(to, from, c.each, c.in)
		}
	}
}

// finish computes the result of a row of tiles, whose products begin at an element of each plane.
func (c *winograd) finish(row, at, plane int) {
	s := c.slide
	n := c.across * c.out
	part := apart(n)
	for j := range c.points {
		from := kernel.Lines{Data: c.products[j*plane+at:], Line: c.points * plane}
		c.leave.Combine(kernel.Lines{Data: c.parts[j*part:], Line: c.points * part}, from, 1, n)
	}
	top, line := c.top(row), s.out[2]*c.out // elements
	for i := range c.tile {
		at := top + i*c.phases[0]
		if at >= s.out[1] {
			break
		}
		begin := (row/c.down*s.out[1] + at) * line
		for phase := range c.phases[1] {
			c.finishLine(Slice[float32](c.y)[begin:][:line], c.parts[i*c.points*part+phase*c.each*c.out:], phase, part)
		}
		if c.phases[0] > 1 {
			c.complete.run(begin, line)
		}
	}
	if c.phases[0] == 1 { // then lines follow each other
		c.complete.run((row/c.down*s.out[1]+top)*line, min(c.tile, s.out[1]-top)*line)
	}
}

// finishLine sets the pixels of a phase in a line of the result to combinations of parts, which are so far apart.
func (c *winograd) finishLine(y, parts []float32, phase, part int) {
	step := c.phases[1]
	pixels := (c.slide.out[2] - phase + step - 1) / step
	whole, cut := pixels/c.tile, pixels%c.tile
	from := kernel.Lines{Data: parts, Line: part, Next: c.out}
	if whole > 0 {
		c.leave.Combine(kernel.Lines{Data: y[phase*c.out:], Line: step * c.out, Next: c.tile * step * c.out}, from, whole, c.out)
	}
	if cut > 0 {
		from.Data = from.Data[whole*c.out:]
		c.leave.Combine(kernel.Lines{Data: c.last, Line: c.out}, from, 1, c.out)
		for e := range cut {
			copy(y[((whole*c.tile+e)*step+phase)*c.out:][:c.out], c.last[e*c.out:])
		}
	}
}
