package egraph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/pattern"
)

// ErrRule means that a rule can't be compiled.
var ErrRule = errors.New("bad rule")

// Rules are compiled rules. They are immutable.
type Rules struct {
	lang     *Language
	rules    []ruleInfo
	cases    []caseInfo
	roots    []*program        // by symbol
	bare     []int             // cases whose pattern is a name
	numbers  map[any]int       // of leaves, literals and checks, while rules are compiled
	leaves   []Op              // numbers in patterns
	literals []pattern.Literal // the same, with types
	checks   []check
	levels   int
	logs     [][]bool // by log and symbol: which of them patterns need
	steps    []uint32
	facts    bool // a guard asks about the root of a pattern
	regs     int
	ops      int // that the language had then
}

type ruleInfo struct {
	name, doc string
	cases     []int
}

// caseInfo is one rewrite of a rule.
type caseInfo struct {
	rule       int
	text       string
	in         pattern.Expr
	out        pattern.Expr
	slots      []slot // names of the pattern
	rests      []rest
	binds      int     // nodes of the pattern, the root among them
	nodes      []shape // by bind
	picks      int
	log        int   // which nodes can be roots of new matches, see delta
	leaves     []int // numbers of the pattern
	asked      []int // registers of classes whose facts count
	askedRests []int
	make       template
	bare       bool // the pattern is a name
}

// slot is a name of a pattern: a class, or an op whose parameters are captured. Slots without a
// name are nodes that show that a class is a number.
type slot struct {
	name  string
	reg   int
	bind  int // the node of the pattern that is bound to the name, or -1
	param bool
	node  bool
}

// slot returns the slot of the name of a class, or -1.
func (c *caseInfo) slot(name string) int {
	return slices.IndexFunc(c.slots, func(s slot) bool { return s.name == name && !s.param })
}

// shape is a node of a pattern, as explanations need it.
type shape struct {
	args []shapeArg
	rest int // or -1
}

// shapeArg is an argument: a node, a slot, a leaf, or anything.
type shapeArg struct {
	node int // 0 if it is none
	slot int // or -1
	leaf Op  // or noOp
}

// rest is "...name": the inputs of a node that are not picked, or those from a place on.
type rest struct {
	name  string
	bind  int
	picks []int // of the same node; nil if from counts
	from  int   // -1 if picks count
	depth int   // of the inputs
}

// Compile compiles rules. They may use ops that the language declares, and add ops with parameters
// to it. An equation is used in both directions. The language must not be used concurrently
// meanwhile.
func Compile(l *Language, list []pattern.Rule) (*Rules, error) {
	r := &Rules{lang: l, numbers: map[any]int{}, roots: make([]*program, len(l.sigs)), steps: make([]uint32, len(l.sigs))}
	var faults *multierror.Error
	for _, rule := range list {
		info := ruleInfo{name: rule.Name, doc: rule.Doc}
		for _, rw := range directions(rule.Cases) {
			if err := r.add(len(r.rules), rw); err != nil {
				faults = multierror.Append(faults, fmt.Errorf("%w: %s: %s: %w", ErrRule, rule.Name, rw, err))
				continue
			}
			info.cases = append(info.cases, len(r.cases)-1)
		}
		r.rules = append(r.rules, info)
	}
	for _, p := range r.roots {
		if p != nil {
			p.finish()
		}
	}
	r.ops, r.numbers = len(l.ops), nil
	r.want()
	return r, faults.ErrorOrNil()
}

// numbered returns the index of x in a list of what rules share, to which it is added if the key is
// new. Scanning the lists instead would make compiling quadratic in the number of rules.
func numbered[T any](numbers map[any]int, key any, list *[]T, x T) int {
	i, ok := numbers[key]
	if !ok {
		i = len(*list)
		numbers[key] = i
		*list = append(*list, x)
	}
	return i
}

// directions returns both directions of equations.
func directions(cases []pattern.Rewrite) (list []pattern.Rewrite) {
	for _, rw := range cases {
		list = append(list, rw.Directions()...)
	}
	return list
}

// want finds out which logs the patterns need; see delta.
func (r *Rules) want() {
	r.logs = make([][]bool, r.levels+2)
	for i := range r.logs {
		r.logs[i] = make([]bool, len(r.lang.sigs))
	}
	for sym, p := range r.roots {
		if p != nil {
			for _, c := range p.cases {
				r.logs[r.cases[c].log][sym] = true
			}
		}
	}
}

// add compiles one rewrite.
func (r *Rules) add(rule int, rw pattern.Rewrite) error {
	c := &compiler{r: r, info: caseInfo{rule: rule, in: rw.In.Expr, out: rw.Out, text: rw.String(), binds: 1, nodes: []shape{{rest: -1}}}}
	c.regs = 1
	sym, err := c.compile(rw.In.Expr, rw.In.Guards)
	if err == nil {
		c.info.make, err = c.template(rw.Out)
	}
	if err != nil {
		return err
	}
	c.heed()
	id := len(r.cases)
	r.cases = append(r.cases, c.info)
	r.regs = max(r.regs, c.regs)
	r.levels = max(r.levels, c.info.log-touchLog)
	if c.info.bare {
		r.bare = append(r.bare, id)
		return nil
	}
	for parent, mask := range c.steps {
		r.steps[parent] |= mask
	}
	if r.roots[sym] == nil {
		r.roots[sym] = &program{}
	}
	r.roots[sym].add(append(c.code, instr{code: opYield, arg: int32(id)}))
	return nil
}

// leafOp returns the op of a call without arguments and parameters.
func (r *Rules) leafOp(e *pattern.Call) (Op, bool) {
	s, ok := r.lang.names[e.Op]
	if !ok || len(e.Args) > 0 || r.lang.sigs[s].Inputs != [2]int{0, 0} {
		return 0, false
	}
	return r.lang.Intern(s, nil), true
}

// symbolOf resolves the name of an op in a rule: a symbol, with the name of the parameters to capture
// or to take, if there is one.
func (r *Rules) symbolOf(name string) (sym Symbol, param string, err error) {
	if s, ok := r.lang.names[name]; ok {
		return s, "", nil
	}
	base, param, ok := strings.Cut(strings.TrimSuffix(name, "}"), "{")
	if s, known := r.lang.names[base]; ok && known {
		return s, param, nil
	}
	return 0, "", fmt.Errorf("the language has no op %q", name)
}
