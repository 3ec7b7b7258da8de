package array

import (
	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/kernel"
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
	first := weights.channelsFirst()
	if !first.Contiguous() {
		first = first.Clone()
	}
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
	down, across int // tiles of an item

	// Memory. Values at the points of tiles are in planes, which are not a power of two apart.
	lines    []float32 // of the input, where some of them are padding
	combined []float32 // the lines of a row of tiles, combined
	values   []float32 // by point, tile and channel
	products []float32 // the same for the channels of the result
	parts    []float32 // products of a row of tiles, combined to lines
	last     []float32 // the result of a tile that is cut off
}

// Winograd is ConvLast for a window of 3×3 elements, strides of 1 and no dilation, with 4/9 of the
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
	c := &winograd{lastConvolution: &lastConvolution{ws: ws, x: x, y: y, groups: 1, in: x.shape[3], out: y.shape[3]},
		factors: prepared.factors, tile: tile, points: tile + 2, enter: kernel.Winograd2In, leave: kernel.Winograd2Out}
	if tile == 4 {
		c.enter, c.leave = kernel.Winograd4In, kernel.Winograd4Out
	}
	if !x.Contiguous() {
		t, err := ws.scratchCopy(x)
		if err != nil {
			return err
		}
		defer ws.Release(t)
		c.x = t
	}
	c.slide = newSlide(&w, x.Shape()[1:3], y.Shape()[1:3])
	c.down, c.across = (c.slide.out[1]+tile-1)/tile, (c.slide.out[2]+tile-1)/tile
	rows := x.shape[0] * c.down
	// All products of a part read all weights, so parts should not be low.
	unit := max(min(winogradRows/4/c.across, rows), 1)
	if divide.Always.Load() {
		unit = 1
	}
	var failed error
	picoseconds := 1000 * int(kernel.ProductTime(rows*c.across*c.points*c.points, c.out, c.in))
	ws.pieces(picoseconds, rows, unit, func(ws *Workspace, first, next int) {
		if err := c.compute(ws, first, next, e, args); err != nil {
			ws.crewOf().fail(&failed, err)
		}
	})
	return failed
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

// divide divides memory for some rows of tiles, and returns how much they take.
func (c *winograd) divide(memory []float32, rows int) int {
	tiles, width := rows*c.across, (c.across*c.tile+2)*c.in
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
	item, top := row/c.down, row%c.down*c.tile-s.before[1]
	x := Slice[float32](c.x)[item*s.in[1]*line:][:s.in[1]*line]
	// Tiles at the edge reach into the padding, which needs lines of zeros. All others read x where it is.
	if top < 0 || top+c.points > s.in[1] {
		for i := range c.points {
			to := c.lines[i*line:][:line]
			if z := top + i; z < 0 || z >= s.in[1] {
				clear(to)
			} else {
				copy(to, x[z*line:])
			}
		}
		x, top = c.lines, 0
	}
	width := (c.across*c.tile + 2) * c.in
	left := s.before[2] * c.in
	n := min(line, width-left)
	// Down first, for the whole width: neighbouring tiles have two columns in common, which are combined once.
	c.enter.Combine(kernel.Lines{Data: c.combined[left:], Line: width}, kernel.Lines{Data: x[top*line:], Line: line}, 1, n)
	for i := range c.points {
		from := kernel.Lines{Data: c.combined[i*width:][:width], Line: c.in, Next: c.tile * c.in}
		to := kernel.Lines{Data: c.values[i*c.points*plane+at:], Line: plane, Next: c.in}
		c.enter.Combine(to, from, c.across, c.in)
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
	top := row % c.down * c.tile
	lines := min(c.tile, s.out[1]-top)
	begin := (row/c.down*s.out[1] + top) * s.out[2] * c.out
	whole, cut := s.out[2]/c.tile, s.out[2]%c.tile
	for i := range lines {
		y := Slice[float32](c.y)[begin+i*s.out[2]*c.out:][:s.out[2]*c.out]
		from := kernel.Lines{Data: c.parts[i*c.points*part:], Line: part, Next: c.out}
		c.leave.Combine(kernel.Lines{Data: y, Line: c.out, Next: c.tile * c.out}, from, whole, c.out)
		if cut > 0 {
			from.Data = from.Data[whole*c.out:]
			c.leave.Combine(kernel.Lines{Data: c.last, Line: c.out}, from, 1, c.out)
			copy(y[whole*c.tile*c.out:], c.last)
		}
	}
	c.complete.run(begin, lines*s.out[2]*c.out)
}
