package saturate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// ErrRule means that a rule can't be used in saturation.
var ErrRule = errors.New("not a rule for saturation")

// Check reports whether a rule is one for saturation: it is text, see package pattern, and inserts
// no op that destroys an input. Otherwise the error says why not. [Pass.Prepare] finds what else
// can be wrong, and what is wrong with a rule that has not been made yet (rewrite.Later).
func Check(r rewrite.NodeRewriter) error {
	if !rewrite.Made(r) && rewrite.Outline(r).Reason == "" {
		return nil
	}
	if _, err := textOf(r); err != nil {
		return fmt.Errorf("%w: %w", ErrRule, err)
	}
	return nil
}

// program is what the rules of a pass are compiled to. It is shared by all runs.
type program struct {
	lang     *egraph.Language
	rules    *egraph.Rules
	symbols  symbols
	captures []capture
	forms    []*form
	vocab    pattern.Vocabulary // nil without rules
	coster   Coster
	fuser    Fuser
	numberer pattern.Numberer
	ranker   Ranker
	bounder  Bounder
	opaque   egraph.Symbol // an op that no rule names
	constant egraph.Symbol
	leaf     egraph.Symbol // any other variable without inputs
	output   egraph.Symbol
}

// capture is a place in a pattern with a family of ops.
type capture struct {
	operator pattern.Operator
	param    string // the name of the parameters, if they have one
}

// form is one of the ways to read a case without alternatives.
type form struct {
	of     pattern.Case
	vars   []string
	rests  []string
	params []string
	root   []string // names of the root itself
	used   []string // names that the replacement uses
	guards []int    // those that need parameters
	plan   atomic.Pointer[plan]
}

// plan says where a match has what a form binds. It is the same in all matches of the form.
type plan struct {
	vars, rests []int // slots
	isRoot      []bool
	captures    []captured
}

type captured struct{ slot, capture, param int }

// newProgram compiles rules.
func newProgram(list []rewrite.NodeRewriter) (*program, error) {
	p := &program{lang: egraph.NewLanguage(), symbols: symbols{byName: make(map[string]*symbol)}}
	var faults *multierror.Error
	fault := func(name string, err error) {
		faults = multierror.Append(faults, fmt.Errorf("%w: %s: %w", ErrRule, name, err))
	}
	subs := make([]*pattern.Substitution, len(list))
	for i, r := range list {
		s, err := textOf(r)
		if err == nil {
			s, err = forClasses(s)
		}
		if err == nil {
			err = p.collect(s)
		}
		if subs[i] = s; err != nil {
			fault(rewrite.Describe(r).Name, err)
		}
	}
	if err := faults.ErrorOrNil(); err != nil {
		return nil, err
	}
	// Symbols are declared after all rules were looked at: whether an op has a symbol of its own,
	// and in which order families are asked, depends on all of them.
	if err := p.declare(); err != nil {
		return nil, err
	}
	var rules []pattern.Rule
	for i, s := range subs {
		d := rewrite.Describe(list[i])
		rule := pattern.Rule{Name: d.Name, Doc: d.Doc}
		for _, c := range s.Cases() {
			cases, err := p.rewrites(s.Vocabulary(), c)
			if err != nil {
				fault(d.Name, err)
			}
			rule.Cases = append(rule.Cases, cases...)
		}
		rules = append(rules, rule)
	}
	if err := faults.ErrorOrNil(); err != nil {
		return nil, err
	}
	var err error
	p.rules, err = egraph.Compile(p.lang, rules)
	return p, err
}

// textOf returns the rule that a rewriter is.
func textOf(r rewrite.NodeRewriter) (*pattern.Substitution, error) {
	s, ok := rewrite.Undescribed(r).(*pattern.Substitution)
	if !ok {
		return nil, errors.New("it is a Go function, and only rules that are text can be read in both ways")
	}
	if s.Describe().Destroys {
		return nil, errors.New("it inserts an op that destroys an input")
	}
	return s, nil
}

// forClasses returns a rule with the functions that its vocabulary has for classes.
func forClasses(s *pattern.Substitution) (*pattern.Substitution, error) {
	f, ok := s.Vocabulary().(ClassFunctions)
	if !ok {
		return s, nil
	}
	// Guards that ask who reads a variable have no answer in a class, whose members are not in the
	// graph. A vocabulary may have others of the same name that do without.
	var list []pattern.Function
	for _, c := range s.Cases() {
		for _, g := range c.Rewrite().In.Guards {
			for _, own := range f.ClassFunctions() {
				if own.Name == g.Func {
					list = append(list, own)
				}
			}
		}
	}
	if len(list) == 0 {
		return s, nil
	}
	return s.Configured(pattern.With(list...))
}

// collect notes the ops and the vocabulary of a rule.
func (p *program) collect(s *pattern.Substitution) error {
	if p.vocab == nil {
		p.vocab = s.Vocabulary()
		p.coster, _ = p.vocab.(Coster)
		p.fuser, _ = p.vocab.(Fuser)
		p.numberer, _ = p.vocab.(pattern.Numberer)
		p.ranker, _ = p.vocab.(Ranker)
		p.bounder, _ = p.vocab.(Bounder)
	}
	for _, c := range s.Cases() {
		if err := p.symbols.add(s.Vocabulary(), c.Rewrite().In.Expr); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) declare() error {
	err := p.symbols.declare(p.lang)
	for _, s := range []struct {
		name string
		sym  *egraph.Symbol
		most int
	}{{".op", &p.opaque, -1}, {".constant", &p.constant, 0}, {".leaf", &p.leaf, 0}} {
		if err == nil {
			*s.sym, err = p.lang.Declare(egraph.Signature{Name: s.name, Inputs: [2]int{0, s.most}})
		}
	}
	p.output, _ = p.lang.Symbol(".output")
	p.lang.SetTypes(egraph.Types{
		Equal: func(g *egraph.Graph, c egraph.Class, l pattern.Literal) (egraph.Node, bool) {
			return g.Analysis().(*bridge).equal(l, c)
		},
		Witness: func(g *egraph.Graph, c egraph.Class) egraph.Node { return g.Analysis().(*bridge).shown(c) },
		Built:   func(g *egraph.Graph) *egraph.Built { return g.Analysis().(*bridge).last },
	})
	return err
}

// rewrites returns a case as rules of package egraph have it.
func (p *program) rewrites(v pattern.Vocabulary, c pattern.Case) ([]pattern.Rewrite, error) {
	in := c.Rewrite().In
	exprs, err := p.expand(v, in.Expr)
	if err != nil {
		return nil, err
	}
	var list []pattern.Rewrite
	guards, left := p.guards(c, in.Guards)
	// Package egraph knows neither alternatives nor families, so a case becomes a rule for each way
	// to read it. The replacement is not a pattern there, but a function: it calls the vocabulary,
	// which makes applies with types, as the same rule does outside of saturation.
	for _, e := range exprs {
		f := &form{of: c, guards: left}
		f.vars, f.rests, f.params = c.Names()
		f.used = namesIn(c.Rewrite().Out)
		for b, ok := e.(*pattern.Bind); ok; b, ok = b.Expr.(*pattern.Bind) {
			f.root = append(f.root, b.Name)
		}
		name := ".make" + strconv.Itoa(len(p.forms))
		p.forms = append(p.forms, f)
		p.lang.SetMaker(name, func(g *egraph.Graph, m *egraph.Match) (egraph.Node, bool) {
			return g.Analysis().(*bridge).replace(f, m)
		})
		list = append(list, pattern.Rewrite{
			In:  pattern.Pattern{Expr: e, Guards: guards},
			Out: pattern.NewCall(name),
		})
	}
	return list, nil
}

// namesIn returns the names in an expression.
func namesIn(e pattern.Expr) []string {
	switch e := e.(type) {
	case pattern.Name:
		return []string{string(e)}
	case pattern.Each:
		return namesIn(e.Expr)
	case *pattern.Call:
		var list []string
		for _, a := range e.Args {
			list = append(list, namesIn(a)...)
		}
		return list
	}
	return nil
}

// guards makes guards of the graph of those that ask for variables. It also returns the numbers of
// the others, which ask for parameters.
func (p *program) guards(c pattern.Case, list []pattern.Guard) (guards []pattern.Guard, left []int) {
	_, _, params := c.Names()
	for i, g := range list {
		// A guard of variables can be asked while matching and cuts the search short. One of
		// parameters has to wait until the ops of a match are known.
		if slices.ContainsFunc(g.Args, func(name string) bool { return slices.Contains(params, name) }) {
			left = append(left, i)
			continue
		}
		name := fmt.Sprintf(".guard%d.%d", len(p.forms), i)
		p.lang.SetGuard(name, func(g *egraph.Graph, a egraph.Args) bool {
			return g.Analysis().(*bridge).holds(c, i, a)
		})
		guards = append(guards, pattern.Guard{Func: name, Args: g.Args})
	}
	return guards, left
}

// maxForms bounds the ways to read a pattern with alternatives and families.
const maxForms = 1024

// expand returns a pattern in all ways to choose alternatives, and ops that a family includes.
// Families name what captures their ops.
func (p *program) expand(v pattern.Vocabulary, e pattern.Expr) ([]pattern.Expr, error) {
	switch e := e.(type) {
	case *pattern.Bind:
		list, err := p.expand(v, e.Expr)
		for i, x := range list {
			list[i] = &pattern.Bind{Name: e.Name, Expr: x}
		}
		return list, err
	case pattern.Or:
		var list []pattern.Expr
		for _, alt := range e {
			more, err := p.expand(v, alt)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
		return list, nil
	case *pattern.Call:
		return p.expandCall(v, e)
	}
	return []pattern.Expr{e}, nil
}

func (p *program) expandCall(v pattern.Vocabulary, e *pattern.Call) ([]pattern.Expr, error) {
	x, err := p.symbols.resolve(v, e.Op)
	if err != nil {
		return nil, err
	}
	suffix := ""
	if x.family {
		_, param, _ := strings.Cut(strings.TrimSuffix(e.Op, "}"), "{")
		suffix = fmt.Sprintf("{.capture%d}", len(p.captures))
		p.captures = append(p.captures, capture{x.operator, param})
	}
	args := [][]pattern.Expr{nil}
	for _, a := range e.Args {
		more, err := p.expand(v, a)
		if err != nil {
			return nil, err
		}
		var next [][]pattern.Expr
		for _, before := range args {
			for _, m := range more {
				next = append(next, append(slices.Clip(before), m))
			}
		}
		// Alternatives in several arguments multiply. The bound keeps a short pattern from becoming
		// millions.
		if args = next; len(args) > maxForms {
			return nil, fmt.Errorf("more than %d ways to read a pattern", maxForms)
		}
	}
	var list []pattern.Expr
	for _, y := range p.symbols.matched(x) {
		in := &y.operator
		for _, a := range args {
			open := len(a) > 0 && isRest(a[len(a)-1])
			if n := len(a); !open && n < in.MinInputs || in.MaxInputs >= 0 && (n > in.MaxInputs && !open || n-1 > in.MaxInputs) {
				continue
			}
			list = append(list, &pattern.Call{Op: y.label() + suffix, Args: slices.Clone(a), Output: e.Output})
		}
	}
	if len(list) > maxForms {
		return nil, fmt.Errorf("more than %d ways to read a pattern", maxForms)
	}
	return list, nil
}

func isRest(e pattern.Expr) bool {
	_, ok := e.(pattern.Rest)
	return ok
}

// planOf finds out where matches have what a form binds.
func (p *program) planOf(f *form, m *egraph.Match) *plan {
	if k := f.plan.Load(); k != nil {
		return k
	}
	// Two goroutines may find the plan at once. They find the same, so the last one to store it
	// does no harm.
	k := &plan{isRoot: make([]bool, len(f.vars))}
	for i, name := range f.vars {
		k.vars = append(k.vars, m.Slot(name))
		k.isRoot[i] = slices.Contains(f.root, name)
	}
	for _, name := range f.rests {
		k.rests = append(k.rests, m.Rest(name))
	}
	for i, c := range p.captures {
		if slot := m.Slot(fmt.Sprintf(".capture%d", i)); slot >= 0 {
			k.captures = append(k.captures, captured{slot, i, slices.Index(f.params, c.param)})
		}
	}
	f.plan.Store(k)
	return k
}

// paramOf returns the parameters of an op that a family matches, if it is one of the family.
func (c *capture) paramOf(op fgraph.Op) (any, bool) {
	if !c.operator.Match(op) {
		return nil, false
	}
	return c.operator.Param(op), true
}
