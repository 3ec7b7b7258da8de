package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
)

// Shapes infers the shapes of variables, as integer scalars computed from the shapes of inputs. It is a feature: attached to a graph it
// remembers what it found, so that all questions together take time in proportion to the graph.
//
// What it returns may not be part of the graph yet; using it in a replacement brings it in. The shape of a variable never
// changes, so that an answer stays right whatever becomes of the graph.
type Shapes struct {
	g     *fgraph.FunctionGraph
	known [][]*fgraph.Variable // by number of the variable; nil: not asked yet
	sizes map[int]*fgraph.Variable
	// What the question at hand found about variables that are not part of the graph.
	outside map[*fgraph.Variable][]*fgraph.Variable
	asking  bool
	missing []*fgraph.Variable // what has to be known first
}

// NewShapes returns the feature for one graph. Without a graph it answers, but remembers nothing.
func NewShapes() *Shapes { return new(Shapes) }

// ShapesOf returns the feature of a graph, or one that remembers nothing.
func ShapesOf(g *fgraph.FunctionGraph) *Shapes {
	if s, ok := fgraph.FeatureOf[*Shapes](g); ok {
		return s
	}
	return NewShapes()
}

// OnAttach makes the feature work for g. A second one is dropped quietly.
func (s *Shapes) OnAttach(g *fgraph.FunctionGraph) error {
	if _, ok := fgraph.FeatureOf[*Shapes](g); ok {
		return fgraph.ErrAlreadyAttached
	}
	s.g = g
	return nil
}

// OnPrune forgets what is known of the outputs, whose numbers will be given to other variables.
func (s *Shapes) OnPrune(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	for _, v := range a.Outputs() {
		if id := v.ID(); id >= 0 && id < len(s.known) {
			s.known[id] = nil
		}
	}
}

// Size returns the constant n. Equal constants that the feature of a graph returns are one variable.
func (s *Shapes) Size(n int) *fgraph.Variable {
	if v := s.sizes[n]; v != nil && (v.Graph() == nil || v.Graph() == s.g) {
		return v
	}
	v := Int(n)
	if s.g != nil {
		if s.sizes == nil {
			s.sizes = make(map[int]*fgraph.Variable)
		}
		s.sizes[n] = v
	}
	return v
}

// Dim returns the size of a dimension of v.
func (s *Shapes) Dim(v *fgraph.Variable, d int) *fgraph.Variable {
	if n := TypeOf(v).Dim(d); n != Unknown {
		return s.Size(n)
	}
	return s.Shape(v)[d]
}

// Shape returns the sizes of all dimensions of v. The slice must not be changed.
func (s *Shapes) Shape(v *fgraph.Variable) []*fgraph.Variable {
	if dims := s.lookup(v); dims != nil {
		return dims
	}
	if s.asking { // by an InferShape, which is called again when the answer is known
		s.missing = append(s.missing, v)
		return s.placeholders(v)
	}
	s.asking = true
	s.missing = append(s.missing[:0], v)
	for len(s.missing) > 0 {
		todo := len(s.missing)
		w := s.missing[todo-1]
		switch {
		case s.lookup(w) != nil:
			s.missing = s.missing[:todo-1]
		case w.Owner() == nil:
			s.store(w, s.ofLeaf(w))
		default:
			if all := s.infer(w.Owner()); len(s.missing) == todo {
				for i, o := range w.Owner().Outputs() {
					s.store(o, all[i])
				}
			}
		}
	}
	s.asking = false
	dims := s.lookup(v)
	clear(s.outside)
	return dims
}

// infer asks the op of an apply, and fills in what it does not know.
func (s *Shapes) infer(a *fgraph.Apply) [][]*fgraph.Variable {
	var all [][]*fgraph.Variable
	if op, ok := a.Op().(ShapeInferer); ok {
		all = op.InferShape(a, s)
	}
	if all == nil {
		all = make([][]*fgraph.Variable, len(a.Outputs()))
	}
	for i, v := range a.Outputs() {
		if t, ok := v.Type().(Type); ok && (len(all[i]) != t.NDim() || t.NDim() == 0) {
			all[i] = s.ofLeaf(v)
		}
	}
	return all
}

// ofLeaf returns the shape of a variable that nothing is known of but the type.
func (s *Shapes) ofLeaf(v *fgraph.Variable) []*fgraph.Variable {
	t := TypeOf(v)
	dims := make([]*fgraph.Variable, t.NDim())
	c := ConstantOf(v)
	for d := range dims {
		switch n := t.Dim(d); {
		case n != Unknown:
			dims[d] = s.Size(n)
		case c != nil:
			dims[d] = s.Size(c.Dim(d))
		default:
			dims[d] = MustApply(ShapeIOp{D: int8(d)}, v)
		}
	}
	return dims
}

// placeholders stand in for a shape while it is being found.
func (s *Shapes) placeholders(v *fgraph.Variable) []*fgraph.Variable {
	dims := make([]*fgraph.Variable, TypeOf(v).NDim())
	for d := range dims {
		dims[d] = s.Size(1)
	}
	return dims
}

func (s *Shapes) lookup(v *fgraph.Variable) []*fgraph.Variable {
	if s.g != nil && v.Graph() == s.g {
		if id := v.ID(); id < len(s.known) {
			return s.known[id]
		}
		return nil
	}
	return s.outside[v]
}

func (s *Shapes) store(v *fgraph.Variable, dims []*fgraph.Variable) []*fgraph.Variable {
	if s.g != nil && v.Graph() == s.g {
		id := v.ID()
		for id >= len(s.known) {
			s.known = append(s.known, make([][]*fgraph.Variable, max(64, id+1-len(s.known), len(s.known)/4))...)
		}
		s.known[id] = dims
		return dims
	}
	if s.outside == nil {
		s.outside = make(map[*fgraph.Variable][]*fgraph.Variable)
	}
	s.outside[v] = dims
	return dims
}
