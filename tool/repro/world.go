package repro

import (
	"context"
	"iter"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
)

// A World knows how graphs of a dialect are run. Its functions leave graphs as they are, except for
// Attach, and Evaluate, which owns its graph.
type World interface {
	// Dialect returns how graphs are written.
	Dialect() graphfile.Dialect
	// Attach attaches the features that passes and Evaluate need to a graph that has none. inputs
	// and outputs say for each of its inputs and outputs which one of graph like it replaces, -1
	// for none.
	Attach(g, like *fgraph.FunctionGraph, inputs, outputs []int) error
	// Random returns random values for the inputs of a graph.
	Random(ctx context.Context, g *fgraph.FunctionGraph, seed uint64) ([]any, error)
	// Evaluate computes the outputs of a graph.
	Evaluate(ctx context.Context, g *fgraph.FunctionGraph, inputs []any) (outputs []any, err error)
	// Record computes variables of a graph that no pass has changed. It returns nil if that takes
	// too much memory.
	Record(ctx context.Context, g *fgraph.FunctionGraph, inputs []any, vars []*fgraph.Variable) ([]any, error)
	// Differ says how the outputs differ from those that are right, or returns "".
	Differ(outputs, right []any) string
	// FormatValue returns the value of an input as text without line breaks. ParseValue reads it.
	FormatValue(t fgraph.Type, value any) (string, error)
	ParseValue(t fgraph.Type, text string) (any, error)
	// Inputs reports whether there can be any number of inputs of a type, one, or none.
	Inputs(t fgraph.Type) Multiplicity
	// Outputs reports whether a value of a type can be an output.
	Outputs(t fgraph.Type) bool
	// Simpler yields simpler ops for an apply, with inputs among its own, and with the same types
	// of outputs.
	Simpler(a *fgraph.Apply) iter.Seq[*fgraph.Apply]
	// Shrink yields ways to make values smaller, all over the graph. values, which may be nil, are
	// those of the inputs.
	Shrink(g *fgraph.FunctionGraph, values []any) iter.Seq[Smaller]
}

// Smaller is a graph of smaller values, without features. It has counterparts of all inputs and
// outputs. Values are those of its inputs.
type Smaller struct {
	Graph  *fgraph.FunctionGraph
	Values []any
}

// Multiplicity is how many inputs of a type a graph can have.
type Multiplicity uint8

// The multiplicities.
const (
	Many Multiplicity = iota
	One
	Never
)
