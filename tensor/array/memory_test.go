package array_test

import (
	"slices"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// TestPlace: New gives an array its home, with the layout that it is asked for, whatever it was before.
func TestPlace(t *testing.T) {
	var ws array.Workspace
	home, other := array.NewMemory(array.Float32, 6), array.NewMemory(array.Float32, 6)
	a := new(array.Array)
	place := func(m array.Memory, dtype array.DType, shape ...int) {
		t.Helper()
		ws.Place([]*array.Array{a}, []array.Memory{m}, nil)
		if err := ws.New(a, dtype, shape...); err != nil {
			t.Fatal(err)
		}
		fresh := array.New(dtype, shape...)
		if a.DType() != dtype || !slices.Equal(a.Shape(), shape) || !array.SameLayout(a, fresh) {
			t.Fatalf("%v of shape %v, contiguous: %t, want %v of %v", a.DType(), a.Shape(), a.Contiguous(), dtype, shape)
		}
		if in := a.In(m); in != (dtype == array.Float32 && fresh.Len() == 6) {
			t.Fatalf("shape %v: it is %v that it is at home", shape, in)
		}
	}
	shapes := [][]int{{2, 3}, {3, 2}, {6}, {1, 6}, {6, 1}, {2, 3, 1}, {2, 2}, {7}, {2, 3}, {0}, {2, 3}}
	for _, shape := range shapes {
		for range 2 {
			place(home, array.Float32, shape...)
		}
		place(other, array.Float32, shape...)
		place(home, array.Float64, shape...)
		place(home, array.Float32, shape...)
		// What an op has made a view of since.
		if len(shape) == 2 && a.Len() > 0 {
			a.TransposeTo(a, 1, 0)
			place(home, array.Float32, shape...)
			a.TransposeTo(a, 1, 0)
			place(home, array.Float32, shape[1], shape[0])
			a.RangeTo(a, array.Range{Start: shape[1] - 1, Step: 1, Count: 1})
			place(home, array.Float32, 1, shape[0])
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		if ws.New(a, array.Float32, 2, 3) != nil || ws.New(a, array.Float32, 3, 2) != nil {
			t.Error("no memory")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRepeats: elements have memory in common in views that repeat them, and in no others.
func TestRepeats(t *testing.T) {
	a := array.New(array.Float32, 2, 3)
	broadcast := func(a *array.Array, shape ...int) *array.Array {
		v, err := a.BroadcastTo(shape...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	back := new(array.Array)
	a.RangeTo(back, array.Range{Start: 1, Step: -1, Count: 2})
	diagonal, turned := new(array.Array), new(array.Array)
	broadcast(array.New(array.Float32, 3), 3, 3).DiagonalTo(diagonal, 0, 0, 1)
	a.Reshape(3, 2).RangeTo(turned, array.Range{Step: 1, Count: 3}, array.Range{Start: 1, Step: -1, Count: 2})
	for i, c := range []struct {
		a    *array.Array
		want bool
	}{
		{a, false}, {a.Transpose(1, 0), false}, {a.Transpose(array.NewAxis, 1, array.NewAxis, 0), false}, {back, false}, {array.Scalar(1.0), false},
		{broadcast(a, 1, 2, 3), false}, {broadcast(a, 4, 2, 3), true}, {broadcast(array.Scalar(1.0), 2), true}, {broadcast(array.Scalar(1.0), 0, 2), false},
		{broadcast(array.New(array.Float32, 2, 1), 2, 3), true}, {diagonal, false}, {turned, false},
	} {
		if got := c.a.Repeats(); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
