package rulecheck

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Class says how the sides of a rule differ. The documentation of the package defines each.
type Class string

// The classes, the most harmless first.
const (
	Exact      Class = "exact"
	Rounding   Class = "rounding"
	Overflow   Class = "overflow"
	UnsafeNaN  Class = "unsafe_nan"
	NeverFires Class = "never_fires"
	Type       Class = "type"
	Wrong      Class = "wrong"
)

var classes = []Class{Exact, Rounding, Overflow, UnsafeNaN, NeverFires, Type, Wrong}

// Tags that permit differences.
const (
	unsafeTag   = "unsafe_nan"
	overflowTag = "overflow"
)

// Options are options of Check. The zero value checks thoroughly.
type Options struct {
	// Types are the types of names and of the variables of rests, which are called ys1, ys2 and
	// so on. The types of other names are chosen.
	Types map[string]tensor.Type
	// Ops are names of ops of the vocabulary, from which captured parameters are taken. They join
	// the ops of tensors.
	Ops []string
	// Cases are further expressions that the rule may fire on, with the inputs' types.
	Cases []Case
	// Seed changes the choices.
	Seed uint64
}

// A Report says what was found about a rule.
type Report struct {
	Name  string `json:"name"`
	Rule  string `json:"rule"` // its rewrites, or its documentation if it is a Go function
	Class Class  `json:"class"`
	// Tried is the number of comparisons of both sides.
	Tried int `json:"tried"`
	// Counterexample has the values of variables, and of both sides; or why there are none. It is
	// empty if the class is Exact or Rounding.
	Counterexample string `json:"counterexample"`
	// Kept reports whether the rule is what its tags promise.
	Kept bool `json:"-"`

	fired []fired
}

// fired is an expression that the rule replaced.
type fired struct{ left, right *fgraph.Variable }

// Check checks the rewrites of a rule. The error is that of a rule that does not compile, or the
// context's.
func Check(ctx context.Context, v pattern.Vocabulary, r pattern.Rule, o Options) (Report, error) {
	if _, err := pattern.New(v, r, pattern.Shared()); err != nil {
		return Report{}, err
	}
	c := newChecker(ctx, &o, r.Tags, cmp.Or(r.Name, r.String()))
	c.ops = &opTable{names: append(slices.Clone(o.Ops), tensorOps()...)}
	for k := range r.Cases {
		if err := c.rewrite(v, r, k); err != nil {
			return Report{}, err
		}
	}
	rule, err := pattern.New(v, r, pattern.Shared())
	if err != nil {
		return Report{}, err
	}
	c.cases(rule)
	report := c.report()
	report.Name, report.Rule = r.Name, strings.TrimSuffix(rule.String(), "\n")
	return report, ctx.Err()
}

// CheckAll checks rules on all processors. The reports have the order of the rules.
func CheckAll[R any](rules []R, check func(R) (Report, error)) ([]Report, error) {
	return mapAll(rules, func(i int) (Report, error) { return check(rules[i]) })
}

// mapAll calls f for the index of each element of a list, on all processors.
func mapAll[T, R any](list []T, f func(i int) (R, error)) ([]R, error) {
	results, errs := make([]R, len(list)), make([]error, len(list))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(list); i = int(next.Add(1)) - 1 {
				results[i], errs[i] = f(i)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// A checker collects what is found about a rule.
type checker struct {
	ctx      context.Context
	opts     *Options
	tags     []string
	ops      *opTable
	rng      *rand.Rand
	tried    int
	exact    bool
	edges    edge
	found    map[verdict]finding
	analyzed int
	fired    []fired
	trouble  []string // why a rewrite never fires
	untyped  bool     // a replacement never had the right type
}

// A finding is an example of a verdict.
type finding struct {
	in   *instance
	args []*array.Array
	text string // in place of the values
	redo func(choices []int) *instance
}

func newChecker(ctx context.Context, o *Options, tags []string, name string) *checker {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &checker{
		ctx: ctx, opts: o, tags: tags, rng: rand.New(rand.NewPCG(h.Sum64(), o.Seed)), exact: true, found: make(map[verdict]finding),
	}
}

// Bounds of the work for a rewrite: expressions that are tried to be built, those that are compared
// after the rule fired, and differences that are analyzed.
const (
	mostAttempts = 6000
	mostFired    = 70
	mostAnalyzed = 400
)

// rewrite checks one rewrite of a rule, on what the rewrites before it leave.
func (c *checker) rewrite(v pattern.Vocabulary, r pattern.Rule, k int) error {
	w := r.Cases[k]
	var before *pattern.Substitution
	if k > 0 {
		var err error
		if before, err = pattern.New(v, pattern.Rule{Cases: r.Cases[:k]}, pattern.Shared()); err != nil {
			return err
		}
	}
	sub, err := pattern.New(v, pattern.Rule{Cases: []pattern.Rewrite{w}}, pattern.Shared())
	if err != nil {
		return err
	}
	s := sampler{checker: c, builder: newBuilder(v, c.opts, c.ops, w), pattern: w.In, rule: sub, before: before}
	s.run()
	if s.fires == 0 && c.cases(sub) == 0 {
		c.trouble = append(c.trouble, s.trouble(v))
	}
	return nil
}

// A sampler makes expressions that a rewrite fires on.
type sampler struct {
	*checker
	builder *builder
	pattern pattern.Pattern
	rule    rewrite.NodeRewriter
	before  *pattern.Substitution
	fires   int
	good    [][]int // choices of expressions that the rewrite fired on
	seen    map[string]bool
	built   []*instance // the first ones
	failed  error
}

// run makes expressions: first those whose names have all the same type, for every type; then
// random ones, and variations of those on which the rule fired.
func (s *sampler) run() {
	s.seen = make(map[string]bool)
	for d := range dtypes {
		for shape := range 7 {
			for try := range 4 {
				t := &tape{choices: []int{d, shape, 0}, rng: s.rng}
				if try == 0 && s.attempt(t) {
					break
				} else if try > 0 && s.attempt(t) {
					break
				}
			}
		}
	}
	systematic := s.fires
	for try := range mostAttempts {
		enough := s.fires >= systematic+mostFired || try > 400 && s.fires >= mostFired || try > 1500 && s.fires >= 20
		if enough || s.found[verdict{class: Wrong}].in != nil && s.fires > 40 || s.ctx.Err() != nil {
			return
		}
		t := &tape{rng: s.rng}
		if len(s.good) > 0 && try%2 == 0 {
			t.choices = slices.Clone(s.good[s.rng.IntN(len(s.good))])
			for range 1 + s.rng.IntN(2) {
				t.choices[s.rng.IntN(len(t.choices))] = s.rng.IntN(1 << 16)
			}
		}
		s.attempt(t)
	}
}

// attempt builds an expression and, if the rewrite fires on it, compares both sides.
func (s *sampler) attempt(t *tape) bool {
	in := s.instance(t)
	if in == nil {
		return false
	}
	if key := fmt.Sprint(in.choices); s.seen[key] {
		return false
	} else {
		s.seen[key] = true
	}
	s.good = append(s.good, in.choices)
	s.fires++
	if len(s.checker.fired) < mostKept && in.left[0] == in.graph.Outputs()[0] {
		s.checker.fired = append(s.checker.fired, fired{in.left[0], in.right[0]})
	}
	s.compare(in, func(choices []int) *instance { return s.instance(&tape{choices: choices}) })
	return true
}

// mostKept bounds the expressions that are kept to look for rules that undo each other.
const mostKept = 60

// instance builds an expression and lets the rewrite fire. It returns nil if it does not.
func (s *sampler) instance(t *tape) *instance {
	in, err := s.builder.build(s.pattern.Expr, t)
	if err != nil {
		s.failed = err
		return nil
	}
	c := rewrite.NewContext(s.ctx, in.graph)
	if s.before != nil {
		if ok, err := in.fire(c, s.before); ok || err != nil {
			return nil
		}
	}
	ok, err := in.fire(c, s.rule)
	if err != nil {
		s.note(verdict{class: Wrong}, finding{in: in, text: err.Error()})
		return nil
	}
	if !ok {
		if len(s.built) < 200 {
			s.built = append(s.built, in)
		}
		return nil
	}
	if in.compile() != nil {
		return nil
	}
	return in
}

// trouble says why a rewrite never fires. If it matches, the replacement can't be made.
func (s *sampler) trouble(v pattern.Vocabulary) string {
	var reason string
	matches, err := pattern.NewMatcher(v, s.pattern.String(), pattern.Shared())
	for _, in := range s.built {
		if err == nil {
			if _, ok := matches.Match(in.graph.Outputs()[0].Owner()); ok {
				s.untyped = true
			}
		}
		ctx := rewrite.WithOptions(s.ctx, rewrite.Options{WhyNot: func(m rewrite.Miss) { reason = m.Text }})
		in.fire(rewrite.NewContext(ctx, in.graph), s.rule) // only for the reason
		if s.untyped {
			break
		}
	}
	switch {
	case reason != "":
		reason = ": " + reason
	case len(s.built) == 0 && s.failed != nil:
		reason = ": " + s.failed.Error()
	}
	return s.pattern.String() + " does not fire" + reason
}

// compare runs both sides of an expression on all plans.
func (c *checker) compare(in *instance, redo func([]int) *instance) {
	known := make(map[string]int)
	list := scalarPlans
	for _, v := range in.circuit.inputs {
		if slices.Contains(tensor.TypeOf(v).Shape(), tensor.Unknown) {
			list = plans
		}
	}
	if len(in.circuit.inputs) == 0 {
		list = scalarPlans[:1]
	}
	for _, p := range list {
		for range p.times {
			args := p.arguments(c.rng, in.circuit.inputs)
			t := in.circuit.run(args, nil)
			if t.leftError != nil {
				continue
			}
			c.tried++
			if t.err != nil {
				c.note(verdict{class: Wrong}, finding{in: in, args: args, redo: redo})
				continue
			}
			places, exact := in.circuit.differences(t)
			c.exact = c.exact && exact
			for _, at := range places {
				c.analyze(in, args, t, at, known, redo)
			}
			if len(in.circuit.inputs) == 0 {
				return
			}
		}
	}
}

// analyze finds out why an element differs. It looks at a few of those whose arguments are alike.
func (c *checker) analyze(in *instance, args []*array.Array, t trace, at place, known map[string]int, redo func([]int) *instance) {
	likeness := in.likeness(args, t, at)
	if known[likeness] >= 2 || c.analyzed >= mostAnalyzed && len(known) > 8 {
		return
	}
	known[likeness]++
	c.analyzed++
	if reduced, ok := in.reduce(args, t, at); ok {
		args = reduced
	}
	args = in.tame(args)
	if v, ok := in.judge(args); ok {
		c.note(v, finding{in: in, args: args, redo: redo})
	}
}

// note remembers an example of a verdict.
func (c *checker) note(v verdict, f finding) {
	c.edges |= v.edge
	if old, ok := c.found[v]; !ok || old.text == "" && f.text == "" && f.size() < old.size() {
		c.found[v] = f
	}
}

// size orders examples.
func (f finding) size() int {
	n := 0
	for _, a := range f.args {
		n += 4*a.NDim() + a.Len()
	}
	return 8*len(f.in.circuit.steps) + n
}

// permits reports whether tags allow a verdict.
func permits(tags []string, v verdict) bool {
	switch v.class {
	case Exact, Rounding:
		return true
	case Overflow:
		return slices.Contains(tags, overflowTag) || !v.integer && slices.Contains(tags, unsafeTag)
	case UnsafeNaN:
		return slices.Contains(tags, unsafeTag)
	}
	return false
}

// report sums up what was found: the worst that the tags do not permit, or else the worst.
func (c *checker) report() Report {
	r := Report{Tried: c.tried, Class: Exact, Kept: true, fired: c.fired}
	if !c.exact {
		r.Class = Rounding
	}
	harm, harmed := c.found[verdict{class: Rounding, edge: onRight}]
	if _, gains := c.found[verdict{class: Rounding, edge: onLeft}]; harmed && !gains {
		c.found[verdict{class: Overflow}] = harm
	}
	var worst verdict
	rank := -1
	for v := range c.found {
		k := v.rank()
		if !permits(c.tags, v) {
			k += 100
		}
		if k > rank {
			worst, rank = v, k
		}
	}
	switch {
	case rank >= 100 && worst.class == Wrong || len(c.trouble) == 0 && rank >= 0:
		r.Class, r.Kept = worst.class, permits(c.tags, worst)
		if r.Class != Rounding {
			r.Counterexample = c.shrink(worst, c.found[worst])
		}
	case len(c.trouble) > 0:
		r.Class, r.Kept, r.Counterexample = NeverFires, false, strings.Join(c.trouble, "; ")
		if c.untyped {
			r.Class = Type
		}
	}
	return r
}
