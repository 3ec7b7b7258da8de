package component

import (
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
)

// lstmNonlinearityComponent is the part of an LSTM cell between its matrices. A row of the input
// holds, in C columns each, the parts of the input gate, the forget gate, the new content and the
// output gate that come from outside, and the previous state c':
//
//	i = σ(i' + w_ic·c');  f = σ(f' + w_fc·c');  c = f·c'·f_scale + i·tanh(g')·i_scale
//	o = σ(o' + w_oc·c);   m = o·tanh(c)·o_scale
//
// The output is c and m. With dropout, three more input columns are i_scale, f_scale and o_scale;
// otherwise these are 1.
type lstmNonlinearityComponent struct {
	training
	params     kernel.Matrix // rows w_ic, w_fc, w_oc
	useDropout bool

	count              float64
	valueSum, derivSum []float64  // 5×C, of i, f, tanh(g'), o, tanh(c)
	selfRepairConfig   []float32  // 5 thresholds for the average derivative, 5 scales
	selfRepairTotal    [5]float64 // how many elements were repaired
}

// numUnits is the number of nonlinearities in a cell.
const numUnits = 5

func (c *lstmNonlinearityComponent) Type() string { return "LstmNonlinearityComponent" }
func (c *lstmNonlinearityComponent) InputDim() int {
	if c.useDropout {
		return 5*c.params.Cols + 3
	}
	return 5 * c.params.Cols
}

func (c *lstmNonlinearityComponent) OutputDim() int { return 2 * c.params.Cols }
func (c *lstmNonlinearityComponent) Properties() Properties {
	return Simple | Updatable | BackpropNeedsInput
}
func (c *lstmNonlinearityComponent) UpdatesAlongside() {}
func (c *lstmNonlinearityComponent) Params() []Param   { return []Param{{"params", c.params}} }

// Init reads cell-dim, param-stddev, tanh-self-repair-threshold, sigmoid-self-repair-threshold,
// self-repair-scale and use-dropout.
func (c *lstmNonlinearityComponent) Init(cfg *ConfigLine) {
	c.training.init(cfg)
	dim := cfg.dim("cell-dim")
	c.params = cfg.randn(3, dim, 0, cfg.Float("param-stddev", 1))
	tanh, sigmoid := cfg.Float("tanh-self-repair-threshold", 0.2), cfg.Float("sigmoid-self-repair-threshold", 0.05)
	scale := cfg.Float("self-repair-scale", 1e-5)
	c.selfRepairConfig = []float32{sigmoid, sigmoid, tanh, sigmoid, tanh, scale, scale, scale, scale, scale}
	c.useDropout = cfg.Bool("use-dropout", false)
	if dim > maxDim/8 || tanh < 0 || tanh > 1 || sigmoid < 0 || sigmoid > 0.25 || scale < 0 {
		cfg.Fail("cell-dim is too large, or the settings of self-repair are out of range")
		return
	}
	if cfg.makeRoom(4*numUnits, dim) { // in double precision
		c.valueSum, c.derivSum = make([]float64, numUnits*dim), make([]float64, numUnits*dim)
	}
}

func (c *lstmNonlinearityComponent) Fields(f *Fields) {
	c.training.fields(f)
	// Files hold averages, memory holds sums. When f writes or shows, these are what it sees; when
	// it reads, they are overwritten, and the sums follow below.
	values, derivs, repaired := c.average(c.valueSum), c.average(c.derivSum), divided(c.selfRepairTotal[:], c.repairCount())
	f.Matrix("<Params>", &c.params)
	f.Matrix("<ValueAvg>", &values)
	f.Matrix("<DerivAvg>", &derivs)
	f.Vector("<SelfRepairConfig>", &c.selfRepairConfig)
	f.Vector("<SelfRepairProb>", &repaired)
	Optional(f, f.Bool, "<UseDropout>", &c.useDropout, false)
	f.Double("<Count>", &c.count)
	dim := c.params.Cols
	f.Check(c.params.Rows == 3 && dim > 0 && dim <= maxDim/8, "parameters of %d×%d", c.params.Rows, dim)
	for _, m := range []kernel.Matrix{values, derivs} {
		f.Check(m.Rows == numUnits && m.Cols == dim, "statistics of %d×%d for a cell of %d", m.Rows, m.Cols, dim)
	}
	f.Check(len(c.selfRepairConfig) == 2*numUnits && len(repaired) == numUnits,
		"self-repair has %d settings and %d counts", len(c.selfRepairConfig), len(repaired))
	switch {
	case f.Reading():
		c.valueSum, c.derivSum = doubles(elements(values)), doubles(elements(derivs))
		multiply(c.valueSum, c.count)
		multiply(c.derivSum, c.count)
		copy(c.selfRepairTotal[:], doubles(repaired))
		multiply(c.selfRepairTotal[:], c.repairCount())
	case f.Copying():
		c.valueSum, c.derivSum = slices.Clone(c.valueSum), slices.Clone(c.derivSum)
	}
}

// average returns sums in the form that files have.
func (c *lstmNonlinearityComponent) average(sums []float64) kernel.Matrix {
	dim := c.params.Cols
	return kernel.Matrix{Rows: numUnits, Cols: dim, Stride: dim, Data: divided(sums, c.count)}
}

// repairCount returns what files divide the numbers of repaired elements by.
func (c *lstmNonlinearityComponent) repairCount() float64 {
	if c.count == 0 {
		return 1
	}
	return c.count * float64(c.params.Cols)
}

// elements returns the elements of m row by row.
func elements(m kernel.Matrix) []float32 {
	v := make([]float32, 0, m.Rows*m.Cols)
	for i := range m.Rows {
		v = append(v, kernel.Row(m, i)...)
	}
	return v
}

// lstmCols is how many columns of a cell are computed for all rows before the next ones, so that
// what rows share stays in a near cache: sums, parameters and scratch memory. Longer pieces of rows
// are foreseen by the processor: with 128, 256, 512 and 1024 columns the gradient of a cell of 1024
// takes 1.63, 1.37, 1.18 and 1 times as long (Zen 5, November 2026).
const lstmCols = 1024

// lstmCells are some of the columns of a cell, first a row of its parts and then the values computed
// from them.
type lstmCells struct {
	lo, hi, end                       int // the columns, and where the last ones end
	wi, wf, wo                        []float32
	iPart, fPart, gPart, oPart, cPrev []float32
	iScale, fScale, oScale            float32
	i, f, g, o, tanhC                 []float32
	c                                 []float32
	e                                 []float32 // scratch
}

// newLstmCells takes scratch memory.
func newLstmCells(w *Workspace, dim int) lstmCells {
	n := min(dim, lstmCols)
	return lstmCells{end: dim, i: w.Vector(n), f: w.Vector(n), g: w.Vector(n), o: w.Vector(n), tanhC: w.Vector(n), e: w.Vector(n)}
}

// next moves to the next columns of a cell with the given parameters. It reports false after the
// last ones.
func (r *lstmCells) next(params kernel.Matrix) bool {
	r.lo, r.hi = r.hi, min(r.hi+lstmCols, r.end)
	n := r.hi - r.lo
	// The last piece may be shorter. Vectors have been made for the longest, and only shrink.
	for _, v := range []*[]float32{&r.i, &r.f, &r.g, &r.o, &r.tanhC, &r.e} {
		*v = (*v)[:n]
	}
	r.wi, r.wf, r.wo = r.of(kernel.Row(params, 0), 0), r.of(kernel.Row(params, 1), 0), r.of(kernel.Row(params, 2), 0)
	return n > 0
}

// of returns the columns of a part of a row that consists of parts of dim columns.
func (r *lstmCells) of(row []float32, first int) []float32 { return row[first+r.lo : first+r.hi] }

// forward computes the values of a row of the input, and writes the state to c.
func (r *lstmCells) forward(in []float32, dim int, c []float32) {
	r.iPart, r.fPart, r.gPart, r.oPart, r.cPrev = r.of(in, 0), r.of(in, dim), r.of(in, 2*dim), r.of(in, 3*dim), r.of(in, 4*dim)
	r.iScale, r.fScale, r.oScale = 1, 1, 1
	if len(in) > 5*dim {
		r.iScale, r.fScale, r.oScale = in[5*dim], in[5*dim+1], in[5*dim+2]
	}
	r.c = c
	kernel.MulAddVec(r.i, r.wi, r.cPrev, r.iPart)
	kernel.SigmoidVec(r.i, r.i)
	kernel.MulAddVec(r.f, r.wf, r.cPrev, r.fPart)
	kernel.SigmoidVec(r.f, r.f)
	kernel.TanhVec(r.g, r.gPart)
	scaledMul(r.c, r.fScale, r.f, r.cPrev)
	if r.iScale == 1 {
		kernel.AddMulVec(r.c, r.i, r.g)
	} else {
		scaledMul(r.e, r.iScale, r.i, r.g)
		kernel.AddVec(r.c, 1, r.e)
	}
	kernel.MulAddVec(r.o, r.wo, r.c, r.oPart)
	kernel.SigmoidVec(r.o, r.o)
	kernel.TanhVec(r.tanhC, r.c)
}

// scaledMul sets dst to alpha·a·b.
func scaledMul(dst []float32, alpha float32, a, b []float32) {
	if alpha == 1 {
		kernel.MulVec(dst, a, b)
		return
	}
	kernel.ScaleVec(dst, alpha, a)
	kernel.MulVec(dst, dst, b)
}

// Propagate computes c and m.
func (c *lstmNonlinearityComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	w.forwardRows(c, in, out, 2000)
	return nil, nil
}

func (c *lstmNonlinearityComponent) propagateRows(w *Workspace, in, out kernel.Matrix) {
	defer w.Release(w.Mark())
	d := c.params.Cols
	for r := newLstmCells(w, d); r.next(c.params); {
		for k := range in.Rows {
			y := kernel.Row(out, k)
			r.forward(kernel.Row(in, k), d, r.of(y, 0))
			scaledMul(r.of(y, d), r.oScale, r.o, r.tanhC)
		}
	}
}

// ZeroStats resets the statistics.
func (c *lstmNonlinearityComponent) ZeroStats() {
	clear(c.valueSum)
	clear(c.derivSum)
	c.selfRepairTotal = [numUnits]float64{}
	c.count = 0
}
