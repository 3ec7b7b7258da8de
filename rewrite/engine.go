package rewrite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// checkEvery is how many applies a driver visits between two checks of the context.
const checkEvery = 256

// engine is the common part of all drivers of node rewriters: it shows an apply to rules and
// makes the replacements that they propose.
type engine struct {
	Handle
	opts     *Options
	fns      []transformFunc
	rules    []ruleState
	counters [][]profile.Counter // by Context.Count, for each rule; nil: nothing is recorded
	asker    asker
	tally    tally
	changes  changes
	c        Context
	pairs    []fgraph.Replacement
	limit    *limit // may be nil
	stopped  bool   // by the limit
	visits   int
	proposed bool // the last rule proposed something
}

// ruleState has the counters of a rule in one run of a driver.
type ruleState struct {
	applied int
	refused int
	created int
	time    time.Duration
}

// newEngine prepares a run of rules over g. set may be nil or made of other rules. The caller
// must call close.
func newEngine(ctx context.Context, pass string, set *ruleSet, rules []NodeRewriter, g *fgraph.FunctionGraph, rec *profile.Recorder) (*engine, error) {
	// A driver that was not prepared, or whose rules were changed since, analyzes them here, for
	// this run alone.
	if !set.is(rules) {
		var err error
		if set, err = newRuleSet(rules); err != nil {
			return nil, &Error{Pass: pass, Err: err}
		}
	}
	e := &engine{Handle: newHandle(ctx, g, rec, pass), opts: optionsFrom(ctx)}
	e.c = Context{ctx: ctx, g: g, opts: e.opts, pass: pass}
	e.fns = set.begin(e.opts, g)
	e.asker = newAsker(set, e.opts, g, false)
	e.rules = e.asker.memory.rules
	if rec.Enabled() {
		e.tally, e.counters = tally{make([]int, len(set.lists)), make(map[stop]int)}, make([][]profile.Counter, len(rules))
	}
	if err := g.Attach(&e.changes); err != nil {
		e.watch.end(g)
		return nil, &Error{Pass: pass, Err: err}
	}
	return e, nil
}

// close detaches the feature that newEngine attached and records the counters.
func (e *engine) close() {
	e.g.Detach(&e.changes)
	e.watch.end(e.g)
	// The memory of a run is left to the next one last: until here it is read.
	defer func() { e.asker.spare.Store(e.asker.memory) }()
	if !e.rec.Enabled() {
		return
	}
	attempts := e.tally.attempts(e.asker.ruleSet)
	for i := range e.rules {
		r := &e.rules[i]
		e.rec.AddRule(profile.RuleRecord{Name: e.asker.names[i], Attempts: attempts[i], Applied: r.applied,
			Refused: r.refused, Created: r.created, Time: r.time, Counters: e.counters[i]})
		e.rec.Changed(r.applied)
	}
	addTimes(e.rec, e.g, e.before)
	e.rec.Nodes(e.g.NumApplies())
}

// visit shows n to the rules that track its op until one of them fires, except those that a sieve
// excludes. It returns the index of the rule that fired, or -1.
func (e *engine) visit(n *fgraph.Apply) (int, error) {
	e.visits++
	// Asking a context costs a lock, showing an apply to rules often less.
	if e.visits%checkEvery == 0 {
		if err := ended(e.c.ctx, e.pass); err != nil {
			return -1, err
		}
	}
	list, ask := e.asker.rulesFor(n)
	// Attempts are counted by list, as if each rule of it had been asked: what a sieve leaves out
	// is an attempt that costs nothing, and the profile is the same with and without.
	e.tally.visit(list)
	for len(ask) > 0 {
		asked, fired, err := e.try(ask, n)
		if fired || err != nil {
			e.tally.stop(list, ask[asked])
			return ask[asked], err
		}
		// try returns after a rule whose failure the options tolerate. The rules behind it still have
		// their turn.
		ask = ask[asked+1:]
	}
	return -1, nil
}

// try shows n to rules until one fires or fails, and returns the index of the last one in ask. It
// treats failures according to the options.
func (e *engine) try(ask []int, n *fgraph.Apply) (asked int, fired bool, err error) {
	asked, fired, err = e.fire(ask, n)
	i := ask[asked]
	if err != nil {
		return asked, false, e.opts.fail(e.c.ctx, &Error{Pass: e.pass, Rule: e.asker.names[i], place: e.asker.places[i], Node: n.String(), Err: err})
	}
	if fired && e.limit != nil {
		if err := e.limit.exceeded(e.asker.names[i], e.asker.places[i], &e.rules[i]); err != nil {
			e.stopped = true
			return asked, true, e.opts.fail(e.c.ctx, &Error{Pass: e.pass, Err: err})
		}
	}
	return asked, fired, nil
}

// fire shows n to rules until one fires or fails, and makes the replacements that it proposes. It
// returns the index of the last rule in ask. It turns a panic of a rule or a feature into an error
// and leaves the graph unchanged then.
func (e *engine) fire(ask []int, n *fgraph.Apply) (asked int, fired bool, err error) {
	start := e.rec.Elapsed() // by a clock that is read once, not twice as time.Now does
	// One recover for all rules at an apply, not one for each: deferring is a good part of the cost
	// of a rule that declines.
	defer func() {
		if p := recover(); p != nil {
			e.g.Thaw()
			fired, err = false, newPanic(p)
		}
		e.rules[ask[asked]].time += e.rec.Elapsed() - start
	}()
	e.c.node = n
	for at, i := range ask {
		asked = at
		if fired, err = e.attempt(i, n); fired || err != nil {
			break
		}
		// The clock is read once between two rules, and the last one is measured by the deferred
		// call.
		if at+1 < len(ask) && e.rec.Enabled() {
			now := e.rec.Elapsed()
			e.rules[i].time += now - start
			start = now
		}
	}
	return asked, fired, err
}

// attempt shows n to a rule and makes the replacements that it proposes.
func (e *engine) attempt(i int, n *fgraph.Apply) (fired bool, err error) {
	r := &e.rules[i]
	e.c.rule = e.asker.names[i]
	if e.counters != nil {
		e.c.counters = &e.counters[i]
	}
	e.proposed = false
	// A rule proposes and does not change, or a refused proposal could not be undone. Freezing
	// makes an attempt an error that names the rule.
	e.g.Freeze()
	res, err := e.fns[i](&e.c, n)
	if e.g.Thaw() {
		return false, fmt.Errorf("%w: its function tries to change the graph itself, which is left to the driver", ErrRule)
	}
	if err != nil {
		return false, err
	}
	if res.Empty() {
		if len(res.Remove) > 0 {
			return false, fmt.Errorf("%w: something to remove, but no replacement", ErrRule)
		}
		return false, nil
	}
	e.proposed = true
	// A rule that proposes what is there already has not fired. If that counted as fired, an equilibrium
	// would not end.
	if err := e.collect(n, res); err != nil || len(e.pairs) == 0 {
		return false, err
	}
	return e.make(r, n, res.Remove)
}

// make makes the replacements in e.pairs in the name of the rule that was asked last.
func (e *engine) make(r *ruleState, n *fgraph.Apply, remove []*fgraph.Variable) (done bool, err error) {
	// Events are printed graphs, too expensive for each rewrite: only the last ones before the
	// limit are kept, from which the error shows the cycle.
	var ev Event
	if e.limit != nil && e.limit.logs(r) {
		ev = newEvent(e.pass, e.c.rule, n, e.pairs)
	}
	e.changes.clear()
	refused := e.refused
	// Refused: features or remove objected, and the graph is as it was. That is a rule that did not
	// fire, unless the error is of another kind.
	if err = e.replace(e.c.rule, n, e.pairs, remove); err != nil {
		e.changes.clear()
		r.refused += e.refused - refused
		if !vetoed(err) {
			return false, faulty(err)
		}
		return false, nil
	}
	r.applied++
	// What replaces n inherits the place in the source that it came from, so that errors and
	// pictures of later passes can still name it.
	for _, a := range e.changes.imported {
		if e.g.Contains(a) {
			r.created++
			if a.Origin() < 0 {
				a.SetOrigin(n.Origin())
			}
		}
	}
	if e.limit != nil {
		e.limit.log(ev, e.g.NumApplies())
	}
	return true, nil
}

// collect sets e.pairs to the proposed replacements, except those of a variable by itself or by
// a copy.
func (e *engine) collect(n *fgraph.Apply, res Result) error {
	e.pairs = e.pairs[:0]
	if len(res.Outputs) > 0 && len(res.Pairs) > 0 {
		return fmt.Errorf("%w: both outputs and pairs", ErrRule)
	}
	for _, p := range res.Pairs {
		if p.Old == nil || p.New == nil {
			return fmt.Errorf("%w: a pair with a nil variable", ErrRule)
		}
		if p.Old != p.New && p.Old.Graph() == e.g && len(p.Old.Clients()) > 0 {
			e.pairs = append(e.pairs, p)
		}
	}
	if len(res.Outputs) == 0 {
		return nil
	}
	outs := n.Outputs()
	if len(res.Outputs) != len(outs) {
		return fmt.Errorf("%w: %d outputs for an apply that has %d", ErrRule, len(res.Outputs), len(outs))
	}
	for i, v := range res.Outputs {
		switch {
		case v == nil && len(outs[i].Clients()) > 0:
			return fmt.Errorf("%w: no replacement for output %d, which is used", ErrRule, i)
		case v != nil && v != outs[i] && len(outs[i].Clients()) > 0 && !e.copies(v, outs[i]):
			e.pairs = append(e.pairs, fgraph.Replacement{Old: outs[i], New: v})
		}
	}
	return nil
}

// copies reports whether v is outside of the graph but computed like w. Replacing w with v would
// change nothing, over and over.
func (e *engine) copies(v, w *fgraph.Variable) bool {
	a, b := v.Owner(), w.Owner()
	return a != nil && b != nil && !e.g.Contains(a) && v.Index() == w.Index() && v.Type() == w.Type() &&
		slices.Equal(a.Inputs(), b.Inputs()) && fgraph.CheckOp(a.Op()) == nil && fgraph.OpsEqual(a.Op(), b.Op())
}

// changes is the feature that tells a driver what a replacement did. Its lists cover everything
// since clear, including changes that were undone.
type changes struct {
	queue    *queue // told about applies that leave, may be nil
	imported []*fgraph.Apply
	changed  []*fgraph.Apply    // with a changed input
	lost     []*fgraph.Variable // with fewer clients
}

func (c *changes) OnAttach(*fgraph.FunctionGraph) error { return nil }

func (c *changes) OnImport(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	c.imported = append(c.imported, a)
}

func (c *changes) OnPrune(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	if c.queue != nil {
		c.queue.drop(a)
		c.lost = append(c.lost, a.Inputs()...)
	}
}

func (c *changes) OnChangeInput(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ int, old, _ *fgraph.Variable, _ fgraph.Reason) {
	if c.queue == nil {
		return
	}
	if a != nil {
		c.changed = append(c.changed, a)
	}
	if old != nil {
		c.lost = append(c.lost, old)
	}
}

func (c *changes) clear() {
	c.imported, c.changed, c.lost = c.imported[:0], c.changed[:0], c.lost[:0]
}
