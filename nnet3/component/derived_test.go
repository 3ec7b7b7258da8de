package component

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// A component that adds its derivative to another one gives the bits of a separate sum, and the same
// gradient.
func TestAdding(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	for _, k := range []struct {
		typ, config string
		step        int32 // between two output rows
	}{
		{"AffineComponent", "input-dim=17 output-dim=9", 1},
		{"LinearComponent", "input-dim=9 output-dim=70", 1},
		{"TdnnComponent", "input-dim=33 output-dim=20 time-offsets=-1,0,2", 1},
		{"TdnnComponent", "input-dim=8 output-dim=5 time-offsets=0", 1},
		{"TdnnComponent", "input-dim=8 output-dim=5 time-offsets=-3,0", 3},
	} {
		c := newComponent(t, k.typ, k.config, rnd)
		sum, ok := NewAdding(NewOverwriting(c))
		if !ok {
			t.Fatalf("%s can't add", k.typ)
		}
		in, out := make([]index.Index, 24), make([]index.Index, 6)
		for i := range in {
			in[i].T = int32(i) - 3
		}
		for i := range out {
			out[i].T = k.step * int32(i)
		}
		if c.Properties().Has(Simple) {
			in = in[:len(out)]
		}
		var pre Precomputed
		if p, ok := c.(NonSimple); ok {
			var err error
			if pre, err = p.PrecomputeIndexes(in, out, true); err != nil {
				t.Fatal(err)
			}
		}
		x, dy := randomMatrix(rnd, len(in), c.InputDim()), randomMatrix(rnd, len(out), c.OutputDim())
		run := func(c Component, to Component, dx kernel.Matrix) {
			if err := Backprop(c.(Backpropper), new(Workspace), BackwardPass{Pre: pre, InValue: x, OutDeriv: dy, ToUpdate: to, InDeriv: dx}); err != nil {
				t.Fatal(err)
			}
		}
		got := randomMatrix(rnd, len(in), c.InputDim())
		kernel.Fill(kernel.Rows(got, len(in)-1, 1), float32(math.Copysign(0, -1)))
		want, dx := kernel.Clone(got), kernel.New(len(in), c.InputDim())
		first, second := NewGradient(c), NewGradient(c)
		run(NewOverwriting(c), first, dx)
		kernel.Add(want, 1, dx)
		run(sum, second, got)
		sameBits(t, k.typ, got.Data, want.Data)
		for i, p := range first.(UpdatableComponent).Params() {
			sameBits(t, p.Name, second.(UpdatableComponent).Params()[i].Values.Data, p.Values.Data)
		}
		want1, got1 := c.(OperationCounter).Operations(pre, len(in), len(out)), sum.(OperationCounter).Operations(pre, len(in), len(out))
		if got1 != want1 {
			t.Errorf("%s: %+v, want %+v", k.typ, got1, want1)
		}
		text, err := DerivedText(sum, func(Component) (string, error) { return "c", nil })
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseDerived(text, func(string) (Component, error) { return c, nil })
		if err != nil || again.Type() != sum.Type() {
			t.Errorf("%q is %v, %v", text, again, err)
		}
	}
	relu := newComponent(t, "RectifiedLinearComponent", "dim=4", rnd)
	if _, ok := NewAdding(relu); ok {
		t.Error("a ReLU adds")
	}
	if _, err := ParseDerived("adding base=relu", func(string) (Component, error) { return relu, nil }); err == nil {
		t.Error("the text of a ReLU that adds is read")
	}
}
