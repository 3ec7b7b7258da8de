package fgraph

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPrintListener(t *testing.T) {
	var text strings.Builder
	l := PrintListener(&text)
	x, y := input("x"), input("y")
	f := call(op("f"), x)
	g := newGraph(t, list(x, y), list(f), l)
	if err := errors.Join(g.Replace(x, y, why("rule")), g.Replace(f, call(op("g"), y), why("rule")),
		g.AddOutput(y, why("more")), g.RemoveOutput(1, why("less"))); err != nil {
		t.Fatal(err)
	}
	g.Detach(l)
	want := `attach to a graph of 1 applies
change input 0 of f(y) from x to y (test/rule)
import g(y) (test/rule)
change output 0 of the graph from f(y) to g(y) (test/rule)
prune f(y) (test/rule)
add output 1 of the graph, y (test/more)
remove output 1 of the graph, y (test/less)
detach
`
	if text.String() != want {
		t.Errorf("%s", text.String())
	}
}

func TestNodeFinder(t *testing.T) {
	x := input("x")
	a, b := call(op("f"), x), call(&pointerOp{3}, x)
	c := call(op("f"), a)
	g := newGraph(t, list(x), list(c, b, call(&pointerOp{3}, a)))
	n := NewNodeFinder()
	if err := errors.Join(g.Attach(n), g.Attach(NewNodeFinder())); err != nil || len(g.Features()) != 1 {
		t.Fatal(err)
	}
	if got := n.Nodes(op("f")); !slices.Equal(got, list(a.owner, c.owner)) {
		t.Errorf("%v", got)
	}
	if got := n.Count(&pointerOp{3}); got != 2 {
		t.Errorf("%d applies of equal ops", got)
	}
	if n.Nodes(op("none")) != nil || n.Nodes(sliceOp{1}) != nil || n.Count(nil) != 0 || n.Count(op("none")) != 0 {
		t.Error("found what is not there")
	}
	if !OpsEqual(&pointerOp{1}, &pointerOp{1}) || OpsEqual(op("f"), &pointerOp{1}) || OpsEqual(&pointerOp{1}, op("f")) {
		t.Error("equality of ops")
	}
	g.Detach(n)
	if n.g != nil {
		t.Error("still attached")
	}
}

// pointerOp compares by content.
type pointerOp struct{ n int }

func (o *pointerOp) String() string { return fmt.Sprint("op", o.n) }
func (o *pointerOp) HashOp() uint64 { return uint64(o.n) }
func (o *pointerOp) EqualOp(p Op) bool {
	q, ok := p.(*pointerOp)
	return ok && *q == *o
}

func TestCheckpointsNest(t *testing.T) {
	x := input("x")
	h := NewHistory()
	if h.Checkpoint() != -1 || h.Revert(0) == nil {
		t.Error("a checkpoint without a graph")
	}
	g := newGraph(t, list(x), list(call(op("f"), x)), h)
	step := func(name string) string {
		t.Helper()
		if err := g.Replace(g.outputs[0], call(op(name), g.outputs[0]), why("step")); err != nil {
			t.Fatal(err)
		}
		return g.String()
	}
	s0 := g.String()
	outer := h.Checkpoint()
	s1 := step("a")
	middle := h.Checkpoint()
	step("b")
	inner := h.Checkpoint()
	step("c")
	h.Keep(inner)
	if err := h.Revert(inner); !errors.Is(err, ErrInvalid) {
		t.Errorf("revert to a checkpoint that was kept: %v", err)
	}
	if err := h.Revert(middle); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, s1)
	step("d")
	if err := h.Revert(outer); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, s0)
	if g.open != 0 || len(g.journal) != 0 {
		t.Error("the journal is kept")
	}
	h.Checkpoint()
	step("e")
	g.Detach(h)
	if g.open != 0 || len(g.journal) != 0 {
		t.Error("the journal is kept after the history has gone")
	}
}

func TestRevertRemovalOfInput(t *testing.T) {
	x, y := input("x"), input("y")
	h := NewHistory()
	g := newGraph(t, list(x, y), list(call(op("f"), x), call(op("g"), y)), h)
	before := dump(g)
	cp := h.Checkpoint()
	if err := g.RemoveInput(0, why("remove")); err != nil {
		t.Fatal(err)
	}
	if err := h.Revert(cp); err != nil || dump(g) != before || g.inputs[0] != x {
		t.Errorf("%v: %s", err, dump(g))
	}
	check(t, g)
}

func TestTiming(t *testing.T) {
	x := input("x")
	s := &sleeper{}
	g := newGraph(t, list(x), list(call(op("f"), x)), s)
	replace := func() {
		t.Helper()
		if err := g.ReplaceValidate(g.outputs[0], call(op("f"), x), why("step")); err != nil {
			t.Fatal(err)
		}
	}
	replace()
	if g.Times() != (Times{}) || g.Timing() {
		t.Errorf("%v before timing", g.Times())
	}
	g.SetTiming(true)
	replace()
	times := g.Times()
	if times.Callback < time.Millisecond || times.Validate < time.Millisecond {
		t.Errorf("%v", times)
	}
}

type sleeper struct{}

func (*sleeper) OnAttach(*FunctionGraph) error           { return nil }
func (*sleeper) OnImport(*FunctionGraph, *Apply, Reason) { time.Sleep(time.Millisecond) }
func (*sleeper) Validate(*FunctionGraph) error           { time.Sleep(time.Millisecond); return nil }

// A panic during an undo reaches the caller after the undo is complete.
func TestPanicWhileUndoing(t *testing.T) {
	x := input("x")
	f := call(op("f"), x)
	finder, r := NewNodeFinder(), &recorder{veto: ErrInconsistent, panics: "prune g"}
	g := newGraph(t, list(x), list(f), r, finder)
	before := dump(g)
	func() {
		defer func() {
			if p := recover(); p != "prune g" {
				t.Errorf("panic with %v", p)
			}
		}()
		_ = g.ReplaceValidate(f, call(op("g"), x), why("test"))
	}()
	if dump(g) != before || finder.Count(op("g")) != 0 || finder.Count(op("f")) != 1 {
		t.Errorf("%s", dump(g))
	}
	check(t, g)
}

func TestEqualData(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		a, b any
		want bool
	}{
		{1, 1, true}, {1, 2, false}, {1, 1.0, false}, {nil, nil, true}, {"a", "a", true},
		{nan, nan, false}, {[]int{1}, []int{1}, false}, {1, []int{1}, false},
	} {
		if got := EqualData(num, c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
		ha, oka := HashData(num, c.a)
		hb, okb := HashData(num, c.b)
		if c.want && (!oka || !okb || ha != hb) {
			t.Errorf("%v and %v are equal, but their hashes are not", c.a, c.b)
		}
		if oka && !EqualData(num, c.a, c.a) {
			t.Errorf("%v has a hash, but is not equal to itself", c.a)
		}
	}
	if h, ok := HashData(bitwise{}, nan); !ok || h != math.Float64bits(nan) || !EqualData(bitwise{}, nan, nan) || EqualData(bitwise{}, 0.0, math.Copysign(0, -1)) {
		t.Error("a type that compares its data is not asked")
	}
}

// bitwise compares numbers by their bits.
type bitwise struct{}

func (bitwise) String() string            { return "bits" }
func (bitwise) Accepts(t Type) bool       { return t == bitwise{} }
func (bitwise) HashData(x any) uint64     { return math.Float64bits(x.(float64)) }
func (b bitwise) EqualData(x, y any) bool { return b.HashData(x) == b.HashData(y) }
func (bitwise) FormatData(x any) string   { return fmt.Sprintf("%g:bits", x) }

func TestStrings(t *testing.T) {
	x := input("x")
	two := NewApply(op("two"), list(x, NewConstant(bitwise{}, 0.5, ""), NewInput(num, "")), num, num)
	named := call(op("f"), two.outputs[1])
	named.SetName("y")
	long := constant(strings.Repeat("long ", 20))
	for _, c := range []struct {
		got, want string
	}{
		{two.outputs[1].String(), "two(x, 0.5:bits, <num>)::1"},
		{named.String(), "y"},
		{named.owner.String(), "f(two(x, 0.5:bits, <num>)::1)"},
		{call(op("g"), call(op("g"), named)).String(), "g(g(…))"},
		{Sprint(0, two.outputs[0], two.outputs[1], x), "[*1 -> two(x, 0.5:bits, <num>)::0, *1::1, x]"},
		{Sprint(1, named), "[f(…)]"},
		{long.String(), "long long long long long long long long …"},
		{Sprint(2, call(op("wide"), slices.Repeat(list(x), 100)...)), "[wide(" + strings.Repeat("x, ", 16) + "…)]"},
		{why("rule").String(), "test/rule"}, {Reason{Rule: "r"}.String(), "r"}, {Reason{"p", "p"}.String(), "p"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func TestMayDestroy(t *testing.T) {
	x, y := input("x"), input("y")
	s, q, k := call(sigmoid, x), call(sigmoid, y), constant(1)
	view := call(tv, s)
	g := newGraph(t, list(x, y), list(call(aip, view, k), call(op("f"), q, call(op("h"), x)), q))
	h := NewDestroyHandler(func(v *Variable) bool { return v == x })
	if err := g.Attach(h); err != nil {
		t.Fatal(err)
	}
	for v, want := range map[*Variable]bool{x: true, y: false, k: false, s: false, view: false, q: false, g.outputs[1].owner.inputs[1]: true} {
		if got := h.MayDestroy(v); got != want {
			t.Errorf("%v: %v", v, got)
		}
	}
	g.Detach(h)
	if h.g != nil {
		t.Error("still attached")
	}
}

func TestNumbers(t *testing.T) {
	x := input("x")
	a := call(op("f"), x)
	b := call(op("g"), a, constant(1))
	g := newGraph(t, list(x), list(b))
	if g.NumApplyIDs() != 2 || g.NumVariableIDs() != 4 || g.applies[b.owner.ID()] != b.owner || g.variables[a.ID()] != a ||
		!g.ComesBefore(a.owner, b.owner) || g.ComesBefore(b.owner, a.owner) {
		t.Error("numbers")
	}
	// New applies and variables reuse numbers.
	for i := range 100 {
		if err := g.Replace(b, call(op("g"), a, constant(i)), why("again")); err != nil {
			t.Fatal(err)
		}
		b = g.outputs[0]
	}
	if g.NumApplyIDs() > 3 || g.NumVariableIDs() > 6 {
		t.Errorf("%d and %d numbers in use", g.NumApplyIDs(), g.NumVariableIDs())
	}
	b.owner.SetOrigin(4)
	c, m := g.Clone()
	if m.Of(b).owner.Origin() != 4 || m.Of(b) != c.Outputs()[0] || m.Of(input("other")) != nil || m.Of(call(op("f"))) != nil || c.String() != g.String() {
		t.Error("clone")
	}
}
