package fgraph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// recorder records callbacks.
func TestCase01Clients(t *testing.T) {
	a, b := input("a"), input("b")
	x := call(op("op1"), a)
	y := call(op("op2"), x, b)
	g := newGraph(t, list(a, b), list(x, y))
	if got, want := x.Clients(), list(Client{nil, 0}, Client{y.owner, 0}); !slices.Equal(got, want) {
		t.Errorf("clients of op1: %v", got)
	}
	if got, want := y.Clients(), list(Client{nil, 1}); !slices.Equal(got, want) {
		t.Errorf("clients of op2: %v", got)
	}
	if g.NumApplies() != 2 || !g.Contains(x.owner) || x.Graph() != g {
		t.Error("applies are missing")
	}
}

func TestCase02NewErrors(t *testing.T) {
	a, b := input("a"), input("b")
	x := call(op("op1"), a)
	used := input("used")
	newGraph(t, list(used), list(call(op("f"), used)))
	for _, c := range []struct {
		name            string
		inputs, outputs []*Variable
		err             error
	}{
		{"input with owner", list(x), list(x), ErrInvalid},
		{"constant as input", list(constant(1)), list(x), ErrInvalid},
		{"input twice", list(a, a), list(x), ErrInvalid},
		{"nil input", []*Variable{nil}, list(x), ErrInvalid},
		{"nil output", list(a), list(x, nil), ErrInvalid},
		{"undeclared", list(a), list(x, call(op("op2"), b)), ErrMissingInput},
		{"undeclared output", list(a), list(b), ErrMissingInput},
		{"input of another graph", list(used), list(used), ErrForeign},
		{"part of another graph", list(a), list(call(op("f"), a, used)), ErrForeign},
		{"nil among the inputs of an apply", list(a), list(call(op("f"), a, nil)), ErrInvalid},
		{"op that cannot be compared", list(a), list(call(sliceOp{1}, a)), ErrInvalid},
		{"no op", list(a), list(call(nil, a)), ErrInvalid},
		{"input without type", list(NewInput(nil, "n")), nil, ErrInvalid},
		{"constant without type", list(a), list(NewConstant(nil, 1, "")), ErrInvalid},
		{"output without type", list(a), list(NewApply(op("f"), list(a), nil).Out()), ErrInvalid},
	} {
		if _, err := New(c.inputs, c.outputs); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		// The other variables can still be used.
		if a.ID() != -1 || x.ID() != -1 || x.owner.ID() != -1 || len(a.Clients()) != 0 {
			t.Fatalf("%s: something still belongs to the failed graph", c.name)
		}
	}
	newGraph(t, list(a), list(x))
}

type sliceOp []int

func (sliceOp) String() string { return "slice" }

func TestCase03Prune(t *testing.T) {
	a := input("a")
	v4 := call(op("op4"), call(op("op3"), a), constant(1))
	two := NewApply(op("two"), list(v4, v4), num, num)
	r := &recorder{}
	g := newGraph(t, list(a), list(two.outputs[1], a), r)
	if err := g.Replace(two.outputs[1], a, why("testing")); err != nil {
		t.Fatal(err)
	}
	want := list("change output 0 of the graph: two(op4(…, 1), op4(…, 1))::1 to a", "prune two", "prune op4", "prune op3")
	if !slices.Equal(r.events, want) {
		t.Errorf("events %q", r.events)
	}
	if v4.ID() != -1 || two.ID() != -1 || two.Graph() != nil || g.NumApplies() != 0 || len(slices.Collect(g.Variables())) != 1 {
		t.Error("something is left")
	}
	wantString(t, g, "[a, a]")
}

func TestCase04ImportUndeclared(t *testing.T) {
	a := input("a")
	x := call(op("op1"), a)
	g := newGraph(t, list(a), list(x))
	root := input("root")
	err := g.Replace(x, call(op("op2"), call(op("op3"), root)), why("test"))
	if !errors.Is(err, ErrMissingInput) || !strings.Contains(err.Error(), "missing input root, used as input 0 of op3(root): ") {
		t.Fatalf("%v", err)
	}
	wantString(t, g, "[op1(a)]")
	if err := g.AddInput(root); err != nil {
		t.Fatal(err)
	}
	if err := g.Replace(x, call(op("op2"), root), why("test")); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, "[op2(root)]")
}

func TestCase05SameVariableAndTypes(t *testing.T) {
	a := input("a")
	x := call(op("op1"), a)
	r := &recorder{}
	g := newGraph(t, list(a), list(x), r)
	if err := g.Replace(a, a, why("same")); err != nil || len(r.events) > 0 || g.Commits() != 0 {
		t.Errorf("%v, events %q", err, r.events)
	}
	other := NewConstant(typ("other"), 1, "")
	for _, v := range list(a, x) { // an input of an apply, and an output of the graph
		want := fmt.Sprintf("test/type: incompatible type: 1 cannot replace %v: type %v does not accept other", v, v.Type())
		if err := g.Replace(v, other, why("type")); !errors.Is(err, ErrType) || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
	if err := g.Replace(x, NewConstant(typ("number"), 1, ""), why("narrower")); err != nil {
		t.Error(err)
	}
	wantString(t, g, "[1]")
	if err := g.Replace(g.Outputs()[0], a, why("wider")); !errors.Is(err, ErrType) {
		t.Error(err)
	}
}

func TestCase06Replace(t *testing.T) {
	a, b := input("a"), input("b")
	v3 := call(op("op1"), b, a)
	v4 := call(op("op2"), v3, b)
	v5 := call(op("op3"), v4, b, b)
	g := newGraph(t, list(a, b), list(v3, v5))
	if err := g.Replace(v3, a, why("test")); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, "[a, op3(op2(a, b), b, b)]")
	if g.NumApplies() != 2 || !slices.Equal(v4.owner.Inputs(), list(a, b)) {
		t.Error("op2 does not read a and b")
	}
}

// Theano accepts a replacement that depends on the variable, which creates a cycle. Here
// it is refused, and the graph is unchanged.
func TestCase07CyclesAreRefused(t *testing.T) {
	a := input("a")
	x := call(op("op1"), a)
	y := call(op("op2"), x)
	z := call(op("op3"), y)
	g := newGraph(t, list(a), list(z))
	before := dump(g)
	if err := g.Replace(x, z, why("test")); !errors.Is(err, ErrCycle) {
		t.Errorf("%v", err)
	}
	if err := g.ReplaceAll([]Replacement{{x, call(op("op4"), z)}}, why("test")); !errors.Is(err, ErrCycle) {
		t.Errorf("%v", err)
	}
	if dump(g) != before {
		t.Errorf("changed to %s", dump(g))
	}
	// There may be a cycle in between if there is none in the end.
	if err := g.ReplaceAll([]Replacement{{x, z}, {y, a}}, why("test")); err != nil {
		t.Error(err)
	}
	wantString(t, g, "[op3(a)]")
}

func TestCase08Check(t *testing.T) {
	for _, c := range []struct {
		name, want string
		damage     func(g *FunctionGraph, x, y *Variable)
	}{
		{"missing apply", "missing apply op1", func(g *FunctionGraph, x, _ *Variable) { g.applies[x.owner.id] = nil }},
		{"missing client", "missing client: input 0 of op2", func(_ *FunctionGraph, x, _ *Variable) { x.clients = x.clients[:1] }},
		{"missing variable", "missing variable op1", func(g *FunctionGraph, x, _ *Variable) { g.variables[x.id] = nil }},
		{"undeclared input", "undeclared input w", func(_ *FunctionGraph, _, y *Variable) { y.owner.inputs[1] = input("w") }},
		{"wrong output", "wrong output client: op1(a) lists output 1", func(_ *FunctionGraph, x, _ *Variable) {
			x.clients = append(x.clients, Client{nil, 1})
		}},
		{"foreign client", "foreign client: op1(a) lists f(x)", func(_ *FunctionGraph, x, _ *Variable) {
			x.clients = append(x.clients, Client{call(op("f"), input("x")).owner, 0})
		}},
		{"stale client", "stale client: op1(a) lists input 1 of op2", func(_ *FunctionGraph, x, y *Variable) {
			x.clients = append(x.clients, Client{y.owner, 1})
		}},
		{"superfluous apply", "superfluous apply: no output depends on f", func(g *FunctionGraph, _, _ *Variable) {
			g.link(call(op("f")).owner)
		}},
		{"order", "order: op1(a) does not come before its client op2", func(g *FunctionGraph, x, y *Variable) {
			g.order.remove(x.owner.id)
			g.order.insertLast(x.owner.id)
		}},
		{"op", "2 applies of op1 are known, there are 1", func(g *FunctionGraph, x, _ *Variable) { g.countOp(x.owner, 1) }},
		{"count", "do not add up", func(g *FunctionGraph, _, _ *Variable) { g.live++ }},
	} {
		a, b := input("a"), input("b")
		x := call(op("op1"), a)
		y := call(op("op2"), x, b)
		g := newGraph(t, list(a, b), list(x, y))
		g.Ops()
		c.damage(g, x, y)
		if err := g.Check(); !errors.Is(err, ErrCheck) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestCase09Remove(t *testing.T) {
	build := func() (*FunctionGraph, []*Variable) {
		a, b := input("a"), input("b")
		m := call(op("m"), call(op("only"), a))
		outs := list(call(op("o0"), m), call(op("o1"), b), call(op("o2"), m, b), b)
		return newGraph(t, list(a, b), outs), list(a, b, m)
	}
	g, vs := build()
	hist := NewHistory()
	if err := g.Attach(hist); err != nil {
		t.Fatal(err)
	}
	cp := hist.Checkpoint()
	before := dump(g)
	if err := g.RemoveApply(vs[2].owner, why("test")); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, "[o1(b), b]")
	if err := hist.Revert(cp); err != nil || dump(g) != before {
		t.Errorf("%v\n%s\nis not\n%s", err, dump(g), before)
	}
	if err := g.RemoveOutput(1, why("test")); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, "[o0(*1 -> m(only(a))), o2(*1, b), b]")

	g, vs = build()
	hist = NewHistory()
	if err := g.Attach(hist); err != nil {
		t.Fatal(err)
	}
	remove := func() {
		if err := g.RemoveInput(1, why("test")); err != nil {
			t.Fatal(err)
		}
		wantString(t, g, "[o0(m(only(a)))]")
		if len(g.Inputs()) != 1 || g.Inputs()[0] != vs[0] {
			t.Error("the input is still there")
		}
	}
	cp, before = hist.Checkpoint(), dump(g)
	remove()
	if err := hist.Revert(cp); err != nil || dump(g) != before {
		t.Errorf("%v\n%s\nis not\n%s", err, dump(g), before)
	}
	remove()
	if vs[1].ID() != -1 {
		t.Error("the input is still part of the graph")
	}
	for _, err := range []error{g.RemoveOutput(7, why("")), g.RemoveInput(-1, why("")), g.RemoveApply(vs[1].owner, why(""))} {
		if !errors.Is(err, ErrInvalid) {
			t.Error(err)
		}
	}
}

func TestCase10NoOutputs(t *testing.T) {
	a := input("a")
	g := newGraph(t, list(a), nil)
	wantString(t, g, "[]")
	if g.NumApplies() != 0 || len(a.Clients()) != 0 {
		t.Error("there is something")
	}
	if order, err := g.Toposort(); err != nil || len(order) != 0 {
		t.Error(order, err)
	}
	if err := g.AddOutput(call(op("f"), a), why("add")); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, "[f(a)]")
}

// Nothing recurses: a chain of a million applies works in every respect.
func TestLongChain(t *testing.T) {
	n := 1_000_000
	if !longtest.Enabled() {
		n = 10_000
	}
	x := input("x")
	v := x
	for range n {
		v = call(op("f"), v)
	}
	g := newGraph(t, list(x), list(v), NewDestroyHandler(nil))
	if s := g.String(); len(s) != 3*n+3 {
		t.Errorf("printed in %d bytes", len(s))
	}
	var tree strings.Builder
	if err := g.WriteTree(&tree); err != nil || tree.Len() > 100_000 {
		t.Errorf("%v, %d bytes of tree", err, tree.Len())
	}
	if order, err := g.Toposort(); err != nil || len(order) != n {
		t.Error(err)
	}
	c, m := g.Clone()
	check(t, c)
	if m.Of(v) != c.Outputs()[0] {
		t.Error("mapping")
	}
	hist := NewHistory()
	if err := g.Attach(hist); err != nil {
		t.Fatal(err)
	}
	cp := hist.Checkpoint()
	if err := g.Replace(v, x, why("all")); err != nil || g.NumApplies() != 0 {
		t.Error(err)
	}
	if err := hist.Revert(cp); err != nil || g.NumApplies() != n {
		t.Error(err)
	}
	check(t, g)
}
