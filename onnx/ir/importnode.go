package ir

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// graph imports the initializers and nodes of a graph.
func (im *importer) graph(g *onnx.Graph, s *scope) {
	im.declare(g, s)
	for _, t := range g.Initializers {
		if s.vars[t.Name] == nil {
			s.vars[t.Name] = Constant(NewValue(t, im.Dir), t.Name)
		}
	}
	for _, t := range g.SparseInitializers {
		if t.Values != nil {
			s.vars[t.Values.Name] = Constant(&Value{sparse: t, dir: im.Dir}, t.Values.Name)
		}
	}
	im.nodes(g.Nodes, s)
}

// nodes imports nodes.
func (im *importer) nodes(nodes []*onnx.Node, s *scope) {
	im.source.nodes = slices.Grow(im.source.nodes, len(nodes))
	order, err := im.sorted(nodes, s)
	if err != nil {
		im.fault(s.path+"nodes", err)
		return
	}
	for _, i := range order {
		if im.stopped {
			return
		}
		if err := im.node(i, nodes[i], s); err != nil {
			im.fault(s.path+whereOf(i, nodes[i]), err)
		}
	}
}

// errFollows means that an input of a node is the output of one with a fault.
var errFollows = errors.New("an input failed")

func (im *importer) node(i int, n *onnx.Node, s *scope) error {
	outputs, err := im.apply(i, n, s)
	// Also those of a node with a fault, so that what reads them is not another one.
	for i, name := range n.Outputs {
		switch {
		case name == "":
		case err != nil:
			s.fail(name)
		case i < len(outputs) && outputs[i] != nil:
			if s.vars[name] != nil {
				return fmt.Errorf("the name of its output %s is taken", name)
			}
			s.vars[name] = outputs[i]
		}
	}
	if errors.Is(err, errFollows) {
		return nil
	}
	return err
}

// apply makes what computes the outputs of a node.
func (im *importer) apply(i int, n *onnx.Node, s *scope) ([]*fgraph.Variable, error) {
	n = s.resolved(n)
	if n.Op == "Constant" && domainOf(n.Domain) == "" && len(n.Outputs) == 1 {
		c, err := im.constant(n)
		return []*fgraph.Variable{c}, err
	}
	in := make([]*fgraph.Variable, len(n.Inputs))
	for i, name := range n.Inputs {
		if name == "" {
			in[i] = Missing()
		} else if in[i] = s.find(name); in[i] == nil {
			if s.hasFailed(name) {
				return nil, errFollows
			}
			return nil, fmt.Errorf("nothing computes its input %s", name)
		}
	}
	if f := im.function(n); f != nil {
		return im.call(i, n, f, in, s)
	}
	origin := len(im.source.nodes)
	im.source.nodes = append(im.source.nodes, imported{node: n, path: s.path, index: i, branch: s.branch})
	op, in, err := im.op(origin, n, in, s)
	if err != nil {
		return nil, err
	}
	in = written(in)
	im.source.nodes[origin].op = op
	if s.opsets[""] == im.source.opsets[""] { // others can't be written as they are in any case
		im.source.latest = min(im.source.latest, op.latest())
	}
	types, err := im.Operators.Infer(op, in)
	if err != nil && s.lenient {
		types, err = make([]Type, op.Outputs), nil
	}
	if err != nil {
		return nil, err
	}
	a := fgraph.NewApply(op, in, im.declared(types, n, s)...)
	a.SetOrigin(origin)
	for i, name := range n.Outputs {
		if i < len(a.Outputs()) {
			a.Outputs()[i].SetName(name)
		}
	}
	if s.call != nil {
		im.source.nodes[origin].function = &inFunction{in: s.call, opsets: s.opsets, graph: s.made.number, inputs: refsOf(a.Inputs())}
	}
	s.made.applies = append(s.made.applies, a)
	return a.Outputs(), nil
}

// declared returns the types of the outputs of a node, with what the model declares where that says more.
func (im *importer) declared(inferred []Type, n *onnx.Node, s *scope) []fgraph.Type {
	types := make([]fgraph.Type, len(inferred))
	for i, t := range inferred {
		if i < len(n.Outputs) {
			// A declaration that contradicts what follows from the inputs is stale, and ignored: tools
			// that change a model often leave its value_info as it was.
			if both, ok := t.Meet(s.declared(n.Outputs[i])); ok {
				t = both
			}
			t = symbolized(im.source.symbols, t, n.Outputs[i])
		}
		types[i] = t
	}
	return types
}
