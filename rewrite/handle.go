package rewrite

import (
	"context"
	"errors"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A Handle is how a [Global] changes its graph. What it replaces is validated,
// and undone if a feature objects; it is attributed to the pass and to the apply
// that it concerns, told to [Options.Trace], asked of [Options.Allow], and
// counted.
//
// What a rewriter changes without a handle, through the graph itself, is
// attributed, told, asked and counted as well while [Run] runs it, but not
// validated. Where Allow is against it, it gets an error that wraps
// [fgraph.ErrNotAllowed]; if it ends with that, Run takes it for the end of its
// work rather than for a failure.
type Handle struct {
	g      *fgraph.FunctionGraph
	rv     *fgraph.ReplaceValidate
	rec    *profile.Recorder
	pass   string
	watch  watching
	before fgraph.Times
	// Replacements that were made, that a feature objected to, and that were
	// not allowed.
	made, refused, denied int
}

// newHandle returns the handle of a pass on its graph. The name is for a pass to
// which nobody has given another one, see [WithPass]. The caller calls close at
// the end.
func newHandle(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder, name string) (*Handle, error) {
	h := &Handle{g: g, rec: rec, pass: passFrom(ctx, name), before: g.Times()}
	if err := h.open(ctx); err != nil {
		return nil, err
	}
	return h, nil
}

// open attaches what replacements are made through, and looks who is watching.
func (h *Handle) open(ctx context.Context) error {
	if err := requireReplaceValidate(h.g); err != nil {
		return &Error{Pass: h.pass, Err: err}
	}
	h.rv, _ = fgraph.FeatureOf[*fgraph.ReplaceValidate](h.g)
	h.watch = watch(optionsFrom(ctx), h.g, h.pass)
	return nil
}

// Replace makes replacements, all or none, on account of an apply and in the name
// of a rule of the pass; n may be nil, and rule empty. It reports whether it did:
// a feature may have objected, or it was not allowed. Whatever else keeps it from
// it is an error.
func (h *Handle) Replace(rule string, n *fgraph.Apply, pairs ...fgraph.Replacement) (done bool, err error) {
	if err := h.replace(rule, n, pairs, nil); err != nil {
		if errors.Is(err, fgraph.ErrInconsistent) {
			return false, nil
		}
		return false, err
	}
	return true, nil
}

// replace is Replace where remove must be gone afterwards.
func (h *Handle) replace(rule string, n *fgraph.Apply, pairs []fgraph.Replacement, remove []*fgraph.Variable) error {
	if h.watch.by != nil {
		h.watch.by.node = n
	}
	commits := h.g.Commits()
	err := h.rv.ReplaceAllValidateRemove(pairs, remove, fgraph.Reason{Pass: h.pass, Rule: rule})
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

// Whole does something that has to be done as a whole, or that is decided beside
// the graph: it is asked and told of once, whatever it changes. It reports
// whether it was allowed.
func (h *Handle) Whole(rule string, do func() error) (done bool, err error) {
	w, why := h.watch.by, fgraph.Reason{Pass: h.pass, Rule: rule}
	if w != nil && w.whole {
		w = nil // a part of something that was asked about
	}
	if w != nil {
		w.node = nil
		if !w.Allow(h.g, nil, why) {
			h.denied++
			return false, nil
		}
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

// Graph returns the graph.
func (h *Handle) Graph() *fgraph.FunctionGraph { return h.g }

// Recorder returns what records the run, which may be nil. What is replaced is
// recorded by itself.
func (h *Handle) Recorder() *profile.Recorder { return h.rec }

// Refused returns how many replacements features objected to.
func (h *Handle) Refused() int { return h.refused }

// close records what was changed, and the time that features took.
func (h *Handle) close() {
	h.watch.end(h.g)
	h.rec.Changed(h.made)
	addTimes(h.rec, h.g, h.before)
	h.rec.Nodes(h.g.NumApplies())
}

// watching is who is to blame and who watched before something took over.
type watching struct {
	by      *watcher // nil: nobody watches
	outer   fgraph.Guard
	changer string
}

// watch says which pass changes the graph from now on, and lets the options watch.
func watch(opts *Options, g *fgraph.FunctionGraph, pass string) watching {
	w := watching{changer: g.SetPass(pass)}
	w.outer = g.SetGuard(nil)
	if opts.Trace == nil && opts.Allow == nil {
		return w
	}
	w.by, _ = w.outer.(*watcher)
	if w.by == nil || w.by.opts != opts && !w.by.whole {
		w.by = &watcher{opts: opts}
	}
	g.SetGuard(w.by)
	return w
}

// end gives back what watch took over.
func (w *watching) end(g *fgraph.FunctionGraph) {
	g.SetPass(w.changer)
	g.SetGuard(w.outer)
}

// A watcher is the guard that asks Options.Allow and tells Options.Trace.
type watcher struct {
	opts   *Options
	node   *fgraph.Apply // what the change concerns, nil if nobody says so
	event  Event
	traces bool // event is to be told
	whole  bool // what is going on was asked about, and will be told, as a whole
}

// Allow asks, and notes what there is to tell.
func (w *watcher) Allow(_ *fgraph.FunctionGraph, pairs []fgraph.Replacement, why fgraph.Reason) bool {
	if w.whole {
		return true
	}
	if w.opts.Allow != nil && !w.opts.Allow(why) {
		w.node = nil
		return false
	}
	if w.traces = w.opts.traces(why.Pass, why.Rule); w.traces {
		n := w.node
		if n == nil && len(pairs) > 0 && pairs[0].Old != nil {
			n = pairs[0].Old.Owner()
		}
		w.event = newEvent(why.Pass, why.Rule, n, pairs)
	}
	w.node = nil
	return true
}

// Done tells.
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

// denied reports whether an error says nothing but that changes were not allowed.
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
