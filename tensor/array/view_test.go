package array

import (
	"math/rand/v2"
	"testing"
)

// TestInMemoryOrder: whatever the order of the dimensions of a view, that of memory is found, and layouts are the same
// if elements are in the same places.
func TestInMemoryOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		shape := make([]int, r.IntN(5))
		for d := range shape {
			shape[d] = 1 + r.IntN(3)
		}
		a := New(Int64, shape...)
		for i := range a.Len() {
			a.SetInt(i, int64(i))
		}
		v := a.Transpose(r.Perm(len(shape))...)
		m := v.InMemoryOrder()
		if !m.Contiguous() || !Equal(m.Reshape(a.Len()), a.Reshape(a.Len())) {
			t.Errorf("%v of %v: %v", v.Shape(), shape, m)
		}
		if w := v.Clone(); !SameLayout(v, v) || SameLayout(v, w) != v.Contiguous() {
			t.Errorf("%v of %v: layouts", v.Shape(), shape)
		}
	}
	if SameLayout(New(Int64, 2, 3), New(Int64, 3, 2)) {
		t.Error("the same layout for other shapes")
	}
}
