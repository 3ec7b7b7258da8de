package ir

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

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
