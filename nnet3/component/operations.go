package component

// Operations are the numbers of floating-point operations in products of matrices. A multiply-add
// counts as two; element-wise operations don't count. The numbers measure the work to be done,
// however a component does it: they don't include rows that it computes twice or prepared forms of
// its parameters.
type Operations struct {
	Forward    int64 // of Propagate
	InputDeriv int64 // of Backprop, for the derivative of the input
	Update     int64 // of Backprop, for the gradient of the parameters
}

// OperationCounter is a component that multiplies matrices.
type OperationCounter interface {
	// Operations counts the operations for a number of rows of input and output. pre is the
	// Precomputed for these rows.
	Operations(pre Precomputed, inRows, outRows int) Operations
}

// productOps counts the product of a matrix of a number of rows and an n×k matrix of weights, and
// the products of the same size that compute the derivatives.
func productOps(rows, n, k int) Operations {
	ops := 2 * int64(rows) * int64(n) * int64(k)
	return Operations{ops, ops, ops}
}

func (o Operations) plus(p Operations) Operations {
	return Operations{o.Forward + p.Forward, o.InputDeriv + p.InputDeriv, o.Update + p.Update}
}

// Operations counts a multiply-add for each parameter of W and row. That is also right for a W that
// consists of blocks.
func (a *affine) Operations(_ Precomputed, _, outRows int) Operations {
	return productOps(outRows, a.m.Rows, a.m.Cols)
}

// Operations counts one product for each block.
func (c *repeatedAffineComponent) Operations(_ Precomputed, _, outRows int) Operations {
	return productOps(outRows*c.numRepeats, c.m.Rows, c.m.Cols)
}

// Operations counts one product for each place of the filters.
func (c *convolutionComponent) Operations(_ Precomputed, _, outRows int) Operations {
	return productOps(outRows*c.steps(), c.m.Rows, c.m.Cols)
}

// Operations counts one product for each height of the output, including the zeros outside the
// input.
func (c *timeHeightConvolutionComponent) Operations(_ Precomputed, _, outRows int) Operations {
	return productOps(outRows*c.heightOut, c.m.Rows, c.m.Cols)
}

// Operations counts the products with the W_i.
func (c *tdnnComponent) Operations(pre Precomputed, _, outRows int) Operations {
	return blockOps(c.products, pre, outRows)
}

// Operations counts the products of the blocks. There is no backward pass.
func (p *product) Operations(pre Precomputed, _, outRows int) Operations {
	return Operations{Forward: blockOps(p.blocks, pre, outRows).Forward}
}

// blockOps counts the products of blocks with their input rows: all rows, or those of the runs.
func blockOps(blocks []productBlock, pre Precomputed, outRows int) Operations {
	var sum Operations
	for i, b := range blocks {
		rows := outRows
		if x, ok := pre.(*tdnnIndexes); ok && i < len(x.Runs) {
			rows = 0
			for _, r := range x.Runs[i] {
				rows += int(r.Count)
			}
		}
		sum = sum.plus(productOps(rows, b.w.m.Rows, b.w.m.Cols))
	}
	return sum
}

// Operations counts the product with W.
func (c *gruNonlinearityComponent) Operations(_ Precomputed, _, outRows int) Operations {
	return productOps(outRows, c.cellDim(), c.recurrentDim())
}

// Operations counts the products of queries and keys, and of weights and values.
func (c *restrictedAttentionComponent) Operations(pre Precomputed, _, _ int) Operations {
	a, ok := pre.(*offsetRows)
	if !ok {
		return Operations{}
	}
	frames := 0
	for _, r := range a.rows {
		if r >= 0 {
			frames++
		}
	}
	forward := productOps(frames*c.numHeads, 1, c.keyDim+c.valueDim).Forward
	return Operations{Forward: forward, InputDeriv: 2 * forward}
}

// Operations sums over the chain.
func (c *compositeComponent) Operations(_ Precomputed, inRows, outRows int) Operations {
	var sum Operations
	for _, part := range c.components {
		if p, ok := part.(OperationCounter); ok {
			sum = sum.plus(p.Operations(nil, inRows, outRows))
		}
	}
	return sum
}

func (o *overwriting) Operations(pre Precomputed, inRows, outRows int) Operations {
	if b, ok := o.base.(OperationCounter); ok {
		return b.Operations(pre, inRows, outRows)
	}
	return Operations{}
}

func (a *adding) Operations(pre Precomputed, inRows, outRows int) Operations {
	return a.base.(OperationCounter).Operations(pre, inRows, outRows)
}
