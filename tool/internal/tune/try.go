package tune

import (
	"context"
	"fmt"
	"time"

	"github.com/nnopt/nnopt/optdb"
)

// try decides about a choice. left is how many are to be tried, this one included.
func (t *tuner) try(ctx context.Context, f *Finding, left int) error {
	now := t.clock.now()
	if !now.Before(t.end) {
		if f.Outcome == "" {
			f.Outcome = Untried
		}
		return nil
	}
	if f.duel.clock == nil || f.against != t.kept { // another query was the best
		f.duel, f.against = duel{clock: t.clock}, t.kept
	}
	until := now.Add(t.end.Sub(now) / time.Duration(left))
	with := f.apply(t.best)
	made, outcome, err := t.check(ctx, with, f)
	if err != nil || outcome != "" {
		f.Outcome = outcome
		return err
	}
	if twin := t.forms[made.Form]; twin != nil && twin != f {
		f.Outcome, f.Ratio, f.As = twin.Outcome, twin.Ratio, twin.Term
		return nil
	}
	t.forms[made.Form] = f
	// What most choices are, harmless or useless, is found out soon. So one that takes longer may take
	// what others have left, but not more than a half of it.
	most := max(until.Sub(t.clock.now()), t.end.Sub(t.clock.now())/4)
	v, err := t.decide(ctx, &f.duel, t.current, made, most)
	if err != nil {
		return err
	}
	f.Ratio = f.duel.ratio()
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
	second := duel{clock: t.clock, again: true}
	v, err = t.decide(ctx, &second, current, again, max(most, t.end.Sub(t.clock.now())/4))
	if err != nil {
		return err
	}
	f.duel.ratios = append(f.duel.ratios, second.ratios...)
	if f.Ratio = f.duel.ratio(); v != pays {
		f.Outcome = Undecided
		// The copy of the best may have been the unlucky one, to which all others would be compared.
		if median(second.base) < median(f.duel.base) {
			t.current = current
		}
		return nil
	}
	if t.have, err = again.outputs(ctx); err != nil {
		return err
	}
	f.Outcome, t.best, t.current = Kept, with, again
	t.kept++
	clear(t.forms)
	return nil
}

// decide measures until it is decided which of two is quicker, or a time is over. What probably pays gets
// more: to find one such choice is worth more than to be sure that many others do nothing.
func (t *tuner) decide(ctx context.Context, d *duel, first, second *Made, most time.Duration) (verdict, error) {
	v, err := d.measure(ctx, first.side(t.clock), second.side(t.clock), most)
	if err != nil || v != undecided {
		return v, err
	}
	if r := d.ratio(); r.High < 1 && r.Median <= 1-Worth && r.Blocks < mostBlocks {
		v, err = d.measure(ctx, first.side(t.clock), second.side(t.clock), t.end.Sub(t.clock.now())/2)
	}
	return v, err
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
	var got *outputs
	if err == nil {
		got, err = made.outputs(ctx)
	}
	if no := ctx.Err(); no != nil {
		return nil, "", context.Cause(ctx)
	}
	if err != nil { // it is not for this choice alone, and the others may be fine
		f.Err = err
		return nil, Failed, nil
	}
	// What promises the same bits is compared with the best so far, which may have others than the query to
	// begin with.
	if !f.Changes {
		if d := t.differ(got, t.have); d != 0 {
			f.Differs = d
			return nil, Different, nil
		}
		return made, "", nil
	}
	if f.Differs = t.differ(got, t.want); !(f.Differs <= t.tolerance()) {
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
	got, err := tuned.outputs(ctx)
	if err != nil {
		return err
	}
	r := t.result
	if r.Differs = t.differ(got, t.want); !(r.Differs <= t.tolerance()) {
		return fmt.Errorf("the tuned computation has other outputs than the one to begin with: they differ by %.2g", r.Differs)
	}
	d := duel{clock: t.clock, again: true}
	v, err := d.measure(ctx, base.side(t.clock), tuned.side(t.clock), max(t.end.Sub(t.clock.now()), t.Time/20))
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
