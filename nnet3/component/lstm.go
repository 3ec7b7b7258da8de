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

// Backprop computes the derivatives of the input and of w_ic, w_fc and w_oc. It adds terms that
// repair units whose average derivative so far is too small. ToUpdate also gathers statistics.
func (c *lstmNonlinearityComponent) Backprop(w *Workspace, pass BackwardPass) error {
	defer w.Release(w.Mark())
	d := c.params.Cols
	u, _ := pass.ToUpdate.(*lstmNonlinearityComponent)
	if u != nil && u.params.Cols != d {
		return shapeError(c, "component to update", pass.InDeriv, pass.OutDeriv)
	}
	k := &w.lstm
	rows := pass.InValue.Rows
	*k = lstmShared{cell: c, u: u, pass: pass}
	// All rows repair the same units, by the statistics as they were before this minibatch. The
	// component to update gathers new ones meanwhile and may be the same, so they are read only
	// here.
	k.push, k.repaired = c.repairs(w)
	k.blockRows = max(lstmRows, (rows+lstmBlocks-1)/lstmBlocks)
	blocks := (rows + k.blockRows - 1) / k.blockRows
	k.dParams = w.Matrix(3*blocks, d)
	sums, stats := 0, 0
	if c.useDropout {
		sums = 3 * rows
	}
	if u != nil {
		stats = blocks * 2 * numUnits * d
	}
	doubles := w.newDoubles(sums + stats)
	k.dScales, k.stats = doubles[:sums], doubles[sums:]
	clear(k.dScales)
	w.divide(k, blocks, 1, took(rows, d, 12000))
	if u != nil && rows > 0 {
		for b := range blocks {
			stats := k.statsOf(b)
			addDoubles(u.valueSum, u.valueSum, stats[:numUnits*d])
			addDoubles(u.derivSum, u.derivSum, stats[numUnits*d:])
			if b > 0 {
				kernel.Add(kernel.Rows(k.dParams, 0, 3), 1, kernel.Rows(k.dParams, 3*b, 3))
			}
		}
		kernel.Add(u.params, u.learningRate, kernel.Rows(k.dParams, 0, 3))
		u.count += float64(rows)
		for i, units := range k.repaired {
			for range units {
				u.selfRepairTotal[i] += float64(rows)
			}
		}
	}
	*k = lstmShared{}
	return nil
}

// Sums over rows have parts, of blockRows rows each, which are added in their order: so threads can divide
// rows, and each reads and writes whole rows. A block has at least lstmRows rows, and there are at most
// lstmBlocks, whose sums take memory.
const (
	lstmRows   = 8
	lstmBlocks = 32
)

var addDoubles = kernel.Float64Map("add")

// lstmShared is what all rows of a backward pass have in common.
type lstmShared struct {
	cell, u   *lstmNonlinearityComponent
	pass      BackwardPass
	push      kernel.Matrix
	repaired  [numUnits]int // units in the rows of push that are not zero
	blockRows int
	dParams   kernel.Matrix // three rows for each block
	stats     []float64     // valueSum and derivSum of each block; none without u
	dScales   []float64     // of i_scale, f_scale and o_scale, row by row
}

// statsOf returns the sums of valueSum and derivSum of a block.
func (s *lstmShared) statsOf(block int) []float64 {
	n := 2 * numUnits * s.cell.params.Cols
	return s.stats[block*n : (block+1)*n]
}

// part computes the derivatives of some blocks of rows.
func (s *lstmShared) part(w *Workspace, first, next int) {
	defer w.Release(w.Mark())
	b := newLstmBackward(w, s)
	scratch := w.Vector(s.cell.InputDim())
	for block := first; block < next; block++ {
		b.block(block, scratch)
	}
}

// block computes the derivatives of a block of rows, and its sums. It may overwrite scratch, a row of
// the input.
func (b *lstmBackward) block(block int, scratch []float32) {
	s, pass, d := b.lstmShared, &b.pass, b.cell.params.Cols
	b.dParams = kernel.Rows(s.dParams, 3*block, 3)
	kernel.Fill(b.dParams, 0)
	if s.u != nil {
		b.stats = s.statsOf(block)
		clear(b.stats)
	}
	for b.hi = 0; b.next(s.cell.params); {
		for k := block * s.blockRows; k < min((block+1)*s.blockRows, pass.InValue.Rows); k++ {
			b.forward(kernel.Row(pass.InValue, k), d, b.state[:b.hi-b.lo])
			dx := scratch
			if wanted(pass.InDeriv) {
				dx = kernel.Row(pass.InDeriv, k)
			}
			b.backward(kernel.Row(pass.OutDeriv, k), dx, d)
			if s.cell.useDropout {
				b.scaleDerivs(b.dScales[3*k:3*k+3], kernel.Row(pass.OutDeriv, k)[d:], dx[5*d:])
			}
			if s.u != nil {
				b.addStats()
			}
		}
	}
}

// repairs returns what the derivative of each unit in need of repair is pushed by, 0 for others, and
// how many units of each kind are in need. For a tanh it is a factor of y, for a sigmoid, whose middle
// is 1/2, of y - 1/2.
func (c *lstmNonlinearityComponent) repairs(w *Workspace) (push kernel.Matrix, repaired [numUnits]int) {
	push = w.ZeroMatrix(numUnits, c.params.Cols)
	for k := range numUnits {
		row := kernel.Row(push, k)
		// A unit needs repair if its average derivative is below the threshold. To compare the sums
		// instead, multiply by the count, plus 1 as Kaldi does.
		least := float64(c.selfRepairConfig[k]) * (c.count + 1)
		by := -c.selfRepairConfig[numUnits+k]
		if !isTanh(k) {
			by *= 2
		}
		if by == 0 {
			continue
		}
		for j, sum := range c.derivSum[k*len(row) : (k+1)*len(row)] {
			if sum < least {
				row[j] = by
				repaired[k]++
			}
		}
	}
	return push, repaired
}

// isTanh reports whether unit k is a tanh. The others are sigmoids.
func isTanh(k int) bool { return k == 2 || k == 4 }

// lstmBackward holds the values of a row and what else a backward pass needs.
type lstmBackward struct {
	lstmCells
	*lstmShared
	dState []float32
	state  []float32
	one    []float32
	half   []float32

	dParams kernel.Matrix // sums of the block, like stats
	stats   []float64
}

// newLstmBackward takes scratch memory.
func newLstmBackward(w *Workspace, s *lstmShared) lstmBackward {
	d := s.cell.params.Cols
	n := min(d, lstmCols)
	b := lstmBackward{lstmCells: newLstmCells(w, d), lstmShared: s, dState: w.Vector(n), state: w.Vector(n), one: w.Vector(n), half: w.Vector(n)}
	for j := range b.one {
		b.one[j], b.half[j] = 1, 0.5
	}
	return b
}

// backward computes the derivatives of a row. Units in need of repair get a term that pushes their
// input towards the middle.
func (b *lstmBackward) backward(dy, dx []float32, dim int) {
	di, df, dg, do, dPrev := b.of(dx, 0), b.of(dx, dim), b.of(dx, 2*dim), b.of(dx, 3*dim), b.of(dx, 4*dim)
	dc, dm := b.of(dy, 0), b.of(dy, dim)
	scaledMul(b.e, b.oScale, b.tanhC, dm)
	kernel.SigmoidDerivVec(do, b.o, b.e)
	b.repair(do, b.o, 3)
	scaledMul(b.e, b.oScale, b.o, dm)
	// The state has three readers: the output m through tanh, the next time through dc, and the
	// output gate through its peephole w_oc. Its derivative must be complete before the gates that
	// made the state get theirs.
	dState := b.dState[:len(dc)]
	kernel.TanhDerivVec(dState, b.tanhC, b.e)
	kernel.AddVec(dState, 1, dc)
	kernel.AddMulVec(dState, b.wo, do)
	b.repair(dState, b.tanhC, 4)

	scaledMul(b.e, b.fScale, dState, b.cPrev)
	kernel.SigmoidDerivVec(df, b.f, b.e)
	b.repair(df, b.f, 1)
	scaledMul(b.e, b.iScale, dState, b.g)
	kernel.SigmoidDerivVec(di, b.i, b.e)
	b.repair(di, b.i, 0)
	scaledMul(b.e, b.iScale, dState, b.i)
	kernel.TanhDerivVec(dg, b.g, b.e)
	b.repair(dg, b.g, 2)

	scaledMul(dPrev, b.fScale, dState, b.f)
	kernel.AddMulVec(dPrev, b.wi, di)
	kernel.AddMulVec(dPrev, b.wf, df)
	kernel.AddMulVec(b.of(kernel.Row(b.dParams, 0), 0), b.cPrev, di)
	kernel.AddMulVec(b.of(kernel.Row(b.dParams, 1), 0), b.cPrev, df)
	kernel.AddMulVec(b.of(kernel.Row(b.dParams, 2), 0), b.c, do)
}

// scaleDerivs adds the derivatives of the scales of a row to sums, which ends with the last columns,
// and sets ds to the sums so far.
func (b *lstmBackward) scaleDerivs(sums []float64, dm, ds []float32) {
	dm = b.of(dm, 0)
	di, df, do := sums[0], sums[1], sums[2]
	for j, s := range b.dState[:len(dm)] {
		di += float64(s * b.i[j] * b.g[j])
		df += float64(s * b.f[j] * b.cPrev[j])
		do += float64(dm[j] * b.o[j] * b.tanhC[j])
	}
	sums[0], sums[1], sums[2] = di, df, do
	ds[0], ds[1], ds[2] = float32(di), float32(df), float32(do)
}

// repair repairs the derivatives of unit k.
func (b *lstmBackward) repair(dx, y []float32, k int) {
	if b.repaired[k] == 0 {
		return
	}
	push := b.of(kernel.Row(b.push, k), 0)
	if isTanh(k) {
		kernel.AddMulVec(dx, y, push)
		return
	}
	kernel.SubMulVec(b.e, y, b.half[:len(y)], push)
	kernel.AddVec(dx, 1, b.e)
}

// addStats adds the values of a row and their derivatives to the statistics.
func (b *lstmBackward) addStats() {
	d := b.cell.params.Cols
	one := b.one[:b.hi-b.lo]
	for k, v := range [numUnits][]float32{b.i, b.f, b.g, b.o, b.tanhC} {
		lo, hi := k*d+b.lo, k*d+b.hi
		kernel.AddVecToDoubles(b.stats[lo:hi], v)
		if isTanh(k) {
			kernel.TanhDerivVec(b.e, v, one)
		} else {
			kernel.SigmoidDerivVec(b.e, v, one)
		}
		kernel.AddVecToDoubles(b.stats[numUnits*d+lo:numUnits*d+hi], b.e)
	}
}

// ZeroStats resets the statistics.
func (c *lstmNonlinearityComponent) ZeroStats() {
	clear(c.valueSum)
	clear(c.derivSum)
	c.selfRepairTotal = [numUnits]float64{}
	c.count = 0
}
