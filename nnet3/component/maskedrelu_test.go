package component

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
)

// TestMaskedReLUOfRows checks that the backward pass over some of the rows equals that of the base
// component.
func TestMaskedReLUOfRows(t *testing.T) {
	const rows, cols = 7, 70
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) kernel.Matrix {
		m := kernel.New(n, cols)
		for i := range m.Data {
			m.Data[i] = float32(r.NormFloat64())
		}
		return m
	}
	base := newRectifiedLinear(t, cols)
	for _, part := range [][2]int{{0, 7}, {0, 3}, {2, 4}, {6, 1}} {
		first, n := part[0], part[1]
		masked, _ := NewMaskedReLU(base, first, n)
		c := masked.(Backpropper)
		x, y, w := random(rows), kernel.New(rows, cols), new(Workspace)
		memo, err := Propagate(c, w, ForwardPass{}, x, y)
		if err != nil {
			t.Fatal(err)
		}
		dy, want, got := random(n), kernel.New(n, cols), random(n)
		if err := Backprop(base, w, BackwardPass{OutValue: kernel.Rows(y, first, n), OutDeriv: dy, InDeriv: want}); err != nil {
			t.Fatal(err)
		}
		if err := Backprop(c, w, BackwardPass{OutDeriv: dy, Memo: memo, InDeriv: got}); err != nil {
			t.Fatal(err)
		}
		for i := range want.Data {
			if got.Data[i] != want.Data[i] {
				t.Fatalf("rows %d to %d: element %d is %g, want %g", first, first+n, i, got.Data[i], want.Data[i])
			}
		}
	}
	tooMany, _ := NewMaskedReLU(base, 5, 3)
	if _, err := Propagate(tooMany, new(Workspace), ForwardPass{}, random(rows), kernel.New(rows, cols)); !errors.Is(err, ErrShape) {
		t.Errorf("rows that are not there: %v", err)
	}
}

func newRectifiedLinear(t *testing.T, dim int) *nonlinearity {
	t.Helper()
	c, _ := kaldi.New("RectifiedLinearComponent")
	line, err := ParseConfigLine("component name=r type=RectifiedLinearComponent dim=70")
	if err != nil {
		t.Fatal(err)
	}
	if err := Init(c, line); err != nil {
		t.Fatal(err)
	}
	if c.InputDim() != dim {
		t.Fatalf("%d columns", c.InputDim())
	}
	return c.(*nonlinearity)
}
