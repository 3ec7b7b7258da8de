package component

import (
	"strconv"

	"github.com/nnopt/nnopt/nnet3/index"
)

// columns is embedded by components whose output has as many columns as their input.
type columns struct{ dim int }

func (c *columns) InputDim() int  { return c.dim }
func (c *columns) OutputDim() int { return c.dim }

// equalBlocks is embedded by components whose input dimension is a multiple of their output
// dimension. The input consists of blocks as wide as the output, or of a group of columns for each
// output column.
type equalBlocks struct{ inputDim, outputDim int }

func (c *equalBlocks) InputDim() int  { return c.inputDim }
func (c *equalBlocks) OutputDim() int { return c.outputDim }

// Init reads input-dim and output-dim.
func (c *equalBlocks) Init(cfg *ConfigLine) {
	c.inputDim, c.outputDim = cfg.dim("input-dim"), cfg.dim("output-dim")
	cfg.check(c.problem())
}

func (c *equalBlocks) Fields(f *Fields) {
	f.Dim("<InputDim>", &c.inputDim)
	f.Dim("<OutputDim>", &c.outputDim)
	f.check(c.problem())
}

func (c *equalBlocks) problem() string {
	return noMultiple("input dimension", c.inputDim, "output dimension", c.outputDim)
}

// noMultiple returns a problem unless n is a multiple of d.
func noMultiple(what string, n int, of string, d int) string {
	if divides(d, n) {
		return ""
	}
	return what + " " + strconv.Itoa(n) + " is no multiple of " + of + " " + strconv.Itoa(d)
}

// divides reports whether n is a multiple of d.
func divides(d, n int) bool { return d > 0 && n%d == 0 }

// testMode is embedded by components that draw random numbers only in training.
type testMode struct{ test bool }

func (m *testMode) TestMode() bool        { return m.test }
func (m *testMode) SetTestMode(test bool) { m.test = test }

// noInput is embedded by components whose output depends on no input.
type noInput struct{}

func (noInput) ignoresInput() {}

func (noInput) InputIndexes(_ index.Index, dst []index.Index) []index.Index { return dst }

func (noInput) IsComputable(index.Index, func(index.Index) bool, *[]index.Index) bool { return true }

func (noInput) PrecomputeIndexes(_, _ []index.Index, _ bool) (Precomputed, error) { return nil, nil }
