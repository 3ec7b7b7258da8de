package component

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
)

// gruStats is embedded by the nonlinearities of gated recurrent units: the statistics of their
// tanh, and the settings of its self-repair.
type gruStats struct {
	count              float64
	valueSum, derivSum []float64
	selfRepairTotal    float64
	threshold, scale   float32
}

func (g *gruStats) init(cfg *ConfigLine, dim int) {
	if !cfg.makeRoom(4, dim) { // two of them in double precision
		return
	}
	*g = gruStats{
		valueSum: make([]float64, dim), derivSum: make([]float64, dim),
		threshold: cfg.Float("self-repair-threshold", 0.2),
		scale:     cfg.Float("self-repair-scale", 1e-5),
	}
	if g.threshold < 0 || g.scale < 0 {
		cfg.Fail("self-repair-threshold and self-repair-scale may not be negative")
	}
}

func (g *gruStats) fields(f *Fields, dim int) {
	f.averages("<ValueAvg>", &g.valueSum, g.count)
	f.averages("<DerivAvg>", &g.derivSum, g.count)
	f.Double("<SelfRepairTotal>", &g.selfRepairTotal)
	f.Double("<Count>", &g.count)
	f.Float("<SelfRepairThreshold>", &g.threshold)
	f.Float("<SelfRepairScale>", &g.scale)
	f.Check(len(g.valueSum) == dim && len(g.derivSum) == dim, "statistics of %d and %d elements for a cell of %d",
		len(g.valueSum), len(g.derivSum), dim)
	if f.Reading() {
		multiply(g.valueSum, g.count)
		multiply(g.derivSum, g.count)
	}
}

// ZeroStats resets the statistics.
func (g *gruStats) ZeroStats() {
	clear(g.valueSum)
	clear(g.derivSum)
	g.count, g.selfRepairTotal = 0, 0
}

// repair adds h to the statistics and, for units whose average derivative is too small, a term to
// the derivative of the argument of h that pushes it towards the middle. This is what Kaldi does on
// average, see nonlinearity.repairs.
func (g *gruStats) repair(h, dArg kernel.Matrix) {
	g.count += float64(h.Rows)
	for i := range h.Rows {
		for j, v := range kernel.Row(h, i) {
			y := float64(v)
			g.valueSum[j] += y
			g.derivSum[j] += 1 - float64(y*y)
		}
	}
	push := g.scale
	for j, sum := range g.derivSum {
		if sum >= float64(g.threshold)*g.count {
			continue
		}
		g.selfRepairTotal++
		for i := range h.Rows {
			kernel.Row(dArg, i)[j] -= float32(push * kernel.Row(h, i)[j])
		}
	}
}

// mix sets c to (1-z)∘h + z∘prev.
func mix(c, z, h, prev []float32) {
	z, h, prev = z[:len(c)], h[:len(c)], prev[:len(c)]
	for j := range c {
		c[j] = float32((1-z[j])*h[j]) + float32(z[j]*prev[j])
	}
}

// unmix computes the derivative of the argument of h from those of h = tanh(argument) and c =
// (1-z)∘h + z∘prev. It adds the derivatives of z and prev, if wanted.
func unmix(dArg, dh, dc, z, h, prev, dz, dPrev []float32) {
	for j := range dArg {
		d := dh[j] + float32(dc[j]*(1-z[j]))
		dArg[j] = d * (1 - float32(h[j]*h[j]))
		if dz != nil {
			dz[j] += float32(dc[j] * (prev[j] - h[j]))
			dPrev[j] += float32(dc[j] * z[j])
		}
	}
}

// gruNonlinearityComponent is the part of a gated recurrent unit between its matrices. A row of the
// input holds z and r (both after their sigmoid), the part h' from outside, the previous state c',
// and the previous projection s'. Without a projection, R = C, and s' is c':
//
//	h = tanh(h' + W·(s'∘r));  c = (1-z)∘h + z∘c'
//
// z, h' and c' have C columns, r and s' have R. The output is h and c.
type gruNonlinearityComponent struct {
	training
	gruStats
	w                       weights // C×R
	alpha                   float32
	rankIn, rankOut, period int
}

func (c *gruNonlinearityComponent) Type() string { return "GruNonlinearityComponent" }

// cellDim returns C.
func (c *gruNonlinearityComponent) cellDim() int { return c.w.m.Rows }

// recurrentDim returns R.
func (c *gruNonlinearityComponent) recurrentDim() int { return c.w.m.Cols }

func (c *gruNonlinearityComponent) InputDim() int {
	if c.cellDim() == c.recurrentDim() {
		return 4 * c.cellDim()
	}
	return 3*c.cellDim() + 2*c.recurrentDim()
}

func (c *gruNonlinearityComponent) OutputDim() int          { return 2 * c.cellDim() }
func (c *gruNonlinearityComponent) Prepare()                { c.w.prepare() }
func (c *gruNonlinearityComponent) Renew(t *kernel.Threads) { c.w.renew(t) }
func (c *gruNonlinearityComponent) Properties() Properties {
	return Simple | Updatable | BackpropAdds | BackpropNeedsInput | BackpropNeedsOutput
}

func (c *gruNonlinearityComponent) UpdatesAlongside()  {}
func (c *gruNonlinearityComponent) Release() []float32 { return c.w.release() }
func (c *gruNonlinearityComponent) Params() []Param {
	c.w.restore()
	return []Param{{"w_h", c.w.m}}
}

// Init reads cell-dim, recurrent-dim, param-stddev, self-repair-threshold, self-repair-scale,
// alpha, rank-in, rank-out and update-period.
func (c *gruNonlinearityComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	cell := cfg.dim("cell-dim")
	recurrent := cfg.dimOr("recurrent-dim", cell)
	if recurrent > cell || cell > maxDim/8 {
		cfg.Fail("recurrent-dim=%d is larger than cell-dim=%d, or cell-dim is too large", recurrent, cell)
	}
	c.gruStats.init(cfg, cell)
	c.w = weights{m: cfg.randn(cell, recurrent, 0, cfg.Float("param-stddev", 1/float32(math.Sqrt(float64(cell)))))}
	c.alpha = cfg.Float("alpha", 4)
	c.rankIn, c.rankOut, c.period = cfg.Int("rank-in", 20), cfg.Int("rank-out", 80), cfg.Int("update-period", 4)
}

func (c *gruNonlinearityComponent) Fields(f *Fields) {
	c.training.fields(f)
	cell, recurrent := c.cellDim(), c.recurrentDim()
	f.Dim("<CellDim>", &cell)
	f.Dim("<RecurrentDim>", &recurrent)
	f.weights("<w_h>", &c.w)
	f.Check(c.w.m.Rows == cell && c.w.m.Cols == recurrent && recurrent <= cell && cell <= maxDim/8,
		"parameters of %d×%d for dimensions %d and %d", c.w.m.Rows, c.w.m.Cols, cell, recurrent)
	c.gruStats.fields(f, cell)
	f.Float("<Alpha>", &c.alpha)
	f.Int("<RankInOut>", &c.rankIn)
	f.Int("", &c.rankOut)
	f.Int("<UpdatePeriod>", &c.period)
}

// gruInput holds the parts of an input, or of its derivative.
type gruInput struct{ z, r, h, c, s kernel.Matrix }

func (c *gruNonlinearityComponent) split(in kernel.Matrix) gruInput {
	n, r := c.cellDim(), c.recurrentDim()
	return gruInput{
		z: kernel.Cols(in, 0, n), r: kernel.Cols(in, n, r), h: kernel.Cols(in, n+r, n),
		c: kernel.Cols(in, 2*n+r, n), s: kernel.Cols(in, in.Cols-r, r),
	}
}

// Propagate computes h and c.
func (c *gruNonlinearityComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	defer w.Release(w.Mark())
	x, n := c.split(in), c.cellDim()
	h, state := kernel.Cols(out, 0, n), kernel.Cols(out, n, n)
	gated := w.Matrix(in.Rows, c.recurrentDim())
	w.Threads.MapRows2(gated, x.s, x.r, kernel.MulVec)
	w.Threads.Copy(h, x.h)
	c.w.mul(gated, kernel.Epilogue{Accumulate: true, Threads: w.Threads}, h)
	w.Threads.MapRows(h, h, kernel.TanhVec)
	for i := range in.Rows {
		mix(kernel.Row(state, i), kernel.Row(x.z, i), kernel.Row(h, i), kernel.Row(x.c, i))
	}
	return nil, nil
}

// Backprop computes the derivatives of the input and of W. ToUpdate gathers statistics and repairs
// itself.
func (c *gruNonlinearityComponent) Backprop(w *Workspace, pass BackwardPass) error {
	defer w.Release(w.Mark())
	x, n := c.split(pass.InValue), c.cellDim()
	h, dArg := kernel.Cols(pass.OutValue, 0, n), w.Matrix(pass.InValue.Rows, n)
	var dx gruInput
	if wanted(pass.InDeriv) {
		dx = c.split(pass.InDeriv)
	}
	unmixRows(dArg, pass.OutDeriv, x.z, h, x.c, dx.z, dx.c)
	gated := w.Matrix(pass.InValue.Rows, c.recurrentDim())
	if u, ok := pass.ToUpdate.(*gruNonlinearityComponent); ok {
		u.repair(h, dArg)
		w.Threads.MapRows2(gated, x.s, x.r, kernel.MulVec)
		u.w.restore()
		w.Threads.MulTN(u.learningRate, dArg, gated, 1, u.w.m)
		u.w.changed()
	}
	if wanted(pass.InDeriv) {
		w.Threads.Add(dx.h, 1, dArg)
		w.Threads.MulNN(1, dArg, c.w.elements(), 0, gated)
		w.Threads.MapRows2(dx.r, gated, x.s, kernel.AddMulVec)
		w.Threads.MapRows2(dx.s, gated, x.r, kernel.AddMulVec)
	}
	return nil
}

// unmixRows is unmix for matrices. dz and dPrev may be empty.
func unmixRows(dArg, outDeriv, z, h, prev, dz, dPrev kernel.Matrix) {
	n := dArg.Cols
	for i := range dArg.Rows {
		var dzRow, dPrevRow []float32
		if wanted(dz) {
			dzRow, dPrevRow = kernel.Row(dz, i), kernel.Row(dPrev, i)
		}
		dy := kernel.Row(outDeriv, i)
		unmix(kernel.Row(dArg, i), dy[:n], dy[n:], kernel.Row(z, i), kernel.Row(h, i), kernel.Row(prev, i), dzRow, dPrevRow)
	}
}
