package array

import "github.com/nnopt/nnopt/internal/kernel"

const (
	// lastPatchBytes bounds the patches of a convolution with channels last that are gathered at a
	// time, and minLastRows is the least number of them: every product of some reads all weights.
	lastPatchBytes = 256 << 10
	minLastRows    = 96
	// epilogueBytes bounds the part of a product that waits for its epilogue.
	epilogueBytes = 128 << 10
)

// LastWeights are weights of convolutions with channels last, prepared once. Any number of
// goroutines may use them.
type LastWeights struct {
	groups  []*Factor
	kernels []*kernel.Weights // of the groups
	phases  []*LastWeights    // of a transposed convolution, each a convolution by itself
}

// NewLastWeights prepares weights, [window…, C/groups, M], which must not change any more. It returns
// nil if products of them gain nothing by that. Weights that are a view of [M, C/groups, window…] are read
// where they are. Threads share the work, unless t is nil.
func NewLastWeights(weights *Array, groups int, t *kernel.Threads) *LastWeights {
	if !PreparesLastWeights(weights, groups) {
		return nil
	}
	n := int(weights.ndim)
	m, in := weights.shape[n-1], weights.shape[n-2]
	c := lastConvolution{w: weights, groups: groups, out: m / groups, terms: weights.Len() / m}
	first := weights.channelsFirst()
	turned := !weights.Contiguous() && first.Contiguous()
	if !turned && !weights.Contiguous() {
		c.w = weights.Clone()
	}
	p := &LastWeights{}
	for g := range groups {
		var f *Factor
		if turned {
			f = &Factor{rows: c.terms, cols: c.out}
			f.weights.SetWindows(t, general32(first.rowsAt(g*c.out*c.terms, c.out, c.terms, c.terms)), c.terms/in)
		} else {
			f = NewFactor(c.weightsOf(g), t, nil)
		}
		p.groups, p.kernels = append(p.groups, f), append(p.kernels, &f.weights)
	}
	return p
}

// PreparesLastWeights reports whether NewLastWeights prepares weights.
func PreparesLastWeights(weights *Array, groups int) bool {
	n := int(weights.ndim)
	return weights.dtype == Float32 && weights.Len() > 0 && !directLast(weights.shape[n-2], weights.shape[n-1]/groups)
}

// channelsFirst returns weights, [window…, C, M], as a view [M, C, window…].
func (a *Array) channelsFirst() *Array {
	n := int(a.ndim)
	var order [MaxDims]int
	order[0], order[1] = n-1, n-2
	for d := range n - 2 {
		order[d+2] = d
	}
	return a.Transpose(order[:n]...)
}

// directLast is convolution.direct.
func directLast(in, out int) bool { return in == 1 && out <= directRows }

// A lastConvolution is a convolution with channels last, of contiguous arrays.
type lastConvolution struct {
	ws       *Workspace
	x, w, y  *Array // [N, spatial…, groups·in], [window…, in, groups·out], [N, positions…, groups·out]
	prepared *LastWeights
	integers *IntegerWeights        // or these
	codes    *kernel.IntegerWeights // or these
	complete completion
	slide    *slide
	groups   int
	in, out  int // channels of a group
	terms    int // elements of a patch
	first    int // the first position that is computed
	rows     int // behind the last one: the positions of all items, unless threads divide them

	// Headers, which would be on the heap otherwise: of copies, of patches and their memory, of some rows of y.
	slid    slide
	copies  [3]Array
	memory  Array
	some    [2]Array
	runs    []positionRun
	patches kernel.Patches
}

// ConvLast is Conv for arrays whose last dimension is the channels: x is [N, spatial…, C], the
// weights are [window…, C/groups, M], and y, which is contiguous, is [N, positions…, M]. It has the
// bits of Conv. The weights may have been prepared; otherwise w is nil. Then y is completed by
// the epilogue, if there is one, whose other inputs are args.
func (ws *Workspace) ConvLast(y, x, weights *Array, prepared *LastWeights, w Window, groups int, e *Epilogue, args []*Array) error {
	if y.Len() == 0 {
		return nil
	}
	last := int(x.ndim) - 1
	if ws.conv == nil {
		ws.conv = new(lastConvolution)
	}
	c := ws.conv
	defer c.forget()
	c.ws, c.x, c.w, c.y, c.prepared, c.groups = ws, x, weights, y, prepared, groups
	c.in, c.out, c.first, c.rows = weights.shape[last-1], y.shape[last]/groups, 0, y.Len()/y.shape[last]
	nothing := x.Len() == 0 || weights.Len() == 0
	c.slide = &c.slid
	c.slide.become(&w, x.Shape()[1:last], y.Shape()[1:last])
	if err := ws.complete(&c.complete, e, y, args, c.completes(e) && !nothing); err != nil {
		return err
	}
	if nothing { // a sum of nothing
		y.zero()
		c.complete.run(0, y.Len())
		return nil
	}
	c.terms = c.in * c.slide.window()
	var err error
	if c.x, err = c.contiguous(0, x); err == nil && prepared == nil {
		c.w, err = c.contiguous(1, weights)
	}
	if err == nil && c.out > 1 && c.byKernel() {
		err = c.repeatChannels()
	}
	if err != nil {
		return err
	}
	switch {
	case directLast(c.in, c.out):
		return c.sharedDirect(e, args, ofFloats(x.dtype, directLastForward[float32], directLastForward[float64]))
	case c.slide.plain():
		return c.shared(e, args, (*lastConvolution).plain)
	case c.inPlace():
		return c.shared(e, args, (*lastConvolution).windows)
	}
	return c.shared(e, args, (*lastConvolution).gathered)
}

// completes reports whether products do steps of an epilogue themselves.
func (c *lastConvolution) completes(e *Epilogue) bool {
	switch {
	case c.prepared != nil, c.integers != nil:
		return true
	case c.codes != nil:
		return direct(c.y, c.codes)
	}
	return c.byKernel() && e.bySums()
}

// contiguous returns a, or copy number k of it.
func (c *lastConvolution) contiguous(k int, a *Array) (*Array, error) {
	if a.Contiguous() {
		return a, nil
	}
	t := &c.copies[k]
	if err := c.ws.New(t, a.dtype, a.Shape()...); err != nil {
		return nil, err
	}
	if !c.ws.interleave(t, a) {
		c.ws.Copy(t, a)
	}
	return t, nil
}

// forget releases copies, and keeps nothing alive.
func (c *lastConvolution) forget() {
	c.complete.end()
	for k := range c.copies {
		if c.copies[k].data != nil {
			c.ws.Release(&c.copies[k])
		}
	}
	c.x, c.w, c.y, c.prepared, c.complete = nil, nil, nil, nil, completion{}
	for k := range c.copies {
		c.copies[k].data = nil
	}
	c.some[0].data, c.some[1].data, c.memory.data, c.patches.Data = nil, nil, nil, nil // and not all of them, which is a kilobyte
}

// weightsOf returns the weights of a group, a column for each channel of y.
func (c *lastConvolution) weightsOf(group int) *Array {
	return c.w.rowsAt(group*c.out, c.terms, c.out, c.groups*c.out)
}

// multiply sets some rows of the channels of a group to their product.
func (c *lastConvolution) multiply(patches *Array, group, first int) error {
	m, n := c.groups*c.out, patches.shape[0]
	y := &c.some[1]
	y.rowsOf(c.y, first*m+group*c.out, n, c.out, m)
	if c.prepared != nil {
		c.ws.meet(&c.prepared.groups[group].weights)
		return c.ws.mulFactor(y, patches, c.prepared.groups[group], c.complete.of(first, n, group*c.out, c.out))
	}
	return c.ws.Gemm(1, patches, c.weightsOf(group), 0, y)
}

// blocks calls f for blocks of rows, as many as bytes hold, but not fewer than least, unless there are
// not so many. Their sizes differ by one at most. Then it completes the block.
func (c *lastConvolution) blocks(rowBytes, bytes, least int, f func(c *lastConvolution, first, n int) error) error {
	m := c.groups * c.out
	rows := c.rows - c.first
	count := max(rows/max(bytes/rowBytes, least), 1)
	for b := range count {
		first := c.first + b*rows/count
		n := c.first + (b+1)*rows/count - first
		if err := f(c, first, n); err != nil {
			return err
		}
		c.complete.run(first*m, n*m)
	}
	return nil
}

// plain multiplies the elements of x where they are.
func (c *lastConvolution) plain() error {
	bytes := epilogueBytes
	if c.complete.left == nil {
		bytes = 1 << 62
	}
	return c.blocks(c.groups*c.out*c.x.dtype.Size(), bytes, minLastRows, func(c *lastConvolution, first, n int) error {
		channels := c.groups * c.in
		for g := range c.groups {
			c.some[0].rowsOf(c.x, first*channels+g*c.in, n, c.in, channels)
			if err := c.multiply(&c.some[0], g, first); err != nil {
				return err
			}
		}
		return nil
	})
}

// gathered multiplies patches, a row for each position.
func (c *lastConvolution) gathered() error {
	size := c.x.dtype.Size()
	most := min(c.rows, 2*max(lastPatchBytes/(c.terms*size), minLastRows))
	if err := c.ws.New(&c.memory, c.x.dtype, most, c.terms); err != nil {
		return err
	}
	defer c.ws.Release(&c.memory)
	return c.blocks(c.terms*size, lastPatchBytes, minLastRows, func(c *lastConvolution, first, n int) error {
		p := &c.some[0]
		p.rowsOf(&c.memory, 0, n, c.terms, c.terms)
		for g := range c.groups {
			if c.x.dtype == Float32 {
				lastPatches(Slice[float32](p), Slice[float32](c.x), c, g, first, n)
			} else {
				lastPatches(Slice[float64](p), Slice[float64](c.x), c, g, first, n)
			}
			if err := c.multiply(p, g, first); err != nil {
				return err
			}
		}
		return nil
	})
}

// lastPatches sets the rows of dst to the patches of a group for n positions of all items, from first
// on. In a row, elements of the window follow each other, and each has its channels. Padding is 0.
func lastPatches[T float](dst, x []T, c *lastConvolution, group, first, n int) {
	s, channels := c.slide, c.groups*c.in
	run := s.size[2] * c.in
	for row := first; row < first+n; row++ {
		item, at := row/s.positions(), row%s.positions()
		k := at % s.out[2]
		i, j := at/s.out[2]/s.out[1], at/s.out[2]%s.out[1]
		lo, hi := s.covered(k)
		left := k*s.stride[2] - s.before[2]
		for a := range s.size[0] {
			y, ok := s.place(0, i, a)
			for b := range s.size[1] {
				z, ok2 := s.place(1, j, b)
				part := dst[:run]
				dst = dst[run:]
				if !ok || !ok2 {
					clear(part)
					continue
				}
				clear(part[:lo*c.in])
				clear(part[hi*c.in:])
				line := x[(((item*s.in[0]+y)*s.in[1]+z)*s.in[2])*channels+group*c.in:]
				part = part[lo*c.in : hi*c.in]
				if s.dilation[2] == 1 && c.groups == 1 {
					if len(part) > 0 {
						copy(part, line[(left+lo)*channels:])
					}
					continue
				}
				for e := lo; e < hi; e++ {
					copy(part[:c.in], line[(left+e*s.dilation[2])*channels:])
					part = part[c.in:]
				}
			}
		}
	}
}

// covered returns which elements of the window in the last dimension are in the input at position k.
func (s *slide) covered(k int) (lo, hi int) {
	first, step := k*s.stride[2]-s.before[2], s.dilation[2]
	// (n + step - 1)/step rounded down is n/step rounded up: the first element that is not before the border.
	lo = min(max(0, divideDown(-first+step-1, step)), s.size[2])
	hi = min(max(lo, divideDown(s.in[2]-first+step-1, step)), s.size[2])
	return lo, hi
}

// A positionRun is n positions of a line, from first on, whose windows have elements lo to hi in the input.
type positionRun struct{ first, n, lo, hi int }

// runs appends the runs of a line: most positions lie in its middle.
func (s *slide) runs(list []positionRun) []positionRun {
	for k := range s.out[2] {
		lo, hi := s.covered(k)
		if n := len(list) - 1; n >= 0 && list[n].lo == lo && list[n].hi == hi {
			list[n].n++
		} else {
			list = append(list, positionRun{k, 1, lo, hi})
		}
	}
	return list
}

// inPlace reports whether products can read patches where they are in the input.
func (c *lastConvolution) inPlace() bool {
	return c.prepared != nil && c.x.dtype == Float32 && c.prepared.groups[0].weights.Divisible()
}

// windows multiplies patches where they are.
func (c *lastConvolution) windows() error {
	s := c.slide
	bytes := epilogueBytes
	if c.complete.left == nil {
		bytes = 1 << 62
	}
	c.patches = kernel.Patches{
		Pixel: c.groups * c.in, Channels: c.in,
		In: s.in, Out: s.out, Size: s.size, Stride: s.stride, Dilation: s.dilation, Before: s.before,
	}
	return c.blocks(4*c.groups*c.out, bytes, minLastRows, func(c *lastConvolution, first, n int) error {
		x, m := &c.patches, c.groups*c.out
		x.Data = Slice[float32](c.x)
		if c.groups > 1 && x.MulPatchesGroups(first, c.prepared.kernels, c.complete.of(first, n, 0, m), kernel.Matrix{Rows: n, Cols: m, Stride: m, Data: Slice[float32](c.y)[first*m:][:n*m]}) {
			return nil
		}
		for g := range c.groups {
			x.Data = Slice[float32](c.x)[g*c.in:]
			y := kernel.Matrix{Rows: n, Cols: c.out, Stride: m, Data: Slice[float32](c.y)[first*m+g*c.out:][:(n-1)*m+c.out]}
			c.ws.meet(&c.prepared.groups[g].weights)
			c.prepared.groups[g].weights.MulPatches(x, first, c.complete.of(first, n, g*c.out, c.out), y)
		}
		return nil
	})
}
