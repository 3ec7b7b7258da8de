package rulecheck

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
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

// Classes lists the classes in their order.
func Classes() []Class { return slices.Clone(classes) }

var classes = []Class{Exact, Rounding, Overflow, UnsafeNaN, NeverFires, Type, Wrong}

// Options are options of a check. The zero value checks thoroughly.
type Options struct {
	// Cases are further expressions that the rule may fire on.
	Cases []Case
	// Seed changes the choices.
	Seed uint64
	// Brief ends a check at the first difference that is wrong, and leaves it as large as it is.
	Brief bool
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
	// Chance is set if the sides are rational functions of floats that agree in exact arithmetic for numbers that were
	// drawn: two that are not equal would do so with at most this probability.
	Chance float64 `json:"chance,omitempty"`
	// Kept reports whether the rule is what its tags promise, and Tags are those that it needs.
	Kept bool     `json:"-"`
	Tags []string `json:"-"`
	// Wrong has the values of the inputs by name in a counterexample of that class.
	Wrong map[string]any `json:"-"`

	fired []fired
}

// Instances returns some expressions that the rule replaced, each with its replacement.
func (r Report) Instances() (pairs [][2]*fgraph.Variable) {
	for _, f := range r.fired {
		pairs = append(pairs, [2]*fgraph.Variable{f.left, f.right})
	}
	return pairs
}

// fired is an expression that the rule replaced.
type fired struct{ left, right *fgraph.Variable }

// Check checks the rewrites of a rule. The error is that of a rule that does not compile, or the
// context's.
func Check(ctx context.Context, d Domain, r pattern.Rule, o Options) (Report, error) {
	rule, err := pattern.New(d.Vocabulary(), r, pattern.Shared())
	if err != nil {
		return Report{}, err
	}
	c := newChecker(ctx, d, &o, r.Tags, cmp.Or(r.Name, r.String()))
	for k := range r.Cases {
		if err := c.rewrite(r, k); err != nil {
			return Report{}, err
		}
	}
	c.cases(rule)
	report := c.report()
	report.Name, report.Rule = r.Name, strings.TrimSuffix(rule.String(), "\n")
	return report, ctx.Err()
}

// ForAll calls f for each element of a list, such as a rule to check, on all processors. The results have
// the order of the list. The error is that of the first element that has one.
func ForAll[T, R any](list []T, f func(T) (R, error)) ([]R, error) {
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
				results[i], errs[i] = f(list[i])
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

// A checker has one rule fire on many expressions.
type checker struct {
	ctx     context.Context
	domain  Domain
	vocab   pattern.Vocabulary
	opts    *Options
	rng     *rand.Rand
	judge   Judge
	fired   []fired
	trouble []string // why a rewrite never fires
	untyped bool     // a replacement never had the right type
}

func newChecker(ctx context.Context, d Domain, o *Options, tags []string, name string) *checker {
	c := &checker{ctx: ctx, domain: d, vocab: d.Vocabulary(), opts: o, rng: NewRand(name, o.Seed)}
	c.judge = d.Judge(Trial{Context: ctx, Tags: tags, Seed: o.Seed, Brief: o.Brief, Rand: c.rng})
	return c
}

// report sums up what was found.
func (c *checker) report() Report {
	r := c.judge.Report(c.trouble)
	if r.Class == NeverFires && c.untyped {
		r.Class = Type
	}
	r.fired = c.fired
	return r
}
