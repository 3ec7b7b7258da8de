package rulefind

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// A term is an expression over leaves, with its value in each run.
type term struct {
	id     int // in the order of terms that stand for a class
	expr   pattern.Expr
	v      *fgraph.Variable
	size   int // ops
	names  uint64
	cost   float64
	values []any
}

// A pair is two terms of one class; cond says that only the values of run 0 tell so.
type pair struct {
	a, b *term
	cond bool
}

// A space is what terms are built over.
type space struct {
	*rulecheck.Ground
	domain   rulecheck.Domain
	ops      []symbol
	commutes map[string]bool // by name
	coster   saturate.Coster // may be nil
	allowed  func(*fgraph.Apply) bool
	occurs   func(pattern.Rewrite) int
	bySize   [][]*term
	classes  map[string]*term
	conds    map[string]*term
	pairs    []pair
	folded   []pattern.Rewrite // of numbers
	terms    int
	last     bool // the level is one of very many terms, which are only compared to those of levels before
	drawn    []pair
	of       int // how many pairs those drawn stand for
	rng      *rand.Rand
}

// Over more classes than maxBase a level of terms is the last one, and maxDrawn of its pairs are kept: over 45,000
// classes there are 3,200,000 terms, and 1,400,000 classes that nothing is built over.
const (
	maxBase  = 1 << 14
	maxDrawn = 1 << 16
)

// A symbol is an op of patterns. Ops of a family are numbered, and the number is its parameter until a
// rule names it.
type symbol struct {
	name string
	op   pattern.Operator
}

// maxArity bounds the inputs of ops that take any number of them: rules of two say what there is.
const maxArity = 2

// newSpace returns the terms without ops.
func newSpace(d rulecheck.Domain, g *rulecheck.Ground, o *Options) (*space, error) {
	s := &space{Ground: g, domain: d, allowed: o.Allowed, occurs: o.Occurs, classes: make(map[string]*term), conds: make(map[string]*term), commutes: make(map[string]bool), rng: rand.New(rand.NewPCG(o.Seed, 2))}
	s.coster, _ = d.Vocabulary().(saturate.Coster)
	if len(g.Leaves) > 64 {
		return nil, fmt.Errorf("rulefind: %d variables, of at most 64", len(g.Leaves))
	}
	for _, name := range o.Ops {
		list, err := symbols(d, name)
		if err != nil {
			return nil, err
		}
		s.ops = append(s.ops, list...)
		for _, op := range list {
			s.commutes[op.name] = op.op.Commutes
		}
	}
	s.bySize = [][]*term{nil}
	for i, v := range g.Leaves {
		t := &term{expr: pattern.Name(v.Name()), v: v, names: 1 << i}
		for _, run := range g.Runs {
			t.values = append(t.values, run[i])
		}
		s.add(t)
	}
	for _, l := range o.Constants {
		v, err := d.Vocabulary().Constant(l, g.Leaves[0])
		if err != nil {
			return nil, err
		}
		t := &term{expr: l, v: v}
		for range g.Runs {
			t.values = append(t.values, g.Constant(v))
		}
		s.add(t)
	}
	return s, nil
}

// symbols returns the op of a name, or those of a family.
func symbols(d rulecheck.Domain, name string) ([]symbol, error) {
	if name == "or" { // or the rules that are found would say something else
		return nil, fmt.Errorf("%w: \"or\" means alternatives in rules; a vocabulary gives such an op another one, such as \"or_\"", pattern.ErrReserved)
	}
	if op, ok := d.Vocabulary().Operator(name); ok && op.Make != nil {
		return []symbol{{name, op}}, nil
	}
	var list []symbol
	for i, op := range d.Members(name) {
		list = append(list, symbol{fmt.Sprintf("%s{#%d}", name, i), op})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: %s", pattern.ErrUnknownOp, name)
	}
	return list, nil
}

// grow adds the terms of one more op. It ends with ctx.
func (s *space) grow(ctx context.Context) {
	size := len(s.bySize)
	s.last = len(s.classes) > maxBase
	s.bySize = append(s.bySize, nil)
	for _, op := range s.ops {
		most := op.op.MaxInputs
		if most < 0 {
			most = max(op.op.MinInputs, maxArity)
		}
		least := op.op.MinInputs
		if op.op.MaxInputs < 0 && op.op.Commutes {
			least = most // a sum of one input, or none, is no op; others say by an error how many they take
		}
		for n := max(least, 1); n <= most; n++ {
			s.combine(ctx, op, make([]*term, 0, n), n, size-1)
		}
	}
}

// combine applies an op to n terms, of which it has some, with as many ops as are left.
func (s *space) combine(ctx context.Context, op symbol, args []*term, n, left int) {
	if len(args) == n {
		if left == 0 {
			s.apply(ctx, op, args)
		}
		return
	}
	for size := 0; size <= left; size++ {
		if len(args) == n-1 && size < left {
			continue
		}
		for _, t := range s.bySize[size] {
			if ctx.Err() != nil {
				return
			}
			// Of an op that commutes one order is enough.
			if k := len(args); op.op.Commutes && k > 0 && args[k-1].id > t.id {
				continue
			}
			s.combine(ctx, op, append(args, t), n, left-size)
		}
	}
}

// apply adds a term.
func (s *space) apply(ctx context.Context, op symbol, args []*term) {
	t := &term{size: 1}
	call := &pattern.Call{Op: op.name}
	vars := make([]*fgraph.Variable, len(args))
	for i, a := range args {
		vars[i] = a.v
		call.Args = append(call.Args, a.expr)
		t.size, t.names = t.size+a.size, t.names|a.names
	}
	var err error
	t.expr = call
	if t.v, err = make1(op.op, vars); err != nil || slices.Contains(vars, t.v) {
		return // the types don't fit, or there is nothing to compute
	}
	if a := t.v.Owner(); len(a.Outputs()) != 1 || fgraph.Destroys(a.Op()) || s.allowed != nil && !s.allowed(a) {
		return
	}
	if base, _, ok := strings.Cut(op.name, "{#"); ok && op.op.Param != nil {
		// Parameters that are the same, of whatever family, have one name in a rule.
		call.Op = fmt.Sprintf("%s{#%v}", base, op.op.Param(t.v.Owner().Op()))
	}
	if t.names == 0 && t.size > 1 {
		return
	}
	s.terms++
	t.values = make([]any, len(s.Runs))
	plain := slices.Equal(t.v.Owner().Inputs(), vars)
	for run := range s.Runs {
		if plain {
			in := lists.Map(args, func(a *term) any { return a.values[run] })
			if t.values[run], err = s.Compute(ctx, t.v.Owner(), in); err != nil {
				return
			}
			continue
		}
		known := make(map[*fgraph.Variable]any, len(args))
		for i, a := range args {
			known[vars[i]] = a.values[run]
		}
		if t.values[run], err = s.compute(ctx, t.v, known); err != nil {
			return
		}
	}
	t.cost = s.costOf(t.v)
	s.add(t)
}

// make1 applies an op; the constructors of some ops panic.
func make1(op pattern.Operator, vars []*fgraph.Variable) (v *fgraph.Variable, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", rulecheck.ErrUnfit, p)
		}
	}()
	return rulecheck.Apply(op, nil, vars, nil)
}

// compute computes a variable from those that are known: an op may have been made with conversions
// around it.
func (s *space) compute(ctx context.Context, v *fgraph.Variable, known map[*fgraph.Variable]any) (any, error) {
	if v.IsConstant() {
		return s.Constant(v), nil
	}
	var err error
	stop := func(v *fgraph.Variable) bool { _, ok := known[v]; return ok }
	fgraph.Walk([]*fgraph.Variable{v}, stop, func(a *fgraph.Apply) {
		in := make([]any, len(a.Inputs()))
		for i, x := range a.Inputs() {
			value, ok := known[x]
			if !ok && x.IsConstant() {
				value = s.Constant(x)
			}
			in[i] = value
		}
		if err == nil {
			known[a.Out()], err = s.Compute(ctx, a, in)
		}
	})
	return known[v], err
}

// costOf returns what a term costs, each of its applies counted once.
func (s *space) costOf(v *fgraph.Variable) (cost float64) {
	counted := make(map[*fgraph.Variable]bool)
	fgraph.Walk([]*fgraph.Variable{v}, func(v *fgraph.Variable) bool { return counted[v] }, func(a *fgraph.Apply) {
		for _, out := range a.Outputs() {
			counted[out] = true
		}
		if s.coster != nil {
			cost += s.coster.Cost(a)
		} else {
			cost++
		}
	})
	return cost
}

// add adds a term to the class of its values, as what stands for it or as a candidate.
func (s *space) add(t *term) {
	key, told := fmt.Appendf(nil, "%v", t.v.Type()), false
	var first string // of run 0, unless that is not a value
	for run, v := range t.values {
		near, ok := s.Digest(run, v)
		told = told || ok
		key = fmt.Appendf(key, " %x", near)
		if run == 0 && ok {
			first = string(key)
		}
	}
	if !told {
		return
	}
	rep := s.classes[string(key)]
	if t.size > 0 && t.names == 0 {
		// Folding computes what has no variables. Of proofs it is a part: 1 + (x + -1) is x if 1 + -1 is known to be 0.
		s.terms--
		if rep != nil && rep.size == 0 {
			s.folded = append(s.folded, pattern.Rewrite{In: pattern.Pattern{Expr: t.expr}, Out: rep.expr})
		}
		return
	}
	if rep != nil {
		t.values = nil
		s.keep(pair{a: t, b: rep})
		return
	}
	if s.last {
		return
	}
	t.id = len(s.classes)
	s.classes[string(key)] = t
	s.bySize[t.size] = append(s.bySize[t.size], t)
	if s.Guard == "" || first == "" {
		return
	}
	if rep := s.conds[first]; rep != nil {
		s.pairs = append(s.pairs, pair{a: t, b: rep, cond: true})
	} else {
		s.conds[first] = t
	}
}

// keep adds a pair. Of those of a last level each is kept with the same probability.
func (s *space) keep(p pair) {
	if !s.last {
		s.pairs = append(s.pairs, p)
		return
	}
	s.of++
	if len(s.drawn) < maxDrawn {
		s.drawn = append(s.drawn, p)
	} else if k := s.rng.IntN(s.of); k < maxDrawn {
		s.drawn[k] = p
	}
}
