package egraph

import "slices"

// Facts is an analysis with a fact of type D for each class.
type Facts[D any] struct {
	// Of returns what a node says about its class. It asks Get for its inputs.
	Of func(g *Graph, n Node) D
	// Merge returns what two facts about the same class say together, and whether that is more
	// than a says, and more than b says.
	Merge func(a, b D) (both D, moreThanA, moreThanB bool)
	// Change is called when the fact of a class is new, see [Analysis]. It may be nil.
	Change func(g *Graph, c Class)

	data []D
}

// Get returns the fact of a class.
func (f *Facts[D]) Get(g *Graph, c Class) D { return f.data[g.find(uint32(c))] }

// Make is part of [Analysis].
func (f *Facts[D]) Make(g *Graph, n Node, c Class) bool {
	d := f.Of(g, n)
	if int(c) == len(f.data) {
		if len(f.data) == cap(f.data) {
			f.data = slices.Grow(f.data, g.next2(len(f.data), g.room*classShare/8))
		}
		f.data = append(f.data, d)
		return true
	}
	both, more, _ := f.Merge(f.data[c], d)
	f.data[c] = both
	return more
}

// Join is part of [Analysis].
func (f *Facts[D]) Join(_ *Graph, into, from Class) (bool, bool) {
	both, moreA, moreB := f.Merge(f.data[into], f.data[from])
	f.data[into] = both
	return moreA, moreB
}

// Modify is part of [Analysis].
func (f *Facts[D]) Modify(g *Graph, c Class) {
	if f.Change != nil {
		f.Change(g, c)
	}
}
