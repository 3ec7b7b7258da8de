package ir

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// A region is a graph that nodes are written to: the main one, or a branch of an If.
type region struct {
	outer  *region
	owner  *fgraph.Apply // the If, nil for the main graph
	branch int
	depth  int
	nodes  []*fgraph.Apply
	inner  map[*fgraph.Apply]*[2]*region // the branches of the Ifs in it
}

// branchOf returns a branch of an If that is in the region.
func (r *region) branchOf(a *fgraph.Apply, branch int) *region {
	both := r.inner[a]
	if both == nil {
		if r.inner == nil {
			r.inner = make(map[*fgraph.Apply]*[2]*region)
		}
		both = new([2]*region)
		for i := range both {
			both[i] = &region{outer: r, owner: a, branch: i, depth: r.depth + 1}
		}
		r.inner[a] = both
	}
	return both[branch]
}

// isIf reports whether an apply is an If with its branches among its inputs.
func isIf(a *fgraph.Apply) bool {
	op, ok := a.Op().(*Op)
	return ok && op.Domain == "" && op.Type == "If" && len(a.Inputs()) == 1+2*op.Outputs
}

// divide distributes applies, which are in the order of a sort, to regions. What only one branch needs
// is computed in that branch, as it was when passes had not seen it: elsewhere it might fail, or cost
// what nobody needs. What several Ifs need in branches of theirs is computed in each, because none of
// these branches may be taken. What both branches of an If need is computed before it.
func divide(applies []*fgraph.Apply, outputs []*fgraph.Variable) *region {
	root := new(region)
	placed := make(map[*fgraph.Apply][]*region)
	uses := make(map[*fgraph.Apply][]*region)
	use := func(v *fgraph.Variable, r *region) {
		if a := v.Owner(); a != nil && !slices.Contains(uses[a], r) {
			uses[a] = append(uses[a], r)
		}
	}
	for _, v := range outputs {
		use(v, root)
	}
	for _, a := range slices.Backward(applies) {
		placed[a] = settle(uses[a])
		for _, r := range placed[a] {
			for i, v := range a.Inputs() {
				if isIf(a) && i > 0 {
					use(v, r.branchOf(a, (i-1)/a.Op().(*Op).Outputs))
				} else {
					use(v, r)
				}
			}
		}
	}
	for _, a := range applies {
		for _, r := range placed[a] {
			r.nodes = append(r.nodes, a)
		}
	}
	return root
}

// maxPlaces bounds how often an apply is written. One that more branches need is computed before them.
const maxPlaces = 16

// settle returns the regions where something is computed that regions use.
func settle(uses []*region) []*region {
	set := slices.Clone(uses)
	// From the innermost region outwards: a use in a region makes those further in superfluous, and
	// uses in both branches of an If are one in front of it.
	for changed := true; changed; {
		changed = false
		slices.SortStableFunc(set, func(a, b *region) int { return cmp.Compare(b.depth, a.depth) })
		for i, r := range set {
			if slices.ContainsFunc(set, func(s *region) bool { return s != r && s.contains(r) }) {
				set = slices.Delete(set, i, i+1)
				changed = true
				break
			}
			if j := slices.IndexFunc(set, func(s *region) bool { return s != r && s.outer == r.outer && s.owner == r.owner }); j >= 0 && r.owner != nil {
				outer := r.outer
				set = slices.DeleteFunc(set, func(s *region) bool { return s.outer == r.outer && s.owner == r.owner })
				set = append(set, outer)
				changed = true
				break
			}
		}
	}
	if len(set) > maxPlaces {
		common := set[0]
		for slices.ContainsFunc(set, func(s *region) bool { return !common.contains(s) }) {
			common = common.outer
		}
		return []*region{common}
	}
	return set
}

// contains reports whether a region is r or further in.
func (r *region) contains(s *region) bool {
	for s != nil && s.depth > r.depth {
		s = s.outer
	}
	return s == r
}
