package session_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// small is a network as those are that run all the time: products of a row, norms, activations, parts of a state,
// and a branch.
func small(t testing.TB) *onnx.Model {
	t.Helper()
	filled := func(name string, v float32, shape ...int) *onnx.Node {
		a := array.New(array.Float32, shape...)
		for i := range a.Len() {
			a.SetFloat(i, float64(v)*float64(i%5-2))
		}
		return constant(name, a, onnx.Float)
	}
	list := func(name string, v ...int64) *onnx.Node { return constant(name, array.Of(v, len(v)), onnx.Int64) }
	m := model([]string{"x", "state"}, []string{"y", "next"},
		filled("w", 0.1, 64, 64), filled("b", 0.2, 64), filled("scale", 0.3, 64), filled("v", 0.4, 64, 1), filled("w2", 0.2, 64, 64),
		constant("half", array.Scalar(float32(0.5)), onnx.Float), list("from", 0), list("to", 32), list("end", 64), list("last", 1),
		node("Gemm", "x w b", "h"), node("LayerNormalization", "h scale b", "n"), node("Relu", "n", "r"),
		node("Slice", "state from to last", "old"), node("Slice", "r to end last", "new"), node("Concat", "new old", "next", whole("axis", 1)),
		node("MatMul", "next v", "logit"), node("Sigmoid", "logit", "p"), node("ReduceMax", "p", "most"), node("Greater", "most half", "more"),
		either("more", "y", []*onnx.Node{node("MatMul", "r w2", "q"), node("ReduceSum", "q", "s"), node("Sigmoid", "s", "r2"), node("Identity", "r2", "r")}, []*onnx.Node{node("ReduceMax", "r", "q"), node("Identity", "q", "r")}))
	return m
}

// TestLendState: a network whose state is one array, input and output, computes what it computes with a copy for
// each call.
func TestLendState(t *testing.T) {
	x, state := array.Full(array.Float32, 0.7, 1, 64), array.Full(array.Float32, 0.5, 1, 64)
	in := map[string]*array.Array{"x": x, "state": state.Clone()}
	f, err := session.Model(t.Context(), small(t), session.Options{Optimizer: build(t, "fast_run")}, in)
	if err != nil {
		t.Fatal(err)
	}
	if m := f.Memory(); m.Peak() == 0 || m.Values == 0 {
		t.Errorf("%+v", m)
	}
	r := f.NewRunner()
	if err := r.LendOutput("next", state); err != nil {
		t.Fatal(err)
	}
	if err := r.LendOutput("z", state); !errors.Is(err, lower.ErrInput) {
		t.Errorf("%v", err)
	}
	for range 5 {
		want, err := f.Call(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Run(t.Context(), map[string]*array.Array{"x": x, "state": state})
		if err != nil {
			t.Fatal(err)
		}
		if got["next"] != state || !array.Equal(state, want["next"]) || !array.Equal(got["y"], want["y"]) {
			t.Fatalf("%v, want %v", got, want)
		}
		in["state"] = want["next"]
	}
}

// TestSessionRunner: a run like the one before allocates nothing, and results are those of other runs.
func TestSessionRunner(t *testing.T) {
	s := session.New(small(t), session.Options{Optimizer: build(t, "fast_run")})
	r := s.NewRunner()
	in := func(rows int, v float32) map[string]*array.Array {
		return map[string]*array.Array{"x": array.Full(array.Float32, float64(v), rows, 64), "state": array.Full(array.Float32, 0.5, rows, 64)}
	}
	inputs := []map[string]*array.Array{in(1, 1), in(1, -1), in(1, 0.1)}
	for i := range 170 {
		args := inputs[i%len(inputs)]
		if i > 20 {
			args = in(i%140+1, 1) // more shapes than a session keeps functions
		}
		f, got, err := r.Run(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		g, want, err := s.Run(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range want {
			if !array.Equal(got[name], v) {
				t.Errorf("run %d: %s is %v, not %v", i, name, got[name], v)
			}
		}
		if f != g {
			t.Errorf("run %d: another function", i)
		}
	}
	if raceDetector {
		return
	}
	ctx := t.Context()
	for _, args := range inputs {
		if n := testing.AllocsPerRun(50, func() {
			if _, _, err := r.Run(ctx, args); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("a run allocates %v times", n)
		}
	}
}

// TestSessionShares: the functions of a session have their weights in common, also those that passes have changed,
// and compute what a function by itself computes, to the bit.
func TestSessionShares(t *testing.T) {
	m := network(t)
	s := session.New(m, session.Options{Optimizer: build(t, "fast_run")})
	in := func(batch, size int) map[string]*array.Array {
		a := array.New(array.Float32, batch, 8, size, size)
		for i := range a.Len() {
			a.SetFloat(i, float64(i%17)/16-0.5)
		}
		return map[string]*array.Array{"x": a}
	}
	r := s.NewRunner()
	known := make(map[*array.Array]bool)
	for i, args := range []map[string]*array.Array{in(1, 8), in(2, 8), in(1, 12), in(3, 16), in(1, 8), in(1, 9), in(2, 11)} {
		f, got, err := r.Run(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		own, err := session.Model(t.Context(), m, session.Options{Optimizer: build(t, "fast_run")}, args)
		if err != nil {
			t.Fatal(err)
		}
		want, err := own.Call(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		if !array.Equal(got["y"], want["y"]) {
			t.Errorf("run %d: %v, want %v", i, got["y"], want["y"])
		}
		large := 0
		for v := range f.Graph().Variables() {
			a := tensor.ConstantOf(v)
			if a == nil || a.Len() < 1024 {
				continue
			}
			if large++; i > 0 && !known[a] {
				t.Errorf("run %d: a constant of its own, of shape %v", i, a.Shape())
			}
			known[a] = true
		}
		if large < 2 {
			t.Errorf("run %d: %d large constants", i, large)
		}
	}
}

// TestSessionTogether: goroutines that begin at a time make one function for the first sizes and one for any, and get what one by
// itself gets.
func TestSessionTogether(t *testing.T) {
	s := session.New(network(t), session.Options{Optimizer: build(t, "fast_run")})
	in := func(size int) map[string]*array.Array {
		return map[string]*array.Array{"x": array.Full(array.Float32, 0.1*float64(size), 1, 8, size, size)}
	}
	const shapes = 3
	var want [shapes]map[string]*array.Array
	for k := range want {
		var err error
		if _, want[k], err = session.New(network(t), session.Options{Optimizer: build(t, "fast_run")}).Run(t.Context(), in(8+k)); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	made := make(map[*session.Function]int)
	for i := range 12 {
		wg.Go(func() {
			for k := range shapes {
				k = (i + k) % shapes
				f, got, err := s.Run(t.Context(), in(8+k))
				if err != nil {
					t.Error(err)
					return
				}
				if !array.Equal(got["y"], want[k]["y"]) {
					t.Errorf("size %d: %v, want %v", 8+k, got["y"], want[k]["y"])
				}
				mu.Lock()
				made[f]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(made) != 2 { // the first one is for its sizes, the other for any
		t.Errorf("%d functions", len(made))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Run(ctx, in(20)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run for another shape: %v", err)
	}
}

// network is a convolution with a norm, of images of any size, one whose weights stay as they are, a product with
// weights that are transposed, and one with weights that passes for nodes put together.
func network(t testing.TB) *onnx.Model {
	t.Helper()
	filled := func(name string, shape ...int) *onnx.Node {
		a := array.New(array.Float32, shape...)
		for i := range a.Len() {
			a.SetFloat(i, float64(i%13)/50-0.1)
		}
		return constant(name, a, onnx.Float)
	}
	positive := func(name string, n int) *onnx.Node {
		return constant(name, array.Full(array.Float32, 0.7, n), onnx.Float)
	}
	m := model([]string{"x"}, []string{"y"},
		filled("k", 32, 8, 3, 3), positive("scale", 32), filled("shift", 32), filled("mean", 32), positive("var", 32),
		filled("w", 64, 32), filled("q", 64, 32), filled("p", 64, 32), filled("v", 64, 32),
		node("Conv", "x k", "c"), node("BatchNormalization", "c scale shift mean var", "n"), node("Relu", "n", "r"),
		node("Conv", "r plain", "s"), node("GlobalAveragePool", "s", "g"), node("Flatten", "g", "h"), node("Transpose", "w", "wt"), node("MatMul", "h wt", "z"),
		node("MatMul", "z q", "a"), node("MatMul", "z p", "b"), node("MatMul", "z v", "d"), node("Mul", "a b", "ab"), node("Add", "ab d", "y"))
	plain := filled("plain", 32, 32, 1, 3).Attributes[0].Tensor
	plain.Name = "plain"
	m.Graph.Initializers = append(m.Graph.Initializers, plain)
	return m
}

// convolutional is a network of convolutions with norms, as many as layers, of images of any size, of which all
// weights are initializers.
func convolutional(layers, channels int) *onnx.Model {
	m := model([]string{"x"}, []string{"y"})
	initial := func(name string, shape ...int) {
		a := array.New(array.Float32, shape...)
		for i, s := 0, array.Slice[float32](a); i < len(s); i++ {
			s[i] = float32((i+len(m.Graph.Initializers))%13)/50 + 0.01
		}
		t, err := lower.TensorOf(name, a, onnx.Float)
		if err != nil {
			panic(err)
		}
		m.Graph.Initializers = append(m.Graph.Initializers, t)
	}
	last := "x"
	for i := range layers {
		of := func(name string) string { return name + strconv.Itoa(i) }
		initial(of("w"), channels, channels, 3, 3)
		for _, name := range []string{"scale", "shift", "mean", "var"} {
			initial(of(name), channels)
		}
		m.Graph.Nodes = append(m.Graph.Nodes, node("Conv", last+" "+of("w"), of("c")),
			node("BatchNormalization", strings.Join([]string{of("c"), of("scale"), of("shift"), of("mean"), of("var")}, " "), of("n")), node("Relu", of("n"), of("r")))
		last = of("r")
	}
	m.Graph.Nodes = append(m.Graph.Nodes, node("GlobalAveragePool", last, "y"))
	return m
}

// BenchmarkFirst measures how long the first result of a model takes, of which most is to make weights ready, and
// the first one for another shape, of which none is.
func BenchmarkFirst(b *testing.B) {
	const layers = 4
	optimizer := build(b, "fast_run")
	for _, channels := range []int{16, 64, 256} {
		m := convolutional(layers, channels)
		in := func(size int) map[string]*array.Array {
			return map[string]*array.Array{"x": array.Full(array.Float32, 1, 1, channels, size, size)}
		}
		name := fmt.Sprintf("weights=%d", layers*9*channels*channels)
		b.Run(name+"/first", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := session.New(m, session.Options{Optimizer: optimizer})
				if _, _, err := s.Run(b.Context(), in(2*layers+1)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/shape", func(b *testing.B) {
			b.ReportAllocs()
			s := session.New(m, session.Options{Optimizer: optimizer})
			// A session keeps functions of fewer shapes than these.
			shape := 0
			for b.Loop() {
				args := map[string]*array.Array{"x": array.Full(array.Float32, 1, 1, channels, 2*layers+1, 2*layers+1+shape%70)}
				if _, _, err := s.Run(b.Context(), args); err != nil {
					b.Fatal(err)
				}
				shape++
			}
		})
	}
}

// BenchmarkSmall measures a run of a network that takes next to no time.
func BenchmarkSmall(b *testing.B) {
	r := session.New(small(b), session.Options{Optimizer: build(b, "fast_run")}).NewRunner()
	in := map[string]*array.Array{"x": array.Full(array.Float32, 1, 1, 64), "state": array.Full(array.Float32, 0.5, 1, 64)}
	f, _, err := r.Run(b.Context(), in)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.Run(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*f.Graph().NumApplies()), "ns/apply")
}

func build(t testing.TB, query string) *optdb.Optimizer {
	t.Helper()
	return passtest.ForModels(t, query)
}
