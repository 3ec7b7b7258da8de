package pattern

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// A sieve decides which of many patterns can match at an apply, in a time that hardly depends on
// their number. It ignores names, guards and clients, and looks at one path of each pattern, so it
// finds some patterns too many, and never one too few.
//
// A path leads from the root of a pattern down to one of its calls or numbers: "mul; an argument of
// it is computed by exp; an argument of that is 2". The paths of all patterns form a tree of knots.
// A pattern can match only where all its paths can be followed in the graph, so it is enough to
// store it at the end of a single one, which as few other patterns as possible have: among a
// thousand products of something and a number, that of the number.
type sieve struct {
	numberer Numberer // the vocabulary, if it is one
	match    []func(fgraph.Op) bool
	byType   map[reflect.Type][]int32 // operators that may match ops of a Go type
	untyped  []int32                  // operators that may match any op
	values   map[float64]int32        // numbers in patterns, as edges have them
	edges    map[edge]int32           // to knots
	knots    []knot
}

// A knot is the end of a path. The first one is above the roots.
type knot struct {
	above    int32
	depth    int
	commutes bool  // the order of arguments does not matter, so all of them are in place 0
	numbers  bool  // an edge from here is that of a number
	deeper   bool  // there are edges from here
	passed   int   // cases that have the path
	rules    []int // those whose path ends here
	all      []int // at roots: all rules
}

// An edge leads from a knot to what an argument of its call may be: an operator and the number of
// its output, or a number if what is negative.
type edge struct{ from, place, what, output int32 }

const (
	// longest bounds paths, and so the recursion of sifting.
	longest = 32
	// perRule is how many steps sifting may take for each rule with the op at its root, so that a
	// sieve that excludes nothing at most doubles the time. A step costs 80 to 120 ns where asking
	// a rule in vain costs 100 to 340 ns, with 1,000 made-up rules on 23 November 2026.
	perRule = 2
	// perInput is how many steps are free for every input of the root.
	perInput = 2
)

// Sieve returns a function that begins to sift rules, or nil if they are not just substitutions with
// one vocabulary.
func (s *Substitution) Sieve(rules []rewrite.NodeRewriter) func() rewrite.Sift {
	t := s.sieve(rules)
	if t == nil {
		return nil
	}
	return func() rewrite.Sift { return (&sifting{sieve: t, found: make([]int32, len(t.knots))}).sift }
}

func (s *Substitution) sieve(rules []rewrite.NodeRewriter) *sieve {
	vocab := s.Vocabulary()
	g := grower{names: make(map[string]int32), sieve: &sieve{
		byType: make(map[reflect.Type][]int32), values: make(map[float64]int32),
		edges: make(map[edge]int32), knots: make([]knot, 1),
	}}
	g.numberer, _ = vocab.(Numberer)
	for i, r := range rules {
		sub, ok := r.(*Substitution)
		if !ok || !reflect.ValueOf(sub.Vocabulary()).Comparable() || sub.Vocabulary() != vocab {
			return nil
		}
		for _, w := range sub.cases {
			for _, root := range w.in.root.roots() {
				// Each case has all its paths in the tree for now, so that the knots count how many
				// cases they are on the way of. Alternatives at the root are patterns of their own:
				// the rule must be found by each of them.
				at := len(g.ends)
				g.paths(edge{}, root, 1)
				to := g.ends[at]
				g.knots[to].all = append(g.knots[to].all, i)
				g.cases = append(g.cases, span{i, at, len(g.ends)})
			}
		}
	}
	// How many cases have a path is known only now.
	for _, c := range g.cases {
		g.store(c.rule, g.ends[c.from:c.to])
	}
	// What is left then has an edge for each step of a path on which a rule is stored, and no more
	// than one such path for each case.
	g.prune()
	return g.sieve
}

// A grower makes a sieve.
type grower struct {
	*sieve
	names map[string]int32 // operators
	ends  []int32          // of all paths of all cases, the root of a case first
	cases []span
}

// span is the ends of the paths of a case.
type span struct{ rule, from, to int }

// paths adds the paths to a part of a pattern and to what is below it. e is the edge to the part, without
// the part's kind. Alternatives have no path, since a match needs only one of them.
func (g *grower) paths(e edge, n *node, length int) {
	switch x := n.lit.Float(); {
	case n.kind == isCall:
		e.what, e.output = g.operator(n), int32(n.output)
	case n.kind == isLiteral && g.numberer != nil && !math.IsNaN(x): // a map does not find a NaN
		// Numbers are edges like operators, with negative numbers. What the vocabulary says is the
		// value of a variable is looked up once, however many numbers patterns have.
		if _, ok := g.values[x]; !ok {
			g.values[x] = -1 - int32(len(g.values))
		}
		e.what = g.values[x]
		g.knots[e.from].numbers = true
	default:
		return
	}
	to, ok := g.edges[e]
	if !ok {
		to = int32(len(g.knots))
		g.edges[e] = to
		commutes := n.kind == isCall && n.op.Commutes
		g.knots = append(g.knots, knot{above: e.from, depth: length, commutes: commutes})
	}
	g.knots[to].passed++
	g.ends = append(g.ends, to)
	// A rule with a deeper pattern is stored above this depth, which finds it too often and never
	// too seldom.
	if length == longest {
		return
	}
	for i, arg := range n.args {
		next := edge{from: to, place: int32(i)}
		// A commutative op may match its arguments in any order. In one place, they are all
		// compared with each of its inputs; that two of them want the same input goes unnoticed,
		// and is left to the matcher.
		if g.knots[to].commutes {
			next.place = 0
		}
		g.paths(next, arg, length+1)
	}
}

// operator returns the number of the operator of a call. Operators differ if their names do; what
// rules call captured parameters does not count.
func (g *grower) operator(n *node) int32 {
	e := n.expr
	if b, ok := e.(*Bind); ok {
		e = b.Expr
	}
	name := e.(*Call).Op
	// The family is the operator: "sum{a}" and "sum{b}" are the same.
	if n.param != none {
		name = name[:strings.IndexByte(name, '{')+1]
	}
	o, ok := g.names[name]
	if !ok {
		o = int32(len(g.match))
		g.names[name] = o
		g.match = append(g.match, n.op.Match)
		if len(n.op.Tracks) == 0 {
			g.untyped = append(g.untyped, o)
		}
		for _, t := range n.op.Tracks {
			if list := g.byType[t.Type()]; !slices.Contains(list[max(0, len(list)-1):], o) {
				g.byType[t.Type()] = append(list, o)
			}
		}
	}
	return o
}

// store stores a rule at the end of the path that the fewest cases have. If there are several, a
// longer one says more.
func (g *grower) store(rule int, ends []int32) {
	best := &g.knots[ends[0]]
	for _, to := range ends[1:] {
		if k := &g.knots[to]; k.passed < best.passed || k.passed == best.passed && k.depth > best.depth {
			best = k
		}
	}
	best.rules = append(best.rules, rule)
}

// prune removes the edges below which no rule is stored: sifting would follow them in vain.
func (g *grower) prune() {
	for i := len(g.knots) - 1; i > 0; i-- { // a knot comes after the one above it
		if k := &g.knots[i]; len(k.rules) > 0 || k.deeper {
			g.knots[k.above].deeper = true
		}
	}
	for e, to := range g.edges {
		if k := &g.knots[to]; len(k.rules) == 0 && !k.deeper {
			delete(g.edges, e)
		}
	}
}

// sifting is the use of a sieve in one run.
type sifting struct {
	*sieve
	graph *fgraph.FunctionGraph
	known [][]int32 // operators that match an op, by number of the op in the graph
	found []int32   // by knot: the last apply where its rules were found, counted from 1
	nth   int32
	steps int // left at this apply
	total int // steps at all applies
	list  []int
}

// sift appends the positions of the rules whose patterns may match at n. If following paths takes
// more than it may save, these are all rules with the op at their root.
func (s *sifting) sift(n *fgraph.Apply, list []int) []int {
	// Following paths never costs much more than asking the rules: the steps are limited by the
	// number of rules that it may exclude. Without that, a product of products of many inputs would
	// take exponentially long, since paths forget that inputs were seen before.
	operators := s.of(n)
	if len(operators) == 0 || len(n.Outputs()) != 1 {
		return list
	}
	budget := perInput * len(n.Inputs())
	for _, o := range operators {
		if to, ok := s.edges[edge{what: o}]; ok {
			budget += perRule * len(s.knots[to].all)
		}
	}
	s.nth++
	s.steps, s.list = budget, list
	done := s.call(edge{}, n)
	s.total += budget - max(0, s.steps)
	if done {
		return s.list
	}
	// The steps ran out. What was found so far is dropped, as it is part of what follows.
	list = s.list[:len(list)]
	for _, o := range operators {
		if to, ok := s.edges[edge{what: o}]; ok {
			list = append(list, s.knots[to].all...)
		}
	}
	return list
}

// call follows the edges for the operators of an apply, and returns false if there are no steps
// left. The edge says where the apply is.
func (s *sifting) call(e edge, a *fgraph.Apply) bool {
	for _, o := range s.of(a) {
		e.what = o
		if to, ok := s.edges[e]; ok && !s.arguments(to, a.Inputs()) {
			return false
		}
	}
	return true
}

// arguments finds the rules at a knot, and follows the edges for the arguments of its call.
func (s *sifting) arguments(at int32, inputs []*fgraph.Variable) bool {
	k := &s.knots[at]
	if s.found[at] != s.nth { // arguments of a commutative op may lead here several times
		s.found[at] = s.nth
		s.list = append(s.list, k.rules...)
	}
	// Most knots are the ends of paths, and need no look at the arguments.
	if !k.deeper {
		return true
	}
	for i, v := range inputs {
		if s.steps--; s.steps < 0 {
			return false
		}
		e := edge{from: at, place: int32(i)}
		if k.commutes {
			e.place = 0
		}
		if a := v.Owner(); a != nil {
			// An op with several outputs is reached by different edges for each.
			e.output = int32(v.Index())
			if !s.call(e, a) {
				return false
			}
			e.output = 0
		}
		if k.numbers {
			// Indices of values are negative, so 0 means that no pattern has this number.
			if x, ok := s.numberer.Number(v); ok && s.values[x] < 0 {
				e.what = s.values[x]
				if to, ok := s.edges[e]; ok && !s.arguments(to, nil) {
					return false
				}
			}
		}
	}
	return true
}

// of returns the operators that match the op of an apply.
func (s *sifting) of(a *fgraph.Apply) []int32 {
	g := a.Graph()
	if g == nil {
		return s.find(a.Op())
	}
	// Matching operators with ops is the dearest part, so it is done once for each op of the graph
	// and not for each apply. Applies of proposals belong to no graph, and are rare.
	if g != s.graph {
		s.graph, s.known = g, nil
	}
	n := g.OpNumber(a)
	if n >= len(s.known) {
		s.known = append(s.known, make([][]int32, n+1-len(s.known)+max(32, n/4))...)
	}
	if s.known[n] == nil {
		s.known[n] = s.find(a.Op())
	}
	return s.known[n]
}

// find returns the operators that match an op. It is not nil.
func (s *sifting) find(op fgraph.Op) []int32 {
	list := []int32{}
	for _, some := range [][]int32{s.untyped, s.byType[reflect.TypeOf(op)]} {
		for _, o := range some {
			if s.match[o](op) {
				list = append(list, o)
			}
		}
	}
	return list
}
