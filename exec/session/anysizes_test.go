package session_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestAnySizesFunctions: a session makes a function for the first sizes and one for all others, or just that one.
func TestAnySizesFunctions(t *testing.T) {
	for _, any := range []bool{false, true} {
		s := session.New(network(t), session.Options{Options: lower.Options{AnySizes: any}, Optimizer: build(t, "fast_run")})
		want := 1
		if !any {
			want = 2
		}
		goroutines := runtime.NumGoroutine()
		for i := range longtest.Of(8, 40) {
			height, width := 5+i*7%23, 5+i*5%19
			in := map[string]*array.Array{"x": array.Full(array.Float32, 0.01*float64(i), 1, 8, height, width)}
			_, got, err := s.Run(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			f, err := session.Model(t.Context(), network(t), session.Options{Optimizer: build(t, "fast_run")}, in)
			if err != nil {
				t.Fatal(err)
			}
			own, err := f.Call(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if !array.Equal(got["y"], own["y"]) {
				t.Errorf("%d×%d: %v, and %v of a function for these sizes", height, width, got["y"], own["y"])
			}
		}
		if made, err := s.Functions(); made != want || err != nil {
			t.Errorf("%d functions, want %d: %v", made, want, err)
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
	}
}

// TestAnyBatch: a convolution of any number of images is computed by the tiles of a function for that number.
func TestAnyBatch(t *testing.T) {
	k := array.New(array.Float32, 64, 64, 3, 3)
	for i := range k.Len() {
		k.SetFloat(i, float64(i%13)/50-0.1)
	}
	pads := &onnx.Attribute{Name: "pads", Type: onnx.AttributeInts, Ints: []int64{1, 1, 1, 1}}
	m := model([]string{"x"}, []string{"y"}, constant("k", k, onnx.Float), node("Conv", "x k", "y", pads))
	m.Graph.Inputs[0].Type = floats("n", 64, 16, 16)
	options := session.Options{Optimizer: build(t, "fast_run")}
	s := session.New(m, session.Options{Options: lower.Options{AnySizes: true}, Optimizer: options.Optimizer})
	tiles := func(f *session.Function) bool { return strings.Contains(f.Graph().String(), "Winograd{4}") }
	for _, n := range []int{5, 2, 1, 9} {
		x := array.New(array.Float32, n, 64, 16, 16)
		for i := range x.Len() {
			x.SetFloat(i, float64(i%17)-8)
		}
		in := map[string]*array.Array{"x": x}
		f, got, err := s.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		own, err := session.Model(t.Context(), m, options, in)
		if err != nil {
			t.Fatal(err)
		}
		want, err := own.Call(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if f.AnySizes() != (n > 1) || tiles(f) != (n > 1) || tiles(own) != (n > 1) {
			t.Errorf("%d images: any %v, tiles %v, and %v in a function for them", n, f.AnySizes(), tiles(f), tiles(own))
		}
		if !array.Equal(got["y"], want["y"]) {
			t.Errorf("%d images: other bits than in a function for them", n)
		}
	}
}

// TestAnySizesFail: what a function for any sizes can't know, such as that a computed size of 1 is broadcast, is computed
// by one for the sizes; and an input that is wrong for both is an error of the input. The other one stays, however often
// it fails.
func TestAnySizesFail(t *testing.T) {
	m := model([]string{"x", "y"}, []string{"sum"}, constant("one", array.Of([]int64{1}, 1), onnx.Int64), constant("most", array.Of([]int64{99}, 1), onnx.Int64),
		node("Slice", "x one most", "rest"), node("Add", "y rest", "sum"))
	m.Graph.Inputs[0].Type, m.Graph.Inputs[1].Type = floats("n"), floats("m")
	s := session.New(m, session.Options{Options: lower.Options{AnySizes: true}})
	run := func(n, k int) (*session.Function, []float64, error) {
		f, out, err := s.Run(t.Context(), map[string]*array.Array{"x": array.Full(array.Float32, 2, n), "y": array.Full(array.Float32, 1, k)})
		if err != nil {
			return f, nil, err
		}
		return f, out["sum"].Floats(), nil
	}
	for _, c := range []struct {
		x, y, want int // sizes; of the result, -1 if there is none
		any        bool
	}{{5, 4, 4, true}, {2, 3, 3, false}, {9, 8, 8, true}, {1, 1, 0, false}, {4, 4, -1, false}, {5, 5, -1, false}, {6, 6, -1, false}, {8, 8, -1, false}, {7, 6, 6, true}} {
		f, sum, err := run(c.x, c.y)
		switch {
		case c.want < 0:
			if err == nil {
				t.Errorf("%d and %d: %v", c.x, c.y, sum)
			}
		case err != nil:
			t.Errorf("%d and %d: %v", c.x, c.y, err)
		case len(sum) != c.want || len(sum) > 0 && sum[0] != 3 || f.AnySizes() != c.any:
			t.Errorf("%d and %d: %v, for any sizes: %v", c.x, c.y, sum, f.AnySizes())
		}
	}
	if _, _, err := s.Run(t.Context(), map[string]*array.Array{"x": array.Full(array.Float32, 2, 2, 2), "y": array.Full(array.Float32, 1, 2)}); !errors.Is(err, lower.ErrInput) {
		t.Errorf("a matrix: %v", err)
	}
}

// TestAnySizesMemory: after calls of the largest sizes, others take no more memory, and leave no goroutine.
func TestAnySizesMemory(t *testing.T) {
	s := session.New(network(t), session.Options{Options: lower.Options{AnySizes: true}, Optimizer: build(t, "fast_run"), Threads: 2})
	r := s.NewRunner()
	run := func(height, width int) {
		in := map[string]*array.Array{"x": array.New(array.Float32, 1, 8, height, width)}
		if _, _, err := r.Run(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Run(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	used := func() int {
		runtime.GC()
		runtime.GC() // pools keep what they have through one
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	run(5, 5)
	run(64, 64)
	goroutines, before := runtime.NumGoroutine(), used()
	for i := range longtest.Of(200, 10000) {
		run(5+i*7%60, 5+i*11%60)
	}
	if after := used(); after > before+1<<20 {
		t.Errorf("%d bytes in use, %d before", after, before)
	}
	for range 1000 { // threads end soon after a call
		if runtime.NumGoroutine() <= goroutines {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if made, err := s.Functions(); made != 1 || err != nil {
		t.Errorf("%d functions: %v", made, err)
	}
}
