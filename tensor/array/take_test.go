package array_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// TestTakePutViews compares Take and Put with what single elements say, for views of every kind.
func TestTakePutViews(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var ws array.Workspace
	for try := range 3000 {
		dtype := array.DTypes()[rng.IntN(len(array.DTypes()))]
		base := array.New(dtype, 1+rng.IntN(3), 1+rng.IntN(4), 1+rng.IntN(5))
		for i := range base.Len() {
			base.SetFloat(i, float64(rng.IntN(9)))
		}
		order, backwards := rng.Perm(3), rng.IntN(3) == 0
		view := func(whole *array.Array) *array.Array {
			a := whole.Transpose(order...)
			if backwards {
				a.RangeTo(a, array.Range{Start: a.Dim(0) - 1, Step: -1, Count: a.Dim(0)})
			}
			return a
		}
		a := view(base)
		k := 1 + rng.IntN(3)
		shape := [][]int{{rng.IntN(5)}, {2, 1 + rng.IntN(3)}}[rng.IntN(2)]
		indexes := make([]*array.Array, k)
		for d := range indexes {
			indexes[d] = array.New(array.Int64, shape...)
			for i := range indexes[d].Len() {
				indexes[d].SetFloat(i, float64(rng.IntN(2*a.Dim(d))-a.Dim(d)))
			}
		}
		out := new(array.Array)
		if err := ws.Take(out, a, indexes...); err != nil {
			t.Fatal(err)
		}
		want := a.Clone()
		got := view(base.Clone())
		y := array.New(dtype, out.Shape()...)
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
				p, _ := array.Position(index.Int(i/n), a.Dim(d))
				at = at*a.Dim(d) + p
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

// TestTakeBetween: columns of an image with channels last are copied pixel by pixel, and the result has the layout of
// the image.
func TestTakeBetween(t *testing.T) {
	image := randomArray(rand.New(rand.NewPCG(3, 4)), array.Float32, 1, 3, 4, 5) // of 3 lines, 4 columns and 5 channels
	columns := array.Of([]int64{0, 0, 3, 1, -1, 2}, 6)
	var ws array.Workspace
	got := new(array.Array)
	if err := ws.Take(got, image.Transpose(2, 0, 1, 3), columns); err != nil {
		t.Fatal(err)
	}
	if !got.Transpose(1, 2, 0, 3).Contiguous() {
		t.Error("the result has another layout than the image")
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

// TestTakeOutside: an index that is out of range is named, whatever it is an index of.
func TestTakeOutside(t *testing.T) {
	var ws array.Workspace
	for _, p := range []int64{5, -6, 1 << 40, -1 << 63} {
		want := fmt.Sprintf("%v: %d in a dimension of size 5", array.ErrIndex, p)
		for _, shape := range [][]int{{5}, {5, 1}, {5, 2}, {5, 0}} {
			err := ws.Take(new(array.Array), array.New(array.Float32, shape...), array.Of([]int64{4, -5, p, 0}, 2, 2))
			if !errors.Is(err, array.ErrIndex) || err.Error() != want {
				t.Errorf("%d of shape %v: %v, want %s", p, shape, err, want)
			}
		}
	}
}
