package component

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// Errors that the errors of this package wrap.
var (
	// ErrConfig means that a configuration line asks for something that is not possible.
	ErrConfig = errors.New("bad component configuration")
	// ErrModel means that what was read contradicts itself.
	ErrModel = errors.New("inconsistent component")
	// ErrShape means that a matrix or a precomputed value handed to a component does not fit it.
	ErrShape = errors.New("matrix does not fit the component")
)

// Component is a function from a matrix to a matrix, with parameters, that can be written to a file. A row stands for an
// index (n, t, x). A component that is computing is not changed by it, so one component can serve several goroutines;
// Init, [Read], SetTestMode, Prepare, statistics and updates need it alone.
type Component interface {
	// Type is Kaldi's name of the type, such as "AffineComponent".
	Type() string
	// InputDim and OutputDim are the numbers of columns of the input and the output.
	InputDim() int
	OutputDim() int
	Properties() Properties
	// Init makes the component that a configuration line describes. Keys that it knows are consumed; the caller reports
	// what is left (ConfigLine.Unused).
	Init(c *ConfigLine) error
	// Fields names what the component consists of, for Read, Write, Info and Copy.
	Fields(f *Fields)
	// Propagate computes the output. It adds to out if the component has the property PropagateAdds, else it overwrites
	// out without reading it. in and out may be the same view only with PropagateInPlace. The memo is nil unless the
	// component has the property UsesMemo; it belongs to the Backprop for the same data.
	Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error)
}

// Backpropper is a component that computes derivatives.
type Backpropper interface {
	// Backprop computes the derivative with respect to the input from the one with respect to the output. It adds to
	// inDeriv with the property BackpropAdds, else it overwrites inDeriv without reading it. An inDeriv without columns
	// is not needed. inValue and outValue may be left empty unless the component has BackpropNeedsInput or
	// BackpropNeedsOutput. toUpdate, of the same type, gets its parameters changed by its learning rate times their
	// gradient, and its statistics of derivatives; nil leaves them alone.
	Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error
}

// NonSimple is a component without the property Simple: an output row depends on input rows with other indexes.
type NonSimple interface {
	// InputIndexes appends to dst the indexes of the input that the output at out may depend on.
	InputIndexes(out index.Index, dst []index.Index) []index.Index
	// IsComputable reports whether the output at out can be computed from the inputs for which has answers true. If it
	// can and used isn't nil, the inputs that the output depends on are appended to used.
	IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool
	// ReorderIndexes puts the indexes of input and output into an order that the component prefers. The components of
	// this package take any order and leave them as they are.
	ReorderIndexes(in, out *[]index.Index)
	// PrecomputeIndexes finds out where in the input the rows are that each row of the output needs. It may return nil
	// where nothing is worth keeping.
	PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error)
}

// Precomputed is what PrecomputeIndexes made of the indexes of input and output: immutable, and understood only by the
// component that made it.
type Precomputed interface{}

// RowTaker is a Precomputed that can say the same about another input: one in which row i of the old input is row rows[i],
// and which has inputRows rows.
type RowTaker interface {
	TakeRows(rows []int32, inputRows int) Precomputed
}

// Memo is what Propagate leaves for Backprop, understood only by the component that made it.
type Memo interface{}

// Identity is a component whose Propagate may be a plain copy of its input. That says nothing about its Backprop.
type Identity interface {
	// IsIdentity reports whether, as the component is now, Propagate copies its input and does nothing else.
	IsIdentity() bool
}

// BackwardIdentity is a component whose Backprop may be a plain copy of the derivative of its output.
type BackwardIdentity interface {
	// IsIdentityBackward reports whether, as the component is now, Backprop copies the derivative and does nothing else.
	IsIdentityBackward() bool
}

// UpdatesAlongside is a component whose update can't be had apart from the derivative of the input: because Backprop finds the gradient
// of the parameters on the way to it, so that one costs about as much as both, or because units that an update finds in need of repair
// have another derivative.
type UpdatesAlongside interface {
	UpdatesAlongside()
}

// TestModer is a component that behaves differently in training and in use.
type TestModer interface {
	SetTestMode(test bool)
	TestMode() bool
}

// StatsStorer is a component with the property StoresStats.
type StatsStorer interface {
	// StoreStats accumulates statistics of a call of Propagate. in may be empty after propagation in place.
	StoreStats(in, out kernel.Matrix, memo Memo)
}

// StatsZeroer is a component that has statistics, of whatever kind, that can be forgotten.
type StatsZeroer interface {
	ZeroStats()
}

// Preparer is a component that has a form of its parameters in which it computes faster. Prepare makes it, once, before the
// component is shared between goroutines.
type Preparer interface {
	Prepare()
}

// Renewer is a Preparer with parameters that may change. Renew makes the forms that were made of them anew, here and in the
// components that were derived from this one, in the same memory. It must be called after parameters were changed by hand.
type Renewer interface {
	Renew()
}

// Properties says what a component can do and what it needs. The bits are Kaldi's.
type Properties uint32

// The properties.
const (
	// Simple components map rows one by one: the same number of rows in and out, with equal indexes.
	Simple Properties = 1 << iota
	// Updatable components have parameters that can be trained. They implement UpdatableComponent.
	Updatable
	// PropagateInPlace allows input and output of Propagate to be the same view.
	PropagateInPlace
	// PropagateAdds says that Propagate adds to its output.
	PropagateAdds
	// ReordersIndexes says that ReorderIndexes may change its arguments. No component of this package has it.
	ReordersIndexes
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
	// InputContiguous asks for input rows without a gap between them. The components of this package compute without it.
	InputContiguous
	// OutputContiguous asks for output rows without a gap between them. The components of this package compute without it.
	OutputContiguous
	// UsesMemo says that Propagate may return a memo that Backprop wants.
	UsesMemo
	// Random says that Propagate draws random numbers (Workspace.Rand).
	Random
	numProperties = iota
)

// Has reports whether p has all the properties of q.
func (p Properties) Has(q Properties) bool { return p&q == q }

// String lists the properties, separated by bars.
func (p Properties) String() string {
	names := [numProperties]string{"simple", "updatable", "propagate-in-place", "propagate-adds", "reorders-indexes",
		"backprop-adds", "backprop-needs-input", "backprop-needs-output", "backprop-in-place", "stores-stats",
		"input-contiguous", "output-contiguous", "uses-memo", "random"}
	var set []string
	for i, name := range names {
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

// checkSimple checks the arguments of Propagate of a simple component.
func checkSimple(c Component, in, out kernel.Matrix) error {
	if in.Rows != out.Rows || in.Cols != c.InputDim() || out.Cols != c.OutputDim() {
		return shapeError(c, "propagate", in, out)
	}
	return nil
}

// checkDims checks the columns of the arguments of Propagate.
func checkDims(c Component, in, out kernel.Matrix) error {
	if in.Cols != c.InputDim() || out.Cols != c.OutputDim() {
		return shapeError(c, "propagate", in, out)
	}
	return nil
}

// checkBackprop checks the derivatives handed to Backprop, the values as far as the properties demand them, and that
// toUpdate is of the type of c.
func checkBackprop(c Component, inValue, outValue, outDeriv kernel.Matrix, toUpdate Component, inDeriv kernel.Matrix) error {
	p := c.Properties()
	if outDeriv.Cols != c.OutputDim() || inDeriv.Cols != 0 && inDeriv.Cols != c.InputDim() ||
		p.Has(Simple) && inDeriv.Cols != 0 && inDeriv.Rows != outDeriv.Rows {
		return shapeError(c, "backprop", inDeriv, outDeriv)
	}
	if p.Has(BackpropNeedsInput) && (inValue.Cols != c.InputDim() || p.Has(Simple) && inValue.Rows != outDeriv.Rows) ||
		p.Has(BackpropNeedsOutput) && (outValue.Cols != c.OutputDim() || outValue.Rows != outDeriv.Rows) {
		return shapeError(c, "backprop values", inValue, outValue)
	}
	if toUpdate != nil && toUpdate.Type() != c.Type() {
		return fmt.Errorf("%s: backprop: component to update is a %s: %w", c.Type(), toUpdate.Type(), ErrShape)
	}
	return nil
}

func shapeError(c Component, what string, in, out kernel.Matrix) error {
	return fmt.Errorf("%s (%d -> %d): %s: input side is %d×%d, output side %d×%d: %w",
		c.Type(), c.InputDim(), c.OutputDim(), what, in.Rows, in.Cols, out.Rows, out.Cols, ErrShape)
}

func wanted(m kernel.Matrix) bool { return m.Cols != 0 }
