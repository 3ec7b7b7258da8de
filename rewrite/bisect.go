package rewrite

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
)

// A Culprit is what [Bisect] blames.
type Culprit struct {
	// Pass is the pass that makes the result wrong, and Rule the rule in it. Rule is empty
	// if the pass has no rules, or if a change of the graph is not the cause.
	Pass, Rule string
	// Node is the apply that the rule was shown, Before the replaced expression and After
	// its replacement. They are empty for a change made as a whole.
	Node, before, After string
	// Number counts the rewrites that were allowed up to this one, which is the last one with
	// a [Budget] of that number. It is 0 if a pass is to blame.
	Number int
}

// String returns the pass, the rule and the rewrite.
func (c Culprit) String() string {
	switch {
	case c.Pass == "":
		return "no pass"
	case c.before == "" && c.Rule == "":
		return "pass " + c.Pass
	case c.before == "":
		return fgraph.Reason{Pass: c.Pass, Rule: c.Rule}.String()
	}
	return fmt.Sprintf("%v: %s -> %s", fgraph.Reason{Pass: c.Pass, Rule: c.Rule}, c.before, c.After)
}

// Bisect finds a rewrite that makes a result wrong. The function right must be deterministic: it
// starts from an unoptimized graph, runs rewriters with the given context, and reports whether
// the result is right. Bisect finds a rewrite, or else a pass, such that the result is wrong
// with it and right without it. There may be more than one. For n rewrites it calls right about
// log n times. It returns false if the result is right, or wrong even without any pass.
func Bisect(ctx context.Context, right func(context.Context) bool) (Culprit, bool) {
	b := bisection{ctx: ctx, opts: OptionsFrom(ctx), right: right}
	// Right with everything: there is nothing to find.
	if b.run(-1, -1) {
		return Culprit{}, false
	}
	// Wrong with all rewrites and right with none: some number n is the first that makes it wrong.
	// Halving finds one such n even if the result is right again in between, since the ends of the
	// interval always differ.
	if all := b.rewrites; b.run(0, -1) {
		// The run that told was not necessarily the last one.
		n := first(0, all, func(n int) bool { return b.run(n, -1) })
		b.run(n, -1)
		b.last.Number = n
		return b.last, true
	}
	// Wrong even without any rewrite: a pass does harm in another way, such as by a panic or by
	// what it decides outside of the graph. So whole passes are left out.
	if all := len(b.passes); b.run(0, 0) {
		n := first(0, all, func(n int) bool { return b.run(0, n) })
		b.run(0, n)
		return Culprit{Pass: b.passes[n-1]}, true
	}
	return Culprit{}, false
}

// first returns an n that is wrong while n-1 is right, given that lo is right and hi is wrong.
func first(lo, hi int, right func(int) bool) int {
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; right(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// A bisection is one call of Bisect.
type bisection struct {
	ctx   context.Context
	opts  Options
	right func(context.Context) bool

	// Results of the last run.
	rewrites int // number of rewrites made or denied
	last     Culprit
	passes   []string
}

// run reports whether the result is right with the first rewrites and passes; -1 means all.
func (b *bisection) run(rewrites, passes int) bool {
	b.rewrites, b.last, b.passes = 0, Culprit{}, nil
	o := b.opts
	o.Allow = func(why fgraph.Reason) bool {
		b.rewrites++
		if rewrites >= 0 && b.rewrites > rewrites {
			return false
		}
		b.last = Culprit{Pass: why.Pass, Rule: why.Rule} // Trace is not called if it fails
		return true
	}
	o.TraceOnly = nil
	o.Trace = func(e Event) {
		if e.Err != nil {
			return
		}
		b.last = Culprit{Pass: e.Pass, Rule: e.Rule, before: e.Before, After: e.After}
		if e.Apply != nil {
			b.last.Node = e.Apply.String()
		}
	}
	o.BeforePass = func(pass string) bool {
		if passes >= 0 && len(b.passes) >= passes {
			return false
		}
		b.passes = append(b.passes, pass)
		return true
	}
	return b.right(WithOptions(b.ctx, o))
}
