package tune

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
)

// A Subject is what is tuned.
type Subject struct {
	// Dialects are those of its graphs.
	Dialects []string
	// Profile optimizes it, and returns what the optimizer did on its graphs.
	Profile func(ctx context.Context, opt *optdb.Optimizer) ([]*profile.Record, error)
	// Make optimizes it anew, and makes it ready to run.
	Make func(ctx context.Context, opt *optdb.Optimizer) (*Made, error)
	// Differ returns the largest difference between outputs, relative to their size: 0 for the same
	// bits, and +Inf where one is NaN, infinite or of another shape.
	Differ func(got, want any) float64
}

// A Made is a subject that one optimizer has optimized.
type Made struct {
	// Form is the same text for computations that are the same.
	Form string
	// Run computes the outputs, from inputs that are the same each time and for each Made.
	Run func(ctx context.Context) error
	// Outputs computes the outputs once, and returns them.
	Outputs func(ctx context.Context) (any, error)
	// Others computes the outputs of other inputs. It may be nil, or return nil if there are none.
	Others func(ctx context.Context) (any, error)
}

// Options say how a subject is tuned.
type Options struct {
	Database *optdb.SequenceDB
	// Query is the one to begin with.
	Query optdb.Query
	// Allow lists tags among [Promises] that choices may have. Without any, outputs keep their bits.
	Allow []string
	// Error is the most that outputs may differ from those of Query, if Allow has a tag.
	Error float64
	// Time is when the tuning ends, from its beginning, except for what can't be interrupted: optimizing
	// once, and a block of runs.
	Time time.Duration
	// Decided is called with each choice once it is decided. It may be nil.
	Decided func(*Finding)
}

// An Outcome is what became of a choice.
type Outcome string

// The outcomes.
const (
	Kept      Outcome = "kept"      // it pays
	Dropped   Outcome = "dropped"   // it does not pay
	Undecided Outcome = "undecided" // the time was over, or the difference is that between two copies
	Same      Outcome = "the same"  // the computation is that without the choice
	Different Outcome = "different" // outputs are
	Failed    Outcome = "failed"    // it can't be optimized or run
	Forbidden Outcome = "forbidden" // a tag would have to be allowed
	Idle      Outcome = "idle"      // the entry makes no rewrite here
	Untried   Outcome = "not tried" // the time was over before
)

// A Finding is what is known of a choice.
type Finding struct {
	*Choice
	Outcome Outcome
	Ratio   Ratio   // of the time with the choice to that without; no Blocks if nothing was measured
	Differs float64 // of outputs
	Err     error   // of Failed
}

// A Result is what tuning found.
type Result struct {
	// Query is the one to use: that of the options, or a better one.
	Query, Base optdb.Query
	Findings    []*Finding
	// Whole compares the tuned query with Base, with both made anew. It has no Blocks if no choice was
	// kept.
	Whole   Ratio
	Refused bool          // choices that were kept do not pay together, so Query is Base
	Run     time.Duration // the median time of a run under Base
	Differs float64       // of outputs under Query from those under Base
	// Blind says that outputs are the same for other inputs, as those of a network with parameters that
	// are zero: then they say nothing about what a choice changes.
	Blind bool
	Took  time.Duration
}

// A tuner is one run of Tune.
type tuner struct {
	Options
	*Subject
	end     time.Time
	best    optdb.Query
	current *Made // of best
	want    any   // the outputs under the query to begin with
	result  *Result
}

// whole is the part of the time that is kept for the comparison of the whole.
const whole = 0.15

// Tune tunes a subject.
func (o Options) Tune(ctx context.Context, s *Subject) (*Result, error) {
	begin := time.Now()
	t := &tuner{Options: o, Subject: s, best: o.Query, result: &Result{Query: o.Query, Base: o.Query}}
	defer func() { t.result.Took = time.Since(begin) }()
	t.end = begin.Add(time.Duration(float64(o.Time) * (1 - whole)))
	list, err := t.prepare(ctx)
	if err != nil {
		return nil, err
	}
	for i, f := range list {
		if f.Outcome == "" {
			if err := t.try(ctx, f, toTry(list[i:])); err != nil {
				return nil, err
			}
		}
		if o.Decided != nil && f.Outcome != Idle && f.Outcome != Forbidden {
			o.Decided(f)
		}
	}
	t.result.Findings = list
	if t.best.Equal(t.Query) {
		return t.result, nil
	}
	t.end = begin.Add(o.Time)
	return t.result, t.compareWhole(ctx)
}

// toTry counts the choices that have no outcome yet.
func toTry(list []*Finding) (n int) {
	for _, f := range list {
		if f.Outcome == "" {
			n++
		}
	}
	return n
}

// prepare makes the subject under the query to begin with, and lists what to try.
func (t *tuner) prepare(ctx context.Context) ([]*Finding, error) {
	opt, err := t.Database.Build(t.Query)
	if err != nil {
		return nil, err
	}
	records, err := t.Profile(ctx, opt)
	if err != nil {
		return nil, err
	}
	if t.current, err = t.Make(ctx, opt); err != nil {
		return nil, err
	}
	// Values decide what is kept, so they must be the same each time.
	if t.want, err = t.current.Outputs(ctx); err != nil {
		return nil, err
	}
	again, err := t.current.Outputs(ctx)
	if err != nil {
		return nil, err
	}
	if t.Differ(again, t.want) != 0 {
		return nil, errors.New("two runs have different outputs, so that no choice could be checked")
	}
	if t.current.Others != nil {
		others, err := t.current.Others(ctx)
		if err != nil {
			return nil, err
		}
		t.result.Blind = others != nil && t.Differ(others, t.want) == 0
	}
	// The time of a run is known before anything is tried, also if nothing will be.
	s := &side{run: t.current.Run}
	if err := s.warm(ctx); err != nil {
		return nil, err
	}
	var times []float64
	for range 5 {
		took, err := s.time(ctx)
		if err != nil {
			return nil, err
		}
		times = append(times, took.Seconds()/float64(s.repeats))
	}
	t.result.Run = time.Duration(median(times) * 1e9)
	var list []*Finding
	for _, c := range choices(t.Database, opt, t.Dialects, t.Allow, firings(records)) {
		f := &Finding{Choice: c}
		switch {
		case c.Fired == 0:
			f.Outcome = Idle
		case len(c.Asks) > 0:
			f.Outcome = Forbidden
		}
		list = append(list, f)
	}
	return list, nil
}

// try decides about a choice. left is how many are to be tried, this one included.
func (t *tuner) try(ctx context.Context, f *Finding, left int) error {
	now := time.Now()
	if !now.Before(t.end) {
		f.Outcome = Untried
		return nil
	}
	until := now.Add(t.end.Sub(now) / time.Duration(left))
	with := f.apply(t.best)
	made, outcome, err := t.check(ctx, with, f)
	if err != nil || outcome != "" {
		f.Outcome = outcome
		return err
	}
	// What most choices are, harmless or useless, is found out soon. So one that takes longer may take
	// what others have left, but not more than a half of it.
	most := max(time.Until(until), time.Until(t.end)/4)
	d, v, err := measure(ctx, t.current.Run, made.Run, most)
	if err != nil {
		return err
	}
	f.Ratio = d.ratio()
	switch v {
	case doesNotPay:
		f.Outcome = Dropped
		return nil
	case undecided:
		f.Outcome = Undecided
		return nil
	}
	// Two copies of one computation differ by where their memory lies. Both are made anew, in the other
	// order, so that a lucky copy does not make a choice.
	again, err := t.make(ctx, with)
	if err != nil {
		return err
	}
	current, err := t.make(ctx, t.best)
	if err != nil {
		return err
	}
	d2, v, err := measure(ctx, current.Run, again.Run, max(most, time.Until(t.end)/4))
	if err != nil {
		return err
	}
	d.ratios = append(d.ratios, d2.ratios...)
	if f.Ratio = d.ratio(); v != pays {
		f.Outcome = Undecided
		return nil
	}
	f.Outcome, t.best, t.current = Kept, with, again
	return nil
}

// make makes the subject under a query.
func (t *tuner) make(ctx context.Context, q optdb.Query) (*Made, error) {
	opt, err := t.Database.Build(q)
	if err != nil {
		return nil, err
	}
	return t.Make(ctx, opt)
}

// check makes the subject with a choice. It returns an outcome if there is nothing to measure: nothing
// is another computation, or it is a wrong one.
func (t *tuner) check(ctx context.Context, with optdb.Query, f *Finding) (*Made, Outcome, error) {
	var made *Made
	opt, err := t.Database.Build(with)
	if err == nil && opt.Pipeline() == t.pipeline() { // a tag that is excluded, or selects what is there
		return nil, Same, nil
	}
	if err == nil {
		made, err = t.Make(ctx, opt)
	}
	if err == nil && made.Form == t.current.Form {
		return nil, Same, nil
	}
	var got any
	if err == nil {
		got, err = made.Outputs(ctx)
	}
	if no := ctx.Err(); no != nil {
		return nil, "", context.Cause(ctx)
	}
	if err != nil { // it is not for this choice alone, and the others may be fine
		f.Err = err
		return nil, Failed, nil
	}
	if f.Differs = t.Differ(got, t.want); !(f.Differs <= t.tolerance()) {
		return nil, Different, nil
	}
	return made, "", nil
}

// pipeline returns the passes of the best query so far.
func (t *tuner) pipeline() string {
	opt, err := t.Database.Build(t.best)
	if err != nil {
		return ""
	}
	return opt.Pipeline()
}

// tolerance is the most that outputs may differ.
func (t *tuner) tolerance() float64 {
	if len(t.Allow) == 0 {
		return 0
	}
	return t.Error
}

// compareWhole compares all that was kept with the query to begin with, and drops it if it does not pay.
func (t *tuner) compareWhole(ctx context.Context) error {
	tuned, err := t.make(ctx, t.best)
	if err != nil {
		return err
	}
	base, err := t.make(ctx, t.Query)
	if err != nil {
		return err
	}
	got, err := tuned.Outputs(ctx)
	if err != nil {
		return err
	}
	r := t.result
	if r.Differs = t.Differ(got, t.want); !(r.Differs <= t.tolerance()) {
		return fmt.Errorf("the tuned computation has other outputs than the one to begin with: they differ by %.2g", r.Differs)
	}
	d, v, err := measure(ctx, base.Run, tuned.Run, max(time.Until(t.end), t.Time/20))
	if err != nil {
		return err
	}
	r.Whole, r.Run = d.ratio(), time.Duration(median(d.base)*1e9)
	if r.Refused = v != pays; !r.Refused {
		r.Query = t.best
	} else {
		r.Differs = 0
	}
	return nil
}
