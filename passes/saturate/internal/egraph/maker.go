package egraph

import "slices"

// A Maker makes the replacement of a match outside of the language of rules, and returns a node of
// it. If it returns false, the rule proposes nothing. It may add nodes, but unite nothing.
type Maker func(g *Graph, m *Match) (Node, bool)

// SetMaker defines a maker. A rewrite calls it by a replacement that consists of its name without
// arguments: "(mul x ...ys) => (maker)".
func (l *Language) SetMaker(name string, f Maker) { l.makers[name] = f }

// A Match is what a [Maker] replaces. It is valid during the call.
type Match struct {
	a    *applier
	c    *caseInfo
	root uint32
}

// Root returns the node that the whole pattern matches.
func (m *Match) Root() Node { return Node(m.root) }

// Slot returns the number of a name of the pattern, or -1. It is the same in all matches of a
// rewrite.
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

// Classes appends the classes that a rest matches.
func (m *Match) Classes(rest int, buf []Class) []Class {
	for _, k := range m.a.rests[rest] {
		buf = append(buf, Class(m.a.g.find(k)))
	}
	return buf
}

// AddNode is Add, but returns the node, and explanations show a new one with these inputs and not
// others of their classes.
func (g *Graph) AddNode(op Op, inputs ...Node) Node {
	kids := g.kids[:0]
	for _, n := range inputs {
		kids = append(kids, g.find(g.nodes[n].class))
	}
	g.kids = kids
	before := len(g.nodes)
	n := g.insert(op, kids, none)
	if g.proof != nil && int(n) == before {
		origin := g.origin(n)
		for i, k := range inputs {
			origin[i] = uint32(k)
		}
	}
	return Node(n)
}

// Built is what a [Maker] built, or found.
type Built struct {
	Node   Node
	Name   string   // in the pattern of what it is, or ""
	Inputs []*Built // of the op of the node; nil if it was found
}

// builtTrail appends what a maker built to a trail: its length, and for each part the node, the
// slot that it is, and the length and numbers of its inputs. A part comes after these, so
// the last one is the whole.
func (m *Match) builtTrail(trail []uint32, x *Built) []uint32 {
	at := len(trail)
	trail = append(trail, 0)
	places := make(map[*Built]uint32)
	todo := []*Built{x}
next:
	for len(todo) > 0 {
		top := todo[len(todo)-1]
		if _, ok := places[top]; !ok {
			for _, in := range top.Inputs {
				if _, ok := places[in]; !ok {
					todo = append(todo, in)
					continue next
				}
			}
			places[top] = uint32(len(places))
			slot := none
			if top.Name != "" {
				slot = uint32(m.Slot(top.Name))
			}
			trail = append(trail, uint32(top.Node), slot, uint32(len(top.Inputs)))
			for _, in := range top.Inputs {
				trail = append(trail, places[in])
			}
		}
		todo = todo[:len(todo)-1]
	}
	trail[at] = uint32(len(trail) - at - 1)
	return trail
}

// built returns the goal for what a maker built, see builtTrail.
func (k *instance) built(list []uint32) goal {
	var parts []goal
	for len(list) > 0 {
		n, slot, inputs := list[0], list[1], list[3:3+list[2]]
		list = list[3+len(inputs):]
		if len(inputs) > 0 {
			inner := make([]goal, len(inputs))
			for i, p := range inputs {
				inner[i] = parts[p]
			}
			parts = append(parts, k.goalOf(n, inner))
		} else if slot != none {
			parts = append(parts, k.slot(int(slot)))
		} else {
			parts = append(parts, goal{node: n})
		}
	}
	return parts[len(parts)-1]
}
