package rulecheck

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
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

// Tags that permit differences.
const (
	unsafeTag   = "unsafe_nan"
	overflowTag = "overflow"
)

var classes = []Class{Exact, Rounding, Overflow, UnsafeNaN, NeverFires, Type, Wrong}

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
	// Language is that of Cases. The default is [expr.Default].
	Language *expr.Language
	// Seed changes the choices.
	Seed uint64
}

// maxElements bounds the elements of an argument of a type that is given.
const maxElements = 1 << 12

// check returns an error if the types are too large.
func (o *Options) check() error {
	for name, t := range o.Types {
		n := 1
		for _, d := range t.Shape() {
			if n *= max(d, 1); n > maxElements {
				return fmt.Errorf("rulecheck: the type of %s, %v, has more than %d elements", name, t, maxElements)
			}
		}
	}
	return nil
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
	rule, err := pattern.New(v, r, pattern.Shared())
	if err != nil {
		return Report{}, err
	}
	if err := o.check(); err != nil {
		return Report{}, err
	}
	c := newChecker(ctx, &o, r.Tags, cmp.Or(r.Name, r.String()))
	c.ops = &opTable{names: append(slices.Clone(o.Ops), tensorOps()...)}
	for k := range r.Cases {
		if err := c.rewrite(v, r, k); err != nil {
			return Report{}, err
		}
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

// mapAll calls f for the index of each element of a list, on all processors. The error is that of
// the first element that has one.
func mapAll[T, R any](list []T, f func(i int) (R, error)) ([]R, error) {
	results, errs := make([]R, len(list)), make([]error, len(list))
	var next atomic.Int64
	var wg sync.WaitGroup
	var panicked atomic.Pointer[string]
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		wg.Go(func() {
			// A panic would end the process here, where no caller can recover from it: a server of
			// rule checks would die of one request. So the caller's goroutine panics instead.
			defer func() {
				if p := recover(); p != nil {
					text := fmt.Sprintf("%v\n%s", p, debug.Stack())
					panicked.Store(&text)
				}
			}()
			for i := int(next.Add(1)) - 1; i < len(list); i = int(next.Add(1)) - 1 {
				results[i], errs[i] = f(i)
			}
		})
	}
	wg.Wait()
	if text := panicked.Load(); text != nil {
		panic(*text)
	}
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return nil, errs[i]
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

// compare runs both sides of an expression on all plans.
func (c *checker) compare(in *instance, redo func([]int) *instance) {
	// To classify one difference takes dozens of runs. Elements whose arguments are of the same
	// kinds, such as large times tiny, differ for the same reason, so two of each combination are
	// classified.
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
	if known[likeness] >= 2 || c.analyzed >= maxAnalyzed && len(known) > 8 {
		return
	}
	known[likeness]++
	c.analyzed++
	// First to the arguments of this element alone: a NaN elsewhere in a matrix would explain the
	// difference wrongly. Then special values that don't matter become ordinary ones. What is
	// special after that is a reason.
	if reduced, ok := in.reduce(args, t, at); ok {
		args = reduced
	}
	args = in.tame(args)
	if v, ok := in.judge(args); ok {
		c.note(v, finding{in: in, args: args, redo: redo})
	}
}

// gains looks for arguments of which the left side of an example overflows and the right one does
// not: the rule computes in another order, which is no worse than the one before.
func (c *checker) gains(f finding) bool {
	if f.text != "" {
		return false
	}
	for range maxGains {
		args := plan{palette: apart, size: 1}.arguments(c.rng, f.in.circuit.inputs)
		t := f.in.circuit.run(args, nil)
		if t.leftError != nil || t.err != nil {
			continue
		}
		if places, _ := f.in.circuit.differences(t); len(places) == 0 {
			continue
		}
		if v, ok := f.in.judge(args); ok && v == (verdict{class: Rounding, edge: onLeft}) {
			return true
		}
	}
	return false
}

// maxGains bounds the arguments that gains tries.
const maxGains = 200

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
	// A sum or product in another order may overflow where the old order did not. That is fair if
	// there are also arguments for which it is the other way round: neither order is better. If
	// only the right side ever overflows, the rule does harm. Arguments of the second kind may not
	// have been drawn, so they are looked for before that verdict.
	harm, harmed := c.found[verdict{class: Rounding, edge: onRight}]
	if _, gains := c.found[verdict{class: Rounding, edge: onLeft}]; harmed && !gains && !c.gains(harm) {
		c.found[verdict{class: Overflow}] = harm
	}
	// The report names the worst verdict that the tags don't permit; a permitted one counts only if
	// there is no other. Verdicts of one rank differ only in the edges of Rounding, which has no
	// counterexample, so the order of the map does not matter.
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
