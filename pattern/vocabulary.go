package pattern

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// A Vocabulary defines the names of ops in patterns. A front end has one, with a name for each
// of its ops.
type Vocabulary interface {
	// Operator returns the operator with that name, which includes parameters in braces, and
	// whether there is one.
	Operator(name string) (Operator, bool)
	// Equal reports whether the constant c equals the number l, in value and, as far as l
	// has one, in type.
	Equal(l Literal, c *fgraph.Variable) bool
	// Constant returns a constant for the number l in a replacement of the variable like,
	// which determines what l leaves open, such as the type.
	Constant(l Literal, like *fgraph.Variable) (*fgraph.Variable, error)
}

// An Operator is the entry of a [Vocabulary] for an op.
type Operator struct {
	// Match reports whether the op of an apply is this one.
	Match func(fgraph.Op) bool
	// Make returns the first output of a new apply, or an error if the inputs are invalid.
	// If Make is nil, the op can't be used in a replacement.
	Make func(inputs []*fgraph.Variable) (*fgraph.Variable, error)
	// MinInputs and MaxInputs bound the number of inputs. If MaxInputs is -1, there is no
	// upper bound.
	MinInputs, MaxInputs int
	// Commutes says that the order of the inputs does not matter.
	Commutes bool
	// Tracks selects the applies that can match, for rules with this op at their root. If it
	// is empty, such rules are shown every apply.
	Tracks []rewrite.Track
}

// Is returns an [Operator.Match] that compares with op.
func Is(op fgraph.Op) func(fgraph.Op) bool {
	return func(o fgraph.Op) bool { return fgraph.OpsEqual(op, o) }
}
