package rulecheck

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// Bounds of the work for a rewrite: expressions that are tried to be built, and those that are
// compared after the rule fired.
const (
	maxAttempts = 6000
	maxFired    = 90
)

// rewrite checks one rewrite of a rule, on what the rewrites before it leave.
func (c *checker) rewrite(r pattern.Rule, k int) error {
	for i, w := range r.Cases[k].Directions() {
		if i > 0 { // only saturation goes back, and it applies every rewrite to everything
			k = 0
		}
		if err := c.direction(r, w, k); err != nil {
			return err
		}
	}
	return nil
}

// direction checks a rewrite, on what the first k of its rule leave.
func (c *checker) direction(r pattern.Rule, w pattern.Rewrite, k int) error {
	var before *pattern.Substitution
	if k > 0 {
		var err error
		if before, err = pattern.New(c.vocab, pattern.Rule{Cases: r.Cases[:k]}, pattern.Shared()); err != nil {
			return err
		}
	}
	sub, err := pattern.New(c.vocab, pattern.Rule{Cases: []pattern.Rewrite{w}}, pattern.Shared())
	if err != nil {
		return err
	}
	s := sampler{checker: c, builder: newBuilder(c.domain, c.vocab, w), pattern: w.In, rule: sub, before: before}
	s.run()
	if s.fires == 0 && c.cases(sub) == 0 {
		c.trouble = append(c.trouble, s.trouble())
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
	built   []*Instance // the first ones
	failed  error
}

// run makes expressions: first those whose names have all the same type, for every type; then
// random ones, and variations of those on which the rule fired.
func (s *sampler) run() {
	s.seen = make(map[string]bool)
	// First phase: the beginnings of the domain, such as one type for all names, with a few tries
	// each until the rule fires. This finds a rule that is wrong for a single type, such as bool or
	// float16, which random choices may miss.
	beginnings, times := s.domain.Beginnings()
	for _, choices := range beginnings {
		for range times {
			if s.attempt(&Tape{choices: slices.Clone(choices), rng: s.rng}) {
				break
			}
		}
		if s.opts.Brief && s.judge.Refuted() {
			return
		}
	}
	// Second phase: random tapes, half of them with one or two choices changed in a tape on which
	// the rule fired. A rule with guards fires on few expressions, and most neighbours of those
	// satisfy the guards as well. The phase ends when the rule has fired often, and earlier the
	// longer it took: a rule that fires on one expression in a hundred must not take minutes. Large
	// patterns get fewer attempts, since each takes longer.
	systematic := s.fires
	for try := range max(maxAttempts*10/(10+size(s.pattern.Expr)), 100) {
		enough := s.fires >= systematic+maxFired || try > 400 && s.fires >= maxFired || try > 1500 && s.fires >= 20
		if enough || s.judge.Refuted() && (s.fires > 40 || s.opts.Brief) || s.ctx.Err() != nil {
			return
		}
		t := &Tape{rng: s.rng}
		if len(s.good) > 0 && try%2 == 0 {
			t.choices = slices.Clone(s.good[s.rng.IntN(len(s.good))])
			for range 1 + s.rng.IntN(2) {
				t.choices[s.rng.IntN(len(t.choices))] = s.rng.IntN(1 << 16)
			}
		}
		s.attempt(t)
	}
}

// size counts the parts of a pattern. Attempts with large ones take long.
func size(e pattern.Expr) (n int) {
	pattern.Walk(e, func(pattern.Expr) { n++ })
	return n
}

// attempt builds an expression and, if the rewrite fires on it, compares both sides.
func (s *sampler) attempt(t *Tape) bool {
	in := s.instance(t)
	if in == nil {
		return false
	}
	// Tapes that differ only behind the last choice that was read make the same expression.
	key := fmt.Sprint(in.choices)
	if s.seen[key] {
		return false
	}
	if !s.judge.Compare(in, func(choices []int) *Instance { return s.instance(&Tape{choices: choices}) }) {
		return false
	}
	s.seen[key] = true
	s.good = append(s.good, in.choices)
	s.fires++
	if len(s.checker.fired) < maxKept && in.Left[0] == in.Graph.Outputs()[0] {
		s.checker.fired = append(s.checker.fired, fired{in.Left[0], in.Right[0]})
	}
	return true
}

// maxKept bounds the expressions that are kept to look for rules that undo each other.
const maxKept = 60

// instance builds an expression and lets the rewrite fire. It returns nil if it does not.
func (s *sampler) instance(t *Tape) *Instance {
	if s.ctx.Err() != nil {
		return nil
	}
	in, err := s.builder.build(s.pattern.Expr, t)
	if err != nil {
		s.failed = err
		return nil
	}
	c := rewrite.NewContext(s.ctx, in.Graph)
	// A rule tries its rewrites in order, so this one sees only what those before it leave.
	if s.before != nil {
		if ok, err := in.fire(c, s.before); ok || err != nil {
			return nil
		}
	}
	ok, err := in.fire(c, s.rule)
	if err != nil {
		s.judge.Fault(in, Wrong, err.Error())
		return nil
	}
	if !ok {
		if len(s.built) < 200 {
			s.built = append(s.built, in)
		}
		return nil
	}
	return in
}

// trouble says why a rewrite never fires. If it matches, the replacement can't be made.
func (s *sampler) trouble() string {
	var reason string
	// If the pattern alone matches, the rewrite failed because the replacement can't be given the
	// type of what it replaces: a mistake in the rule, reported as Type. Otherwise the last reason
	// of a matcher is the best hint.
	matches, err := pattern.NewMatcher(s.vocab, s.pattern.String(), pattern.Shared())
	for _, in := range s.built {
		if err == nil {
			if _, ok := matches.Match(in.Graph.Outputs()[0].Owner()); ok {
				s.untyped = true
			}
		}
		ctx := rewrite.WithOptions(s.ctx, rewrite.Options{WhyNot: func(m rewrite.Miss) { reason = m.Text }})
		in.fire(rewrite.NewContext(ctx, in.Graph), s.rule) // only for the reason
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
