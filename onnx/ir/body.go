package ir

import (
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// A Body is a graph that a node holds as an attribute: what a Loop or a Scan does in a round, or a
// SequenceMap with an item. It sees nothing outside: what its nodes use from around the node is an
// input of the graph and of the apply, behind those that the operator says. It does not change.
type Body struct {
	// Name is the name of the attribute.
	Name string
	// Graph has a Source, and as inputs first the parameters, which the operator gives in each round.
	Graph *fgraph.FunctionGraph
	// Params is the number of parameters.
	Params int

	listed bool        // the attribute is a list of graphs
	types  []Type      // of the results, as the model declares them; nil if sizes were given, which may be others
	file   *onnx.Graph // whose name and documentation are kept, nil if the body is of no file
}

// Captures returns the number of inputs that are values from around the node.
func (b *Body) Captures() int { return len(b.Graph.Inputs()) - b.Params }

// With returns the body with another graph, which has the same parameters, and outputs of the same
// types.
func (b *Body) With(g *fgraph.FunctionGraph) *Body {
	c := *b
	c.Graph = g
	return &c
}

// Copy returns a copy of the graph that may be changed, and what variables are in it.
func (b *Body) Copy() (*fgraph.FunctionGraph, *fgraph.Mapping, error) {
	g, m := b.Graph.Clone()
	return g, m, g.Attach(SourceOf(b.Graph).For())
}

// DropUnread removes the inputs that the graph of a body does not read, except for its parameters, and
// returns the captured values that are left.
func DropUnread(g *fgraph.FunctionGraph, params int, captured []*fgraph.Variable, why fgraph.Reason) ([]*fgraph.Variable, error) {
	rest := slices.Clone(captured)
	for i := len(g.Inputs()) - 1; i >= params; i-- {
		if len(g.Inputs()[i].Clients()) > 0 {
			continue
		}
		if err := g.RemoveInput(i, why); err != nil {
			return nil, err
		}
		rest = slices.Delete(rest, i-params, i-params+1)
	}
	return rest, nil
}

// Body returns the body of a name, or nil.
func (op *Op) Body(name string) *Body {
	if i := slices.IndexFunc(op.Bodies, func(b *Body) bool { return b.Name == name && !b.listed }); i >= 0 {
		return op.Bodies[i]
	}
	return nil
}

// Captures returns how many of the inputs of an apply, the last ones, are what bodies see from around
// it, in the order of the bodies.
func (op *Op) Captures() (n int) {
	for _, b := range op.Bodies {
		n += b.Captures()
	}
	return n
}

// Split divides the inputs of an apply of the op: those that the node has, and those that bodies capture.
func (op *Op) Split(inputs []*fgraph.Variable) (known, captured []*fgraph.Variable) {
	n := len(inputs) - op.Captures()
	return inputs[:n:n], inputs[n:]
}

// WithBodies returns the op with other bodies.
func (op *Op) WithBodies(list ...*Body) *Op {
	c := op.copied()
	c.Bodies = list
	return c
}

// equalBodies reports whether bodies compute the same whatever their values are called.
func equalBodies(a, b []*Body) bool {
	return slices.EqualFunc(a, b, func(a, b *Body) bool {
		return a == b || a.Name == b.Name && a.listed == b.listed && a.Params == b.Params && equalGraphs(a.Graph, b.Graph)
	})
}

// equalGraphs compares graphs apply by apply, in the order in which they are sorted. Graphs that
// differ only in that order are not found to be equal, which costs a merge and no right result.
func equalGraphs(g, h *fgraph.FunctionGraph) bool {
	if g == h {
		return true
	}
	if g.NumApplies() != h.NumApplies() || len(g.Inputs()) != len(h.Inputs()) || len(g.Outputs()) != len(h.Outputs()) {
		return false
	}
	first, err := g.Toposort()
	second, err2 := h.Toposort()
	if err != nil || err2 != nil {
		return false
	}
	same := make(map[*fgraph.Variable]*fgraph.Variable)
	equal := func(u, v *fgraph.Variable) bool {
		// Constants have no apply that would have been compared before.
		if u.IsConstant() || v.IsConstant() {
			return EqualConstants(u, v)
		}
		return same[u] == v
	}
	for i, u := range g.Inputs() {
		if u.Type() != h.Inputs()[i].Type() {
			return false
		}
		same[u] = h.Inputs()[i]
	}
	for i, a := range first {
		b := second[i]
		if !fgraph.OpsEqual(a.Op(), b.Op()) || !slices.EqualFunc(a.Inputs(), b.Inputs(), equal) {
			return false
		}
		for k, u := range a.Outputs() {
			same[u] = b.Outputs()[k]
		}
	}
	return slices.EqualFunc(g.Outputs(), h.Outputs(), equal)
}

// hashBody adds what equalBodies compares: a model may have very many bodies that differ in a constant alone.
func hashBody(h *maphash.Hash, b *Body) {
	h.WriteString(b.Name)
	order, err := b.Graph.Toposort()
	if err != nil {
		return
	}
	numbers, last := make([]uint64, b.Graph.NumVariableIDs()), uint64(0)
	number := func(list []*fgraph.Variable) {
		for _, v := range list {
			last++
			numbers[v.ID()] = last
		}
	}
	add := func(list []*fgraph.Variable) {
		for _, v := range list {
			if v.IsConstant() {
				maphash.WriteComparable(h, TypeOf(v).HashData(v.Data()))
			} else {
				maphash.WriteComparable(h, numbers[v.ID()])
			}
		}
	}
	number(b.Graph.Inputs())
	for _, a := range order {
		maphash.WriteComparable(h, a.Op().(*Op).HashOp())
		add(a.Inputs())
		number(a.Outputs())
	}
	add(b.Graph.Outputs())
}

// effects reports whether a graph holds something whose results may be others each time.
func effects(g *fgraph.FunctionGraph) bool {
	for a := range g.Applies() {
		if op, ok := a.Op().(*Op); ok && op.Unmergeable() {
			return true
		}
	}
	return false
}

// bodyTexts returns bodies in short.
func bodyTexts(bodies []*Body) []string {
	texts := make([]string, len(bodies))
	for i, b := range bodies {
		texts[i] = fmt.Sprintf("%s=graph of %s", b.Name, nodes(b.Graph.NumApplies()))
	}
	return texts
}
