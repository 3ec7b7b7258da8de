package component

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// specAugmentTimeMaskComponent sets random stretches of each sequence to zero in training. In test
// mode it copies its input.
type specAugmentTimeMaskComponent struct {
	testMode
	perIndex
	columns
	zeroedProportion float32
	maxFrames        int // of a stretch
}

func (c *specAugmentTimeMaskComponent) Type() string             { return "SpecAugmentTimeMaskComponent" }
func (c *specAugmentTimeMaskComponent) IsIdentity() bool         { return c.test || c.zeroedProportion == 0 }
func (c *specAugmentTimeMaskComponent) IsIdentityBackward() bool { return c.IsIdentity() }
func (c *specAugmentTimeMaskComponent) Properties() Properties {
	return PropagateInPlace | BackpropInPlace | UsesMemo | Random
}

// Init reads dim, zeroed-proportion, time-mask-max-frames and test-mode.
func (c *specAugmentTimeMaskComponent) Init(cfg *ConfigLine) {
	c.dim = cfg.dim("dim")
	c.zeroedProportion = cfg.Float("zeroed-proportion", 0.25)
	c.maxFrames = cfg.Int("time-mask-max-frames", 10)
	c.test = cfg.Bool("test-mode", false)
	cfg.check(c.problem())
}

func (c *specAugmentTimeMaskComponent) problem() string {
	if c.zeroedProportion >= 0 && c.zeroedProportion <= 1 && c.maxFrames > 0 {
		return ""
	}
	return fmt.Sprintf("zeroed proportion %g is not between 0 and 1, or %d frames are not positive", c.zeroedProportion, c.maxFrames)
}

func (c *specAugmentTimeMaskComponent) Fields(f *Fields) {
	f.Dim("<Dim>", &c.dim)
	f.Float("<ZeroedProportion>", &c.zeroedProportion)
	f.Int("<TimeMaskMaxFrames>", &c.maxFrames)
	f.Flag("<TestMode>", &c.test)
	f.check(c.problem())
}

// sequences is the Precomputed: the rows of one sequence after the other, each in the order of
// time.
type sequences struct {
	rows []int32
	ends []int
}

// PrecomputeIndexes finds the rows of each sequence.
func (c *specAugmentTimeMaskComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	if err := checkPerIndex(c, in, out); err != nil {
		return nil, err
	}
	s := &sequences{rows: make([]int32, len(out))}
	for i := range s.rows {
		s.rows[i] = int32(i)
	}
	slices.SortStableFunc(s.rows, func(a, b int32) int {
		x, y := out[a], out[b]
		return cmp.Or(cmp.Compare(x.N, y.N), cmp.Compare(x.X, y.X), cmp.Compare(x.T, y.T))
	})
	for k := 1; k <= len(s.rows); k++ {
		if k == len(s.rows) || out[s.rows[k]].N != out[s.rows[k-1]].N || out[s.rows[k]].X != out[s.rows[k-1]].X {
			s.ends = append(s.ends, k)
		}
	}
	return s, nil
}

// Propagate multiplies the rows by a mask of zeros and ones, which is the memo.
func (c *specAugmentTimeMaskComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	if c.IsIdentity() {
		w.Threads.Copy(out, in)
		return nil, nil
	}
	s, ok := pass.Pre.(*sequences)
	if !ok || len(s.rows) != in.Rows {
		return nil, misfit(c, in.Rows, out.Rows)
	}
	mask := w.newMemo(1, in.Rows)
	begin := 0
	for _, end := range s.ends {
		c.draw(w.random(), mask.Data, s.rows[begin:end])
		begin = end
	}
	multiplyRows(out, in, mask.Data)
	w.lend(mask, pass)
	return mask, nil
}

// draw fills the elements of the mask for the rows of a sequence. Stretches of zeros, of lengths up
// to maxFrames, alternate with stretches of ones, whose average length makes the proportion right.
func (c *specAugmentTimeMaskComponent) draw(rnd *rand.Rand, mask []float32, rows []int32) {
	p := float64(c.zeroedProportion)
	meanZeros := float64(c.maxFrames+1) / 2
	meanOnes := meanZeros * (1 - p) / p
	zeros := rnd.Float64() < p
	for len(rows) > 0 {
		n, value := int(min(float64(2*meanOnes*rnd.Float64())+0.5, float64(len(rows)))), float32(1)
		if zeros {
			n, value = 1+rnd.IntN(c.maxFrames), 0
		}
		n = min(n, len(rows))
		for _, r := range rows[:n] {
			mask[r] = value
		}
		rows, zeros = rows[n:], !zeros
	}
}

func multiplyRows(dst, src kernel.Matrix, factors []float32) {
	for i, f := range factors {
		kernel.ScaleVec(kernel.Row(dst, i), f, kernel.Row(src, i))
	}
}

// Backprop multiplies the derivative by the mask.
func (c *specAugmentTimeMaskComponent) Backprop(w *Workspace, pass BackwardPass) error {
	if c.IsIdentity() {
		w.Threads.Copy(pass.InDeriv, pass.OutDeriv)
		return nil
	}
	mask, ok := memoOf(pass.Memo, 1, pass.OutDeriv.Rows)
	if !ok {
		return missingMemo(c)
	}
	multiplyRows(pass.InDeriv, pass.OutDeriv, mask.Data)
	w.free(mask)
	return nil
}
