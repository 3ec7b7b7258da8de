package fgraph

import "slices"

// destroyCallbacks are the callbacks of a [DestroyHandler]: they record views and destructions.
type destroyCallbacks DestroyHandler

func (c *destroyCallbacks) handler() *DestroyHandler { return (*DestroyHandler)(c) }

// OnAttach records the views and destructions of g without validating them.
func (c *destroyCallbacks) OnAttach(g *FunctionGraph) error {
	if err := attachable[*DestroyHandler](c.g, g); err != nil {
		return err
	}
	h := c.handler()
	*h = DestroyHandler{hidden: h.hidden, permits: h.permits, permitted: h.permits, g: g}
	// NewDestroyHandler without a function leaves it to the graph who may be overwritten; that is
	// asked anew at each attachment, because the feature may serve another graph later.
	if h.permitted == nil {
		if p, ok := FeatureOf[DestroyPermitter](g); ok {
			h.permitted = p.Destroyable
		}
	}
	h.order.init(destroyEdges{dataEdges{g}, h})
	h.aliases.expect = g.NumVariableIDs()
	// The graph is in order when a feature is attached, so the order need not be extended apply by
	// apply: activate copies it whole.
	h.attaching = true
	for _, v := range g.outputs {
		h.aliases.use(v, 1)
	}
	Bookkeep(g, c)
	h.attaching = false
	return nil
}

func (c *destroyCallbacks) OnDetach(*FunctionGraph) {
	*c = destroyCallbacks{hidden: c.hidden, permits: c.permits}
}

func (c *destroyCallbacks) Validate(*FunctionGraph) error { return c.handler().validate() }

func (c *destroyCallbacks) OnImport(g *FunctionGraph, a *Apply, _ Reason) {
	h := c.handler()
	if h.active && !h.attaching {
		h.order.grow(len(g.applies))
		h.order.insertAfterInputs(a)
	}
	// Readers before views and destructions of the same apply: an apply that destroys what it reads
	// is not a late reader of itself.
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

func (c *destroyCallbacks) OnPrune(_ *FunctionGraph, a *Apply, _ Reason) {
	// Destructions go before views, because unview splits the group that lists them.
	c.aliases.undestroy(a, -1)
	if int(a.id) < len(c.isDirty) {
		c.isDirty[a.id] = false
	}
	if _, ok := a.op.(Viewer); ok {
		for _, v := range a.outputs {
			c.aliases.unview(v)
		}
	}
	// The number of v may be given to another variable at once, which must not inherit the entry.
	for _, v := range a.outputs {
		if int(v.id) < len(c.aliases.of) {
			c.aliases.of[v.id].v = nil
		}
	}
	if c.active {
		c.order.remove(a.id)
	}
}

func (c *destroyCallbacks) OnChangeInput(_ *FunctionGraph, a *Apply, i int, old, new *Variable, _ Reason) {
	h := c.handler()
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
	// The edge may contradict the order because another edge of the same change is about to go. It
	// is tried again when the change is complete.
	if h.active && new.owner != nil && !h.order.require(new.owner.id, a.id) {
		h.late = append(h.late, edge{new.owner, a})
	}
}

// Orderings yields every reader of memory before the apply that destroys it.
func (c *destroyCallbacks) Orderings(_ *FunctionGraph, yield func(before, after *Apply)) {
	h := c.handler()
	h.relink()
	for i := range h.aliases.recs {
		if d := &h.aliases.recs[i]; d.a != nil {
			h.eachReader(d, func(c *Apply) { yield(c, d.a) })
		}
	}
}

// changeOutput records that an output of the graph changed from old to new, either of which may
// be nil.
func (h *DestroyHandler) changeOutput(old, new *Variable) {
	if old != nil {
		h.aliases.use(old, -1)
	}
	if new == nil {
		return
	}
	h.aliases.use(new, 1)
	// The graph shows this memory from now on, so what overwrites it is no longer allowed to.
	h.eachDestroyer(new, func(d destruction) { h.markDirty(d.a) })
}

// fits reports whether an alias names an input of a, and either an output or none.
func (h *DestroyHandler) fits(a *Apply, al Alias) bool {
	return al.Input >= 0 && al.Input < len(a.inputs) && al.Output >= -1 && al.Output < len(a.outputs)
}

func (h *DestroyHandler) malform(a *Apply) {
	if !slices.Contains(h.malformed, a) {
		h.malformed = append(h.malformed, a)
	}
}

// destroys reports whether a is recorded to destroy input i.
func (h *DestroyHandler) destroys(a *Apply, i int) bool {
	for r := h.aliases.destructionsOf(a); r != none; r = h.aliases.recs[r].more {
		if int(h.aliases.recs[r].i) == i {
			return true
		}
	}
	return false
}

// view records that o views v.
func (h *DestroyHandler) view(o, v *Variable) {
	if e := h.aliases.at(o); e.parent != none {
		h.malform(o.owner)
		return
	}
	gr := h.aliases.view(o, v)
	// In the middle of a change o may view what still views o. Remember it, and ask again when the
	// change is over.
	if gr == none {
		h.unlinked = append(h.unlinked, o)
		return
	}
	// The groups of o and v are one now, so destroyers in it have readers that they did not have.
	for r := h.aliases.groups[gr].first; r != none; r = h.aliases.recs[r].next {
		if d := &h.aliases.recs[r]; h.aliases.overlap(d.v, o.id) {
			h.markDirty(d.a)
		}
	}
}

// relink records views that closed a cycle in the middle of a change, which is over now. Every
// query calls it first.
func (h *DestroyHandler) relink() {
	// view may put variables back on the list, so the list is taken first.
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

// destroy records that a overwrites input i.
func (h *DestroyHandler) destroy(a *Apply, i int) {
	h.activate()
	h.aliases.destroy(a, i, a.inputs[i])
	h.markDirty(a)
}

// activate starts maintaining the order.
func (h *DestroyHandler) activate() {
	// From here on the handler keeps an order of its own, since that of the graph does not know
	// readers and destroyers. It starts with a copy, which costs as much as the graph has applies,
	// once.
	if !h.active {
		h.active = true
		h.order.copyFrom(&h.g.order)
		h.late = append(h.late, h.g.late...)
	}
}

// markDirty queues a destroyer for the next validation.
func (h *DestroyHandler) markDirty(a *Apply) {
	for int(a.id) >= len(h.isDirty) {
		h.isDirty = append(h.isDirty, false)
	}
	if !h.isDirty[a.id] {
		h.isDirty[a.id] = true
		h.dirty = append(h.dirty, a)
	}
}

// markAllDirty queues all destroyers.
func (h *DestroyHandler) markAllDirty() {
	for i := range h.aliases.recs {
		if a := h.aliases.recs[i].a; a != nil {
			h.markDirty(a)
		}
	}
}

// newReader queues a reader of destroyed memory. A group that comes into being later has all its
// readers validated then.
func (h *DestroyHandler) newReader(c Client, v *Variable) {
	if e := h.aliases.known(v); e != nil && h.aliases.groups[e.group].first != none {
		h.readers = append(h.readers, c)
	}
}
