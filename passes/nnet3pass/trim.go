package nnet3pass

import (
	"context"
	"math"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// trimInputs copies the part of an input that is read last, so that the input, whose size is up to
// the caller, can be freed earlier. If that doesn't lower the peak memory, remove_assignments turns
// the copy into a view again.
func trimInputs() rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "trim_inputs", Doc: "an input of which only a part is needed late is kept as a copy of that part: f(x[block]) → f(copy(x[block]))",
		Fn: keepParts,
	}
}

func keepParts(_ context.Context, h *rewrite.Handle) error {
	g := h.Graph()
	prog, ok := lower.ProgramOf(g)
	if !ok {
		return nil
	}
	for i, x := range g.Inputs() {
		port := prog.Inputs[i]
		if !port.IsMatrix() || port.Carried > 0 || comesBack(prog, port) {
			continue
		}
		block, at := keptFor(x)
		if block == nil || maxOf(block) {
			continue
		}
		r := block.Owner().Op().(lower.Block).Rect
		// The copy is scheduled at its first use. That is early enough to free the input then, and
		// late enough not to keep both.
		t := lower.Term{Scale: 1, SrcRow: r.R0, NumRows: r.Rows(), SrcCol: r.C0, NumCols: r.Cols(), At: int32(at)}
		part := lower.NewAssemble(r.Rows(), r.Cols(), []lower.Term{t}, []*fgraph.Variable{x})
		part.Owner().SetOrigin(at)
		if _, err := h.Replace("", block.Owner(), fgraph.Replacement{Old: block, New: part}); err != nil {
			return err
		}
	}
	return nil
}

// comesBack reports whether the derivative of an input is an output. It has the size of the input
// and takes over its memory.
func comesBack(p *lower.Program, input lower.Port) bool {
	for _, port := range p.Outputs {
		if port.IsMatrix() && port.Node == input.Node && port.At > input.At {
			return true
		}
	}
	return false
}

// maxOf reports whether a block is the first four fifths of the rows, or more, of its matrix.
// Kaldi, too, extends a matrix by so little rather than copy it (ExtendMatrices).
func maxOf(block *fgraph.Variable) bool {
	a := block.Owner()
	x, r := lower.TypeOf(a.Inputs()[0]), a.Op().(lower.Block).Rect
	return r.R0 == 0 && r.Cols() == x.Cols && 5*int64(r.R1) >= 4*int64(x.Rows)
}

// keptFor returns the block of x that is read after everything else of x, and when it is read
// first. It returns nil if x itself, or several blocks, are read last.
func keptFor(x *fgraph.Variable) (block *fgraph.Variable, first int) {
	last, others := -1, -1 // when the block is last read, and the rest of x
	for _, c := range x.Clients() {
		if c.Apply == nil {
			return nil, 0
		}
		if _, ok := c.Apply.Op().(lower.Block); !ok {
			others = max(others, c.Apply.Origin())
			continue
		}
		part := c.Apply.Out()
		lo, hi := math.MaxInt, -1
		for _, c := range part.Clients() {
			if c.Apply == nil {
				return nil, 0
			}
			lo, hi = min(lo, c.Apply.Origin()), max(hi, c.Apply.Origin())
		}
		if hi > last {
			block, first, last, others = part, lo, hi, max(others, last)
		} else {
			others = max(others, hi)
		}
	}
	if last <= others {
		return nil, 0
	}
	return block, first
}
