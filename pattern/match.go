package pattern

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// maxSteps bounds the search for one match. Only commutative ops with very many inputs come near
// it: finding a pair of arguments among 300 inputs takes at most 90000 steps.
const maxSteps = 1 << 18

// bindings holds the variables bound to names, by slot.
type bindings struct {
	vars  []*fgraph.Variable
	rests [][]*fgraph.Variable
}

// A goal is a list of what remains to be matched: the variable v with the node n or, if apply is
// set, the arguments n.order[i:] of a commutative call with its inputs.
type goal struct {
	n    *node
	v    *fgraph.Variable
	next *goal

	apply *fgraph.Apply
	i     int
	input int   // the input that argument n.order[i-1] was given
	prev  *goal // the goal for that argument
}

// taken reports whether an argument of a commutative call was given the input.
func (g *goal) taken(input int) bool {
	for ; g.i > 0; g = g.prev {
		if g.input == input {
			return true
		}
	}
	return false
}

// A matcher searches for one match. It recurses for every choice, as deep as the pattern has
// choices. A failure undoes the bindings since the last choice.
type matcher struct {
	m     *Matcher
	c     *rewrite.Context
	root  *fgraph.Apply
	b     bindings
	trail []int           // bound slots in order; -1-slot for rests
	inner []*fgraph.Apply // applies below the root that the replacement makes unused
	depth int             // goals met so far on this path
	steps int
	goals []goal // the chunk that goals are allocated from

	failed failure // the deepest failure
	reason []any   // &failed, so that calling Context.Miss does not allocate
}

// A failure is the reason why there is no match.
type failure struct {
	why   why
	depth int
	n     *node
	v     *fgraph.Variable
	guard *guard
}

type why uint8

const (
	_ why = iota
	whyOp
	whyInputs
	whyConstant
	whyOther
	whyClients
	whyGuard
	whySteps
	whyOutputs
)

// String describes the failure.
func (f failure) String() string {
	switch f.why {
	case whyOp:
		return fmt.Sprintf("%s is not %s", f.v, f.n.expr)
	case whyInputs:
		return fmt.Sprintf("%s does not have the inputs of %s", f.v, f.n.expr)
	case whyConstant:
		return fmt.Sprintf("%s is not the constant %s", f.v, f.n.expr)
	case whyOther:
		return fmt.Sprintf("%s is not what %s stands for elsewhere", f.v, f.n.expr)
	case whyClients:
		return fmt.Sprintf("%s has other clients", f.v)
	case whyGuard:
		return fmt.Sprintf("the guard %s is false", f.guard.text)
	case whyOutputs:
		return fmt.Sprintf("%s is not its op's only output", f.v)
	case whySteps:
		return fmt.Sprintf("gave up after %d steps", maxSteps)
	}
	return "no match"
}

// goal allocates a goal. Goals are linked by address, so a full chunk stays in place and goal
// starts a new one.
func (m *matcher) goal(g goal) *goal {
	if len(m.goals) == cap(m.goals) {
		m.goals = make([]goal, 0, 32)
	}
	m.goals = append(m.goals, g)
	return &m.goals[len(m.goals)-1]
}

func (m *matcher) fail(w why, n *node, v *fgraph.Variable) bool {
	if m.failed.why == 0 || m.depth > m.failed.depth {
		m.failed = failure{why: w, depth: m.depth, n: n, v: v}
	}
	return false
}

// solve matches the goals one by one and then checks the guards.
func (m *matcher) solve(g *goal) bool {
	for g != nil {
		if m.steps++; m.steps > maxSteps {
			m.failed = failure{why: whySteps}
			return false
		}
		if g.apply != nil {
			return m.commute(g)
		}
		n, v := g.n, g.v
		if n.slot != none && !m.bind(n, v) {
			return false
		}
		switch n.kind {
		case isLiteral:
			if !v.IsConstant() || !m.m.vocab.Equal(n.lit, v) {
				return m.fail(whyConstant, n, v)
			}
		case isOr:
			return m.anyOf(n, v, g.next)
		case isCall:
			next, ok := m.call(g)
			if !ok {
				return false
			}
			g = next
			m.depth++
			continue
		}
		m.depth++
		g = g.next
	}
	return m.accept()
}

// call matches the owner of g.v with the call g.n. It returns the remaining goals: those for its
// arguments, then those after g.
func (m *matcher) call(g *goal) (*goal, bool) {
	n := g.n
	a := g.v.Owner()
	if a == nil || g.v.Index() != n.output || !n.op.Match(a.Op()) {
		return nil, m.fail(whyOp, n, g.v)
	}
	inputs := a.Inputs()
	if len(inputs) < len(n.args) || len(inputs) > len(n.args) && !n.hasRest {
		return nil, m.fail(whyInputs, n, g.v)
	}
	if a != m.root && !n.kept {
		m.inner = append(m.inner, a)
	}
	if n.op.Commutes && len(inputs) > 1 {
		return m.goal(goal{n: n, v: g.v, apply: a, next: g.next}), true
	}
	if n.rest != none && !m.bindRest(n, inputs[len(n.args):], g.v) {
		return nil, false
	}
	next := g.next
	for i := len(n.args) - 1; i >= 0; i-- {
		next = m.goal(goal{n: n.args[i], v: inputs[i], next: next})
	}
	return next, true
}

// commute tries every remaining input for the next argument of a commutative call.
func (m *matcher) commute(g *goal) bool {
	inputs := g.apply.Inputs()
	if g.i == len(g.n.args) {
		if g.n.rest != none {
			left := make([]*fgraph.Variable, 0, len(inputs)-g.i)
			for i, v := range inputs {
				if !g.taken(i) {
					left = append(left, v)
				}
			}
			if !m.bindRest(g.n, left, g.v) {
				return false
			}
		}
		return m.solve(g.next)
	}
	arg := g.n.args[g.n.order[g.i]]
	for i, v := range inputs {
		if g.taken(i) {
			continue
		}
		mark := m.mark()
		rest := m.goal(goal{n: g.n, v: g.v, apply: g.apply, i: g.i + 1, input: i, prev: g, next: g.next})
		if m.solve(m.goal(goal{n: arg, v: v, next: rest})) {
			return true
		}
		m.undo(mark)
		if m.steps > maxSteps {
			return false
		}
	}
	return false
}

// anyOf tries the alternatives in order.
func (m *matcher) anyOf(n *node, v *fgraph.Variable, next *goal) bool {
	for _, alt := range n.args {
		mark := m.mark()
		if m.solve(m.goal(goal{n: alt, v: v, next: next})) {
			return true
		}
		m.undo(mark)
		if m.steps > maxSteps {
			return false
		}
	}
	return false
}

// bind binds a name to v, or compares v with the existing binding.
func (m *matcher) bind(n *node, v *fgraph.Variable) bool {
	if have := m.b.vars[n.slot]; have != nil {
		return same(have, v) || m.fail(whyOther, n, v)
	}
	m.b.vars[n.slot] = v
	m.trail = append(m.trail, n.slot)
	return true
}

func (m *matcher) bindRest(n *node, vars []*fgraph.Variable, of *fgraph.Variable) bool {
	if have := m.b.rests[n.rest]; have != nil {
		return slices.EqualFunc(have, vars, same) || m.fail(whyOther, n, of)
	}
	if vars == nil {
		vars = []*fgraph.Variable{}
	}
	m.b.rests[n.rest] = vars
	m.trail = append(m.trail, -1-n.rest)
	return true
}

// same reports whether two variables are identical, or equal constants.
func same(a, b *fgraph.Variable) bool {
	return a == b || a.IsConstant() && b.IsConstant() && a.Type() == b.Type() && fgraph.EqualData(a.Type(), a.Data(), b.Data())
}

type mark struct {
	trail, inner, depth int
	goals               []goal
}

func (m *matcher) mark() mark { return mark{len(m.trail), len(m.inner), m.depth, m.goals} }

func (m *matcher) undo(to mark) {
	for _, slot := range m.trail[to.trail:] {
		if slot < 0 {
			m.b.rests[-1-slot] = nil
		} else {
			m.b.vars[slot] = nil
		}
	}
	m.trail, m.inner, m.depth, m.goals = m.trail[:to.trail], m.inner[:to.inner], to.depth, to.goals
}

// accept checks the conditions that need all bindings.
func (m *matcher) accept() bool {
	m.depth++
	if !m.m.opts.shared {
		for _, a := range m.inner {
			if v := m.sharedOutput(a); v != nil {
				return m.fail(whyClients, nil, v)
			}
		}
	}
	for i := range m.m.guards {
		g := &m.m.guards[i]
		if g.fn(m.c, g.variables(&m.b)) == g.not {
			m.failed = failure{why: whyGuard, depth: m.depth, guard: g}
			return false
		}
	}
	return true
}

// sharedOutput returns an output of an inner apply that has a client outside of the match, or
// nil.
func (m *matcher) sharedOutput(a *fgraph.Apply) *fgraph.Variable {
	for _, out := range a.Outputs() {
		for _, c := range out.Clients() {
			if c.Apply == nil || c.Apply != m.root && !slices.Contains(m.inner, c.Apply) {
				return out
			}
		}
	}
	return nil
}
