package pattern

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// Needs returns what must be among the inputs of an apply: calls and numbers that are arguments of
// the root, a name that is so twice, or nothing else where the op may have several. If several
// cases or alternatives have the op at the root, each of them has one of these.
func (s *Substitution) Needs(op fgraph.Op) []rewrite.Need {
	var needs []rewrite.Need
	first := true
	for _, k := range s.cases {
		for _, root := range k.in.root.roots() {
			if op != nil && !root.op.Match(op) {
				continue
			}
			more := k.in.needs(root)
			if first {
				needs, first = more, false
				continue
			}
			// A rule needs what all of its cases need. Needs of one case are joined with those of
			// another by "or", in the order of their rarity; what is left over on one side is not
			// needed on the other.
			needs = needs[:min(len(needs), len(more))]
			for i := range needs {
				needs[i] = either(needs[i], more[i])
			}
		}
	}
	return needs
}

// roots returns the calls that a pattern may have at its root.
func (n *node) roots() []*node {
	if n.kind != isOr {
		return []*node{n}
	}
	var list []*node
	for _, alt := range n.args {
		list = append(list, alt.roots()...)
	}
	return list
}

// needs returns what the arguments of a call need, the rarest first.
func (m *Matcher) needs(call *node) []rewrite.Need {
	// Needs of several cases are paired in this order, so that what is alike meets: ops first, then
	// constants, which are frequent among inputs and say less.
	var ops, numbers []rewrite.Need
	for _, arg := range call.args {
		switch n, ok := m.need(arg); {
		case ok && n.Constant:
			numbers = append(numbers, n)
		case ok:
			ops = append(ops, n)
		}
	}
	if c, ok := call.expr.(*Call); ok && sameArgs(c.Args) {
		ops = append(ops, rewrite.Need{Same: true})
	}
	if !call.hasRest && call.op.MinInputs != call.op.MaxInputs && len(call.args) == 1 {
		ops = append(ops, rewrite.Need{Counts: []int{len(call.args)}})
	}
	return append(ops, numbers...)
}

// need returns what can be matched by an argument, unless it is anything.
func (m *Matcher) need(arg *node) (rewrite.Need, bool) {
	switch arg.kind {
	case isLiteral:
		b, ok := m.vocab.(Broadcaster)
		if !ok {
			return rewrite.Need{}, false
		}
		return rewrite.Need{Through: b.Broadcasts(), Constant: true}, true
	case isCall:
		return rewrite.Need{Ops: arg.op.Tracks}, len(arg.op.Tracks) > 0
	// An alternative that may be anything makes the need void.
	case isOr:
		var need rewrite.Need
		for _, alt := range arg.args {
			n, ok := m.need(alt)
			if !ok {
				return n, false
			}
			need = either(need, n)
		}
		return need, true
	}
	return rewrite.Need{}, false
}

// either returns the need of which each of two is a case.
func either(a, b rewrite.Need) rewrite.Need {
	return rewrite.Need{
		Ops: slices.Concat(a.Ops, b.Ops), Through: slices.Concat(a.Through, b.Through), Counts: slices.Concat(a.Counts, b.Counts),
		Constant: a.Constant || b.Constant, Same: a.Same || b.Same,
	}
}

// sameArgs returns whether two arguments have the same name: (switch c x x).
func sameArgs(args []Expr) bool {
	seen := make(map[string]bool)
	for _, arg := range args {
		name := ""
		switch arg := arg.(type) {
		case Name:
			name = string(arg)
		case *Bind:
			name = arg.Name
		}
		if name != "" && seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}
