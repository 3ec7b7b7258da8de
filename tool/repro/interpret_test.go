package repro_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tool/repro"
)

// graphOf returns the graph of outputs of gates.
func graphOf(t *testing.T, inputs []*fgraph.Variable, outputs ...*fgraph.Variable) *fgraph.FunctionGraph {
	t.Helper()
	g, err := fgraph.New(inputs, outputs)
	check(t, err)
	return g
}

// TestInterpret: inputs, constants and several results find their places, in any depth.
func TestInterpret(t *testing.T) {
	x, unused := fgraph.NewInput(boolean{}, "x"), fgraph.NewInput(boolean{}, "unused")
	two := fgraph.NewConstant(boolean{}, 2, "")
	swap := fgraph.NewApply(gate("swap"), []*fgraph.Variable{x, two}, boolean{}, boolean{})
	v := swap.Outputs()[1]
	const depth = 100_000
	for range depth {
		v = fgraph.NewApply(gate("next"), []*fgraph.Variable{v}, boolean{}).Out()
	}
	g := graphOf(t, []*fgraph.Variable{unused, x}, v, swap.Outputs()[0], two, x)
	step := func(a *fgraph.Apply, in []any) ([]any, error) {
		if a.Op() == fgraph.Op(gate("swap")) {
			return []any{in[1], in[0]}, nil
		}
		return []any{in[0].(int) + 1}, nil
	}
	got, err := repro.Interpret(g, []any{nil, 5}, step)
	if want := []any{5 + depth, 2, 2, 5}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := repro.Interpret(g, []any{5}, step); !errors.Is(err, repro.ErrCase) {
		t.Error(err)
	}
}

// TestInterpretFaults: an error names the apply.
func TestInterpretFaults(t *testing.T) {
	x := fgraph.NewInput(boolean{}, "x")
	g := graphOf(t, []*fgraph.Variable{x}, fgraph.NewApply(gate("not"), []*fgraph.Variable{x}, boolean{}).Out())
	for _, c := range []struct {
		out  []any
		err  error
		want error
	}{
		{nil, errors.ErrUnsupported, errors.ErrUnsupported},
		{[]any{1, 2}, nil, repro.ErrCase},
	} {
		_, err := repro.Interpret(g, []any{1}, func(*fgraph.Apply, []any) ([]any, error) { return c.out, c.err })
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "not(x)") {
			t.Error(err)
		}
	}
}

// TestInterpretInPlace: an op that overwrites an input gets the value itself, after all others that
// read it.
func TestInterpretInPlace(t *testing.T) {
	x := fgraph.NewInput(boolean{}, "x")
	gateOf := func(op gate, in ...*fgraph.Variable) *fgraph.Variable {
		return fgraph.NewApply(op, in, boolean{}).Out()
	}
	fresh := gateOf("not", x)
	// In the order of the graph itself, the second reader would come after the gate in place.
	g := graphOf(t, []*fgraph.Variable{x}, gateOf("not!", fresh), gateOf("not", fresh))
	var order []string
	apply := func(a *fgraph.Apply, in []any) ([]any, error) {
		order = append(order, a.Op().String())
		if p := in[0].(*int); a.Op() == fgraph.Op(gate("not!")) {
			*p = -*p
			return []any{p}, nil
		}
		v := -*in[0].(*int)
		return []any{&v}, nil
	}
	three := 3
	got, err := repro.Interpret(g, []any{&three}, apply)
	check(t, err)
	if a, b := *got[0].(*int), *got[1].(*int); a != 3 || b != 3 || three != 3 || !slices.Equal(order, []string{"not", "not", "not!"}) {
		t.Errorf("%d and %d of %d by %v", a, b, three, order)
	}
	// Inputs may not be overwritten.
	x = fgraph.NewInput(boolean{}, "x")
	if _, err := repro.Interpret(graphOf(t, []*fgraph.Variable{x}, gateOf("not!", x)), []any{&three}, apply); !errors.Is(err, fgraph.ErrInconsistent) {
		t.Error(err)
	}
}
