package fgraph

import (
	"cmp"
	"fmt"
	"slices"
)

// DestroyHandler is the feature that makes in-place ops safe.
//
// It knows from [Viewer] which variables share memory, and from [Destroyer] which of them are
// overwritten. Every other reader of overwritten memory must come before the apply that
// overwrites it; the handler adds these orderings to the topological sort. The graph is invalid
// if
//
//   - such an ordering closes a cycle,
//   - two applies destroy the same memory,
//   - the memory belongs to a constant, to an input that may not be destroyed, or
//     to a variable protected by [Supervise],
//   - an output of the graph shows the memory,
//   - the destroying apply reads the memory through another input, and its op is not
//     an [AliasTolerator] that allows this,
//   - an op destroys an input twice, or an output is listed as several views.
//
// As long as nothing is destroyed, the handler only records views. After that it maintains a
// topological order that includes its own orderings. Validation examines only what changed since
// the graph was last valid: applies that destroy, new readers of what they destroy, and the part
// of the order that a new edge contradicts.
type DestroyHandler struct {
	hidden
	permits   func(*Variable) bool // see NewDestroyHandler
	permitted func(*Variable) bool // whether an input may be overwritten; nil: none may
	g         *FunctionGraph
	aliases   aliases
	order     order
	active    bool // order is maintained: something has destroyed something
	attaching bool // order contains all applies from the start

	dirty     []*Apply    // destroyers to be validated
	isDirty   []bool      // by number
	readers   []Client    // readers of destroyed memory, to be ordered
	behind    []*Apply    // scratch: readers that come after their destroyer
	late      []edge      // edges of the graph that contradict the order
	unlinked  []*Variable // views that would have closed a cycle of views
	malformed []*Apply
}

// DestroyPermitter is implemented by features that decide which inputs of their graph may be
// overwritten.
type DestroyPermitter interface {
	Destroyable(input *Variable) bool
}

// NewDestroyHandler returns the feature for one graph. The function destroyable reports whether
// an input of the graph may be overwritten. If it is nil, the first [DestroyPermitter] of the
// graph decides; without one, no input may.
func NewDestroyHandler(destroyable func(*Variable) bool) *DestroyHandler {
	h := &DestroyHandler{permits: destroyable}
	h.Feature = (*destroyCallbacks)(h)
	return h
}

// WatchDestroyers attaches a [DestroyHandler] to g unless there is one. A [DestroyPermitter] of
// g decides which inputs may be overwritten. If g already destroys something unsafely,
// WatchDestroyers attaches nothing and returns the objection, which names the apply and who
// brought it in.
func WatchDestroyers(g *FunctionGraph) error {
	if g.handled {
		return nil
	}
	// Attaching validates nothing by itself, because a graph may be built with features first. Here
	// the graph is complete, so destroyers that were there before must be judged now: later
	// validations look at changes only.
	h := NewDestroyHandler(nil)
	if err := g.Attach(h); err != nil {
		return err
	}
	err := h.validate()
	if err != nil {
		g.Detach(h)
	}
	return err
}

// HasDestroyer reports whether an apply destroys v itself, as opposed to an alias of it.
func (h *DestroyHandler) HasDestroyer(v *Variable) bool {
	e := h.aliases.known(v)
	if e == nil {
		return false
	}
	for r := h.aliases.groups[e.group].first; r != none; r = h.aliases.recs[r].next {
		if h.aliases.recs[r].v == v.id {
			return true
		}
	}
	return false
}

// DestroyedBy returns the applies that overwrite memory of v, by increasing number. In a valid
// graph there is at most one, unless they overwrite disjoint regions.
func (h *DestroyHandler) DestroyedBy(v *Variable) []*Apply {
	h.relink()
	var found []*Apply
	h.eachDestroyer(v, func(d destruction) {
		if !slices.Contains(found, d.a) {
			found = append(found, d.a)
		}
	})
	slices.SortFunc(found, func(a, b *Apply) int { return cmp.Compare(a.id, b.id) })
	return found
}

// root returns the variable that v is a direct or indirect view of, or v itself.
func (h *DestroyHandler) root(v *Variable) *Variable {
	h.relink()
	if e := h.aliases.known(v); e != nil {
		return h.g.variables[h.aliases.groups[e.group].root]
	}
	return v
}

// shared reports whether u and v may share memory.
func (h *DestroyHandler) shared(u, v *Variable) bool {
	h.relink()
	if u == v {
		return true
	}
	eu, ev := h.aliases.known(u), h.aliases.known(v)
	return eu != nil && ev != nil && eu.group == ev.group && h.aliases.overlap(u.id, v.id)
}

// MayDestroy reports whether overwriting v is worth trying: its memory is neither protected, nor
// already destroyed, nor shown by an output of the graph. Validation finds out whether all
// readers can come first.
func (h *DestroyHandler) MayDestroy(v *Variable) bool {
	h.relink()
	return !h.overwritten(v) && h.claim(v) == nil
}

// overwritten reports whether an apply overwrites memory of v.
func (h *DestroyHandler) overwritten(v *Variable) bool {
	e := h.aliases.known(v)
	if e == nil {
		return false
	}
	for r := h.aliases.groups[e.group].first; r != none; r = h.aliases.recs[r].next {
		if h.aliases.overlap(h.aliases.recs[r].v, v.id) {
			return true
		}
	}
	return false
}

// MayOverwrite reports whether op, if it replaced the op of a, could overwrite input i, provided
// that [DestroyHandler.MayDestroy] allows it: op must tolerate the other inputs that are aliases
// of it, and all other readers of the memory must be able to come before. The answer is that of
// validation, without making and undoing a replacement. Inputs that share no memory and may be
// overwritten one by one may be overwritten together.
func (h *DestroyHandler) MayOverwrite(a *Apply, i int, op Op) bool {
	h.relink()
	v := a.inputs[i]
	// The two cheap answers first: memory without elements harms no one, and a value with a single
	// client and no alias has no reader that could be late.
	if e := h.aliases.known(v); e != nil {
		if r, whole := h.aliases.region(v.id); !whole && r.empty() {
			return true
		}
	} else if len(v.clients) == 1 {
		return true // there is no other reader
	}
	if h.aliasedInput(a, i, op) >= 0 {
		return false
	}
	// The order with the edges of destroyers is needed even if nothing destroys yet, because the
	// question is whether readers can move ahead of a. Moving them changes no result: the order
	// stays a topological one.
	h.activate()
	h.aliases.at(v)
	return h.unavoidableReader(&destruction{a: a, v: v.id, i: int32(i)}) == nil
}

// claim returns why memory of v must never be overwritten in the current graph, or nil.
func (h *DestroyHandler) claim(v *Variable) error {
	if root := h.root(v); root.IsConstant() {
		return fmt.Errorf("it is memory of the constant %v", root)
	} else if root.owner == nil && (h.permitted == nil || !h.permitted(root)) {
		return fmt.Errorf("it is memory of %v, an input that may not be destroyed", root)
	}
	// Outputs are counted by group, so the walk over all aliases happens only if one of them is an
	// output or a feature supervises some.
	outs := h.aliases.at(v).outs
	if e := h.aliases.known(v); e != nil {
		outs = h.aliases.groups[e.group].outs
	}
	_, supervised := FeatureOf[*supervisor](h.g)
	if outs == 0 && !supervised {
		return nil
	}
	var bad error
	h.eachAlias(v, func(w *Variable) bool {
		switch {
		case h.aliases.at(w).outs > 0:
			bad = fmt.Errorf("it is memory of %v, an output of the graph", w)
		case supervised && h.supervised(w):
			bad = fmt.Errorf("it is memory of %v, which is protected", w)
		}
		return bad == nil
	})
	return bad
}

// supervised reports whether a feature made by [Supervise] protects v.
func (h *DestroyHandler) supervised(v *Variable) bool {
	return slices.ContainsFunc(h.g.features, func(f Feature) bool {
		s, ok := f.(*supervisor)
		return ok && s.set[v]
	})
}

// eachDestroyer calls do for every destruction of memory of v.
func (h *DestroyHandler) eachDestroyer(v *Variable, do func(destruction)) {
	e := h.aliases.known(v)
	if e == nil {
		return
	}
	for r := h.aliases.groups[e.group].first; r != none; r = h.aliases.recs[r].next {
		if d := h.aliases.recs[r]; h.aliases.overlap(d.v, v.id) {
			do(d)
		}
	}
}

// eachAlias calls do for v and the variables that share memory with it, until do returns false.
func (h *DestroyHandler) eachAlias(v *Variable, do func(*Variable) bool) {
	e := h.aliases.known(v)
	if e == nil {
		do(v)
		return
	}
	for w := h.aliases.walk(h.aliases.groups[e.group].root); !w.done; w.step(&h.aliases) {
		if h.aliases.overlap(w.at, v.id) && !do(h.aliases.of[w.at].v) {
			return
		}
	}
}
