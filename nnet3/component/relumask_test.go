package component

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/kernel"
)

// TestMaskedReLUOfRows: the backward pass over some of the rows is that of the base component over these rows.
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
	all, _ := NewMaskedReLU(base)
	for _, part := range [][2]int{{0, 7}, {0, 3}, {2, 4}, {6, 1}} {
		first, n := part[0], part[1]
		c := all.OfRows(first, n)
		x, y, w := random(rows), kernel.New(rows, cols), new(Workspace)
		memo, err := c.Propagate(w, nil, x, y)
		if err != nil {
			t.Fatal(err)
		}
		dy, want, got := random(n), kernel.New(n, cols), random(n)
		if err := base.Backprop(w, nil, kernel.Matrix{}, kernel.Rows(y, first, n), dy, nil, nil, want); err != nil {
			t.Fatal(err)
		}
		if err := c.Backprop(w, nil, kernel.Matrix{}, kernel.Matrix{}, dy, memo, nil, got); err != nil {
			t.Fatal(err)
		}
		for i := range want.Data {
			if got.Data[i] != want.Data[i] {
				t.Fatalf("rows %d to %d: element %d is %g, want %g", first, first+n, i, got.Data[i], want.Data[i])
			}
		}
	}
	if _, err := all.OfRows(5, 3).Propagate(new(Workspace), nil, random(rows), kernel.New(rows, cols)); !errors.Is(err, ErrShape) {
		t.Errorf("rows that are not there: %v", err)
	}
}

func newRectifiedLinear(t *testing.T, dim int) *rectifiedLinearComponent {
	t.Helper()
	c, _ := New("RectifiedLinearComponent")
	line, err := ParseConfigLine("component name=r type=RectifiedLinearComponent dim=70")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Init(line); err != nil {
		t.Fatal(err)
	}
	if c.InputDim() != dim {
		t.Fatalf("%d columns", c.InputDim())
	}
	return c.(*rectifiedLinearComponent)
}
