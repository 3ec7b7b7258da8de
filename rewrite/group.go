package rewrite

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// A Group is a node rewriter that consists of others. It makes the proposal of the first of them
// that has one.
type Group struct {
	Name  string
	Rules []NodeRewriter
	// ApplyAll makes the group apply its rules to the proposed apply again, until none of
	// them fires, but at most a hundred times. If the rules cycle until then, the group
	// fails with a [MaxUseError].
	ApplyAll bool
}

// maxInGroup bounds how many proposals a group follows, since rules that undo each other would
// not stop by themselves.
const maxInGroup = 100

// Describe describes the group by its rules.
func (g *Group) Describe() Description {
	d := describeRules(g.Name, "", g.Rules)
	if g.ApplyAll {
		d.Depth = 0
	}
	return d
}

// Tracks returns the tracks of all rules.
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

// Transform asks the rules in order.
func (g *Group) Transform(c *Context, n *fgraph.Apply) (Result, error) {
	return g.transform(c, n, g.first)
}

// transform makes the proposal of the first rule that has one. first asks the rules.
func (g *Group) transform(c *Context, n *fgraph.Apply, first firstFunc) (Result, error) {
	result, by, err := first(c, n)
	if err != nil || !g.ApplyAll {
		return result, err
	}
	var events []logged
	// Each proposal is an apply outside of the graph, to which the rules are applied again: they
	// act on what is not there yet, and the driver sees the last form only.
	for step := range maxInGroup {
		next := soleOwner(result.Outputs)
		if next == nil || c.Graph().Contains(next) {
			return result, nil
		}
		var more Result
		more, by, err = first(c, next)
		if err != nil {
			return Result{}, err
		}
		if len(more.Outputs) == 0 {
			return result, nil
		}
		if step >= maxInGroup-logLength {
			events = append(events, logged{newEvent(c.pass, Describe(by).Name, nil, proposed(next, more)), added(c.Graph(), more.Outputs)})
		}
		// If the next proposal leaves out an output that the last one had, the last one is kept.
		followed, ok := follow(result, more)
		if !ok {
			return result, nil
		}
		result = followed
	}
	d := Describe(by)
	endless := &MaxUseError{Rule: d.Name, place: d.Place, uses: maxInGroup, nodes: 1, MaxUse: maxInGroup}
	if endless.show(events); endless.Repeats {
		return Result{}, endless
	}
	return result, nil
}

// added returns how many applies a graph would gain with these variables.
func added(g *fgraph.FunctionGraph, outputs []*fgraph.Variable) int {
	todo, seen := slices.Clone(outputs), make(map[*fgraph.Apply]bool)
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if v == nil || v.Owner() == nil || g.Contains(v.Owner()) || seen[v.Owner()] {
			continue
		}
		seen[v.Owner()] = true
		todo = append(todo, v.Owner().Inputs()...)
	}
	return len(seen)
}

// proposed returns the replacements of the outputs of n that r proposes.
func proposed(n *fgraph.Apply, r Result) []fgraph.Replacement {
	var pairs []fgraph.Replacement
	for i, v := range r.Outputs {
		if v != nil && i < len(n.Outputs()) {
			pairs = append(pairs, fgraph.Replacement{Old: n.Outputs()[i], New: v})
		}
	}
	return pairs
}

// A firstFunc returns the first proposal and its rule.
type firstFunc = func(*Context, *fgraph.Apply) (Result, NodeRewriter, error)

// groupRun is a group in one run of a driver.
type groupRun struct {
	*Group
	asker asker
	fns   []transformFunc
}

func newGroupRun(g *Group, set *ruleSet, opts *Options, graph *fgraph.FunctionGraph) *groupRun {
	return &groupRun{g, newAsker(set, opts, graph, true), set.begin(opts, graph)}
}

// Transform is like that of the group, but finds the rules that track an op at once, and sifts
// them.
func (r *groupRun) Transform(c *Context, n *fgraph.Apply) (Result, error) {
	return r.transform(c, n, r.first)
}

func (r *groupRun) first(c *Context, n *fgraph.Apply) (Result, NodeRewriter, error) {
	_, ask := r.asker.rulesFor(n)
	for _, i := range ask {
		if result, err := r.fns[i](c, n); err != nil || !result.Empty() {
			return result, r.Rules[i], err
		}
	}
	return Result{}, nil, nil
}

// first asks all rules.
func (g *Group) first(c *Context, n *fgraph.Apply) (Result, NodeRewriter, error) {
	for _, r := range g.Rules {
		if !matches(r.Tracks(), n.Op()) {
			continue
		}
		if result, err := r.Transform(c, n); err != nil || !result.Empty() {
			return result, r, err
		}
	}
	return Result{}, nil, nil
}

// soleOwner returns the apply that computes all of outputs, or nil if there is none.
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

// follow replaces the outputs in result by those that more proposes for their owner. It returns
// false if more lacks one of them.
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
