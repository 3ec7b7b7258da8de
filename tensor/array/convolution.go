package array

import "github.com/nnopt/nnopt/tensor/array/internal/interleave"

// patchBytes bounds the patches that a convolution gathers at a time, so that they stay in the
// second-level cache until they are multiplied. There are at least minPatches of them, because each
// product reads all weights.
const (
	patchBytes = 512 << 10
	minPatches = 64
	// A product of few columns may add up in another order than one of many. So columns are never
	// left over: fewer than spareCols go into the block before them.
	spareCols = 32
	// A channel of the input that few channels of the result read is not worth gathering: each is
	// summed up directly.
	directRows = 4
)

// A convolution is one of the three products below, of contiguous arrays.
type convolution struct {
	ws      *Workspace
	x, w, y *Array // [N, groups·in, …], [groups·out, in, …], [N, groups·out, …]
	slide   *slide
	groups  int
	in, out int // channels of a group
	terms   int // elements of a patch: the channels at the first element of the window, and so on
	columns int // positions
}

// Conv sets y to the cross-correlation of x and weights: with groups, the channels of x and y are
// divided into as many groups, each of which has the weights of its channels of y. The shapes are [N,
// C, spatial…], [M, C/groups, window…] and [N, M, positions…]. The element types are one of floats,
// and y is contiguous.
func (ws *Workspace) Conv(y, x, weights *Array, w Window, groups int) error {
	return ws.convolve(y, x, weights, y, w, groups, (*convolution).forward)
}

// ConvTranspose sets x to the sums to which Conv is the transpose: the gradient with respect to x,
// given that with respect to y. Weights may have been prepared by PhaseWeights; otherwise prepared is nil.
func (ws *Workspace) ConvTranspose(x, y, weights *Array, prepared func(ws *Workspace) *LastWeights, w Window, groups int) error {
	if p, ok := phasesOf(x, y, weights, w, groups); ok {
		if prepared == nil {
			rows, release, err := ws.contiguous(weights) // they may be one number that is repeated
			if err != nil {
				return err
			}
			defer release()
			weights = rows
			prepared = func(ws *Workspace) *LastWeights { return PhaseWeights(weights, w, ws.Threads) }
		}
		return ws.byPhases(p, x, y, weights, prepared, w)
	}
	return ws.convolve(x, x, weights, y, w, groups, (*convolution).backward)
}

// ConvWeights sets weights to the gradient with respect to the weights of Conv, given that with
// respect to y.
func (ws *Workspace) ConvWeights(weights, x, y *Array, w Window, groups int) error {
	return ws.convolve(weights, x, weights, y, w, groups, (*convolution).weights)
}

// convolve computes result, which is one of the other arrays.
func (ws *Workspace) convolve(result, x, weights, y *Array, w Window, groups int, compute func(*convolution) error) error {
	if result.Len() == 0 {
		return nil
	}
	if x.Len() == 0 || weights.Len() == 0 || y.Len() == 0 { // a sum of nothing
		result.zero()
		return nil
	}
	c := &convolution{ws: ws, groups: groups, in: weights.shape[1], out: y.shape[1] / groups}
	c.slide = newSlide(&w, x.Shape()[2:], y.Shape()[2:])
	c.terms, c.columns = c.in*c.slide.window(), c.slide.positions()
	for _, p := range []struct {
		to   **Array
		from *Array
	}{{&c.x, x}, {&c.w, weights}, {&c.y, y}} {
		a, release, err := ws.contiguous(p.from)
		if err != nil {
			return err
		}
		defer release()
		*p.to = a
	}
	return compute(c)
}

// turnWeights gives c weights with the channels of the input last, which is the order of patches.
// The function releases them.
func (c *convolution) turnWeights() (release func(), err error) {
	if c.in == 1 || c.slide.window() == 1 {
		return func() {}, nil
	}
	c.w, release, err = c.ws.copied(c.channelsLast(c.w))
	return release, err
}

// channelsLast returns a view of contiguous weights of all groups, with the channels of the input
// behind the elements of the window.
func (c *convolution) channelsLast(w *Array) *Array {
	t := new(Array)
	w.ReshapeTo(t, w.shape[0], c.in, c.slide.window())
	return t.Transpose(0, 2, 1)
}

// ofFloats returns the one of two functions that is for floats of a type.
func ofFloats[F any](dtype DType, singles, doubles F) F {
	if dtype == Float32 {
		return singles
	}
	return doubles
}

// zero sets all elements of a contiguous array of floats to 0.
func (a *Array) zero() {
	if a.dtype == Float32 {
		clear(Slice[float32](a))
	} else {
		clear(Slice[float64](a))
	}
}

// rowsAt returns a matrix in the memory of a contiguous array, from an element on.
func (a *Array) rowsAt(first, rows, cols, stride int) *Array {
	m := new(Array)
	m.rowsOf(a, first, rows, cols, stride)
	return m
}

// rowsOf makes a what rowsAt returns for an array.
func (a *Array) rowsOf(of *Array, first, rows, cols, stride int) {
	*a = Array{dtype: of.dtype, ndim: 2, offset: of.offset + first, data: of.data}
	a.shape[0], a.shape[1], a.strides[0], a.strides[1] = rows, cols, stride, 1
}

// turned returns the transpose of a matrix.
func (a *Array) turned() *Array {
	m := *a
	m.shape[0], m.shape[1], m.strides[0], m.strides[1] = a.shape[1], a.shape[0], a.strides[1], a.strides[0]
	return &m
}

// weightsOf returns the weights of a group, a row for each channel of y.
func (c *convolution) weightsOf(group int) *Array {
	return c.w.rowsAt(group*c.out*c.terms, c.out, c.terms, c.terms)
}

// resultOf returns n columns of y for an item and a group, a row for each channel.
func (c *convolution) resultOf(item, group, first, n int) *Array {
	return c.y.rowsAt((item*c.groups+group)*c.out*c.columns+first, c.out, n, c.columns)
}

// inputAt returns the first element of x for an item and a group.
func (c *convolution) inputAt(item, group int) int {
	return (item*c.groups + group) * c.in * c.slide.inputs()
}

// block returns how many columns to gather at a time: a multiple of spareCols, or all.
func (c *convolution) block() int {
	n := max(minPatches, patchBytes/(c.terms*c.x.dtype.Size())) &^ (spareCols - 1)
	if c.columns < n+spareCols {
		return c.columns
	}
	return n
}

// blocks calls f for the columns of each block, with patches to be filled and used.
func (c *convolution) blocks(f func(patches *Array, first int) error) error {
	step := c.block()
	memory := new(Array)
	if err := c.ws.New(memory, c.x.dtype, c.terms, min(step+spareCols, c.columns)); err != nil {
		return err
	}
	defer c.ws.Release(memory)
	for first := 0; first < c.columns; {
		n := step
		if left := c.columns - first; left < step+spareCols {
			n = left
		}
		if err := f(memory.rowsAt(0, c.terms, n, n), first); err != nil {
			return err
		}
		first += n
	}
	return nil
}

// gather fills patches with those of x.
func (c *convolution) gather(p *Array, item, group, first int) {
	at, n := c.inputAt(item, group), p.shape[1]
	c.ws.pieces(p.Len()*gathered, c.terms, 1, func(_ *Workspace, from, next int) {
		if c.x.dtype == Float32 {
			patches(Slice[float32](p), n, Slice[float32](c.x)[at:], c.in, c.slide, first, n, span{from, next})
		} else {
			patches(Slice[float64](p), n, Slice[float64](c.x)[at:], c.in, c.slide, first, n, span{from, next})
		}
	})
}

// add adds patches to x.
func (c *convolution) add(p *Array, item, group, first int) {
	at, n := c.inputAt(item, group), p.shape[1]
	// Divided by channels, and not by rows of patches as in gather: rows of one channel add to the same
	// elements.
	c.ws.pieces(p.Len()*gathered, c.in, 1, func(_ *Workspace, from, next int) {
		if c.x.dtype == Float32 {
			addPatches(Slice[float32](c.x)[at:], Slice[float32](p), n, c.in, c.slide, first, n, span{from, next})
		} else {
			addPatches(Slice[float64](c.x)[at:], Slice[float64](p), n, c.in, c.slide, first, n, span{from, next})
		}
	})
}

// gathered is what it takes to move an element of a patch, in picoseconds.
const gathered = 300

// each calls f for each item and group.
func (c *convolution) each(f func(item, group int) error) error {
	for item := range c.x.shape[0] {
		for group := range c.groups {
			if err := f(item, group); err != nil {
				return err
			}
		}
	}
	return nil
}

// direct reports whether sums are computed without patches.
func (c *convolution) direct() bool { return c.in == 1 && c.out <= directRows }

func (c *convolution) forward() error {
	if c.direct() {
		if byPlanes(c.w) {
			return c.planesForward()
		}
		ofFloats(c.x.dtype, directForward[float32], directForward[float64])(c)
		return nil
	}
	release, err := c.turnWeights()
	if err != nil {
		return err
	}
	defer release()
	// Items are multiplied one after the other, so that an element has the same bits in any batch.
	return c.each(func(item, group int) error {
		w := c.weightsOf(group)
		if c.slide.plain() {
			x := c.x.rowsAt(c.inputAt(item, group), c.in, c.columns, c.columns)
			return c.ws.Gemm(1, w, x, 0, c.resultOf(item, group, 0, c.columns))
		}
		return c.blocks(func(p *Array, first int) error {
			c.gather(p, item, group, first)
			return c.ws.Gemm(1, w, p, 0, c.resultOf(item, group, first, p.shape[1]))
		})
	})
}

// leastPhase is how many elements of a line are added as a vector rather than one by one: of 28, a call took a tenth longer
// than without phases, and of 80, three quarters of the time (Zen 4, 2026-11-29).
const leastPhase = 32

// backward adds to vectors, if need be in phases that are interleaved at last: one by one, that took as long as the product.
func (c *convolution) backward() error {
	s := c.slide
	// Phases of long strides would take much memory.
	if s.stride[2] == 1 || s.stride[2] >= s.in[2] || s.out[2] < leastPhase {
		return c.addBackward()
	}
	x := c.x
	columns := s.in[2]
	s.inPhases()
	c.x = new(Array)
	if err := c.ws.New(c.x, x.dtype, x.shape[0], x.shape[1], s.in[0], s.in[1], s.in[2]); err != nil {
		return err
	}
	defer c.ws.Release(c.x)
	if err := c.addBackward(); err != nil {
		return err
	}
	lines := x.Len() / columns
	c.ws.pieces(x.Len()*gathered, lines, 1, func(_ *Workspace, first, next int) {
		if x.dtype == Float32 {
			joinPhases(Slice[float32](x), Slice[float32](c.x), s, columns, span{first, next})
		} else {
			joinPhases(Slice[float64](x), Slice[float64](c.x), s, columns, span{first, next})
		}
	})
	return nil
}

// joinPhases sets some lines of x to those of phases.
func joinPhases[T float](x, phases []T, s *slide, columns int, lines span) {
	step := s.stride[2]
	whole := columns / step
	for i := lines.lo; i < lines.hi; i++ {
		line, from := x[i*columns:][:columns], phases[i*s.in[2]:][:s.in[2]]
		interleave.Block(line[:whole*step], from, s.phase, step, whole)
		for k := whole * step; k < columns; k++ {
			line[k] = from[k%step*s.phase+whole]
		}
	}
}

// addBackward is backward in the layout of the slide.
func (c *convolution) addBackward() error {
	// Patches overlap, so each of them is added.
	c.x.zero()
	if c.direct() {
		ofFloats(c.x.dtype, directBackward[float32], directBackward[float64])(c)
		return nil
	}
	release, err := c.turnWeights()
	if err != nil {
		return err
	}
	defer release()
	return c.each(func(item, group int) error {
		w := c.weightsOf(group).turned()
		at := c.inputAt(item, group)
		if c.slide.plain() {
			x := c.x.rowsAt(at, c.in, c.columns, c.columns)
			return c.ws.Gemm(1, w, c.resultOf(item, group, 0, c.columns), 0, x)
		}
		return c.blocks(func(p *Array, first int) error {
			n := p.shape[1]
			if err := c.ws.Gemm(1, w, c.resultOf(item, group, first, n), 0, p); err != nil {
				return err
			}
			c.add(p, item, group, first)
			return nil
		})
	})
}

func (c *convolution) weights() error {
	c.w.zero()
	if c.direct() {
		ofFloats(c.x.dtype, directWeights[float32], directWeights[float64])(c)
		return nil
	}
	// A product packs its right factor, and patches are the larger one most of the time. So what is
	// summed up is the transpose of the weights, of one group at a time.
	sums := new(Array)
	if err := c.ws.New(sums, c.w.dtype, c.terms, c.out); err != nil {
		return err
	}
	defer c.ws.Release(sums)
	for group := range c.groups {
		sums.zero()
		for item := range c.x.shape[0] {
			if err := c.addWeights(sums, item, group); err != nil {
				return err
			}
		}
		part := c.w.rowsAt(group*c.out*c.terms, c.out, c.terms, c.terms)
		product := new(Array)
		sums.ReshapeTo(product, c.slide.window(), c.in, c.out)
		c.ws.Copy(c.channelsLast(part), product.Transpose(2, 0, 1))
	}
	return nil
}

// addWeights adds what an item has to the weights of a group, of which there is a column for each
// channel of y.
func (c *convolution) addWeights(sums *Array, item, group int) error {
	if c.slide.plain() {
		x := c.x.rowsAt(c.inputAt(item, group), c.in, c.columns, c.columns)
		return c.ws.Gemm(1, x, c.resultOf(item, group, 0, c.columns).turned(), 1, sums)
	}
	return c.blocks(func(p *Array, first int) error {
		c.gather(p, item, group, first)
		return c.ws.Gemm(1, p, c.resultOf(item, group, first, p.shape[1]).turned(), 1, sums)
	})
}
