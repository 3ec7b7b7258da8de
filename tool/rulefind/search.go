package rulefind

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/rulecheck"
)

// Options say what to search.
type Options struct {
	// Ops are the names of ops and families in rules.
	Ops []string
	// Types are the types of variables as the dialect writes them, see [rulecheck.Explorer]; Vars is how
	// many there are of each, three by default.
	Types string
	Vars  int
	// Constants are numbers in terms.
	Constants []pattern.Literal
	// Size is how many ops a term has at most, two by default.
	Size int
	// Time bounds the search if it is not 0. Half of it is for terms.
	Time time.Duration
	Seed uint64
	// Known are rules whose consequences are not searched for, and Same what else makes two variables
	// equal, such as an optimizer. Both may be nil.
	Known []rewrite.NodeRewriter
	Same  func(ctx context.Context, left, right *fgraph.Variable) bool
	// Allowed restricts the applies of terms. It may be nil.
	Allowed func(*fgraph.Apply) bool
	// Most bounds the candidates, of which the smallest are taken; 20000 by default.
	Most int
	// Progress is told what has been done so far. It may be nil.
	Progress func(text string)
}

// The defaults of options.
const (
	defaultVars = 3
	defaultSize = 2
	defaultMost = 20000
)

// maxRounds bounds how often a search is repeated with the values for which rules were wrong.
const maxRounds = 4

// A Found is a rule that was found.
type Found struct {
	Rule   pattern.Rule
	Report rulecheck.Report
	// Before and After are what both sides cost.
	Before, After float64
	// Proved says that both sides were compared for all values of the types in Types.
	Proved bool
	Types  string
	// Fires is an expression that the rule replaces, and Not one like it that it does not; either may
	// be missing.
	Fires, Not string

	sides [2]*fgraph.Variable
}

// A Result is what a search has found.
type Result struct {
	Found []Found
	// Terms, Classes and Candidates count what there was, in the last round.
	Terms, Classes, Candidates int
	Checked                    int // rules that were checked
	Refuted                    int // of them, those that are no rules
	Rounds                     int
	// Stopped says that the search was ended by time or by the caller: there may be more.
	Stopped bool
}

// A search is a search that goes on.
type search struct {
	d       rulecheck.Explorer
	o       Options
	began   time.Time
	space   *space
	known   []map[string]any
	verdict map[string]*Found // by the text of a rewrite; nil if it is no rule
	result  *Result
	rules   []rewrite.NodeRewriter // Known, and what was found
}

// Search searches for rules. It returns what it has found when ctx ends; an error is one of options.
func Search(ctx context.Context, d rulecheck.Explorer, o Options) (*Result, error) {
	s := &search{d: d, o: o.complete(), began: time.Now(), verdict: make(map[string]*Found), result: new(Result)}
	if o.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Time)
		defer cancel()
	}
	for s.result.Rounds < maxRounds {
		s.result.Rounds++
		refuted := len(s.known)
		kept := s.result.Found
		s.result.Found = nil
		if err := s.round(ctx); err != nil {
			if ctx.Err() == nil {
				return nil, err
			}
			s.keep(kept)
			break
		}
		// A false candidate has hidden the terms behind it: one of its sides did not stand for its
		// class. So terms are told apart anew by the values that refuted it.
		if len(s.known) == refuted || s.space.All || s.late() {
			break
		}
	}
	s.result.Stopped = ctx.Err() != nil || s.late()
	slices.SortStableFunc(s.result.Found, func(a, b Found) int {
		switch x, y := a.Before-a.After, b.Before-b.After; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return s.result, nil
}

// keep adds what an earlier round found to what one that was stopped has.
func (s *search) keep(earlier []Found) {
	for _, f := range earlier {
		if !slices.ContainsFunc(s.result.Found, func(g Found) bool { return g.Rule.Name == f.Rule.Name }) {
			s.result.Found = append(s.result.Found, f)
		}
	}
}

func (o Options) complete() Options {
	or := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	or(&o.Vars, defaultVars)
	or(&o.Size, defaultSize)
	or(&o.Most, defaultMost)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o
}

// enumerate makes the terms.
func enumerate(ctx context.Context, d rulecheck.Explorer, o *Options, known []map[string]any) (*space, error) {
	g, err := d.Ground(o.Types, o.Vars, rand.New(rand.NewPCG(o.Seed, 0)), known)
	if err != nil {
		return nil, err
	}
	sp, err := newSpace(d, g, o)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	for size := 1; size <= o.Size && ctx.Err() == nil; size++ {
		sp.grow(ctx)
		o.Progress(fmt.Sprintf("size %d: %d terms, %d classes, %d candidates", size, sp.terms, len(sp.classes), len(sp.pairs)))
	}
	return sp, nil
}

// round searches with the values that are known.
func (s *search) round(ctx context.Context) (err error) {
	if s.space, err = enumerate(ctx, s.d, &s.o, s.known); err != nil {
		return err
	}
	list := s.space.candidates()
	list = list[:min(len(list), s.o.Most)]
	s.result.Terms, s.result.Classes, s.result.Candidates = s.space.terms, len(s.space.classes), len(list)
	s.rules = slices.Clone(s.o.Known)
	if list, err = underived(ctx, s.d, manyPairs, s.rules, list); err != nil {
		return err
	}
	s.o.Progress(fmt.Sprintf("round %d: %d candidates, %d not known", s.result.Rounds, s.result.Candidates, len(list)))
	for len(list) > 0 && !s.late() {
		picked, rest, err := s.pick(ctx, list)
		if err != nil {
			return err
		}
		added := s.accept(ctx, picked)
		if list = rest; added > 0 {
			if list, err = underived(ctx, s.d, manyPairs, s.rules, list); err != nil {
				return err
			}
			s.o.Progress(fmt.Sprintf("round %d: %d rules, %d candidates left, %d checked, %d refuted", s.result.Rounds, len(s.result.Found), len(list), s.result.Checked, s.result.Refuted))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return s.minimize(ctx)
}

// late reports whether what is left of the time is for dropping rules that follow from others.
func (s *search) late() bool {
	return s.o.Time > 0 && time.Since(s.began) > s.o.Time*7/8
}

// picks is how many candidates are checked at a time, on all processors.
const picks = 8

// pick returns the first candidates that do not follow from the rules, nor from those picked before.
func (s *search) pick(ctx context.Context, list []*candidate) (picked, rest []*candidate, err error) {
	rules := slices.Clone(s.rules)
	for i, c := range list {
		if len(picked) == picks {
			return picked, list[i:], nil
		}
		if f, seen := s.verdict[c.text]; seen && f == nil {
			continue
		}
		left, err := underived(ctx, s.d, onePair, rules, []*candidate{c})
		if err != nil {
			return nil, nil, err
		}
		if len(left) == 0 || s.o.Same != nil && s.o.Same(ctx, c.left.v, c.right.v) {
			continue
		}
		r, err := compiled(s.d, pattern.Rule{Name: "picked", Cases: []pattern.Rewrite{c.rewrite}})
		if err != nil {
			continue // the right side has a parameter that the left one does not have
		}
		if !c.cond {
			rules = append(rules, r)
		}
		picked = append(picked, c)
	}
	return picked, nil, nil
}

// accept checks candidates, and adds those that are rules. It returns how many.
func (s *search) accept(ctx context.Context, picked []*candidate) (added int) {
	_, err := rulecheck.CheckAll(picked, func(c *candidate) (rulecheck.Report, error) { return rulecheck.Report{}, s.judge(ctx, c) })
	if err != nil || ctx.Err() != nil {
		return 0
	}
	for _, c := range picked {
		if _, seen := s.verdict[c.text]; !seen {
			s.result.Checked++
			s.verdict[c.text] = c.found
			if c.found == nil && !c.follows {
				s.result.Refuted++
			}
			if c.found == nil && c.wrong != nil {
				s.known = append(s.known, c.wrong)
			}
		}
		f := s.verdict[c.text]
		if f == nil {
			continue
		}
		// Those that were checked at the same time may follow from each other.
		if left, err := s.follows(ctx, f); err != nil || left {
			continue
		}
		if r, err := compiled(s.d, f.Rule); err == nil {
			s.rules = append(s.rules, r)
			s.result.Found = append(s.result.Found, *f)
			added++
		}
	}
	return added
}

// minimize drops rules that follow from the others, the last ones first.
func (s *search) minimize(ctx context.Context) error {
	for i := len(s.result.Found) - 1; i >= 0; i-- {
		at := len(s.o.Known) + i
		others := slices.Delete(slices.Clone(s.rules), at, at+1)
		rules := s.rules
		s.rules = others
		left, err := s.follows(ctx, &s.result.Found[i])
		if err != nil {
			return err
		}
		if s.rules = rules; left {
			s.rules = others
			s.result.Found = slices.Delete(s.result.Found, i, i+1)
		}
	}
	return nil
}
