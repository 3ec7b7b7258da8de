package fgraph

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// memOp is an op with a view and a destroy map.
type memOp struct {
	name            string
	views, destroys string // pairs of digits, output and input
	same, aliased   bool   // tolerated
}

func maps(s string) []Alias {
	var m []Alias
	for i := 0; i+1 < len(s); i += 2 {
		m = append(m, Alias{int(s[i] - '0'), int(s[i+1] - '0')})
	}
	return m
}

func (o memOp) String() string      { return o.name }
func (o memOp) ViewMap() []Alias    { return maps(o.views) }
func (o memOp) DestroyMap() []Alias { return maps(o.destroys) }
func (o memOp) ToleratesAlias(_, _ int, same bool) bool {
	return o.aliased || same && o.same
}

// blockOp shows a region of its input.
type blockOp struct{ r Region }

func (o blockOp) String() string        { return "block" }
func (o blockOp) ViewMap() []Alias      { return []Alias{{0, 0}} }
func (o blockOp) ViewRegion(int) Region { return o.r }

var (
	sigmoid = op("sigmoid")
	add     = op("add")
	dotOp   = op("dot")
	tv      = memOp{name: "transpose_view", views: "00"}
	aip     = memOp{name: "add_in_place", destroys: "00"}
	sip     = memOp{name: "sigmoid_in_place", destroys: "00"}
)

func anyInput(*Variable) bool { return true }

// destroyGraph returns a graph whose inputs may all be destroyed.
func destroyGraph(t *testing.T, inputs, outputs []*Variable) (*FunctionGraph, *DestroyHandler) {
	t.Helper()
	h := NewDestroyHandler(anyInput)
	return newGraph(t, inputs, outputs, h), h
}

func wantConsistent(t *testing.T, g *FunctionGraph, want bool) {
	t.Helper()
	check(t, g)
	err := g.Validate()
	if (err == nil) != want || err != nil && !errors.Is(err, ErrInconsistent) {
		t.Fatalf("%v: validate: %v, want consistent: %v", g, err, want)
	}
	if _, terr := g.Toposort(); want && terr != nil {
		t.Fatalf("%v: %v", g, terr)
	}
	verifyOrder(t, g)
}

// verifyOrder verifies the state of the handler.
func verifyOrder(t *testing.T, g *FunctionGraph) {
	t.Helper()
	h, ok := FeatureOf[*DestroyHandler](g)
	if !ok {
		return
	}
	if err := h.check(); err != nil {
		t.Fatalf("%v: %v", g, err)
	}
}

// substitute replaces the applies of one op one by one, and counts successes and
// refusals.
func substitute(t *testing.T, g *FunctionGraph, from, to Op) (done, refused int) {
	t.Helper()
	order, err := g.Toposort()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range order {
		if a.op != from || a.graph != g {
			continue
		}
		before := g.String()
		b := NewApply(to, a.inputs, types(a)...)
		var pairs []Replacement
		for i := range a.outputs {
			pairs = append(pairs, Replacement{a.outputs[i], b.outputs[i]})
		}
		switch err := g.ReplaceAllValidate(pairs, nil, why("substitute")); {
		case err == nil:
			done++
		case errors.Is(err, ErrInconsistent):
			refused++
			if g.String() != before {
				t.Fatalf("refused replacement changed %s to %v", before, g)
			}
		default:
			t.Fatal(err)
		}
		check(t, g)
		verifyOrder(t, g)
	}
	return done, refused
}

func types(a *Apply) []Type {
	var ts []Type
	for _, v := range a.outputs {
		ts = append(ts, v.typ)
	}
	return ts
}

func TestCase17ReaderOfDestroyed(t *testing.T) {
	x, y := input("x"), input("y")
	e := call(aip, x, y)
	g, _ := destroyGraph(t, list(x, y), list(call(dotOp, e, call(tv, e))))
	wantConsistent(t, g, true)

	x, y = input("x"), input("y")
	e = call(aip, x, y)
	g, _ = destroyGraph(t, list(x, y), list(call(dotOp, e, call(tv, x))))
	wantConsistent(t, g, false)
	if _, err := g.Toposort(); !errors.Is(err, ErrCycle) {
		t.Errorf("toposort of an inconsistent graph: %v", err)
	}
	if err := g.Replace(e, call(add, x, y), why("add")); err != nil {
		t.Fatal(err)
	}
	wantConsistent(t, g, true)

	x, y = input("x"), input("y")
	e = call(aip, x, y)
	s := call(sigmoid, call(tv, x))
	g, _ = destroyGraph(t, list(x, y), list(call(dotOp, e, s)))
	wantConsistent(t, g, true)
	order, _ := g.Toposort()
	place := map[*Apply]int{}
	for i, a := range order {
		place[a] = i
	}
	if place[s.owner] > place[e.owner] {
		t.Errorf("the reader comes after the destroyer: %v", order)
	}
}

func TestCase18AliasAmongInputs(t *testing.T) {
	for _, c := range []struct {
		op   memOp
		view bool
		want bool
	}{
		{aip, false, false}, {aip, true, false},
		{memOp{name: "same", destroys: "00", same: true}, false, true},
		{memOp{name: "same", destroys: "00", same: true}, true, false},
		{memOp{name: "aliased", destroys: "00", aliased: true}, false, true},
		{memOp{name: "aliased", destroys: "00", aliased: true}, true, true},
	} {
		x := input("x")
		y := x
		if c.view {
			y = call(tv, x)
		}
		g, _ := destroyGraph(t, list(x), list(call(c.op, x, y)))
		wantConsistent(t, g, c.want)
	}
}

func TestCase19Indestructible(t *testing.T) {
	build := func(e func(x, y *Variable) *Variable, x *Variable) *FunctionGraph {
		y := input("y")
		inputs := list(y)
		if x.IsInput() {
			inputs = list(x, y)
		}
		return newGraph(t, inputs, list(e(x, y)), NewDestroyHandler(func(v *Variable) bool { return v != x }))
	}
	for _, x := range []func() *Variable{func() *Variable { return input("x") }, func() *Variable { return constant(1.0) }} {
		wantConsistent(t, build(func(x, y *Variable) *Variable { return call(aip, x, y) }, x()), false)
		wantConsistent(t, build(func(x, y *Variable) *Variable { return call(aip, call(tv, x), y) }, x()), false)
		wantConsistent(t, build(func(x, y *Variable) *Variable { return call(aip, call(tv, call(tv, x)), y) }, x()), false)
		wantConsistent(t, build(func(x, y *Variable) *Variable { return call(aip, call(sigmoid, x), y) }, x()), true)
	}
	x := input("x")
	s := call(sigmoid, x)
	g := newGraph(t, list(x), list(call(sip, s)), NewDestroyHandler(nil), Supervise(s))
	wantConsistent(t, g, false)
}

func TestCase20TwoDestroyers(t *testing.T) {
	x, y := input("x"), input("y")
	g, h := destroyGraph(t, list(x, y), list(call(add, call(aip, x, y), call(aip, x, y))))
	wantConsistent(t, g, false)
	if n := len(h.DestroyedBy(x)); n != 2 {
		t.Errorf("%d destroyers", n)
	}
	x, y = input("x"), input("y")
	g, _ = destroyGraph(t, list(x, y), list(call(add, call(aip, call(tv, x), y), call(aip, call(tv, x), y))))
	wantConsistent(t, g, false)
}

func TestCase21DestroyersLoop(t *testing.T) {
	for _, first := range []int{0, 1} {
		x, y := input("x"), input("y")
		e1, e2 := call(add, x, y), call(add, y, x)
		g, _ := destroyGraph(t, list(x, y), list(e1, e2))
		wantConsistent(t, g, true)
		outs := list(e1, e2)
		ins := [][]*Variable{{x, y}, {y, x}}
		if err := g.ReplaceValidate(outs[first], call(aip, ins[first]...), why("first")); err != nil {
			t.Fatal(err)
		}
		wantConsistent(t, g, true)
		before := g.String()
		err := g.ReplaceValidate(outs[1-first], call(aip, ins[1-first]...), why("second"))
		if !errors.Is(err, ErrInconsistent) {
			t.Fatalf("the second one in place: %v", err)
		}
		wantString(t, g, before)
		wantConsistent(t, g, true)
	}
}

func TestCase22LongLoop(t *testing.T) {
	x, y, z := input("x"), input("y"), input("z")
	e := call(dotOp, call(dotOp, call(aip, x, y), call(aip, y, z)), call(add, z, x))
	g, _ := destroyGraph(t, list(x, y, z), list(e))
	wantConsistent(t, g, true)
	if done, refused := substitute(t, g, add, aip); done != 0 || refused != 1 {
		t.Errorf("%d done, %d refused", done, refused)
	}
	wantConsistent(t, g, true)
}

func TestCase23SigmoidsToViews(t *testing.T) {
	x, y, z := input("x"), input("y"), input("z")
	s := x
	for range 5 {
		s = call(sigmoid, s)
	}
	g, _ := destroyGraph(t, list(x, y, z), list(call(dotOp, call(aip, x, y), s)))
	wantConsistent(t, g, true)
	if done, refused := substitute(t, g, sigmoid, tv); done != 4 || refused != 1 {
		t.Errorf("%d done, %d refused, want 4 and 1", done, refused)
	}
	wantConsistent(t, g, true)
}

func TestCase24OneOfTwo(t *testing.T) {
	x, y, z := input("x"), input("y"), input("z")
	g, _ := destroyGraph(t, list(x, y, z), list(call(dotOp, call(add, call(tv, z), y), call(add, z, x))))
	if done, refused := substitute(t, g, add, aip); done != 1 || refused != 1 {
		t.Errorf("%d done, %d refused, want 1 and 1", done, refused)
	}
	wantConsistent(t, g, true)
}

func TestCase25TwoOutputs(t *testing.T) {
	multiple := op("multiple")
	in := func(m string) memOp { return memOp{name: "multiple_in_place", destroys: m} }
	x, y := input("x"), input("y")
	m := NewApply(multiple, list(x, y), num, num)
	g, _ := destroyGraph(t, list(x, y), list(m.outputs[0], m.outputs[1], call(dotOp, m.outputs[0], x), call(dotOp, y, y)))
	try := func(from, to Op, want int) {
		t.Helper()
		if done, _ := substitute(t, g, from, to); done != want {
			t.Errorf("%v: %d done, want %d", to.(memOp).destroys, done, want)
		}
		wantConsistent(t, g, true)
	}
	try(multiple, in("0011"), 0)
	try(multiple, in("00"), 0)
	try(multiple, in("11"), 1)
	try(in("11"), in("0011"), 0)
}

func TestCase26ConstantForSource(t *testing.T) {
	x, y := input("x"), input("y")
	s := call(sigmoid, x)
	g, _ := destroyGraph(t, list(x, y), list(call(aip, call(tv, s), y)))
	wantConsistent(t, g, true)
	if err := g.ReplaceValidate(x, constant(1.0), why("fold")); err != nil {
		t.Fatal(err)
	}
	wantConsistent(t, g, true)
	if err := g.ReplaceValidate(s, constant(2.0), why("fold")); !errors.Is(err, ErrInconsistent) {
		t.Fatalf("a constant to be destroyed: %v", err)
	}
	wantConsistent(t, g, true)
}

func TestMayOverwrite(t *testing.T) {
	tolerant := memOp{name: "add_in_place", destroys: "00", same: true}
	for name, c := range map[string]struct {
		op    memOp
		build func(s, y *Variable) (a *Variable, outs []*Variable)
		want  bool
	}{
		"it has no other reader": {aip, func(s, y *Variable) (*Variable, []*Variable) {
			a := call(add, s, y)
			return a, list(a)
		}, true},
		"the other reader can come before": {aip, func(s, y *Variable) (*Variable, []*Variable) {
			a := call(add, s, y)
			return a, list(a, call(dotOp, s, y))
		}, true},
		"the other reader waits for the result": {aip, func(s, y *Variable) (*Variable, []*Variable) {
			a := call(add, s, y)
			return a, list(call(dotOp, a, s))
		}, false},
		"so does the reader of a view": {aip, func(s, y *Variable) (*Variable, []*Variable) {
			a := call(add, s, y)
			return a, list(call(dotOp, a, call(tv, s)))
		}, false},
		"the same input twice": {aip, func(s, _ *Variable) (*Variable, []*Variable) {
			a := call(add, s, s)
			return a, list(a)
		}, false},
		"the same input twice, tolerated": {tolerant, func(s, _ *Variable) (*Variable, []*Variable) {
			a := call(add, s, s)
			return a, list(a)
		}, true},
		"a view of it, not tolerated": {tolerant, func(s, _ *Variable) (*Variable, []*Variable) {
			a := call(add, s, call(tv, s))
			return a, list(a)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := input("x"), input("y")
			a, outs := c.build(call(sigmoid, x), y)
			g, h := destroyGraph(t, list(x, y), outs)
			before := dump(g)
			if got := h.MayOverwrite(a.owner, 0, c.op); got != c.want {
				t.Errorf("MayOverwrite is %v, want %v", got, c.want)
			}
			if diff := cmp.Diff(before, dump(g)); diff != "" {
				t.Errorf("the question changed the graph: %s", diff)
			}
			done, _ := substitute(t, g, add, c.op)
			if (done > 0) != c.want {
				t.Errorf("Validate says %v, want %v", done > 0, c.want)
			}
		})
	}
}

func TestOutputsAreKept(t *testing.T) {
	x, y := input("x"), input("y")
	s := call(sigmoid, x)
	g, _ := destroyGraph(t, list(x, y), list(call(tv, s), call(add, s, y)))
	if done, _ := substitute(t, g, add, aip); done != 0 {
		t.Error("an output that shows the memory was overwritten")
	}
	if err := g.ReplaceValidate(g.outputs[0], y, why("free")); err != nil {
		t.Fatal(err)
	}
	if done, _ := substitute(t, g, add, aip); done != 1 {
		t.Error("free memory was not overwritten")
	}
	if err := g.ReplaceValidate(y, call(tv, s), why("show")); !errors.Is(err, ErrInconsistent) {
		t.Errorf("destroyed memory shown by an output: %v", err)
	}
	wantConsistent(t, g, true)
}

func TestDisjointRegions(t *testing.T) {
	x := input("x")
	top, bottom := blockOp{Region{0, 5, 0, 10}}, blockOp{Region{5, 10, 0, 10}}
	middle := blockOp{Region{4, 6, 0, 10}}
	b1, b2 := call(top, x), call(bottom, x)
	g, h := destroyGraph(t, list(x), list(call(sip, b1), call(sip, b2)))
	wantConsistent(t, g, true)
	if h.shared(b1, b2) || !h.shared(b1, x) {
		t.Error("top and bottom share memory, or top and all do not")
	}
	if err := g.ReplaceValidate(b2, call(middle, x), why("overlap")); !errors.Is(err, ErrInconsistent) {
		t.Errorf("overlapping regions destroyed: %v", err)
	}
	wantConsistent(t, g, true)
	// A block of a block, with a view without region in between.
	if err := g.ReplaceValidate(b2, call(blockOp{Region{0, 2, 0, 3}}, call(bottom, x)), why("nested")); err != nil {
		t.Error(err)
	}
	wantConsistent(t, g, true)
	if err := g.ReplaceValidate(g.outputs[1].owner.inputs[0], call(bottom, call(tv, x)), why("opaque")); !errors.Is(err, ErrInconsistent) {
		t.Errorf("region of a view that may show anything: %v", err)
	}
	wantConsistent(t, g, true)
}

func TestMalformedMaps(t *testing.T) {
	for _, o := range []memOp{{name: "view twice", views: "0001"}, {name: "view of nothing", views: "07"}, {name: "destroy twice", destroys: "0010"}} {
		x, y := input("x"), input("y")
		g, _ := destroyGraph(t, list(x, y), list(call(o, x, y)))
		wantConsistent(t, g, false)
		if err := g.ReplaceValidate(g.outputs[0], call(add, x, y), why("repair")); err != nil {
			t.Error(err)
		}
	}
}

func TestCase14Destroyers(t *testing.T) {
	x, y := input("x"), input("y")
	e := call(aip, x, y)
	g, h := destroyGraph(t, list(x, y), list(e))
	if d := h.DestroyedBy(x); len(d) != 1 || d[0] != e.owner || h.DestroyedBy(y) != nil || !h.HasDestroyer(x) || h.HasDestroyer(y) {
		t.Errorf("destroyers of x: %v", d)
	}
	c, m := g.Clone()
	hc := NewDestroyHandler(anyInput)
	if err := c.Attach(hc); err != nil {
		t.Fatal(err)
	}
	if d := hc.DestroyedBy(m.Of(x)); len(d) != 1 || d[0] != m.Of(e).owner {
		t.Errorf("destroyer in the clone: %v", d)
	}
	hist := NewHistory()
	if err := g.Attach(hist); err != nil {
		t.Fatal(err)
	}
	cp := hist.Checkpoint()
	if err := g.Replace(e, call(add, x, y), why("add")); err != nil {
		t.Fatal(err)
	}
	if h.aliases.live > 0 {
		t.Error("destroyers left")
	}
	if err := hist.Revert(cp); err != nil {
		t.Fatal(err)
	}
	if d := h.DestroyedBy(x); len(d) != 1 || d[0] != e.owner {
		t.Errorf("destroyer after revert: %v", d)
	}
	wantConsistent(t, g, true)
}
