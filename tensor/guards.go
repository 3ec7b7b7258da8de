package tensor

import (
	"iter"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// Guards say when each apply of a graph is needed, if there are IfElses: which of their branches need it. An
// apply is needed if one of the branches is taken. Its inputs are needed whenever it is needed.
type Guards struct {
	// Ifs are the IfElses in the order of the graph. Branch 2*i is the first list of Ifs[i], and branch 2*i+1
	// its second one.
	Ifs []*fgraph.Apply

	of    []int32   // by apply: an index in sets
	sets  [][]int32 // of branches, sorted; always and never are the first two
	index map[string]int32
	both  map[[2]int32]int32 // unions
}

const (
	always = 0 // the empty set: what needs no branch
	never  = 1
)

// maxBranches bounds the branches of a guard. What more of them need is always computed.
const maxBranches = 64

// GuardsOf returns the guards of a graph whose applies come in this order, inputs first, or nil if there are no
// IfElses.
func GuardsOf(g *fgraph.FunctionGraph, order iter.Seq[*fgraph.Apply]) *Guards {
	var applies, ifs []*fgraph.Apply
	for a := range order {
		applies = append(applies, a)
		if _, ok := a.Op().(IfElseOp); ok {
			ifs = append(ifs, a)
		}
	}
	if len(ifs) == 0 {
		return nil
	}
	s := &Guards{Ifs: ifs, of: make([]int32, g.NumApplyIDs()), sets: [][]int32{nil, nil}, index: make(map[string]int32), both: make(map[[2]int32]int32)}
	number := make([]int32, g.NumApplyIDs()) // of Ifs
	for i, a := range ifs {
		number[a.ID()] = int32(i)
	}
	for i := range s.of {
		s.of[i] = never
	}
	use := func(v *fgraph.Variable, guard int32) {
		if a := v.Owner(); a != nil {
			s.of[a.ID()] = s.union(s.of[a.ID()], guard)
		}
	}
	for _, v := range g.Outputs() {
		use(v, always)
	}
	// Backwards, so that all that needs an apply is known when it says what it needs.
	for _, a := range slices.Backward(applies) {
		guard := s.of[a.ID()]
		op, isIf := a.Op().(IfElseOp)
		for i, v := range a.Inputs() {
			if isIf && i > 0 {
				use(v, s.intern([]int32{2*number[a.ID()] + int32((i-1)/op.Outputs)}))
			} else {
				use(v, guard)
			}
		}
	}
	return s
}

// Of returns the branches that need an apply. If there are none, it is always needed. The slice must not be
// changed.
func (s *Guards) Of(a *fgraph.Apply) []int32 { return s.sets[s.of[a.ID()]] }

// Same reports whether two applies are needed by the same branches. It is true of a nil Guards.
func (s *Guards) Same(a, b *fgraph.Apply) bool { return s == nil || s.of[a.ID()] == s.of[b.ID()] }

// outer returns the branches that need the IfElse of a branch.
func (s *Guards) outer(branch int32) []int32 { return s.Of(s.Ifs[branch/2]) }

func (s *Guards) union(x, y int32) int32 {
	switch {
	case x == y || y == never:
		return x
	case x == never:
		return y
	case x == always || y == always:
		return always
	}
	pair := [2]int32{min(x, y), max(x, y)}
	u, ok := s.both[pair]
	if !ok {
		u = s.intern(s.reduce(slices.Concat(s.sets[x], s.sets[y])))
		s.both[pair] = u
	}
	return u
}

// reduce returns the shortest list of branches of which one is taken if and only if one of the given branches is
// taken, as far as that does not depend on values. It may change the list.
func (s *Guards) reduce(set []int32) []int32 {
	slices.Sort(set)
	set = slices.Compact(set)
	// From the innermost branches outwards: the guards of IfElses are complete when a branch of theirs is in use.
	for changed := true; changed && len(set) > 1; {
		changed = false
		for i, b := range set {
			if i+1 < len(set) && set[i+1] == b^1 && b&1 == 0 {
				// Both branches of an IfElse: whenever that is needed.
				outer := s.outer(b)
				if len(outer) == 0 {
					return nil
				}
				set = slices.Concat(set[:i], set[i+2:], outer)
				slices.Sort(set)
				set, changed = slices.Compact(set), true
				break
			}
			if rest := slices.Concat(set[:i], set[i+1:]); s.within(b, rest) {
				set, changed = rest, true
				break
			}
		}
	}
	if len(set) > maxBranches {
		return nil
	}
	return set
}

// within reports whether a branch can be taken only if one of the others is, because what needs its IfElse is
// within them. It looks through so many branches at most: a list may be longer than necessary.
func (s *Guards) within(branch int32, others []int32) bool {
	seen := []int32{branch}
	for i := 0; i < len(seen); i++ {
		if i == 4*maxBranches {
			return false
		}
		outer := s.outer(seen[i])
		if len(outer) == 0 {
			return false
		}
		for _, b := range outer {
			if !slices.Contains(others, b) && !slices.Contains(seen, b) {
				seen = append(seen, b)
			}
		}
	}
	return true
}

// intern returns the number of a set.
func (s *Guards) intern(set []int32) int32 {
	if len(set) == 0 {
		return always
	}
	key := make([]byte, 0, 4*len(set))
	for _, b := range set {
		key = append(key, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
	}
	k, ok := s.index[string(key)]
	if !ok {
		k = int32(len(s.sets))
		s.sets, s.index[string(key)] = append(s.sets, set), k
	}
	return k
}
