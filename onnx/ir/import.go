package ir

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// ErrModel means that a model is no graph of nodes whose inputs and outputs fit together.
var ErrModel = errors.New("onnx: faulty model")

// Options say how a model is imported.
type Options struct {
	// Operators are those that are known. The default is Standard.
	Operators *Operators
	// Dir is the folder of the model, where external data are.
	Dir string
	// Shapes are the sizes of inputs, in place of those in the model. Unknown ones leave those.
	Shapes map[string][]Dim
	// Values are those of inputs that become constants. The model keeps the inputs.
	Values map[string]*onnx.Tensor
	// Evaluator computes nodes whose inputs are constants. Without it they stay.
	Evaluator Evaluator
	// Opset is the version of ONNX's operators to which the model may be raised if a rule makes an
	// operator that its own version lacks. The default is 17.
	Opset int64
	// Lenient says that a node whose operator can't have inputs of such types, or whose domain has no
	// version, is no fault of the graph, only of who computes it. Its results are of unknown types.
	Lenient bool
}

// Import returns the graph of a model, with a [Source]. The error names all faults of nodes.
//
// Nodes may be in any order. Functions of the model take the place of the nodes that call them, unless
// Operators has an operator of that name. An If is an apply of the condition and of the results of both
// branches; the graphs in other nodes are bodies.
func Import(m *onnx.Model, o Options) (*fgraph.FunctionGraph, error) {
	if m.Graph == nil {
		return nil, fmt.Errorf("%w: it has no graph", ErrModel)
	}
	if o.Operators == nil {
		o.Operators = Standard()
	}
	im := &importer{Options: o, functions: make(map[string]*onnx.Function), read: make(map[*onnx.Function]map[string]bool), overloads: make(map[string]int), ops: make(map[string]*Op), types: make(map[*onnx.Type]Type), redefined: make(map[*onnx.Function]bool), source: &Source{
		Model: m, Operators: o.Operators, Evaluator: o.Evaluator, Dir: o.Dir,
		origins: newOrigins(m), opsets: opsetsOf(m.Opsets), raise: cmp.Or(o.Opset, raised),
		fixed: len(o.Shapes) > 0 || len(o.Values) > 0,
	}}
	// Before ir_version 3 no version was written, and operators were those of the first.
	if len(m.Opsets) == 0 {
		im.source.opsets[""] = 1
	}
	for _, f := range m.Functions {
		im.functions[functionName(f.Domain, f.Name, f.Overload)] = f
		im.overloads[qualified(f.Domain, f.Name)]++
	}
	root := im.scope(nil, im.newGraph(), &frame{opsets: im.source.opsets})
	root.vars = make(map[string]*fgraph.Variable, len(m.Graph.Initializers)+len(m.Graph.Nodes))
	// Before the initializers: one with the name of an input is only its default.
	inputs := im.inputs(m.Graph, root)
	im.graph(m.Graph, root)
	outputs := make([]*fgraph.Variable, len(m.Graph.Outputs))
	for i, out := range m.Graph.Outputs {
		if outputs[i] = root.vars[out.Name]; outputs[i] == nil && !root.failed[out.Name] && !im.stopped {
			im.fault("output "+out.Name, errors.New("nothing computes it"))
		}
	}
	if err := errors.Join(im.faults...); err != nil {
		return nil, fmt.Errorf("%w:\n%w", ErrModel, err)
	}
	g, err := fgraph.NewInOrder(inputs, outputs, im.live(root.made, outputs), im.source)
	im.source.imported = g
	return g, err
}

func opsetsOf(list []*onnx.Opset) map[string]int64 {
	opsets := make(map[string]int64)
	for _, s := range list {
		opsets[domainOf(s.Domain)] = s.Version
	}
	return opsets
}

// domainOf returns the name of a domain: that of ONNX's own operators is empty.
func domainOf(name string) string {
	if name == "ai.onnx" {
		return ""
	}
	return name
}

// live returns the applies of a graph that outputs depend on, in the order in which they were made.
func (im *importer) live(made *graphOf, outputs []*fgraph.Variable) []*fgraph.Apply {
	needed := make([]bool, len(im.source.nodes)-made.first) // by origin
	need := func(list []*fgraph.Variable) {
		for _, v := range list {
			if v.Owner() != nil {
				needed[v.Owner().Origin()-made.first] = true
			}
		}
	}
	need(outputs)
	// Operands were made before what reads them, so one pass from the end finds all that is needed.
	for _, a := range slices.Backward(made.applies) {
		if !needed[a.Origin()-made.first] {
			continue
		}
		need(a.Inputs())
		if f := im.source.nodes[a.Origin()].function; f != nil {
			f.live = true
		}
	}
	return slices.DeleteFunc(made.applies, func(a *fgraph.Apply) bool { return !needed[a.Origin()-made.first] })
}

// An importer makes the applies of a model.
type importer struct {
	Options
	source    *Source
	functions map[string]*onnx.Function
	inlined   int // nodes of functions
	graphs    int // how many there are: the main one and bodies
	uses      onnx.Uses
	read      map[*onnx.Function]map[string]bool
	overloads map[string]int          // how many functions of a name there are
	redefined map[*onnx.Function]bool // whether functions define a name twice
	faults    []error
	stopped   bool                // by a fault that would only be repeated
	ops       map[string]*Op      // those without bodies, by text
	types     map[*onnx.Type]Type // that the model declares
	block     int64               // of channels, see blockOf; 0 if nobody has asked
}

// maxFaults bounds the errors about a model.
const maxFaults = 100

func (im *importer) fault(where string, err error) {
	if len(im.faults) < maxFaults {
		im.faults = append(im.faults, fmt.Errorf("%s: %w", where, err))
	}
}
