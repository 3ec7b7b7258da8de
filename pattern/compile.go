package pattern

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"
)

// Mistakes in rules that are syntactically correct.
var (
	// ErrUnknownOp means that the vocabulary does not have an op.
	ErrUnknownOp = errors.New("unknown op")
	// ErrArity means that an op can't have that number of arguments.
	ErrArity = errors.New("wrong number of arguments")
	// ErrUnbound means that the pattern does not bind a name.
	ErrUnbound = errors.New("unbound name")
	// ErrUnknownFunc means that neither the vocabulary nor an option defines a function.
	ErrUnknownFunc = errors.New("unknown function")
	// ErrForm means that an expression is not allowed in its place.
	ErrForm = errors.New("misplaced expression")
	// ErrReserved means that the vocabulary has an op whose name means something else in a pattern.
	ErrReserved = errors.New("reserved name")
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
	isCalc
	isEach
	isElement
)

const none = -1

// noOp is the operator of nodes that have none: most are names.
var noOp Operator

// A node is a part of a compiled pattern or replacement.
type node struct {
	kind kind
	slot int // slot of the bound variable, or none
	expr Expr

	lit  Literal // isLiteral
	like int     // isLiteral in a replacement: slot of the variable whose type it gets, or none

	calc *calculation // isCalc

	op      *Operator // isCall; otherwise noOp
	fn      *function // isCall in a replacement: makes the variable instead of op, or the parameters
	param   int       // isCall: slot of the captured parameters, or none
	output  int
	args    []*node // isCall: without the rest; isOr: the alternatives
	order   []int   // isCall: the order in which the args of a commutative op choose inputs; isEach: the slots of rests; isCalc: of names
	hasRest bool    // isCall: takes any number of further inputs
	rest    int     // slot of the rest, or none; isElement: of that whose element it is
	splice  []splice
	kept    bool // the replacement uses the result, so it may have other clients
}

type compiler struct {
	vocab    Vocabulary
	text     string
	backward bool // it compiles an equation from right to left
	opts     *options
	slots    []string        // names of single variables
	rests    []string        // names of rests
	params   []string        // names of captured parameters
	used     map[string]bool // names in the replacement
	each     bool            // inside of an Each: the name of a rest is that of an element
	faults   []error
}

func (c *compiler) fault(pos int, err error, format string, args ...any) {
	at := ""
	if pos > 0 {
		at = fmt.Sprintf("column %d: ", pos)
	}
	if c.backward {
		at += "from right to left: "
	}
	c.faults = append(c.faults, fmt.Errorf("pattern %q: %s%w: %s", fileio.Excerpt(c.text, pos-1), at, err, fmt.Sprintf(format, fileio.Excerpts(args)...)))
}

// pattern compiles an expression of a pattern.
func (c *compiler) pattern(e Expr, kept bool) *node {
	n := &node{kind: isAny, op: &noOp, slot: none, rest: none, param: none, expr: e, kept: kept}
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
		// A part that the replacement uses stays in the graph, and so does everything below it.
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
	op, inBraces, ok := c.operator(e.Op)
	switch {
	case !ok:
		c.fault(e.Pos, ErrUnknownOp, "%s%s", e.Op, c.hint(e.Op))
	case op.Match == nil:
		c.fault(e.Pos, ErrUnknownOp, "%s: its operator has no Match", e.Op)
	case inBraces != "" && !isIdentifier(inBraces):
		c.fault(e.Pos, ErrForm, "%s in a pattern: a name for the parameters is expected", e.Op)
	case inBraces != "":
		n.param = place(&c.params, inBraces)
	}
	n.op, n.output = &op, e.Output
	args := e.Args
	if len(args) > 0 {
		// A rest takes what the other arguments leave, so it must be known where these end: in
		// commutative ops anything that is not chosen, in others what is behind them.
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
		// The order is found here, not at each match.
		n.order = searchOrder(n.args)
	}
}

// operator returns the operator of an op. If it is a family, inBraces is what is written for the
// parameters.
func (c *compiler) operator(name string) (op Operator, inBraces string, ok bool) {
	// The whole name comes first: "sum{axis=0}" is an op with parameters if the vocabulary says so.
	// Otherwise the braces hold the name of captured parameters.
	if op, ok = c.vocab.Operator(name); ok {
		return op, "", true
	}
	base, inBraces, found := strings.Cut(name, "{")
	families, can := c.vocab.(Families)
	if found && can {
		op, ok = families.Family(base)
	}
	if !ok || op.Param == nil {
		return Operator{}, "", false // whatever a vocabulary returns beside false
	}
	return op, strings.TrimSuffix(inBraces, "}"), true
}

// hint returns what the name of an op may have been meant to be.
func (c *compiler) hint(op string) string {
	if h, ok := c.vocab.(Hinter); ok {
		return h.Hint(op)
	}
	return ""
}

func isIdentifier(s string) bool {
	p := parser{text: s}
	return p.name() == s && s != "" && s != "_"
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
	// If an alternative left a name unbound, the replacement would have nothing to put in its
	// place.
	want := c.bound(e[0])
	for _, alt := range e {
		if got := c.bound(alt); !slices.Equal(got, want) {
			c.fault(0, ErrForm, "the alternatives %s and %s do not bind the same names", e[0], alt)
		}
		n.args = append(n.args, c.pattern(alt, kept))
	}
}

// bound returns the sorted names that an expression binds; those of rests have the prefix "...",
// those of parameters are in braces.
func (c *compiler) bound(e Expr) []string {
	var names []string
	Walk(e, func(e Expr) {
		switch e := e.(type) {
		case Name:
			names = append(names, string(e))
		case *Bind:
			names = append(names, e.Name)
		case *Call:
			if _, inBraces, ok := c.operator(e.Op); ok && inBraces != "" {
				names = append(names, "{"+inBraces+"}")
			}
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

// clashes reports names that are bound to several kinds of things.
func (c *compiler) clashes() {
	for _, name := range c.slots {
		if slices.Contains(c.rests, name) {
			c.fault(0, ErrForm, "%s is a variable and a rest", name)
		}
	}
	for _, name := range c.params {
		if slices.Contains(c.slots, name) || slices.Contains(c.rests, name) {
			c.fault(0, ErrForm, "%s is a variable and the parameters of an op", name)
		}
	}
}

// guards compiles guards.
func (c *compiler) guards(list []Guard) []guard {
	var guards []guard
	for _, g := range list {
		f, ok := c.opts.function(g.Func)
		if !ok || f.Holds == nil {
			c.fault(g.Pos, ErrUnknownFunc, "guard %s%s", g.Func, c.opts.functionHint(g.Func))
		}
		args := c.refs(g.Pos, g.Args, "guard "+g.String())
		c.usage(g, f, args)
		guards = append(guards, guard{fn: f.Holds, depth: f.Depth, args: args, not: g.Not, text: g})
	}
	return guards
}

// usage compares the arguments of a call with how the function wants to be called.
func (c *compiler) usage(g Guard, f Function, args []ref) {
	_, list, ok := strings.Cut(strings.TrimSuffix(f.Usage, ")"), "(")
	if !ok || len(args) < len(g.Args) {
		return
	}
	want := strings.Split(list, ",")
	if len(args) < len(want) {
		c.fault(g.Pos, ErrArity, "%s has %d arguments, the function is %s", g, len(args), f.Usage)
		return
	}
	for i, a := range args {
		// The last argument of a usage may be repeated.
		parameters := strings.Contains(want[min(i, len(want)-1)], "{")
		if parameters != (a.kind == param) {
			c.fault(g.Pos, ErrForm, "%s in %s: the function is %s", g.Args[i], g, f.Usage)
		}
	}
}

// refs looks up names that the pattern binds.
func (c *compiler) refs(pos int, names []string, where string) []ref {
	refs := make([]ref, 0, len(names))
	for _, name := range names {
		if i := slices.Index(c.slots, name); i >= 0 {
			refs = append(refs, ref{variable, i})
		} else if i := slices.Index(c.rests, name); i >= 0 {
			refs = append(refs, ref{rest, i})
		} else if i := slices.Index(c.params, name); i >= 0 {
			refs = append(refs, ref{param, i})
		} else {
			c.fault(pos, ErrUnbound, "%s in the %s", name, where)
		}
	}
	return refs
}

// same reports whether two expressions are the same computation, up to the order of the
// arguments of commutative ops.
func (c *compiler) same(a, b Expr) bool {
	x, isCall := a.(*Call)
	if y, ok := b.(*Call); ok && isCall && x.Op != y.Op {
		return false // as in most rules
	}
	numbers := make(map[string]int)
	return c.number(a, numbers) == c.number(b, numbers)
}

// number returns a number that expressions share if and only if they are the same computation.
func (c *compiler) number(e Expr, numbers map[string]int) int {
	var key string
	switch e := e.(type) {
	case nil:
	case *Bind:
		return c.number(e.Expr, numbers)
	case *Call:
		// The key holds the numbers of the arguments, not their keys: keys within keys would make
		// the work quadratic in the depth, and exponential if they were quoted.
		args := lists.Map(e.Args, func(a Expr) int { return c.number(a, numbers) })
		if op, _, ok := c.operator(e.Op); ok && op.Commutes {
			slices.Sort(args)
		}
		key = fmt.Sprintf("(%q.%d %v", e.Op, e.Output, args)
	default:
		key = e.String()
	}
	n, ok := numbers[key]
	if !ok {
		n = len(numbers)
		numbers[key] = n
	}
	return n
}

type refKind uint8

const (
	variable refKind = iota
	rest
	param
)

// A ref is an argument of a function.
type ref struct {
	kind refKind
	slot int
}

type guard struct {
	fn    func(Args) bool
	depth int
	args  []ref
	not   bool
	text  Guard
}

// args appends the arguments of a function to a.
func (s *search) args(refs []ref, a Args) Args {
	a.Context, a.Root = s.c, s.root
	for _, r := range refs {
		switch r.kind {
		case variable:
			a.Vars = append(a.Vars, s.b.vars[r.slot])
		case rest:
			a.Vars = append(a.Vars, s.b.rests[r.slot]...)
		case param:
			a.Params = append(a.Params, s.b.params[r.slot])
		}
	}
	return a
}
