package fgraph

// A Guard is asked before every change of a graph, and told the outcome. See
// [FunctionGraph.SetGuard].
type Guard interface {
	// Allow reports whether a change may be made. If not, the change fails with an error
	// that wraps [ErrNotAllowed]. pairs are the replacements, at least one of which has an
	// effect, or nil for a change of another kind.
	Allow(g *FunctionGraph, pairs []Replacement, why Reason) bool
	// Done is called after an allowed change. err is nil if the change was made, and
	// otherwise tells why it was not.
	Done(g *FunctionGraph, pairs []Replacement, why Reason, err error)
}

// SetGuard sets the guard of all changes from now on, nil for none, and returns the previous
// one.
func (g *FunctionGraph) SetGuard(guard Guard) (before Guard) {
	before, g.guard = g.guard, guard
	return before
}

// SetPass sets the name of the pass that changes the graph from now on, "" for none, and returns
// the previous one. The name overrides the Pass of the [Reason] of every change. While a pass is
// set, ops that overwrite inputs can join the graph only if a [DestroyHandler] is attached.
func (g *FunctionGraph) SetPass(name string) (before string) {
	before, g.pass = g.pass, name
	return before
}

// signed returns why with the name of the current pass.
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

// Freeze makes every change an error until Thaw.
func (g *FunctionGraph) Freeze() { g.frozen, g.tried = true, false }

// Thaw allows changes again. It reports whether one was attempted since Freeze.
func (g *FunctionGraph) Thaw() (tried bool) {
	g.frozen = false
	return g.tried
}
