package pattern

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// Mistakes in rules that are syntactically correct.
var (
	// ErrUnknownOp means that the vocabulary does not have an op.
	ErrUnknownOp = errors.New("unknown op")
	// ErrArity means that an op can't have that number of arguments.
	ErrArity = errors.New("wrong number of arguments")
	// ErrUnbound means that the pattern does not bind a name.
	ErrUnbound = errors.New("unbound name")
	// ErrUnknownFunc means that no option defines a guard.
	ErrUnknownFunc = errors.New("unknown function")
	// ErrForm means that an expression is not allowed in its place.
	ErrForm = errors.New("misplaced expression")
	// ErrNoChange means that a replacement equals its pattern.
	ErrNoChange = errors.New("replacement is the pattern itself")
)

type kind uint8

const (
	isAny kind = iota
	isName
	isLiteral
	isCall
	isOr
)

const none = -1

// A node is a part of a compiled pattern or replacement.
type node struct {
	kind kind
	slot int // slot of the bound variable, or none
	expr Expr

	lit Literal // isLiteral

	op      Operator // isCall
	build   Builder  // isCall in a replacement, instead of op
	output  int
	args    []*node // isCall: without the rest; isOr: the alternatives
	order   []int   // order in which the args of a commutative call choose inputs
	hasRest bool    // isCall: takes any number of further inputs
	rest    int     // slot of the rest, or none
	splice  []splice
	kept    bool // the replacement uses the result, so it may have other clients
}

// A splice is a rest in the arguments of a replacement, before argument at.
type splice struct{ at, slot int }

type compiler struct {
	vocab  Vocabulary
	text   string
	opts   *options
	slots  []string        // names of single variables
	rests  []string        // names of rests
	used   map[string]bool // names in the replacement
	faults []error
}

func (c *compiler) fault(pos int, err error, format string, args ...any) {
	at := ""
	if pos > 0 {
		at = fmt.Sprintf("column %d: ", pos)
	}
	c.faults = append(c.faults, fmt.Errorf("pattern %q: %s%w: %s", c.text, at, err, fmt.Sprintf(format, args...)))
}

// pattern compiles an expression of a pattern.
func (c *compiler) pattern(e Expr, kept bool) *node {
	n := &node{kind: isAny, slot: none, rest: none, expr: e, kept: kept}
	switch e := e.(type) {
	case Any:
	case Name:
		n.kind, n.slot = isName, c.slot(string(e))
	case Literal:
		n.kind, n.lit = isLiteral, e
	case *Call:
		n.kind = isCall
		c.call(n, e, kept)
	case *Bind:
		n = c.pattern(e.Expr, kept || c.used[e.Name])
		if n.slot != none {
			c.fault(0, ErrForm, "%s has two names", e)
		}
		n.slot, n.expr = c.slot(e.Name), e
	case Or:
		n.kind = isOr
		c.alternatives(n, e, kept)
	case Rest:
		c.fault(0, ErrForm, "%s is not the last argument of an op", e)
	default:
		c.fault(0, ErrForm, "%v in a pattern", e)
	}
	return n
}

func (c *compiler) call(n *node, e *Call, kept bool) {
	op, ok := c.vocab.Operator(e.Op)
	if !ok {
		c.fault(e.Pos, ErrUnknownOp, "%s", e.Op)
	}
	n.op, n.output = op, e.Output
	args := e.Args
	if len(args) > 0 {
		if r, isRest := args[len(args)-1].(Rest); isRest {
			n.hasRest = true
			args = args[:len(args)-1]
			if r != "" {
				n.rest = c.rest(string(r))
			}
		}
	}
	if ok {
		c.arity(e, op, len(args), n.hasRest)
	}
	for _, a := range args {
		n.args = append(n.args, c.pattern(a, kept))
	}
	if op.Commutes {
		n.order = searchOrder(n.args)
	}
}

func (c *compiler) arity(e *Call, op Operator, fixed int, rest bool) {
	tooMany := op.MaxInputs >= 0 && fixed > op.MaxInputs
	if tooMany || !rest && fixed < op.MinInputs {
		c.fault(e.Pos, ErrArity, "%s has %d, the op %s", e, fixed, inputsText(op))
	}
}

func inputsText(op Operator) string {
	switch {
	case op.MaxInputs < 0:
		return fmt.Sprintf("%d or more", op.MinInputs)
	case op.MaxInputs == op.MinInputs:
		return fmt.Sprint(op.MinInputs)
	}
	return fmt.Sprintf("%d to %d", op.MinInputs, op.MaxInputs)
}

// searchOrder sorts arguments by strictness: ops and literals, alternatives, names, then those
// that match anything.
func searchOrder(args []*node) []int {
	order := make([]int, len(args))
	for i := range order {
		order[i] = i
	}
	rank := func(i int) int {
		switch args[i].kind {
		case isCall, isLiteral:
			return 0
		case isOr:
			return 1
		case isName:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(order, func(i, j int) int { return rank(i) - rank(j) })
	return order
}

// alternatives compiles an or. All alternatives must bind the same names.
func (c *compiler) alternatives(n *node, e Or, kept bool) {
	if len(e) == 0 {
		c.fault(0, ErrForm, "an or without alternatives")
		return
	}
	want := bound(e[0])
	for _, alt := range e {
		if got := bound(alt); !slices.Equal(got, want) {
			c.fault(0, ErrForm, "the alternatives %s and %s do not bind the same names", e[0], alt)
		}
		n.args = append(n.args, c.pattern(alt, kept))
	}
}

// bound returns the sorted names that an expression binds; those of rests have the prefix "...".
func bound(e Expr) []string {
	var names []string
	walk(e, func(e Expr) {
		switch e := e.(type) {
		case Name:
			names = append(names, string(e))
		case *Bind:
			names = append(names, e.Name)
		case Rest:
			if e != "" {
				names = append(names, e.String())
			}
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *compiler) slot(name string) int { return place(&c.slots, name) }
func (c *compiler) rest(name string) int { return place(&c.rests, name) }

// place returns the index of a name in the list, which it extends if necessary.
func place(list *[]string, name string) int {
	if i := slices.Index(*list, name); i >= 0 {
		return i
	}
	*list = append(*list, name)
	return len(*list) - 1
}

// clashes reports names of both a variable and a rest.
func (c *compiler) clashes() {
	for _, name := range c.slots {
		if slices.Contains(c.rests, name) {
			c.fault(0, ErrForm, "%s is a variable and a rest", name)
		}
	}
}

// guards compiles guards.
func (c *compiler) guards(list []Guard) []guard {
	var guards []guard
	for _, g := range list {
		f, ok := c.opts.guards[g.Func]
		if !ok {
			c.fault(g.Pos, ErrUnknownFunc, "guard %s", g.Func)
		}
		compiled := guard{fn: f, not: g.Not, text: g}
		for _, name := range g.Args {
			switch {
			case slices.Contains(c.slots, name):
				compiled.args = append(compiled.args, ref{slot: c.slot(name)})
			case slices.Contains(c.rests, name):
				compiled.args = append(compiled.args, ref{slot: c.rest(name), rest: true})
			default:
				c.fault(g.Pos, ErrUnbound, "%s in the guard %s", name, g)
			}
		}
		guards = append(guards, compiled)
	}
	return guards
}

// replacement compiles an expression of a replacement.
func (c *compiler) replacement(e Expr) *node {
	n := &node{slot: none, rest: none, expr: e}
	switch e := e.(type) {
	case Name:
		n.kind = isName
		if n.slot = slices.Index(c.slots, string(e)); n.slot < 0 {
			c.fault(0, ErrUnbound, "%s in the replacement", e)
		}
	case Literal:
		n.kind, n.lit = isLiteral, e
	case *Call:
		n.kind = isCall
		c.construction(n, e)
	case nil:
		c.fault(0, ErrForm, "no replacement")
	default:
		c.fault(0, ErrForm, "%s in a replacement", e)
	}
	return n
}

func (c *compiler) construction(n *node, e *Call) {
	n.output = e.Output
	if n.build = c.opts.builders[e.Op]; n.build == nil {
		op, ok := c.vocab.Operator(e.Op)
		switch {
		case !ok:
			c.fault(e.Pos, ErrUnknownOp, "%s", e.Op)
		case op.Make == nil:
			c.fault(e.Pos, ErrForm, "the op %s can be matched, but not made", e.Op)
		}
		n.op = op
	}
	fixed, rest := 0, false
	for _, a := range e.Args {
		r, isRest := a.(Rest)
		if !isRest {
			fixed++
			n.args = append(n.args, c.replacement(a))
			continue
		}
		rest = true
		slot := slices.Index(c.rests, string(r))
		if slot < 0 {
			c.fault(e.Pos, ErrUnbound, "%s in the replacement", r)
		}
		n.splice = append(n.splice, splice{len(n.args), slot})
	}
	if n.build == nil && n.op.Make != nil {
		c.arity(e, n.op, fixed, rest)
	}
}

// same reports whether two expressions are the same computation, up to the order of the
// arguments of commutative ops.
func (c *compiler) same(a, b Expr) bool { return c.canonical(a) == c.canonical(b) }

// canonical returns the text of an expression with sorted arguments of commutative ops.
func (c *compiler) canonical(e Expr) string {
	switch e := e.(type) {
	case *Bind:
		return c.canonical(e.Expr)
	case *Call:
		args := make([]string, len(e.Args))
		for i, a := range e.Args {
			args[i] = c.canonical(a)
		}
		if op, ok := c.vocab.Operator(e.Op); ok && op.Commutes {
			slices.Sort(args)
		}
		return fmt.Sprintf("(%s.%d %q)", e.Op, e.Output, args)
	case nil:
		return ""
	}
	return e.String()
}

// A ref is an argument of a guard.
type ref struct {
	slot int
	rest bool
}

type guard struct {
	fn   Predicate
	args []ref
	not  bool
	text Guard
}

// variables returns the variables bound to the arguments of a guard.
func (g *guard) variables(b *bindings) []*fgraph.Variable {
	args := make([]*fgraph.Variable, 0, len(g.args))
	for _, r := range g.args {
		if r.rest {
			args = append(args, b.rests[r.slot]...)
		} else {
			args = append(args, b.vars[r.slot])
		}
	}
	return args
}
