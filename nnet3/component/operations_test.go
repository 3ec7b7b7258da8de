package component

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

func TestOperations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	const rows = 7
	for _, k := range []struct {
		typ, config       string
		forward, backward int64 // multiply-adds a row; backward for the derivative of the input
	}{
		{"AffineComponent", "input-dim=5 output-dim=3", 15, 15},
		{"LinearComponent", "input-dim=5 output-dim=3", 15, 15},
		{"RepeatedAffineComponent", "input-dim=10 output-dim=6 num-repeats=2", 30, 30},
		{"BlockAffineComponent", "input-dim=10 output-dim=6 num-blocks=2", 30, 30},
		{"GruNonlinearityComponent", "cell-dim=6 recurrent-dim=4", 24, 24},
		{"ConvolutionComponent", "input-x-dim=4 input-y-dim=3 input-z-dim=2 filt-x-dim=2 filt-y-dim=3 filt-x-step=1 filt-y-step=1 num-filters=5 input-vectorization-order=zyx",
			3 * 5 * 12, 3 * 5 * 12},
	} {
		c, ok := newComponent(t, k.typ, k.config, rnd).(OperationCounter)
		if !ok {
			t.Errorf("%s counts no operations", k.typ)
			continue
		}
		if got := c.Operations(nil, rows, rows); got.Forward != 2*rows*k.forward || got.InputDeriv != 2*rows*k.backward {
			t.Errorf("%s: %+v, want %d and %d multiply-adds a row", k.typ, got, k.forward, k.backward)
		}
	}
	c := newComponent(t, "TdnnComponent", "input-dim=4 output-dim=3 time-offsets=-1,0", rnd).(*tdnnComponent)
	in, out := make([]index.Index, rows+1), make([]index.Index, rows)
	for i := range in {
		in[i].T = int32(i) - 1
	}
	for i := range out {
		out[i].T = int32(i)
	}
	pre, err := c.PrecomputeIndexes(in, out, false)
	if err != nil {
		t.Fatal(err)
	}
	want := Operations{2 * rows * 24, 2 * rows * 24, 2 * rows * 24}
	if got := c.Operations(pre, rows+1, rows); got != want {
		t.Errorf("Tdnn: %+v, want %+v", got, want)
	}
	p, _ := NewProduct(c)
	if got := p.Operations(pre, rows+1, rows); got != (Operations{Forward: want.Forward}) {
		t.Errorf("Product: %+v", got)
	}
	if got := NewOverwriting(c).(OperationCounter).Operations(pre, rows+1, rows); got != want {
		t.Errorf("Overwriting: %+v", got)
	}
}

// TestRenew checks that after a change of parameters by hand Renew recomputes the prepared forms,
// including those of the parts and the compounds that derived components use, and that an update
// drops them.
func TestRenew(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	c := newComponent(t, "NaturalGradientAffineComponent", "input-dim=9 output-dim=6", rnd).(*naturalGradientAffineComponent)
	whole, _ := NewProduct(c)
	rows := []int32{0, 1, 2}
	left, preLeft := whole.Splice([]Splice{{Cols: 4, Rows: rows}}, 3, 9, true, false)
	right, preRight := whole.Splice([]Splice{{Col: 4, Cols: 5, SrcCol: 4, Rows: rows}}, 3, 9, false, true)
	in := randomMatrix(rnd, 3, 9)
	fixed := newComponent(t, "FixedAffineComponent", "input-dim=9 output-dim=9", rnd).(*fixedAffineComponent)
	before, _ := NewProduct(fixed)
	compound, ok := whole.After(before)
	again, _ := whole.After(before)
	if !ok || again.blocks[0].w != compound.blocks[0].w {
		t.Fatal("not multiplied out, or twice")
	}
	w := &Workspace{}
	check := func(when string) {
		t.Helper()
		want, got := kernel.New(3, 6), kernel.New(3, 6)
		for i := range want.Rows {
			for j := range want.Cols {
				kernel.Row(want, i)[j] = c.bias[j] + kernel.Dot(kernel.Row(in, i), kernel.Row(c.elements(), j))
			}
		}
		for i, p := range []*Product{left, right} {
			if _, err := Propagate(p, w, ForwardPass{Pre: []Precomputed{preLeft, preRight}[i]}, in, got); err != nil {
				t.Fatal(err)
			}
		}
		if !near(want, got, 1e-5) {
			t.Errorf("%s: the parts compute something else", when)
		}
		if _, err := Propagate(c, w, ForwardPass{}, in, got); err != nil || !near(want, got, 1e-5) {
			t.Errorf("%s: the component computes something else (%v)", when, err)
		}
		between := kernel.New(3, 9)
		for _, p := range []struct {
			c       Component
			in, out kernel.Matrix
		}{{fixed, in, between}, {c, between, want}, {compound, in, got}} {
			if _, err := Propagate(p.c, w, ForwardPass{}, p.in, p.out); err != nil {
				t.Fatal(err)
			}
		}
		if !near(want, got, 1e-5) {
			t.Errorf("%s: multiplied out it computes something else", when)
		}
	}
	for _, p := range []Preparer{c, left, right, compound} {
		p.Prepare()
	}
	check("prepared")
	c.Release()
	check("released")
	for _, w := range []*weights{&c.weights, left.blocks[0].w, compound.blocks[0].w} {
		if !w.released() {
			t.Error("the parameters are kept after a release")
		}
	}
	kernel.Scale(c.Params()[0].Values, -2)
	c.Renew(nil)
	check("renewed")
	if c.prepared == nil || left.blocks[0].w.prepared == nil {
		t.Error("what was renewed is not prepared")
	}
	c.update(new(Workspace), 1, in, randomMatrix(rnd, 3, 6))
	if left.blocks[0].w.prepared != nil {
		t.Error("a part outlives an update")
	}
	check("updated")
	left.Prepare()
	compound.Prepare()
	check("prepared anew")
	c.Prepare()
	c.Release()
	c.update(new(Workspace), 1, in, randomMatrix(rnd, 3, 6))
	check("updated after a release")
}
