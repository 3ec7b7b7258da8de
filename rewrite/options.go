package rewrite

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
)

// Options concern a whole run of rewriters. They travel in the context, see
// [WithOptions]; the zero value is the default.
type Options struct {
	// OnFailure says what to do when a rewriter fails: returns an error,
	// proposes nonsense, panics, or does not come to an end.
	OnFailure Policy
	// Log gets the failures that do not stop the run. Nil is silence.
	Log *slog.Logger
	// Trace is called for every change that was made to a graph, be it by a
	// driver or by any other pass, and for those that a feature refused, which
	// have an Err.
	Trace func(Event)
	// TraceOnly, unless empty, lists the names of the passes and rules that
	// Trace and WhyNot want to hear of.
	TraceOnly []string
	// WhyNot is called when a rule says why it does not fire.
	WhyNot func(Miss)
	// Allow, unless nil, is asked once before every change; one that is not
	// allowed is not made. See [Budget] and [Handle.Whole].
	Allow func(why fgraph.Reason) bool
	// MaxUse, unless 0, replaces that of all drivers that have none of their
	// own.
	MaxUse float64
	// Reproduce, unless nil, gets every failure, also those that the run goes on
	// after, with the graph as it was before the pass. To have that, the graph
	// is printed before each pass: set it to repeat a run that failed, rather
	// than always.
	Reproduce func(Failure)
	// Query is the text of the query that selected what runs. An
	// optdb.Optimizer sets it when there is none.
	Query string
	// Check makes [Sequence] check and validate the graph after each member.
	Check bool
	// BeforePass, unless nil, is called before each member of the outermost
	// [Sequence], which ends when the answer is false.
	BeforePass func(pass string) bool
}

// A Policy says what becomes of a failure.
type Policy uint8

// The policies. Whatever a driver goes on with is a graph on which the failed
// rewrite was not made.
const (
	Stop   Policy = iota // the run ends with the error
	Warn                 // the error is logged and the run goes on
	Ignore               // the run goes on
)

// An Event is a rewrite that was made or refused.
type Event struct {
	Pass, Rule string
	Apply      *fgraph.Apply        // what the rule was shown, or else what is replaced first
	Pairs      []fgraph.Replacement // none if the change was of another kind
	Before     string               // what is replaced
	After      string               // what it is replaced with
	Err        error                // why the rewrite was refused, nil if it was made
}

// A Miss says why a rule did not fire.
type Miss struct {
	Pass, Rule string
	Apply      *fgraph.Apply
	Text       string
}

type optionsKey struct{}

// WithOptions returns a context that carries the options.
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

// noOptions is what holds where nobody has set anything. It is only read.
var noOptions Options

type passKey struct{}

// WithPass returns a context for the rewriter of a name, which stands in what
// the rewriter reports. A [Sequence] does this for its members.
func WithPass(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, passKey{}, name)
}

// passFrom returns the name that the context carries, or else one of the
// alternatives that is not empty.
func passFrom(ctx context.Context, alternatives ...string) string {
	if name, ok := ctx.Value(passKey{}).(string); ok && name != "" {
		return name
	}
	for _, a := range alternatives {
		if a != "" {
			return a
		}
	}
	return ""
}

// Budget returns a function for [Options.Allow] that allows the first n rewrites
// of a run and no more. Two runs whose budgets differ by one differ by one
// rewrite: that is how to find the one that does harm. The function counts, so
// that it serves one run and one goroutine.
func Budget(n int) func(fgraph.Reason) bool {
	return func(fgraph.Reason) bool {
		n--
		return n >= 0
	}
}

// TraceTo returns a function for [Options.Trace] that writes a line for every
// event.
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

// fail applies the policy to err: it returns it, or logs it and returns nil.
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

// newEvent describes replacements, as they are about to be made.
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

// describe prints three levels of what a variable is computed from.
func describe(v *fgraph.Variable) string {
	s := fgraph.Sprint(3, v)
	return s[1 : len(s)-1]
}
