package fgraph

import (
	"fmt"
	"slices"
)

// DestroyHandler is the feature that makes ops safe which destroy their inputs.
//
// It knows from [Viewer] which variables share memory and from [Destroyer] which
// of them are overwritten. Everything that reads the memory has to come before
// the apply that overwrites it: these orderings are added to the topological
// sort. Validate objects where that cannot be, or where it would not do: when an
// ordering closes a cycle, when memory is destroyed twice, when it belongs to a
// constant, to a protected variable or to an input that may not be destroyed,
// when an output of the graph shows it, and when the apply that destroys it
// reads it through another of its inputs, unless it is an [AliasTolerator]. An
// op that destroys an input more than once, or lists an output with several
// views, is refused as well.
//
// As long as nothing destroys anything the cost is that of noting views. From
// then on the handler keeps a topological order with its own orderings beside
// that of the graph, and validating looks only at what changed since the graph
// was last found to be in order: at applies that destroy, at what was added to
// the readers of what they destroy, and at the stretch of the order between a
// new edge that goes against it.
type DestroyHandler struct {
	opts DestroyOptions
	// permitted reports whether an input may be overwritten, nil: none may.
	permitted func(*Variable) bool
	g         *FunctionGraph
	aliases   aliases
	order     order
	active    bool // order is kept up: something has destroyed something
	// attaching is set while the graph is taken stock of: order then has all
	// applies as soon as it is active.
	attaching bool

	dirty     []*Apply    // destroyers to be looked at
	isDirty   []bool      // by number
	readers   []Client    // uses of memory that is destroyed, to be put in order
	behind    []*Apply    // scratch: readers that come after their destroyer
	late      []edge      // edges of the graph against the order
	unlinked  []*Variable // views that would have closed a cycle of views
	malformed []*Apply
}

// DestroyOptions say what a [DestroyHandler] protects. The zero value protects
// all inputs.
type DestroyOptions struct {
	// Destroyable reports whether an input of the graph may be overwritten. If
	// it is nil, a feature of the graph that is a [DestroyPermitter] is asked.
	Destroyable func(*Variable) bool
	// Protected reports whether a variable must not be overwritten although
	// nothing else speaks against it.
	Protected func(*Variable) bool
}

// DestroyPermitter is implemented by features that say which inputs of their
// graph may be overwritten.
type DestroyPermitter interface {
	Destroyable(input *Variable) bool
}

// NewDestroyHandler returns the feature for one graph.
func NewDestroyHandler(opts DestroyOptions) *DestroyHandler { return &DestroyHandler{opts: opts} }

// WatchDestroyers attaches a [DestroyHandler] for which a [DestroyPermitter] of
// the graph speaks, unless there is one. If what the graph destroys already is not
// safe, it returns the objection, which names the apply and who brought it in,
// and attaches nothing.
func WatchDestroyers(g *FunctionGraph) error {
	if g.handled {
		return nil
	}
	h := NewDestroyHandler(DestroyOptions{})
	if err := g.Attach(h); err != nil {
		return err
	}
	err := h.Validate(g)
	if err != nil {
		g.Detach(h)
	}
	return err
}

// OnAttach takes stock of g, but does not object to what it finds: see
// [WatchDestroyers]. A second DestroyHandler is dropped quietly.
func (h *DestroyHandler) OnAttach(g *FunctionGraph) error {
	if _, ok := FeatureOf[*DestroyHandler](g); ok {
		return ErrAlreadyAttached
	}
	if err := servesOne(h.g, g); err != nil {
		return err
	}
	*h = DestroyHandler{opts: h.opts, g: g, permitted: h.opts.Destroyable}
	if h.permitted == nil {
		if p, ok := FeatureOf[DestroyPermitter](g); ok {
			h.permitted = p.Destroyable
		}
	}
	h.order.init(destroyEdges{h})
	h.aliases.expect = g.NumVariableIDs()
	h.attaching = true
	for _, v := range g.outputs {
		h.aliases.use(v, 1)
	}
	Bookkeep(g, h)
	h.attaching = false
	return nil
}

// OnDetach forgets everything.
func (h *DestroyHandler) OnDetach(*FunctionGraph) { *h = DestroyHandler{opts: h.opts} }

// HasDestroyers reports whether anything in the graph is destroyed.
func (h *DestroyHandler) HasDestroyers() bool { return h.aliases.live > 0 }

// HasDestroyer reports whether an apply destroys v itself, as opposed to an
// alias of it.
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

// Destroyers returns the applies that overwrite memory of v, at most one in a
// graph that validates unless they overwrite different regions.
func (h *DestroyHandler) Destroyers(v *Variable) []*Apply {
	h.relink()
	var found []*Apply
	h.eachDestroyer(v, func(d destruction) {
		if !slices.Contains(found, d.a) {
			found = append(found, d.a)
		}
	})
	slices.SortFunc(found, func(a, b *Apply) int { return int(a.id) - int(b.id) })
	return found
}

// Destroyer returns the first of the applies that overwrite memory of v, or nil.
func (h *DestroyHandler) Destroyer(v *Variable) *Apply {
	if d := h.Destroyers(v); len(d) > 0 {
		return d[0]
	}
	return nil
}

// Root returns the variable that v is a view of, by way of others, or v itself.
func (h *DestroyHandler) Root(v *Variable) *Variable {
	h.relink()
	if e := h.aliases.known(v); e != nil {
		return h.g.variables[h.aliases.groups[e.group].root]
	}
	return v
}

// Shared reports whether u and v may share memory.
func (h *DestroyHandler) Shared(u, v *Variable) bool {
	h.relink()
	if u == v {
		return true
	}
	eu, ev := h.aliases.known(u), h.aliases.known(v)
	return eu != nil && ev != nil && eu.group == ev.group && h.aliases.overlap(u.id, v.id)
}

// MayDestroy reports whether it is worth trying to overwrite v: its memory is
// neither protected, nor destroyed already, nor shown by an output of the graph.
// Whether everything that reads it can come first is for Validate to find out.
func (h *DestroyHandler) MayDestroy(v *Variable) bool {
	h.relink()
	return !h.overwritten(v) && h.claim(v) == nil
}

// overwritten reports whether anything overwrites memory of v.
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

// claim returns why memory of v must not be overwritten whatever else happens in
// the graph, or nil.
func (h *DestroyHandler) claim(v *Variable) error {
	if root := h.Root(v); root.IsConstant() {
		return fmt.Errorf("it is memory of the constant %v", root)
	} else if root.owner == nil && (h.permitted == nil || !h.permitted(root)) {
		return fmt.Errorf("it is memory of %v, an input that may not be destroyed", root)
	}
	outs := h.aliases.at(v).outs
	if e := h.aliases.known(v); e != nil {
		outs = h.aliases.groups[e.group].outs
	}
	_, supervised := FeatureOf[*Supervisor](h.g)
	if outs == 0 && h.opts.Protected == nil && !supervised {
		return nil
	}
	var bad error
	h.eachAlias(v, func(w *Variable) bool {
		switch {
		case h.aliases.at(w).outs > 0:
			bad = fmt.Errorf("it is memory of %v, an output of the graph", w)
		case h.opts.Protected != nil && h.opts.Protected(w), supervised && h.supervised(w):
			bad = fmt.Errorf("it is memory of %v, which is protected", w)
		}
		return bad == nil
	})
	return bad
}

// supervised reports whether a [Supervisor] protects v.
func (h *DestroyHandler) supervised(v *Variable) bool {
	return slices.ContainsFunc(h.g.features, func(f Feature) bool {
		s, ok := f.(*Supervisor)
		return ok && s.set[v]
	})
}

// eachDestroyer calls do for the destructions of memory of v.
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

// eachAlias calls do for the variables that share memory with v, v included, as
// long as it returns true.
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

// OnImport notes what a views and destroys.
func (h *DestroyHandler) OnImport(g *FunctionGraph, a *Apply, _ Reason) {
	if h.active && !h.attaching {
		h.place(a)
	}
	for i, v := range a.inputs {
		h.newReader(Client{a, i}, v)
	}
	if op, ok := a.op.(Viewer); ok {
		for _, al := range op.ViewMap() {
			if !h.fits(a, al) || al.Output < 0 {
				h.malform(a)
				continue
			}
			h.view(a.outputs[al.Output], a.inputs[al.Input])
		}
	}
	if op, ok := a.op.(Destroyer); ok {
		for _, al := range op.DestroyMap() {
			if !h.fits(a, al) || h.destroys(a, al.Input) {
				h.malform(a)
				continue
			}
			h.destroy(a, al.Input)
		}
	}
}

// OnPrune forgets a.
func (h *DestroyHandler) OnPrune(_ *FunctionGraph, a *Apply, _ Reason) {
	h.aliases.undestroy(a, -1)
	if int(a.id) < len(h.isDirty) {
		h.isDirty[a.id] = false
	}
	if _, ok := a.op.(Viewer); ok {
		for _, v := range a.outputs {
			h.aliases.unview(v)
		}
	}
	for _, v := range a.outputs {
		if int(v.id) < len(h.aliases.of) {
			h.aliases.of[v.id].v = nil
		}
	}
	if h.active {
		h.order.remove(a.id)
	}
}

// OnChangeInput notes what a views and destroys from now on.
func (h *DestroyHandler) OnChangeInput(_ *FunctionGraph, a *Apply, i int, old, new *Variable, _ Reason) {
	if a == nil {
		h.changeOutput(old, new)
		return
	}
	h.newReader(Client{a, i}, new)
	if op, ok := a.op.(Viewer); ok {
		for _, al := range op.ViewMap() {
			if al.Input == i && h.fits(a, al) && al.Output >= 0 {
				h.aliases.unview(a.outputs[al.Output])
				h.view(a.outputs[al.Output], new)
			}
		}
	}
	if h.destroys(a, i) {
		h.aliases.undestroy(a, i)
		h.destroy(a, i)
	}
	if h.active && new.owner != nil && !h.order.require(new.owner.id, a.id) {
		h.late = append(h.late, edge{new.owner, a})
	}
}

// changeOutput notes that an output of the graph was old and is new, either of
// which may be nil.
func (h *DestroyHandler) changeOutput(old, new *Variable) {
	if old != nil {
		h.aliases.use(old, -1)
	}
	if new == nil {
		return
	}
	h.aliases.use(new, 1)
	h.eachDestroyer(new, func(d destruction) { h.soil(d.a) })
}

// Orderings yields that everything that reads memory comes before the apply that
// destroys it.
func (h *DestroyHandler) Orderings(_ *FunctionGraph, yield func(before, after *Apply)) {
	h.relink()
	for i := range h.aliases.recs {
		d := &h.aliases.recs[i]
		if d.a == nil {
			continue
		}
		h.eachReader(d, func(c *Apply) { yield(c, d.a) })
	}
}

// fits reports whether an alias names an input of a, and an output or none.
func (h *DestroyHandler) fits(a *Apply, al Alias) bool {
	return al.Input >= 0 && al.Input < len(a.inputs) && al.Output >= -1 && al.Output < len(a.outputs)
}

func (h *DestroyHandler) malform(a *Apply) {
	if !slices.Contains(h.malformed, a) {
		h.malformed = append(h.malformed, a)
	}
}

// destroys reports whether a is known to destroy input i.
func (h *DestroyHandler) destroys(a *Apply, i int) bool {
	for r := h.aliases.destructionsOf(a); r != none; r = h.aliases.recs[r].more {
		if int(h.aliases.recs[r].i) == i {
			return true
		}
	}
	return false
}

// view lets o view v.
func (h *DestroyHandler) view(o, v *Variable) {
	if e := h.aliases.at(o); e.parent != none {
		h.malform(o.owner)
		return
	}
	gr := h.aliases.view(o, v)
	if gr == none {
		h.unlinked = append(h.unlinked, o)
		return
	}
	for r := h.aliases.groups[gr].first; r != none; r = h.aliases.recs[r].next {
		if d := &h.aliases.recs[r]; h.aliases.overlap(d.v, o.id) {
			h.soil(d.a)
		}
	}
}

// relink notes views that closed a cycle in the middle of a change, which is over
// by now. Everything that asks calls it first.
func (h *DestroyHandler) relink() {
	unlinked := h.unlinked
	h.unlinked = nil
	for _, o := range unlinked {
		if o.id < 0 || o.owner.graph != h.g || h.aliases.at(o).parent != none {
			continue
		}
		for _, al := range o.owner.op.(Viewer).ViewMap() {
			if al.Output == int(o.index) {
				h.view(o, o.owner.inputs[al.Input])
				break
			}
		}
	}
}

// destroy notes that a overwrites input i.
func (h *DestroyHandler) destroy(a *Apply, i int) {
	h.activate()
	h.aliases.destroy(a, i, a.inputs[i])
	h.soil(a)
}

// activate begins to keep up the order.
func (h *DestroyHandler) activate() {
	if !h.active {
		h.active = true
		h.order.copyFrom(&h.g.order)
		h.late = append(h.late, h.g.late...)
	}
}

// soil queues a destroyer for the next validation.
func (h *DestroyHandler) soil(a *Apply) {
	for int(a.id) >= len(h.isDirty) {
		h.isDirty = append(h.isDirty, false)
	}
	if !h.isDirty[a.id] {
		h.isDirty[a.id] = true
		h.dirty = append(h.dirty, a)
	}
}

// soilAll queues all destroyers.
func (h *DestroyHandler) soilAll() {
	for i := range h.aliases.recs {
		if a := h.aliases.recs[i].a; a != nil {
			h.soil(a)
		}
	}
}

// newReader queues a use of memory that something destroys. Where no group is
// known yet, whatever makes one looks at all readers.
func (h *DestroyHandler) newReader(c Client, v *Variable) {
	if e := h.aliases.known(v); e != nil && h.aliases.groups[e.group].first != none {
		h.readers = append(h.readers, c)
	}
}

// place gives a new apply its place in the order.
func (h *DestroyHandler) place(a *Apply) {
	h.order.grow(len(h.g.applies))
	after := int32(none)
	for _, v := range a.inputs {
		if v.owner != nil && (after == none || h.order.less(after, v.owner.id)) {
			after = v.owner.id
		}
	}
	if after == none {
		h.order.insertFirst(a.id)
	} else {
		h.order.insertAfter(after, a.id)
	}
}

// describeDestroyer is how messages call an apply that destroys input i.
func describeDestroyer(a *Apply, i int32) string {
	by := ""
	if why := a.graph.ImportedBy(a); why != (Reason{}) {
		by = fmt.Sprintf(" (by %v)", why)
	}
	return fmt.Sprintf("%v, which overwrites its input %d%s", a, i, by)
}
