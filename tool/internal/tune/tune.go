package tune

import (
	"context"
	"errors"
	"runtime"
	"slices"
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
	// Run computes the outputs, from inputs that are the same each time and for each Made, on the
	// goroutine that calls it.
	Run func(ctx context.Context) error
	// Outputs computes the outputs once, and returns them.
	Outputs func(ctx context.Context) (any, error)
	// Others computes the outputs of other inputs. It may be nil, or return nil if there are none.
	Others func(ctx context.Context) (any, error)

	turn *side // for measurements
}

// side returns the side of measurements that runs it.
func (m *Made) side(c *clock) *side {
	if m.turn == nil {
		m.turn = &side{clock: c, run: m.Run}
	}
	return m.turn
}

// Options say how a subject is tuned.
type Options struct {
	Database *optdb.SequenceDB
	// Query is the one to begin with.
	Query optdb.Query
	// Allow lists tags among [Promises] that choices may have. Without any, outputs keep their bits.
	Allow []string
	// Error is the most that outputs may differ from those of Query by choices with tags that are allowed.
	Error float64
	// Time is when the tuning ends, from its beginning, except for what can't be interrupted: optimizing
	// once, and a block of runs.
	Time time.Duration
	// Decided is called with each choice once it is decided. It may be nil.
	Decided func(*Finding)

	clock *clock // nil for that of the system
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
	Differs float64 // of outputs from those to begin with, for a choice that changes them
	Err     error   // of Failed
	As      string  // the term of another choice that makes the same computation, whose figures these are

	duel    duel // what has been measured
	against int  // how many choices had been kept by then
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
	current *Made               // of best
	want    *outputs            // under the query to begin with
	have    *outputs            // under best
	kept    int                 // choices
	forms   map[string]*Finding // that have been measured against best
	result  *Result
}

// outputs are those of the inputs that are run, and those of others, or nil. Choices are checked with
// both: what they change may show in one of them only.
type outputs struct{ own, others any }

// outputs computes the outputs of what was made.
func (m *Made) outputs(ctx context.Context) (*outputs, error) {
	o := new(outputs)
	var err error
	if o.own, err = m.Outputs(ctx); err == nil && m.Others != nil {
		o.others, err = m.Others(ctx)
	}
	return o, err
}

// differ returns how much outputs differ.
func (t *tuner) differ(got, want *outputs) float64 {
	d := t.Differ(got.own, want.own)
	if got.others != nil && want.others != nil && d == d {
		if e := t.Differ(got.others, want.others); !(e <= d) {
			d = e
		}
	}
	return d
}

// whole is the part of the time that is kept for the comparison of the whole.
const whole = 0.15

// Tune tunes a subject.
func (o Options) Tune(ctx context.Context, s *Subject) (*Result, error) {
	if o.clock == nil {
		o.clock = systemClock()
	}
	// The time of a thread is that of the runs only if they stay on it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := o.clock.now()
	t := &tuner{Options: o, Subject: s, best: o.Query, result: &Result{Query: o.Query, Base: o.Query}}
	defer func() { t.result.Took = o.clock.now().Sub(begin) }()
	t.end = begin.Add(time.Duration(float64(o.Time) * (1 - whole)))
	list, err := t.prepare(ctx)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(list); i++ {
		f := list[i]
		if f.Outcome == "" {
			if err := t.try(ctx, f, toTry(list[i:])); err != nil {
				return nil, err
			}
			// What was added has settings of its own, and makes other entries useful or useless.
			if f.Outcome == Kept && f.Fired < 0 {
				more, err := t.list(ctx, list)
				if err != nil {
					return nil, err
				}
				list = append(list, more...)
			}
		}
		t.tell(f)
	}
	if err := t.again(ctx, list); err != nil {
		return nil, err
	}
	t.result.Findings = list
	if t.best.Equal(t.Query) {
		return t.result, nil
	}
	t.end = begin.Add(o.Time)
	return t.result, t.compareWhole(ctx)
}

// tell passes a finding on.
func (t *tuner) tell(f *Finding) {
	if t.Decided != nil && f.Outcome != Idle && f.Outcome != Forbidden {
		t.Decided(f)
	}
}

// again gives what is undecided the time that is left, in rounds: with both sides made anew in each, since
// two copies of one computation may differ by where their memory lies.
func (t *tuner) again(ctx context.Context, list []*Finding) error {
	for range mostRounds {
		var open []*Finding
		for _, f := range list {
			if f.Outcome == Undecided && f.As == "" && f.Ratio.Blocks < mostBlocks {
				open = append(open, f)
			}
		}
		for i, f := range open {
			if !t.clock.now().Before(t.end) {
				return nil
			}
			if err := t.try(ctx, f, len(open)-i); err != nil {
				return err
			}
			if f.Outcome != Undecided {
				t.tell(f)
			}
		}
	}
	return nil
}

// mostRounds bounds the rounds for what is undecided. What needs more is worth next to nothing.
const mostRounds = 4

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
	if t.want, err = t.current.outputs(ctx); err != nil {
		return nil, err
	}
	again, err := t.current.outputs(ctx)
	if err != nil {
		return nil, err
	}
	if t.differ(again, t.want) != 0 {
		return nil, errors.New("two runs have different outputs, so that no choice could be checked")
	}
	t.have, t.forms = t.want, make(map[string]*Finding)
	t.result.Blind = t.want.others != nil && t.Differ(t.want.others, t.want.own) == 0
	// The time of a run is known before anything is tried, also if nothing will be.
	s := t.current.side(t.clock)
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
	return t.listed(opt, records, nil), nil
}

// list lists what can be tried under the best query, besides what is known.
func (t *tuner) list(ctx context.Context, known []*Finding) ([]*Finding, error) {
	opt, err := t.Database.Build(t.best)
	if err != nil {
		return nil, err
	}
	records, err := t.Profile(ctx, opt)
	if err != nil {
		return nil, err
	}
	return t.listed(opt, records, known), nil
}

// listed lists what can be tried for an optimizer, besides what is known, in the order of the database.
func (t *tuner) listed(opt *optdb.Optimizer, records []*profile.Record, known []*Finding) (list []*Finding) {
	for _, c := range choices(t.Database, opt, t.Dialects, t.Allow, firings(records)) {
		if slices.ContainsFunc(known, func(f *Finding) bool { return f.Term == c.Term || f.undoneBy(c) }) {
			continue
		}
		f := &Finding{Choice: c}
		switch {
		case c.Fired == 0:
			f.Outcome = Idle
		case len(c.Asks) > 0:
			f.Outcome = Forbidden
		}
		list = append(list, f)
	}
	return list
}

// undoneBy reports whether a choice leaves out what this one has added.
func (f *Finding) undoneBy(c *Choice) bool { return f.Term[0] == '+' && c.Term == "-"+f.Term[1:] }
