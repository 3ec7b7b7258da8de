package component

import (
	"fmt"
	"math/rand/v2"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// generalDropoutComponent multiplies its input by a random mask of mean 1 that can be shared by columns BlockDim apart and by the
// rows of a sequence, or of a stretch of TimePeriod frames of it. In test mode it copies its input.
type generalDropoutComponent struct {
	testMode
	perIndex
	columns
	blockDim      int
	timePeriod    int // 0: one mask per sequence
	proportion    float32
	continuous    bool
	maxProportion float32 // of a block's columns that a band may zero; 0: no band
	maxRegions    int     // of a band
}

// Type is "GeneralDropoutComponent".
func (c *generalDropoutComponent) Type() string { return "GeneralDropoutComponent" }

// IsIdentity reports whether the component is in test mode or has nothing to drop.
func (c *generalDropoutComponent) IsIdentity() bool {
	return c.test || c.proportion == 0 && c.maxProportion == 0
}

// IsIdentityBackward is IsIdentity.
func (c *generalDropoutComponent) IsIdentityBackward() bool { return c.IsIdentity() }

// Properties of general dropout.
func (c *generalDropoutComponent) Properties() Properties {
	return (PropagateInPlace | BackpropInPlace | UsesMemo | Random).with(InputContiguous|OutputContiguous, c.blockDim != c.dim)
}

// Init knows dim, block-dim, time-period, dropout-proportion, continuous, specaugment-max-proportion,
// specaugment-max-regions, test-mode.
func (c *generalDropoutComponent) Init(cfg *ConfigLine) error {
	c.dim = cfg.dim("dim")
	c.blockDim = cfg.dimOr("block-dim", c.dim)
	c.timePeriod = cfg.Int("time-period", 0)
	c.proportion = cfg.Float("dropout-proportion", 0.5)
	c.continuous = cfg.Bool("continuous", false)
	c.maxProportion = cfg.Float("specaugment-max-proportion", 0)
	c.maxRegions = cfg.Int("specaugment-max-regions", 1)
	c.test = cfg.Bool("test-mode", false)
	if problem := c.problem(); problem != "" {
		cfg.Fail("%s", problem)
	}
	return cfg.Err()
}

// problem says what is wrong with the settings.
func (c *generalDropoutComponent) problem() string {
	switch {
	case c.dim%c.blockDim != 0:
		return "the dimension is no multiple of that of the block"
	case c.timePeriod < 0:
		return "the time period is negative"
	case !(c.proportion >= 0 && c.proportion < 1 || c.proportion == 1 && c.continuous):
		return "the dropout proportion is not between 0 and 1"
	case !(c.maxProportion >= 0 && c.maxProportion <= 1), c.maxRegions < 1, c.maxRegions > maxDim:
		return "the greatest proportion is not between 0 and 1, or the greatest number of regions is not positive"
	case c.maxProportion != 0 && c.continuous:
		return "bands and a continuous mask exclude each other"
	}
	return ""
}

// Fields of the component.
func (c *generalDropoutComponent) Fields(f *Fields) {
	f.Dim("<Dim>", &c.dim)
	f.Dim("<BlockDim>", &c.blockDim)
	f.Int("<TimePeriod>", &c.timePeriod)
	f.Float("<DropoutProportion>", &c.proportion)
	Optional(f, f.Float, "<SpecAugmentMaxProportion>", &c.maxProportion, 0)
	Optional(f, f.Int, "<SpecAugmentMaxRegions>", &c.maxRegions, 1)
	f.Flag("<TestMode>", &c.test)
	f.Flag("<Continuous>", &c.continuous)
	problem := c.problem()
	f.Check(problem == "", "%s", problem)
}

// PrecomputeIndexes finds the rows that share a mask: those of a sequence, or of TimePeriod frames of it.
func (c *generalDropoutComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	if err := checkPerIndex(c, in, out); err != nil {
		return nil, err
	}
	return newMaskRows(out, func(x index.Index) index.Index {
		t := int32(0)
		if c.timePeriod > 0 {
			t = floorDiv(x.T, int32(c.timePeriod))
		}
		return index.Index{N: x.N, T: t}
	}), nil
}

// Propagate multiplies the input by a mask, which is the memo.
func (c *generalDropoutComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	if c.IsIdentity() {
		kernel.Copy(out, in)
		return nil, nil
	}
	m, ok := pre.(*maskRows)
	if !ok || len(m.rows) != in.Rows {
		return nil, fmt.Errorf("%s: precomputed indexes do not fit %d rows: %w", c.Type(), in.Rows, ErrShape)
	}
	mask := w.newMemo(m.num, c.blockDim)
	c.draw(w.random(), mask.Matrix)
	multiplyByMask(out, in, mask.Matrix, m.rows)
	w.lend(mask)
	return mask, nil
}

// draw fills a mask.
func (c *generalDropoutComponent) draw(rnd *rand.Rand, mask kernel.Matrix) {
	for i := range mask.Rows {
		row := kernel.Row(mask, i)
		if c.maxProportion != 0 {
			c.drawBand(rnd, row)
			continue
		}
		for j := range row {
			u := rnd.Float32()
			switch {
			case c.continuous:
				row[j] = 1 - 2*c.proportion + float32(4*c.proportion*u)
			case u < c.proportion:
				row[j] = 0
			default:
				row[j] = 1 / (1 - c.proportion)
			}
		}
	}
}

// drawBand zeroes a band of a row of ones, between none and maxProportion of it, in up to maxRegions pieces. A band may
// continue from the end to the beginning.
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

// share returns a random part of n: all of it if there is one part, else an even share on average.
func share(rnd *rand.Rand, n, parts int) int {
	if parts == 1 {
		return n
	}
	return rnd.IntN(2*n/parts + 1)
}

// Backprop multiplies the derivative by the mask.
func (c *generalDropoutComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	if c.IsIdentity() {
		kernel.Copy(inDeriv, outDeriv)
		return nil
	}
	m, ok := pre.(*maskRows)
	if !ok || len(m.rows) != outDeriv.Rows {
		return fmt.Errorf("%s: precomputed indexes do not fit %d rows: %w", c.Type(), outDeriv.Rows, ErrShape)
	}
	mask, ok := memoOf(memo, m.num, c.blockDim)
	if !ok {
		return fmt.Errorf("%s: backprop: the memo does not fit %d rows: %w", c.Type(), outDeriv.Rows, ErrShape)
	}
	multiplyByMask(inDeriv, outDeriv, mask.Matrix, m.rows)
	w.free(mask)
	return nil
}
