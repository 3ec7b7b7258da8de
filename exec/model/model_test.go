package model_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// made returns a model of nodes.
func made(inputs, outputs []*onnx.ValueInfo, nodes ...*onnx.Node) *onnx.Model {
	return &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{Inputs: inputs, Outputs: outputs, Nodes: nodes}}
}

func node(op, inputs, output string) *onnx.Node {
	return &onnx.Node{Op: op, Inputs: strings.Fields(inputs), Outputs: []string{output}}
}

// value describes a tensor with sizes that are numbers or symbols, "" any.
func value(name string, elem onnx.DataType, dims ...any) *onnx.ValueInfo {
	s := new(onnx.Shape)
	for _, d := range dims {
		if n, ok := d.(int); ok {
			size := int64(n)
			s.Dims = append(s.Dims, &onnx.Dim{Value: &size})
		} else {
			s.Dims = append(s.Dims, &onnx.Dim{Param: d.(string)})
		}
	}
	return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: elem, Shape: s}}}
}

func opened(t testing.TB, m *onnx.Model, o model.Options) *model.Model {
	t.Helper()
	r, err := o.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestInputs: values of Go become tensors of the sizes that the model declares.
func TestInputs(t *testing.T) {
	m := opened(t, made([]*onnx.ValueInfo{value("x", onnx.Float, "n", 2, 3), value("i", onnx.Int64), value("one", onnx.Int64, 1), value("b", onnx.Bool, "k")},
		[]*onnx.ValueInfo{{Name: "y"}, {Name: "j"}, {Name: "p"}, {Name: "c"}},
		node("Identity", "x", "y"), node("Identity", "i", "j"), node("Identity", "one", "p"), node("Identity", "b", "c")), model.Options{})
	six := []float32{1, 2, 3, 4, 5, 6}
	for _, x := range []any{six, [][][]float32{{{1, 2, 3}, {4, 5, 6}}}, [1][2][3]float32{{{1, 2, 3}, {4, 5, 6}}}, [][2][]float32{{{1, 2, 3}, {4, 5, 6}}}, model.Tensor(six, 1, 2, 3), array.Of(six, 1, 2, 3)} {
		for _, n := range []any{7, int64(7), []int64{7}, [1]int{7}, array.Scalar(int64(7))} {
			one := n
			if a, ok := n.(*array.Array); ok {
				one = a.Reshape(1)
			}
			out, err := m.Run(t.Context(), model.Inputs{"x": x, "i": n, "one": one, "b": []bool{true, false}})
			if err != nil {
				t.Fatal(err)
			}
			if y, err := model.Slice[float32](out["y"]); err != nil || !slices.Equal(y, six) || fmt.Sprint(out["y"].Shape(), out["j"], out["j"].Shape(), out["p"], out["c"]) != "[1 2 3] 7 [] [7] [True, False]" {
				t.Errorf("%T, %T: %v %v %v %v, %v", x, n, out["y"], out["j"], out["p"], out["c"], err)
			}
		}
	}
	transposed := array.Of(six, 3, 2).Transpose(1, 0)
	if v, err := model.Slice[float32](transposed); err != nil || !slices.Equal(v, []float32{1, 3, 5, 2, 4, 6}) {
		t.Errorf("%v, %v", v, err)
	}
	for _, a := range []*array.Array{nil, array.Scalar(1.0), array.ToCSR(array.Of(six, 2, 3))} {
		if v, err := model.Slice[float32](a); err == nil || !strings.Contains(err.Error(), "model: Slice of") {
			t.Errorf("%v: %v, %v", a, v, err)
		}
	}
}

// TestWrongInputs: an error says which input is wrong, what is wanted, and what was given. Nothing panics.
func TestWrongInputs(t *testing.T) {
	m := opened(t, made([]*onnx.ValueInfo{value("x", onnx.Float, "n", 2), value("ids", onnx.Int64, "n", ""), value("s", onnx.Int64)},
		[]*onnx.ValueInfo{{Name: "y"}, {Name: "z"}, {Name: "r"}}, node("Relu", "x", "y"), node("Neg", "ids", "z"), node("Neg", "s", "r")), model.Options{})
	type name int64
	x, ids := []float32{1, 2}, [][]int64{{1, 2}}
	for _, c := range []struct {
		in           model.Inputs
		wrong, given string
		why          string
	}{
		{nil, "x", "nothing", ""},
		{model.Inputs{"x": x, "ids": ids}, "s", "nothing", ""},
		{model.Inputs{"x": x, "ids": ids, "s": 1, "t": 1, "u": 2}, "t", "a name that", ""},
		{model.Inputs{"x": x, "ids": ids, "s": 1, "x[0]": x}, "x[0]", "a name that", ""},
		{model.Inputs{"x": nil}, "x", "<nil>", "it is nothing"},
		{model.Inputs{"x": (*array.Array)(nil)}, "x", "a nil tensor", ""},
		{model.Inputs{"x": new(array.Array)}, "x", "bool[]", "type of the elements"},
		{model.Inputs{"x": array.ToCSR(array.Of(x, 1, 2))}, "x", "a sparse matrix", ""},
		{model.Inputs{"x": "text"}, "x", "string", ""},
		{model.Inputs{"x": []any{1, 2}}, "x", "[]interface {}", "no type of elements"},
		{model.Inputs{"x": map[int]float32{1: 2}}, "x", "map[int]float32", "no type of elements"},
		{model.Inputs{"x": model.Shaped{}}, "x", "model.Shaped", "it is nothing"},
		{model.Inputs{"x": []float64{1, 2}}, "x", "float64[1,2]", "type of the elements"},
		{model.Inputs{"x": []float32{1, 2, 3}}, "x", "[]float32", "3 elements can't have this shape"},
		{model.Inputs{"x": [][]float32{{1, 2, 3}}}, "x", "float32[1,3]", "size 1 should be 2"},
		{model.Inputs{"x": [][]float32{{1, 2}, {3}}}, "x", "[][]float32", "row 1 of dimension 1 has 1 elements"},
		{model.Inputs{"x": [][][]float32{{{1, 2}}}}, "x", "float32[1,1,2]", "it should have 2 dimensions"},
		{model.Inputs{"x": [][][][][][][][][]float32{}}, "x", "[][][][][][][][][]float32", "elements for the shape"},
		{model.Inputs{"x": model.Tensor(x, 2, 2)}, "x", "model.Shaped", "2 elements for the shape [2 2]"},
		{model.Inputs{"x": model.Tensor(x, -1, 2)}, "x", "model.Shaped", "is no shape"},
		{model.Inputs{"x": model.Tensor(x, 1<<40, 1<<40)}, "x", "model.Shaped", "is no shape"},
		{model.Inputs{"x": x, "ids": [][]name{{1, 2}}}, "ids", "[][]model_test.name", "no type of elements"},
		{model.Inputs{"x": x, "ids": []int64{1, 2}}, "ids", "[]int64", "give them one by Tensor"},
		{model.Inputs{"x": x, "ids": [][]int64{{1}, {2}}}, "ids", "int64[2,1]", "size 0 should be 1, since n is in x"},
		{model.Inputs{"x": x, "ids": ids, "s": []int64{1, 2}}, "s", "[]int64", "2 elements can't have"},
	} {
		_, err := m.Run(t.Context(), c.in)
		var e *model.InputError
		if !errors.As(err, &e) || !errors.Is(err, model.ErrInput) || e.Name != c.wrong || !strings.HasPrefix(e.Given, c.given) || !strings.Contains(e.Why, c.why) || e.Wanted == "" {
			t.Errorf("%v: %v, want %s, %s, %s", c.in, err, c.wrong, c.given, c.why)
		}
	}
}

// TestOpen: what can't be opened says why, and options have an effect.
func TestOpen(t *testing.T) {
	x, y := []*onnx.ValueInfo{value("x", onnx.Float, "n", "")}, []*onnx.ValueInfo{value("y", onnx.Float, "n", "")}
	for _, c := range []struct {
		o    model.Options
		m    *onnx.Model
		want string
	}{
		{model.Options{}, &onnx.Model{}, "no graph"},
		{model.Options{}, made(x, y, node("Frobnicate", "x", "y")), "Frobnicate"},
		{model.Options{Query: "+fast"}, made(x, y, node("Relu", "x", "y")), "fast"},
		{model.Options{Sizes: map[string]int{"m": 1}}, made(x, y, node("Relu", "x", "y")), `sizes that the model leaves open are ["n" "x.1"]`},
		{model.Options{Sizes: map[string]int{"n": -1}}, made(x, y, node("Relu", "x", "y")), `a size "n" of -1`},
	} {
		if m, err := c.o.New(c.m); err == nil || m != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	for _, err := range []error{second(model.Open("testdata/none.onnx")), second(model.Open("model.go")), second(model.Parse([]byte("text"))), second(model.OpenFS(fstest.MapFS{}, "x.onnx"))} {
		if err == nil {
			t.Error("no error")
		}
	}
	file := made(x, y, node("Relu", "x", "y"))
	m := opened(t, file, model.Options{Sizes: map[string]int{"n": 2, "x.1": 3}, Query: "none"})
	if got := m.Inputs()[0].String(); got != "float32[2,3]" || m.Outputs()[0].String() != "float32[2,?]" || file.Graph.Inputs[0].Type.Tensor.Shape.Dims[0].Param != "n" {
		t.Errorf("%s; the model was changed: %v", got, file.Graph.Inputs[0].Type)
	}
	if _, err := m.Run(t.Context(), model.Inputs{"x": make([]float32, 6)}); err != nil || m.Optimizer() == nil || m.File().Graph == file.Graph {
		t.Error(err)
	}
	m = opened(t, file, model.Options{MaxBytes: 1 << 16})
	if _, err := m.Run(t.Context(), model.Inputs{"x": [][]float32{make([]float32, 1<<20)}}); !errors.Is(err, array.ErrTooLarge) {
		t.Errorf("beyond MaxBytes: %v", err)
	}
	p, err := m.Profile(t.Context(), model.Inputs{"x": [][]float32{make([]float32, 100)}}, 3)
	if err != nil || len(p.Execution) == 0 || p.Execution[0].Calls != 3 {
		t.Errorf("%+v, %v", p, err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestDefaults: initializers that are also inputs are constants.
func TestDefaults(t *testing.T) {
	file := made([]*onnx.ValueInfo{value("x", onnx.Float, 1), value("w", onnx.Float, 1)}, []*onnx.ValueInfo{{Name: "y"}}, node("Mul", "x w", "y"))
	w, err := lower.TensorOf("w", array.Of([]float32{3}, 1), onnx.Float)
	if err != nil {
		t.Fatal(err)
	}
	file.Graph.Initializers = []*onnx.Tensor{w}
	m := opened(t, file, model.Options{})
	if out, err := m.Run(t.Context(), model.Inputs{"x": float32(2)}); err != nil || out["y"].Float(0) != 6 || len(m.Inputs()) != 1 {
		t.Errorf("%v, %v, inputs %v", out, err, m.Inputs())
	}
	if _, err := m.Run(t.Context(), model.Inputs{"x": float32(2), "w": float32(2)}); !errors.Is(err, model.ErrInput) {
		t.Errorf("%v", err)
	}
}

// TestSequences: items are inputs and outputs of their own, and what is optional may be left out.
func TestSequences(t *testing.T) {
	list := &onnx.ValueInfo{Name: "s", Type: &onnx.Type{Sequence: &onnx.ElementType{Elem: value("", onnx.Float, "n").Type}}}
	m := opened(t, made([]*onnx.ValueInfo{list}, []*onnx.ValueInfo{{Name: "t"}}, node("SequenceInsert", "s x", "t"), node("SequenceAt", "s zero", "x"),
		&onnx.Node{Op: "Constant", Outputs: []string{"zero"}, Attributes: []*onnx.Attribute{{Name: "value_int", Type: onnx.AttributeInt}}}), model.Options{})
	out, err := m.Run(t.Context(), model.Inputs{"s[0]": []float32{1}, "s[1]": []float32{2, 3}})
	if err != nil || len(out) != 3 || out["t[1]"].Len() != 2 || out["t[2]"].Float(0) != 1 || m.Inputs()[0].String() != "sequence of float32[n]" {
		t.Errorf("%v, %v, %v", out, err, m.Inputs())
	}
	for _, in := range []model.Inputs{{"s[0]": []float64{1}}, {"s": []float32{1}}, {"s[0]": []float32{1}, "s": nil}, {"s[0]": []float32{1}, "s[2]": []float32{1}}, {"t[0]": []float32{1}}} {
		if _, err := m.Run(t.Context(), in); !errors.Is(err, model.ErrInput) {
			t.Errorf("%v: %v", in, err)
		}
	}
	maybe := &onnx.ValueInfo{Name: "o", Type: &onnx.Type{Optional: &onnx.ElementType{Elem: value("", onnx.Float, 1).Type}}}
	m = opened(t, made([]*onnx.ValueInfo{maybe}, []*onnx.ValueInfo{{Name: "has"}}, node("OptionalHasElement", "o", "has")), model.Options{})
	for _, in := range []model.Inputs{{}, {"o": []float32{1}}} {
		if out, err := m.Run(t.Context(), in); err != nil || out["has"].Int(0) != int64(len(in)) {
			t.Errorf("%v: %v, %v", in, out, err)
		}
	}
}

// slow is a model that takes a second or so: powers of a matrix.
func slow(t testing.TB) (*model.Model, model.Inputs) {
	file := made([]*onnx.ValueInfo{value("x", onnx.Float, "n", "n")}, []*onnx.ValueInfo{{Name: "x300"}})
	for i := range 300 {
		from := fmt.Sprint("x", i)
		if i == 0 {
			from = "x"
		}
		file.Graph.Nodes = append(file.Graph.Nodes, node("MatMul", from+" x", fmt.Sprint("x", i+1)))
	}
	return opened(t, file, model.Options{Threads: 1}), model.Inputs{"x": array.New(array.Float32, 384, 384)}
}

// TestCancel: a run ends with its context, and Close after it.
func TestCancel(t *testing.T) {
	m, in := slow(t)
	b, err := m.NewBatcher(model.BatcherOptions{})
	if err == nil || b != nil {
		t.Errorf("a batcher of squares: %v", err)
	}
	cause := errors.New("enough")
	for _, wait := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond} {
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan time.Time, 1)
		time.AfterFunc(wait, func() { ended <- time.Now(); cancel(cause) })
		_, err := m.Run(ctx, in)
		if took := time.Since(<-ended); !errors.Is(err, cause) || took > 5*time.Second { // less than 50 ms, if the processor is free
			t.Errorf("after %v: %v, %v later", wait, err, took)
		}
		if _, err := m.NewRunner().Run(ctx, in); !errors.Is(err, cause) {
			t.Errorf("a runner: %v", err)
		}
	}
	start := time.Now()
	if err := m.Close(); err != nil || time.Since(start) > 5*time.Second {
		t.Errorf("Close: %v after %v", err, time.Since(start))
	}
}

// TestClose: a closed model is not used any more, but what it returned is.
func TestClose(t *testing.T) {
	w, err := lower.TensorOf("w", array.Full(array.Float32, 0.5, 1<<16), onnx.Float)
	if err != nil {
		t.Fatal(err)
	}
	file := made([]*onnx.ValueInfo{value("x", onnx.Float, "n")}, []*onnx.ValueInfo{{Name: "y"}, {Name: "v"}, {Name: "part"}, {Name: "xn"}}, node("Relu", "x", "y"), node("Identity", "w", "v"),
		node("Slice", "w from to", "part"), node("Identity", "x", "xn"))
	file.Graph.Initializers = []*onnx.Tensor{w}
	for name, v := range map[string]int64{"from": 10, "to": 20} {
		c, err := lower.TensorOf(name, array.Of([]int64{v}, 1), onnx.Int64)
		if err != nil {
			t.Fatal(err)
		}
		file.Graph.Initializers = append(file.Graph.Initializers, c)
	}
	name := filepath.Join(t.TempDir(), "m.onnx")
	if err := file.WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	in := model.Inputs{"x": array.Of([]float32{1}, 1)}
	out, err := m.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	r := m.NewRunner()
	s, err := m.NewStateful()
	if err != nil {
		t.Fatal(err)
	}
	b, err := opened(t, made(file.Graph.Inputs, []*onnx.ValueInfo{{Name: "y"}}, node("Relu", "x", "y")), model.Options{}).NewBatcher(model.BatcherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	for range 2 {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if a := out["v"]; a.Len() != 1<<16 || a.Float(1<<16-1) != 0.5 || out["part"].Float(9) != 0.5 {
		t.Error("a weight that was returned has gone")
	}
	for _, err := range []error{second(m.Run(t.Context(), in)), second(r.Run(t.Context(), in)), second(s.Run(t.Context(), nil)), second(b.Run(t.Context(), in)), second(m.Profile(t.Context(), in, 1))} {
		if !errors.Is(err, model.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}

// TestStateful: a decoder that goes on from its cache computes what it computes of all tokens.
func TestStateful(t *testing.T) {
	m, err := model.Open("testdata/decoder.onnx")
	if err != nil {
		t.Fatal(err)
	}
	logits := func(s *model.Stateful, ids ...int64) *array.Array {
		t.Helper()
		out, err := s.Run(t.Context(), model.Inputs{"input_ids": [][]int64{ids}})
		if err != nil {
			t.Fatal(err)
		}
		last := new(array.Array)
		out["logits"].RangeTo(last, array.Range{Count: 1, Step: 1, Drop: true}, array.Range{Start: len(ids) - 1, Count: 1, Step: 1, Drop: true})
		return last.Clone()
	}
	s, err := m.NewStateful()
	if err != nil {
		t.Fatal(err)
	}
	ids := []int64{1, 2, 3}
	logits(s, ids...)
	for next := range int64(6) {
		ids = append(ids, 10+next)
		fork := s.Fork()
		got := logits(s, 10+next)
		logits(fork, 63) // does nothing to s
		whole, err := m.NewStateful()
		if err != nil {
			t.Fatal(err)
		}
		if want := logits(whole, ids...); s.Positions() != len(ids) || array.Distance(got, want) > 1e-5 {
			t.Errorf("after %d tokens: %v\nwant %v", len(ids), got, want)
		}
	}
	if _, err := s.Run(t.Context(), model.Inputs{"input_id": ids}); !errors.Is(err, model.ErrInput) {
		t.Errorf("%v", err)
	}
	if _, err := m.NewStateful(session.State{Output: "logits", Input: "none"}); !errors.Is(err, model.ErrInput) {
		t.Errorf("%v", err)
	}
}

// encoded are inputs of the encoder, whose first number is 1/√2 if the one token is 4 or 6, and 1 if it is 1.
func encoded(token int64) model.Inputs {
	return model.Inputs{"input_ids": [][]int64{{token, 0}}, "attention_mask": [][]int64{{1, 0}}}
}

// TestConcurrent: any number of goroutines get their own results, also while the model is closed.
func TestConcurrent(t *testing.T) {
	m, err := model.Parse(encoder)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			r := m.NewRunner()
			for i := range longtest.Of(50, 1000) {
				rows, n := g%4+1, i%7+1
				ids, mask := array.Full(array.Int64, float64(1+g%3), rows, n), array.Full(array.Int64, 1, rows, n)
				run := m.Run
				if i%2 == 1 {
					run = r.Run
				}
				out, err := run(t.Context(), model.Inputs{"input_ids": ids, "attention_mask": mask})
				if err != nil {
					t.Error(err)
					return
				}
				for k := range 3 * rows {
					if want := float64(b2i(k%3 == g%3)); out["embedding"].Float(k) != want {
						t.Errorf("token %d: %v", 1+g%3, out["embedding"])
						return
					}
				}
			}
		})
	}
	wg.Wait()
	for range 8 {
		wg.Go(func() {
			for {
				if _, err := m.Run(t.Context(), encoded(1)); err != nil {
					if !errors.Is(err, model.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestManyRuns: memory and goroutines don't grow, and a Runner allocates nothing.
func TestManyRuns(t *testing.T) {
	m, err := model.Parse(encoder)
	if err != nil {
		t.Fatal(err)
	}
	r := m.NewRunner()
	run := func(n int) {
		for i := range n {
			if _, err := m.Run(t.Context(), encoded(int64(i%8))); err != nil {
				t.Fatal(err)
			}
			ids, mask := array.New(array.Int64, i%3+1, i%50+1), array.Full(array.Int64, 1, i%3+1, i%50+1)
			if _, err := r.Run(t.Context(), model.Inputs{"input_ids": ids, "attention_mask": mask}); err != nil {
				t.Fatal(err)
			}
		}
	}
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	run(1000)
	before, goroutines := heap(), runtime.NumGoroutine()
	run(longtest.Of(2000, 100_000))
	if grown := heap() - before; grown > 1<<20 || runtime.NumGoroutine() > goroutines+2 {
		t.Errorf("%d bytes and %d goroutines more", grown, runtime.NumGoroutine()-goroutines)
	}
	in := model.Inputs{"input_ids": array.New(array.Int64, 2, 9), "attention_mask": array.Full(array.Int64, 1, 2, 9)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := r.Run(ctx, in); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 && !raceDetector {
		t.Errorf("%v allocations a run", allocs)
	}
}
