package egraph

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/pattern"
)

// check is a guard with what it asks about. One without a function compares two rests.
type check struct {
	name  string
	holds Guard
	not   bool
	args  []checkArg
}

// checkArg is a register of a class or of parameters, or a rest.
type checkArg struct {
	reg   int // or -1
	param bool
	rest  rest
}

// key returns a text that is the same for checks that ask the same.
func (k *check) key() string {
	key := fmt.Sprint(k.name, k.not)
	for _, a := range k.args {
		key += fmt.Sprint(" ", a.reg, a.param, a.rest.bind, a.rest.from, a.rest.picks)
	}
	return key
}

// guards compiles the conditions.
func (c *compiler) guards(list []pattern.Guard) error {
	for _, g := range list {
		f, ok := c.r.lang.guards[g.Func]
		if !ok {
			return fmt.Errorf("the language has no guard %s", g.Func)
		}
		k := check{name: g.Func, holds: f, not: g.Not}
		for _, name := range g.Args {
			a, err := c.checkArg(name)
			if err != nil {
				return fmt.Errorf("the guard %s: %w", g.Func, err)
			}
			k.args = append(k.args, a)
		}
		c.check(k)
	}
	return nil
}

// checkArg resolves the name of an argument, whose facts count from now on.
func (c *compiler) checkArg(name string) (checkArg, error) {
	for _, s := range c.info.slots {
		if s.name == name {
			if !s.param {
				c.ask(s.reg, c.depth[name])
			}
			return checkArg{reg: s.reg, param: s.param}, nil
		}
	}
	for i, r := range c.info.rests {
		if r.name == name {
			c.info.askedRests = append(c.info.askedRests, i)
			c.info.log = max(c.info.log, touchLog+r.depth)
			return checkArg{reg: -1, rest: r}, nil
		}
	}
	return checkArg{}, fmt.Errorf("the pattern does not bind %s", name)
}

// ask says that the facts of the class in a register decide whether the pattern matches.
func (c *compiler) ask(reg, depth int) {
	c.info.asked = append(c.info.asked, reg)
	c.info.log = max(c.info.log, touchLog+depth)
	if depth == 0 {
		c.r.facts = true
	}
}

// heed looks for new facts below any op of a pattern that asks for facts.
func (c *compiler) heed() {
	if len(c.info.asked)+len(c.info.askedRests) > 0 {
		for s := range c.steps {
			c.steps[s] |= factBit
		}
	}
}

// check emits a check, of which there is one for all rules.
func (c *compiler) check(k check) {
	i := numbered(c.r.numbers, k.key(), &c.r.checks, k)
	// A guard is asked as early as all that it asks about is known, but behind tests of the same
	// node, which are cheaper. It must come before the next instruction with several outcomes, or
	// it would be asked for each of them.
	at := c.known(&k)
	for at < len(c.code) && !c.code[at].choosing() {
		at++ // other tests are faster
	}
	c.code = slices.Insert(c.code, at, instr{code: opGuard, arg: int32(i)})
}

// known returns the place from which on all is known that a check asks about.
func (c *compiler) known(k *check) int {
	for at := len(c.code) - 1; at >= 0; at-- {
		if slices.ContainsFunc(k.args, func(a checkArg) bool { return c.code[at].sets(&a) }) {
			return at + 1
		}
	}
	return 0
}

// sets reports whether an instruction finds out what the argument of a check is, or a part of it.
func (in *instr) sets(a *checkArg) bool {
	if a.reg < 0 {
		picks := in.code == opPick || in.code == opPickSame
		return in.code == opBind && in.bind == int32(a.rest.bind) || picks && slices.Contains(a.rest.picks, int(in.n))
	}
	reg := int32(a.reg)
	switch in.code {
	case opBind, opLoad:
		return in.out <= reg && reg < in.out+in.n
	case opPick, opPickSame, opParam:
		return in.out == reg
	}
	return false
}

// passes reports whether a check holds.
func (m *matcher) passes(k *check) bool {
	if k.holds == nil {
		p := m.restOf(m.same[0][:0], &k.args[0].rest)
		q := m.restOf(m.same[1][:0], &k.args[1].rest)
		m.same = [2][]uint32{p, q}
		return slices.Equal(p, q)
	}
	a := Args{Root: Node(m.nodes[0]), Classes: m.args[:0], Params: m.params[:0]}
	for i := range k.args {
		switch x := &k.args[i]; {
		case x.reg < 0:
			m.same[0] = m.restOf(m.same[0][:0], &x.rest)
			for _, c := range m.same[0] {
				a.Classes = append(a.Classes, Class(c))
			}
		case x.param:
			a.Params = append(a.Params, m.g.ops[m.regs[x.reg]].param)
		default:
			a.Classes = append(a.Classes, Class(m.regs[x.reg]))
		}
	}
	m.args, m.params = a.Classes, a.Params
	return k.holds(m.g, a) != k.not
}

func (m *matcher) restOf(list []uint32, r *rest) []uint32 {
	return m.g.appendRest(list, r, m.nodes, m.pos)
}

// appendRest appends the inputs that a rest matches, given the nodes of the pattern and the
// positions of its picks.
func (g *Graph) appendRest(list []uint32, r *rest, nodes, pos []uint32) []uint32 {
	kids := g.kidsOf(nodes[r.bind])
	if r.from >= 0 {
		return append(list, kids[r.from:]...)
	}
next:
	for j, k := range kids {
		for _, p := range r.picks {
			if pos[p] == uint32(j) {
				continue next
			}
		}
		list = append(list, k)
	}
	return list
}
