package rulecheck

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// Order returns the applies that variables are computed from and that have no slot yet, inputs
// first.
func Order(vars []*fgraph.Variable, slot map[*fgraph.Variable]int) []*fgraph.Apply {
	var list, path []*fgraph.Apply
	done := make(map[*fgraph.Apply]bool)
	visit := func(v *fgraph.Variable) {
		if a := v.Owner(); a != nil && !done[a] {
			if _, ok := slot[a.Out()]; !ok {
				path = append(path, a)
			}
		}
	}
	for _, v := range slices.Backward(vars) {
		visit(v)
	}
	for len(path) > 0 {
		a, before := path[len(path)-1], len(path)
		for _, v := range slices.Backward(a.Inputs()) {
			visit(v)
		}
		if len(path) > before {
			continue
		}
		path = path[:len(path)-1]
		if !done[a] {
			done[a] = true
			list = append(list, a)
		}
	}
	return list
}
