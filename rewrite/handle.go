package rewrite

import (
	"context"
	"errors"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A Handle is how a [Global] changes its graph. Its replacements are validated and undone if a
// feature objects. They are attributed to the pass and to an apply, passed to [Options.Trace],
// subject to [Options.Allow], and counted.
//
// While [Run] runs a rewriter, this also holds for changes that it makes through the graph
// itself, except that these are not validated. A change that Allow forbids fails with an error
// that wraps [fgraph.ErrNotAllowed]. If the rewriter returns that error, Run does not treat it
// as a failure.
type Handle struct {
	ctx    context.Context
	g      *fgraph.FunctionGraph
	rec    *profile.Recorder
	pass   string
	watch  watching
	before fgraph.Times
	// Numbers of replacements that were made, that a feature objected to, and that were not
	// allowed.
	made, refused, denied int
	inVain                int // denied since the last replacement that was made
}

// newHandle returns the handle of a pass on its graph. The caller must call close.
func newHandle(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder, pass string) Handle {
	_, w := watch(ctx, g, pass)
	return Handle{ctx: ctx, g: g, rec: rec, pass: pass, before: g.Times(), watch: w}
}

// Replace makes replacements, all or none, on account of the apply n and in the name of a rule
// of the pass. n may be nil, and rule empty. It returns false if a feature objects or the
// replacements are not allowed. Any other failure is an error.
//
// When the context of the run is done, Replace fails with its cause and the name of the pass. So a pass
// that goes on until it gets its way can be interrupted. If [Options.Allow] has forbidden a million
// replacements in a row, as an exhausted [Budget] does, Replace fails with [fgraph.ErrNotAllowed], which
// ends the pass and not the run.
func (h *Handle) Replace(rule string, n *fgraph.Apply, pairs ...fgraph.Replacement) (done bool, err error) {
	if err := ended(h.ctx, h.pass); err != nil {
		return false, err
	}
	err = h.replace(rule, n, pairs, nil)
	switch {
	case err == nil:
		h.inVain = 0
		return true, nil
	case !errors.Is(err, fgraph.ErrInconsistent):
		return false, err
	case !errors.Is(err, fgraph.ErrNotAllowed):
		return false, nil
	}
	if h.inVain++; h.inVain > maxDenied {
		return false, err
	}
	return false, nil
}

// ReplacePart is [Handle.Replace] for a change below the variables that are replaced: a part of what
// computes them, part.Old, has become part.New. It is made on account of the apply of part.Old, and
// events show the part in place of the whole.
func (h *Handle) ReplacePart(rule string, part fgraph.Replacement, pairs ...fgraph.Replacement) (done bool, err error) {
	if w := h.watch.by; w != nil {
		w.part = part
		defer func() { w.part = fgraph.Replacement{} }()
	}
	return h.Replace(rule, part.Old.Owner(), pairs...)
}

// maxDenied is how often in a row a pass may try what is not allowed: half a second.
const maxDenied = 1_000_000

// replace is Replace with variables that must be gone afterwards.
func (h *Handle) replace(rule string, n *fgraph.Apply, pairs []fgraph.Replacement, remove []*fgraph.Variable) error {
	if h.watch.by != nil {
		h.watch.by.node = n
	}
	commits := h.g.Commits()
	err := h.g.ReplaceAllValidate(pairs, remove, fgraph.Reason{Pass: h.pass, Rule: rule})
	switch {
	case err == nil:
		if h.g.Commits() != commits {
			h.made++
		}
	case errors.Is(err, fgraph.ErrNotAllowed):
		h.denied++
	case vetoed(err):
		h.refused++
	}
	return err
}

// Whole runs do as one change, which may consist of many, or be a decision outside of the graph.
// [Options.Allow] and [Options.Trace] are called once for all of it. done reports whether it was
// allowed. Like [Handle.Replace], it fails when the context is done.
func (h *Handle) Whole(rule string, do func() error) (done bool, err error) {
	if err := ended(h.ctx, h.pass); err != nil {
		return false, err
	}
	w, why := h.watch.by, fgraph.Reason{Pass: h.pass, Rule: rule}
	// A whole change inside of another: it was allowed with the outer one, which will also be the
	// one that is traced.
	if w != nil && w.whole {
		w = nil // part of another change that was allowed as a whole
	}
	if w != nil {
		w.node = nil
		if !w.Allow(h.g, nil, why) {
			h.denied++
			return false, nil
		}
		// From here on the guard lets every change of the graph pass without asking or tracing.
		w.whole = true
		defer func() { w.whole = false }()
	}
	commits := h.g.Commits()
	err = do()
	if h.g.Commits() != commits {
		h.made++
	}
	if w != nil {
		w.whole = false
		w.Done(h.g, nil, why, err)
	}
	return true, err
}

// Graph returns the graph. Changes that are made through it, and not by [Handle.Replace], go on when the
// context is done: a pass that makes them asks its context.
func (h *Handle) Graph() *fgraph.FunctionGraph { return h.g }

// Recorder returns the record of the run, which may be nil. Replacements are recorded
// automatically.
func (h *Handle) Recorder() *profile.Recorder { return h.rec }

// Refused returns how many replacements features have objected to.
func (h *Handle) Refused() int { return h.refused }

// Denied returns how many replacements [Options.Allow] has forbidden.
func (h *Handle) Denied() int { return h.denied }

// close records the number of changes and the time spent in features.
func (h *Handle) close() {
	h.watch.end(h.g)
	h.rec.Changed(h.made)
	addTimes(h.rec, h.g, h.before)
	h.rec.Nodes(h.g.NumApplies())
}

// watching is the state of a graph that watch sets, and the state before.
type watching struct {
	by    *watcher // nil: no options ask for it
	outer fgraph.Guard
	pass  string
}

// watch sets the pass that changes the graph, and the guard that the options require. It returns
// a context with the snapshot that they require.
func watch(ctx context.Context, g *fgraph.FunctionGraph, pass string) (context.Context, watching) {
	ctx, opts := withSnapshot(ctx, g), optionsFrom(ctx)
	w := watching{pass: g.SetPass(pass), outer: g.SetGuard(nil)}
	if opts.Trace == nil && opts.Allow == nil {
		return ctx, w
	}
	// A pass inside of a pass keeps the watcher of the outer one, and so counts into the same
	// budget, unless it has options of its own.
	w.by, _ = w.outer.(*watcher)
	if w.by == nil || w.by.opts != opts && !w.by.whole {
		w.by = &watcher{opts: opts}
	}
	g.SetGuard(w.by)
	return ctx, w
}

// end restores the previous state.
func (w *watching) end(g *fgraph.FunctionGraph) {
	g.SetPass(w.pass)
	g.SetGuard(w.outer)
}

// A watcher is the guard that calls Options.Allow and Options.Trace.
type watcher struct {
	opts   *Options
	node   *fgraph.Apply      // the apply that the change concerns, nil if unknown
	part   fgraph.Replacement // what events show in place of the pairs, unless it is zero
	event  Event
	traces bool // event is to be traced
	whole  bool // the changes are part of one that was allowed as a whole
}

// Allow asks Options.Allow and prepares the event.
func (w *watcher) Allow(_ *fgraph.FunctionGraph, pairs []fgraph.Replacement, why fgraph.Reason) bool {
	if w.whole {
		return true
	}
	// The node is that of this change only. A change made through the graph itself, without the
	// handle, must not be attributed to the last one.
	n := w.node
	w.node = nil
	if w.opts.Allow != nil && !w.opts.Allow(why) {
		return false
	}
	if w.traces = w.opts.traces(why.Pass, why.Rule); w.traces {
		if n == nil && len(pairs) > 0 && pairs[0].Old != nil {
			n = pairs[0].Old.Owner()
		}
		w.event = newEvent(why.Pass, why.Rule, n, pairs)
		if w.part.Old != nil {
			w.event.Before, w.event.After = describe(w.part.Old), describe(w.part.New)
		}
	}
	return true
}

// Done traces the event.
func (w *watcher) Done(_ *fgraph.FunctionGraph, _ []fgraph.Replacement, _ fgraph.Reason, err error) {
	if w.whole || !w.traces {
		return
	}
	e := w.event
	w.traces, w.event = false, Event{}
	if err == nil || vetoed(err) {
		e.Err = err
		w.opts.Trace(e)
	}
}

// denied reports whether err only says that changes were not allowed.
func denied(err error) bool {
	for err != nil && err != fgraph.ErrNotAllowed {
		var list []error
		switch e := err.(type) {
		case interface{ Unwrap() []error }:
			list = e.Unwrap()
		case interface{ WrappedErrors() []error }:
			list = e.WrappedErrors()
		default:
			err = errors.Unwrap(err)
			continue
		}
		for _, e := range list {
			if !denied(e) {
				return false
			}
		}
		return len(list) > 0
	}
	return err != nil
}
