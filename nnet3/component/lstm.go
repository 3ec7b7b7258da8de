package component

import (
	"slices"

	"github.com/nnopt/nnopt/kernel"
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

// lstmRow holds the parts of a row of the input and the values computed from them.
type lstmRow struct {
	iPart, fPart, gPart, oPart, cPrev []float32
	iScale, fScale, oScale            float32
	i, f, g, o, tanhC                 []float32
	c                                 []float32
	e                                 []float32 // scratch
}

// newLstmRow takes scratch memory for rows of C columns. The caller sets c.
func newLstmRow(w *Workspace, dim int) lstmRow {
	return lstmRow{i: w.Vector(dim), f: w.Vector(dim), g: w.Vector(dim), o: w.Vector(dim), tanhC: w.Vector(dim), e: w.Vector(dim)}
}

// forward computes the values of a row of the input, and writes the state to r.c.
func (c *lstmNonlinearityComponent) forward(in []float32, r *lstmRow) {
	d := c.params.Cols
	r.iPart, r.fPart, r.gPart, r.oPart, r.cPrev = in[:d], in[d:2*d], in[2*d:3*d], in[3*d:4*d], in[4*d:5*d]
	r.iScale, r.fScale, r.oScale = 1, 1, 1
	if c.useDropout {
		r.iScale, r.fScale, r.oScale = in[5*d], in[5*d+1], in[5*d+2]
	}
	wi, wf, wo := kernel.Row(c.params, 0), kernel.Row(c.params, 1), kernel.Row(c.params, 2)
	kernel.MulAddVec(r.i, wi, r.cPrev, r.iPart)
	kernel.SigmoidVec(r.i, r.i)
	kernel.MulAddVec(r.f, wf, r.cPrev, r.fPart)
	kernel.SigmoidVec(r.f, r.f)
	kernel.TanhVec(r.g, r.gPart)
	scaledMul(r.c, r.fScale, r.f, r.cPrev)
	if r.iScale == 1 {
		kernel.AddMulVec(r.c, r.i, r.g)
	} else {
		scaledMul(r.e, r.iScale, r.i, r.g)
		kernel.AddVec(r.c, 1, r.e)
	}
	kernel.MulAddVec(r.o, wo, r.c, r.oPart)
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
func (c *lstmNonlinearityComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	defer w.Release(w.Mark())
	d := c.params.Cols
	r := newLstmRow(w, d)
	for k := range in.Rows {
		y := kernel.Row(out, k)
		r.c = y[:d]
		c.forward(kernel.Row(in, k), &r)
		scaledMul(y[d:], r.oScale, r.o, r.tanhC)
	}
	return nil, nil
}

// Backprop computes the derivatives of the input and of w_ic, w_fc and w_oc. It adds terms that
// repair units whose average derivative so far is too small. ToUpdate also gathers statistics.
func (c *lstmNonlinearityComponent) Backprop(w *Workspace, pass BackwardPass) error {
	defer w.Release(w.Mark())
	d := c.params.Cols
	u, _ := pass.ToUpdate.(*lstmNonlinearityComponent)
	if u != nil && u.params.Cols != d {
		return shapeError(c, "component to update", pass.InDeriv, pass.OutDeriv)
	}
	b := lstmBackward{lstmRow: newLstmRow(w, d), repair: c.repairs(w), dParams: w.ZeroMatrix(3, d)}
	b.c, b.dState = w.Vector(d), w.Vector(d)
	for k := range numUnits {
		b.repaired[k] = slices.ContainsFunc(kernel.Row(b.repair, k), func(s float32) bool { return s != 0 })
	}
	scratch, one := w.Vector(c.InputDim()), w.Vector(d)
	for j := range one {
		one[j] = 1
	}
	for k := range pass.InValue.Rows {
		c.forward(kernel.Row(pass.InValue, k), &b.lstmRow)
		dx := scratch
		if wanted(pass.InDeriv) {
			dx = kernel.Row(pass.InDeriv, k)
		}
		c.backward(&b, kernel.Row(pass.OutDeriv, k), dx)
		if u != nil {
			u.addStats(&b.lstmRow, one)
		}
	}
	if u != nil {
		kernel.Add(u.params, u.learningRate, b.dParams)
		u.count += float64(pass.InValue.Rows)
		for k := range numUnits {
			for _, s := range kernel.Row(b.repair, k) {
				if s != 0 {
					u.selfRepairTotal[k] += float64(pass.InValue.Rows)
				}
			}
		}
	}
	return nil
}

// repairs returns the scale of self-repair of each unit, 0 for units that need none.
func (c *lstmNonlinearityComponent) repairs(w *Workspace) kernel.Matrix {
	m := w.ZeroMatrix(numUnits, c.params.Cols)
	for k := range numUnits {
		row := kernel.Row(m, k)
		least := float64(c.selfRepairConfig[k]) * (c.count + 1)
		for j, sum := range c.derivSum[k*len(row) : (k+1)*len(row)] {
			if sum < least {
				row[j] = c.selfRepairConfig[numUnits+k]
			}
		}
	}
	return m
}

// lstmBackward holds the values of a row and what else a backward pass needs.
type lstmBackward struct {
	lstmRow
	repair   kernel.Matrix
	repaired [numUnits]bool // the rows of repair that are not zero
	dParams  kernel.Matrix
	dState   []float32
}

// backward computes the derivatives of a row. Units in need of repair get a term that pushes their
// input towards the middle.
func (c *lstmNonlinearityComponent) backward(b *lstmBackward, dy, dx []float32) {
	d := c.params.Cols
	wi, wf, wo := kernel.Row(c.params, 0), kernel.Row(c.params, 1), kernel.Row(c.params, 2)
	di, df, dg, do, dPrev := dx[:d], dx[d:2*d], dx[2*d:3*d], dx[3*d:4*d], dx[4*d:5*d]
	dwi, dwf, dwo := kernel.Row(b.dParams, 0), kernel.Row(b.dParams, 1), kernel.Row(b.dParams, 2)
	dc, dm := dy[:d], dy[d:]
	scaledMul(b.e, b.oScale, b.tanhC, dm)
	kernel.SigmoidDerivVec(do, b.o, b.e)
	b.repairSigmoid(do, b.o, 3)
	scaledMul(b.e, b.oScale, b.o, dm)
	dState := b.dState
	kernel.TanhDerivVec(dState, b.tanhC, b.e)
	kernel.AddVec(dState, 1, dc)
	kernel.AddMulVec(dState, wo, do)
	b.repairTanh(dState, b.tanhC, 4)

	scaledMul(b.e, b.fScale, dState, b.cPrev)
	kernel.SigmoidDerivVec(df, b.f, b.e)
	b.repairSigmoid(df, b.f, 1)
	scaledMul(b.e, b.iScale, dState, b.g)
	kernel.SigmoidDerivVec(di, b.i, b.e)
	b.repairSigmoid(di, b.i, 0)
	scaledMul(b.e, b.iScale, dState, b.i)
	kernel.TanhDerivVec(dg, b.g, b.e)
	b.repairTanh(dg, b.g, 2)

	scaledMul(dPrev, b.fScale, dState, b.f)
	kernel.AddMulVec(dPrev, wi, di)
	kernel.AddMulVec(dPrev, wf, df)
	kernel.AddMulVec(dwi, b.cPrev, di)
	kernel.AddMulVec(dwf, b.cPrev, df)
	kernel.AddMulVec(dwo, b.c, do)
	if c.useDropout {
		var diScale, dfScale, doScale float64
		for j, s := range dState {
			diScale += float64(s * b.i[j] * b.g[j])
			dfScale += float64(s * b.f[j] * b.cPrev[j])
			doScale += float64(dm[j] * b.o[j] * b.tanhC[j])
		}
		dx[5*d], dx[5*d+1], dx[5*d+2] = float32(diScale), float32(dfScale), float32(doScale)
	}
}

// repairSigmoid repairs the derivatives of unit k, a sigmoid.
func (b *lstmBackward) repairSigmoid(dx, y []float32, k int) {
	if !b.repaired[k] {
		return
	}
	for j, s := range kernel.Row(b.repair, k) {
		dx[j] -= float32((float32(2*y[j]) - 1) * s)
	}
}

// repairTanh repairs the derivatives of unit k, a hyperbolic tangent.
func (b *lstmBackward) repairTanh(dx, y []float32, k int) {
	if !b.repaired[k] {
		return
	}
	for j, s := range kernel.Row(b.repair, k) {
		dx[j] -= float32(y[j] * s)
	}
}

// addStats adds the values of a row and their derivatives to the statistics. one is a vector of
// ones.
func (c *lstmNonlinearityComponent) addStats(r *lstmRow, one []float32) {
	d := c.params.Cols
	for k, v := range [numUnits][]float32{r.i, r.f, r.g, r.o, r.tanhC} {
		kernel.AddVecToDoubles(c.valueSum[k*d:(k+1)*d], v)
		if k == 2 || k == 4 {
			kernel.TanhDerivVec(r.e, v, one)
		} else {
			kernel.SigmoidDerivVec(r.e, v, one)
		}
		kernel.AddVecToDoubles(c.derivSum[k*d:(k+1)*d], r.e)
	}
}

// ZeroStats resets the statistics.
func (c *lstmNonlinearityComponent) ZeroStats() {
	clear(c.valueSum)
	clear(c.derivSum)
	c.selfRepairTotal = [numUnits]float64{}
	c.count = 0
}
