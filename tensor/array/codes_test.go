package array

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/kernel"
)

// randomCodes returns int8s or uint8s, and what means 0 in them: several numbers if n is not 0.
func randomCodes(r *rand.Rand, dtype DType, n int, shape ...int) (a, zero *Array) {
	a, zero = New(dtype, shape...), New(dtype)
	if n > 0 {
		zero = New(dtype, n)
	}
	for _, v := range []*Array{a, zero} {
		for i := range v.Len() {
			v.SetFloat(i, float64(r.IntN(256)))
			if dtype == Int8 {
				v.SetFloat(i, float64(r.IntN(256)-128))
			}
		}
	}
	return a, zero
}

// less returns a minus what means 0 in its last dimension, as float64s.
func less(a, zero *Array) *Array {
	b := a.Cast(Float64).Clone()
	for i := range b.Len() {
		k := 0
		if zero.Len() > 1 {
			k = i % zero.Len()
		}
		b.SetFloat(i, b.Float(i)-zero.Float(k))
	}
	return b
}

// TestCodes: products and convolutions of integers of eight bits are exact, for all types, shapes, windows
// and zeros, with any number of threads.
func TestCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	types := []DType{Int8, Uint8}
	for trial := range 300 {
		out := 1 + r.IntN(40)
		zeros := 0
		if r.IntN(3) == 0 {
			zeros = out
		}
		tx, tw := types[r.IntN(2)], types[r.IntN(2)]
		var ws Workspace
		if trial%2 == 0 {
			rows, k := r.IntN(20), r.IntN(100)
			if trial%20 == 0 {
				rows, k = 400, 900
			}
			a, za := randomCodes(r, tx, 0, rows, k)
			b, zb := randomCodes(r, tw, zeros, k, out)
			want, got := New(Float64, rows, out), New(Int32, rows, out)
			if err := ws.MatMul(want, less(a, za), less(b, zb)); err != nil {
				t.Fatal(err)
			}
			if trial%4 == 0 {
				a = a.Transpose(1, 0).Clone().Transpose(1, 0)
			}
			if err := ws.MatMulCodes(got, a, za, NewCodeWeights(b, zb)); err != nil {
				t.Fatal(err)
			}
			if !Equal(got.Cast(Float64), want) {
				t.Fatalf("%d: %d×%d×%d of %v and %v is %v, want %v", trial, rows, out, k, tx, tw, got, want)
			}
			continue
		}
		dims, in := 1+r.IntN(MaxSpatial), 1+r.IntN(20)
		w := Window{Dims: dims}
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
		want, got := New(Float64, y...), New(Int32, y...)
		if err := ws.ConvLast(want, less(ax, zx), less(aw, zw), nil, w, 1, nil, nil); err != nil {
			t.Fatal(err)
		}
		prepared := NewCodeWeights(aw, zw)
		if err := ws.ConvLastCodes(got, ax, zx, aw, prepared, w); err != nil {
			t.Fatal(err)
		}
		if !Equal(got.Cast(Float64), want) {
			t.Fatalf("%s: %v, not %v", name, got, want)
		}
		divide.Always.Store(true)
		again, shared := New(Int32, y...), Workspace{Threads: kernel.NewThreads(3)}
		err := shared.ConvLastCodes(again, ax, zx, aw, prepared, w)
		divide.Always.Store(false)
		if err != nil || !Equal(again, got) {
			t.Fatalf("%s: three threads compute %v, %v, not %v", name, again, err, got)
		}
		if slices.Contains(y, 0) != (got.Len() == 0) {
			t.Fatal(name)
		}
	}
}
