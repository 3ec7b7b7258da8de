package component

import "strings"

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
	// ReordersIndexes marks components of Kaldi's that want their rows in an order of their own.
	// None here does.
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
