package saturate

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/pattern"
)

// replace makes the replacement of a match, and returns its node. It returns false if the match
// does not hold, or there is no replacement of the type of the root.
func (b *bridge) replace(f *form, m *egraph.Match) (egraph.Node, bool) {
	root := b.sources[m.Root()]
	if root.apply == nil || root.out == nil {
		return 0, false
	}
	// Where a match keeps what a name binds is the same for all matches of a form, so names are
	// looked up once.
	k := b.p.planOf(f, m)
	if !b.bind(f, k, m) {
		return 0, false
	}
	b.binding.Root = root.apply
	for _, i := range f.guards {
		if !f.of.Holds(i, b.argsOf(f, f.of.Rewrite().In.Guards[i].Args)) {
			return 0, false
		}
	}
	// Only what this replacement adds may be shown as built by it.
	clear(b.built)
	v, err := f.of.Replace(b.ctx, b.binding)
	if err != nil {
		b.unmade++
		return 0, false
	}
	// All members of a class have one type: any of them may take the place of any other. So a
	// replacement of another type, which a pass would cast or refuse, is refused here.
	if v.Type() != root.out.Type() {
		b.refused++
		return 0, false
	}
	n := b.variable(v)
	if b.built != nil {
		b.last = b.show(f, v)
	}
	return n, true
}

// bind fills in what a match binds. It returns false if families have other ops or parameters than
// the pattern wants, or a name is bound to the class of the root.
func (b *bridge) bind(f *form, k *plan, m *egraph.Match) bool {
	self := b.g.Class(m.Root())
	b.reset(len(k.vars), len(k.rests), len(f.params))
	// A name that is bound to the class of the root is a term that contains its own class: from x =
	// x*1 follow x = (x*1)*1 and so on, which say nothing new and never end.
	for i, slot := range k.vars {
		c := m.Class(slot)
		if b.binding.Vars[i] = b.witness[c]; b.witness[c] == nil || c == self && !k.isRoot[i] {
			return false
		}
	}
	for i, rest := range k.rests {
		b.classes = m.Classes(rest, b.classes[:0])
		list := b.rests[i][:0]
		for _, c := range b.classes {
			if c == self || b.witness[c] == nil {
				return false
			}
			list = append(list, b.witness[c])
		}
		b.rests[i], b.binding.Rests[i] = list, list
	}
	for _, c := range k.captures {
		// The e-graph knows a family as any of its symbols; whether this op is one of the family,
		// and with which parameters, is asked of the vocabulary now.
		op := b.ops[b.g.Param(m.Op(c.slot)).(int32)].op
		p, ok := b.p.captures[c.capture].paramOf(op)
		if !ok {
			return false
		}
		if c.param < 0 {
			continue
		}
		if have := b.binding.Params[c.param]; have != nil && !sameParam(have, p) {
			return false
		}
		b.binding.Params[c.param] = p
	}
	return true
}

// argsOf returns what a match binds to names.
func (b *bridge) argsOf(f *form, names []string) pattern.Args {
	a := pattern.Args{Context: b.ctx, Root: b.binding.Root}
	for _, name := range names {
		if i := slices.Index(f.vars, name); i >= 0 {
			a.Vars = append(a.Vars, b.binding.Vars[i])
		} else if i := slices.Index(f.rests, name); i >= 0 {
			a.Vars = append(a.Vars, b.binding.Rests[i]...)
		} else if i := slices.Index(f.params, name); i >= 0 {
			a.Params = append(a.Params, b.binding.Params[i])
		}
	}
	return a
}

// sameParam reports whether two captured parameters are equal.
func sameParam(a, b any) bool {
	op, ok := a.(fgraph.Op)
	op2, ok2 := b.(fgraph.Op)
	return a == b || ok && ok2 && fgraph.OpsEqual(op, op2)
}
