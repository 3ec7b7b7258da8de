package component

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// maxWindow is the largest number of inputs that one output of a statistics component may depend
// on.
const maxWindow = 1 << 20

// rowSets is the Precomputed of components whose output rows depend on sets of input rows. The set
// of output row i is rows[start[i]:start[i+1]].
type rowSets struct {
	start, rows []int32
	inRows      int
}

type nonSimpleComponent interface {
	Component
	NonSimple
}

// set returns the input rows of output row i.
func (s *rowSets) set(i int) []int32 { return s.rows[s.start[i]:s.start[i+1]] }

func (s *rowSets) fits(inRows, outRows int) bool {
	return s.inRows == inRows && len(s.start) == outRows+1
}

// TakeRows returns the sets for another input, in which row rows[i] is row i of the old one.
func (s *rowSets) TakeRows(rows []int32, inputRows int) Precomputed {
	t := &rowSets{start: s.start, rows: make([]int32, len(s.rows)), inRows: inputRows}
	for i, r := range s.rows {
		t.rows[i] = rows[r]
	}
	return t
}

// newRowSets finds, for each output index, the rows of its possible inputs that exist. There must
// be one at least.
func newRowSets(c nonSimpleComponent, in, out []index.Index) (Precomputed, error) {
	find := newRowFinder(in)
	s := &rowSets{start: make([]int32, 1, len(out)+1), inRows: len(in)}
	var candidates []index.Index
	for _, x := range out {
		candidates = c.InputIndexes(x, candidates[:0])
		for _, from := range candidates {
			if r := find.row(from); r >= 0 {
				s.rows = append(s.rows, r)
			}
		}
		n := int32(len(s.rows))
		// IsComputable promised one, so the indexes are not those that the compiler asked about.
		if n == s.start[len(s.start)-1] {
			return nil, fmt.Errorf("%s: output %v has no input: %w", c.Type(), x, ErrShape)
		}
		s.start = append(s.start, n)
	}
	return s, nil
}

// window is a set of times, step apart, around an output.
type window struct{ first, last, step int64 }

// eachTime calls f with x at each time of the window that an index can have, until f returns false.
func (v window) eachTime(x index.Index, f func(index.Index) bool) {
	for t := v.first; t <= v.last; t += v.step {
		x.T = int32(t)
		if int64(x.T) == t && x.T != index.NoTime && !f(x) {
			return
		}
	}
}

// inputs appends x at each time of the window.
func (v window) inputs(x index.Index, dst []index.Index) []index.Index {
	v.eachTime(x, func(x index.Index) bool {
		dst = append(dst, x)
		return true
	})
	return dst
}

// computable reports whether any input of the window is there, and appends all that are to used.
func (v window) computable(x index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	found := false
	v.eachTime(x, func(x index.Index) bool {
		if has(x) {
			found = true
			if used != nil {
				*used = append(*used, x)
			}
		}
		// Without used, the first input decides, and the rest of a window of up to a million need
		// not be looked at.
		return !found || used != nil
	})
	return found
}

// statisticsExtractionComponent sums its input over stretches of time: the output at t is the
// count, the sum and, with includeVariance, the sum of squares of the inputs at multiples of
// inputPeriod in the stretch of outputPeriod frames that contains t.
type statisticsExtractionComponent struct {
	inputDim        int
	inputPeriod     int
	outputPeriod    int
	includeVariance bool
}

func (c *statisticsExtractionComponent) Type() string  { return "StatisticsExtractionComponent" }
func (c *statisticsExtractionComponent) InputDim() int { return c.inputDim }
func (c *statisticsExtractionComponent) OutputDim() int {
	if c.includeVariance {
		return 1 + 2*c.inputDim
	}
	return 1 + c.inputDim
}

func (c *statisticsExtractionComponent) Properties() Properties {
	return PropagateAdds.with(BackpropNeedsInput, c.includeVariance)
}

// Init reads input-dim, input-period, output-period and include-variance.
func (c *statisticsExtractionComponent) Init(cfg *ConfigLine) {
	c.inputDim = cfg.dim("input-dim")
	c.inputPeriod = cfg.Int("input-period", 1)
	c.outputPeriod = cfg.Int("output-period", 1)
	c.includeVariance = cfg.Bool("include-variance", true)
	cfg.check(c.problem())
}

func (c *statisticsExtractionComponent) problem() string {
	if c.inputPeriod > 0 && c.outputPeriod > 0 && c.outputPeriod%c.inputPeriod == 0 &&
		c.outputPeriod/c.inputPeriod <= maxWindow && c.inputDim < maxDim/2 {
		return ""
	}
	return fmt.Sprintf("output period %d is no multiple of input period %d, one of them is not positive, or the input is too large",
		c.outputPeriod, c.inputPeriod)
}

func (c *statisticsExtractionComponent) Fields(f *Fields) {
	f.Dim("<InputDim>", &c.inputDim)
	f.Int("<InputPeriod>", &c.inputPeriod)
	f.Int("<OutputPeriod>", &c.outputPeriod)
	f.Bool("<IncludeVarinance>", &c.includeVariance) // the spelling of the format
	f.check(c.problem())
}

// stretch returns the times of the stretch that contains t.
func (c *statisticsExtractionComponent) stretch(t int32) window {
	// Division rounds down, also for negative times, which context before the first frame has: -1
	// belongs to the stretch from -period on. 64 bits, because the ends of a stretch may not fit an
	// index; eachTime leaves those out.
	first := int64(floorDiv(t, int32(c.outputPeriod))) * int64(c.outputPeriod)
	return window{first, first + int64(c.outputPeriod-c.inputPeriod), int64(c.inputPeriod)}
}

// InputIndexes appends the indexes of the stretch that contains out.
func (c *statisticsExtractionComponent) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	return c.stretch(out.T).inputs(out, dst)
}

// IsComputable needs at least one input of the stretch.
func (c *statisticsExtractionComponent) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	return c.stretch(out.T).computable(out, has, used)
}

// PrecomputeIndexes finds the input rows of each output row.
func (c *statisticsExtractionComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	return newRowSets(c, in, out)
}

// Propagate adds count, sum and sum of squares to the output.
func (c *statisticsExtractionComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	s, ok := pass.Pre.(*rowSets)
	if !ok || !s.fits(in.Rows, out.Rows) {
		return nil, misfit(c, in.Rows, out.Rows)
	}
	for i := range out.Rows {
		y := kernel.Row(out, i)
		y[0] += float32(len(s.set(i)))
		sum := y[1 : 1+c.inputDim]
		for _, r := range s.set(i) {
			x := kernel.Row(in, int(r))
			kernel.AddVec(sum, 1, x)
			if c.includeVariance {
				squares := y[1+c.inputDim:][:len(x)]
				for j, v := range x {
					squares[j] += float32(v * v)
				}
			}
		}
	}
	return nil, nil
}

// Backprop gives each input row x the derivative of its sum, plus 2x times that of its sum of
// squares.
func (c *statisticsExtractionComponent) Backprop(w *Workspace, pass BackwardPass) error {
	s, ok := pass.Pre.(*rowSets)
	if !ok || !s.fits(pass.InDeriv.Rows, pass.OutDeriv.Rows) {
		return misfit(c, pass.InDeriv.Rows, pass.OutDeriv.Rows)
	}
	w.Threads.Fill(pass.InDeriv, 0)
	for i := range pass.OutDeriv.Rows {
		dy := kernel.Row(pass.OutDeriv, i)
		for _, r := range s.set(i) {
			dx := kernel.Row(pass.InDeriv, int(r))
			kernel.AddVec(dx, 1, dy[1:1+c.inputDim])
			if c.includeVariance {
				x, d := kernel.Row(pass.InValue, int(r)), dy[1+c.inputDim:]
				for j, v := range x {
					dx[j] += float32(2 * v * d[j])
				}
			}
		}
	}
	return nil
}
