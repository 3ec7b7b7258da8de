package array_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tensor/array"
)

// A dividedOp draws arguments, and returns a function that computes with a workspace.
type dividedOp func(r *rand.Rand) func(ws *array.Workspace) (*array.Array, error)

// into returns a function that computes an array.
func into(dtype array.DType, shape []int, compute func(ws *array.Workspace, out *array.Array) error) func(ws *array.Workspace) (*array.Array, error) {
	return func(ws *array.Workspace) (*array.Array, error) {
		out := array.Full(dtype, 7)
		v, err := out.BroadcastTo(shape...)
		if err != nil {
			return nil, err
		}
		out = v.Clone()
		return out, compute(ws, out)
	}
}

// randomWindow draws a window, and the spatial sizes of input and result.
func randomWindow(r *rand.Rand, dims int) (w array.Window, in, out []int) {
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

func floatType(r *rand.Rand) array.DType {
	return []array.DType{array.Float32, array.Float64}[r.IntN(2)]
}

var dividedOps = map[string]dividedOp{
	"copy": func(r *rand.Rand) func(*array.Workspace) (*array.Array, error) {
		dtype := array.DTypes()[r.IntN(len(array.DTypes()))]
		a := randomArray(r, dtype, 1+r.IntN(40), 1+r.IntN(30), 1+r.IntN(40))
		v := a.Transpose(r.Perm(3)...)
		turned := r.Perm(3)
		shape := make([]int, 3)
		for d, k := range turned {
			shape[k] = v.Dim(d)
		}
		if r.IntN(2) == 0 { // into contiguous memory
			shape, turned = v.Shape(), []int{0, 1, 2}
		}
		if r.IntN(4) == 0 {
			part := new(array.Array)
			v.RangeTo(part, array.Range{Step: 1, Count: 1})
			v = part
		}
		return into(dtype, slices.Clone(shape), func(ws *array.Workspace, out *array.Array) error {
			ws.Copy(out.Transpose(turned...), v)
			return nil
		})
	},
	"take": func(r *rand.Rand) func(*array.Workspace) (*array.Array, error) {
		dtype := array.DTypes()[r.IntN(len(array.DTypes()))]
		a := randomArray(r, dtype, 20, 15, 1+r.IntN(12)).Transpose(r.Perm(3)...)
		indexes := make([]*array.Array, 1+r.IntN(3))
		for d := range indexes {
			indexes[d] = array.New(array.Int64, 1+r.IntN(200))
			if d > 0 {
				indexes[d] = array.New(array.Int64, indexes[0].Len())
			}
			for i := range indexes[d].Len() {
				indexes[d].SetInt(i, int64(r.IntN(a.Dim(d))))
			}
		}
		return func(ws *array.Workspace) (*array.Array, error) {
			out := new(array.Array)
			err := ws.Take(out, a, indexes...)
			return out, err
		}
	},
	"pool": func(r *rand.Rand) func(*array.Workspace) (*array.Array, error) {
		dtype, kind, dims := floatType(r), array.Pooling(r.IntN(4)), 1+r.IntN(array.MaxSpatial)
		w, in, out := randomWindow(r, dims)
		lead := []int{1 + r.IntN(3), 1 + r.IntN(20)}
		in, out = append(lead[:2:2], in...), append(lead[:2:2], out...)
		if r.IntN(2) == 0 {
			x := randomArray(r, dtype, channelsLast(in)...)
			return into(dtype, channelsLast(out), func(ws *array.Workspace, y *array.Array) error { return ws.PoolLast(y, x, w, kind) })
		}
		if kind == array.PoolMax && r.IntN(2) == 0 {
			dtype = array.Int64
		}
		x := randomArray(r, dtype, in...)
		if kind == array.PoolMax && r.IntN(2) == 0 {
			return into(array.Int64, out, func(ws *array.Workspace, y *array.Array) error { return ws.PoolPlaces(y, x, w) })
		}
		if kind != array.PoolMax && r.IntN(2) == 0 {
			y := randomArray(r, dtype, out...)
			return into(dtype, in, func(ws *array.Workspace, x *array.Array) error { return ws.PoolGrad(x, y, w, kind) })
		}
		return into(dtype, out, func(ws *array.Workspace, y *array.Array) error { return ws.Pool(y, x, w, kind) })
	},
	"convolution": func(r *rand.Rand) func(*array.Workspace) (*array.Array, error) {
		dtype, dims, groups, in, out := floatType(r), 1+r.IntN(array.MaxSpatial), 1+r.IntN(4), 1+r.IntN(3), 1+r.IntN(3)
		w, from, to := randomWindow(r, dims)
		x := randomArray(r, dtype, append([]int{1 + r.IntN(2), groups * in}, from...)...)
		y := randomArray(r, dtype, append([]int{x.Dim(0), groups * out}, to...)...)
		weights := randomArray(r, dtype, append([]int{groups * out, in}, w.Size[:dims]...)...)
		switch r.IntN(3) {
		case 0:
			return into(dtype, y.Shape(), func(ws *array.Workspace, y *array.Array) error { return ws.Conv(y, x, weights, w, groups) })
		case 1:
			return into(dtype, x.Shape(), func(ws *array.Workspace, x *array.Array) error {
				return ws.ConvTranspose(x, y, weights, nil, w, groups)
			})
		}
		return into(dtype, weights.Shape(), func(ws *array.Workspace, weights *array.Array) error { return ws.ConvWeights(weights, x, y, w, groups) })
	},
	"convolution, channels last": func(r *rand.Rand) func(*array.Workspace) (*array.Array, error) {
		dtype, dims, groups, in, out := floatType(r), 1+r.IntN(array.MaxSpatial), 1+r.IntN(20), 1+r.IntN(2), 1+r.IntN(3)
		w, from, to := randomWindow(r, dims)
		x := randomArray(r, dtype, append(append([]int{1 + r.IntN(2)}, from...), groups*in)...)
		shape := append(append([]int{x.Dim(0)}, to...), groups*out)
		weights := randomArray(r, dtype, append(append([]int(nil), w.Size[:dims]...), in, groups*out)...)
		var prepared *array.LastWeights
		if r.IntN(2) == 0 {
			prepared = array.NewLastWeights(weights, groups, nil)
		}
		p, args, kinds := randomEpilogue(r, dtype, shape)
		return into(dtype, shape, func(ws *array.Workspace, y *array.Array) error {
			return ws.ConvLast(y, x, weights, prepared, w, groups, array.NewEpilogue(p, kinds), args)
		})
	},
	"winograd": func(r *rand.Rand) func(*array.Workspace) (*array.Array, error) {
		tile, in, out := 2+2*r.IntN(2), 1+r.IntN(40), 1+r.IntN(40)
		w := array.Window{Dims: 2, Size: [array.MaxSpatial]int{3, 3}, Stride: [array.MaxSpatial]int{1, 1}, Dilation: [array.MaxSpatial]int{1, 1}, Before: [array.MaxSpatial]int{1, 1}, After: [array.MaxSpatial]int{1, 1}}
		x, weights := randomArray(r, array.Float32, 1+r.IntN(2), 4+r.IntN(30), 4+r.IntN(30), in), randomArray(r, array.Float32, 3, 3, in, out)
		shape := []int{x.Dim(0), x.Dim(1), x.Dim(2), out}
		prepared := array.NewWinogradWeights(weights, tile, nil)
		p, args, kinds := randomEpilogue(r, array.Float32, shape)
		return into(array.Float32, shape, func(ws *array.Workspace, y *array.Array) error {
			return ws.Winograd(y, x, weights, prepared, w, tile, array.NewEpilogue(p, kinds), args)
		})
	},
	"along a dimension": func(r *rand.Rand) func(*array.Workspace) (*array.Array, error) {
		dtype := []array.DType{array.Float32, array.Float64, array.Int64}[r.IntN(3)]
		x, axis := randomArray(r, dtype, 1+r.IntN(9), 1+r.IntN(70), 1+r.IntN(9)).Transpose(r.Perm(3)...), r.IntN(3)
		switch r.IntN(4) {
		case 0:
			return into(dtype, x.Shape(), func(ws *array.Workspace, y *array.Array) error { ws.Cumulate(y, x, axis, true); return nil })
		case 1:
			return into(dtype, x.Shape(), func(ws *array.Workspace, y *array.Array) error { ws.Sort(y, x, axis); return nil })
		case 2:
			return into(array.Int64, x.Shape(), func(ws *array.Workspace, y *array.Array) error { ws.ArgSort(y, x, axis); return nil })
		}
		shape := slices.Delete(slices.Clone(x.Shape()), axis, axis+1)
		return into(array.Int64, shape, func(ws *array.Workspace, y *array.Array) error { return ws.ArgMax(y, x, 1<<axis) })
	},
	"long reductions": func(r *rand.Rand) func(*array.Workspace) (*array.Array, error) {
		dtype := []array.DType{array.Bool, array.Int8, array.Int64, array.Uint64, array.Float32, array.Float64}[r.IntN(6)]
		// Few results of many terms: along memory and across, and with terms in two dimensions.
		shape := [][]int{{40000 + r.IntN(20000)}, {2 + r.IntN(3), 20000}, {300 + r.IntN(900), 1 + r.IntN(40)}, {3, 400, 5}, {2, 300, 60}}[r.IntN(5)]
		x := randomArray(r, dtype, shape...).Transpose(r.Perm(len(shape))...)
		if dtype.IsFloat() && r.IntN(3) == 0 {
			for range 1 + r.IntN(4) {
				x.SetFloat(r.IntN(x.Len()), []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}[r.IntN(4)])
			}
		}
		var axes array.Axes
		var left []int
		for d := range shape {
			if x.Dim(d) > 60 || r.IntN(2) == 0 {
				axes |= 1 << d
			} else {
				left = append(left, x.Dim(d))
			}
		}
		switch k := r.IntN(int(array.NumReductions) + 2); k {
		case int(array.NumReductions):
			return into(array.Int64, left, func(ws *array.Workspace, y *array.Array) error { return ws.ArgMax(y, x, axes) })
		case int(array.NumReductions) + 1:
			return into(array.Int64, left, func(ws *array.Workspace, y *array.Array) error { return ws.ArgMin(y, x, axes) })
		default:
			op := array.Reduction(k)
			return into(op.Result(dtype), left, func(ws *array.Workspace, y *array.Array) error { return ws.Reduce(op, y, x, axes) })
		}
	},
	"long products": func(r *rand.Rand) func(*array.Workspace) (*array.Array, error) {
		const longest = 1 << 14 // sum that is added up in one go
		dtype, n := floatType(r), longest+1+r.IntN(2*longest)
		a, b := randomArray(r, dtype, n, 1+r.IntN(4)).Transpose(1, 0), randomArray(r, dtype, n, 1+r.IntN(4))
		beta := float64(r.IntN(3))
		return into(dtype, []int{a.Dim(0), b.Dim(1)}, func(ws *array.Workspace, c *array.Array) error { return ws.Gemm(0.5, a, b, beta, c) })
	},
	"integers": func(r *rand.Rand) func(*array.Workspace) (*array.Array, error) {
		dtype := []array.DType{array.Bool, array.Int8, array.Int32, array.Uint64}[r.IntN(4)]
		a, b := randomArray(r, dtype, 1+r.IntN(30), 1+r.IntN(9)), randomArray(r, dtype, 1, 1+r.IntN(9))
		b = randomArray(r, dtype, a.Dim(1), b.Dim(1))
		return into(dtype, []int{a.Dim(0), b.Dim(1)}, func(ws *array.Workspace, c *array.Array) error { return ws.MatMul(c, a, b) })
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
			want, err := run(new(array.Workspace))
			if err != nil {
				t.Fatalf("%s, %d: %v", name, trial, err)
			}
			for n, pool := range threads {
				ws := &array.Workspace{Threads: pool}
				got, err := run(ws)
				if err != nil {
					t.Fatalf("%s, %d, %d threads: %v", name, trial, n, err)
				}
				if !array.Equal(got, want) {
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
			ws := &array.Workspace{Threads: kernel.NewThreads(3)}
			if _, err := op(r)(ws); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if crew := hidden(ws, "crew"); !crew.IsNil() && crew.Elem().FieldByName("free").Len() > 0 {
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
	ws := &array.Workspace{Threads: kernel.NewThreads(3)}
	ws.Copy(array.Of(buf[shift:], n), array.Of(buf[:n], n))
	for i, v := range buf[shift:] {
		if v != float64(i) {
			t.Fatalf("element %d is %v", i, v)
		}
	}
	if !hidden(ws, "crew").IsNil() {
		t.Error("several threads copy")
	}
}
