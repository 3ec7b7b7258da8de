package repro

import (
	"context"
	"iter"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/lists"
)

// A World is a dialect of graphs whose optimizers are examined. What more it knows about them, it
// implements as one of the optional interfaces Attacher, Completer, Evaluator, Judge, Sampler, Recorder, Formatter,
// Limiter, Simplifier and Shrinker. Their methods leave graphs as they are, except for Attach and Evaluate.
//
// A world that wraps another one has a method Unwrap() World. The other one is asked for the
// interfaces that it does not implement itself.
type World interface {
	// Dialect returns how graphs are written.
	Dialect() graphfile.Dialect
}

// An Attacher attaches the features that passes and Evaluate need. By default, no features are
// attached.
type Attacher interface {
	// Attach attaches features to a graph that has none. inputs and outputs say for each of its
	// inputs and outputs which one of graph like it replaces, -1 for none.
	Attach(g, like *fgraph.FunctionGraph, inputs, outputs []int) error
}

// A Completer adds to graphs that were read from a file what no section of the file has. By default,
// nothing is missing.
type Completer interface {
	Complete(g *fgraph.FunctionGraph) error
}

// Complete completes the graphs of a file.
func Complete(w World, f *graphfile.File) error {
	c, ok := find[Completer](w)
	if !ok {
		return nil
	}
	for _, g := range f.Graphs() {
		if err := c.Complete(g); err != nil {
			return err
		}
	}
	return nil
}

// An Evaluator computes graphs, see [Interpret]. By default, a case is judged by what happens while
// the optimizer runs, with a check of the graph after every pass, and by whether the optimized
// graph overwrites what it may not. A case with values, or one that fails in values or in a run, is
// an ErrCase then.
type Evaluator interface {
	// Random returns random values for the inputs of a graph.
	Random(ctx context.Context, g *fgraph.FunctionGraph, seed uint64) ([]any, error)
	// Evaluate computes the outputs of a graph, which it may change. It does not change inputs.
	Evaluate(ctx context.Context, g *fgraph.FunctionGraph, inputs []any) (outputs []any, err error)
	// Differ says how the outputs differ from those that are right, or returns "".
	Differ(outputs, right []any) string
}

// A Judge compares outputs with what it knows of the graph that they are of. By
// default, outputs are compared by Differ.
type Judge interface {
	// Judge returns a function that compares outputs of optimized graphs with those that are right. g is
	// the graph before optimization, and Judge may keep it. The function says how outputs differ, or
	// returns "", and why Differ is no failure where it tells them apart nevertheless.
	Judge(g *fgraph.FunctionGraph, inputs, right []any) func(ctx context.Context, outputs []any) (differ, accepted string, err error)
}

// A Recorder computes what is inside of a graph. By default, Evaluate does, for a copy of the graph
// with more outputs.
type Recorder interface {
	// Record computes variables of a graph that no pass has changed. It returns nil if that takes
	// too much memory; then Reduce makes random values in their place.
	Record(ctx context.Context, g *fgraph.FunctionGraph, inputs []any, vars []*fgraph.Variable) ([]any, error)
}

// A Formatter writes the values of inputs. By default, files of cases have no values.
type Formatter interface {
	// FormatValue returns the value of an input as text without line breaks. ParseValue reads it.
	FormatValue(t fgraph.Type, value any) (string, error)
	ParseValue(t fgraph.Type, text string) (any, error)
}

// A Limiter knows which types inputs and outputs of a graph can have. By default, there can be any
// number of them of every type.
type Limiter interface {
	// Inputs reports whether there can be any number of inputs of a type, one, or none.
	Inputs(t fgraph.Type) Multiplicity
	// Outputs reports whether a value of a type can be an output.
	Outputs(t fgraph.Type) bool
}

// A Simplifier makes ops simpler. By default, Reduce keeps ops as they are.
type Simplifier interface {
	// Simpler yields simpler ops for an apply, with inputs among its own, and with the same types
	// of outputs.
	Simpler(a *fgraph.Apply) iter.Seq[*fgraph.Apply]
}

// A Shrinker makes values smaller. By default, Reduce keeps types, and values of inputs that are
// left, as they are.
type Shrinker interface {
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

// find returns the first world that implements T: w, or else what it wraps.
func find[T any](w World) (found T, ok bool) {
	for w != nil {
		if found, ok = w.(T); ok {
			return found, true
		}
		wrapper, ok := w.(interface{ Unwrap() World })
		if !ok {
			break
		}
		w = wrapper.Unwrap()
	}
	return found, false
}

// part is find with a default.
func part[T any](w World, otherwise T) T {
	if found, ok := find[T](w); ok {
		return found
	}
	return otherwise
}

// defaults is what holds for a world that does not implement an interface. Without a Recorder see
// record, without a Formatter see Case.File.
type defaults struct{}

var _ interface {
	Attacher
	Evaluator
	Limiter
	Simplifier
	Shrinker
} = defaults{}

func (defaults) Attach(_, _ *fgraph.FunctionGraph, _, _ []int) error { return nil }

func (defaults) Random(context.Context, *fgraph.FunctionGraph, uint64) ([]any, error) {
	return nil, nil
}

// Evaluate returns no outputs. It finds out what can be told without them.
func (defaults) Evaluate(_ context.Context, g *fgraph.FunctionGraph, _ []any) ([]any, error) {
	return nil, validate(g)
}

func (defaults) Differ(_, _ []any) string { return "" }

func (defaults) Inputs(fgraph.Type) Multiplicity { return Many }

func (defaults) Outputs(fgraph.Type) bool { return true }

func (defaults) Simpler(*fgraph.Apply) iter.Seq[*fgraph.Apply] {
	return func(func(*fgraph.Apply) bool) {}
}

func (defaults) Shrink(*fgraph.FunctionGraph, []any) iter.Seq[Smaller] {
	return func(func(Smaller) bool) {}
}

// record computes variables of a graph that no pass has changed, or returns nil.
func record(ctx context.Context, w World, g *fgraph.FunctionGraph, inputs []any, vars []*fgraph.Variable) ([]any, error) {
	if r, ok := find[Recorder](w); ok {
		return r.Record(ctx, g, inputs, vars)
	}
	c, m := g.Clone()
	// The graph keeps its own outputs in front, so that Attach finds every one of them.
	sources := lists.Range[int](len(g.Outputs()))
	for _, v := range vars {
		if err := c.AddOutput(m.Of(v), fgraph.Reason{}); err != nil {
			return nil, err
		}
		sources = append(sources, -1)
	}
	if err := part[Attacher](w, defaults{}).Attach(c, g, lists.Range[int](len(g.Inputs())), sources); err != nil {
		return nil, err
	}
	outputs, err := part[Evaluator](w, defaults{}).Evaluate(ctx, c, inputs)
	if err != nil || len(outputs) != len(sources) {
		return nil, err
	}
	return outputs[len(g.Outputs()):], nil
}
