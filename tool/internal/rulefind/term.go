package rulefind

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/rulecheck"
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
	domain   rulecheck.Explorer
	ops      []symbol
	commutes map[string]bool // by name
	coster   saturate.Coster // may be nil
	allowed  func(*fgraph.Apply) bool
	bySize   [][]*term
	classes  map[string]*term
	conds    map[string]*term
	pairs    []pair
	folded   []pattern.Rewrite // of numbers
	terms    int
}

// A symbol is an op of patterns. Ops of a family are numbered, and the number is its parameter until a
// rule names it.
type symbol struct {
	name string
	op   pattern.Operator
}

// maxArity bounds the inputs of ops that take any number of them: rules of two say what there is.
const maxArity = 2

// newSpace returns the terms without ops.
func newSpace(d rulecheck.Explorer, g *rulecheck.Ground, o *Options) (*space, error) {
	s := &space{Ground: g, domain: d, allowed: o.Allowed, classes: make(map[string]*term), conds: make(map[string]*term), commutes: make(map[string]bool)}
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
func symbols(d rulecheck.Explorer, name string) ([]symbol, error) {
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
	if a := t.v.Owner(); len(a.Outputs()) != 1 || destroys(a.Op()) || s.allowed != nil && !s.allowed(a) {
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
	for run := range s.Runs {
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

func destroys(op fgraph.Op) bool {
	d, ok := op.(fgraph.Destroyer)
	return ok && len(d.DestroyMap()) > 0
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
		s.pairs = append(s.pairs, pair{a: t, b: rep})
		t.values = nil
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

// A candidate is a pair as a rewrite.
type candidate struct {
	left, right   *term
	rewrite       pattern.Rewrite
	text          string
	cond          bool
	size          int
	literals      int
	before, after float64
	vars          []*fgraph.Variable // of the left side, by their new names
	theorem                          // as it is chosen
	guarded       uint64             // the variables for which the guard of run 0 must hold
	drawn         bool               // from more
	same          bool               // known by Options.Same
	conditions    []pattern.Guard    // of a general form
	found         *Found             // what judge says: a rule,
	wrong         map[string]any     // or values for which it is none
}

// candidates makes rewrites of pairs, the small and general ones first. Those that differ by names only
// are one.
func (s *space) candidates() []*candidate {
	var list []*candidate
	seen := make(map[string]bool)
	for _, p := range s.pairs {
		c := s.candidate(p)
		if c != nil && !seen[c.text] {
			seen[c.text] = true
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, compare)
	return list
}

// candidate turns a pair the way that saves, or makes an equation of it. It returns nil if there is
// none: a replacement has no names of its own.
func (s *space) candidate(p pair) *candidate {
	l, r := p.a, p.b
	if r.cost > l.cost || r.cost == l.cost && (r.size > l.size || r.size == l.size && l.names&^r.names == 0 && l.names != r.names) {
		l, r = r, l
	}
	if _, ok := l.expr.(*pattern.Call); !ok || r.names&^l.names != 0 {
		return nil
	}
	c := &candidate{left: l, right: r, cond: p.cond, size: l.size + r.size, before: l.cost, after: r.cost}
	_, call := r.expr.(*pattern.Call)
	c.rewrite.Equation = call && l.cost == r.cost && l.size == r.size && l.names == r.names
	s.rename(c, l, r)
	if c.rewrite.Equation {
		d := *c
		s.rename(&d, r, l)
		if d.left, d.right = r, l; d.text < c.text {
			*c = d
		}
	}
	walk(c.rewrite.In.Expr, func(e pattern.Expr) { c.count(e) })
	walk(c.rewrite.Out, func(e pattern.Expr) { c.count(e) })
	return c
}

func (c *candidate) count(e pattern.Expr) {
	if _, ok := e.(pattern.Literal); ok {
		c.literals++
	}
}

// compare orders candidates: small ones first, of those with few numbers, of those with many variables. A number
// counts as an op more, since what two terms with numbers say often follows from what two with one more variable do:
// max(0, x+1) = 1 + max(x, -1) from max(x+z, y+z) = max(x, y) + z.
func compare(a, b *candidate) int {
	for _, d := range []int{a.size + a.literals - b.size - b.literals, a.literals - b.literals, len(b.vars) - len(a.vars)} {
		if d != 0 {
			return d
		}
	}
	return strings.Compare(a.text, b.text)
}

// rename names variables and parameters in the order in which they occur.
func (s *space) rename(c *candidate, l, r *term) {
	names, params := make(map[string]string), make(map[string]string)
	c.vars = nil
	var namer rulecheck.Namer
	var expr func(e pattern.Expr) pattern.Expr
	expr = func(e pattern.Expr) pattern.Expr {
		switch e := e.(type) {
		case pattern.Name:
			if names[string(e)] == "" {
				names[string(e)] = namer.Next()
				c.vars = append(c.vars, s.leaf(string(e)))
			}
			return pattern.Name(names[string(e)])
		case *pattern.Call:
			call := &pattern.Call{Op: e.Op}
			if base, param, ok := strings.Cut(e.Op, "{#"); ok {
				if params[param] == "" {
					params[param] = string(rune('p' + len(params)%8))
				}
				call.Op = base + "{" + params[param] + "}"
			}
			for _, a := range e.Args {
				call.Args = append(call.Args, expr(a))
			}
			return call
		}
		return e
	}
	c.rewrite.In = pattern.Pattern{Expr: expr(l.expr)}
	c.rewrite.Out = expr(r.expr)
	c.sides = [2]*fgraph.Variable{l.v, r.v}
	c.text = c.rewrite.String()
}

func (s *space) leaf(name string) *fgraph.Variable {
	i := slices.IndexFunc(s.Leaves, func(v *fgraph.Variable) bool { return v.Name() == name })
	return s.Leaves[i]
}

// saves returns what a rewrite saves, the greater part first.
func (c *candidate) saves() float64 { return c.before - c.after }

// walk calls f for each part of an expression.
func walk(e pattern.Expr, f func(pattern.Expr)) {
	f(e)
	if c, ok := e.(*pattern.Call); ok {
		for _, a := range c.Args {
			walk(a, f)
		}
	}
}
