package backend_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/models/internal/backend"
	"github.com/nnopt/nnopt/tool/models/internal/backend/internal/onnxtest"
)

// opened returns a model that declares no sizes: those of inputs have names.
func opened(m *onnx.Model) *onnx.Model {
	c, g := *m, *m.Graph
	c.Graph = &g
	g.Inputs, g.Values = slices.Clone(g.Inputs), nil
	for i, in := range g.Inputs {
		if in.Type == nil || in.Type.Tensor == nil || in.Type.Tensor.Shape == nil {
			continue
		}
		t, shape := *in.Type.Tensor, onnx.Shape{}
		for d := range in.Type.Tensor.Shape.Dims {
			shape.Dims = append(shape.Dims, &onnx.Dim{Param: fmt.Sprintf("%s_%d", in.Name, d)})
		}
		t.Shape = &shape
		g.Inputs[i] = &onnx.ValueInfo{Name: in.Name, Type: &onnx.Type{Tensor: &t}}
	}
	g.Outputs = slices.Clone(g.Outputs)
	for i, out := range g.Outputs {
		if out.Type != nil && out.Type.Tensor != nil {
			t := *out.Type.Tensor
			t.Shape = nil
			g.Outputs[i] = &onnx.ValueInfo{Name: out.Name, Type: &onnx.Type{Tensor: &t}}
		}
	}
	return &c
}

// sameForAnySizes compares the results of a model for any sizes with those of functions for some sizes.
func sameForAnySizes(t *testing.T, name string, m *onnx.Model, sets []backend.Set, o session.Options) (open bool) {
	t.Helper()
	m = opened(m)
	free := o
	free.AnySizes = true
	s := session.New(m, free)
	for _, set := range sets {
		for k, inputs := range append([]map[string]*array.Array{set.Inputs}, resized(set.Inputs)...) {
			_, want, err := session.New(m, o).Run(t.Context(), inputs)
			if err != nil {
				continue
			}
			f, got, err := s.Run(t.Context(), inputs)
			if err != nil {
				t.Errorf("%s, sizes %d: %v", name, k, err)
				return false
			}
			open = open || f.AnySizes()
			for out, v := range want {
				if !array.Equal(got[out], v) {
					t.Errorf("%s, sizes %d: %s is %v for any sizes (%v), and %v for its own", name, k, out, got[out], f.AnySizes(), v)
				}
			}
		}
	}
	return open
}

// resized returns inputs of other sizes: for each size that there is, with one element more and three elements more
// wherever it is.
func resized(inputs map[string]*array.Array) (list []map[string]*array.Array) {
	var sizes []int
	for _, a := range inputs {
		for _, n := range a.Shape() {
			if n >= lower.LeastFree && !slices.Contains(sizes, n) {
				sizes = append(sizes, n)
			}
		}
	}
	slices.Sort(sizes)
	for _, n := range sizes {
		for _, more := range []int{1, 3} {
			other := make(map[string]*array.Array)
			for name, a := range inputs {
				other[name] = repeated(a, func(k int) int {
					if k == n {
						return n + more
					}
					return k
				})
			}
			list = append(list, other)
		}
	}
	return list
}

// repeated returns an array of other sizes with the elements of a, again and again.
func repeated(a *array.Array, size func(int) int) *array.Array {
	shape := slices.Clone(a.Shape())
	for i := range shape {
		shape[i] = size(shape[i])
	}
	b := array.New(a.DType(), shape...)
	for i := range b.Len() {
		if k := i % max(a.Len(), 1); a.Len() == 0 {
			break
		} else if a.DType().IsFloat() {
			b.SetFloat(i, a.Float(k))
		} else {
			b.SetInt(i, a.Int(k))
		}
	}
	return b
}

// TestAnySizes: a function for any sizes computes the bits of one that was made for the sizes.
func TestAnySizes(t *testing.T) {
	dirs, _ := backend.Find(suite + "node")
	dirs = dirs[:len(dirs)*longtest.Of(1, 20)/20]
	for _, query := range []string{"none", "fast_run"} {
		var opt *optdb.Optimizer
		if query != "none" {
			opt = optimizer(t, query)
		}
		open := 0
		try := func(c *backend.Case) {
			o := session.Options{Options: lower.Options{LeaveOut: true}, Optimizer: opt, Dir: c.Dir}
			if sameForAnySizes(t, c.Name+" "+query, c.Model, c.Sets, o) {
				open++
			}
		}
		for _, dir := range dirs {
			if c, err := backend.Load(dir); err == nil {
				try(c)
			}
		}
		draws := longtest.Of(10, 100)
		for seed := range uint64(draws) {
			drawn := onnxtest.Draw(1<<32 + seed) // which TestRandom runs, too
			try(answered(t, drawn, drawn.Model))
		}
		if all := len(dirs) + draws; open < all/4 {
			t.Errorf("%s: %d of %d models have functions for any sizes", query, open, all)
		}
	}
}
