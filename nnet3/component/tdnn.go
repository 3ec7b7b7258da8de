package component

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// tdnnComponent is y(t) = b + Σ_i x(t+o_i)·W_iᵀ over time offsets o_i, all of which must be there. W_i is the i-th block of columns
// of the linear parameters. Without a bias, Propagate adds to its output.
//
// Unlike Kaldi's, it takes its rows in any order and adds no padding: what it precomputes says, for each offset, where the
// input rows are, and the products read them in place.
type tdnnComponent struct {
	training
	affine
	timeOffsets           []int32
	blocks                []weights      // views of the linear parameters, one per offset
	products              []productBlock // the same for products over runs
	orthonormalConstraint float32
	useNaturalGradient    bool
	ng                    naturalGradient
}

// tdnnIndexes is the Precomputed of a tdnnComponent.
type tdnnIndexes struct {
	// Runs holds, for each time offset, which input rows the output rows take. Together the runs of an offset cover each
	// output row once.
	Runs [][]run
	// InputRows and OutputRows are the numbers of rows that the runs are about.
	InputRows, OutputRows int
}

// Type is "TdnnComponent".
func (c *tdnnComponent) Type() string { return "TdnnComponent" }

// InputDim is the number of columns of W_i.
func (c *tdnnComponent) InputDim() int { return c.m.Cols / max(1, len(c.timeOffsets)) }

// OutputDim is the number of rows of W_i.
func (c *tdnnComponent) OutputDim() int { return c.m.Rows }

// Properties of a TDNN component.
func (c *tdnnComponent) Properties() Properties {
	return (Updatable | BackpropAdds | BackpropNeedsInput).with(PropagateAdds, len(c.bias) == 0)
}

// Params returns the W_i side by side, and b if there is one.
func (c *tdnnComponent) Params() []Param { return c.params() }

// Init knows input-dim, output-dim, time-offsets, use-bias, param-stddev, bias-stddev, bias-mean, use-natural-gradient,
// rank-in, rank-out, alpha-in, alpha-out, num-samples-history.
func (c *tdnnComponent) Init(cfg *ConfigLine) error {
	c.training.init(cfg)
	cfg.require("time-offsets")
	c.timeOffsets, _ = cfg.Ints("time-offsets")
	if len(c.timeOffsets) == 0 || repeated(c.timeOffsets) {
		cfg.Fail("time-offsets must be a list of different integers")
	}
	in, out := cfg.dim("input-dim"), cfg.dim("output-dim")
	cols := in * len(c.timeOffsets)
	c.m = cfg.randn(out, cols, 0, cfg.Float("param-stddev", 1/float32(math.Sqrt(float64(max(cols, 1))))))
	mean, stddev := cfg.Float("bias-mean", 0), cfg.Float("bias-stddev", 1)
	c.bias = nil
	if cfg.Bool("use-bias", true) {
		c.bias = cfg.randnVector(out, mean, stddev)
	}
	c.orthonormalConstraint = cfg.Float("orthonormal-constraint", 0)
	c.useNaturalGradient = cfg.Bool("use-natural-gradient", true)
	c.ng.init(cfg, cols, out)
	c.ng.alphaIn, c.ng.alphaOut = cfg.Float("alpha-in", 4), cfg.Float("alpha-out", 4)
	if err := cfg.Err(); err != nil {
		return err
	}
	c.split()
	return nil
}

// split makes the views of the blocks.
func (c *tdnnComponent) split() {
	in := c.InputDim()
	c.blocks = make([]weights, len(c.timeOffsets))
	c.products = make([]productBlock, len(c.timeOffsets))
	for i := range c.blocks {
		c.blocks[i] = weights{m: kernel.Cols(c.m, i*in, in), parts: new(parts)}
		c.products[i].w = &c.blocks[i]
	}
}

func repeated(list []int32) bool {
	sorted := slices.Sorted(slices.Values(list))
	return len(slices.Compact(sorted)) < len(list)
}

// Fields of the component.
func (c *tdnnComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Ints("<TimeOffsets>", &c.timeOffsets)
	prepared := len(c.blocks) > 0 && c.blocks[0].prepared != nil
	c.affine.fields(f, true)
	f.Float("<OrthonormalConstraint>", &c.orthonormalConstraint)
	f.Bool("<UseNaturalGradient>", &c.useNaturalGradient)
	f.Float("<NumSamplesHistory>", &c.ng.numSamplesHistory)
	f.Float("<AlphaInOut>", &c.ng.alphaIn)
	f.Float("", &c.ng.alphaOut)
	f.Int("<RankInOut>", &c.ng.rankIn)
	f.Int("", &c.ng.rankOut)
	f.Check(len(c.timeOffsets) > 0 && !repeated(c.timeOffsets), "time offsets are missing or repeated")
	f.Check(divides(len(c.timeOffsets), c.m.Cols), "%d columns for %d time offsets", c.m.Cols, len(c.timeOffsets))
	if f.Reading() || f.Copying() {
		c.split()
		if prepared {
			c.Prepare()
		}
	}
}

// InputIndexes appends the index at each time offset.
func (c *tdnnComponent) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	for _, o := range c.timeOffsets {
		dst = append(dst, shifted(out, o))
	}
	return dst
}

// shifted returns x with a time later by offset.
func shifted(x index.Index, offset int32) index.Index { return x.Add(index.Index{T: offset}) }

// IsComputable wants the input at every time offset.
func (c *tdnnComponent) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	for _, o := range c.timeOffsets {
		if !has(shifted(out, o)) {
			return false
		}
	}
	if used != nil {
		*used = c.InputIndexes(out, *used)
	}
	return true
}

// ReorderIndexes leaves the indexes as they are.
func (c *tdnnComponent) ReorderIndexes(in, out *[]index.Index) {}

// PrecomputeIndexes returns a *TdnnIndexes.
func (c *tdnnComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	find := newRowFinder(in)
	pre := &tdnnIndexes{Runs: make([][]run, len(c.timeOffsets)), InputRows: len(in), OutputRows: len(out)}
	rows := make([]int32, len(out))
	for i, o := range c.timeOffsets {
		find.atOffset(out, o, rows)
		if j := slices.Index(rows, -1); j >= 0 {
			return nil, missingInput(c, out[j], o)
		}
		pre.Runs[i] = findRuns(rows)
		for _, r := range pre.Runs[i] {
			if r.InStep == 0 && r.Count > 1 {
				return nil, fmt.Errorf("%s: output %v appears twice: %w", c.Type(), out[r.Out], ErrShape)
			}
		}
	}
	return pre, nil
}

// indexes checks what Propagate and Backprop are given.
func (c *tdnnComponent) indexes(pre Precomputed, inRows, outRows int) (*tdnnIndexes, error) {
	x, ok := pre.(*tdnnIndexes)
	if !ok || len(x.Runs) != len(c.timeOffsets) || x.InputRows != inRows || x.OutputRows != outRows {
		return nil, fmt.Errorf("%s: precomputed indexes do not fit %d input and %d output rows: %w", c.Type(), inRows, outRows, ErrShape)
	}
	return x, nil
}

// Propagate computes y(t) = b + Σ_i x(t+o_i)·W_iᵀ, or adds the sum to y if there is no bias.
func (c *tdnnComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkDims(c, in, out); err != nil {
		return nil, err
	}
	x, err := c.indexes(pre, in.Rows, out.Rows)
	if err != nil {
		return nil, err
	}
	ep := kernel.Epilogue{Bias: c.Bias(), BiasFirst: true, Accumulate: len(c.bias) == 0}
	mulRuns(w, c.products, x.Runs, ep, in, out)
	return nil, nil
}

// Backprop computes dx(t+o_i) += dy(t)·W_i, and dW_i += Σ_t dy(t)ᵀ·x(t+o_i), db += Σdy.
func (c *tdnnComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	x, err := c.indexes(pre, inValue.Rows, outDeriv.Rows)
	if err != nil {
		return err
	}
	if wanted(inDeriv) {
		if inDeriv.Rows != inValue.Rows {
			return shapeError(c, "backprop", inDeriv, outDeriv)
		}
		c.inputDeriv(w, x, outDeriv, inDeriv, true)
	}
	u, ok := toUpdate.(*tdnnComponent)
	if !ok || u.learningRate == 0 {
		return nil
	}
	if len(u.bias) != 0 {
		kernel.AddColSums(u.bias, u.learningRate, outDeriv)
	}
	for i := range u.blocks {
		for _, r := range x.Runs[i] {
			kernel.MulTN(u.learningRate, r.output(outDeriv), r.input(inValue), 1, u.blocks[i].m)
		}
		u.blocks[i].changed()
	}
	return nil
}

// inputDeriv computes dx(t+o_i) = Σ_i dy(t)·W_i, or adds that to dx.
func (c *tdnnComponent) inputDeriv(w *Workspace, x *tdnnIndexes, dy, dx kernel.Matrix, accumulate bool) {
	if !inOnePiece(x.Runs) {
		if !accumulate {
			kernel.Fill(dx, 0)
		}
		for i := range c.blocks {
			for _, r := range x.Runs[i] {
				w.mulBackward(&c.blocks[i], r.output(dy), r.input(dx), true)
			}
		}
		return
	}
	// Each row of dx is written once, by one sum of products. Between two edges the rows take part in the same products.
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
		switch {
		case len(segs) > 0:
			kernel.MulSegments(segs, kernel.Epilogue{Accumulate: accumulate}, part)
		case !accumulate:
			kernel.Fill(part, 0)
		}
	}
}

// inOnePiece reports whether each block takes rows that lie together.
func inOnePiece(runs [][]run) bool {
	for _, rs := range runs {
		if len(rs) != 1 || rs[0].OutStep != 1 || rs[0].InStep != 1 {
			return false
		}
	}
	return true
}

// rowEdges lists where the rows of the runs begin and end in the input, and the input itself, in order, each once.
func (w *Workspace) rowEdges(x *tdnnIndexes) []int32 {
	w.edges = append(w.edges[:0], 0, int32(x.InputRows))
	for _, rs := range x.Runs {
		w.edges = append(w.edges, rs[0].In, rs[0].In+rs[0].Count)
	}
	slices.Sort(w.edges)
	return slices.Compact(w.edges)
}

// Prepare makes the forms of the W_i that products are fast with.
func (c *tdnnComponent) Prepare() {
	for i := range c.blocks {
		c.blocks[i].prepare()
	}
}

// Renew makes the prepared forms of the W_i anew.
func (c *tdnnComponent) Renew() {
	for i := range c.blocks {
		c.blocks[i].renew()
	}
}
