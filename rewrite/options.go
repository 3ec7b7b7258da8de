package rewrite

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// Options apply to a whole run of rewriters. They travel in the context, see [WithOptions]. The
// zero value is the default.
type Options struct {
	// OnFailure is the policy for a rewriter that returns an error, makes an invalid
	// proposal, panics, or does not terminate.
	OnFailure Policy
	// Log receives failures that do not stop the run. It may be nil.
	Log *slog.Logger
	// Trace is called for every change that a driver or another pass made, and for every
	// change that a feature refused; the latter has an Err.
	Trace func(Event)
	// Steps asks passes that make a change at once, but can explain it, for its steps. They also make
	// steps if there is a Trace or an Allow.
	Steps bool
	// TraceOnly, unless empty, lists the passes and rules for which Trace and WhyNot are
	// called.
	TraceOnly []string
	// WhyNot is called when a rule says why it does not fire.
	WhyNot func(Miss)
	// AskAll makes drivers ask every rule that tracks an op, although a [Sifter] might exclude
	// it, as they do if WhyNot is set. The result is the same.
	AskAll bool
	// Allow, unless nil, is called once before every change, and forbids it by returning
	// false. See [Budget] and [Handle.Whole].
	Allow func(why fgraph.Reason) bool
	// MaxUse, unless 0, is the default of all drivers.
	MaxUse float64
	// Reproduce, unless nil, receives every failure, including those that do not stop the
	// run, with the graph as it was before the pass. This copies the graph before every
	// pass, so set it only to repeat a failed run.
	Reproduce func(Failure)
	// Query is the text of the query that selected the rewriters. An optdb.Optimizer sets it
	// if it is empty.
	Query string
	// Check makes [Sequence] check and validate the graph after each member.
	Check bool
	// BeforePass, unless nil, is called before each member of the outermost [Sequence], and
	// ends the sequence by returning false.
	BeforePass func(pass string) bool
	// Observe, unless nil, is called before the outermost rewriter of each run, and may attach
	// features that record the run. Run calls the function that it returns at the end.
	Observe func(g *fgraph.FunctionGraph, rec *profile.Recorder) (end func(), err error)
}

// A Policy is the treatment of failures.
type Policy uint8

// The policies. If the run continues, the graph is as if the failed rewrite had not been
// attempted.
const (
	Stop   Policy = iota // the run ends with the error
	Warn                 // the run logs the error and continues
	Ignore               // the run continues
)

// An Event is a rewrite that was made or refused.
type Event struct {
	Pass, Rule string
	Apply      *fgraph.Apply        // the apply that the rule was shown, or the first replaced one
	Pairs      []fgraph.Replacement // empty for a change of another kind
	Before     string               // the replaced expressions
	After      string               // their replacements
	Err        error                // the objection, or nil if the rewrite was made
}

// A Miss says why a rule did not fire.
type Miss struct {
	Pass, Rule string
	Apply      *fgraph.Apply
	Text       string
}

type optionsKey struct{}

// WithOptions returns a context that carries the options.
//
// They travel in the context because they are for the rewriters of this package at any depth, and
// pass through rewriters that know nothing of them: passes of other modules that run passes inside,
// drivers, saturation. An argument would be one more parameter of every Apply and Rewrite, which
// most implementations only pass on; a field of the graph would outlive the run.
func WithOptions(ctx context.Context, o Options) context.Context {
	return context.WithValue(ctx, optionsKey{}, &o)
}

// OptionsFrom returns the options that the context carries.
func OptionsFrom(ctx context.Context) Options { return *optionsFrom(ctx) }

func optionsFrom(ctx context.Context) *Options {
	if o, ok := ctx.Value(optionsKey{}).(*Options); ok {
		return o
	}
	return &noOptions
}

// noOptions is the default. It is read-only.
var noOptions Options

type passKey struct{}

// withPass returns a context that names the rewriter it is passed to, in errors, events and
// reasons. A [Sequence] uses it for its members.
func withPass(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, passKey{}, name)
}

// passFrom returns the name that the context carries, or else the first non-empty alternative.
func passFrom(ctx context.Context, alternatives ...string) string {
	if name, ok := ctx.Value(passKey{}).(string); ok && name != "" {
		return name
	}
	return cmp.Or(alternatives...)
}

// Budget returns a function for [Options.Allow] that allows the first n rewrites of a run. Two
// runs whose budgets differ by one differ by one rewrite, which helps to find a wrong one. The
// function counts: use it for one run on one goroutine.
func Budget(n int) func(fgraph.Reason) bool {
	return func(fgraph.Reason) bool {
		n--
		return n >= 0
	}
}

// TraceTo returns a function for [Options.Trace] that writes a line to w for every event.
func TraceTo(w io.Writer) func(Event) {
	return func(e Event) {
		switch {
		case e.Err == nil && len(e.Pairs) == 0:
			fmt.Fprintf(w, "rewriting: %s\n", e.reason())
			return
		case e.Err != nil:
			fmt.Fprintf(w, "refused: %s: %s: %v\n", e.reason(), e.Before, e.Err)
			return
		}
		fmt.Fprintf(w, "rewriting: %s: %s -> %s\n", e.reason(), e.Before, e.After)
	}
}

func (e Event) reason() fgraph.Reason { return fgraph.Reason{Pass: e.Pass, Rule: e.Rule} }

func (o *Options) traces(pass, rule string) bool { return o.Trace != nil && o.wants(pass, rule) }

func (o *Options) wants(pass, rule string) bool {
	return len(o.TraceOnly) == 0 || slices.Contains(o.TraceOnly, pass) || slices.Contains(o.TraceOnly, rule)
}

// fail applies the policy to err: it returns err, or logs it and returns nil.
func (o *Options) fail(ctx context.Context, err *Error) error {
	reproduce(ctx, err)
	switch o.OnFailure {
	case Stop:
		return err
	case Warn:
		if o.Log != nil {
			o.Log.Warn("rewriter failed", "pass", err.Pass, "rule", err.Rule, "node", err.Node, "error", err.Err)
		}
	}
	return nil
}

// newEvent describes replacements that are about to be made.
func newEvent(pass, rule string, n *fgraph.Apply, pairs []fgraph.Replacement) Event {
	e := Event{Pass: pass, Rule: rule, Apply: n, Pairs: slices.Clone(pairs)}
	before, after := make([]string, 0, len(pairs)), make([]string, 0, len(pairs))
	for i, p := range pairs {
		const most = 8
		if i == most {
			before, after = append(before, "…"), append(after, "…")
			break
		}
		before, after = append(before, describe(p.Old)), append(after, describe(p.New))
	}
	e.Before, e.After = strings.Join(before, ", "), strings.Join(after, ", ")
	return e
}

// describe prints a variable with three levels of applies.
func describe(v *fgraph.Variable) string { return fgraph.Text(3, v) }
