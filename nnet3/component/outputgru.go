package component

import (
	"github.com/nnopt/nnopt/internal/kernel"
)

// outputGruNonlinearityComponent is the part of an output-gated recurrent unit between its
// matrices. A row of the input holds, in C columns each, z (after its sigmoid), the part h' from
// outside and the previous state c':
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

func (c *outputGruNonlinearityComponent) Type() string   { return "OutputGruNonlinearityComponent" }
func (c *outputGruNonlinearityComponent) InputDim() int  { return 3 * len(c.w) }
func (c *outputGruNonlinearityComponent) OutputDim() int { return 2 * len(c.w) }
func (c *outputGruNonlinearityComponent) Properties() Properties {
	return Simple | Updatable | BackpropAdds | BackpropNeedsInput | BackpropNeedsOutput
}

func (c *outputGruNonlinearityComponent) UpdatesAlongside() {}
func (c *outputGruNonlinearityComponent) Params() []Param   { return []Param{vectorParam("w_h", c.w)} }

// Init reads cell-dim, param-mean, param-stddev, self-repair-threshold, self-repair-scale, alpha,
// rank and update-period.
func (c *outputGruNonlinearityComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	cell := cfg.dim("cell-dim")
	if cell > maxDim/8 {
		cfg.Fail("cell-dim=%d is too large", cell)
		return
	}
	c.gruStats.init(cfg, cell)
	c.w = cfg.randnVector(cell, cfg.Float("param-mean", 0), cfg.Float("param-stddev", 1))
	c.alpha = cfg.Float("alpha", 4)
	c.rank, c.period = cfg.Int("rank", 8), cfg.Int("update-period", 10)
}

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
func (c *outputGruNonlinearityComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
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

// Backprop computes the derivatives of the input and of w. ToUpdate gathers statistics and repairs
// itself.
func (c *outputGruNonlinearityComponent) Backprop(w *Workspace, pass BackwardPass) error {
	defer w.Release(w.Mark())
	n := len(c.w)
	z, prev, h := kernel.Cols(pass.InValue, 0, n), kernel.Cols(pass.InValue, 2*n, n), kernel.Cols(pass.OutValue, 0, n)
	var dz, dh, dPrev kernel.Matrix
	if wanted(pass.InDeriv) {
		dz, dh, dPrev = kernel.Cols(pass.InDeriv, 0, n), kernel.Cols(pass.InDeriv, n, n), kernel.Cols(pass.InDeriv, 2*n, n)
	}
	dArg := w.Matrix(pass.InValue.Rows, n)
	unmixRows(dArg, pass.OutDeriv, z, h, prev, dz, dPrev)
	if u, ok := pass.ToUpdate.(*outputGruNonlinearityComponent); ok {
		u.repair(h, dArg)
		kernel.AddColProducts(u.w, u.learningRate, dArg, prev)
	}
	if wanted(pass.InDeriv) {
		w.Threads.Add(dh, 1, dArg)
		w.Threads.ScaleCols(dArg, dArg, c.w)
		w.Threads.Add(dPrev, 1, dArg)
	}
	return nil
}
