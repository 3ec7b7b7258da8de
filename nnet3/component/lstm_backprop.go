package component

import "github.com/nnopt/nnopt/internal/kernel"

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
	push = w.zeroMatrix(numUnits, c.params.Cols)
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
