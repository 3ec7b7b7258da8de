package ir

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
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
