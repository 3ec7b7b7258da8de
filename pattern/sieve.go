package pattern

import (
	"cmp"
	"encoding/binary"
	"reflect"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/rewrite"
)

// A tree decides which of many patterns can match at an apply, in a time that hardly depends on
// their number. It ignores names, guards and clients, so it finds a few patterns too many.
//
// A spot is a position in patterns: the root, or an argument of a call at another spot. All
// arguments of a commutative call are one spot. Patterns with the same ops above a spot share
// it. What patterns expect at a spot are its parts: calls, numbers and alternatives, each of them
// once. "Anything" is no part.
//
// Calls of one op at one spot are a shape. The parts that its arguments have to be form the edges
// of a tree of knots, in which calls with the same first arguments share a path.
type tree struct {
	ops     operators
	spots   []spot
	shapes  []shape
	knots   []knot
	calls   table // spot, operator and output → shape
	arities table // shape and number of inputs → knot, for calls without a rest
	edges   table // branch and part → knot
	within  [][]int32
	rules   [][]int // for each part of the root spot, positions of rules
	always  []int   // rules that can't be sifted
}

// spot is a position in patterns.
type spot struct {
	calls   bool // some part is a call
	numbers []number
	values  []values
	within  bool // some part is one of alternatives
}

// number is a literal that a variable is compared with.
type number struct {
	vocab Vocabulary
	lit   Literal
	part  int32
}

// values are the literals of a vocabulary that knows the values of variables.
type values struct {
	at    int // index of the vocabulary
	vocab Numberer
	parts map[float64][]int32
}

// shape is the calls of one op at one spot.
type shape struct {
	commutes bool
	args     []int32 // spots of the arguments; a single one if the op commutes
	rest     int32   // knot of the calls with a rest, or none
	least    int     // the fewest arguments of these
	rules    []int   // at the root: the rules
}

// knot is reached by calls with the same parts among their first arguments.
type knot struct {
	leaves   []leaf
	branches []branch // by argument; at most one if the op commutes
}

// leaf is the end of the path of a call.
type leaf struct {
	part  int32
	least int      // fewer inputs do not suffice
	same  [][2]int // arguments that have the same name
}

// branch leads from a knot to others by the parts of one argument.
type branch struct {
	arg, id int32
	edges   []edge
}

type edge struct{ part, to int32 }

const (
	anything = -1 // the part of what every variable matches
	deepest  = 32 // parts below this depth are ignored
	mostOuts = 1 << 10
)

// Sieve returns the sieve of rules, or nil if they are not just substitutions.
func (s *Substitution) Sieve(rules []rewrite.NodeRewriter) rewrite.Sieve {
	g := grower{tree: &tree{spots: make([]spot, 1)}, names: make(map[opName]known), parts: make(map[string]int32)}
	for i, r := range rules {
		sub, ok := r.(*Substitution)
		if !ok {
			return nil
		}
		g.add(i, sub)
	}
	return g.tree
}

// grower builds a tree.
type grower struct {
	*tree
	vocab  int // index of the vocabulary of the current rule
	vocabs []Vocabulary
	names  map[opName]known
	parts  map[string]int32 // numbers, alternatives and leaves, by key
	nth    int32            // branches so far
}

type opName struct {
	vocab int
	name  string
}

// known is an operator and its number.
type known struct {
	op Operator
	at int32
}

// add adds a rule to the tree.
func (g *grower) add(rule int, s *Substitution) {
	for _, w := range s.cases {
		g.vocab = g.vocabulary(w.in.vocab)
		roots, _ := rootCall(w.in.pattern.Expr)
		for _, c := range roots {
			part, of := g.call(0, c, 0)
			if part == anything {
				g.always = append(g.always, rule)
				return
			}
			g.rules[part] = append(g.rules[part], rule)
			g.shapes[of].rules = append(g.shapes[of].rules, rule)
		}
	}
}

// vocabulary returns the index of a vocabulary.
func (g *grower) vocabulary(v Vocabulary) int {
	if reflect.ValueOf(v).Comparable() {
		for i, w := range g.vocabs {
			if reflect.ValueOf(w).Comparable() && v == w {
				return i
			}
		}
	}
	g.vocabs = append(g.vocabs, v)
	return len(g.vocabs) - 1
}

// want returns the part at a spot that an expression stands for.
func (g *grower) want(at int32, e Expr, depth int) int32 {
	switch e := e.(type) {
	case *Bind:
		return g.want(at, e.Expr, depth)
	case Literal:
		return g.number(at, e)
	case Or:
		return g.anyOf(at, e, depth)
	case *Call:
		part, _ := g.call(at, e, depth)
		return part
	}
	return anything
}

// part returns the number of a part, and whether it is new. key holds what makes it distinct.
func (g *grower) part(key []byte) (int32, bool) {
	if p, ok := g.parts[string(key)]; ok {
		return p, false
	}
	p := int32(len(g.parts))
	g.parts[string(key)] = p
	g.within, g.rules = append(g.within, nil), append(g.rules, nil)
	return p, true
}

// key returns a key of parts.
func key(kind byte, numbers ...int32) []byte {
	k := []byte{kind}
	for _, n := range numbers {
		k = binary.LittleEndian.AppendUint32(k, uint32(n))
	}
	return k
}

func (g *grower) number(at int32, l Literal) int32 {
	part, fresh := g.part(append(key('n', at, int32(g.vocab)), l...))
	if !fresh {
		return part
	}
	p := &g.spots[at]
	v, ok := g.vocabs[g.vocab].(Numberer)
	if !ok {
		p.numbers = append(p.numbers, number{g.vocabs[g.vocab], l, part})
		return part
	}
	i := slices.IndexFunc(p.values, func(w values) bool { return w.at == g.vocab })
	if i < 0 {
		i = len(p.values)
		p.values = append(p.values, values{g.vocab, v, make(map[float64][]int32)})
	}
	p.values[i].parts[l.Float()] = append(p.values[i].parts[l.Float()], part)
	return part
}

func (g *grower) anyOf(at int32, e Or, depth int) int32 {
	alternatives := make([]int32, len(e))
	for i, alt := range e {
		if alternatives[i] = g.want(at, alt, depth); alternatives[i] == anything {
			return anything
		}
	}
	slices.Sort(alternatives)
	if alternatives = slices.Compact(alternatives); len(alternatives) == 1 {
		return alternatives[0]
	}
	part, fresh := g.part(key('o', alternatives...))
	if fresh {
		g.spots[at].within = true
		for _, alt := range alternatives {
			g.within[alt] = append(g.within[alt], part)
		}
	}
	return part
}

// call returns the part of a call and its shape.
func (g *grower) call(at int32, e *Call, depth int) (part, of int32) {
	op, ok := g.operator(e.Op)
	if !ok || depth > deepest || e.Output >= mostOuts {
		return anything, none
	}
	g.spots[at].calls = true
	of, fresh := g.calls.add(callKey(at, op.at, e.Output), int32(len(g.shapes)))
	if fresh {
		g.shapes = append(g.shapes, shape{commutes: op.op.Commutes, rest: none})
	}
	args, rest := fixedArgs(e)
	var path []step
	for i, arg := range args {
		if p := g.want(g.argument(of, i), arg, depth+1); p != anything {
			path = append(path, step{int32(i), p})
		}
	}
	if op.op.Commutes {
		for i := range path {
			path[i].arg = 0
		}
		slices.SortFunc(path, func(a, b step) int { return cmp.Compare(a.part, b.part) })
	}
	at = g.start(of, len(args), rest)
	for _, s := range path {
		at = g.follow(at, s)
	}
	return g.leaf(at, len(args), sameArgs(args)), of
}

// step is an edge on the path of a call: the part that an argument has to be.
type step struct{ arg, part int32 }

// argument returns the spot of an argument of a shape.
func (g *grower) argument(of int32, i int) int32 {
	if g.shapes[of].commutes {
		i = 0
	}
	for len(g.shapes[of].args) <= i {
		g.shapes[of].args = append(g.shapes[of].args, int32(len(g.spots)))
		g.spots = append(g.spots, spot{})
	}
	return g.shapes[of].args[i]
}

// start returns the first knot of calls with n arguments, and possibly a rest.
func (g *grower) start(of int32, n int, rest bool) int32 {
	s := &g.shapes[of]
	switch {
	case !rest:
		k, fresh := g.arities.add(pair(of, int32(n)), int32(len(g.knots)))
		if fresh {
			g.knots = append(g.knots, knot{})
		}
		return k
	case s.rest == none:
		s.rest, s.least = int32(len(g.knots)), n
		g.knots = append(g.knots, knot{})
	}
	s.least = min(s.least, n)
	return s.rest
}

// follow returns the knot after a step from knot at.
func (g *grower) follow(at int32, s step) int32 {
	k := &g.knots[at]
	i, ok := slices.BinarySearchFunc(k.branches, s.arg, func(b branch, arg int32) int { return cmp.Compare(b.arg, arg) })
	if !ok {
		k.branches = slices.Insert(k.branches, i, branch{arg: s.arg, id: g.nth})
		g.nth++
	}
	b := &k.branches[i]
	to, fresh := g.edges.add(pair(b.id, s.part), int32(len(g.knots)))
	if fresh {
		b.edges = append(b.edges, edge{s.part, to})
		g.knots = append(g.knots, knot{})
	}
	return to
}

// leaf returns the part of the calls whose path ends at a knot.
func (g *grower) leaf(at int32, least int, same [][2]int) int32 {
	k := key('c', at, int32(least))
	for _, s := range same {
		k = append(k, key('=', int32(s[0]), int32(s[1]))...)
	}
	part, fresh := g.part(k)
	if fresh {
		g.knots[at].leaves = append(g.knots[at].leaves, leaf{part, least, same})
	}
	return part
}

// operator returns the operator of a name and its number.
func (g *grower) operator(name string) (known, bool) {
	if k, ok := g.names[opName{g.vocab, name}]; ok {
		return k, true
	}
	c := compiler{vocab: g.vocabs[g.vocab]}
	op, inBraces, ok := c.operator(name)
	if !ok {
		return known{}, false
	}
	family := name
	if inBraces != "" { // captured parameters may have any name
		family, _, _ = strings.Cut(name, "{")
		family += "{"
	}
	k, again := g.names[opName{g.vocab, family}]
	if !again {
		k = known{op, g.ops.add(op)}
		g.names[opName{g.vocab, family}] = k
	}
	g.names[opName{g.vocab, name}] = k
	return k, true
}

// fixedArgs returns the arguments of a call without the rest, and whether there is one.
func fixedArgs(e *Call) ([]Expr, bool) {
	if n := len(e.Args); n > 0 {
		if _, rest := e.Args[n-1].(Rest); rest {
			return e.Args[:n-1], true
		}
	}
	return e.Args, false
}

// sameArgs returns the pairs of arguments with the same name: (switch c x x).
func sameArgs(args []Expr) [][2]int {
	var pairs [][2]int
	first := make(map[string]int)
	for i, arg := range args {
		name := ""
		switch arg := arg.(type) {
		case Name:
			name = string(arg)
		case *Bind:
			name = arg.Name
		}
		if j, again := first[name]; again {
			pairs = append(pairs, [2]int{j, i})
		} else if name != "" {
			first[name] = i
		}
	}
	return pairs
}

func pair(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

// callKey is distinct for up to 2²⁴ spots.
func callKey(at, operator int32, output int) uint64 {
	return uint64(uint32(at))<<40 | uint64(uint32(operator))<<10 | uint64(output)
}
