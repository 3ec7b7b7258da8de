package component

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// tdnnComponent is y(t) = b + Σ_i x(t+o_i)·W_iᵀ over time offsets o_i, all of which are required.
// W_i is the i-th block of columns of the linear parameters. Without a bias, Propagate adds to its
// output.
//
// Unlike Kaldi's, it takes rows in any order and adds no padding: its Precomputed says, for each
// offset, where the input rows are, and the products read them in place.
type tdnnComponent struct {
	training
	blocked
	timeOffsets
	products              []productBlock // the blocks, for products over runs
	orthonormalConstraint float32
	useNaturalGradient    bool
	ng                    naturalGradient
}

func (c *tdnnComponent) Type() string   { return "TdnnComponent" }
func (c *tdnnComponent) InputDim() int  { return c.m.Cols / max(1, len(c.times)) }
func (c *tdnnComponent) OutputDim() int { return c.m.Rows }
func (c *tdnnComponent) Properties() Properties {
	return (Updatable | BackpropAdds | BackpropNeedsInput).with(PropagateAdds, len(c.bias) == 0)
}

// Init reads input-dim, output-dim, time-offsets, use-bias, param-stddev, bias-stddev, bias-mean,
// use-natural-gradient, rank-in, rank-out, alpha-in, alpha-out and num-samples-history.
func (c *tdnnComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	cfg.require("time-offsets")
	c.times, _ = cfg.Ints("time-offsets")
	if len(c.times) == 0 || repeated(c.times) {
		cfg.Fail("time-offsets must be a list of different integers")
	}
	in, out := cfg.dim("input-dim"), cfg.dim("output-dim")
	cols := in * len(c.times)
	c.weights = cfg.weights(out, cols)
	mean, stddev := cfg.Float("bias-mean", 0), cfg.Float("bias-stddev", 1)
	if cfg.Bool("use-bias", true) {
		c.bias = cfg.randnVector(out, mean, stddev)
	}
	c.orthonormalConstraint = cfg.Float("orthonormal-constraint", 0)
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
	c.ng.init(cfg, cols, out)
	c.ng.alphaIn, c.ng.alphaOut = cfg.Float("alpha-in", 4), cfg.Float("alpha-out", 4)
	if cfg.Err() == nil {
		c.split()
	}
}

func (c *tdnnComponent) split() {
	in := c.InputDim()
	c.required = c.times
	c.blocks = make([]weights, len(c.times))
	c.products = make([]productBlock, len(c.times))
	for i := range c.blocks {
		c.blocks[i] = weights{m: kernel.Cols(c.m, i*in, in), parts: new(parts)}
		c.products[i].w = &c.blocks[i]
	}
}

func (c *tdnnComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Ints("<TimeOffsets>", &c.times)
	c.affine.fields(f, true)
	f.Float("<OrthonormalConstraint>", &c.orthonormalConstraint)
	f.Bool("<UseNaturalGradient>", &c.useNaturalGradient)
	f.Float("<NumSamplesHistory>", &c.ng.numSamplesHistory)
	c.ng.alphas(f)
	c.ng.ranks(f)
	f.Check(len(c.times) > 0 && !repeated(c.times), "time offsets are missing or repeated")
	f.Check(divides(len(c.times), c.m.Cols), "%d columns for %d time offsets", c.m.Cols, len(c.times))
	c.splitAgain(f, c.split)
}

// tdnnIndexes is the Precomputed of a tdnnComponent.
type tdnnIndexes struct {
	// Runs says, for each time offset, which input rows the output rows take. The runs of an offset
	// cover each output row once.
	Runs [][]run
	// InputRows and OutputRows are the numbers of rows that the runs are about.
	InputRows, OutputRows int
}

func (x *tdnnIndexes) fits(blocks, inRows, outRows int) bool {
	return len(x.Runs) == blocks && x.InputRows == inRows && x.OutputRows == outRows
}

// PrecomputeIndexes returns tdnnIndexes.
func (c *tdnnComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	find := newRowFinder(in)
	pre := &tdnnIndexes{Runs: make([][]run, len(c.times)), InputRows: len(in), OutputRows: len(out)}
	rows := make([]int32, len(out))
	for i, o := range c.times {
		find.atOffset(out, o, rows)
		if j := slices.Index(rows, -1); j >= 0 {
			return nil, missingInput(c, out[j], o)
		}
		pre.Runs[i] = findRuns(rows)
		for _, r := range pre.Runs[i] {
			// Backprop adds the derivative to the input rows of a run in one product. If two
			// outputs took the same row, it would be written twice at a time.
			if r.InStep == 0 && r.Count > 1 {
				return nil, fmt.Errorf("%s: output %v appears twice: %w", c.Type(), out[r.Out], ErrShape)
			}
		}
	}
	return pre, nil
}

// Propagate computes y(t) = b + Σ_i x(t+o_i)·W_iᵀ, or adds the sum to y if there is no bias.
func (c *tdnnComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	x, ok := pass.Pre.(*tdnnIndexes)
	if !ok || !x.fits(len(c.blocks), in.Rows, out.Rows) {
		return nil, misfit(c, in.Rows, out.Rows)
	}
	ep := kernel.Epilogue{
		Bias: c.Bias(), BiasFirst: true, Accumulate: len(c.bias) == 0, Next: w.preparedForms(pass.Next), Threads: w.Threads,
	}
	mulRuns(w, c.products, x.Runs, ep, in, out)
	return nil, nil
}

// Backprop computes dx(t+o_i) += dy(t)·W_i, and dW_i += Σ_t dy(t)ᵀ·x(t+o_i), db += Σdy.
func (c *tdnnComponent) Backprop(w *Workspace, pass BackwardPass) error {
	x, ok := pass.Pre.(*tdnnIndexes)
	if !ok || !x.fits(len(c.blocks), pass.InValue.Rows, pass.OutDeriv.Rows) {
		return misfit(c, pass.InValue.Rows, pass.OutDeriv.Rows)
	}
	if wanted(pass.InDeriv) {
		c.inputDeriv(w, x, pass.OutDeriv, pass.InDeriv, addBlocks)
	}
	u, ok := pass.ToUpdate.(*tdnnComponent)
	if !ok || u.learningRate == 0 {
		return nil
	}
	u.restore()
	if len(u.bias) != 0 {
		w.Threads.AddColSums(u.bias, u.learningRate, pass.OutDeriv)
	}
	for i := range u.blocks {
		for _, r := range x.Runs[i] {
			w.Threads.MulTN(u.learningRate, r.output(pass.OutDeriv), r.input(pass.InValue), 1, u.blocks[i].m)
		}
		u.blocks[i].changed()
	}
	return nil
}

// derivMode is what is done with the derivative of an input.
type derivMode uint8

const (
	overwriteDeriv derivMode = iota
	addBlocks                // add block by block, as Kaldi does
	addDeriv                 // add the sum over blocks; only if the runs are in one piece
)

// inputDeriv computes dx(t+o_i) = Σ_i dy(t)·W_i, or adds that to dx.
func (c *tdnnComponent) inputDeriv(w *Workspace, x *tdnnIndexes, dy, dx kernel.Matrix, mode derivMode) {
	if !inOnePiece(x.Runs) {
		if mode == overwriteDeriv {
			w.Threads.Fill(dx, 0)
		}
		for i := range c.blocks {
			for _, r := range x.Runs[i] {
				w.mulBackward(&c.blocks[i], r.output(dy), r.input(dx), true)
			}
		}
		return
	}
	// One sum of products writes each row of dx. The rows between two edges take part in the same
	// products.
	// Kaldi adds the products of the blocks to dx one after the other, with a pass over dx for
	// each. Here the rows are cut where any block begins or ends, and each part is one sum over the
	// blocks that reach it.
	edges := w.rowEdges(x)
	for k := range edges[1:] {
		first, last := edges[k], edges[k+1]
		segs := w.segments(len(c.blocks))[:0]
		for i := range c.blocks {
			if r := x.Runs[i][0]; r.In <= first && last <= r.In+r.Count {
				segs = append(segs, kernel.Segment{X: kernel.Rows(dy, int(r.Out+first-r.In), int(last-first)), W: w.transposed(i, &c.blocks[i])})
			}
		}
		part := kernel.Rows(dx, int(first), int(last-first))
		if len(segs) > 0 {
			mode.multiply(w, segs, part)
		} else {
			mode.zero(w, part)
		}
	}
}

// multiply does with dx what the mode says.
func (m derivMode) multiply(w *Workspace, segs []kernel.Segment, dx kernel.Matrix) {
	ep := kernel.Epilogue{Accumulate: m == addBlocks, Threads: w.Threads}
	if m == addDeriv {
		ep.Alpha, ep.Residual = 1, dx
	}
	kernel.MulSegments(segs, ep, dx)
}

// zero is multiply for a derivative of zero. Adding it turns -0 into 0.
func (m derivMode) zero(w *Workspace, dx kernel.Matrix) {
	switch m {
	case overwriteDeriv:
		w.Threads.Fill(dx, 0)
	case addDeriv:
		defer w.Release(w.Mark())
		kernel.AddRow(dx, 1, w.zeroMatrix(1, dx.Cols).Data)
	}
}

// inOnePiece reports whether each block takes consecutive rows.
func inOnePiece(runs [][]run) bool {
	for _, rs := range runs {
		if len(rs) != 1 || rs[0].OutStep != 1 || rs[0].InStep != 1 {
			return false
		}
	}
	return true
}

// rowEdges returns, sorted and without repetitions, the input rows at which the input and the runs
// begin and end.
func (w *Workspace) rowEdges(x *tdnnIndexes) []int32 {
	w.edges = append(w.edges[:0], 0, int32(x.InputRows))
	for _, rs := range x.Runs {
		w.edges = append(w.edges, rs[0].In, rs[0].In+rs[0].Count)
	}
	slices.Sort(w.edges)
	return slices.Compact(w.edges)
}
