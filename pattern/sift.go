package pattern

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// sifting walks over a tree with the applies of one run.
type sifting struct {
	*tree
	classes classes
	found   []int32 // parts that variables match, a stack
	hits    []int32 // parts of calls whose path was followed to its end, a stack
	spans   []span  // for each argument of a call, where its parts are in found, a stack
	count   []int32 // how many arguments of a commutative call match a part
	uses    []int32 // the parts whose count was positive
	steps   int     // at the current root
	budget  int     // how many steps are allowed there
	credit  []int   // by class of the root, see mostCredit
	total   int     // steps at all roots
}

// span is a piece of a stack. A negative start means that the variable was not looked at yet.
type span struct{ from, to int32 }

// The budget of steps for sifting at an apply is a credit of its op. What sifting saves adds to
// the credit, and steps are taken from it, so that sieves that hardly exclude rules don't cost
// more than a fraction of asking these. Without credit all rules are asked.
const (
	startCredit = 1 << 11
	mostCredit  = 1 << 16
	worth       = 8 // steps that cost as much as asking a rule in vain
	perInput    = 2 // steps that are free for every input of the root
)

// Begin returns a function that sifts.
func (t *tree) Begin() rewrite.Sift { return newSifting(t).sift }

func newSifting(t *tree) *sifting {
	return &sifting{tree: t, classes: newClasses(&t.ops), count: make([]int32, len(t.rules))}
}

// sift appends the positions of the rules whose patterns may match at n.
func (s *sifting) sift(n *fgraph.Apply, list []int) []int {
	list = append(list, s.always...)
	class := s.classes.of(n)
	if class == 0 || len(n.Outputs()) != 1 {
		return list
	}
	for int(class) >= len(s.credit) {
		s.credit = append(s.credit, startCredit)
	}
	free := perInput * len(n.Inputs())
	s.steps, s.budget = 0, s.credit[class]+free
	s.found, s.hits, s.spans = s.found[:0], s.hits[:0], s.spans[:0]
	rules, done := 0, true
	for _, o := range s.classes.lists[class] {
		if of := s.calls.get(callKey(0, o, 0)); of != none {
			rules += len(s.shapes[of].rules)
			done = done && s.call(of, n)
		}
	}
	kept := len(list)
	if done {
		for _, p := range s.found {
			list = append(list, s.rules[p]...)
		}
	} else {
		list = s.all(class, list)
	}
	saved := max(0, rules-(len(list)-kept))
	s.credit[class] = max(0, min(s.credit[class]+worth*saved-max(0, s.steps-free), mostCredit))
	s.total += s.steps
	return list
}

// all appends the positions of all rules for a class of ops.
func (s *sifting) all(class int32, list []int) []int {
	for _, o := range s.classes.lists[class] {
		if of := s.calls.get(callKey(0, o, 0)); of != none {
			list = append(list, s.shapes[of].rules...)
		}
	}
	return list
}

// step counts a step. It returns false if the budget is used up.
func (s *sifting) step() bool {
	s.steps++
	return s.steps <= s.budget
}

// look appends to s.found the parts of a spot that v matches. It returns false if the budget is
// used up. It recurses as deep as patterns, at most deepest.
func (s *sifting) look(at int32, v *fgraph.Variable) bool {
	if !s.step() {
		return false
	}
	p := &s.spots[at]
	from := len(s.found)
	if len(p.values)+len(p.numbers) > 0 && !s.numbers(p, v) {
		return false
	}
	if a := v.Owner(); a != nil && p.calls && v.Index() < mostOuts {
		for _, o := range s.classes.lists[s.classes.of(a)] {
			if of := s.calls.get(callKey(at, o, v.Index())); of != none && !s.call(of, a) {
				return false
			}
		}
	}
	if p.within {
		s.alternatives(from)
	}
	return true
}

// numbers appends the literals that v equals.
func (s *sifting) numbers(p *spot, v *fgraph.Variable) bool {
	for i := range p.values {
		if x, ok := p.values[i].vocab.Number(v); ok {
			s.found = append(s.found, p.values[i].parts[x]...)
		}
	}
	for i := range p.numbers {
		if !s.step() {
			return false
		}
		if n := &p.numbers[i]; n.vocab.Equal(n.lit, v) {
			s.found = append(s.found, n.part)
		}
	}
	return true
}

// alternatives appends the parts that are alternatives of parts in s.found[from:].
func (s *sifting) alternatives(from int) {
	for i := from; i < len(s.found); i++ {
	next:
		for _, p := range s.within[s.found[i]] {
			for _, q := range s.found[from:] {
				if p == q {
					continue next
				}
			}
			s.found = append(s.found, p)
		}
	}
}

// call appends to s.found the parts of a shape that an apply matches.
func (s *sifting) call(of int32, a *fgraph.Apply) bool {
	sh := &s.shapes[of]
	n := len(a.Inputs())
	first, rest := s.arities.get(pair(of, int32(n))), sh.rest
	if n < sh.least {
		rest = none
	}
	if first == none && rest == none {
		return true
	}
	found, hits, spans := len(s.found), len(s.hits), len(s.spans)
	c := calling{sh: sh, inputs: a.Inputs(), spans: spans}
	if !s.arguments(&c) || first != none && !s.follow(&c, first) || rest != none && !s.follow(&c, rest) {
		s.forget()
		return false
	}
	s.forget()
	s.found = append(s.found[:found], s.hits[hits:]...)
	s.hits, s.spans = s.hits[:hits], s.spans[:spans]
	return true
}

// calling is an apply whose arguments are compared with those of a shape.
type calling struct {
	sh     *shape
	inputs []*fgraph.Variable
	spans  int // where those of the arguments begin
}

// arguments looks at the arguments of a commutative call and counts which parts they match. The
// arguments of other calls are looked at when a path asks for them.
func (s *sifting) arguments(c *calling) bool {
	if !c.sh.commutes {
		for range c.sh.args {
			s.spans = append(s.spans, span{from: -1})
		}
		return true
	}
	if len(c.sh.args) == 0 {
		return true
	}
	from := len(s.found)
	for _, v := range c.inputs {
		if !s.look(c.sh.args[0], v) {
			return false
		}
	}
	for _, p := range s.found[from:] {
		if s.count[p] == 0 {
			s.uses = append(s.uses, p)
		}
		s.count[p]++
	}
	return true
}

// forget clears the counts.
func (s *sifting) forget() {
	for _, p := range s.uses {
		s.count[p] = 0
	}
	s.uses = s.uses[:0]
}

// follow appends to s.hits the calls at the ends of the paths from a knot that the arguments
// allow. It recurses as deep as calls have arguments.
func (s *sifting) follow(c *calling, at int32) bool {
	k := &s.knots[at]
	for i := range k.leaves {
		if l := &k.leaves[i]; len(c.inputs) >= l.least && l.agrees(c) {
			s.hits = append(s.hits, l.part)
		}
	}
	for i := range k.branches {
		var ok bool
		switch b := &k.branches[i]; {
		case !c.sh.commutes:
			ok = s.branch(c, b)
		case len(b.edges) <= len(s.uses):
			ok = s.chooseEdge(c, b)
		default:
			ok = s.chooseUse(c, b)
		}
		if !ok {
			return false
		}
	}
	return true
}

// branch follows the edges for the parts that an argument matches.
func (s *sifting) branch(c *calling, b *branch) bool {
	if int(b.arg) >= len(c.inputs) {
		return true // the calls on this branch have more arguments before the rest
	}
	at := c.spans + int(b.arg)
	if s.spans[at].from < 0 {
		from := len(s.found)
		if !s.look(c.sh.args[b.arg], c.inputs[b.arg]) {
			return false
		}
		s.spans[at] = span{int32(from), int32(len(s.found))}
	}
	for i := s.spans[at].from; i < s.spans[at].to; i++ {
		if !s.step() {
			return false
		}
		if to := s.edges.get(pair(b.id, s.found[i])); to != none && !s.follow(c, to) {
			return false
		}
	}
	return true
}

// chooseEdge follows the edges whose parts are left among the arguments of a commutative call.
func (s *sifting) chooseEdge(c *calling, b *branch) bool {
	for _, e := range b.edges {
		if !s.step() {
			return false
		}
		if s.count[e.part] > 0 && !s.choose(c, e) {
			return false
		}
	}
	return true
}

// chooseUse is chooseEdge for few parts.
func (s *sifting) chooseUse(c *calling, b *branch) bool {
	for _, p := range s.uses {
		if !s.step() {
			return false
		}
		if s.count[p] == 0 {
			continue
		}
		if to := s.edges.get(pair(b.id, p)); to != none && !s.choose(c, edge{p, to}) {
			return false
		}
	}
	return true
}

// choose follows an edge and takes its part from the arguments.
func (s *sifting) choose(c *calling, e edge) bool {
	s.count[e.part]--
	ok := s.follow(c, e.to)
	s.count[e.part]++
	return ok
}

// agrees reports whether arguments with the same name may be the same variable.
func (l *leaf) agrees(c *calling) bool {
	for _, p := range l.same {
		if c.sh.commutes && len(c.inputs) > 1 {
			return repeats(c.inputs)
		}
		if !same(c.inputs[p[0]], c.inputs[p[1]]) {
			return false
		}
	}
	return true
}

// repeats reports whether two of the variables may be the same. It says so if there are many.
func repeats(vars []*fgraph.Variable) bool {
	const many = 4
	if len(vars) > many {
		return true
	}
	for i, v := range vars {
		for _, w := range vars[i+1:] {
			if same(v, w) {
				return true
			}
		}
	}
	return false
}
