package component

import (
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/nnet3/index"
)

// Properties says what a component can do and what it needs. The bits are Kaldi's.
type Properties uint32

// The properties.
const (
	// Simple components map rows one by one: the same number of rows in and out, with equal
	// indexes.
	Simple Properties = 1 << iota
	// Updatable components have trainable parameters. They implement UpdatableComponent.
	Updatable
	// PropagateInPlace allows input and output of Propagate to be the same view.
	PropagateInPlace
	// PropagateAdds says that Propagate adds to its output.
	PropagateAdds
	// reordersIndexes marks components of Kaldi's that want their rows in an order of their own.
	// None here does.
	reordersIndexes
	// BackpropAdds says that Backprop adds to the derivative with respect to the input.
	BackpropAdds
	// BackpropNeedsInput says that Backprop reads the input.
	BackpropNeedsInput
	// BackpropNeedsOutput says that Backprop reads the output.
	BackpropNeedsOutput
	// BackpropInPlace allows the two derivatives of Backprop to be the same view.
	BackpropInPlace
	// StoresStats says that the component accumulates statistics. It implements StatsStorer.
	StoresStats
	// InputContiguous asks for input rows without gaps between them. The components of this package
	// do without.
	InputContiguous
	// OutputContiguous asks for output rows without gaps between them. The components of this
	// package do without.
	OutputContiguous
	// UsesMemo says that Propagate may return a memo that Backprop wants.
	UsesMemo
	// Random says that Propagate draws random numbers (Workspace.Rand).
	Random
)

var propertyNames = []string{"simple", "updatable", "propagate-in-place", "propagate-adds", "reorders-indexes",
	"backprop-adds", "backprop-needs-input", "backprop-needs-output", "backprop-in-place", "stores-stats",
	"input-contiguous", "output-contiguous", "uses-memo", "random"}

// Has reports whether p includes all the properties of q.
func (p Properties) Has(q Properties) bool { return p&q == q }

// String returns the names of the properties, separated by bars.
func (p Properties) String() string {
	var set []string
	for i, name := range propertyNames {
		if p&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return strings.Join(set, "|")
}

// with returns p with q added if yes.
func (p Properties) with(q Properties, yes bool) Properties {
	if yes {
		return p | q
	}
	return p
}

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
