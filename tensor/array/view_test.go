package array_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
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
		a := array.New(array.Int64, shape...)
		for i := range a.Len() {
			a.SetInt(i, int64(i))
		}
		v := a.Transpose(r.Perm(len(shape))...)
		m := v.InMemoryOrder()
		if !m.Contiguous() || !array.Equal(m.Reshape(a.Len()), a.Reshape(a.Len())) {
			t.Errorf("%v of %v: %v", v.Shape(), shape, m)
		}
		if w := v.Clone(); !array.SameLayout(v, v) || array.SameLayout(v, w) != v.Contiguous() {
			t.Errorf("%v of %v: layouts", v.Shape(), shape)
		}
	}
	if array.SameLayout(array.New(array.Int64, 2, 3), array.New(array.Int64, 3, 2)) {
		t.Error("the same layout for other shapes")
	}
}

// TestEqual: arrays are compared element by element, in whatever order these lie.
func TestEqual(t *testing.T) {
	nan, other := math.NaN(), math.Float64frombits(0x7ff8000000000123)
	for _, dtype := range []array.DType{array.Float32, array.Float64, array.Float16, array.Int64, array.Uint8} {
		a := array.New(dtype, 3, 4)
		for i := range a.Len() {
			a.SetFloat(i, float64(i))
		}
		turned := a.Transpose(1, 0).Clone().Transpose(1, 0)
		part := a.Reshape(12).Reshape(1, 3, 4).Reshape(3, 4)
		for _, b := range []*array.Array{a.Clone(), turned, part, turned.Clone()} {
			if !array.Equal(a, b) || !array.Equal(b, a) || !array.Equal(b, b) {
				t.Errorf("%v: %v and %v differ", dtype, a, b)
			}
		}
		for _, at := range []int{0, 7, 11} {
			for _, b := range []*array.Array{a.Clone(), a.Transpose(1, 0).Clone().Transpose(1, 0)} {
				b.SetFloat(at, 99)
				if array.Equal(a, b) || array.Equal(b, a) {
					t.Errorf("%v: %v and %v are equal", dtype, a, b)
				}
				if !dtype.IsFloat() {
					continue
				}
				c := a.Clone()
				b.SetFloat(at, nan)
				c.SetFloat(at, other)
				if !array.Equal(b, c) || array.Equal(a, b) {
					t.Errorf("%v: NaN in %v and %v", dtype, b, c)
				}
				b.SetFloat(at, 0)
				c.SetFloat(at, math.Copysign(0, -1))
				if array.Equal(b, c) {
					t.Errorf("%v: zeros of %v and %v", dtype, b, c)
				}
			}
		}
	}
}
