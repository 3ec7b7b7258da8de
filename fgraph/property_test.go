package fgraph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
)

// dump shows everything that undoing a change must restore, including numbers and the
// order of clients.
func dump(g *FunctionGraph) string {
	var b strings.Builder
	fmt.Fprintln(&b, g.String())
	for a := range g.Applies() {
		fmt.Fprintf(&b, "%d %v", a.id, a.op)
		for _, v := range a.inputs {
			fmt.Fprintf(&b, " %d", v.id)
		}
		for _, v := range a.outputs {
			fmt.Fprintf(&b, " -> %d", v.id)
		}
		fmt.Fprintln(&b)
	}
	for v := range g.Variables() {
		fmt.Fprintf(&b, "v%d:", v.id)
		for _, c := range v.clients {
			if c.Apply == nil {
				fmt.Fprintf(&b, " out%d", c.Index)
			} else {
				fmt.Fprintf(&b, " %d.%d", c.Apply.id, c.Index)
			}
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintln(&b, g.live)
	return b.String()
}

var propertyOps = []Op{
	op("f"), op("g"), sigmoid, tv, aip, sip,
	blockOp{Region{0, 2, 0, 4}}, blockOp{Region{2, 4, 0, 4}}, blockOp{Region{1, 3, 0, 4}},
	memOp{name: "tolerant", destroys: "00", same: true},
	memOp{name: "second", destroys: "01"},
}

// machine changes a graph at random.
type machine struct {
	t  *rapid.T
	g  *FunctionGraph
	ks []*Variable // inputs
}

func (m *machine) variables() []*Variable { return slices.Collect(m.g.Variables()) }

// expression draws a new expression of variables of the graph.
func (m *machine) expression(from []*Variable) *Variable {
	v := rapid.SampledFrom(from).Draw(m.t, "leaf")
	for range rapid.IntRange(0, 3).Draw(m.t, "depth") {
		w := rapid.SampledFrom(from).Draw(m.t, "other")
		if rapid.IntRange(0, 9).Draw(m.t, "constant") == 0 {
			w = constant(1.5)
		}
		o := rapid.SampledFrom(propertyOps).Draw(m.t, "op")
		if rapid.Bool().Draw(m.t, "two outputs") && o == op("g") {
			v = NewApply(o, list(v, w, w, v), num, num).outputs[1]
		} else {
			v = call(o, v, w)
		}
	}
	return v
}

func (m *machine) pairs() []Replacement {
	vars := m.variables()
	var pairs []Replacement
	for range rapid.IntRange(1, 3).Draw(m.t, "pairs") {
		pairs = append(pairs, Replacement{rapid.SampledFrom(vars).Draw(m.t, "old"), m.expression(vars)})
	}
	return pairs
}

func newMachine(t *rapid.T, features ...Feature) *machine {
	m := &machine{t: t}
	m.ks = list(input("x"), input("y"), input("z"))
	m.g = &FunctionGraph{}
	from := slices.Clone(m.ks)
	from = append(from, constant(2.5))
	var outs []*Variable
	for range rapid.IntRange(1, 8).Draw(t, "size") {
		from = append(from, m.expression(from))
	}
	for range rapid.IntRange(1, 3).Draw(t, "outputs") {
		outs = append(outs, rapid.SampledFrom(from).Draw(t, "output"))
	}
	g, err := New(m.ks, outs, features...)
	if err != nil {
		t.Fatal(err)
	}
	m.g = g
	return m
}

func TestPropertyReplaceKeepsInvariants(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		h := NewDestroyHandler(func(v *Variable) bool { return v.Name() != "z" })
		finder := NewNodeFinder()
		m := newMachine(t, h, finder)
		sound := func() {
			if err := m.g.Check(); err != nil {
				t.Fatal(err)
			}
			if err := h.check(); err != nil {
				t.Fatal(err)
			}
			for _, o := range m.g.Ops() {
				if finder.Count(o) == 0 {
					t.Fatalf("the graph has no %v", o)
				}
			}
			for _, o := range propertyOps {
				n := 0
				for a := range m.g.Applies() {
					if a.op == o {
						n++
					}
				}
				if finder.Count(o) != n {
					t.Fatalf("%d applies of %v are known, there are %d", finder.Count(o), o, n)
				}
			}
		}
		sound()
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "ends") {
			case 0:
				if err := m.g.AddOutput(m.expression(m.variables()), why("add")); err != nil {
					t.Fatal(err)
				}
			case 1:
				if n := len(m.g.outputs); n > 1 {
					if err := m.g.RemoveOutput(rapid.IntRange(0, n-1).Draw(t, "which"), why("remove")); err != nil {
						t.Fatal(err)
					}
				}
			}
			sound()
			before := dump(m.g)
			pairs := m.pairs()
			var err error
			plain := rapid.IntRange(0, 3).Draw(t, "plain") == 0
			if plain {
				err = m.g.ReplaceAll(pairs, why("plain"))
			} else {
				err = m.g.ReplaceAllValidate(pairs, nil, why("validated"))
			}
			sound()
			if err != nil {
				if diff := cmp.Diff(before, dump(m.g)); diff != "" {
					t.Fatalf("after %v:\n%s", err, diff)
				}
				if !errors.Is(err, ErrCycle) && !errors.Is(err, ErrInconsistent) {
					t.Fatal(err)
				}
			}
			if got, want := m.g.Validate(), consistent(m.g, h.permits); (got == nil) != (want == nil) {
				t.Fatalf("%v\nvalidate: %v\nfrom the definition: %v", m.g, got, want)
			}
			if _, terr := m.g.Toposort(); m.g.Validate() == nil && terr != nil {
				t.Fatalf("%v: %v", m.g, terr)
			}
		}
	})
}

func TestPropertyHistory(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		hist, full := NewHistory(), NewFullHistory()
		m := newMachine(t, hist, full)
		states := list(m.g.String())
		dumps := list(dump(m.g))
		marks := list(hist.Checkpoint())
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			n := full.Len()
			_ = m.g.ReplaceAllValidate(m.pairs(), nil, why("step"))
			if full.Len() > n {
				states = append(states, m.g.String())
				dumps = append(dumps, dump(m.g))
				marks = append(marks, hist.Checkpoint())
			}
		}
		for range 5 {
			k := rapid.IntRange(0, len(states)-1).Draw(t, "goto")
			if err := full.Goto(k); err != nil {
				t.Fatal(err)
			}
			if err := m.g.Check(); err != nil {
				t.Fatal(err)
			}
			if got := m.g.String(); got != states[k] {
				t.Fatalf("state %d is %s, was %s", k, got, states[k])
			}
		}
		if err := errors.Join(full.Goto(full.Len()), full.Goto(full.Len()+1)); err != nil {
			t.Fatal(err)
		}
		if got := m.g.String(); got != states[len(states)-1] {
			t.Fatalf("end is %s, was %s", got, states[len(states)-1])
		}
		k := rapid.IntRange(0, len(states)-1).Draw(t, "revert")
		if err := hist.Revert(marks[k]); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(dumps[k], dump(m.g)); diff != "" {
			t.Fatalf("after revert to %d:\n%s", k, diff)
		}
		if err := m.g.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPropertyRevertEverything(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		hist, h := NewHistory(), NewDestroyHandler(anyInput)
		m := newMachine(t, h, hist)
		before := dump(m.g)
		cp := hist.Checkpoint()
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			var err error
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				err = m.g.AddOutput(m.expression(m.variables()), why("add"))
			case 1:
				if n := len(m.g.outputs); n > 0 {
					err = m.g.RemoveOutput(rapid.IntRange(0, n-1).Draw(t, "which"), why("remove"))
				}
			case 2:
				if as := slices.Collect(m.g.Applies()); len(as) > 0 {
					err = m.g.RemoveApply(rapid.SampledFrom(as).Draw(t, "which"), why("remove"))
				}
			default:
				_ = m.g.ReplaceAll(m.pairs(), why("plain"))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(m.g.Check(), h.check()); err != nil {
				t.Fatal(err)
			}
		}
		if err := hist.Revert(cp); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, dump(m.g)); diff != "" {
			t.Fatal(diff)
		}
		if err := errors.Join(m.g.Check(), h.check()); err != nil {
			t.Fatal(err)
		}
	})
}

// MayOverwrite agrees with Validate for each input. If it allows two inputs that share no
// memory, Validate accepts both together.
func TestPropertyMayOverwrite(t *testing.T) {
	first, second := memOp{name: "tolerant", destroys: "00", same: true}, memOp{name: "second", destroys: "01"}
	both := memOp{name: "both", destroys: "0001", same: true}
	property.Check(t, func(t *rapid.T) {
		hist := NewHistory()
		h := NewDestroyHandler(func(v *Variable) bool { return v.Name() != "z" })
		m := newMachine(t, h, hist)
		for m.g.Validate() != nil {
			if err := m.g.RemoveOutput(len(m.g.outputs)-1, why("make valid")); err != nil {
				t.Fatal(err)
			}
		}
		before := dump(m.g)
		try := func(a *Apply, o Op) bool {
			types := make([]Type, len(a.outputs))
			for i, v := range a.outputs {
				types[i] = v.typ
			}
			b := NewApply(o, a.inputs, types...)
			pairs := make([]Replacement, len(a.outputs))
			for i, v := range a.outputs {
				pairs[i] = Replacement{v, b.outputs[i]}
			}
			cp := hist.Checkpoint()
			err := m.g.ReplaceAllValidate(pairs, nil, why("try"))
			if err != nil && !errors.Is(err, ErrInconsistent) {
				t.Fatal(err)
			}
			if rerr := hist.Revert(cp); rerr != nil {
				t.Fatal(rerr)
			}
			return err == nil
		}
		empty := func(v *Variable) bool {
			if h.aliases.known(v) == nil {
				return false
			}
			r, whole := h.aliases.region(v.id)
			return !whole && r.empty()
		}
		for _, a := range slices.Collect(m.g.Applies()) {
			_, views := a.op.(Viewer)
			if o, ok := a.op.(memOp); len(a.inputs) < 2 || views && !ok || ok && (len(o.ViewMap()) > 0 || len(o.DestroyMap()) > 0) {
				continue
			}
			var may [2]bool
			for i, o := range []memOp{first, second} {
				v := a.inputs[i]
				may[i] = h.MayDestroy(v) && h.MayOverwrite(a, i, o)
				if got := try(a, o); got != may[i] && !empty(v) {
					t.Fatalf("%v\n%v over input %d: %v, asked for %v", m.g, a, i, got, may[i])
				}
			}
			if may[0] && may[1] && !h.shared(a.inputs[0], a.inputs[1]) && !try(a, both) {
				t.Fatalf("%v\n%v: each input may be overwritten, both may not", m.g, a)
			}
		}
		if diff := cmp.Diff(before, dump(m.g)); diff != "" {
			t.Fatal(diff)
		}
		if err := h.check(); err != nil {
			t.Fatal(err)
		}
	})
}
