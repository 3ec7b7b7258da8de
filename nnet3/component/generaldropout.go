package component

import (
	"fmt"
	"math/rand/v2"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// generalDropoutComponent multiplies its input by a random mask of mean 1. Columns blockDim apart
// can share elements of the mask, and so do the rows of a sequence or of a stretch of timePeriod
// frames of it. In test mode it copies its input.
type generalDropoutComponent struct {
	mask
	perIndex
	columns
	blockDim      int
	timePeriod    int     // 0: one mask per sequence
	maxProportion float32 // of a block's columns that a band may zero; 0: no band
	maxRegions    int     // of a band
}

func (c *generalDropoutComponent) Type() string { return "GeneralDropoutComponent" }
func (c *generalDropoutComponent) IsIdentity() bool {
	return c.test || c.proportion == 0 && c.maxProportion == 0
}
func (c *generalDropoutComponent) IsIdentityBackward() bool { return c.IsIdentity() }
func (c *generalDropoutComponent) Properties() Properties {
	return (PropagateInPlace | BackpropInPlace | UsesMemo | Random).with(InputContiguous|OutputContiguous, c.blockDim != c.dim)
}

// Init reads dim, block-dim, time-period, dropout-proportion, continuous,
// specaugment-max-proportion, specaugment-max-regions and test-mode.
func (c *generalDropoutComponent) Init(cfg *ConfigLine) {
	c.dim = cfg.dim("dim")
	c.blockDim = cfg.dimOr("block-dim", c.dim)
	c.timePeriod = cfg.Int("time-period", 0)
	c.proportion = cfg.Float("dropout-proportion", 0.5)
	c.continuous = cfg.Bool("continuous", false)
	c.maxProportion = cfg.Float("specaugment-max-proportion", 0)
	c.maxRegions = cfg.Int("specaugment-max-regions", 1)
	c.test = cfg.Bool("test-mode", false)
	cfg.check(c.problem())
}

func (c *generalDropoutComponent) problem() string {
	switch {
	case c.timePeriod < 0:
		return "the time period is negative"
	case !(c.proportion >= 0 && c.proportion < 1 || c.proportion == 1 && c.continuous):
		return fmt.Sprintf("dropout proportion %g is not between 0 and 1", c.proportion)
	case !(c.maxProportion >= 0 && c.maxProportion <= 1), c.maxRegions < 1, c.maxRegions > maxDim:
		return "the greatest proportion is not between 0 and 1, or the greatest number of regions is not positive"
	case c.maxProportion != 0 && c.continuous:
		return "bands and a continuous mask exclude each other"
	}
	return noMultiple("dimension", c.dim, "block dimension", c.blockDim)
}

func (c *generalDropoutComponent) Fields(f *Fields) {
	f.Dim("<Dim>", &c.dim)
	f.Dim("<BlockDim>", &c.blockDim)
	f.Int("<TimePeriod>", &c.timePeriod)
	f.Float("<DropoutProportion>", &c.proportion)
	Optional(f, f.Float, "<SpecAugmentMaxProportion>", &c.maxProportion, 0)
	Optional(f, f.Int, "<SpecAugmentMaxRegions>", &c.maxRegions, 1)
	f.Flag("<TestMode>", &c.test)
	f.Flag("<Continuous>", &c.continuous)
	f.check(c.problem())
}

// maskRows is the Precomputed: the row of the mask that each row takes.
type maskRows struct {
	rows []int32
	num  int // rows of the mask
}

// PrecomputeIndexes finds the rows that share a mask: those of a sequence, or of timePeriod frames
// of it.
func (c *generalDropoutComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	if err := checkPerIndex(c, in, out); err != nil {
		return nil, err
	}
	m := &maskRows{rows: make([]int32, len(out))}
	type stretch struct{ n, t int32 }
	seen := make(map[stretch]int32)
	for i, x := range out {
		k := stretch{n: x.N}
		if c.timePeriod > 0 {
			k.t = floorDiv(x.T, int32(c.timePeriod))
		}
		r, ok := seen[k]
		if !ok {
			r = int32(len(seen))
			seen[k] = r
		}
		m.rows[i] = r
	}
	m.num = len(seen)
	return m, nil
}

// Propagate multiplies the input by a mask, which is the memo.
func (c *generalDropoutComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	if c.IsIdentity() {
		w.Threads.Copy(out, in)
		return nil, nil
	}
	m, ok := pass.Pre.(*maskRows)
	if !ok || len(m.rows) != in.Rows {
		return nil, misfit(c, in.Rows, out.Rows)
	}
	mask := w.newMemo(m.num, c.blockDim)
	c.drawMask(w.random(), mask.Matrix)
	multiplyByMask(out, in, mask.Matrix, m.rows)
	w.lend(mask, pass)
	return mask, nil
}

// drawMask fills a mask.
func (c *generalDropoutComponent) drawMask(rnd *rand.Rand, mask kernel.Matrix) {
	one := 1 / (1 - c.proportion)
	for i := range mask.Rows {
		row := kernel.Row(mask, i)
		if c.maxProportion != 0 {
			c.drawBand(rnd, row)
			continue
		}
		for j := range row {
			row[j] = c.draw(rnd, one)
		}
	}
}

// drawBand zeroes a band of a row of ones, of a width between 0 and maxProportion of the row, in up
// to maxRegions pieces. A band may continue from the end to the beginning.
func (c *generalDropoutComponent) drawBand(rnd *rand.Rand, row []float32) {
	for j := range row {
		row[j] = 1
	}
	n := len(row)
	zeroed := rnd.IntN(int(float32(float32(n)*c.maxProportion)+0.5) + 1)
	if zeroed == 0 {
		return
	}
	regions := 1 + rnd.IntN(min(c.maxRegions, zeroed, n-zeroed+1))
	at, ones := rnd.IntN(n), n-zeroed
	for ; regions > 0; regions-- {
		z, o := share(rnd, zeroed, regions), share(rnd, ones, regions)
		for range z {
			row[at%n] = 0
			at++
		}
		at, zeroed, ones = at+o, zeroed-z, ones-o
	}
}

// share returns a random part of n: all of it if there is one part, otherwise an even share on
// average.
func share(rnd *rand.Rand, n, parts int) int {
	if parts == 1 {
		return n
	}
	return rnd.IntN(2*n/parts + 1)
}

// multiplyByMask sets dst to src with each block of columns of row i multiplied by row rows[i] of
// the mask.
func multiplyByMask(dst, src, mask kernel.Matrix, rows []int32) {
	for i, r := range rows {
		d, s, m := kernel.Row(dst, i), kernel.Row(src, i), kernel.Row(mask, int(r))
		for len(d) > 0 {
			kernel.MulVec(d[:len(m)], s[:len(m)], m)
			d, s = d[len(m):], s[len(m):]
		}
	}
}

// Backprop multiplies the derivative by the mask.
func (c *generalDropoutComponent) Backprop(w *Workspace, pass BackwardPass) error {
	if c.IsIdentity() {
		w.Threads.Copy(pass.InDeriv, pass.OutDeriv)
		return nil
	}
	m, ok := pass.Pre.(*maskRows)
	if !ok || len(m.rows) != pass.OutDeriv.Rows {
		return misfit(c, pass.InDeriv.Rows, pass.OutDeriv.Rows)
	}
	mask, ok := memoOf(pass.Memo, m.num, c.blockDim)
	if !ok {
		return missingMemo(c)
	}
	multiplyByMask(pass.InDeriv, pass.OutDeriv, mask.Matrix, m.rows)
	w.free(mask)
	return nil
}
