package rewrite

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
)

// A Culprit is what [Bisect] blames.
type Culprit struct {
	// Pass is the pass that does harm, and Rule the rule in it. Rule is empty if
	// the pass has no rules, or does the harm by something else than changes of
	// the graph.
	Pass, Rule string
	// Node is what the rule was shown, and Before and After are what it replaced, and
	// with what. They are empty if something was decided as a whole.
	Node, Before, After string
}

// String says who is to blame.
func (c Culprit) String() string {
	switch {
	case c.Pass == "":
		return "no pass"
	case c.Before == "":
		return "pass " + c.Pass
	}
	return fmt.Sprintf("%v: %s -> %s", fgraph.Reason{Pass: c.Pass, Rule: c.Rule}, c.Before, c.After)
}

// Bisect finds the rewrite that does harm. right does everything anew, from a
// graph that is not optimized, and in the same way every time: it runs rewriters
// with the context it is given, and reports whether the result is right. What is
// found is a rewrite, or else a pass, without which the result is right and with
// which it is not; there may be more of them. Bisect calls right about log n times
// for n rewrites. It reports false if the result is right, or wrong without
// any pass.
func Bisect(ctx context.Context, right func(context.Context) bool) (Culprit, bool) {
	b := bisection{ctx: ctx, opts: OptionsFrom(ctx), right: right}
	if b.run(-1, -1) {
		return Culprit{}, false
	}
	if all := b.rewrites; b.run(0, -1) {
		b.run(first(0, all, func(n int) bool { return b.run(n, -1) }), -1)
		return b.last, true
	}
	if all := len(b.passes); b.run(0, 0) {
		n := first(0, all, func(n int) bool { return b.run(0, n) })
		b.run(0, n)
		return Culprit{Pass: b.passes[n-1]}, true
	}
	return Culprit{}, false
}

// first returns a number from which on things are wrong, given that they are
// right with lo and wrong with hi.
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

	// What the last run did.
	rewrites int // how many it made or would have made
	last     Culprit
	passes   []string
}

// run reports whether the result is right with so many rewrites and passes; -1
// stands for all.
func (b *bisection) run(rewrites, passes int) bool {
	b.rewrites, b.last, b.passes = 0, Culprit{}, nil
	o := b.opts
	o.Allow = func(why fgraph.Reason) bool {
		b.rewrites++
		return rewrites < 0 || b.rewrites <= rewrites
	}
	o.TraceOnly = nil
	o.Trace = func(e Event) {
		if e.Err != nil {
			return
		}
		b.last = Culprit{Pass: e.Pass, Rule: e.Rule, Before: e.Before, After: e.After}
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
