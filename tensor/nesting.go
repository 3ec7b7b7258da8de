package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Nesting op runs a graph of its own, as Theano's Scan does.
type Nesting interface {
	Op
	// Body returns the graph, which must not be changed.
	Body() *fgraph.FunctionGraph
	// CompileBody is Compile for a caller who has compiled the body. A runner that newRunner returns
	// computes the outputs of the body, which are valid until its next run, for one goroutine at a time.
	CompileBody(a *fgraph.Apply, newRunner func() BodyRunner) (Kernel, error)
}

// A BodyRunner computes the outputs of a graph for values of its inputs, with the context and the threads of the
// workspace of the op.
type BodyRunner interface {
	// Run returns the outputs, which have no memory in common with the arguments.
	Run(ws *array.Workspace, args ...*array.Array) ([]*array.Array, error)
	// Again is Run for the arguments of the last one: the headers are the same, but elements may be others.
	Again(ws *array.Workspace) ([]*array.Array, error)
}
