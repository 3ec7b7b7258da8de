package array_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// TestSort compares with a sort of positions by the standard library, for all types and layouts.
func TestSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1}
	for _, dtype := range []array.DType{array.Bool, array.Int64, array.Float32, array.Float64} {
		for try := range 200 {
			shape := []int{rng.IntN(4), rng.IntN(100), rng.IntN(4)}
			a := randomLayout(rng, dtype, shape...)
			for i := range a.Len() {
				if v := special[rng.IntN(len(special))]; rng.IntN(3) == 0 && (dtype.IsFloat() || v-v == 0) {
					a.SetFloat(i, v)
				}
			}
			axis := try % 3
			sorted, order := array.New(dtype, shape...), array.New(array.Int64, shape...)
			new(array.Workspace).Sort(sorted, a, axis)
			new(array.Workspace).ArgSort(order, a, axis)
			checkSorted(t, a, sorted, order, axis)
		}
	}
}

// checkSorted checks each line.
func checkSorted(t *testing.T, a, sorted, order *array.Array, axis int) {
	t.Helper()
	dims := slices.DeleteFunc([]int{0, 1, 2}, func(d int) bool { return d == axis })
	dims = append(dims, axis)
	a, sorted, order = a.Transpose(dims...).Clone(), sorted.Transpose(dims...).Clone(), order.Transpose(dims...).Clone()
	n := a.Dim(2)
	for at := 0; at < a.Len(); at += n {
		want := make([]int, n)
		for i := range want {
			want[i] = i
		}
		sort.SliceStable(want, func(i, j int) bool {
			x, y := a.Float(at+want[i]), a.Float(at+want[j])
			return x < y || x == x && y != y
		})
		for i, from := range want {
			if order.Int(at+i) != int64(from) {
				t.Fatalf("%v %v: element %d comes from %d, want %d", a.DType(), a, at+i, order.Int(at+i), from)
			}
			x, y := sorted.Float(at+i), a.Float(at+from)
			if math.Float64bits(x) != math.Float64bits(y) && (x == x || y == y) {
				t.Fatalf("%v: element %d of %v is %v, want %v", a.DType(), at+i, sorted, x, y)
			}
		}
	}
}

// TestSortLargeIntegers sorts integers that no float64 tells apart.
func TestSortLargeIntegers(t *testing.T) {
	a := array.Of([]int64{1<<60 + 2, 1 << 60, 1<<60 + 1, -1<<60 - 1, -1 << 60}, 5)
	sorted, order, least := array.New(array.Int64, 5), array.New(array.Int64, 5), array.New(array.Int64)
	new(array.Workspace).Sort(sorted, a, 0)
	new(array.Workspace).ArgSort(order, a, 0)
	if err := new(array.Workspace).ArgMin(least, a, 1); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(array.Slice[int64](order), []int64{3, 4, 1, 2, 0}) || !slices.IsSorted(array.Slice[int64](sorted)) || least.Int(0) != 3 {
		t.Errorf("%v, %v, %v", sorted, order, least)
	}
}

// TestCumulate compares with sums and products in another order, for all layouts.
func TestCumulate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var ws array.Workspace
	for _, dtype := range []array.DType{array.Bool, array.Int64, array.Float32, array.Float64} {
		for try := range 100 {
			shape := []int{rng.IntN(4), 1 + rng.IntN(6), rng.IntN(4)}
			a := randomLayout(rng, dtype, shape...)
			axis := try % 3
			for _, products := range []bool{false, true} {
				out := array.New(array.Sum.Result(dtype), shape...)
				ws.Cumulate(out, a, axis, products)
				inner := 1
				for _, n := range shape[axis+1:] {
					inner *= n
				}
				for i := range a.Len() {
					want := a.Float(i)
					for k := 1; k <= i/inner%shape[axis]; k++ {
						if x := a.Float(i - k*inner); products {
							want *= x
						} else {
							want += x
						}
					}
					if d := math.Abs(out.Float(i) - want); !(d <= 1e-6*math.Abs(want)+1e-5) {
						t.Fatalf("%v %v along %d: element %d is %v, want %v", dtype, a, axis, i, out.Float(i), want)
					}
				}
			}
		}
	}
}
