package kernel

import (
	"math"
	"slices"
	"testing"
)

// TestRelease: what is packed can be unpacked to the bit, and products don't need the matrix.
func TestRelease(t *testing.T) {
	for _, set := range supportedSets() {
		for _, size := range [][2]int{{1, 1}, {3, 200}, {16, 64}, {20, 33}, {21, 31}, {100, 7}, {259, 40}} {
			wide := New(size[0], size[1]+3)
			for i := range wide.Data {
				wide.Data[i] = float32(i%97) - 48
			}
			m := Cols(wide, 1, size[1])
			m.Data[0] = float32(math.Copysign(0, -1))
			m.Data[len(m.Data)-1] = math.Float32frombits(0x7fc00123)
			want := bitsOf(m)
			p := newWeights(set, m, false)
			x, before, after := New(2, size[1]), New(2, size[0]), New(2, size[0])
			for i := range x.Data {
				x.Data[i] = float32(i%7) - 3
			}
			p.Mul(x, Epilogue{}, before)
			if got := p.Release(); got != (set != blasSet) {
				t.Errorf("%v: released %v", set, got)
			}
			if !slices.Equal(bitsOf(p.Matrix()), want) {
				t.Errorf("%v, %v: other bits", set, size)
			}
			if set != blasSet {
				clear(wide.Data)
			}
			p.Mul(x, Epilogue{}, after)
			if !slices.Equal(bitsOf(before), bitsOf(after)) {
				t.Errorf("%v, %v: another product", set, size)
			}
		}
	}
	if newWeights(bestSet, New(2, 3), true).Release() {
		t.Error("a transpose is released")
	}
	empty := newWeights(bestSet, Matrix{}, false)
	if empty.Release(); empty.Matrix().Rows != 0 {
		t.Error("an empty matrix has rows")
	}
}

// bitsOf returns the bits of the elements of m.
func bitsOf(m Matrix) (b []uint32) {
	for i := range m.Rows {
		for _, v := range Row(m, i) {
			b = append(b, math.Float32bits(v))
		}
	}
	return b
}
