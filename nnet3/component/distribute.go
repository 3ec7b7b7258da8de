package component

import (
	"fmt"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// distributeComponent cuts each row of its input into blocks, and puts them out as rows with different x: with b blocks, the output
// at x is block x mod b of the input at x/b, rounded down.
type distributeComponent struct{ inputDim, outputDim int }

// Type is "DistributeComponent".
func (c *distributeComponent) Type() string { return "DistributeComponent" }

// InputDim is the number of columns of all blocks.
func (c *distributeComponent) InputDim() int { return c.inputDim }

// OutputDim is the number of columns of a block.
func (c *distributeComponent) OutputDim() int { return c.outputDim }

// Properties of the component: none.
func (c *distributeComponent) Properties() Properties { return 0 }

// Init knows input-dim and output-dim.
func (c *distributeComponent) Init(cfg *ConfigLine) error {
	c.inputDim, c.outputDim = cfg.dim("input-dim"), cfg.dim("output-dim")
	if c.inputDim%c.outputDim != 0 {
		cfg.Fail("input-dim=%d is no multiple of output-dim=%d", c.inputDim, c.outputDim)
	}
	return cfg.Err()
}

// Fields of the component.
func (c *distributeComponent) Fields(f *Fields) {
	f.blockDims(&c.inputDim, &c.outputDim)
}

// source returns where the output at an index comes from.
func (c *distributeComponent) source(out index.Index) (in index.Index, block int32) {
	blocks := int32(c.inputDim / c.outputDim)
	in = out
	in.X = floorDiv(out.X, blocks)
	return in, out.X - in.X*blocks
}

// InputIndexes appends the index of the row that holds the block.
func (c *distributeComponent) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	in, _ := c.source(out)
	return append(dst, in)
}

// IsComputable wants the row that holds the block.
func (c *distributeComponent) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	in, _ := c.source(out)
	if !has(in) {
		return false
	}
	if used != nil {
		*used = append(*used, in)
	}
	return true
}

// ReorderIndexes leaves the indexes as they are.
func (c *distributeComponent) ReorderIndexes(in, out *[]index.Index) {}

// blockSources is the Precomputed: for each output row, the row and the first column that it comes from.
type blockSources struct {
	from   [][2]int32
	inRows int
}

// PrecomputeIndexes finds where each output row comes from.
func (c *distributeComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	find := newRowFinder(in)
	pre := &blockSources{from: make([][2]int32, len(out)), inRows: len(in)}
	for i, x := range out {
		from, block := c.source(x)
		row := find.row(from)
		if row < 0 {
			return nil, missingInput(c, x, 0)
		}
		pre.from[i] = [2]int32{row, block * int32(c.outputDim)}
	}
	return pre, nil
}

func (c *distributeComponent) sources(pre Precomputed, inRows, outRows int) (*blockSources, error) {
	s, ok := pre.(*blockSources)
	if !ok || len(s.from) != outRows || s.inRows != inRows {
		return nil, fmt.Errorf("%s: precomputed indexes do not fit %d input and %d output rows: %w", c.Type(), inRows, outRows, ErrShape)
	}
	return s, nil
}

// Propagate copies the blocks.
func (c *distributeComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkDims(c, in, out); err != nil {
		return nil, err
	}
	s, err := c.sources(pre, in.Rows, out.Rows)
	if err != nil {
		return nil, err
	}
	for i, f := range s.from {
		copy(kernel.Row(out, i), kernel.Row(in, int(f[0]))[f[1]:])
	}
	return nil, nil
}

// Backprop copies the derivatives of the blocks back. Blocks that nothing was made of get zero.
func (c *distributeComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	s, err := c.sources(pre, inDeriv.Rows, outDeriv.Rows)
	if err != nil {
		return err
	}
	kernel.Fill(inDeriv, 0)
	for i, f := range s.from {
		kernel.AddVec(kernel.Row(inDeriv, int(f[0]))[f[1]:], 1, kernel.Row(outDeriv, i))
	}
	return nil
}
