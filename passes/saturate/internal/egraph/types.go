package egraph

import (
	"fmt"

	"github.com/nnopt/nnopt/pattern"
)

// Types are what a language knows of types, so that rules need not mention them. Each of the
// functions may be nil. They depend on facts of the classes that they are given only; see
// [Analysis].
type Types struct {
	// Equal reports whether a class is what a number in a pattern means, and returns a node of the
	// class that shows it, such as a constant. If it is nil, a number is a leaf; see
	// [Language.SetNumbers].
	Equal func(g *Graph, c Class, l pattern.Literal) (Node, bool)
	// Witness returns the node by which explanations show a class that a rule binds, such as a
	// constant if it is a number. If it is nil, they show the node that the class was made for.
	Witness func(g *Graph, c Class) Node
	// Built returns what the last [Maker] built, if the graph keeps reasons. Explanations show
	// that; classes may have many other nodes. If it is nil, they show the node that the maker
	// returned, as it was added.
	Built func(g *Graph) *Built
}

// SetTypes says what types mean for rules.
func (l *Language) SetTypes(t Types) { l.types = t }

// SetNumbers says what numbers in rules are, without types: the leaf of a number. g is nil while rules
// are compiled, and of takes its ops from the language then.
func (l *Language) SetNumbers(of func(g *Graph, v float64) Op) { l.number = of }

// leafOf returns the leaf that a number is, without types.
func (l *Language) leafOf(e pattern.Literal) (Op, error) {
	switch {
	case l.number == nil:
		return noOp, fmt.Errorf("the language has no number %s", e)
	case e.Type() != "":
		return noOp, fmt.Errorf("%s has a type, and the language has no types", e)
	}
	return l.number(nil, e.Float()), nil
}

// literal compiles a number in a pattern, whose class is in the register of t.
func (c *compiler) literal(e pattern.Literal, t todo) error {
	shape := &c.info.nodes[t.above].args[t.arg]
	if c.r.lang.types.Equal == nil {
		op, err := c.r.lang.leafOf(e)
		if err != nil {
			return err
		}
		shape.leaf = op
		return c.leaf(op, t)
	}
	// The slot is for a node that shows which number the class is.
	shape.slot = len(c.info.slots)
	c.info.slots = append(c.info.slots, slot{reg: c.reg(), bind: -1, node: true})
	i := numbered(c.r.numbers, e, &c.r.literals, e)
	c.emit(instr{code: opEqual, in: int32(t.reg), arg: int32(i), out: int32(c.info.slots[shape.slot].reg)})
	c.ask(t.reg, t.depth)
	return nil
}
