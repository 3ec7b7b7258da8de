package egraph

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	name   string
	reg    int
	bind   int // the node of the pattern that is bound to the name, or -1
	param  bool
	node   bool
	number int // the slot of the node that shows which number the class is, or -1
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
// meanwhile. For each symbol that associates, rules are added that flatten it and drop its unit.
func Compile(l *Language, list []pattern.Rule) (*Rules, error) {
	r := &Rules{lang: l, numbers: map[any]int{}, roots: make([]*program, len(l.sigs)), steps: make([]uint32, len(l.sigs))}
	var faults *multierror.Error
	for _, rule := range slices.Concat(list, l.flattening()) {
		info := ruleInfo{name: rule.Name, doc: rule.Doc}
		for _, rw := range directions(rule.Cases) {
			// The matcher knows no alternatives: each is a case of its own, and they share their
			// beginnings in the program.
			ins, err := alternatives(rw.In.Expr)
			if err != nil {
				faults = multierror.Append(faults, fmt.Errorf("%w: %s: %s: %w", ErrRule, rule.Name, rw, err))
				continue
			}
			for _, in := range ins {
				if err := r.add(len(r.rules), in, rw); err != nil {
					faults = multierror.Append(faults, fmt.Errorf("%w: %s: %s: %w", ErrRule, rule.Name, rw, err))
					continue
				}
				info.cases = append(info.cases, len(r.cases)-1)
			}
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

// acyclic is a guard of flattening: the class of a node is not among its inputs. Otherwise b = (mul
// a (inv a) b) would be replaced in itself for ever.
const acyclic = ".acyclic"

// flattening returns the rules that ops which associate bring along.
func (l *Language) flattening() []pattern.Rule {
	var list []pattern.Rule
	for _, s := range l.sigs {
		if !s.Associates {
			continue
		}
		call := func(args ...pattern.Expr) pattern.Expr { return pattern.NewCall(s.Name, args...) }
		xs, ys := pattern.Rest("xs"), pattern.Rest("ys")
		list = append(list, pattern.Rule{
			Name: "flatten_" + s.Name, Doc: "An op that associates can be replaced by its inputs among those of its own kind.",
			Cases: []pattern.Rewrite{{
				In:  pattern.Pattern{Expr: call(&pattern.Bind{Name: "x", Expr: call(xs)}, ys), Guards: []pattern.Guard{{Func: acyclic, Args: []string{"x"}}}},
				Out: call(xs, ys),
			}},
		})
		if s.Unit == NoUnit {
			continue
		}
		list = append(list, pattern.Rule{
			Name: "unit_" + s.Name, Doc: "The unit of an op that associates can be left out.",
			Cases: []pattern.Rewrite{{In: pattern.Pattern{Expr: call(pattern.NewCall("#"+strconv.Itoa(int(s.Unit))), ys)}, Out: call(ys)}},
		})
	}
	return list
}

// maxAlternatives bounds the patterns that "or" expands to.
const maxAlternatives = 256

// alternatives expands "or".
func alternatives(e pattern.Expr) ([]pattern.Expr, error) {
	switch e := e.(type) {
	case pattern.Or:
		var list []pattern.Expr
		for _, alt := range e {
			more, err := alternatives(alt)
			if list = append(list, more...); err != nil || len(list) > maxAlternatives {
				return nil, tooMany(err)
			}
		}
		return list, nil
	case *pattern.Bind:
		list, err := alternatives(e.Expr)
		for i, x := range list {
			list[i] = &pattern.Bind{Name: e.Name, Expr: x}
		}
		return list, err
	case *pattern.Call:
		list := []*pattern.Call{{Op: e.Op, Output: e.Output, Pos: e.Pos}}
		for _, arg := range e.Args {
			more, err := alternatives(arg)
			if err != nil || len(list)*len(more) > maxAlternatives {
				return nil, tooMany(err)
			}
			if len(more) == 1 { // copying the arguments for each of them would be quadratic
				for _, c := range list {
					c.Args = append(c.Args, more[0])
				}
				continue
			}
			next := make([]*pattern.Call, 0, len(list)*len(more))
			for _, c := range list {
				for _, x := range more {
					next = append(next, &pattern.Call{Op: c.Op, Output: c.Output, Pos: c.Pos, Args: append(slices.Clone(c.Args), x)})
				}
			}
			list = next
		}
		out := make([]pattern.Expr, len(list))
		for i, c := range list {
			out[i] = c
		}
		return out, nil
	}
	return []pattern.Expr{e}, nil
}

func tooMany(err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("more than %d alternatives", maxAlternatives)
}

// add compiles one rewrite.
func (r *Rules) add(rule int, in pattern.Expr, rw pattern.Rewrite) error {
	c := &compiler{r: r, info: caseInfo{rule: rule, in: in, out: rw.Out, text: pattern.Rewrite{In: pattern.Pattern{Expr: in, Guards: rw.In.Guards}, Out: rw.Out}.String(), binds: 1, nodes: []shape{{rest: -1}}}}
	c.regs = 1
	sym, err := c.compile(in, rw.In.Guards)
	if err == nil {
		err = c.formulas(rw.Out)
	}
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

// leafOp returns the op of a call without arguments and parameters. "#7" is op 7.
func (r *Rules) leafOp(e *pattern.Call) (Op, bool) {
	if number, ok := strings.CutPrefix(e.Op, "#"); ok {
		n, err := strconv.Atoi(number)
		return Op(n), err == nil
	}
	if op, ok := r.lang.aliases[e.Op]; ok {
		return op, len(e.Args) == 0 && r.lang.sigs[r.lang.ops[op].sym].Inputs == [2]int{0, 0}
	}
	s, ok := r.lang.names[e.Op]
	if !ok || len(e.Args) > 0 || r.lang.sigs[s].Inputs != [2]int{0, 0} {
		return 0, false
	}
	return r.lang.Op(s, nil), true
}

// opOf resolves the name of an op in a rule: a symbol, an alias of an op with parameters, or a
// symbol with parameters to capture or compute, which are returned.
func (r *Rules) opOf(name string) (sym Symbol, op Op, param string, err error) {
	if op, ok := r.lang.aliases[name]; ok {
		return r.lang.ops[op].sym, op, "", nil
	}
	if s, ok := r.lang.names[name]; ok {
		return s, noOp, "", nil
	}
	base, param, ok := strings.Cut(strings.TrimSuffix(name, "}"), "{")
	if s, known := r.lang.names[base]; ok && known {
		return s, noOp, param, nil
	}
	return 0, noOp, "", fmt.Errorf("the language has no op %q", name)
}
