package fgraph

import "fmt"

// check compares the state of the handler with the graph.
func (h *DestroyHandler) check() error {
	h.relink()
	live := 0
	for _, v := range h.g.variables {
		if v == nil {
			continue
		}
		if err := h.checkView(v); err != nil {
			return err
		}
	}
	for _, a := range h.g.applies {
		if a == nil {
			continue
		}
		if op, ok := a.op.(Destroyer); ok {
			seen := make(map[int]bool)
			for _, al := range op.DestroyMap() {
				if !h.fits(a, al) || seen[al.Input] {
					continue
				}
				seen[al.Input] = true
				live++
				if !h.destroys(a, al.Input) {
					return fmt.Errorf("destruction of input %d by %v is not known", al.Input, a)
				}
			}
		}
	}
	if live != h.aliases.live {
		return fmt.Errorf("%d destructions known, %d in the graph", h.aliases.live, live)
	}
	if h.active {
		n := 0
		for id := range h.order.all() {
			n++
			if h.g.applies[id] == nil {
				return fmt.Errorf("order has number %d, which is free", id)
			}
		}
		if n != h.g.live {
			return fmt.Errorf("order has %d applies of %d", n, h.g.live)
		}
	}
	return nil
}

// checkView compares the entry of v with its owner, and its group with that of the
// variable it views.
func (h *DestroyHandler) checkView(v *Variable) error {
	want := (*Variable)(nil)
	if v.owner != nil {
		if op, ok := v.owner.op.(Viewer); ok {
			for _, al := range op.ViewMap() {
				if al.Output == int(v.index) && h.fits(v.owner, al) {
					want = v.owner.inputs[al.Input]
					break
				}
			}
		}
	}
	e := h.aliases.known(v)
	switch {
	case e == nil && want != nil:
		return fmt.Errorf("view %v is not known", v)
	case e == nil:
		return nil
	case want == nil && e.parent != none:
		return fmt.Errorf("%v is no view", v)
	case want != nil && (e.parent == none || h.aliases.of[e.parent].v != want):
		return fmt.Errorf("%v does not view what is known", v)
	case want != nil && h.aliases.of[e.parent].group != e.group:
		return fmt.Errorf("%v is not in the group of what it views", v)
	}
	size, parts, outs := int32(0), int32(0), int32(0)
	gr := h.aliases.groups[e.group]
	for w := h.aliases.walk(gr.root); !w.done; w.step(&h.aliases) {
		size++
		n := int32(0)
		for _, c := range h.aliases.of[w.at].v.clients {
			if c.Apply == nil && !h.aliases.of[w.at].v.IsConstant() {
				n++
			}
		}
		if n != h.aliases.of[w.at].outs {
			return fmt.Errorf("%v is %d outputs, %d are known", h.aliases.of[w.at].v, n, h.aliases.of[w.at].outs)
		}
		outs += n
		if r, whole := h.aliases.computeRegion(w.at); int(w.at) < len(h.aliases.shown) && h.aliases.shown[w.at].version == gr.version {
			if s, w2 := h.aliases.region(w.at); r != s || whole != w2 {
				return fmt.Errorf("%v shows %v, known is %v", h.aliases.of[w.at].v, r, s)
			}
		}
		if m := h.aliases.of[w.at]; m.parent != none && showsRegion(m.v) {
			parts++
		}
	}
	if size != gr.size || parts != gr.parts || outs != gr.outs {
		return fmt.Errorf("group of %v has %d members and %d regions, %d and %d are known", v, size, parts, gr.size, gr.parts)
	}
	for r := gr.first; r != none; r = h.aliases.recs[r].next {
		if d := h.aliases.recs[r]; d.a.graph != h.g || h.aliases.of[d.v].group != e.group {
			return fmt.Errorf("group of %v has a destruction of something else", v)
		}
	}
	return nil
}
