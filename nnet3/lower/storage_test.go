package lower

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/computation/computationtest"
)

// TestStorage takes random steps of storage planning on random computations. After each the plan
// agrees with what is found out from scratch; in the end the emitted computation is sound, computes
// the same, and takes no more memory than planned.
func TestStorage(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := computationtest.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") })
		c, net, err := computationtest.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Lower(c, net)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		runInPlace(t, p)
		if err := p.Graph.Check(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		s, err := PlanStorage(p)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		d := &storageDriver{t, s, text}
		d.verify("at first")
		flip := func(what string) bool { return rapid.Bool().Draw(t, what) }
		s.Extend = flip("extend")
		for range rapid.IntRange(0, 12).Draw(t, "transactions") {
			if flip("all of a value") {
				d.placeAll()
			} else {
				d.transaction()
			}
		}
		if flip("reuse") {
			d.within("Reuse", s.Reuse)
		}
		if flip("pack") {
			d.within("Pack", s.Pack)
		}
		s.MoveSizing, s.LeaveUndefined = flip("move sizing"), flip("leave undefined")
		got, err := Emit(p)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := computation.Check(got, net.Info(), computation.CheckOptions{AllowUnused: true}); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if m := got.MaxMemory(); s.MoveSizing && m > s.Peak() {
			t.Fatalf("%d bytes, %d were planned\n%s", m, s.Peak(), text)
		}
		same(t, net, c, got, text)
	})
}

// same is computationtest.Compare for properties.
func same(t *rapid.T, net computationtest.Net, want, got *computation.Computation, text string) {
	if err := computationtest.Same(net, want, got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// runInPlace lets some components run in place that can, where nothing reads later what they
// destroy.
func runInPlace(t *rapid.T, p *Program) {
	if err := p.Graph.Attach(fgraph.NewDestroyHandler(p.Destroyable)); err != nil {
		t.Fatal(err)
	}
	for _, a := range slices.Collect(p.Graph.Applies()) {
		var op fgraph.Op
		switch o := a.Op().(type) {
		case Propagate:
			if o.has(component.PropagateInPlace) && len(a.Inputs()) > 0 {
				o.InPlace = true
				op = o
			}
		case Backprop:
			if o.has(component.BackpropInPlace) && o.HasDX {
				o.InPlace = true
				op = o
			}
		}
		if op == nil || rapid.Bool().Draw(t, "not in place") {
			continue
		}
		types := make([]fgraph.Type, len(a.Outputs()))
		for i, v := range a.Outputs() {
			types[i] = v.Type()
		}
		b := fgraph.NewApply(op, a.Inputs(), types...)
		b.SetOrigin(a.Origin())
		var pairs []fgraph.Replacement
		for i, v := range a.Outputs() {
			pairs = append(pairs, fgraph.Replacement{Old: v, New: b.Outputs()[i]})
		}
		_ = p.Graph.ReplaceAllValidate(pairs, nil, fgraph.Reason{Pass: "test"}) // what may not be is not done
	}
}

type storageDriver struct {
	*rapid.T
	s    *Storage
	text string
}

// transaction tries one to six placements, together or alone, and keeps or undoes them.
func (d *storageDriver) transaction() {
	s := d.s
	before, peak := s.describe(), s.Peak()
	place := func(term func(int) bool, op func(int) bool) bool {
		if n := len(s.terms); n > 0 && rapid.IntRange(0, 3).Draw(d.T, "what") > 0 {
			k := rapid.IntRange(0, n-1).Draw(d.T, "term")
			ok := term(k)
			if ok != s.terms[k].placed {
				d.Fatalf("term %d: %v, though placed is %v\n%s", k, ok, s.terms[k].placed, d.text)
			}
			return ok
		} else if n := len(s.applies); n > 0 {
			return op(rapid.IntRange(0, n-1).Draw(d.T, "apply"))
		}
		return false
	}
	if rapid.Bool().Draw(d.T, "alone") {
		place(s.placeTerm, s.placeInPlace)
		d.verify("after a placement alone")
	} else {
		t := s.begin()
		for range rapid.IntRange(1, 6).Draw(d.T, "placements") {
			place(t.placeTerm, t.placeInPlace)
			d.verify("after a placement")
		}
		if rapid.IntRange(0, 3).Draw(d.T, "undo") == 0 {
			t.rollback()
			if after := s.describe(); after != before {
				d.Fatalf("a rollback leaves\n%swhere there was\n%s%s", after, before, d.text)
			}
		} else if !t.commit() && s.describe() != before {
			d.Fatalf("a transaction that was not kept left something\n%s", d.text)
		}
		d.verify("after a transaction")
	}
	if s.Peak() > peak {
		d.Fatalf("the peak rose from %d to %d\n%s", peak, s.Peak(), d.text)
	}
}

// placeAll tries to place all terms of a value as one. What is remembered of a refusal must be what
// trying again would find.
func (d *storageDriver) placeAll() {
	s := d.s
	var groups [][2]int
	for n := range s.values {
		if v := &s.values[n]; v.kind == assembled {
			groups = append(groups, [2]int{int(v.terms[0]), int(v.terms[1])})
		}
	}
	if len(groups) == 0 {
		return
	}
	g := groups[rapid.IntRange(0, len(groups)-1).Draw(d.T, "value")]
	before, peak, kept := s.describe(), s.Peak(), s.kept
	remembered := false
	if r := s.refusals[g[0]]; r != nil && s.refusesAgain(r, g[0], g[1]) {
		remembered = true
		delete(s.refusals, g[0])
	}
	placed := s.placeAll(g[0], g[1])
	switch {
	case placed && remembered:
		d.Fatalf("terms %v are placed, though a refusal was remembered\n%s", g, d.text)
	case placed != (s.kept > kept), !placed && s.describe() != before:
		d.Fatalf("terms %v are placed: %t, %d merges kept\n%s", g, placed, s.kept-kept, d.text)
	case s.Peak() > peak:
		d.Fatalf("the peak rose from %d to %d\n%s", peak, s.Peak(), d.text)
	case !placed && s.placeAll(g[0], g[1]):
		d.Fatalf("terms %v were refused, and are placed after all\n%s", g, d.text)
	}
	d.verify("after placing all terms of a value")
}

// within holds that a pass does not raise the peak, and that it counts what it does.
func (d *storageDriver) within(name string, pass func() int) {
	d.s.makeSlots()
	count := func() (n int) {
		for k := range d.s.slots {
			if d.s.slots[k].bases != nil {
				n++
			}
		}
		return n
	}
	slots, peak := count(), d.s.Peak()
	if n := pass(); slots-count() != n || d.s.Peak() > peak {
		d.Fatalf("%s says %d, slots %d → %d, peak %d → %d\n%s", name, n, slots, count(), peak, d.s.Peak(), d.text)
	}
}

// describe writes where everything lives.
func (s *Storage) describe() string {
	text := ""
	for n := range s.values {
		v := &s.values[n]
		text += fmt.Sprintln("value", n, v.base, v.r, v.c)
	}
	for b := range s.bases {
		p := &s.bases[b]
		text += fmt.Sprintln("base", b, p.gone, p.members, p.rect, p.first, p.last, p.weight, p.exact, p.given, p.span)
	}
	for k := range s.terms {
		text += fmt.Sprintln("term", k, s.terms[k].placed)
	}
	return text + fmt.Sprintln("peak", s.Peak())
}

// verify holds the plan against what is computed from scratch.
func (d *storageDriver) verify(when string) {
	s := d.s
	fail := func(format string, args ...any) {
		d.Fatalf("%s: %s\n%s%s", when, fmt.Sprintf(format, args...), s.describe(), d.text)
	}
	bytes := make([]int64, s.numEvents)
	for b := range s.bases {
		p := &s.bases[b]
		if p.gone {
			continue
		}
		occ := d.occupations(int32(b), fail)
		for i := range occ {
			for j := range i {
				if occ[i].clashes(&occ[j]) {
					fail("base %d: %v and %v clash", b, occ[i], occ[j])
				}
			}
		}
		var first, last int32
		for i, o := range occ {
			if i == 0 {
				first, last = o.t0>>1, o.t1>>1
			}
			first, last = min(first, o.t0>>1), max(last, o.t1>>1)
		}
		if len(occ) > 0 && (first != p.first || last != p.last) {
			fail("base %d lives from %d to %d, not %d to %d", b, first, last, p.first, p.last)
		}
		for e := max(p.first, 0); e <= p.last; e++ {
			bytes[e] += 4 * p.rect.area()
		}
		d.demands(int32(b), fail)
	}
	if len(bytes) > 0 && s.Peak() != max(slices.Max(bytes), 0) {
		fail("the peak is %d, not %d", slices.Max(bytes), s.Peak())
	}
	for k := range s.terms {
		t := &s.terms[k]
		dst, src := &s.values[t.dst], &s.values[t.src]
		meets := !t.constant && t.Contiguous() && dst.base == src.base && dst.r+t.DstRow == src.r+t.SrcRow && dst.c+t.DstCol == src.c+t.SrcCol
		if meets != t.placed {
			fail("term %d lies where it belongs: %v; placed: %v", k, meets, t.placed)
		}
		if t.placed && !s.canPlace(int32(k)) {
			fail("term %d must not be placed", k)
		}
	}
}

// occupations computes what the members of a base occupy, and holds the base's tree against that.
func (d *storageDriver) occupations(b int32, fail func(string, ...any)) []occupation {
	s := d.s
	p := &s.bases[b]
	var want []occupation
	for _, n := range p.members {
		v := &s.values[n]
		for i := range v.grid.cells {
			c := &v.grid.cells[i]
			if got, all := s.endOf(n, c), d.endOf(n, c); got != all {
				fail("value %d, cell %v ends at %d, not at %d", n, c.rect, got, all)
			}
			at := len(want)
			want = s.appendOccupations(want, n, int32(i))
			var cell []occupation
			for k := c.nodes; k != 0; k = s.forest.nodes[k].next {
				cell = append(cell, s.forest.nodes[k].occupation)
			}
			if !sameSet(cell, want[at:]) {
				fail("value %d, cell %v occupies %v, noted is %v", n, c.rect, want[at:], cell)
			}
		}
	}
	var got []occupation
	var walk func(n int32)
	walk = func(n int32) {
		if n != 0 {
			got = append(got, s.forest.nodes[n].occupation)
			walk(s.forest.nodes[n].left)
			walk(s.forest.nodes[n].right)
		}
	}
	walk(p.tree)
	if !sameSet(got, want) {
		fail("base %d: the tree holds %v, not %v", b, got, want)
	}
	return want
}

func sameSet(a, b []occupation) bool {
	count := map[occupation]int{}
	for _, o := range a {
		count[o]++
	}
	for _, o := range b {
		count[o]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// endOf is Storage.endOf, by all reads of the cell.
func (d *storageDriver) endOf(n int32, c *cell) int32 {
	s := d.s
	v := &s.values[n]
	if v.leaves {
		return 2*s.numEvents - 1
	}
	end := 2 * v.done
	if v.kind != assembled {
		end = s.startOf(n)
	}
	for i := range v.reads {
		r := &v.reads[i]
		if !r.rect.Overlaps(c.rect) {
			continue
		}
		t := 2 * r.event
		switch {
		case r.beside:
			t++
		case r.term >= 0 && s.terms[r.term].placed:
			t--
		}
		end = max(end, t)
	}
	return end
}

// demands holds that a base is as the caller and the components want it.
func (d *storageDriver) demands(b int32, fail func(string, ...any)) {
	s := d.s
	p := &s.bases[b]
	union, weight, span := s.place(p.members[0]), int32(0), false
	for _, n := range p.members {
		v := &s.values[n]
		if v.base != b {
			fail("value %d lives in base %d, not in %d", n, v.base, b)
		}
		at := s.place(n)
		union = union.union(at)
		weight += int32(1+len(v.grid.cells)+len(v.reads)) + v.terms[1] - v.terms[0]
		span = span || v.span
		if v.exact && at != p.rect {
			fail("value %d must be all of base %d", n, b)
		}
		if v.kind == accepted && p.first < v.done {
			fail("base %d is in use before value %d comes", b, n)
		}
		if v.span && (at.C0 != p.rect.C0 || at.C1 != p.rect.C1) {
			fail("value %d must span base %d", n, b)
		}
	}
	if union != p.rect || weight != p.weight || span != p.span {
		fail("base %d: rectangle %v, weight %d, span %v", b, union, weight, span)
	}
}
