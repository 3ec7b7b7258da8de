package pattern

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// Needs returns what must be among the inputs of an apply: the calls and numbers that are arguments
// of the root. If several cases or alternatives have the op at the root, it is one argument of each.
func (s *Substitution) Needs(op fgraph.Op) []rewrite.Need {
	var needs []rewrite.Need
	first := true
	for _, k := range s.cases {
		for _, root := range k.in.root.roots() {
			if op != nil && !root.op.Match(op) {
				continue
			}
			more := k.in.needs(root)
			switch {
			case len(more) == 0:
				return nil
			case first:
				needs, first = more, false
			default:
				needs = []rewrite.Need{either(needs[0], more[0])}
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

// needs returns what the arguments of a call need.
func (m *Matcher) needs(call *node) []rewrite.Need {
	var needs []rewrite.Need
	for _, arg := range call.args {
		if n, ok := m.need(arg); ok {
			needs = append(needs, n)
		}
	}
	return needs
}

// need returns what can be matched by an argument, unless it is anything.
func (m *Matcher) need(arg *node) (rewrite.Need, bool) {
	switch arg.kind {
	case isLiteral:
		b, ok := m.vocab.(Broadcaster)
		if !ok {
			return rewrite.Need{}, false
		}
		return rewrite.Need{Ops: b.Broadcasts(), Constant: true}, true
	case isCall:
		return rewrite.Need{Ops: arg.op.Tracks}, len(arg.op.Tracks) > 0
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
	ops := append(a.Ops[:len(a.Ops):len(a.Ops)], b.Ops...)
	return rewrite.Need{Ops: ops, Constant: a.Constant || b.Constant}
}
