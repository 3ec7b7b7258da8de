package fgraph

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// op is an op identified by its name.
type op string

func (o op) String() string { return string(o) }

// typ accepts every type whose name starts with its own.
type typ string

func (t typ) String() string { return string(t) }
func (t typ) Accepts(u Type) bool {
	v, ok := u.(typ)
	return ok && strings.HasPrefix(string(v), string(t))
}

const num = typ("num")

func input(name string) *Variable              { return NewInput(num, name) }
func constant(data any) *Variable              { return NewConstant(num, data, "") }
func call(o Op, inputs ...*Variable) *Variable { return NewApply(o, inputs, num).Out() }
func why(rule string) Reason                   { return Reason{Pass: "test", Rule: rule} }
func list[T any](x ...T) []T                   { return x }

func newGraph(t testing.TB, inputs, outputs []*Variable, features ...Feature) *FunctionGraph {
	t.Helper()
	g, err := New(inputs, outputs, features...)
	if err != nil {
		t.Fatal(err)
	}
	check(t, g)
	return g
}

func check(t testing.TB, g *FunctionGraph) {
	t.Helper()
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
}

func wantString(t testing.TB, g *FunctionGraph, want string) {
	t.Helper()
	check(t, g)
	if got := g.String(); got != want {
		t.Fatalf("graph is %s, want %s", got, want)
	}
}

func TestSeedExample(t *testing.T) {
	x, y, z := input("x"), input("y"), input("z")
	g := newGraph(t, list(x, y, z), list(call(op("true_div"), call(op("mul"), call(op("add"), y, z), x), call(op("add"), y, z))))
	wantString(t, g, "[true_div(mul(add(y, z), x), add(y, z))]")
	div := g.Outputs()[0].Owner()
	if err := g.Replace(div.Inputs()[1], div.Inputs()[0].Owner().Inputs()[0], why("merge")); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, "[true_div(mul(*1 -> add(y, z), x), *1)]")
	if err := g.Replace(g.Outputs()[0], x, why("simplify")); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, "[x]")
}

func TestReplaceErrorsLeaveGraph(t *testing.T) {
	x, y := input("x"), input("y")
	a := call(op("a"), x)
	b := call(op("b"), a, y)
	g := newGraph(t, list(x, y), list(b, a))
	foreign := call(op("a"), input("z"))
	newGraph(t, list(foreign.owner.inputs[0]), list(foreign))
	const before = "[b(*1 -> a(x), y), *1]"
	for _, c := range []struct {
		name string
		pair Replacement
		err  error
	}{
		{"cycle", Replacement{a, b}, ErrCycle},
		{"cycle through new", Replacement{a, call(op("c"), call(op("d"), b))}, ErrCycle},
		{"missing", Replacement{a, call(op("c"), input("w"))}, ErrMissingInput},
		{"type", Replacement{a, NewInput(typ("other"), "o")}, ErrType},
		{"nil", Replacement{a, nil}, ErrInvalid},
		{"of another graph", Replacement{foreign, y}, ErrForeign},
		{"by that of another graph", Replacement{a, foreign}, ErrForeign},
	} {
		if err := g.Replace(c.pair.Old, c.pair.New, why(c.name)); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
		wantString(t, g, before)
	}
	if err := g.Replace(x, call(op("f"), x), why("self")); err != nil {
		t.Fatal(err)
	}
	wantString(t, g, "[b(*1 -> a(f(x)), y), *1]")
}

// Toposort caches its result. Callers can't modify the cache, and changes invalidate it.
func TestToposortAgain(t *testing.T) {
	x := input("x")
	a := call(op("f"), x)
	b := call(op("g"), a)
	g := newGraph(t, list(x), list(b))
	sorted := func() string {
		order, err := g.Toposort()
		if err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, a := range order {
			names += a.op.String()
		}
		clear(order)
		return names
	}
	if first, again := sorted(), sorted(); first != "fg" || again != first {
		t.Errorf("%s, then %s", first, again)
	}
	if err := g.Replace(b, call(op("i"), call(op("h"), a)), why("longer")); err != nil {
		t.Fatal(err)
	}
	if s := sorted(); s != "fhi" {
		t.Error(s)
	}
	h := NewHistory()
	if err := g.Attach(h); err != nil {
		t.Fatal(err)
	}
	cp := h.Checkpoint()
	if err := g.Replace(g.outputs[0], a, why("shorter")); err != nil {
		t.Fatal(err)
	}
	if s := sorted(); s != "f" {
		t.Error(s)
	}
	if err := h.Revert(cp); err != nil {
		t.Fatal(err)
	}
	if s := sorted(); s != "fhi" {
		t.Error(s)
	}
}

// TestNewInOrder: applies get numbers in the order in which they are listed, which must be possible.
func TestNewInOrder(t *testing.T) {
	build := func() (x *Variable, applies []*Apply) {
		x = input("x")
		a := NewApply(op("a"), []*Variable{x}, num)
		b := NewApply(op("b"), []*Variable{x}, num)
		c := NewApply(op("c"), []*Variable{b.Out(), a.Out()}, num)
		return x, []*Apply{a, b, c}
	}
	x, list := build()
	g, err := NewInOrder([]*Variable{x}, []*Variable{list[2].Out()}, []*Apply{list[1], list[0]})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	order, err := g.Toposort()
	if err != nil || !slices.Equal(order, []*Apply{list[1], list[0], list[2]}) {
		t.Error(order, err)
	}
	for name, pick := range map[string]func(list []*Apply) []*Apply{
		"operands last": func(l []*Apply) []*Apply { return []*Apply{l[2], l[0], l[1]} },
		"twice":         func(l []*Apply) []*Apply { return []*Apply{l[0], l[0]} },
		"nil":           func(l []*Apply) []*Apply { return []*Apply{nil} },
		"unused":        func(l []*Apply) []*Apply { return append(l, NewApply(op("d"), l[2].Outputs(), num)) },
	} {
		x, list := build()
		if _, err := NewInOrder([]*Variable{x}, []*Variable{list[2].Out()}, pick(list)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := New([]*Variable{x}, []*Variable{list[2].Out()}); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
	}
}
