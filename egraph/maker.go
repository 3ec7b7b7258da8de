package egraph

import "slices"

// A Maker makes the replacement of a match outside of the language of rules, and returns a node of it.
// If it returns false, the rule proposes nothing. It may add nodes, but unite nothing.
type Maker func(g *Graph, m *Match) (Node, bool)

// SetMaker defines a maker. A rewrite calls it by a replacement that consists of its name without
// arguments: "(mul x ...ys) => (maker)".
func (l *Language) SetMaker(name string, f Maker) { l.makers[name] = f }

// A Match is what a [Maker] replaces. It is valid during the call.
type Match struct {
	a    *applier
	c    *caseInfo
	id   int
	root uint32
}

// Case returns the number of the rewrite, see [Rules.Case].
func (m *Match) Case() int { return m.id }

// Root returns the node that the whole pattern matches.
func (m *Match) Root() Node { return Node(m.root) }

// Slot returns the number of a name of the pattern, or -1. It is the same in all matches of a rewrite.
func (m *Match) Slot(name string) int {
	return slices.IndexFunc(m.c.slots, func(s slot) bool { return s.name == name })
}

// Class returns the class that is bound to the name of a slot.
func (m *Match) Class(slot int) Class { return Class(m.a.g.find(m.a.values[slot])) }

// Op returns the op whose parameters are captured in a slot.
func (m *Match) Op(slot int) Op { return Op(m.a.values[slot]) }

// Rest returns the number of the name of a rest, or -1.
func (m *Match) Rest(name string) int {
	return slices.IndexFunc(m.c.rests, func(r rest) bool { return r.name == name })
}

// Classes appends the classes that a rest stands for.
func (m *Match) Classes(rest int, buf []Class) []Class {
	for _, k := range m.a.rests[rest] {
		buf = append(buf, Class(m.a.g.find(k)))
	}
	return buf
}

// AddNode is Add, but returns the node. The op must not associate.
func (g *Graph) AddNode(op Op, inputs ...Class) Node {
	kids := g.kids[:0]
	for _, c := range inputs {
		kids = append(kids, g.find(uint32(c)))
	}
	g.kids = kids
	return Node(g.insert(op, kids, none))
}
