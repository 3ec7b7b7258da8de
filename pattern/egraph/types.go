package egraph

import (
	"fmt"
	"math"
	"strconv"

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
	// Number returns the number that a class is known to be, for formulas such as "{a*b - 1}", and
	// a node of the class that shows it.
	Number func(g *Graph, c Class) (float64, Node, bool)
	// Constant returns the class of a number in a replacement. What l leaves open is as in like:
	// the class that is replaced, or x in "2:x". If it returns false, the rule proposes nothing.
	Constant func(g *Graph, l pattern.Literal, like Class) (Class, bool)
	// Make returns the class of an op applied to classes in a replacement of like, such as that of
	// the op after conversions of its inputs. If it returns false, the rule proposes nothing. It
	// is not asked for outputs; see [Language.Output].
	Make func(g *Graph, op Op, inputs []Class, like Class) (Class, bool)
	// Witness returns the node by which explanations show a class that a rule binds, such as a
	// constant if it is a number. If it is nil, they show the node that the class was made for.
	Witness func(g *Graph, c Class) Node
	// Built returns what the last [Maker] built, if the graph keeps reasons. Explanations show
	// that; classes may have many other nodes. If it is nil, they guess.
	Built func(g *Graph) *Built
	// Conform returns c with the type of like: a replacement, and what it replaces. If it returns
	// false, the rule proposes nothing.
	Conform func(g *Graph, c, like Class) (Class, bool)
}

// SetTypes says what types mean for rules.
func (l *Language) SetTypes(t Types) { l.types = t }

// SetNumbers says what numbers in rules are, without types. of returns the leaf of a number; g is
// nil while rules are compiled, and of takes its ops from the language then. value returns the
// number that a class is known to be, for formulas; it may be nil.
func (l *Language) SetNumbers(of func(g *Graph, v float64) Op, value func(*Graph, Class) (float64, bool)) {
	l.number, l.value = of, value
}

// numberOf returns the number that a class is known to be, and a node that shows it.
func (g *Graph) numberOf(c Class) (float64, Node, bool) {
	l := g.lang
	if l.types.Number != nil {
		return l.types.Number(g, c)
	}
	v, ok := l.value(g, c)
	if !ok || math.IsNaN(v) {
		return 0, 0, false
	}
	n := g.lookup(l.number(g, v), nil)
	if n == none || g.find(g.nodes[n].class) != g.find(uint32(c)) {
		return 0, 0, false
	}
	return v, Node(n), true
}

// constantOf returns the class of a number in a replacement.
func (g *Graph) constantOf(l pattern.Literal, like Class) (Class, bool) {
	if f := g.lang.types.Constant; f != nil {
		return f(g, l, like)
	}
	v := l.Float()
	if math.IsNaN(v) {
		return 0, false
	}
	return g.Add(g.lang.number(g, v)), true
}

// calc is a formula of a replacement.
type calc struct {
	formula *pattern.Formula
	slots   []int // by name of the formula
}

// value computes the formula.
func (k *calc) value(g *Graph, values []uint32) (pattern.Literal, bool) {
	v, ok := k.formula.Value(func(name int) (float64, bool) {
		v, _, ok := g.numberOf(Class(g.find(values[k.slots[name]])))
		return v, ok
	})
	return pattern.Literal(strconv.FormatFloat(v, 'g', -1, 64)), ok
}

// literal compiles a number in a pattern, whose class is in the register of t.
func (c *compiler) literal(e pattern.Literal, t todo) error {
	l := c.r.lang
	shape := &c.info.nodes[t.above].args[t.arg]
	if l.types.Equal == nil {
		switch {
		case l.number == nil:
			return fmt.Errorf("the language has no number %s", e)
		case e.Type() != "":
			return fmt.Errorf("%s has a type, and the language has no types", e)
		}
		shape.leaf = l.number(nil, e.Float())
		return c.leaf(shape.leaf, t)
	}
	i := numbered(c.r.numbers, e, &c.r.literals, e)
	shape.slot = c.witness()
	c.emit(instr{code: opEqual, in: int32(t.reg), arg: int32(i), out: int32(c.info.slots[shape.slot].reg)})
	c.ask(t.reg, t.depth)
	return nil
}

// witness returns a slot for a node that shows what a class is.
func (c *compiler) witness() int {
	c.info.slots = append(c.info.slots, slot{reg: c.reg(), bind: -1, node: true, number: -1})
	return len(c.info.slots) - 1
}

// number compiles a number in a replacement.
func (t *templateCompiler) number(e pattern.Literal) (int, error) {
	l := t.c.r.lang
	like := -1
	if name := e.Type(); name != "" {
		if like = t.c.info.slot(name); like >= 0 {
			e = pattern.Literal(string(e)[:len(e)-len(name)-1])
		}
	}
	if l.types.Constant != nil {
		return t.add(step{kind: makesNumber, literal: e, like: like}), nil
	}
	switch {
	case l.number == nil:
		return 0, fmt.Errorf("the language has no number %s", e)
	case e.Type() != "":
		return 0, fmt.Errorf("%s has a type, and the language has no types", e)
	}
	op := l.number(nil, e.Float())
	return t.add(step{op: op, sym: l.ops[op].sym, plain: true}), nil
}

// formulas compiles what the formulas of a replacement ask: the pattern matches only where their
// numbers are known.
func (c *compiler) formulas(e pattern.Expr) error {
	switch e := e.(type) {
	case *pattern.Call:
		for _, a := range e.Args {
			if err := c.formulas(a); err != nil {
				return err
			}
		}
	case pattern.Each:
		return c.formulas(e.Expr)
	case pattern.Calc:
		return c.formula(e)
	}
	return nil
}

func (c *compiler) formula(e pattern.Calc) error {
	l := c.r.lang
	switch {
	case l.types.Number == nil && (l.number == nil || l.value == nil), l.types.Constant == nil && l.number == nil:
		return fmt.Errorf("%s: the language does not know the values of classes", e)
	case c.info.bare:
		return fmt.Errorf("%s: a pattern that is a name does not match numbers", e)
	}
	f, err := e.Formula(nil)
	if err != nil {
		return err
	}
	for _, name := range f.Names() {
		i := c.info.slot(name)
		if i < 0 {
			return fmt.Errorf("the pattern binds no class to %s in %s", name, e)
		}
		if c.info.slots[i].number >= 0 {
			continue
		}
		w := c.witness()
		s := &c.info.slots[i]
		s.number = w
		c.emit(instr{code: opNumber, in: int32(s.reg), out: int32(c.info.slots[w].reg)})
		c.ask(s.reg, c.depth[name])
	}
	return nil
}

// calc compiles a formula in a replacement.
func (t *templateCompiler) calc(e pattern.Calc) (int, error) {
	f, err := e.Formula(nil)
	if err != nil {
		return 0, err
	}
	k := &calc{formula: f}
	for _, name := range f.Names() {
		k.slots = append(k.slots, t.c.info.slot(name))
	}
	return t.add(step{kind: makesNumber, calc: k, like: -1}), nil
}
