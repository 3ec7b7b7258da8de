package array_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// randomArray returns numbers of both signs, and some zeros.
func randomArray(r *rand.Rand, dtype array.DType, shape ...int) *array.Array {
	a := array.New(dtype, shape...)
	for i := range a.Len() {
		if r.IntN(8) > 0 {
			a.SetFloat(i, 2*r.Float64()-1)
		}
	}
	return a
}

// TestConvLast: with channels last, a convolution has the bits of the one with channels second, with
// weights prepared or not, for any window, and its epilogue those of Map.
func TestConvLast(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 400 {
		dims, dtype := 1+r.IntN(array.MaxSpatial), []array.DType{array.Float32, array.Float32, array.Float64}[r.IntN(3)]
		groups := []int{1, 1, 2, 3}[r.IntN(4)]
		in, out := 1+r.IntN(5), 1+r.IntN(7)
		if trial%40 == 0 {
			in *= 8
		}
		w := array.Window{Dims: dims}
		x, weights, y := []int{r.IntN(3), groups * in}, []int{groups * out, in}, []int{0, groups * out}
		y[0] = x[0]
		for d := range dims {
			w.Size[d], w.Stride[d], w.Dilation[d] = 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(2)
			w.Before[d], w.After[d] = r.IntN(4)-1, r.IntN(4)-1
			n := 3 + r.IntN(6)
			switch { // lines that are multiplied where they are
			case trial%40 == 0 && dims == 2: // in several chunks
				n = 50 + r.IntN(40)
			case d == dims-1 && r.IntN(2) == 0:
				n += 40
			}
			x, weights, y = append(x, n), append(weights, w.Size[d]), append(y, w.OutputSize(d, n, false))
		}
		name := fmt.Sprintf("%d: %v, x %v, weights %v, y %v, %+v", trial, dtype, x, weights, y, w)
		var ws array.Workspace
		ax, aw, want := randomArray(r, dtype, x...), randomArray(r, dtype, weights...), array.New(dtype, y...)
		if err := ws.Conv(want, ax, aw, w, groups); err != nil {
			t.Fatal(err)
		}
		last, window := []int{0}, []int{}
		for d := range dims {
			last, window = append(last, d+2), append(window, d+2)
		}
		xl, wl, wantLast := ax.Transpose(append(last, 1)...), aw.Transpose(append(window, 1, 0)...).Clone(), want.Transpose(append(last, 1)...).Clone()
		if r.IntN(2) == 0 {
			xl = xl.Clone()
		}
		var prepared *array.LastWeights
		if r.IntN(3) > 0 {
			if r.IntN(2) == 0 { // a view of the weights with the channels first, or of others
				wl = aw.Transpose(append(window, 1, 0)...)
			}
			if r.IntN(8) == 0 {
				wl = wl.Transpose(reversed(dims + 2)...).Clone().Transpose(reversed(dims + 2)...)
			}
			prepared = array.NewLastWeights(wl, groups, nil)
		}
		got := randomArray(r, dtype, wantLast.Shape()...)
		p, args, kinds := randomEpilogue(r, dtype, wantLast.Shape())
		if err := ws.ConvLast(got, xl, wl, prepared, w, groups, nil, nil); err != nil {
			t.Fatal(err)
		}
		if !array.Equal(got, wantLast) {
			t.Fatalf("%s: %v, not %v", name, got, wantLast)
		}
		if err := ws.ConvLast(got, xl, wl, prepared, w, groups, array.NewEpilogue(p, kinds), args); err != nil {
			t.Fatal(err)
		}
		ws.Map(p, []*array.Array{wantLast}, append([]*array.Array{wantLast}, args...))
		if !array.Equal(got, wantLast) {
			t.Fatalf("%s: %v of %v: %v, not %v", name, p, kinds, got, wantLast)
		}
	}
}

// randomEpilogue returns a program for a product of a shape, the other inputs, and the kinds of all.
func randomEpilogue(r *rand.Rand, dtype array.DType, shape []int) (p *array.Program, args []*array.Array, kinds []array.ArgKind) {
	types := []array.DType{dtype}
	kinds = []array.ArgKind{array.AnyArg}
	for range 1 + r.IntN(5) {
		s := append([]int(nil), shape...)
		kind := array.FullArg
		if r.IntN(3) > 0 {
			kind = array.RowArg
			for d := range s[:len(s)-1] {
				s[d] = 1
			}
		} else if r.IntN(4) == 0 {
			kind, s[len(s)-1] = array.AnyArg, 1
		}
		if dtype != array.Float32 {
			kind = array.AnyArg
		}
		args, types, kinds = append(args, randomArray(r, dtype, s...)), append(types, dtype), append(kinds, kind)
	}
	p = array.NewProgram(types...)
	zero, factor := p.Constant(array.Full(dtype, 0)), p.Constant(array.Full(dtype, 0.66))
	v := 0
	for k := 1; k < len(types) || r.IntN(2) == 0; k++ {
		other := min(k, len(args))
		switch r.IntN(7) {
		case 0:
			v = p.Append(array.Maximum, v, zero)
		case 1:
			v = p.Append(array.Maximum, zero, v)
		case 2:
			v = p.Append(array.Mul, v, other)
		case 3:
			v = p.Append(array.Add, p.Append(array.Mul, factor, other), v)
		case 4:
			v = p.Append(array.Mul, v, p.Append(array.Minimum, v, factor))
		default:
			v = p.Append(array.Add, other, v)
		}
	}
	return p.Return(v), args, kinds
}

// TestPreparedFactor: products with a prepared factor have the bits of the others.
func TestPreparedFactor(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for trial := range 300 {
		m, k, n := r.IntN(8), 1+r.IntN(40), 1+r.IntN(40)
		if trial%20 == 0 {
			m += 300 // several blocks of rows
		}
		a, b := randomArray(r, array.Float32, m, k), randomArray(r, array.Float32, k, n)
		// Gemm reads both factors in place if their columns are contiguous, and a narrow product then
		// has sums of another order.
		switch r.IntN(4) {
		case 0, 1:
			b = randomArray(r, array.Float32, n, k).Transpose(1, 0)
		case 2:
			a = randomArray(r, array.Float32, k, m).Transpose(1, 0)
		}
		var ws array.Workspace
		want, got := array.New(array.Float32, m, n), array.New(array.Float32, m, n)
		if err := ws.MatMul(want, a, b); err != nil {
			t.Fatal(err)
		}
		p, args, kinds := randomEpilogue(r, array.Float32, []int{m, n})
		ws.Map(p, []*array.Array{want}, append([]*array.Array{want}, args...))
		if err := ws.MulRows(got, a, b, array.NewFactor(b, nil, nil), array.NewEpilogue(p, kinds), args); err != nil {
			t.Fatal(err)
		}
		if !array.Equal(got, want) {
			t.Fatalf("%d: %d×%d×%d, %v of %v: %v, not %v", trial, m, k, n, p, kinds, got, want)
		}
	}
}

// TestPoolLast: with channels last, a pool finds what it finds with channels second.
func TestPoolLast(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for trial := range 200 {
		dims, dtype := 1+r.IntN(array.MaxSpatial), []array.DType{array.Float32, array.Float64}[r.IntN(2)]
		kind := array.Pooling(r.IntN(4))
		w := array.Window{Dims: dims}
		x, y, last := []int{r.IntN(3), 1 + r.IntN(20)}, []int{}, []int{0}
		y = append(y, x...)
		for d := range dims {
			w.Size[d], w.Stride[d], w.Dilation[d] = 2+r.IntN(2), 1+r.IntN(3), 1
			w.Before[d], w.After[d] = r.IntN(2), r.IntN(2)
			n := 3 + r.IntN(6)
			x, y, last = append(x, n), append(y, w.OutputSize(d, n, false)), append(last, d+2)
		}
		last = append(last, 1)
		var ws array.Workspace
		ax, want := randomArray(r, dtype, x...), array.New(dtype, y...)
		if err := ws.Pool(want, ax, w, kind); err != nil {
			t.Fatal(err)
		}
		want = want.Transpose(last...)
		got := array.New(dtype, want.Shape()...)
		if err := ws.PoolLast(got, ax.Transpose(last...), w, kind); err != nil {
			t.Fatal(err)
		}
		if !array.Equal(got, want.Clone()) {
			t.Fatalf("%d: pooling %d of %v, %+v: %v, not %v", trial, kind, x, w, got, want)
		}
	}
}
