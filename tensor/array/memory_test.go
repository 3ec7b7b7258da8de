package array

import (
	"slices"
	"testing"
)

// TestPlace: New gives an array its home, with the layout that it is asked for, whatever it was before.
func TestPlace(t *testing.T) {
	var ws Workspace
	home, other := NewMemory(Float32, 6), NewMemory(Float32, 6)
	a := new(Array)
	place := func(m Memory, dtype DType, shape ...int) {
		t.Helper()
		ws.Place([]*Array{a}, []Memory{m}, nil)
		if err := ws.New(a, dtype, shape...); err != nil {
			t.Fatal(err)
		}
		fresh := New(dtype, shape...)
		if a.dtype != dtype || a.offset != 0 || !slices.Equal(a.Shape(), shape) || a.strides != fresh.strides {
			t.Fatalf("%v of shape %v and strides %v at %d, want %v of %v", a.dtype, a.Shape(), a.strides, a.offset, dtype, shape)
		}
		if in := a.In(m); in != (dtype == Float32 && fresh.Len() == 6) {
			t.Fatalf("shape %v: it is %v that it is at home", shape, in)
		}
	}
	shapes := [][]int{{2, 3}, {3, 2}, {6}, {1, 6}, {6, 1}, {2, 3, 1}, {2, 2}, {7}, {2, 3}, {0}, {2, 3}}
	for _, shape := range shapes {
		for range 2 {
			place(home, Float32, shape...)
		}
		place(other, Float32, shape...)
		place(home, Float64, shape...)
		place(home, Float32, shape...)
		// What an op has made a view of since.
		if len(shape) == 2 && a.Len() > 0 {
			a.TransposeTo(a, 1, 0)
			place(home, Float32, shape...)
			a.TransposeTo(a, 1, 0)
			place(home, Float32, shape[1], shape[0])
			a.RangeTo(a, Range{Start: shape[1] - 1, Step: 1, Count: 1})
			place(home, Float32, 1, shape[0])
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		if ws.New(a, Float32, 2, 3) != nil || ws.New(a, Float32, 3, 2) != nil {
			t.Error("no memory")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRepeats: elements have memory in common in views that repeat them, and in no others.
func TestRepeats(t *testing.T) {
	a := New(Float32, 2, 3)
	broadcast := func(a *Array, shape ...int) *Array {
		v, err := a.BroadcastTo(shape...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	back := new(Array)
	a.RangeTo(back, Range{Start: 1, Step: -1, Count: 2})
	for i, c := range []struct {
		a    *Array
		want bool
	}{
		{a, false}, {a.Transpose(1, 0), false}, {a.Transpose(NewAxis, 1, NewAxis, 0), false}, {back, false}, {Scalar(1.0), false},
		{broadcast(a, 1, 2, 3), false}, {broadcast(a, 4, 2, 3), true}, {broadcast(Scalar(1.0), 2), true}, {broadcast(Scalar(1.0), 0, 2), false},
		{&Array{dtype: Float32, ndim: 2, shape: [MaxDims]int{2, 3}, strides: [MaxDims]int{1, 1}, data: a.data}, true},
		{&Array{dtype: Float32, ndim: 2, shape: [MaxDims]int{3, 2}, strides: [MaxDims]int{2, -1}, offset: 1, data: a.data}, false},
	} {
		if got := c.a.Repeats(); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
