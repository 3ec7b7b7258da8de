package rulecheck

import "github.com/nnopt/nnopt/fgraph"

// Order returns the applies that variables are computed from, inputs first, up to variables that are
// known.
func Order(vars []*fgraph.Variable, known func(*fgraph.Variable) bool) (list []*fgraph.Apply) {
	done := make(map[*fgraph.Apply]bool)
	stop := func(v *fgraph.Variable) bool { return done[v.Owner()] || known != nil && known(v) }
	fgraph.Walk(vars, stop, func(a *fgraph.Apply) {
		done[a] = true
		list = append(list, a)
	})
	return list
}
