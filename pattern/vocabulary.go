package pattern

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// A Vocabulary gives the names in a pattern their meaning. A front-end has one,
// with a name for each of its ops.
type Vocabulary interface {
	// Op returns the op of that name, parameters in braces included, and
	// whether there is one.
	Op(name string) (Op, bool)
	// Equal reports whether the constant c is the number l, in value and in
	// type, as far as l has one.
	Equal(l Literal, c *fgraph.Variable) bool
	// Constant returns a constant for the number l in a replacement of the
	// variable like, from which it takes what l does not say, such as its type.
	Constant(l Literal, like *fgraph.Variable) (*fgraph.Variable, error)
}

// An Op is what a [Vocabulary] knows of an op.
type Op struct {
	// Match reports whether an apply's op is this one.
	Match func(fgraph.Op) bool
	// Make returns the first output of a new apply, or an error when the
	// inputs do not fit. Nil: the op can't stand in a replacement.
	Make func(inputs []*fgraph.Variable) (*fgraph.Variable, error)
	// MinInputs and MaxInputs bound the number of inputs; MaxInputs -1 is no
	// bound.
	MinInputs, MaxInputs int
	// Commutes says that the order of the inputs does not matter.
	Commutes bool
	// Tracks says which applies can match, for rules with this op at their
	// root. Empty: they are shown every apply.
	Tracks []rewrite.Track
}

// Is returns the Match of an op that is one value.
func Is(op fgraph.Op) func(fgraph.Op) bool {
	return func(o fgraph.Op) bool { return fgraph.OpsEqual(op, o) }
}
