package component

import (
	"fmt"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// maxWindow is the largest number of inputs that one output of a statistics component may depend on.
const maxWindow = 1 << 20

// rowSets is the Precomputed of components whose output rows depend on sets of input rows: the set of output row i is
// rows[start[i]:start[i+1]].
type rowSets struct {
	start, rows []int32
	inRows      int
}

func (s *rowSets) set(i int) []int32 { return s.rows[s.start[i]:s.start[i+1]] }

// fits reports whether the sets are about matrices with these numbers of rows.
func (s *rowSets) fits(inRows, outRows int) bool {
	return s.inRows == inRows && len(s.start) == outRows+1
}

// TakeRows replaces the input by one in which row i of the old one is row rows[i].
func (s *rowSets) TakeRows(rows []int32, inputRows int) Precomputed {
	t := &rowSets{start: s.start, rows: make([]int32, len(s.rows)), inRows: inputRows}
	for i, r := range s.rows {
		t.rows[i] = rows[r]
	}
	return t
}

// newRowSets finds, for each output index, the rows of those of its possible inputs that exist; each must have one.
func newRowSets(c Component, inputs func(out index.Index, dst []index.Index) []index.Index, in, out []index.Index) (*rowSets, error) {
	find := newRowFinder(in)
	s := &rowSets{start: make([]int32, 1, len(out)+1), inRows: len(in)}
	var candidates []index.Index
	for _, x := range out {
		candidates = inputs(x, candidates[:0])
		for _, from := range candidates {
			if r := find.row(from); r >= 0 {
				s.rows = append(s.rows, r)
			}
		}
		n := int32(len(s.rows))
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

func (v window) inputs(x index.Index, dst []index.Index) []index.Index {
	v.eachTime(x, func(x index.Index) bool {
		dst = append(dst, x)
		return true
	})
	return dst
}

// computable reports whether one input of the window is there, and appends all that are to used.
func (v window) computable(x index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	found := false
	v.eachTime(x, func(x index.Index) bool {
		if has(x) {
			found = true
			if used != nil {
				*used = append(*used, x)
			}
		}
		return !found || used != nil
	})
	return found
}

// statisticsExtractionComponent sums its input over stretches of time: the output at t is the count, the sum and, if wanted, the sum
// of squares of the inputs at multiples of InputPeriod in the stretch of OutputPeriod that t is in.
type statisticsExtractionComponent struct {
	inputDim        int
	inputPeriod     int
	outputPeriod    int
	includeVariance bool
}

// Type is "StatisticsExtractionComponent".
func (c *statisticsExtractionComponent) Type() string { return "StatisticsExtractionComponent" }

// InputDim is the number of columns.
func (c *statisticsExtractionComponent) InputDim() int { return c.inputDim }

// OutputDim is one column for the count, and once or twice InputDim.
func (c *statisticsExtractionComponent) OutputDim() int {
	if c.includeVariance {
		return 1 + 2*c.inputDim
	}
	return 1 + c.inputDim
}

// Properties of the extraction.
func (c *statisticsExtractionComponent) Properties() Properties {
	return PropagateAdds.with(BackpropNeedsInput, c.includeVariance)
}

// Init knows input-dim, input-period, output-period, include-variance.
func (c *statisticsExtractionComponent) Init(cfg *ConfigLine) error {
	c.inputDim = cfg.dim("input-dim")
	c.inputPeriod = cfg.Int("input-period", 1)
	c.outputPeriod = cfg.Int("output-period", 1)
	c.includeVariance = cfg.Bool("include-variance", true)
	if !c.valid() {
		cfg.Fail("output-period=%d must be a multiple of input-period=%d, both positive", c.outputPeriod, c.inputPeriod)
	}
	return cfg.Err()
}

func (c *statisticsExtractionComponent) valid() bool {
	return c.inputPeriod > 0 && c.outputPeriod > 0 && c.outputPeriod%c.inputPeriod == 0 &&
		c.outputPeriod/c.inputPeriod <= maxWindow && c.inputDim < maxDim/2
}

// Fields of the component.
func (c *statisticsExtractionComponent) Fields(f *Fields) {
	f.Dim("<InputDim>", &c.inputDim)
	f.Int("<InputPeriod>", &c.inputPeriod)
	f.Int("<OutputPeriod>", &c.outputPeriod)
	f.Bool("<IncludeVarinance>", &c.includeVariance) // the spelling of the format
	f.Check(c.valid(), "periods %d and %d do not fit", c.inputPeriod, c.outputPeriod)
}

// stretch returns the times of the stretch that t is in.
func (c *statisticsExtractionComponent) stretch(t int32) window {
	first := int64(floorDiv(t, int32(c.outputPeriod))) * int64(c.outputPeriod)
	return window{first, first + int64(c.outputPeriod-c.inputPeriod), int64(c.inputPeriod)}
}

// InputIndexes appends the indexes of the stretch that out is in.
func (c *statisticsExtractionComponent) InputIndexes(out index.Index, dst []index.Index) []index.Index {
	return c.stretch(out.T).inputs(out, dst)
}

// IsComputable wants at least one input of the stretch.
func (c *statisticsExtractionComponent) IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool {
	return c.stretch(out.T).computable(out, has, used)
}

// ReorderIndexes leaves the indexes as they are.
func (c *statisticsExtractionComponent) ReorderIndexes(in, out *[]index.Index) {}

// PrecomputeIndexes finds the input rows of each output row.
func (c *statisticsExtractionComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	s, err := newRowSets(c, c.InputIndexes, in, out)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func rowSetsOf(c Component, pre Precomputed, inRows, outRows int) (*rowSets, error) {
	s, ok := pre.(*rowSets)
	if !ok || !s.fits(inRows, outRows) {
		return nil, fmt.Errorf("%s: precomputed indexes do not fit %d input and %d output rows: %w", c.Type(), inRows, outRows, ErrShape)
	}
	return s, nil
}

// Propagate adds count, sum and sum of squares to the output.
func (c *statisticsExtractionComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkDims(c, in, out); err != nil {
		return nil, err
	}
	s, err := rowSetsOf(c, pre, in.Rows, out.Rows)
	if err != nil {
		return nil, err
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

// Backprop gives each input row the derivative of the sum that it is in, plus 2x times that of the sum of squares.
func (c *statisticsExtractionComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	s, err := rowSetsOf(c, pre, inDeriv.Rows, outDeriv.Rows)
	if err != nil {
		return err
	}
	if c.includeVariance && inValue.Rows != inDeriv.Rows {
		return shapeError(c, "backprop values", inValue, inDeriv)
	}
	kernel.Fill(inDeriv, 0)
	for i := range outDeriv.Rows {
		dy := kernel.Row(outDeriv, i)
		for _, r := range s.set(i) {
			dx := kernel.Row(inDeriv, int(r))
			kernel.AddVec(dx, 1, dy[1:1+c.inputDim])
			if c.includeVariance {
				x, d := kernel.Row(inValue, int(r)), dy[1+c.inputDim:]
				for j, v := range x {
					dx[j] += float32(2 * v * d[j])
				}
			}
		}
	}
	return nil
}
