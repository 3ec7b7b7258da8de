package rulefind

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// Options say what to search.
type Options struct {
	// Ops are the names of ops and families in rules.
	Ops []string
	// Types are the types of variables as the dialect writes them, see [rulecheck.Domain]; Vars is how
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
	// Allowed restricts the applies of terms, and Occurs says how often a rewrite replaces something: no rule is looked for
	// that does not. Both may be nil.
	Allowed func(*fgraph.Apply) bool
	Occurs  func(pattern.Rewrite) int
	// Most bounds the candidates: half of them are the smallest, the others are drawn; 10000 by default.
	Most int
	// Rules bounds the rules if it is not 0: those of which most candidates are instances are found first.
	Rules int
	// Progress is told what has been done so far, and Found each rule when it is found; some of them follow
	// from later ones, and are not in the result. Both may be nil.
	Progress func(text string)
	Found    func(*Found)
}

// The defaults of options.
const (
	defaultVars = 3
	defaultSize = 2
	defaultMost = 10000
)

// ofLarge is the part of the rules of a set of few that terms of the largest size have for themselves at least.
const ofLarge = 6

// maxRounds bounds how often a search is repeated with the values for which rules were wrong.
const maxRounds = 4

// A Found is a rule that was found.
type Found struct {
	Rule   pattern.Rule
	Report rulecheck.Report
	// Before and After are what both sides cost.
	Before, After float64
	Occurs        int // as Options.Occurs says
	// Proved says that both sides were compared for all values of the types in Types.
	Proved bool
	Types  string
	// Fires is an expression that the rule replaces, and Not one like it that it does not; either may
	// be missing.
	Fires, Not string

	theorem
}

// saves returns what a rule saves wherever it occurs.
func (f *Found) saves() float64 { return float64(max(f.Occurs, 1)) * (f.Before - f.After) }

// A theorem is a rule with what it says of variables.
type theorem struct {
	rule  rewrite.NodeRewriter
	sides [2]*fgraph.Variable
	// general says that it says more than that the sides are equal: also that these are.
	general bool
	more    [][2]*fgraph.Variable
	weight  int     // ops and numbers
	cost    float64 // of both sides
}

// A Result is what a search has found.
type Result struct {
	Found []Found
	// Terms, Classes and Candidates count what there was, in the last round.
	// Candidates are without those that hold under a guard only.
	Terms, Classes, Candidates int
	Derived                    int  // candidates that follow from Found and Options.Known
	ByCases                    int  // of them, those that saturation derives for each sign of variables only
	Drawn                      bool // both numbers are estimates from candidates that were drawn
	Checked                    int  // rules that were checked
	Refuted                    int  // of them, those that are no rules
	Rounds                     int
	// Stopped says that the search was ended by time or by the caller: there may be more.
	Stopped bool
}

// A search is a search that goes on.
type search struct {
	d       rulecheck.Domain
	o       Options
	began   time.Time
	space   *space
	known   []map[string]any
	verdict map[string]*Found // by the text of a rewrite; nil if it is no rule
	named   map[string]bool
	result  *Result
	given   []rewrite.NodeRewriter // Options.Known, and what folding computes
	rules   []rewrite.NodeRewriter // these, and what was found
	wide    map[uint64]*space      // other values, by the leaves of which the guard holds
	most    int                    // how many rules there may be so far; 0 is without a limit
}

// Search searches for rules. It returns what it has found when ctx ends; an error is one of options.
func Search(ctx context.Context, d rulecheck.Domain, o Options) (*Result, error) {
	s := &search{d: d, o: o.complete(), began: time.Now(), verdict: make(map[string]*Found), named: make(map[string]bool), result: new(Result)}
	if o.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Time)
		defer cancel()
	}
	for s.result.Rounds < maxRounds {
		s.result.Rounds++
		refuted := len(s.known)
		if err := s.round(ctx); err != nil {
			if ctx.Err() == nil {
				return nil, err
			}
			break
		}
		// A false candidate has hidden the terms behind it: one of its sides did not stand for its
		// class. So terms are told apart anew by the values that refuted it.
		if len(s.known) == refuted || s.space.All || s.full() || s.late() {
			break
		}
	}
	s.result.Stopped = ctx.Err() != nil || s.late()
	slices.SortStableFunc(s.result.Found, func(a, b Found) int { return cmp.Compare(b.saves(), a.saves()) })
	return s.result, nil
}

func (o Options) complete() Options {
	o.Vars, o.Size, o.Most = cmp.Or(max(o.Vars, 0), defaultVars), cmp.Or(max(o.Size, 0), defaultSize), cmp.Or(max(o.Most, 0), defaultMost)
	o.Known = compatible(o.Known)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Found == nil {
		o.Found = func(*Found) {}
	}
	return o
}

// enumerate makes the terms.
func enumerate(ctx context.Context, d rulecheck.Domain, o *Options, known []map[string]any) (*space, error) {
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
		o.Progress(fmt.Sprintf("size %d: %d terms, %d classes, %d candidates", size, sp.terms, len(sp.classes), len(sp.pairs)+sp.of))
	}
	for _, level := range sp.bySize {
		for _, t := range level {
			t.values = nil // which were what takes most of the memory
		}
	}
	return sp, nil
}

// round searches with the values that are known. Rules of earlier rounds stay: they were checked.
func (s *search) round(ctx context.Context) error {
	// Most of what large terms say follows in few steps from what small ones say, of more variables than large terms can
	// have: of terms of four ops over two variables, rules of terms of three ops over three derive 87 %, and as many rules
	// of terms like them 77 %.
	if s.most = s.o.Rules; s.most > 0 {
		s.most -= s.most / ofLarge
		for size := defaultSize; size < s.o.Size; size++ {
			o := s.o
			o.Size, o.Vars = size, max(o.Vars, defaultVars)
			all, _, err := s.terms(ctx, &o)
			if err != nil {
				return err
			}
			if err := s.choose(ctx, s.sample(all, s.o.Most/2, s.o.Most)); err != nil {
				return err
			}
		}
		s.most = s.o.Rules
	}
	all, conds, err := s.terms(ctx, &s.o)
	if err != nil {
		return err
	}
	s.result.Candidates = len(all)
	always := s.sample(all, s.o.Most/2, s.o.Most)
	if err := s.choose(ctx, always); err != nil {
		return err
	}
	if !s.full() && !s.late() {
		conds = conds[:min(len(conds), s.o.Most)]
		conds = slices.DeleteFunc(conds, func(c *candidate) bool { return ctx.Err() != nil || !s.plausible(ctx, c) })
		if err := s.choose(ctx, conds); err != nil {
			return err
		}
	}
	// What follows from others goes, unless there may be few rules: of 150 for terms of three ops, 31 follow from others, but
	// without them twice as many candidates need more steps than there may be.
	if s.o.Rules == 0 {
		if err := s.reduce(ctx); err != nil {
			return err
		}
		// What followed by way of a rule that is gone may need one again.
		if err := s.choose(ctx, always); err != nil {
			return err
		}
	}
	return s.share(ctx, all)
}

// terms makes the terms that options say, and returns their candidates: those that hold for all values, and those that
// hold under a guard, which mostly follow from others by what the guard says.
func (s *search) terms(ctx context.Context, o *Options) (all, conds []*candidate, err error) {
	if s.space, err = enumerate(ctx, s.d, o, s.known); err != nil {
		return nil, nil, err
	}
	s.wide = make(map[uint64]*space)
	if s.given, err = s.folding(); err != nil {
		return nil, nil, err
	}
	s.rules = slices.Clone(s.given)
	for _, f := range s.result.Found {
		s.rules = append(s.rules, f.rule)
	}
	s.result.Terms, s.result.Classes = s.space.terms, len(s.space.classes)
	for _, c := range s.space.candidates() {
		switch {
		case s.refuted(c):
		case c.cond:
			conds = append(conds, c)
		default:
			all = append(all, c)
		}
	}
	return all, conds, nil
}

// folding returns what is known, and what is to be known of numbers.
func (s *search) folding() ([]rewrite.NodeRewriter, error) {
	list := slices.Clone(s.o.Known)
	if len(s.space.folded) == 0 {
		return list, nil
	}
	rule, err := pattern.New(s.d.Vocabulary(), pattern.Rule{Name: "folded", Cases: s.space.folded}, pattern.Shared())
	if err != nil {
		return nil, err
	}
	return compatible(append(list, rule)), nil
}

// sample bounds candidates: some are the first, which are the smallest, and the others are drawn.
func (s *search) sample(list []*candidate, first, most int) []*candidate {
	if len(list) <= most {
		return list
	}
	list = slices.Clone(list)
	rest := list[first:]
	rng := rand.New(rand.NewPCG(s.o.Seed, 1+uint64(first)))
	rng.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	list = list[:most]
	slices.SortStableFunc(list[first:], compare)
	return list
}

// refuted reports whether a candidate is known to be no rule.
func (s *search) refuted(c *candidate) bool {
	f, seen := s.verdict[c.text]
	return seen && f == nil
}

// late reports whether what is left of the time is for dropping rules that follow from others.
func (s *search) late() bool {
	return s.o.Time > 0 && time.Since(s.began) > s.o.Time*7/8
}

// choice reports whether a candidate seems to be a rule that does not follow from others.
func (s *search) choice(ctx context.Context, c *candidate, rules []rewrite.NodeRewriter) (bool, error) {
	if left, err := underived(ctx, s.d, onePair, rules, []*candidate{c}); err != nil || len(left) == 0 {
		return false, err
	}
	if s.o.Same != nil && s.o.Same(ctx, c.sides[0], c.sides[1]) {
		c.same = true
		return false, nil
	}
	var err error
	if c.rule, err = compiled(s.d, pattern.Rule{Name: "chosen", Cases: []pattern.Rewrite{guarded(c.rewrite, s.guardsOf(c))}}); err != nil {
		s.verdict[c.text] = nil // the right side has a parameter that the left one does not have
		return false, nil
	}
	// Only the machine can tell whether a form is right that says more than the values do, and whether a
	// difference is one of rounding.
	checked := s.forms(ctx, c)
	if !c.cond && !s.plausible(ctx, c) && len(c.params()) == 0 {
		checked = append(checked, c)
	}
	for _, f := range checked {
		if _, err := s.accept(ctx, []*candidate{f}); err != nil {
			return false, err
		}
		if found := s.verdict[f.text]; found != nil {
			c.rule = found.rule
			return true, nil
		}
	}
	return !slices.Contains(checked, c), nil
}

// plausible compares both sides of a candidate for many values. Of one that holds under a guard it finds
// the fewest variables that need it.
func (s *search) plausible(ctx context.Context, c *candidate) bool {
	if s.space.Wide == nil {
		return true
	}
	if !c.cond {
		return s.agree(ctx, c.left.v, c.right.v, c, 0)
	}
	for n := range len(c.vars) {
		for set := uint64(1); set < 1<<len(c.vars); set++ {
			if bits.OnesCount64(set) == n+1 && s.agree(ctx, c.left.v, c.right.v, c, set) {
				c.guarded = set
				c.sides = s.sides(c)
				return true
			}
		}
	}
	return false
}

// agree compares two sides, where the guard holds of a set of the variables of a candidate.
func (s *search) agree(ctx context.Context, left, right *fgraph.Variable, c *candidate, set uint64) bool {
	guard := func(v *fgraph.Variable) bool { i := slices.Index(c.vars, v); return i >= 0 && set>>i&1 == 1 }
	var key uint64
	for i, v := range s.space.Leaves {
		if guard(v) {
			key |= 1 << i
		}
	}
	w := s.wide[key]
	if w == nil {
		w = &space{Ground: s.space.Wide(rand.New(rand.NewPCG(s.o.Seed, key+1)), guard)}
		s.wide[key] = w
	}
	for _, run := range w.Runs {
		if !w.agree(ctx, s.space.Leaves, run, left, right) {
			return false
		}
	}
	return true
}

// agree compares two sides for some values of variables. A left side that has no value agrees with any.
func (s *space) agree(ctx context.Context, vars []*fgraph.Variable, values []any, left, right *fgraph.Variable) bool {
	known := make(map[*fgraph.Variable]any)
	for i, v := range vars {
		known[v] = values[i]
	}
	l, err := s.compute(ctx, left, known)
	if err != nil {
		return true
	}
	r, err := s.compute(ctx, right, known)
	return err == nil && s.Same(l, r)
}

// accept checks candidates, and adds those that are rules. It reports whether one is none.
func (s *search) accept(ctx context.Context, chosen []*candidate) (refuted bool, err error) {
	if _, err = rulecheck.ForAll(chosen, func(c *candidate) (any, error) { return nil, s.judge(ctx, c) }); err != nil && ctx.Err() == nil {
		return false, err
	}
	for _, c := range chosen {
		if _, seen := s.verdict[c.text]; !seen && (c.found != nil || ctx.Err() == nil) {
			s.result.Checked++
			s.verdict[c.text] = c.found
			if c.found == nil {
				s.result.Refuted++
			}
			if c.found == nil && c.wrong != nil {
				s.known = append(s.known, c.wrong)
			}
		}
		f := s.verdict[c.text]
		if f == nil {
			refuted = true
			continue
		}
		if f.rule == nil {
			// Rules that differ by their guards or by the order of brackets need names, too.
			name := f.Rule.Name
			for n := 2; s.named[f.Rule.Name]; n++ {
				f.Rule.Name = fmt.Sprintf("%s_%d", name, n)
			}
			s.named[f.Rule.Name] = true
			if f.rule, err = compiled(s.d, f.Rule); err != nil {
				return false, err
			}
		}
		if !slices.Contains(s.rules, f.rule) {
			s.rules = append(s.rules, f.rule)
			s.result.Found = append(s.result.Found, *f)
			s.o.Found(f)
		}
	}
	return refuted, ctx.Err()
}
