package rewrite

import "github.com/nnopt/nnopt/fgraph"

// A Group is a node rewriter that consists of others. It proposes what the first
// of them proposes that proposes anything.
type Group struct {
	Name  string
	Rules []NodeRewriter
	// ApplyAll makes the group go on with the apply that a proposal consists
	// of until none of the rules has anything to add, but at most a hundred
	// times. Rules that go round and round until then are an error, a
	// [MaxUseError] that shows them.
	ApplyAll bool
}

// mostInGroup is how many proposals a group follows, one on top of the other:
// rules that undo each other would not stop by themselves.
const mostInGroup = 100

// RewriterName returns g.Name.
func (g *Group) RewriterName() string { return g.Name }

// Inplace reports whether one of the rules is an [Inplacer] that says so.
func (g *Group) Inplace() bool { return anyInplace(g.Rules) }

// RewriterDoc says what the rules say of themselves.
func (g *Group) RewriterDoc() string { return docsOf(g.Rules) }

// Reach returns how far the furthest looking rule looks, 0 if that is not known.
func (g *Group) Reach() int {
	if g.ApplyAll {
		return 0
	}
	most := 1
	for _, r := range g.Rules {
		most = further(most, ReachOf(r))
	}
	return most
}

// Tracks returns what any of the rules wants to see.
func (g *Group) Tracks() []Track {
	var all []Track
	for _, r := range g.Rules {
		t := r.Tracks()
		if t == nil {
			return nil
		}
		all = append(all, t...)
	}
	return all
}

// Transform asks the rules in their order.
func (g *Group) Transform(c *Context, n *fgraph.Apply) (Result, error) {
	result, by, err := g.first(c, n)
	if err != nil || !g.ApplyAll {
		return result, err
	}
	var events []Event
	for step := range mostInGroup {
		next := soleOwner(result.Outputs)
		if next == nil || c.Graph().Contains(next) {
			return result, nil
		}
		var more Result
		more, by, err = g.first(c, next)
		if err != nil {
			return Result{}, err
		}
		if len(more.Outputs) == 0 {
			return result, nil
		}
		if step >= mostInGroup-logLength {
			events = append(events, newEvent(c.pass, NameOf(by), nil, proposed(next, more)))
		}
		followed, ok := follow(result, more)
		if !ok {
			return result, nil
		}
		result = followed
	}
	if round, repeats := lap(events); repeats {
		return Result{}, &MaxUseError{Rule: NameOf(by), Uses: mostInGroup, Nodes: 1, MaxUse: mostInGroup, Lap: round, Repeats: true}
	}
	return result, nil
}

// proposed returns the replacements in what is proposed for the outputs of n.
func proposed(n *fgraph.Apply, r Result) []fgraph.Replacement {
	var pairs []fgraph.Replacement
	for i, v := range r.Outputs {
		if v != nil && i < len(n.Outputs()) {
			pairs = append(pairs, fgraph.Replacement{Old: n.Outputs()[i], New: v})
		}
	}
	return pairs
}

// first returns the first proposal and whose it is.
func (g *Group) first(c *Context, n *fgraph.Apply) (Result, NodeRewriter, error) {
	for _, r := range g.Rules {
		tracks := r.Tracks()
		if tracks != nil && !matches(tracks, n.Op()) {
			continue
		}
		if result, err := r.Transform(c, n); err != nil || !result.Empty() {
			return result, r, err
		}
	}
	return Result{}, nil, nil
}

// soleOwner returns the apply that computes all of outputs, nil if there is none.
func soleOwner(outputs []*fgraph.Variable) *fgraph.Apply {
	var owner *fgraph.Apply
	for _, v := range outputs {
		switch {
		case v == nil:
		case v.Owner() == nil || owner != nil && v.Owner() != owner:
			return nil
		default:
			owner = v.Owner()
		}
	}
	return owner
}

// follow replaces the outputs in a result by those that more proposes for the
// apply that they belong to. It can't if one of them has none.
func follow(result, more Result) (Result, bool) {
	outputs := make([]*fgraph.Variable, len(result.Outputs))
	for i, v := range result.Outputs {
		if v == nil {
			continue
		}
		if v.Index() < len(more.Outputs) {
			outputs[i] = more.Outputs[v.Index()]
		}
		if outputs[i] == nil {
			return result, false
		}
	}
	return Result{Outputs: outputs, Remove: append(result.Remove, more.Remove...)}, true
}
