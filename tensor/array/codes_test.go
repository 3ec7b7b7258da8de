package array_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor/array"
)

// randomCodes returns int8s or uint8s, and what means 0 in them: several numbers if n is not 0.
func randomCodes(r *rand.Rand, dtype array.DType, n int, shape ...int) (a, zero *array.Array) {
	a, zero = array.New(dtype, shape...), array.New(dtype)
	if n > 0 {
		zero = array.New(dtype, n)
	}
	for _, v := range []*array.Array{a, zero} {
		for i := range v.Len() {
			v.SetFloat(i, float64(r.IntN(256)))
			if dtype == array.Int8 {
				v.SetFloat(i, float64(r.IntN(256)-128))
			}
		}
	}
	return a, zero
}

// less returns a minus what means 0 in its last dimension, as float64s.
func less(a, zero *array.Array) *array.Array {
	b := a.Cast(array.Float64).Clone()
	for i := range b.Len() {
		k := 0
		if zero.Len() > 1 {
			k = i % zero.Len()
		}
		b.SetFloat(i, b.Float(i)-zero.Float(k))
	}
	return b
}

// checkFloatSums checks what run makes of sums as float32s, with an epilogue: the product times a number, more
// a row, as the kernel does it, and the sigmoid of that.
func checkFloatSums(t *testing.T, r *rand.Rand, sums *array.Array, run func(ws *array.Workspace, y *array.Array, e *array.Epilogue, args []*array.Array) error) {
	t.Helper()
	ones := slices.Repeat([]int{1}, sums.NDim())
	rows := slices.Clone(ones)
	rows[len(rows)-1] = sums.Dim(len(rows) - 1)
	scale, bias := array.Full(array.Float32, 0.1*r.Float64(), ones...), array.New(array.Float32, rows...)
	for i := range bias.Len() {
		bias.SetFloat(i, r.NormFloat64())
	}
	args := []*array.Array{scale, bias}
	p := array.NewProgram(array.Float32, array.Float32, array.Float32)
	p.Return(p.Append(array.Sigmoid, p.Append(array.Add, 2, p.Append(array.Mul, 0, 1))))
	want := array.New(array.Float32, sums.Shape()...)
	new(array.Workspace).Map(p, []*array.Array{want}, []*array.Array{sums.Cast(array.Float32), scale, bias})
	e := array.NewEpilogue(p, []array.ArgKind{array.AnyArg, array.RowArg, array.RowArg})
	for _, threads := range []*kernel.Threads{nil, kernel.NewThreads(3)} {
		divide.Always.Store(threads != nil)
		got := array.New(array.Float32, sums.Shape()...)
		err := run(&array.Workspace{Threads: threads}, got, e, args)
		divide.Always.Store(false)
		if err != nil || !array.Equal(got, want) {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
	}
}

// TestCodes: products and convolutions of integers of eight bits are exact, for all types, shapes, windows
// and zeros, with any number of threads.
func TestCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	types := []array.DType{array.Int8, array.Uint8}
	for trial := range 300 {
		out := 1 + r.IntN(40)
		zeros := 0
		if r.IntN(3) == 0 {
			zeros = out
		}
		tx, tw := types[r.IntN(2)], types[r.IntN(2)]
		var ws array.Workspace
		if trial%2 == 0 {
			rows, k := r.IntN(20), r.IntN(100)
			if trial%20 == 0 {
				rows, k = 400, 900
				if trial%40 == 0 { // several parts
					rows, k = 150, 2000
				}
			}
			a, za := randomCodes(r, tx, 0, rows, k)
			b, zb := randomCodes(r, tw, zeros, k, out)
			want, got := array.New(array.Float64, rows, out), array.New(array.Int32, rows, out)
			if err := ws.MatMul(want, less(a, za), less(b, zb)); err != nil {
				t.Fatal(err)
			}
			if trial%4 == 0 {
				a = a.Transpose(1, 0).Clone().Transpose(1, 0)
			}
			if err := ws.MatMulCodes(got, a, za, array.NewCodeWeights(b, zb), nil, nil); err != nil {
				t.Fatal(err)
			}
			if !array.Equal(got.Cast(array.Float64), want) {
				t.Fatalf("%d: %d×%d×%d of %v and %v is %v, want %v", trial, rows, out, k, tx, tw, got, want)
			}
			checkFloatSums(t, r, got, func(ws *array.Workspace, y *array.Array, e *array.Epilogue, args []*array.Array) error {
				return ws.MatMulCodes(y, a, za, array.NewCodeWeights(b, zb), e, args)
			})
			continue
		}
		dims, in := 1+r.IntN(array.MaxSpatial), 1+r.IntN(20)
		w := array.Window{Dims: dims}
		x, weights, y := []int{r.IntN(3)}, []int{}, []int{0}
		y[0] = x[0]
		for d := range dims {
			w.Size[d], w.Stride[d], w.Dilation[d] = 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(2)
			w.Before[d], w.After[d] = r.IntN(4)-1, r.IntN(4)-1
			n := 4 + r.IntN(6)
			x, weights, y = append(x, n), append(weights, w.Size[d]), append(y, w.OutputSize(d, n, false))
		}
		x, weights, y = append(x, in), append(weights, in, out), append(y, out)
		name := fmt.Sprintf("%d: %v and %v, x %v, weights %v, y %v, %+v", trial, tx, tw, x, weights, y, w)
		ax, zx := randomCodes(r, tx, 0, x...)
		aw, zw := randomCodes(r, tw, zeros, weights...)
		want, got := array.New(array.Float64, y...), array.New(array.Int32, y...)
		if err := ws.ConvLast(want, less(ax, zx), less(aw, zw), nil, w, 1, nil, nil); err != nil {
			t.Fatal(err)
		}
		prepared := array.NewCodeWeights(aw, zw)
		if err := ws.ConvLastCodes(got, ax, zx, aw, prepared, w, nil, nil); err != nil {
			t.Fatal(err)
		}
		if !array.Equal(got.Cast(array.Float64), want) {
			t.Fatalf("%s: %v, not %v", name, got, want)
		}
		divide.Always.Store(true)
		again, shared := array.New(array.Int32, y...), array.Workspace{Threads: kernel.NewThreads(3)}
		err := shared.ConvLastCodes(again, ax, zx, aw, prepared, w, nil, nil)
		divide.Always.Store(false)
		if err != nil || !array.Equal(again, got) {
			t.Fatalf("%s: three threads compute %v, %v, not %v", name, again, err, got)
		}
		checkFloatSums(t, r, got, func(ws *array.Workspace, y *array.Array, e *array.Epilogue, args []*array.Array) error {
			return ws.ConvLastCodes(y, ax, zx, aw, prepared, w, e, args)
		})
		if slices.Contains(y, 0) != (got.Len() == 0) {
			t.Fatal(name)
		}
	}
}
