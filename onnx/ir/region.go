package ir

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// A Region is a part of a graph whose applies are computed together: all but what is in branches, or
// what only one branch of an If needs.
type Region struct {
	// Applies are in an order in which operands come first.
	Applies []*fgraph.Apply

	outer  *Region       // nil for a graph that is in no other
	owner  *fgraph.Apply // the If, nil for the graph itself
	branch int
	depth  int
	inner  map[*fgraph.Apply]*[2]Region // the branches of the Ifs in it
	placed [][]*Region                  // of the whole graph: the regions of an apply, by ID
}

// Branch returns a branch of an If that is in the region: 0 if the condition holds, else 1.
func (r *Region) Branch(a *fgraph.Apply, branch int) *Region {
	both := r.inner[a]
	if both == nil {
		if r.inner == nil {
			r.inner = make(map[*fgraph.Apply]*[2]Region)
		}
		both = new([2]Region)
		for i := range both {
			both[i] = Region{outer: r, owner: a, branch: i, depth: r.depth + 1, placed: r.placed}
		}
		r.inner[a] = both
	}
	return &both[branch]
}

// computes reports whether an apply of the region computes a value.
func (r *Region) computes(v *fgraph.Variable) bool {
	return v.Owner() != nil && slices.Contains(r.placed[v.Owner().ID()], r)
}

// IsIf reports whether an apply is an If with the results of its branches among its inputs: the
// condition comes first, then those of the first branch, then those of the second.
func IsIf(a *fgraph.Apply) bool {
	op, ok := a.Op().(*Op)
	return ok && op.Domain == "" && op.Type == "If" && len(a.Inputs()) == 1+2*op.Outputs
}

// Regions divides the applies of a graph. What only one branch needs is in that branch, as it was when
// passes had not seen it: elsewhere it might fail, or cost what nobody needs. What several Ifs need in
// branches of theirs is in each, because none of these branches may be taken. What both branches of an
// If need comes before it. An apply with effects is in one region alone, not further in than the model
// had it.
func Regions(g *fgraph.FunctionGraph) (*Region, error) { return regions(g, new(Region)) }

// regions divides the applies of a graph, whose region is root.
func regions(g *fgraph.FunctionGraph, root *Region) (*Region, error) {
	applies, err := g.Toposort()
	if err != nil {
		return nil, err
	}
	root.placed = make([][]*Region, g.NumApplyIDs())
	d := &division{origins: SourceOf(g).origins, uses: make([][]*Region, g.NumApplyIDs()), placed: root.placed}
	for _, v := range g.Outputs() {
		d.use(v, root)
	}
	// Clients come first here, so the uses of an apply are all known when it is its turn.
	for _, a := range slices.Backward(applies) {
		d.place(a)
	}
	for _, a := range applies {
		for _, r := range d.placed[a.ID()] {
			r.Applies = append(r.Applies, a)
		}
	}
	return root, nil
}

type division struct {
	origins *origins
	uses    [][]*Region // by apply
	placed  [][]*Region
}

// maxPlaces bounds the regions that an apply is in. One that more branches need comes before them.
const maxPlaces = 16

// maxMoved bounds how deep in branches an If may be that the model had further out. In a chain of Ifs, each needed
// only by a branch of the next, each would move into a branch of the next one: files have messages up to 100 deep.
const maxMoved = 16

// use notes that a value is used in a region.
func (d *division) use(v *fgraph.Variable, r *Region) {
	a := v.Owner()
	if a == nil || slices.Contains(d.uses[a.ID()], r) {
		return
	}
	list := append(d.uses[a.ID()], r)
	if len(list) > 4*maxPlaces { // keeps the time linear where very many branches use a value
		list = placement(list)
	}
	d.uses[a.ID()] = list
}

// place decides where an apply is, and notes what it uses there.
func (d *division) place(a *fgraph.Apply) {
	places := placement(d.uses[a.ID()])
	op, ok := a.Op().(*Op)
	deep := IsIf(a) && slices.ContainsFunc(places, func(r *Region) bool { return r.depth >= maxMoved })
	if ok && op.Unmergeable() || deep {
		places = []*Region{d.home(a, common(places))}
	}
	d.placed[a.ID()] = places
	for _, r := range places {
		for i, v := range a.Inputs() {
			if IsIf(a) && i > 0 {
				d.use(v, r.Branch(a, (i-1)/a.Op().(*Op).Outputs))
			} else {
				d.use(v, r)
			}
		}
	}
}

// home returns the innermost region around r, or r itself, in which the model had what the apply comes
// from: further in, it would not always be computed where it was before.
func (d *division) home(a *fgraph.Apply, r *Region) *Region {
	old := d.origins.origin(a)
	if old == nil {
		return r
	}
	for ; r.owner != nil; r = r.outer {
		for b := old.branch; b != nil; b = b.outer {
			if b.of == r.owner.Origin() && b.k == r.branch {
				return r
			}
		}
	}
	return r
}

// placement returns the regions where something is computed that regions use.
func placement(uses []*Region) []*Region {
	if len(uses) == 1 {
		return uses
	}
	set := slices.Clone(uses)
	// From the innermost region outwards: a use in a region makes those further in superfluous, and
	// uses in both branches of an If are one in front of it.
	for changed := true; changed; {
		changed = false
		slices.SortStableFunc(set, func(a, b *Region) int { return cmp.Compare(b.depth, a.depth) })
		for i, r := range set {
			if slices.ContainsFunc(set, func(s *Region) bool { return s != r && s.contains(r) }) {
				set = slices.Delete(set, i, i+1)
				changed = true
				break
			}
			sibling := func(s *Region) bool { return s.outer == r.outer && s.owner == r.owner }
			if r.owner != nil && slices.ContainsFunc(set, func(s *Region) bool { return s != r && sibling(s) }) {
				set = append(slices.DeleteFunc(set, sibling), r.outer)
				changed = true
				break
			}
		}
	}
	if len(set) > maxPlaces {
		return []*Region{common(set)}
	}
	return set
}

// common returns the innermost region around all of a list.
func common(list []*Region) *Region {
	r := list[0]
	for slices.ContainsFunc(list, func(s *Region) bool { return !r.contains(s) }) {
		r = r.outer
	}
	return r
}

// contains reports whether a region is r or further in.
func (r *Region) contains(s *Region) bool {
	for s != nil && s.depth > r.depth {
		s = s.outer
	}
	return s == r
}

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
	return lists.Map(bodies, func(b *Body) string { return fmt.Sprintf("%s=graph of %s", b.Name, nodes(b.Graph.NumApplies())) })
}
