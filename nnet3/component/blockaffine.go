package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// blockAffineComponent is an affine transform whose matrix is block-diagonal. The blocks stand one below the other in the linear
// parameters.
type blockAffineComponent struct {
	training
	affine
	numBlocks int
	blocks    []weights // views of the linear parameters
}

// Type is "BlockAffineComponent".
func (c *blockAffineComponent) Type() string { return "BlockAffineComponent" }

// InputDim is the number of columns of all blocks.
func (c *blockAffineComponent) InputDim() int { return c.m.Cols * c.numBlocks }

// OutputDim is the number of rows of all blocks.
func (c *blockAffineComponent) OutputDim() int { return c.m.Rows }

// Properties of a block-diagonal affine component.
func (c *blockAffineComponent) Properties() Properties {
	return Simple | Updatable | BackpropNeedsInput | BackpropAdds
}

// Params returns the blocks one below the other, and b.
func (c *blockAffineComponent) Params() []Param { return c.params() }

// Init knows input-dim, output-dim, num-blocks, param-stddev, bias-mean, bias-stddev.
func (c *blockAffineComponent) Init(cfg *ConfigLine) error {
	c.training.init(cfg)
	var in, out int
	in, out, c.numBlocks = cfg.blocks("num-blocks")
	c.affine.random(cfg, in, out*c.numBlocks, 1)
	cfg.makeRoom(16, c.numBlocks) // a view of each block, 64 bytes
	if err := cfg.Err(); err != nil {
		return err
	}
	c.split()
	return nil
}

// split makes the views of the blocks.
func (c *blockAffineComponent) split() {
	rows := c.m.Rows / c.numBlocks
	c.blocks = make([]weights, c.numBlocks)
	for b := range c.blocks {
		c.blocks[b].m = kernel.Rows(c.m, b*rows, rows)
	}
}

// Fields of the component.
func (c *blockAffineComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Dim("<NumBlocks>", &c.numBlocks)
	prepared := len(c.blocks) > 0 && c.blocks[0].prepared != nil
	c.affine.fields(f, false)
	f.oldGradient(&c.training)
	f.Check(divides(c.numBlocks, c.m.Rows) && c.m.Cols <= maxDim/c.numBlocks, "%d blocks in %d×%d parameters", c.numBlocks, c.m.Rows, c.m.Cols)
	if f.Reading() || f.Copying() {
		c.split()
		if prepared {
			c.Prepare()
		}
	}
}

// Propagate computes y_b = x_b·W_bᵀ + b_b.
func (c *blockAffineComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	rows := c.m.Rows / c.numBlocks
	for b := range c.blocks {
		ep := kernel.Epilogue{Bias: c.bias[b*rows : (b+1)*rows]}
		c.blocks[b].mul(block(in, b, c.numBlocks), ep, block(out, b, c.numBlocks))
	}
	return nil, nil
}

// Backprop computes dx_b += dy_b·W_b, and dW_b += dy_bᵀ·x_b, db += Σdy.
func (c *blockAffineComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	u, update := toUpdate.(*blockAffineComponent)
	for b := range c.blocks {
		dy := block(outDeriv, b, c.numBlocks)
		if wanted(inDeriv) {
			kernel.MulNN(1, dy, c.blocks[b].m, 1, block(inDeriv, b, c.numBlocks))
		}
		if update {
			kernel.MulTN(u.learningRate, dy, block(inValue, b, c.numBlocks), 1, u.blocks[b].m)
			u.blocks[b].changed()
		}
	}
	if update {
		kernel.AddColSums(u.bias, u.learningRate, outDeriv)
	}
	return nil
}

// Prepare makes the forms of the blocks that products are fast with.
func (c *blockAffineComponent) Prepare() {
	for b := range c.blocks {
		c.blocks[b].prepare()
	}
}

// Renew makes the prepared forms of the blocks anew.
func (c *blockAffineComponent) Renew() {
	for b := range c.blocks {
		c.blocks[b].renew()
	}
}
