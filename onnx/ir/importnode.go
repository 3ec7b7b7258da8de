package ir

import (
	"cmp"
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

// A scope has the values that names stand for in a graph of the model: the main one, a branch of an If,
// a body, or the nodes of a function.
type scope struct {
	*frame
	outer  *scope // whose names are known as well, nil for none
	made   *graphOf
	vars   map[string]*fgraph.Variable
	failed map[string]bool // names of values that nothing computes because of a fault
	types  []declaration   // those that the model declares, by name
	path   string          // for messages: of the graphs around
	branch *branchOf
	// lenient says that types need not fit: a branch of an If that is never taken may be one for other
	// shapes.
	lenient bool
}

// A graphOf collects the applies of a graph. Branches of Ifs and functions belong to the graph that
// they are in, and a body is one of its own.
type graphOf struct {
	number  int
	first   int // the origin of its first apply
	applies []*fgraph.Apply
	// captured are the values from around a body, in order, and what they are in it.
	captured []*fgraph.Variable
	inside   map[*fgraph.Variable]*fgraph.Variable
}

// A frame is a function whose nodes take the place of a call, or the model itself.
type frame struct {
	caller     *frame
	depth      int
	function   *onnx.Function
	call       *functionCall // that of the function
	opsets     map[string]int64
	attributes map[string]*onnx.Attribute // that nodes may refer to
}

// newGraph returns a graph without applies.
func (im *importer) newGraph() *graphOf {
	im.graphs++
	return &graphOf{number: im.graphs, first: len(im.source.nodes)}
}

// scope returns a new scope in another one, or without any names.
func (im *importer) scope(outer *scope, made *graphOf, f *frame) *scope {
	s := &scope{frame: f, outer: outer, made: made, vars: make(map[string]*fgraph.Variable), lenient: im.Lenient}
	if outer != nil {
		s.path, s.branch, s.lenient = outer.path, outer.branch, outer.lenient
	}
	return s
}

// find returns the value of a name. On the way into a body it becomes an input of that.
func (s *scope) find(name string) *fgraph.Variable {
	if v := s.vars[name]; v != nil || s.outer == nil {
		return v
	}
	v := s.outer.find(name)
	// A branch is part of the graph around it, so nothing has to be captured.
	if v == nil || s.made == s.outer.made {
		return v
	}
	return s.made.capture(v, name)
}

// capture returns what a value from around a body is in it. A small constant is one inside as well,
// since axes and the like are what types follow from.
func (b *graphOf) capture(v *fgraph.Variable, name string) *fgraph.Variable {
	if in := b.inside[v]; in != nil {
		return in
	}
	var in *fgraph.Variable
	if x := ValueOf(v); IsOmitted(v) || x != nil && x.Small() {
		in = fgraph.NewConstant(v.Type(), v.Data(), v.Name())
	} else {
		in = fgraph.NewInput(v.Type(), name)
		b.captured = append(b.captured, v)
	}
	if b.inside == nil {
		b.inside = make(map[*fgraph.Variable]*fgraph.Variable)
	}
	b.inside[v] = in
	return in
}

// fail notes that a fault is why nothing computes a value.
func (s *scope) fail(name string) {
	if s.failed == nil {
		s.failed = make(map[string]bool)
	}
	s.failed[name] = true
}

// hasFailed reports whether a fault is why nothing computes a value.
func (s *scope) hasFailed(name string) bool {
	for ; s != nil; s = s.outer {
		if s.failed[name] {
			return true
		}
	}
	return false
}

// sees reports whether a name is known before any node is imported.
func (s *scope) sees(name string) bool {
	for ; s != nil; s = s.outer {
		if s.vars[name] != nil {
			return true
		}
	}
	return false
}

// sorted returns nodes in an order in which each comes behind those whose results it uses: the model's own
// if that is one, as ONNX demands. Programs that convert models to half floats, for example, put their
// casts anywhere, and ONNX Runtime sorts them. A name that is visible from around the graph means the value
// there, until a node defines it anew.
func (im *importer) sorted(nodes []*onnx.Node, s *scope) ([]int, error) {
	if len(nodes) == 1 { // as in most branches
		return []int{0}, nil
	}
	order := make([]int, len(nodes))
	maker := make(map[string]int, len(nodes))
	for i, n := range nodes {
		order[i] = i
		for _, name := range n.Outputs {
			if _, taken := maker[name]; name != "" && !taken {
				maker[name] = i
			}
		}
	}
	makers := func(i int) (list []int) {
		for _, name := range im.uses.Of(nodes[i]) {
			if k, ok := maker[name]; ok && !s.sees(name) {
				list = append(list, k)
			}
		}
		return list
	}
	early := func(i int) bool {
		return slices.ContainsFunc(im.uses.Of(nodes[i]), func(name string) bool { return maker[name] > i && !s.sees(name) })
	}
	// Nearly all models are in order, and keep the one that they have.
	if !slices.ContainsFunc(order, early) {
		return order, nil
	}
	im.source.unsorted = true
	var circle error
	order = onnx.DepthFirst(order, makers, func(path []int) {
		circle = cmp.Or(circle, errors.New(whereOf(path[0], nodes[path[0]])+" depends on its own results"))
	})
	return order, circle
}
