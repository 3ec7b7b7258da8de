package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// outputGruNonlinearityComponent is what happens in an output-gated recurrent unit around its matrices. A row of the input holds, C
// columns each, z (after its sigmoid), the part h' from outside and the previous state c':
//
//	h = tanh(h' + w∘c');  c = (1-z)∘h + z∘c'
//
// The output is h and c.
type outputGruNonlinearityComponent struct {
	training
	gruStats
	w            []float32
	alpha        float32
	rank, period int
}

// Type is "OutputGruNonlinearityComponent".
func (c *outputGruNonlinearityComponent) Type() string { return "OutputGruNonlinearityComponent" }

// CellDim is C.
func (c *outputGruNonlinearityComponent) CellDim() int { return len(c.w) }

// InputDim is 3C.
func (c *outputGruNonlinearityComponent) InputDim() int { return 3 * len(c.w) }

// OutputDim is 2C.
func (c *outputGruNonlinearityComponent) OutputDim() int { return 2 * len(c.w) }

// Properties of the nonlinearity.
func (c *outputGruNonlinearityComponent) Properties() Properties {
	return Simple | Updatable | BackpropAdds | BackpropNeedsInput | BackpropNeedsOutput
}

// UpdatesAlongside says that an update looks for units to repair.
func (c *outputGruNonlinearityComponent) UpdatesAlongside() {}

// Params returns w.
func (c *outputGruNonlinearityComponent) Params() []Param { return []Param{vectorParam("w_h", c.w)} }

// Init knows cell-dim, param-mean, param-stddev, self-repair-threshold, self-repair-scale, alpha, rank, update-period.
func (c *outputGruNonlinearityComponent) Init(cfg *ConfigLine) error {
	c.training.init(cfg)
	cell := cfg.dim("cell-dim")
	if cell > maxDim/8 {
		cfg.Fail("cell-dim=%d is too large", cell)
		return cfg.Err()
	}
	c.gruStats.init(cfg, cell)
	c.w = cfg.randnVector(cell, cfg.Float("param-mean", 0), cfg.Float("param-stddev", 1))
	c.alpha = cfg.Float("alpha", 4)
	c.rank, c.period = cfg.Int("rank", 8), cfg.Int("update-period", 10)
	return cfg.Err()
}

// Fields of the component.
func (c *outputGruNonlinearityComponent) Fields(f *Fields) {
	c.training.fields(f)
	cell := len(c.w)
	f.Dim("<CellDim>", &cell)
	f.Vector("<w_h>", &c.w)
	f.Check(len(c.w) == cell && cell <= maxDim/8, "%d parameters for a cell of %d", len(c.w), cell)
	c.gruStats.fields(f, cell)
	f.Float("<Alpha>", &c.alpha)
	f.Int("<Rank>", &c.rank)
	f.Int("<UpdatePeriod>", &c.period)
}

// Propagate computes h and c.
func (c *outputGruNonlinearityComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	n := len(c.w)
	for i := range in.Rows {
		x, y := kernel.Row(in, i), kernel.Row(out, i)
		h, prev := y[:n], x[2*n:]
		kernel.MulAddVec(h, c.w, prev, x[n:2*n])
		kernel.TanhVec(h, h)
		mix(y[n:], x[:n], h, prev)
	}
	return nil, nil
}

// Backprop computes the derivatives of the input and of w. toUpdate gets statistics, and repairs itself.
func (c *outputGruNonlinearityComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	mark := w.Mark()
	defer w.Release(mark)
	n := len(c.w)
	z, prev, h := kernel.Cols(inValue, 0, n), kernel.Cols(inValue, 2*n, n), kernel.Cols(outValue, 0, n)
	var dz, dh, dPrev kernel.Matrix
	if wanted(inDeriv) {
		dz, dh, dPrev = kernel.Cols(inDeriv, 0, n), kernel.Cols(inDeriv, n, n), kernel.Cols(inDeriv, 2*n, n)
	}
	dArg := w.Matrix(inValue.Rows, n)
	unmixRows(dArg, outDeriv, z, h, prev, dz, dPrev)
	if u, ok := toUpdate.(*outputGruNonlinearityComponent); ok {
		u.repair(h, dArg)
		kernel.AddColProducts(u.w, u.learningRate, dArg, prev)
	}
	if wanted(inDeriv) {
		kernel.Add(dh, 1, dArg)
		kernel.ScaleCols(dArg, dArg, c.w)
		kernel.Add(dPrev, 1, dArg)
	}
	return nil
}
