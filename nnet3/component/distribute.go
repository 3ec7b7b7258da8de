package component

import (
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// distributeComponent cuts each row of its input into blocks and outputs them as rows with
// different x: with b blocks, the output at x is block x mod b of the input at x/b, rounded down.
type distributeComponent struct{ equalBlocks }

func (c *distributeComponent) Type() string           { return "DistributeComponent" }
func (c *distributeComponent) Properties() Properties { return 0 }

// source returns the index and the block of the input that an output comes from.
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

// IsComputable needs the row that holds the block.
func (c *distributeComponent) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	in, _ := c.source(out)
	return computableFrom(in, has, used)
}

// blockSources is the Precomputed: for each output row, the row and the first column that it comes
// from.
type blockSources struct {
	from   [][2]int32
	inRows int
}

func (s *blockSources) fits(inRows, outRows int) bool {
	return s.inRows == inRows && len(s.from) == outRows
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

// Propagate copies the blocks.
func (c *distributeComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	s, ok := pass.Pre.(*blockSources)
	if !ok || !s.fits(in.Rows, out.Rows) {
		return nil, misfit(c, in.Rows, out.Rows)
	}
	for i, f := range s.from {
		copy(kernel.Row(out, i), kernel.Row(in, int(f[0]))[f[1]:])
	}
	return nil, nil
}

// Backprop copies the derivatives of the blocks back. Blocks that no output used get zero.
func (c *distributeComponent) Backprop(w *Workspace, pass BackwardPass) error {
	s, ok := pass.Pre.(*blockSources)
	if !ok || !s.fits(pass.InDeriv.Rows, pass.OutDeriv.Rows) {
		return misfit(c, pass.InDeriv.Rows, pass.OutDeriv.Rows)
	}
	w.Threads.Fill(pass.InDeriv, 0)
	for i, f := range s.from {
		kernel.AddVec(kernel.Row(pass.InDeriv, int(f[0]))[f[1]:], 1, kernel.Row(pass.OutDeriv, i))
	}
	return nil
}
