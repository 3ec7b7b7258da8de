package array_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// draw gives the elements of arrays other values.
func draw(r *rand.Rand, arrays ...*array.Array) {
	for _, a := range arrays {
		for i := range a.Len() {
			a.SetFloat(i, r.NormFloat64())
		}
	}
}

// TestAgain: what is computed again has the bits of the first time, for other elements, whatever was computed meanwhile. Nothing
// says how to compute what is large or lies in no order.
func TestAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p := array.NewProgram(array.Float32, array.Float32, array.Float32)
	sum := p.Append(array.Add, p.Append(array.Sigmoid, 0), 2)
	p.Return(p.Append(array.Mul, p.Append(array.Sub, p.Constant(array.Scalar[float32](1)), sum), 1))
	for _, c := range []struct {
		rows, k, n int
		again      bool
	}{{1, 7, 5, true}, {1, 32, 96, true}, {4, 16, 24, true}, {9, 16, 24, false}, {5, 8, 200, false}} {
		x, y, number := array.New(array.Float32, c.rows, c.n), array.New(array.Float32, c.rows, c.n), array.New(array.Float32, 1, 1)
		a, b := array.New(array.Float32, c.rows, c.k), array.New(array.Float32, c.k, c.n)
		draw(r, b)
		factor := array.NewFactor(b, nil, nil)
		e := array.NewEpilogue(p, []array.ArgKind{array.AnyArg, array.FullArg, array.RowArg})
		var ws array.Workspace
		got, want := array.New(array.Float32, c.rows, c.n), array.New(array.Float32, c.rows, c.n)
		// Completed in place, as the maps of most loops are.
		mapped := ws.MapAgain(p, []*array.Array{x}, []*array.Array{x, y, number})
		product := ws.MulRowsAgain(got, a, factor, e, []*array.Array{y, number})
		alone := ws.MulRowsAgain(got, a, factor, nil, nil)
		if (mapped != nil) != (c.rows*c.n <= 512) || (product != nil) != c.again || (alone != nil) != (c.again || c.rows*c.n > 512) {
			t.Errorf("%v: %t, %t, %t", c, mapped != nil, product != nil, alone != nil)
			continue
		}
		for range 3 {
			draw(r, x, y, number, a)
			if mapped != nil {
				ws.Map(p, []*array.Array{want}, []*array.Array{x, y, number})
				if mapped(); !array.Equal(x, want) {
					t.Errorf("%v: %v, want %v", c, x, want)
				}
			}
			for with, again := range map[*array.Epilogue]func(){e: product, nil: alone} {
				var args []*array.Array
				if with != nil {
					args = []*array.Array{y, number}
				}
				if err := ws.MulRows(want, a, b, factor, with, args); err != nil {
					t.Fatal(err)
				}
				if again == nil {
					continue
				}
				if again(); !array.Equal(got, want) {
					t.Errorf("%v: %v, want %v", c, got, want)
				}
			}
		}
	}
	x := array.New(array.Float32, 3, 4)
	if new(array.Workspace).MapAgain(p, []*array.Array{x}, []*array.Array{x, array.New(array.Float32, 4, 3).Transpose(1, 0), array.New(array.Float32, 1, 1)}) != nil {
		t.Error("a transpose is in no order")
	}
	if new(array.Workspace).MulRowsAgain(x, x.Transpose(1, 0), nil, nil, nil) != nil {
		t.Error("nothing was prepared")
	}
}

// TestRows: rows are copied from and to views of any order, of any type.
func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, dtype := range []array.DType{array.Float32, array.Int8, array.Float64} {
		for _, a := range []*array.Array{array.New(dtype, 3, 2, 4), array.New(dtype, 4, 2, 3).Transpose(2, 1, 0), array.New(dtype, 3, 4, 2).Transpose(0, 2, 1)} {
			for i := range a.Len() {
				a.SetFloat(i, float64(r.IntN(100)))
			}
			b, row := array.New(dtype, a.Shape()...), array.New(dtype, 2, 4)
			for i := range 3 {
				array.RowTo(row, a, i)
				array.ToRow(b, i, row)
			}
			if !array.Equal(a, b) {
				t.Errorf("%v, want %v", b, a)
			}
		}
	}
}
