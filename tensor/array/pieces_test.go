package array

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/kernel"
)

// A dividedOp draws arguments, and returns a function that computes with a workspace.
type dividedOp func(r *rand.Rand) func(ws *Workspace) (*Array, error)

// into returns a function that computes an array.
func into(dtype DType, shape []int, compute func(ws *Workspace, out *Array) error) func(ws *Workspace) (*Array, error) {
	return func(ws *Workspace) (*Array, error) {
		out := Full(dtype, 7)
		v, err := out.BroadcastTo(shape...)
		if err != nil {
			return nil, err
		}
		out = v.Clone()
		return out, compute(ws, out)
	}
}

// randomWindow draws a window, and the spatial sizes of input and result.
func randomWindow(r *rand.Rand, dims int) (w Window, in, out []int) {
	w.Dims = dims
	for d := range dims {
		w.Size[d], w.Stride[d], w.Dilation[d] = 1+r.IntN(3), 1+r.IntN(2), 1+r.IntN(2)
		w.Before[d], w.After[d] = r.IntN(w.Size[d]), r.IntN(w.Size[d])
		n := 5 + r.IntN(8)
		in, out = append(in, n), append(out, w.OutputSize(d, n, false))
	}
	return w, in, out
}

// channelsLast moves the channels behind the spatial dimensions.
func channelsLast(shape []int) []int {
	return append(append([]int{shape[0]}, shape[2:]...), shape[1])
}

func floatType(r *rand.Rand) DType { return []DType{Float32, Float64}[r.IntN(2)] }

var dividedOps = map[string]dividedOp{
	"copy": func(r *rand.Rand) func(*Workspace) (*Array, error) {
		dtype := DType(r.IntN(int(numDTypes)))
		a := randomArray(r, dtype, 1+r.IntN(40), 1+r.IntN(30), 1+r.IntN(40))
		v := a.Transpose(r.Perm(3)...)
		turned := r.Perm(3)
		shape := make([]int, 3)
		for d, k := range turned {
			shape[k] = v.shape[d]
		}
		if r.IntN(2) == 0 { // into contiguous memory
			shape, turned = v.Shape(), []int{0, 1, 2}
		}
		if r.IntN(4) == 0 {
			part := v.stretch(0, 0, 1)
			v = &part
		}
		return into(dtype, slices.Clone(shape), func(ws *Workspace, out *Array) error {
			ws.Copy(out.Transpose(turned...), v)
			return nil
		})
	},
	"take": func(r *rand.Rand) func(*Workspace) (*Array, error) {
		dtype := DType(r.IntN(int(numDTypes)))
		a := randomArray(r, dtype, 20, 15, 1+r.IntN(12)).Transpose(r.Perm(3)...)
		indexes := make([]*Array, 1+r.IntN(3))
		for d := range indexes {
			indexes[d] = New(Int64, 1+r.IntN(200))
			if d > 0 {
				indexes[d] = New(Int64, indexes[0].Len())
			}
			for i := range indexes[d].Len() {
				indexes[d].SetInt(i, int64(r.IntN(a.shape[d])))
			}
		}
		return func(ws *Workspace) (*Array, error) {
			out := new(Array)
			err := ws.Take(out, a, indexes...)
			return out, err
		}
	},
	"pool": func(r *rand.Rand) func(*Workspace) (*Array, error) {
		dtype, kind, dims := floatType(r), Pooling(r.IntN(4)), 1+r.IntN(MaxSpatial)
		w, in, out := randomWindow(r, dims)
		lead := []int{1 + r.IntN(3), 1 + r.IntN(20)}
		in, out = append(lead[:2:2], in...), append(lead[:2:2], out...)
		if r.IntN(2) == 0 {
			x := randomArray(r, dtype, channelsLast(in)...)
			return into(dtype, channelsLast(out), func(ws *Workspace, y *Array) error { return ws.PoolLast(y, x, w, kind) })
		}
		if kind == PoolMax && r.IntN(2) == 0 {
			dtype = Int64
		}
		x := randomArray(r, dtype, in...)
		if kind == PoolMax && r.IntN(2) == 0 {
			return into(Int64, out, func(ws *Workspace, y *Array) error { return ws.PoolPlaces(y, x, w) })
		}
		if kind != PoolMax && r.IntN(2) == 0 {
			y := randomArray(r, dtype, out...)
			return into(dtype, in, func(ws *Workspace, x *Array) error { return ws.PoolGrad(x, y, w, kind) })
		}
		return into(dtype, out, func(ws *Workspace, y *Array) error { return ws.Pool(y, x, w, kind) })
	},
	"convolution": func(r *rand.Rand) func(*Workspace) (*Array, error) {
		dtype, dims, groups, in, out := floatType(r), 1+r.IntN(MaxSpatial), 1+r.IntN(4), 1+r.IntN(3), 1+r.IntN(3)
		w, from, to := randomWindow(r, dims)
		x := randomArray(r, dtype, append([]int{1 + r.IntN(2), groups * in}, from...)...)
		y := randomArray(r, dtype, append([]int{x.shape[0], groups * out}, to...)...)
		weights := randomArray(r, dtype, append([]int{groups * out, in}, w.Size[:dims]...)...)
		switch r.IntN(3) {
		case 0:
			return into(dtype, y.Shape(), func(ws *Workspace, y *Array) error { return ws.Conv(y, x, weights, w, groups) })
		case 1:
			return into(dtype, x.Shape(), func(ws *Workspace, x *Array) error { return ws.ConvTranspose(x, y, weights, w, groups) })
		}
		return into(dtype, weights.Shape(), func(ws *Workspace, weights *Array) error { return ws.ConvWeights(weights, x, y, w, groups) })
	},
	"convolution, channels last": func(r *rand.Rand) func(*Workspace) (*Array, error) {
		dtype, dims, groups, in, out := floatType(r), 1+r.IntN(MaxSpatial), 1+r.IntN(20), 1+r.IntN(2), 1+r.IntN(3)
		w, from, to := randomWindow(r, dims)
		x := randomArray(r, dtype, append(append([]int{1 + r.IntN(2)}, from...), groups*in)...)
		shape := append(append([]int{x.shape[0]}, to...), groups*out)
		weights := randomArray(r, dtype, append(append([]int(nil), w.Size[:dims]...), in, groups*out)...)
		var prepared *LastWeights
		if r.IntN(2) == 0 {
			prepared = NewLastWeights(weights, groups, nil)
		}
		p, args, kinds := randomEpilogue(r, dtype, shape)
		return into(dtype, shape, func(ws *Workspace, y *Array) error {
			return ws.ConvLast(y, x, weights, prepared, w, groups, NewEpilogue(p, kinds), args)
		})
	},
	"winograd": func(r *rand.Rand) func(*Workspace) (*Array, error) {
		tile, in, out := 2+2*r.IntN(2), 1+r.IntN(40), 1+r.IntN(40)
		w := Window{Dims: 2, Size: [MaxSpatial]int{3, 3}, Stride: [MaxSpatial]int{1, 1}, Dilation: [MaxSpatial]int{1, 1}, Before: [MaxSpatial]int{1, 1}, After: [MaxSpatial]int{1, 1}}
		x, weights := randomArray(r, Float32, 1+r.IntN(2), 4+r.IntN(30), 4+r.IntN(30), in), randomArray(r, Float32, 3, 3, in, out)
		shape := []int{x.shape[0], x.shape[1], x.shape[2], out}
		prepared := NewWinogradWeights(weights, tile, nil)
		p, args, kinds := randomEpilogue(r, Float32, shape)
		return into(Float32, shape, func(ws *Workspace, y *Array) error {
			return ws.Winograd(y, x, weights, prepared, w, tile, NewEpilogue(p, kinds), args)
		})
	},
	"along a dimension": func(r *rand.Rand) func(*Workspace) (*Array, error) {
		dtype := []DType{Float32, Float64, Int64}[r.IntN(3)]
		x, axis := randomArray(r, dtype, 1+r.IntN(9), 1+r.IntN(70), 1+r.IntN(9)).Transpose(r.Perm(3)...), r.IntN(3)
		switch r.IntN(4) {
		case 0:
			return into(dtype, x.Shape(), func(ws *Workspace, y *Array) error { ws.Cumulate(y, x, axis, true); return nil })
		case 1:
			return into(dtype, x.Shape(), func(ws *Workspace, y *Array) error { ws.Sort(y, x, axis); return nil })
		case 2:
			return into(Int64, x.Shape(), func(ws *Workspace, y *Array) error { ws.ArgSort(y, x, axis); return nil })
		}
		shape := slices.Delete(slices.Clone(x.Shape()), axis, axis+1)
		return into(Int64, shape, func(ws *Workspace, y *Array) error { return ws.ArgMax(y, x, 1<<axis) })
	},
	"long reductions": func(r *rand.Rand) func(*Workspace) (*Array, error) {
		dtype := []DType{Bool, Int8, Int64, Uint64, Float32, Float64}[r.IntN(6)]
		// Few results of many terms: along memory and across, and with terms in two dimensions.
		shape := [][]int{{40000 + r.IntN(20000)}, {2 + r.IntN(3), 20000}, {300 + r.IntN(900), 1 + r.IntN(40)}, {3, 400, 5}, {2, 300, 60}}[r.IntN(5)]
		x := randomArray(r, dtype, shape...).Transpose(r.Perm(len(shape))...)
		if dtype.IsFloat() && r.IntN(3) == 0 {
			for range 1 + r.IntN(4) {
				x.SetFloat(r.IntN(x.Len()), []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}[r.IntN(4)])
			}
		}
		var axes Axes
		var left []int
		for d := range shape {
			if x.shape[d] > 60 || r.IntN(2) == 0 {
				axes |= 1 << d
			} else {
				left = append(left, x.shape[d])
			}
		}
		switch k := r.IntN(int(NumReductions) + 2); k {
		case int(NumReductions):
			return into(Int64, left, func(ws *Workspace, y *Array) error { return ws.ArgMax(y, x, axes) })
		case int(NumReductions) + 1:
			return into(Int64, left, func(ws *Workspace, y *Array) error { return ws.ArgMin(y, x, axes) })
		default:
			op := Reduction(k)
			return into(op.Result(dtype), left, func(ws *Workspace, y *Array) error { return ws.Reduce(op, y, x, axes) })
		}
	},
	"long products": func(r *rand.Rand) func(*Workspace) (*Array, error) {
		dtype, n := floatType(r), maxTerms+1+r.IntN(2*maxTerms)
		a, b := randomArray(r, dtype, n, 1+r.IntN(4)).Transpose(1, 0), randomArray(r, dtype, n, 1+r.IntN(4))
		beta := float64(r.IntN(3))
		return into(dtype, []int{a.shape[0], b.shape[1]}, func(ws *Workspace, c *Array) error { return ws.Gemm(0.5, a, b, beta, c) })
	},
	"integers": func(r *rand.Rand) func(*Workspace) (*Array, error) {
		dtype := []DType{Bool, Int8, Int32, Uint64}[r.IntN(4)]
		a, b := randomArray(r, dtype, 1+r.IntN(30), 1+r.IntN(9)), randomArray(r, dtype, 1, 1+r.IntN(9))
		b = randomArray(r, dtype, a.shape[1], b.shape[1])
		return into(dtype, []int{a.shape[0], b.shape[1]}, func(ws *Workspace, c *Array) error { return ws.MatMul(c, a, b) })
	},
}

// TestPieces: what threads do in pieces has the bits of one thread.
func TestPieces(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	r := rand.New(rand.NewPCG(1, 2))
	threads := map[int]*kernel.Threads{}
	for _, n := range []int{2, 3, 5, 8} {
		threads[n] = kernel.NewThreads(n)
	}
	for _, name := range slices.Sorted(maps.Keys(dividedOps)) {
		op := dividedOps[name]
		for trial := range longtest.Of(25, 1500) {
			run := op(r)
			want, err := run(new(Workspace))
			if err != nil {
				t.Fatalf("%s, %d: %v", name, trial, err)
			}
			for n, pool := range threads {
				ws := &Workspace{Threads: pool}
				got, err := run(ws)
				if err != nil {
					t.Fatalf("%s, %d, %d threads: %v", name, trial, n, err)
				}
				if !Equal(got, want) {
					t.Fatalf("%s, %d, %d threads: %v, not %v", name, trial, n, got, want)
				}
			}
		}
	}
}

// TestPiecesAreMade: the ops above are divided.
func TestPiecesAreMade(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	r := rand.New(rand.NewPCG(3, 4))
	for _, name := range slices.Sorted(maps.Keys(dividedOps)) {
		op, divided := dividedOps[name], 0
		for range 40 {
			ws := &Workspace{Threads: kernel.NewThreads(3)}
			if _, err := op(r)(ws); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if ws.crew != nil && len(ws.crew.free) > 0 {
				divided++
			}
		}
		if divided < 10 {
			t.Errorf("%s: %d of 40 are divided", name, divided)
		}
	}
}

// TestCopyOverlap: what lies partly where it is copied to is not divided, so no thread overwrites what another one
// has yet to read.
func TestCopyOverlap(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	const n, shift = 1000, 64
	buf := make([]float64, n+shift)
	for i := range buf {
		buf[i] = float64(i)
	}
	ws := &Workspace{Threads: kernel.NewThreads(3)}
	ws.Copy(Of(buf[shift:], n), Of(buf[:n], n))
	for i, v := range buf[shift:] {
		if v != float64(i) {
			t.Fatalf("element %d is %v", i, v)
		}
	}
	if ws.crew != nil {
		t.Error("several threads copy")
	}
}
