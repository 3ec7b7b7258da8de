package tune_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/tune"
)

// stub is a pass that does nothing: what it is worth, the subject below knows.
type stub struct{ size string }

func (stub) AddRequirements(*fgraph.FunctionGraph) error                           { return nil }
func (stub) Apply(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil }
func (stub) Describe() rewrite.Description                                         { return rewrite.Description{Class: "Stub"} }
func (s stub) Settings() []rewrite.Setting {
	return []rewrite.Setting{{Name: "size", Value: s.size, Default: "4", Doc: "of something"}}
}
func (s stub) Configured(_, value string) (rewrite.Configurable, error) { return stub{value}, nil }

// database has passes that make a run slower or quicker by that many parts of a millisecond.
func database(t *testing.T) *optdb.SequenceDB {
	t.Helper()
	db := optdb.NewSequenceDB("stubs")
	for i, e := range []struct{ name, tags string }{
		{"good", "fast_run"},       // quicker with it
		{"bad", "fast_run"},        // slower with it
		{"idle", "fast_run"},       // makes no rewrite
		{"useless", "fast_run"},    // makes a rewrite, and the same computation
		{"wrong", "fast_run"},      // outputs are others without it
		{"extra", "more"},          // quicker with it
		{"unneeded", "more"},       // slower with it
		{"sums", "reassoc"},        // quicker with it, and outputs differ
		{"twin", "twins"},          // the same computation as with unneeded
		{"broken", "rare"},         // can't be optimized
		{"far", "unsafe_nan rare"}, // outputs differ by much
	} {
		if err := db.Add(optdb.Entry{Name: e.name, Rewriter: stub{"4"}, Doc: e.name, Position: float64(i), Tags: strings.Fields(e.tags)}); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// clock is a time that passes only while something runs.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// subject takes time of a clock. Outputs of other inputs differ by other.
func subject(c *clock, other float64) *tune.Subject {
	return &tune.Subject{
		Profile: func(_ context.Context, opt *optdb.Optimizer) ([]*profile.Record, error) {
			root := &profile.Record{Name: "root"}
			for _, e := range opt.Outline() {
				r := &profile.Record{Name: e.Name, Changed: 1}
				if e.Name == "idle" {
					r.Changed = 0
				}
				root.Children = append(root.Children, r)
			}
			return []*profile.Record{root}, nil
		},
		Make: func(_ context.Context, opt *optdb.Optimizer) (*tune.Made, error) {
			took, form, output := 18*time.Millisecond, "", 1.0
			by := func(name string, d time.Duration) {
				if opt.Selected(name) {
					took += d
					form += name + " "
				}
			}
			by("good", -6*time.Millisecond)
			by("bad", 6*time.Millisecond)
			by("extra", -3*time.Millisecond)
			by("unneeded", 4*time.Millisecond)
			if opt.Selected("twin") {
				took += 4 * time.Millisecond
				form += "unneeded "
			}
			by("sums", -3*time.Millisecond)
			by("wrong", 0)
			by("far", -2*time.Millisecond)
			if opt.Selected("broken") {
				return nil, errors.New("it is broken")
			}
			for _, s := range opt.Settings("good") {
				form += s.Value
				if s.Value == "8" {
					took -= 2 * time.Millisecond
				}
			}
			switch {
			case !opt.Selected("wrong"):
				output = 2
			case opt.Selected("far"):
				output = 1.5
			case opt.Selected("sums"):
				output = 1 + 1e-6
			}
			return &tune.Made{
				Form: form,
				Run: func(context.Context) error {
					c.at = c.at.Add(took)
					return nil
				},
				Outputs: func(context.Context) (any, error) { return output, nil },
				Others:  func(context.Context) (any, error) { return output + other, nil },
			}, nil
		},
		Differ: func(got, want any) float64 { return max(got.(float64)-want.(float64), want.(float64)-got.(float64)) },
	}
}

// outcomes returns what became of each choice.
func outcomes(r *tune.Result) map[string]tune.Outcome {
	list := make(map[string]tune.Outcome)
	for _, f := range r.Findings {
		list[f.Term] = f.Outcome
	}
	return list
}

func TestTune(t *testing.T) {
	c := new(clock)
	var decided []string
	o := tune.Options{Database: database(t), Query: optdb.Include("fast_run"), Time: 20 * time.Second, Decided: func(f *tune.Finding) { decided = append(decided, f.Term) }}
	r, err := o.WithClock(c.now).Tune(t.Context(), subject(c, 1))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Query.String(), "+fast_run +extra -bad good{size=8}"; got != want {
		t.Errorf("the query is %s, want %s", got, want)
	}
	got := outcomes(r)
	for term, want := range map[string]tune.Outcome{
		"+extra": tune.Kept, "+unneeded": tune.Dropped, "+sums": tune.Forbidden, "+broken": tune.Failed, "+more": tune.Dropped, "+rare": tune.Forbidden,
		"+twin": tune.Dropped, "extra{size=8}": tune.Same, // the setting of what was added
		"-good": tune.Dropped, "-bad": tune.Kept, "-idle": tune.Idle, "-useless": tune.Same, "-wrong": tune.Different, "good{size=8}": tune.Kept,
	} {
		if got[term] != want {
			t.Errorf("%s: %q, want %s", term, got[term], want)
		}
	}
	if r.Whole.Blocks == 0 || r.Whole.High >= 1 || r.Differs != 0 || r.Refused {
		t.Errorf("the whole: %+v", r)
	}
	for _, f := range r.Findings {
		if f.Term == "+twin" && f.As != "+unneeded" {
			t.Errorf("the twin was measured by itself: %v", f)
		}
	}
	if slices.Contains(decided, "-idle") || !slices.Contains(decided, "-good") {
		t.Errorf("decided: %v", decided)
	}

	// What is written is the query again.
	var b strings.Builder
	if err := r.Write(&b, "a stub"); err != nil {
		t.Fatal(err)
	}
	q, err := optdb.ParseQueryFile("tuned", b.String())
	if err != nil || !q.Equal(r.Query) {
		t.Errorf("read back as %s, %v:\n%s", q, err, b.String())
	}
	for _, want := range []string{"# a stub\n", "+extra    ", "# Changes outputs:\n#   -wrong ", "it is broken", "reassoc: +sums, +reassoc\n", "outputs have the same bits"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("nothing about %q:\n%s", want, b.String())
		}
	}

	// A tuned query has nothing left to find, but what its terms are worth.
	o.Query, o.Decided = r.Query, nil
	again, err := o.WithClock(c.now).Tune(t.Context(), subject(c, 1))
	if err != nil || !again.Query.Equal(r.Query) {
		t.Errorf("tuned again, it is %s, %v", again.Query, err)
	}
}

func TestTuneAllowed(t *testing.T) {
	c := new(clock)
	o := tune.Options{Database: database(t), Query: optdb.Include("fast_run").Excluding("bad"), Allow: []string{"reassoc", "unsafe_nan"}, Error: 1e-4, Time: 20 * time.Second}
	r, err := o.WithClock(c.now).Tune(t.Context(), subject(c, 1))
	if err != nil {
		t.Fatal(err)
	}
	got := outcomes(r)
	if got["+sums"] != tune.Kept || got["+far"] != tune.Different || !(r.Differs > 0 && r.Differs < 1e-4) {
		t.Errorf("%v, %v", got, r.Differs)
	}
	if _, ok := got["+bad"]; ok {
		t.Error("what the query excludes was tried")
	}
}

// TestTunePromise: what a tag allows one choice to change, the others may not, and outputs of other inputs
// count, too.
func TestTunePromise(t *testing.T) {
	c := new(clock)
	o := tune.Options{Database: database(t), Query: optdb.Include("fast_run").Excluding("bad"), Allow: []string{"reassoc"}, Error: 10, Time: 20 * time.Second}
	s := subject(c, 1)
	build := s.Make
	s.Make = func(ctx context.Context, opt *optdb.Optimizer) (*tune.Made, error) {
		made, err := build(ctx, opt)
		if err == nil && opt.Selected("extra") {
			made.Others = func(context.Context) (any, error) { return 7.5, nil }
		}
		return made, err
	}
	r, err := o.WithClock(c.now).Tune(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	got := outcomes(r)
	for term, want := range map[string]tune.Outcome{"+sums": tune.Kept, "-wrong": tune.Different, "+extra": tune.Different, "-useless": tune.Same} {
		if got[term] != want {
			t.Errorf("%s: %q, want %s", term, got[term], want)
		}
	}
}

func TestTuneWithoutTime(t *testing.T) {
	c := new(clock)
	o := tune.Options{Database: database(t), Query: optdb.Include("fast_run"), Time: 1}
	r, err := o.WithClock(c.now).Tune(t.Context(), subject(c, 1))
	if err != nil || !r.Query.Equal(o.Query) || outcomes(r)["-bad"] != tune.Untried || r.Blind {
		t.Errorf("%v, %v", r, err)
	}
	// Outputs that do not depend on inputs check nothing.
	var b strings.Builder
	if r, err = o.WithClock(c.now).Tune(t.Context(), subject(c, 0)); err != nil || !r.Blind || r.Write(&b) != nil || !strings.Contains(b.String(), "# WARNING: outputs are the same") {
		t.Errorf("%v, %v: %s", r, err, b.String())
	}
}

func TestTuneFaults(t *testing.T) {
	c := new(clock)
	o := tune.Options{Database: database(t), Query: optdb.Include("fast_run"), Time: 20 * time.Second}
	random := subject(c, 1)
	n := 0.0
	random.Differ = func(any, any) float64 { n++; return n }
	if _, err := o.WithClock(c.now).Tune(t.Context(), random); err == nil || !strings.Contains(err.Error(), "two runs have different outputs") {
		t.Errorf("outputs at random: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, made := subject(c, 1), 0
	build := s.Make
	s.Make = func(ctx context.Context, opt *optdb.Optimizer) (*tune.Made, error) {
		if made++; made == 3 {
			cancel()
		}
		return build(ctx, opt)
	}
	if _, err := o.WithClock(c.now).Tune(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	o.Query = optdb.Include("fast_run").Including("broken")
	if _, err := o.WithClock(c.now).Tune(t.Context(), subject(c, 1)); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a query that fails: %v", err)
	}
}
