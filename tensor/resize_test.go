package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// resized returns an element of a vector that is resized to m elements.
func resized(x []float64, o tensor.ResizeOptions, m int, scale float64, i int) float64 {
	n := len(x)
	at := (float64(i)+0.5)/scale - 0.5
	switch {
	case o.Coordinates == "asymmetric":
		at = float64(i) / scale
	case o.Coordinates == "align_corners" && m > 1:
		at = float64(i*(n-1)) / float64(m-1)
	case m == 1 && (o.Coordinates == "align_corners" || o.Coordinates == "pytorch_half_pixel"):
		at = 0
	}
	inside := func(k float64) float64 { return x[int(min(max(k, 0), float64(n-1)))] }
	if o.Linear {
		left := math.Floor(at)
		return (1-(at-left))*inside(left) + (at-left)*inside(left+1)
	}
	switch o.Nearest {
	case "floor":
		return inside(math.Floor(at))
	case "ceil":
		return inside(math.Ceil(at))
	case "round_prefer_ceil":
		return inside(math.Floor(at + 0.5))
	}
	return inside(math.Ceil(at - 0.5))
}

// TestResize compares with the formulas of ONNX, dimension by dimension.
func TestResize(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	for i := range longtest.Of(60, 3000) {
		o := tensor.ResizeOptions{Linear: r.IntN(2) == 0}
		o.Coordinates = []string{"", "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"}[r.IntN(5)]
		o.Nearest = []string{"", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}[r.IntN(5)]
		n := []int{1 + r.IntN(9), 1 + r.IntN(9)}
		x := randomArray(r, []array.DType{array.Float64, array.Float32}[i%2], append([]int{2}, n...)...)
		scales, sizes, byScale := []float64{1, 1, 1}, []int{2, 0, 0}, r.IntN(2) == 0
		for d := range n {
			if byScale {
				scales[d+1] = []float64{1, 2, 3, 0.5, 1.5, 0.3 + 3*r.Float64()}[r.IntN(6)]
				sizes[d+1] = int(float64(n[d]) * scales[d+1])
				continue
			}
			sizes[d+1] = []int{n[d], 2 * n[d], 1 + r.IntN(20), 1}[r.IntN(4)]
			scales[d+1] = float64(sizes[d+1]) / float64(n[d])
		}
		what := fmt.Sprintf("%+v of %v to %v by %v", o, x.Shape(), sizes, scales)
		got, err := compute(t, r.IntN(2) == 0, i%2 == 0, func(in []*fgraph.Variable) *fgraph.Variable {
			if byScale {
				return tensor.ResizeBy(in[0], o, scales...)
			}
			return tensor.ResizeTo(in[0], o, nil, tensor.Int(sizes[1]), tensor.Int(sizes[2]))
		}, x)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var want []float64
		for k := range 2 {
			rows := make([][]float64, n[0])
			for j := range rows {
				rows[j] = x.Floats()[(k*n[0]+j)*n[1]:][:n[1]]
			}
			for i := range sizes[1] {
				for j := range sizes[2] {
					column := make([]float64, n[0])
					for a := range column {
						column[a] = resized(rows[a], o, sizes[2], scales[2], j)
					}
					want = append(want, resized(column, o, sizes[1], scales[1], i))
				}
			}
		}
		near(t, what, got, sizes, want)
	}
}

// TestTopK compares with a selection, element by element.
func TestTopK(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for i := range longtest.Of(60, 600) {
		dtype := []array.DType{array.Float64, array.Float32, array.Int64}[i%3]
		n := r.IntN(12)
		x := array.New(dtype, 3, n)
		for e := range x.Len() {
			x.SetFloat(e, float64(r.IntN(7)-3)) // with many that are equal
			if dtype.IsFloat() && r.IntN(9) == 0 {
				x.SetFloat(e, math.NaN())
			}
		}
		k, largest := r.IntN(n+1), r.IntN(2) == 0
		var values, places []float64
		for row := range 3 {
			order := make([]int, n)
			for j := range order {
				order[j] = j
			}
			slices.SortStableFunc(order, func(i, j int) int {
				a, b := x.Float(row*n+i), x.Float(row*n+j)
				c := 0
				switch {
				case a < b || a == a && b != b:
					c = -1
				case a > b || a != a && b == b:
					c = 1
				}
				if largest {
					return -c
				}
				return c
			})
			for _, j := range order[:k] {
				values, places = append(values, x.Float(row*n+j)), append(places, float64(j))
			}
		}
		for which, want := range [][]float64{values, places} {
			for axis, in := range []*array.Array{x.Transpose(1, 0), x} {
				got, err := compute(t, i%2 == 0, false, func(in []*fgraph.Variable) *fgraph.Variable {
					v, p := tensor.TopK(in[0], tensor.Int(k), axis, largest)
					return tensor.DimShuffle([]*fgraph.Variable{v, p}[which], 1-axis, axis)
				}, in.Clone())
				if err != nil {
					t.Fatalf("%d of %v: %v", k, x, err)
				}
				near(t, fmt.Sprintf("the first %d of %v", k, x), got, []int{3, k}, want)
			}
		}
	}
}

// TestElements compares what ONNX gathers and scatters with loops.
func TestElements(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for i := range longtest.Of(60, 600) {
		shape := []int{1 + r.IntN(4), 1 + r.IntN(4), 1 + r.IntN(4)}
		axis := r.IntN(3)
		small := make([]int, 3) // of the index
		for d := range small {
			small[d] = 1 + r.IntN(shape[d])
		}
		small[axis] = r.IntN(5)
		x, index := randomArray(r, array.Float64, shape...), array.New(array.Int64, small...)
		y := randomArray(r, array.Float64, small...)
		for e := range index.Len() {
			index.SetFloat(e, float64(r.IntN(2*shape[axis])-shape[axis]))
		}
		var gathered []float64
		set, added := x.Floats(), x.Floats()
		odometer(small, func(at []int) {
			e := flatAt(small, at...)
			p := slices.Clone(at)
			p[axis] = (int(index.Int(e)) + shape[axis]) % shape[axis]
			to := flatAt(shape, p...)
			gathered = append(gathered, x.Float(to))
			set[to] = y.Float(e)
			added[to] += y.Float(e)
		})
		for name, c := range map[string]struct {
			f     func(in []*fgraph.Variable) *fgraph.Variable
			shape []int
			want  []float64
		}{
			"gather": {func(in []*fgraph.Variable) *fgraph.Variable { return tensor.GatherElements(in[0], in[1], axis) }, small, gathered},
			"set": {func(in []*fgraph.Variable) *fgraph.Variable {
				return tensor.ScatterElements(in[0], in[1], in[2], axis, false)
			}, shape, set},
			"add": {func(in []*fgraph.Variable) *fgraph.Variable {
				return tensor.ScatterElements(in[0], in[1], in[2], axis, true)
			}, shape, added},
		} {
			args := []*array.Array{x, index, y}
			if name == "gather" {
				args = args[:2]
			}
			got, err := compute(t, i%2 == 0, false, c.f, args...)
			if err != nil {
				t.Fatalf("%s of %v by %v: %v", name, shape, small, err)
			}
			near(t, name, got, c.shape, c.want)
		}
	}
}

// TestND has cases of the kinds that ONNX describes.
func TestND(t *testing.T) {
	for text, want := range map[string]string{
		"gather_nd([[0, 1], [2, 3]], [[0, 0], [1, 1]])":                                       "[0, 3]",
		"gather_nd([[0, 1], [2, 3]], [[1], [0]])":                                             "[[2, 3], [0, 1]]",
		"gather_nd([[[0, 1], [2, 3]], [[4, 5], [6, 7]]], [[[0, 1]], [[1, 0]]])":               "[[[2, 3]], [[4, 5]]]",
		"scatter_nd([1, 2, 3, 4, 5, 6, 7, 8], [[4], [3], [1], [7]], [9, 10, 11, 12])":         "[1, 11, 3, 10, 9, 6, 7, 12]",
		"scatter_nd([1, 2, 3], [[1], [1]], [10, 20], reduction='add')":                        "[1, 32, 3]",
		"scatter_nd([[1, 2], [3, 4]], [[-1]], [[7, 8]])":                                      "[[1, 2], [7, 8]]",
		"topk([[3, 9, 9], [5, 4, 6]], 2)[1]":                                                  "[[1, 2], [2, 0]]",
		"topk([[3, 9, 9], [5, 4, 6]], 1, axis=0, largest=False)[0]":                           "[[3, 4, 6]]",
		"max_pool_places([[[1, 5, 5, 2]], [[0, 3, 1, 4]]], 2, strides=2)":                     "[[[1, 2]], [[5, 7]]]",
		"resize([[1, 2], [3, 4]], scales=[1, 2])":                                             "[[1, 1, 2, 2], [3, 3, 4, 4]]",
		"conv_transpose([[[1.0, 2.0]]], [[[1.0, 10.0, 100.0]]], strides=2, output_padding=1)": "[[[1.0, 10.0, 102.0, 20.0, 200.0, 0.0]]]",
	} {
		got, err := compute(t, true, false, func([]*fgraph.Variable) *fgraph.Variable { return expr.NewScope().MustParse(text) })
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got.Text(99) != want {
			t.Errorf("%s is %s, want %s", text, got.Text(99), want)
		}
	}
}
