package session_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// fibonacci returns a loop of n rounds, an input, that carries two numbers which change places, and stacks
// their sum, times what is the same in all rounds.
func fibonacci(loop string) *onnx.Model {
	body := &onnx.Graph{Inputs: names("i", "c", "a", "b"), Outputs: names("c2", "b2", "sum", "row"), Nodes: []*onnx.Node{
		node("Identity", "c", "c2"), node("Identity", "b", "b2"), node("Add", "a b", "sum"), node("Exp", "w", "same"), node("Mul", "sum same", "row")}}
	m := model([]string{"n", "x", "y", "w"}, []string{"p", "q", "rows"},
		node(loop, "n  x y", "p q rows", &onnx.Attribute{Name: "body", Type: onnx.AttributeGraph, Graph: body}))
	m.Graph.Inputs[0].Type.Tensor.Elem = onnx.Int64
	return m
}

// TestRounds: a loop is one op for any number of rounds. What is the same in all of them is computed in front.
func TestRounds(t *testing.T) {
	for _, o := range []session.Options{{}, {Optimizer: build(t, "fast_run")}, {Optimizer: build(t, "debug")}} {
		in := map[string]*array.Array{"n": array.Scalar(int64(1)), "x": array.Of([]float32{1, 0}, 2), "y": array.Of([]float32{1, 2}, 2), "w": array.Of([]float32{0, 0}, 2)}
		f, err := session.Model(t.Context(), fibonacci("Loop"), o, in)
		if err != nil {
			t.Fatal(err)
		}
		if text := f.Graph().String(); strings.Count(text, "Rounds") != 1 || strings.Count(text, "exp(") != 1 || f.Graph().NumApplies() > 4 {
			t.Errorf("%s", text)
		}
		for n, want := range map[int64][]float64{0: {1, 0, 1, 2}, 1: {1, 2, 2, 2}, 2: {2, 2, 3, 4}, 9: {55, 68, 89, 110}} {
			in["n"] = array.Scalar(n)
			out, err := f.Call(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Concat(out["p"].Floats(), out["q"].Floats())
			if rows := out["rows"]; !slices.Equal(got, want) || !slices.Equal(rows.Shape(), []int{int(n), 2}) || n > 0 && !slices.Equal(rows.Floats()[2*n-2:], want[2:]) {
				t.Errorf("%d rounds: %v %v", n, got, rows)
			}
		}
	}
}

// TestLongScan: a Scan of many steps is one op, also in reverse.
func TestLongScan(t *testing.T) {
	const steps = 5000
	body := &onnx.Graph{Inputs: names("s", "e"), Outputs: names("t", "u"), Nodes: []*onnx.Node{node("Add", "s e", "t"), node("Identity", "t", "u")}}
	m := model([]string{"s0", "x"}, []string{"s1", "y"}, node("Scan", "s0 x", "s1 y", whole("num_scan_inputs", 1),
		&onnx.Attribute{Name: "scan_input_directions", Type: onnx.AttributeInts, Ints: []int64{1}},
		&onnx.Attribute{Name: "body", Type: onnx.AttributeGraph, Graph: body}))
	x := array.New(array.Float32, steps, 2)
	for i := range x.Len() {
		x.SetFloat(i, float64(i%7))
	}
	in := map[string]*array.Array{"s0": array.Of([]float32{0, 0}, 2), "x": x}
	f, err := session.Model(t.Context(), m, session.Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Call(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i := steps - 1; i >= 0; i-- {
		sum += x.Float(2 * i)
		if got := out["y"].Float(2 * (steps - 1 - i)); got != sum {
			t.Fatalf("step %d: %g, want %g", steps-1-i, got, sum)
		}
	}
	if f.Graph().NumApplies() > 20 || out["s1"].Float(0) != sum {
		t.Errorf("%d applies, %g, want %g", f.Graph().NumApplies(), out["s1"].Float(0), sum)
	}
}

// endless returns a model of a loop in a loop, both of which have n rounds, an input, and go on for years if that is
// large. The size of the result is what they carry, if that is asked for: lowering then runs them.
func endless(asked bool) *onnx.Model {
	loop := func(in, out string, nodes ...*onnx.Node) *onnx.Node {
		body := &onnx.Graph{Inputs: names("i"+out, "c"+out, in), Outputs: names("d"+out, "r"+out), Nodes: append(nodes, node("Identity", "c"+out, "d"+out))}
		return node("Loop", "n  x", out, &onnx.Attribute{Name: "body", Type: onnx.AttributeGraph, Graph: body})
	}
	inner := loop("a", "b", node("Add", "a x", "rb"))
	m := model([]string{"n", "x"}, []string{"y"}, loop("e", "f", inner, node("Max", "e b", "rf")), node("Identity", "f", "y"))
	if asked {
		m.Graph.Nodes[1] = node("ConstantOfShape", "f", "y")
	}
	for _, in := range m.Graph.Inputs {
		in.Type.Tensor.Elem = onnx.Int64
	}
	return m
}

// endlessConstants returns that model with constants for inputs.
func endlessConstants(t *testing.T, in map[string]*array.Array) *onnx.Model {
	m := endless(false)
	m.Graph.Inputs = nil
	for name, a := range in {
		x, err := lower.TensorOf(name, a, onnx.Int64)
		if err != nil {
			t.Fatal(err)
		}
		m.Graph.Initializers = append(m.Graph.Initializers, x)
	}
	return m
}

// TestEndlessRounds: loops end with the context, in a run, where lowering asks for what they make, and where a node of
// constants is computed.
func TestEndlessRounds(t *testing.T) {
	enough := errors.New("enough")
	in := map[string]*array.Array{"n": array.Scalar(int64(1 << 19)), "x": array.Of([]int64{0}, 1)}
	soon := func(t *testing.T, do func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		var ended time.Time
		time.AfterFunc(50*time.Millisecond, func() { ended = time.Now(); cancel(enough) })
		if err := do(ctx); !errors.Is(err, enough) {
			t.Fatal(err)
		}
		if late := time.Since(ended); late > time.Second { // 1 ms, but other tests run meanwhile
			t.Errorf("it ends %v after the context", late)
		}
	}
	for _, query := range []string{"none", "fast_run"} {
		o := session.Options{Optimizer: build(t, query)}
		f, err := session.Model(t.Context(), endless(false), o, in)
		if err != nil {
			t.Fatal(err)
		}
		soon(t, func(ctx context.Context) error { _, err := f.Call(ctx, in); return err })
		soon(t, func(ctx context.Context) error { _, err := session.Model(ctx, endless(true), o, in); return err })
	}
	m := endlessConstants(t, in)
	g, err := ir.Import(m, ir.Options{Evaluator: lower.Evaluator{}})
	if err != nil {
		t.Fatal(err)
	}
	soon(t, func(ctx context.Context) error { return build(t, "fast_run").Rewrite(ctx, g, nil) })
	tensors := session.Options{Optimizer: build(t, "fast_run -onnx")}
	soon(t, func(ctx context.Context) error { _, err := session.Model(ctx, m, tensors, nil); return err })
}

// TestRoundsWork: loops run as long as there is work left, together. Those of constants stay if it is not enough.
func TestRoundsWork(t *testing.T) {
	in := map[string]*array.Array{"n": array.Scalar(int64(1 << 19)), "x": array.Of([]int64{0}, 1)}
	f, err := session.Model(t.Context(), endless(false), session.Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	ctx := tensor.WithWork(t.Context(), 20*time.Millisecond)
	if _, err := f.Call(ctx, in); !errors.Is(err, tensor.ErrWork) {
		t.Error(err)
	}
	if _, err := f.Call(ctx, in); !errors.Is(err, tensor.ErrWork) {
		t.Error(err)
	}
	g, err := ir.Import(endlessConstants(t, in), ir.Options{Evaluator: lower.Evaluator{}})
	if err == nil {
		err = build(t, "fast_run").Rewrite(tensor.WithWork(t.Context(), 20*time.Millisecond), g, nil)
	}
	if err != nil || g.NumApplies() != 1 {
		t.Error(g, err)
	}
	in["n"] = array.Scalar(int64(8))
	if g, err = ir.Import(endlessConstants(t, in), ir.Options{Evaluator: lower.Evaluator{}}); err == nil {
		err = build(t, "fast_run").Rewrite(tensor.WithWork(t.Context(), 20*time.Millisecond), g, nil)
	}
	if err != nil || g.NumApplies() != 0 {
		t.Error(g, err)
	}
}
