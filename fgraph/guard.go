package fgraph

// A Guard is asked about every change of a graph before it is made, and told what
// became of it. See [FunctionGraph.SetGuard].
type Guard interface {
	// Allow reports whether a change may be made; if not, who asked for it gets
	// an error that wraps [ErrNotAllowed]. pairs are the replacements, at least
	// one of which changes something, or nil if the change is of another kind.
	Allow(g *FunctionGraph, pairs []Replacement, why Reason) bool
	// Done is called after a change that was allowed: err is nil if it was made,
	// or else says why not.
	Done(g *FunctionGraph, pairs []Replacement, why Reason, err error)
}

// SetGuard lets a guard, or nobody if it is nil, watch over all changes from now
// on, and returns who did so before.
func (g *FunctionGraph) SetGuard(guard Guard) (before Guard) {
	before, g.guard = g.guard, guard
	return before
}

// SetPass says which pass changes the graph from now on, "" if none does, and
// returns which one did so before. The name stands in the [Reason] of every
// change, whatever that says. While a pass is at work, what overwrites its inputs
// may join the graph only if a [DestroyHandler] is attached.
func (g *FunctionGraph) SetPass(name string) (before string) {
	before, g.pass = g.pass, name
	return before
}

// Pass returns which pass changes the graph, "" if none does.
func (g *FunctionGraph) Pass() string { return g.pass }

// signed returns why with the name of the pass that is at work.
func (g *FunctionGraph) signed(why Reason) Reason {
	if g.pass == "" || why.Pass == g.pass {
		return why
	}
	if why.Rule == "" {
		why.Rule = why.Pass
	}
	why.Pass = g.pass
	return why
}

// Freeze forbids every change until Thaw: each is an error.
func (g *FunctionGraph) Freeze() { g.frozen, g.tried = true, false }

// Thaw allows changes again. It reports whether one was tried since Freeze.
func (g *FunctionGraph) Thaw() (tried bool) {
	g.frozen = false
	return g.tried
}
