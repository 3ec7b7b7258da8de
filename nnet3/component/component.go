package component

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// Errors that the errors of this package wrap.
var (
	// ErrConfig means that a configuration line asks for something impossible.
	ErrConfig = errors.New("bad component configuration")
	// ErrShape means that a matrix or a precomputed value handed to a component does not fit it.
	ErrShape = errors.New("matrix does not fit the component")
	// errDerived means that a derived component was to be configured, read or written.
	errDerived = errors.New("a derived component belongs to a computation, not to a model")
)

// Component is a function from a matrix to a matrix, with parameters, that can be written to a
// file. A row belongs to an index (n, t, x). Computing does not change a component, so any number
// of goroutines may share one; [Init], [Registry.Read], SetTestMode, Prepare, Renew, statistics and updates
// need exclusive access.
//
// A type defines these methods. Callers use the functions [Init], [Registry.Read], [Write], [Info], [Copy],
// [Propagate] and [Backprop], which call the methods and check the arguments.
type Component interface {
	// Type returns Kaldi's name of the type, such as "AffineComponent".
	Type() string
	// InputDim and OutputDim return the numbers of columns of the input and the output.
	InputDim() int
	OutputDim() int
	Properties() Properties
	// Init makes the component that a configuration line describes. It consumes the keys that it
	// knows and records faults in the line (ConfigLine.Fail).
	Init(line *ConfigLine)
	// Fields shows f the parts of the component, for Read, Write, Info and Copy.
	Fields(f *Fields)
	// Propagate computes the output. It adds to out if the component has the property
	// PropagateAdds; otherwise it overwrites out without reading it. in and out may be the same
	// view only with PropagateInPlace. The memo is nil unless the component has the property
	// UsesMemo; it belongs to the Backprop for the same data.
	Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error)
}

// ForwardPass is what Propagate works with beside its matrices. The zero value is right for a
// component with the property Simple whose memo is wanted.
type ForwardPass struct {
	Pre Precomputed
	// DropMemo says that Backprop won't get the memo, which then is valid only until the next
	// Propagate with the same workspace, for StoreStats.
	DropMemo bool
	// Next is what the next Propagate probably multiplies by. Products fetch it into the cache.
	Next Factors
	// Rows are the rows of the input as integers, from row FirstRow on. A quantized product
	// quantizes its input itself if they are nil, too few, or of another precision or grouping.
	Rows     *kernel.QuantizedRows
	FirstRow int
}

// Backpropper is a component that computes derivatives.
type Backpropper interface {
	Component
	// Backprop computes the derivative with respect to the input, if it is wanted, and updates
	// pass.ToUpdate, if it isn't nil. Unless the component is an UpdatableComponent, the derivative
	// is always wanted.
	Backprop(w *Workspace, pass BackwardPass) error
}

// BackwardPass is what Backprop works on.
type BackwardPass struct {
	Pre Precomputed
	// InValue and OutValue are the input and the output of Propagate. They may be empty unless the
	// component has the property BackpropNeedsInput or BackpropNeedsOutput.
	InValue, OutValue kernel.Matrix
	Memo              Memo
	// OutDeriv is the derivative with respect to the output.
	OutDeriv kernel.Matrix
	// ToUpdate, a component of the same type, has its learning rate times the gradient added to its
	// parameters, and gathers statistics of the derivatives. It may be nil.
	ToUpdate Component
	// InDeriv receives the derivative with respect to the input: added with the property
	// BackpropAdds, otherwise written without reading it. Without columns, the derivative isn't
	// wanted.
	InDeriv kernel.Matrix
}

// NonSimple is a component without the property Simple: an output row depends on input rows with
// other indexes, or what it computes depends on the index.
type NonSimple interface {
	// InputIndexes appends to dst the indexes of the input that the output at out may depend on.
	InputIndexes(out index.Index, dst []index.Index) []index.Index
	// IsComputable reports whether the output at out can be computed from the inputs for which has
	// returns true. If it can and used isn't nil, IsComputable appends the inputs that the output
	// depends on to used.
	IsComputable(out index.Index, has func(index.Index) bool, used *[]index.Index) bool
	// PrecomputeIndexes finds the input rows that each output row needs. It may return nil if
	// nothing is worth keeping.
	PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error)
}

// Precomputed is what PrecomputeIndexes made of the indexes of input and output. It is immutable,
// and only the component that made it understands it.
type Precomputed any

// RowTaker is a Precomputed that can be moved to another input, with inputRows rows, in which row
// rows[i] is row i of the old one.
type RowTaker interface {
	TakeRows(rows []int32, inputRows int) Precomputed
}

// Memo is what Propagate leaves for Backprop. Only the component that made it understands it.
type Memo any

// Identity is a component whose Propagate may be a plain copy of its input. That says nothing about
// its Backprop.
type Identity interface {
	// IsIdentity reports whether, in the component's present state, Propagate only copies its
	// input.
	IsIdentity() bool
}

// BackwardIdentity is a component whose Backprop may be a plain copy of the derivative of its
// output.
type BackwardIdentity interface {
	// IsIdentityBackward reports whether, in the component's present state, Backprop only copies
	// the derivative.
	IsIdentityBackward() bool
}

// UpdatesAlongside is a component whose update can't be separated from the derivative of the input:
// either Backprop finds the gradient of the parameters on its way to that derivative, so that one
// costs about as much as both, or an update repairs units, which changes the derivative.
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
	// StoreStats accumulates statistics of a call of Propagate. in may be empty after propagation
	// in place.
	StoreStats(in, out kernel.Matrix, memo Memo)
}

// StatsZeroer is a component with statistics of any kind.
type StatsZeroer interface {
	// ZeroStats resets the statistics.
	ZeroStats()
}

// StatsUser is a component that computes with its statistics in test mode.
type StatsUser interface {
	// LacksStats reports whether it is in test mode and has no statistics, so that it computes with
	// others in their place.
	LacksStats() bool
}

// Preparer is a component that computes faster with its parameters in another form. Prepare makes
// that form, once, before goroutines share the component.
type Preparer interface {
	Prepare()
}

// Releaser is a Preparer that can do with its prepared parameters alone. Release drops the form in
// which parameters are read and trained, which is most of the memory of a network. What needs that
// form later, such as Params, writing or training, unpacks it again, with the same bits. Release
// returns memory that it leaves to the caller, if Params was not called.
type Releaser interface {
	Release() (spare []float32)
}

// Renewer is a Preparer with parameters that may change. Renew recomputes the prepared forms in
// place, in this component and in those derived from it. Call it after changing parameters by hand.
type Renewer interface {
	Renew(t *kernel.Threads)
}

// Derived is a component that an optimization made of another one, whose parameters it shares.
type Derived interface {
	// Base returns the component of the network.
	Base() Component
}

// Init makes c, fresh from [Registry.New], the component that a configuration line describes. Keys that no
// one asked for remain in the line ([ConfigLine.Unused]).
func Init(c Component, line *ConfigLine) error {
	c.Init(line)
	return line.Err()
}

// Propagate checks the sizes of the matrices and calls c.Propagate.
func Propagate(c Component, w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	ok := in.Cols == c.InputDim() && (in.Rows == out.Rows || !rowByRow(c)) || ignoresInput(c)
	if !ok || out.Cols != c.OutputDim() {
		return nil, shapeError(c, "propagate", in, out)
	}
	return c.Propagate(w, pass, in, out)
}

// Backprop checks the matrices of the pass, and that ToUpdate has the type of c, and calls
// c.Backprop if there is something to do.
func Backprop(c Backpropper, w *Workspace, pass BackwardPass) error {
	base := Component(c)
	if d, ok := base.(Derived); ok {
		base = d.Base()
	}
	if err := checkBackward(c, base, &pass); err != nil {
		return err
	}
	if !wanted(pass.InDeriv) {
		if _, ok := base.(UpdatableComponent); !ok || pass.ToUpdate == nil {
			return nil
		}
	}
	return c.Backprop(w, pass)
}

// checkBackward checks a backward pass through c, which is base or derived from it.
func checkBackward(c, base Component, pass *BackwardPass) error {
	p, rows := c.Properties(), pass.OutDeriv.Rows
	input := func(m kernel.Matrix) bool {
		return m.Cols == c.InputDim() && (m.Rows == rows || !rowByRow(c))
	}
	output := func(m kernel.Matrix) bool { return m.Cols == c.OutputDim() && m.Rows == rows }
	inDeriv := wanted(pass.InDeriv)
	if !output(pass.OutDeriv) || inDeriv && !input(pass.InDeriv) {
		return shapeError(c, "backprop", pass.InDeriv, pass.OutDeriv)
	}
	if p.Has(BackpropNeedsInput) && (!input(pass.InValue) || inDeriv && pass.InDeriv.Rows != pass.InValue.Rows) ||
		p.Has(BackpropNeedsOutput) && !output(pass.OutValue) {
		return shapeError(c, "backprop values", pass.InValue, pass.OutValue)
	}
	if pass.ToUpdate != nil && pass.ToUpdate.Type() != base.Type() {
		return fmt.Errorf("%s: backprop: component to update is a %s: %w", c.Type(), pass.ToUpdate.Type(), ErrShape)
	}
	return nil
}

// rowByRow reports whether each row of the output belongs to the input row of the same number.
func rowByRow(c Component) bool {
	if c.Properties().Has(Simple) {
		return true
	}
	_, ok := c.(interface{ rowByRow() })
	return ok
}

// ignoresInput reports whether the output depends on no input.
func ignoresInput(c Component) bool {
	_, ok := c.(interface{ ignoresInput() })
	return ok
}

func shapeError(c Component, what string, in, out kernel.Matrix) error {
	return fmt.Errorf("%s (%d -> %d): %s: input side is %d×%d, output side %d×%d: %w",
		c.Type(), c.InputDim(), c.OutputDim(), what, in.Rows, in.Cols, out.Rows, out.Cols, ErrShape)
}

// wanted reports whether a derivative is to be computed.
func wanted(m kernel.Matrix) bool { return m.Cols != 0 }
