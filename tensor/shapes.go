package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// Shapes infers the shapes of variables, as int64 scalars that are computed from the shapes of
// inputs. It is a feature: attached to a graph, it remembers all shapes, so that all questions
// together take time proportional to the graph.
//
// The scalars need not be part of the graph; a replacement that uses them imports them. The shape
// of a variable never changes, so an answer stays valid when the graph changes.
type Shapes struct {
	shapeMemory
	sizes map[int]*fgraph.Variable
	// The shapes of variables that are not part of the graph, during one question.
	outside map[*fgraph.Variable][]*fgraph.Variable
	asking  bool
	missing []*fgraph.Variable // variables whose shapes are needed first
	open    bool
}

// NewShapes returns a feature for one graph. Without a graph it remembers nothing.
func NewShapes() *Shapes { return new(Shapes) }

// Open makes answers what they are where no size of an input is known: of one graph for all sizes and another one for
// some, rules make the same then, so that rounding is the same. It lasts until [Shapes.Close].
func (s *Shapes) Open() { s.open = true }

// Close makes sizes that are known numbers.
func (s *Shapes) Close() {
	s.open = false
	clear(s.known)
}

// ShapesOf returns the Shapes that is attached to a graph, or one that remembers nothing.
func ShapesOf(g *fgraph.FunctionGraph) *Shapes {
	if s, ok := fgraph.FeatureOf[*Shapes](g); ok {
		return s
	}
	return NewShapes()
}

// shapeMemory remembers the shapes of the variables of a graph.
type shapeMemory struct {
	g     *fgraph.FunctionGraph
	known []knownShape // by ID of the variable
}

// A knownShape is the shape of a variable. A constant that nothing uses any more leaves the graph without
// a word, and another variable gets its ID.
type knownShape struct {
	of   *fgraph.Variable
	dims []*fgraph.Variable
}

// OnAttach makes the memory remember shapes of g. It returns fgraph.ErrAlreadyAttached if g has
// another Shapes.
func (s *shapeMemory) OnAttach(g *fgraph.FunctionGraph) error {
	if _, ok := fgraph.FeatureOf[*Shapes](g); ok {
		return fgraph.ErrAlreadyAttached
	}
	s.g = g
	return nil
}

// OnPrune forgets the shapes of the outputs, whose IDs other variables will get.
func (s *shapeMemory) OnPrune(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	for _, v := range a.Outputs() {
		if id := v.ID(); id >= 0 && id < len(s.known) {
			s.known[id] = knownShape{}
		}
	}
}

// size returns the constant n. For a graph, equal constants are one variable.
func (s *Shapes) size(n int) *fgraph.Variable {
	// A variable is part of one graph at most, and another one may have taken it.
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
	if n, ok := s.number(v, d); ok {
		return s.size(n)
	}
	return s.Shape(v)[d]
}

// number returns a size that a type tells, unless it is to be computed from those of inputs.
func (s *Shapes) number(v *fgraph.Variable, d int) (int, bool) {
	n := TypeOf(v).Dim(d)
	return n, n != Unknown && (!s.open || v.IsConstant())
}

// dims returns the sizes of all dimensions of v in a slice that may be changed.
func (s *Shapes) dims(v *fgraph.Variable) []*fgraph.Variable {
	dims := make([]*fgraph.Variable, TypeOf(v).NDim())
	for d := range dims {
		dims[d] = s.Dim(v, d)
	}
	return dims
}

// Shape returns the sizes of all dimensions of v. The slice must not be changed.
func (s *Shapes) Shape(v *fgraph.Variable) []*fgraph.Variable {
	if dims := s.lookup(v); dims != nil {
		return dims
	}
	if s.asking { // an InferShape asks, and is called again when the answer is known
		s.missing = append(s.missing, v)
		return slices.Repeat([]*fgraph.Variable{s.size(1)}, TypeOf(v).NDim()) // until the answer is known
	}
	// No recursion, however deep the graph is: an op is asked for its shapes, which asks for those of its
	// inputs. What is not known is noted, answered with stand-ins, and found first. Then the op is asked again.
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
			// Nothing was missing, so there is no stand-in in the answer.
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

// infer returns the shapes of the outputs of an apply. It asks the op, and fills in what that does
// not know.
func (s *Shapes) infer(a *fgraph.Apply) [][]*fgraph.Variable {
	var all [][]*fgraph.Variable
	switch op := a.Op().(type) {
	case ShapeInferer:
		all = op.InferShape(a, s)
	case Fusible:
		all = broadcastShape(a, s)
	}
	if all == nil {
		all = make([][]*fgraph.Variable, len(a.Outputs()))
	}
	for i, v := range a.Outputs() {
		if t, ok := v.Type().(Type); ok && (len(all[i]) != t.NDim() || t.NDim() == 0) {
			all[i] = s.ofLeaf(v)
		}
		for d, n := range all[i] {
			// A size that takes long to compute remains a number where it is known.
			size := TypeOf(v).Dim(d)
			if k, ok := knownSize(n); size != Unknown && (!ok || k != size) {
				all[i] = slices.Clone(all[i])
				all[i][d] = s.size(size)
			}
		}
	}
	return all
}

// ofLeaf returns the shape of a variable of which only the type is known.
func (s *Shapes) ofLeaf(v *fgraph.Variable) []*fgraph.Variable {
	t := TypeOf(v)
	dims := make([]*fgraph.Variable, t.NDim())
	c := ConstantOf(v)
	for d := range dims {
		switch n := t.Dim(d); {
		case n != Unknown && !(s.open && v.Owner() == nil && c == nil):
			dims[d] = s.size(n)
		case c != nil:
			dims[d] = s.size(c.Dim(d))
		default:
			dims[d] = MustApply(ShapeIOp{D: int8(d)}, v)
		}
	}
	return dims
}

func (s *Shapes) lookup(v *fgraph.Variable) []*fgraph.Variable {
	if s.g != nil && v.Graph() == s.g {
		if id := v.ID(); id < len(s.known) && s.known[id].of == v {
			return s.known[id].dims
		}
		return nil
	}
	return s.outside[v]
}

func (s *Shapes) store(v *fgraph.Variable, dims []*fgraph.Variable) {
	if s.g != nil && v.Graph() == s.g {
		id := v.ID()
		for id >= len(s.known) {
			s.known = append(s.known, make([]knownShape, max(64, id+1-len(s.known), len(s.known)/4))...)
		}
		s.known[id] = knownShape{v, dims}
		return
	}
	if s.outside == nil {
		s.outside = make(map[*fgraph.Variable][]*fgraph.Variable)
	}
	s.outside[v] = dims
}
