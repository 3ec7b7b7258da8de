package array

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestTakePutViews compares Take and Put with what single elements say, for views of every kind.
func TestTakePutViews(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var ws Workspace
	for try := range 3000 {
		dtype := DType(rng.IntN(int(numDTypes)))
		base := New(dtype, 1+rng.IntN(3), 1+rng.IntN(4), 1+rng.IntN(5))
		for i := range base.Len() {
			base.SetFloat(i, float64(rng.IntN(9)))
		}
		a := base.Transpose(rng.Perm(3)...)
		if rng.IntN(3) == 0 { // backwards
			a.RangeTo(a, Range{Start: a.shape[0] - 1, Step: -1, Count: a.shape[0]})
		}
		k := 1 + rng.IntN(3)
		shape := [][]int{{rng.IntN(5)}, {2, 1 + rng.IntN(3)}}[rng.IntN(2)]
		indexes := make([]*Array, k)
		for d := range indexes {
			indexes[d] = New(Int64, shape...)
			for i := range indexes[d].Len() {
				indexes[d].SetFloat(i, float64(rng.IntN(2*a.shape[d])-a.shape[d]))
			}
		}
		out := new(Array)
		if err := ws.Take(out, a, indexes...); err != nil {
			t.Fatal(err)
		}
		want := a.Clone()
		got := base.Clone()
		*got = Array{dtype, a.ndim, a.shape, a.strides, a.offset, got.data}
		y := New(dtype, out.Shape()...)
		for i := range y.Len() {
			y.SetFloat(i, float64(rng.IntN(9)))
		}
		add := rng.IntN(2) == 0
		n := 1
		for _, size := range a.Shape()[k:] {
			n *= size
		}
		for i := range out.Len() {
			at := 0
			for d, index := range indexes {
				p, _ := Position(index.Int(i/n), a.shape[d])
				at = at*a.shape[d] + p
			}
			at = at*n + i%n
			if out.Float(i) != a.Float(at) {
				t.Fatalf("try %d: Take(%v, %v) is %v", try, a, indexes, out)
			}
			v := y.Float(i)
			if add {
				v += want.Float(at)
			}
			want.SetFloat(at, v)
		}
		if rng.IntN(2) == 0 { // in another order
			y = y.Transpose(reversed(y.NDim())...).Clone().Transpose(reversed(y.NDim())...)
		}
		if err := ws.Put(got, y, add, indexes...); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.Floats()) != fmt.Sprint(want.Floats()) {
			t.Fatalf("try %d: Put(%v, %v, %v, %v) is %v, want %v", try, a, y, add, indexes, got, want)
		}
		ws.Release(out)
	}
}

func reversed(n int) []int {
	order := make([]int, n)
	for d := range order {
		order[d] = n - 1 - d
	}
	return order
}

// TestTakeOutside: an index that is out of range is named, whatever it is an index of.
// TestTakeBetween: columns of an image with channels last are copied pixel by pixel, and the result has the layout of
// the image.
func TestTakeBetween(t *testing.T) {
	image := randomArray(rand.New(rand.NewPCG(3, 4)), Float32, 1, 3, 4, 5) // of 3 lines, 4 columns and 5 channels
	columns := Of([]int64{0, 0, 3, 1, -1, 2}, 6)
	var ws Workspace
	got := new(Array)
	if err := ws.Take(got, image.Transpose(2, 0, 1, 3), columns); err != nil {
		t.Fatal(err)
	}
	if !got.Transpose(1, 2, 0, 3).Contiguous() {
		t.Errorf("the result has the strides %v", got.strides[:got.ndim])
	}
	for i, column := range []int{0, 0, 3, 1, 3, 2} {
		for k := range 15 {
			line, channel := k/5, k%5
			if v, want := got.Float((i*3+line)*5+channel), image.Float((line*4+column)*5+channel); v != want {
				t.Fatalf("column %d, line %d, channel %d: %v, not %v", i, line, channel, v, want)
			}
		}
	}
}

func TestTakeOutside(t *testing.T) {
	var ws Workspace
	for _, p := range []int64{5, -6, 1 << 40, -1 << 63} {
		want := fmt.Sprintf("%v: %d in a dimension of size 5", ErrIndex, p)
		for _, shape := range [][]int{{5}, {5, 1}, {5, 2}, {5, 0}} {
			err := ws.Take(new(Array), New(Float32, shape...), Of([]int64{4, -5, p, 0}, 2, 2))
			if !errors.Is(err, ErrIndex) || err.Error() != want {
				t.Errorf("%d of shape %v: %v, want %s", p, shape, err, want)
			}
		}
	}
}
