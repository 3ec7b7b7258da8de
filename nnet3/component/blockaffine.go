package component

import "github.com/nnopt/nnopt/internal/kernel"

// blocked is embedded by components that multiply by their weights block by block.
type blocked struct {
	affine
	blocks []weights // views of the linear parameters
}

func (c *blocked) Prepare() {
	for b := range c.blocks {
		c.blocks[b].prepare()
	}
}

// Release leaves the blocks with their prepared forms.
func (c *blocked) Release() (spare []float32) {
	for b := range c.blocks {
		if c.blocks[b].release(); !c.blocks[b].released() {
			return nil
		}
	}
	spare, c.m.Data, c.pieces = c.m.Data, nil, c.blocks
	return spare
}

func (c *blocked) Renew(t *kernel.Threads) {
	for b := range c.blocks {
		c.blocks[b].renew(t)
	}
}

// splitAgain recreates the views in a walk that read or copied the parameters.
func (c *blocked) splitAgain(f *Fields, split func()) {
	if !f.Reading() && !f.Copying() {
		return
	}
	prepared := len(c.blocks) > 0 && c.blocks[0].prepared != nil
	split()
	if prepared {
		c.Prepare()
	}
}

// block returns block b of the n equal blocks of columns of m.
func block(m kernel.Matrix, b, n int) kernel.Matrix {
	cols := m.Cols / n
	return kernel.Cols(m, b*cols, cols)
}

// blocks reads input-dim, output-dim and, under a key of its own, the number of blocks that divides
// both. It returns the dimensions of a block.
func (c *ConfigLine) blocks(key string) (in, out, n int) {
	in, out, n = c.dim("input-dim"), c.dim("output-dim"), c.dimOr(key, 1)
	if in%n != 0 || out%n != 0 {
		c.Fail("input-dim=%d and output-dim=%d are not both multiples of %s=%d", in, out, key, n)
	}
	return max(in/n, 1), max(out/n, 1), n
}

// blockAffineComponent is an affine transform with a block-diagonal matrix. The linear parameters
// hold the blocks one below the other.
type blockAffineComponent struct {
	training
	blocked
	numBlocks int
}

func (c *blockAffineComponent) Type() string   { return "BlockAffineComponent" }
func (c *blockAffineComponent) InputDim() int  { return c.m.Cols * c.numBlocks }
func (c *blockAffineComponent) OutputDim() int { return c.m.Rows }
func (c *blockAffineComponent) Properties() Properties {
	return Simple | Updatable | BackpropNeedsInput | BackpropAdds
}

// Init reads input-dim, output-dim, num-blocks, param-stddev, bias-mean and bias-stddev.
func (c *blockAffineComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	var in, out int
	in, out, c.numBlocks = cfg.blocks("num-blocks")
	c.random(cfg, in, out*c.numBlocks, cfg.Float("bias-mean", 0), 1)
	cfg.makeRoom(16, c.numBlocks) // a view of each block, 64 bytes
	if cfg.Err() == nil {
		c.split()
	}
}

func (c *blockAffineComponent) split() {
	rows := c.m.Rows / c.numBlocks
	c.blocks = make([]weights, c.numBlocks)
	for b := range c.blocks {
		c.blocks[b].m = kernel.Rows(c.m, b*rows, rows)
	}
}

func (c *blockAffineComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Dim("<NumBlocks>", &c.numBlocks)
	c.affine.fields(f, false)
	f.oldGradient(&c.training)
	f.Check(divides(c.numBlocks, c.m.Rows) && c.m.Cols <= maxDim/c.numBlocks,
		"%d blocks in %d×%d parameters", c.numBlocks, c.m.Rows, c.m.Cols)
	c.splitAgain(f, c.split)
}

// Propagate computes y_b = x_b·W_bᵀ + b_b.
func (c *blockAffineComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	rows := c.m.Rows / c.numBlocks
	for b := range c.blocks {
		ep := kernel.Epilogue{Bias: c.bias[b*rows : (b+1)*rows], Threads: w.Threads}
		c.blocks[b].mul(block(in, b, c.numBlocks), ep, block(out, b, c.numBlocks))
	}
	return nil, nil
}

// Backprop computes dx_b += dy_b·W_b, and dW_b += dy_bᵀ·x_b, db += Σdy.
func (c *blockAffineComponent) Backprop(w *Workspace, pass BackwardPass) error {
	u, update := pass.ToUpdate.(*blockAffineComponent)
	if update {
		u.restore()
	}
	for b := range c.blocks {
		dy := block(pass.OutDeriv, b, c.numBlocks)
		if wanted(pass.InDeriv) {
			w.Threads.MulNN(1, dy, c.blocks[b].elements(), 1, block(pass.InDeriv, b, c.numBlocks))
		}
		if update {
			w.Threads.MulTN(u.learningRate, dy, block(pass.InValue, b, c.numBlocks), 1, u.blocks[b].m)
			u.blocks[b].changed()
		}
	}
	if update {
		w.Threads.AddColSums(u.bias, u.learningRate, pass.OutDeriv)
	}
	return nil
}

// repeatedAffineComponent applies one affine transform to each of numRepeats blocks of its input.
type repeatedAffineComponent struct {
	training
	affine
	numRepeats int
}

func (c *repeatedAffineComponent) Type() string                       { return "RepeatedAffineComponent" }
func (c *repeatedAffineComponent) InputDim() int                      { return c.m.Cols * c.numRepeats }
func (c *repeatedAffineComponent) OutputDim() int                     { return c.m.Rows * c.numRepeats }
func (c *repeatedAffineComponent) repeated() *repeatedAffineComponent { return c }
func (c *repeatedAffineComponent) Properties() Properties {
	return Simple | Updatable | BackpropNeedsInput | BackpropAdds | InputContiguous | OutputContiguous
}

// Init reads input-dim, output-dim, num-repeats, param-stddev, bias-mean and bias-stddev.
func (c *repeatedAffineComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	var in, out int
	in, out, c.numRepeats = cfg.blocks("num-repeats")
	c.random(cfg, in, out, cfg.Float("bias-mean", 0), 0)
}

func (c *repeatedAffineComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Dim("<NumRepeats>", &c.numRepeats)
	c.affine.fields(f, false)
	f.oldGradient(&c.training)
	f.Check(max(c.m.Cols, c.m.Rows) <= maxDim/max(c.numRepeats, 1),
		"%d repeats of %d×%d are too many", c.numRepeats, c.m.Rows, c.m.Cols)
}

// eachBlock calls f with the corresponding blocks of x, y and z, which may be empty: all at once if
// there are no gaps between the rows.
func (c *repeatedAffineComponent) eachBlock(x, y, z kernel.Matrix, f func(x, y, z kernel.Matrix)) {
	rx, okx := kernel.Reshape(x, x.Cols/c.numRepeats)
	ry, oky := kernel.Reshape(y, y.Cols/c.numRepeats)
	rz, okz := z, true
	if wanted(z) {
		rz, okz = kernel.Reshape(z, z.Cols/c.numRepeats)
	}
	if okx && oky && okz {
		f(rx, ry, rz)
		return
	}
	for b := range c.numRepeats {
		zb := z
		if wanted(z) {
			zb = block(z, b, c.numRepeats)
		}
		f(block(x, b, c.numRepeats), block(y, b, c.numRepeats), zb)
	}
}

// Propagate computes y = x·Wᵀ + b block by block.
func (c *repeatedAffineComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	c.eachBlock(in, out, kernel.Matrix{}, func(x, y, _ kernel.Matrix) { c.mul(x, kernel.Epilogue{Bias: c.bias, Threads: w.Threads}, y) })
	return nil, nil
}

// Backprop computes dx += dy·W, and dW += dyᵀ·x, db += Σdy, block by block.
func (c *repeatedAffineComponent) Backprop(w *Workspace, pass BackwardPass) error {
	var to *repeatedAffineComponent
	if u, ok := pass.ToUpdate.(interface {
		repeated() *repeatedAffineComponent
	}); ok {
		to = u.repeated()
	}
	c.eachBlock(pass.InValue, pass.OutDeriv, pass.InDeriv, func(x, dy, dx kernel.Matrix) {
		if wanted(dx) {
			w.Threads.MulNN(1, dy, c.elements(), 1, dx)
		}
		if to != nil {
			to.update(w, to.learningRate, x, dy)
		}
	})
	return nil
}

// naturalGradientRepeatedAffineComponent is repeatedAffineComponent, for a training that
// preconditions its updates. Backprop computes the plain gradient.
type naturalGradientRepeatedAffineComponent struct{ repeatedAffineComponent }

func (c *naturalGradientRepeatedAffineComponent) Type() string {
	return "NaturalGradientRepeatedAffineComponent"
}
