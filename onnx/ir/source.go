package ir

import (
	"context"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// A Source is the feature of a graph that knows the model it is from: what the graph itself does not
// have, so that Export loses nothing. It keeps a record of what passes changed.
type Source struct {
	// Model is the model that was imported. It does not change.
	Model *onnx.Model
	// Operators are those that the ops of the graph belong to.
	Operators *Operators
	// Evaluator computes nodes whose inputs are constants, if it is not nil.
	Evaluator Evaluator
	// Dir is the folder of the model, where external data are.
	Dir string

	// imported is the graph of the model. Another graph with this source, such as a copy or a part, has
	// inputs and outputs of its own.
	imported *fgraph.FunctionGraph

	*origins
	opsets   map[string]int64
	raise    int64   // the last version to which the model may be raised
	fixed    bool    // sizes or values were given, which the types of inputs and outputs may show
	unsorted bool    // the model has nodes in front of others whose results they use; the graph and what Export returns are sorted
	grown    *growth // see Room
	changes  []Change
}

// origins are what all graphs of a model know of its nodes.
type origins struct {
	nodes  []imported // by origin of an apply
	latest int64      // the last version of ONNX's operators in which all of the model mean the same
	// constants are the Constant nodes, by what they have.
	constants   map[*Value]*onnx.Node
	symbols     map[string]bool // the names of symbols
	contributed bool            // the model has the operator of that name in a version that lacks it
	calls       bool            // there are calls of functions among the nodes
	// initializers are those of the model by name, once somebody has asked.
	initializers func() map[string]*onnx.Tensor
}

// An Evaluator computes ops.
type Evaluator interface {
	// Evaluate returns the results of an op for inputs, nil for those that are left out.
	Evaluate(ctx context.Context, op *Op, inputs []*Value) ([]*Value, error)
}

// An imported node is one of the model, with the op that it became.
type imported struct {
	node   *onnx.Node
	op     *Op
	path   string    // of the graph that it is in: "node 3, If/then_branch/"
	index  int       // in that graph
	branch *branchOf // that it is in, nil for none
	// function is what is known of a node of a function, or of one that calls a function, else nil.
	function *inFunction
}

// A branchOf is a branch of an If of the model: the first or the second one, k, of the node of an origin.
type branchOf struct {
	outer *branchOf
	of, k int
}

// A Change is a replacement that a pass made.
type Change struct {
	fgraph.Reason
	Old string // the name of the value, and what computed it
	Op  string
	New string
	By  string
}

// NewSource returns the feature for graphs of no file, with the newest operators that package
// onnx/lower knows.
func NewSource(operators *Operators) *Source {
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: newestOpset}}, Graph: &onnx.Graph{Name: "graph"}}
	return &Source{Model: m, Operators: operators, origins: newOrigins(m), opsets: map[string]int64{"": newestOpset}, raise: math.MaxInt64, grown: new(growth)}
}

const newestOpset = 22

func newOrigins(m *onnx.Model) *origins {
	return &origins{latest: math.MaxInt64, constants: make(map[*Value]*onnx.Node), symbols: make(map[string]bool), initializers: sync.OnceValue(func() map[string]*onnx.Tensor {
		byName := make(map[string]*onnx.Tensor)
		for _, t := range slices.Backward(m.Graph.Initializers) { // the first of a name counts
			byName[t.Name] = t
		}
		return byName
	})}
}

// OnAttach lets a graph have one source.
func (s *Source) OnAttach(g *fgraph.FunctionGraph) error {
	if _, ok := fgraph.FeatureOf[*Source](g); ok {
		return fgraph.ErrAlreadyAttached
	}
	// What is there from the beginning is no growth.
	s.grown = new(growth)
	return nil
}

// For returns the feature for another graph of the same model, such as a copy.
func (s *Source) For() *Source {
	c := *s
	c.changes, c.imported = nil, nil
	return &c
}

// SourceOf returns the source of a graph, or that of a graph of no file.
func SourceOf(g *fgraph.FunctionGraph) *Source {
	if s, ok := fgraph.FeatureOf[*Source](g); ok {
		return s
	}
	return NewSource(Standard())
}

// Opset returns the version of a domain.
func (s *Source) Opset(domain string) int64 { return s.opsets[domain] }

// Changes returns what passes replaced, in order.
func (s *Source) Changes() []Change { return s.changes }

// Note notes changes of another graph of the model, such as a body.
func (s *Source) Note(list ...Change) { s.changes = append(s.changes, list...) }

// OnCommit notes replacements. What replaces a value and has no name takes that of the value. A better
// type for the same node is no change.
func (s *Source) OnCommit(_ *fgraph.FunctionGraph, pairs []fgraph.Replacement, why fgraph.Reason) {
	for _, p := range pairs {
		if p.New.Name() == "" {
			p.New.SetName(p.Old.Name())
		}
		if a, b := p.Old.Owner(), p.New.Owner(); a != nil && b != nil && a.Op() == b.Op() && p.Old.Name() == p.New.Name() && slices.Equal(a.Inputs(), b.Inputs()) {
			continue
		}
		s.changes = append(s.changes, Change{Reason: why, Old: p.Old.Name(), Op: opName(p.Old), New: p.New.Name(), By: opName(p.New)})
		// What takes the place of a node inherits its origin, so that messages about it, and its name
		// in the file, still lead to the model.
		if a, b := p.Old.Owner(), p.New.Owner(); a != nil && b != nil && b.Origin() < 0 {
			b.SetOrigin(a.Origin())
		}
	}
}

// opName says what computes a variable.
func opName(v *fgraph.Variable) string {
	switch {
	case v.Owner() != nil:
		return v.Owner().Op().(*Op).Name()
	case v.IsConstant():
		return "constant"
	}
	return "input"
}

// origin returns the node of the model that an apply comes from, or nil.
func (o *origins) origin(a *fgraph.Apply) *imported {
	if k := a.Origin(); k >= 0 && k < len(o.nodes) {
		return &o.nodes[k]
	}
	return nil
}

// Where says which node of the model an apply comes from, such as "node 3, If/then_branch/node 0, Neg":
// the number of a node in its graph, its operator and its name. It is the op if there is no such node.
func (s *Source) Where(a *fgraph.Apply) string {
	if old := s.origin(a); old != nil {
		return old.where()
	}
	return a.Op().(*Op).Name()
}

// Nodes yields the ops that the nodes of the model became and where these are, in order: those that no
// output depends on as well, and those of functions where they are called.
func (s *Source) Nodes(yield func(where string, op *Op) bool) {
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.op == nil || n.function != nil && n.function.is != nil {
			continue
		}
		if !yield(n.where(), n.op) {
			return
		}
	}
}

func (n *imported) where() string { return n.path + whereOf(n.index, n.node) }

// whereOf names a node by its place in its graph, its operator and its name.
func whereOf(i int, n *onnx.Node) string {
	where := "node " + strconv.Itoa(i) + ", " + n.Op
	if n.Name != "" {
		where += " " + n.Name
	}
	return where
}

// Initializer returns an initializer of the model, or nil. If it is an input, too, that is its default.
func (s *Source) Initializer(name string) *onnx.Tensor {
	return s.initializers()[name]
}
