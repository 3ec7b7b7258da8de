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
	vars   []*fgraph.Variable
	rests  [][]*fgraph.Variable
	params []any
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

// A search looks for one match. It recurses for every choice, as deep as the pattern has
// choices. A failure undoes the bindings since the last choice.
type search struct {
	m     *Matcher
	c     *rewrite.Context
	root  *fgraph.Apply
	b     bindings
	trail []int           // bound slots in order: of variables, then -1-slot for rests, then from paramSlots for parameters
	inner []*fgraph.Apply // applies below the root that the replacement makes unused
	depth int             // goals met so far on this path
	steps int
	goals []goal // the chunk that goals are allocated from

	scratch Args // memory for the arguments of guards

	element int // of the rests of an Each in the replacement

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
	err   error // why there is no replacement
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
	whyParam
	whyUnmade
	whyUnchanged
	whyType
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
		return fmt.Sprintf("%s is not what %s matches elsewhere", f.v, f.n.expr)
	case whyClients:
		return fmt.Sprintf("%s has other clients", f.v)
	case whyGuard:
		return fmt.Sprintf("the guard %s is false", f.guard.text)
	case whyOutputs:
		return fmt.Sprintf("%s is not its op's only output", f.v)
	case whyParam:
		return fmt.Sprintf("%s has other parameters than %s", f.v, f.n.expr)
	case whyUnmade:
		return fmt.Sprintf("the replacement can't be made: %v", f.err)
	case whyUnchanged:
		return "the replacement changes nothing"
	case whyType:
		return f.err.Error()
	case whySteps:
		return fmt.Sprintf("gave up after %d steps", maxSteps)
	}
	return "no match"
}

// goal allocates a goal. Goals are linked by address, so a full chunk stays in place and goal
// starts a new one.
func (s *search) goal(g goal) *goal {
	if len(s.goals) == cap(s.goals) {
		// A chunk is never moved: lists point into it. Undoing a choice returns to the chunk of the
		// mark, and what is behind its end is free again.
		s.goals = make([]goal, 0, 32)
	}
	s.goals = append(s.goals, g)
	return &s.goals[len(s.goals)-1]
}

func (s *search) fail(w why, n *node, v *fgraph.Variable) bool {
	if s.failed.why == 0 || s.depth > s.failed.depth {
		s.failed = failure{why: w, depth: s.depth, n: n, v: v}
	}
	return false
}

// solve matches the goals one by one and then checks the guards.
func (s *search) solve(g *goal) bool {
	for g != nil {
		// Choices multiply. Without this bound, a pattern with ten arguments of a sum of thirty
		// terms could run for years.
		if s.steps++; s.steps > maxSteps {
			s.failed = failure{why: whySteps}
			return false
		}
		if g.apply != nil {
			// Everything that remains depends on the choice, so the choice recurses with it: the
			// goals behind this one are part of each attempt. Goals are immutable lists, which
			// attempts share.
			return s.commute(g)
		}
		n, v := g.n, g.v
		// Names come first. A name that is bound already is compared by one pointer, which excludes
		// most choices before anything below is looked at.
		if n.slot != none && !s.bind(n, v) {
			return false
		}
		switch n.kind {
		case isLiteral:
			if !s.m.equal(n.lit, v) {
				return s.fail(whyConstant, n, v)
			}
		case isOr:
			return s.anyOf(n, v, g.next)
		case isCall:
			next, ok := s.call(g)
			if !ok {
				return false
			}
			g = next
			s.depth++
			continue
		}
		s.depth++
		g = g.next
	}
	return s.accept()
}

// equal reports whether v is known to be a number.
func (m *Matcher) equal(l Literal, v *fgraph.Variable) bool {
	if m.numberer != nil {
		if _, known := m.numberer.Number(v); !known {
			return false // most are not, and reading the literal takes longer
		}
	}
	return m.vocab.Equal(l, v)
}

// call matches the owner of g.v with the call g.n. It returns the remaining goals: those for its
// arguments, then those after g.
func (s *search) call(g *goal) (*goal, bool) {
	n := g.n
	a := g.v.Owner()
	if a == nil || g.v.Index() != n.output || !n.op.Match(a.Op()) {
		return nil, s.fail(whyOp, n, g.v)
	}
	inputs := a.Inputs()
	if len(inputs) < len(n.args) || len(inputs) > len(n.args) && !n.hasRest {
		return nil, s.fail(whyInputs, n, g.v)
	}
	// The applies inside of a match have no purpose after the replacement, unless it uses their
	// results. If other applies use them, they stay, and the rewrite adds work in place of saving
	// it. Who uses them is checked at the end, when all of them are known; see accept.
	if a != s.root && !n.kept {
		s.inner = append(s.inner, a)
	}
	if n.param != none && !s.bindParam(n, n.op.Param(a.Op()), g.v) {
		return nil, false
	}
	// Which input is which argument is found by trying, but not here: the rest of the pattern has
	// to agree with the choice, so it becomes a goal of its own.
	if n.op.Commutes && len(inputs) > 1 {
		return s.goal(goal{n: n, v: g.v, apply: a, next: g.next}), true
	}
	if n.rest != none && !s.bindRest(n, inputs[len(n.args):], g.v) {
		return nil, false
	}
	next := g.next
	// The goals for arguments are put in front in reverse, so that the first argument is matched
	// first, and all of them before what follows the call: what fails, fails near the root.
	for i := len(n.args) - 1; i >= 0; i-- {
		next = s.goal(goal{n: n.args[i], v: inputs[i], next: next})
	}
	return next, true
}

// commute tries every remaining input for the next argument of a commutative call.
func (s *search) commute(g *goal) bool {
	inputs := g.apply.Inputs()
	// All arguments have inputs. What is left is the rest, in the order of the inputs, so that a
	// rewrite does not permute what it does not touch.
	if g.i == len(g.n.args) {
		if g.n.rest != none {
			left := make([]*fgraph.Variable, 0, len(inputs)-g.i)
			for i, v := range inputs {
				if !g.taken(i) {
					left = append(left, v)
				}
			}
			if !s.bindRest(g.n, left, g.v) {
				return false
			}
		}
		return s.solve(g.next)
	}
	// Strict arguments choose first: an op or a number fits few inputs, a name any. If names came
	// first, each of their choices would be undone when a strict one found nothing.
	arg := g.n.args[g.n.order[g.i]]
	for i, v := range inputs {
		if g.taken(i) {
			continue
		}
		mark := s.mark()
		// An attempt is the argument, then the other arguments of this call, then all that follows.
		// A failure anywhere in it leaves the bindings as they were before.
		rest := s.goal(goal{n: g.n, v: g.v, apply: g.apply, i: g.i + 1, input: i, prev: g, next: g.next})
		if s.solve(s.goal(goal{n: arg, v: v, next: rest})) {
			return true
		}
		s.undo(mark)
		if s.steps > maxSteps {
			return false
		}
	}
	return false
}

// anyOf tries the alternatives in order.
func (s *search) anyOf(n *node, v *fgraph.Variable, next *goal) bool {
	for _, alt := range n.args {
		mark := s.mark()
		if s.solve(s.goal(goal{n: alt, v: v, next: next})) {
			return true
		}
		s.undo(mark)
		if s.steps > maxSteps {
			return false
		}
	}
	return false
}

// bind binds a name to v, or compares v with the existing binding.
func (s *search) bind(n *node, v *fgraph.Variable) bool {
	if have := s.b.vars[n.slot]; have != nil {
		return same(have, v) || s.fail(whyOther, n, v)
	}
	// The trail remembers what has to be undone.
	s.b.vars[n.slot] = v
	s.trail = append(s.trail, n.slot)
	return true
}

func (s *search) bindRest(n *node, vars []*fgraph.Variable, of *fgraph.Variable) bool {
	if have := s.b.rests[n.rest]; have != nil {
		return slices.EqualFunc(have, vars, same) || s.fail(whyOther, n, of)
	}
	// nil means unbound, and a rest may be bound to no variable.
	if vars == nil {
		vars = []*fgraph.Variable{}
	}
	s.b.rests[n.rest] = vars
	s.trail = append(s.trail, -1-n.rest)
	return true
}

func (s *search) bindParam(n *node, param any, of *fgraph.Variable) bool {
	if have := s.b.params[n.param]; have != nil {
		return sameParam(have, param) || s.fail(whyParam, n, of)
	}
	s.b.params[n.param] = param
	s.trail = append(s.trail, paramSlots+n.param)
	return true
}

// sameParam reports whether two captured parameters are equal.
func sameParam(a, b any) bool {
	op, ok := a.(fgraph.Op)
	op2, ok2 := b.(fgraph.Op)
	return a == b || ok && ok2 && fgraph.OpsEqual(op, op2)
}

// paramSlots is where slots of parameters begin on the trail.
const paramSlots = 1 << 20

// same reports whether two variables are identical, or equal constants.
func same(a, b *fgraph.Variable) bool {
	return a == b || a.IsConstant() && b.IsConstant() && a.Type() == b.Type() && fgraph.EqualData(a.Type(), a.Data(), b.Data())
}

type mark struct {
	trail, inner, depth int
	goals               []goal
}

func (s *search) mark() mark { return mark{len(s.trail), len(s.inner), s.depth, s.goals} }

func (s *search) undo(to mark) {
	for _, slot := range s.trail[to.trail:] {
		switch {
		case slot < 0:
			s.b.rests[-1-slot] = nil
		case slot >= paramSlots:
			s.b.params[slot-paramSlots] = nil
		default:
			s.b.vars[slot] = nil
		}
	}
	s.trail, s.inner, s.depth, s.goals = s.trail[:to.trail], s.inner[:to.inner], to.depth, to.goals
}

// accept checks the conditions that need all bindings.
func (s *search) accept() bool {
	s.depth++
	// Clients come before guards: looking at them is cheap, and guards may look anywhere in the
	// graph. Guards see complete bindings, so none of them runs for an attempt that fails
	// elsewhere.
	if !s.m.opts.shared {
		for _, a := range s.inner {
			if v := s.sharedOutput(a); v != nil {
				return s.fail(whyClients, nil, v)
			}
		}
	}
	for i := range s.m.guards {
		g := &s.m.guards[i]
		a := s.args(g.args, s.scratch)
		holds := g.fn(a)
		s.scratch = Args{Vars: a.Vars[:0], Params: a.Params[:0]}
		if holds == g.not {
			// A guard speaks last, and its failure is what a user wants to know, however deep
			// others were.
			s.failed = failure{why: whyGuard, depth: s.depth, guard: g}
			return false
		}
	}
	return true
}

// sharedOutput returns an output of an inner apply that has a client outside of the match, or
// nil.
func (s *search) sharedOutput(a *fgraph.Apply) *fgraph.Variable {
	for _, out := range a.Outputs() {
		for _, c := range out.Clients() {
			if c.Apply == nil || c.Apply != s.root && !slices.Contains(s.inner, c.Apply) {
				return out
			}
		}
	}
	return nil
}
