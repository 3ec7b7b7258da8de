package pattern

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// A Vocabulary defines the names of ops in patterns and the meaning of numbers. A front end has
// one, with a name for each of its ops. It may also be [Families], a [Conformer], a [Numberer], a
// [Powerer], a [Broadcaster], a [Hinter] and a [Library].
type Vocabulary interface {
	// Operator returns the operator with that name, which includes parameters in braces, and
	// whether there is one.
	Operator(name string) (Operator, bool)
	// Equal reports whether the value of v is known to be the number l, in value and, as far
	// as l has one, in type. v need not be a constant: it may be one that is broadcast.
	Equal(l Literal, v *fgraph.Variable) bool
	// Constant returns a constant for the number l in a replacement of the variable like,
	// which determines what l leaves open, such as the type.
	Constant(l Literal, like *fgraph.Variable) (*fgraph.Variable, error)
}

// Families is a vocabulary with ops that differ in parameters, which a rule can capture: in
// "(sum{a} x)" the name a is bound to the axes.
type Families interface {
	// Family returns the operator for all ops of a name without parameters. Its Param is not
	// nil.
	Family(name string) (Operator, bool)
}

// A Conformer is a vocabulary that gives replacements the right type, so that rules say algebra
// only.
type Conformer interface {
	// Conform returns v with the type of old, which it may convert and broadcast, or an
	// error. root is the apply that computes old.
	Conform(root *fgraph.Apply, old, v *fgraph.Variable) (*fgraph.Variable, error)
}

// A Numberer is a vocabulary that knows the values of variables, for the formulas of [Calc]. It
// also lets a sieve look at one number instead of many literals: Equal must not hold for a variable
// and a literal unless Number returns the Float of the literal.
type Numberer interface {
	// Number returns the number that all elements of v are known to be.
	Number(v *fgraph.Variable) (float64, bool)
}

// A Powerer is a vocabulary that computes the powers in formulas, so that they have the bits that
// its ops would give them. Without one, exponents are whole numbers up to 64.
type Powerer interface {
	Pow(x, y float64) float64
}

// A Hinter is a vocabulary that helps with names that it does not have.
type Hinter interface {
	// Hint says what the name of an op may have been meant to be, such as "; did you mean
	// mul?", or returns "".
	Hint(op string) string
}

// A Broadcaster is a vocabulary that knows what may equal a number besides constants. Drivers then
// show a rule with a number among its arguments only the applies that may have one there.
type Broadcaster interface {
	// Broadcasts selects the ops that compute variables that Equal may hold for.
	Broadcasts() []rewrite.Track
}

// A Library is a vocabulary that has functions.
type Library interface {
	// Functions returns the functions that every rule can use.
	Functions() []Function
}

// An Operator is the entry of a [Vocabulary] for an op, or for a family of ops.
type Operator struct {
	// Match reports whether the op of an apply is this one.
	Match func(fgraph.Op) bool
	// Param returns the parameters of an op that Match accepts, a comparable value or an
	// op. It is set in a family only.
	Param func(fgraph.Op) any
	// Make returns the first output of a new apply, or an error if the inputs are invalid.
	// If Make is nil, the op can't be used in a replacement.
	Make func(m Making) (*fgraph.Variable, error)
	// MinInputs and MaxInputs bound the number of inputs. If MaxInputs is -1, there is no
	// upper bound.
	MinInputs, MaxInputs int
	// Commutes says that the order of the inputs does not matter.
	Commutes bool
	// Tracks selects ops, among them all that Match accepts. Rules with this op at their root
	// are shown the applies of these, and sieves don't call Match for others. If it is empty,
	// it selects every op.
	Tracks []rewrite.Track
}

// A Making says which apply a replacement needs.
type Making struct {
	Inputs []*fgraph.Variable
	Param  any              // the parameters, for a family
	Like   *fgraph.Variable // what the whole replacement replaces
}

// Is returns an [Operator.Match] that compares with op.
func Is(op fgraph.Op) func(fgraph.Op) bool {
	return func(o fgraph.Op) bool { return fgraph.OpsEqual(op, o) }
}
