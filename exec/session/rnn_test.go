package session_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestGateActivations: recurrent networks compute with each of ONNX's activations, and the numbers for them are
// handed out in their order, each to one that has such a number.
func TestGateActivations(t *testing.T) {
	softplus := func(x float64) float64 { return math.Log1p(math.Exp(x)) }
	leaky := func(a float64) func(float64) float64 {
		return func(x float64) float64 { return max(x, 0) + a*min(x, 0) }
	}
	for _, c := range []struct {
		names       []string
		alpha, beta []float32
		want        []func(float64) float64 // of a network forward and one back
	}{
		{[]string{"Relu", "tanh"}, nil, nil, []func(float64) float64{leaky(0), math.Tanh}},
		{[]string{"LeakyRelu", "Affine"}, []float32{0.25, 2}, []float32{3}, []func(float64) float64{leaky(0.25), func(x float64) float64 { return 2*x + 3 }}},
		{[]string{"Affine", "LeakyRelu"}, nil, nil, []func(float64) float64{func(x float64) float64 { return x }, leaky(float64(float32(0.01)))}},
		{[]string{"Sigmoid", "ScaledTanh"}, []float32{2}, []float32{0.5}, []func(float64) float64{func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, func(x float64) float64 { return 2 * math.Tanh(x/2) }}},
		{[]string{"HardSigmoid", "Softplus"}, nil, nil, []func(float64) float64{func(x float64) float64 { return min(max(0.2*x+0.5, 0), 1) }, softplus}},
		{[]string{"HardSigmoid", "Softsign"}, []float32{0.5}, []float32{0.25}, []func(float64) float64{func(x float64) float64 { return min(max(0.5*x+0.25, 0), 1) }, func(x float64) float64 { return x / (1 + math.Abs(x)) }}},
		{[]string{"Elu", "ThresholdedRelu"}, []float32{0.5}, nil, []func(float64) float64{func(x float64) float64 { return max(x, 0) + 0.5*math.Expm1(min(x, 0)) }, func(x float64) float64 {
			if x > 1 {
				return x
			}
			return 0
		}}},
	} {
		list := &onnx.Attribute{Name: "activations", Type: onnx.AttributeStrings}
		for _, name := range c.names {
			list.Strings = append(list.Strings, []byte(name))
		}
		m := model([]string{"x"}, []string{"y"}, constant("w", array.Of([]float32{1, 1}, 2, 1, 1), onnx.Float), constant("r", array.Of([]float32{0, 0}, 2, 1, 1), onnx.Float),
			node("RNN", "x w r", "y", whole("hidden_size", 1), &onnx.Attribute{Name: "direction", Type: onnx.AttributeString, String: []byte("bidirectional")}, list,
				&onnx.Attribute{Name: "activation_alpha", Type: onnx.AttributeFloats, Floats: c.alpha}, &onnx.Attribute{Name: "activation_beta", Type: onnx.AttributeFloats, Floats: c.beta}))
		in := []float32{-3, -0.75, 0, 0.5, 1.5, 4}
		y := called(t, m, array.Of(in, len(in), 1, 1))
		for i, x := range in {
			for d, f := range c.want {
				if got, want := y.Float(2*i+d), f(float64(x)); math.Abs(got-want) > 1e-6 {
					t.Errorf("%s of %v is %v, and should be %v", c.names[d], x, got, want)
				}
			}
		}
	}
}

// TestNoSteps: of no steps nothing comes out, and the state stays what it was.
func TestNoSteps(t *testing.T) {
	m := model([]string{"x"}, []string{"y", "h"}, constant("w", array.New(array.Float32, 1, 3, 2), onnx.Float), constant("r", array.New(array.Float32, 1, 3, 1), onnx.Float),
		constant("s", array.Of([]float32{5, 6}, 1, 2, 1), onnx.Float), node("GRU", "x w r _ _ s", "y h", whole("hidden_size", 1)))
	m.Graph.Nodes[3].Inputs[3], m.Graph.Nodes[3].Inputs[4] = "", ""
	in := map[string]*array.Array{"x": array.New(array.Float32, 0, 2, 2)}
	f, err := session.Model(t.Context(), m, session.Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Call(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if y, h := out["y"], out["h"]; y.NDim() != 4 || y.Dim(0) != 0 || y.Dim(2) != 2 || !array.Equal(h, array.Of([]float32{5, 6}, 1, 2, 1)) {
		t.Errorf("%v and %v", y, h)
	}
}

func called(t *testing.T, m *onnx.Model, x *array.Array) *array.Array {
	t.Helper()
	in := map[string]*array.Array{"x": x}
	f, err := session.Model(t.Context(), m, session.Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Call(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out["y"]
}

// TestClippedGates: what goes into gates is clipped, and not the cell of an LSTM.
func TestClippedGates(t *testing.T) {
	zeros := constant("w", array.New(array.Float32, 1, 4, 1), onnx.Float)
	cell, state := constant("c", array.Of([]float32{2}, 1, 1, 1), onnx.Float), constant("s", array.New(array.Float32, 1, 1, 1), onnx.Float)
	m := model([]string{"x"}, []string{"y"}, zeros, cell, state, node("LSTM", "x w w _ _ s c", "y", whole("hidden_size", 1), &onnx.Attribute{Name: "clip", Type: onnx.AttributeFloat, Float: 0.5}))
	lstm := m.Graph.Nodes[len(m.Graph.Nodes)-1]
	lstm.Inputs[3], lstm.Inputs[4] = "", ""
	y := called(t, m, array.New(array.Float32, 1, 1, 1))
	if got, want := y.Float(0), math.Tanh(1)/2; math.Abs(got-want) > 1e-6 {
		t.Errorf("%v, and should be %v", got, want)
	}
}

// recurrentModel returns a model of one recurrent operator of five hidden numbers with a state that is given, for any numbers
// of steps and items.
func recurrentModel(op string, gates int, more ...*onnx.Attribute) *onnx.Model {
	weights := func(name string, shape ...int) *onnx.Node {
		a := array.New(array.Float32, shape...)
		for i := range a.Len() {
			a.SetFloat(i, math.Sin(float64(7*i+len(name))))
		}
		return constant(name, a, onnx.Float)
	}
	inputs, outputs, states := []string{"x", "h"}, []string{"y", "h2"}, "h"
	if op == "LSTM" {
		inputs, outputs, states = append(inputs, "c"), append(outputs, "c2"), "h c"
	}
	m := model(inputs, outputs, weights("w", 1, 5*gates, 3), weights("rr", 1, 5*gates, 5), weights("bbb", 1, 10*gates),
		node(op, "x w rr bbb _ "+states, strings.Join(outputs, " "), append(more, whole("hidden_size", 5))...))
	m.Graph.Nodes[3].Inputs[4] = ""
	m.Graph.Inputs[0].Type = floats("t", "n", 3)
	for _, in := range m.Graph.Inputs[1:] {
		in.Type = floats(1, "n", 5)
	}
	return m
}

// TestAnySteps: one function of a recurrent network serves all numbers of steps and items, with the bits of a function for these.
// Its steps are those of single ones, but for rounding.
func TestAnySteps(t *testing.T) {
	for _, c := range []struct {
		op    string
		gates int
		more  []*onnx.Attribute
	}{{"LSTM", 4, nil}, {"GRU", 3, nil}, {"GRU", 3, []*onnx.Attribute{whole("linear_before_reset", 1)}}, {"RNN", 1, nil}} {
		m := recurrentModel(c.op, c.gates, c.more...)
		options := session.Options{Optimizer: build(t, "fast_run")}
		s := session.New(m, session.Options{Options: lower.Options{AnySizes: true}, Optimizer: options.Optimizer})
		single := session.New(m, options)
		for _, size := range [][2]int{{7, 2}, {60, 3}, {2, 5}, {33, 2}} {
			steps, items := size[0], size[1]
			in := map[string]*array.Array{"x": array.New(array.Float32, steps, items, 3), "h": array.Full(array.Float32, 0.25, 1, items, 5), "c": array.Full(array.Float32, -0.5, 1, items, 5)}
			if c.op != "LSTM" {
				delete(in, "c")
			}
			for i := range in["x"].Len() {
				in["x"].SetFloat(i, math.Cos(float64(3*i)))
			}
			_, got, err := s.Run(t.Context(), in)
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
			for name, a := range want {
				if !array.Equal(got[name], a) {
					t.Errorf("%s, %v: %s is %v, and %v of a function for these sizes", c.op, size, name, got[name], a)
				}
			}
			for n := range steps {
				step := maps.Clone(in)
				step["x"] = new(array.Array)
				in["x"].RangeTo(step["x"], array.Range{Start: n, Step: 1, Count: 1})
				_, out, err := single.Run(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				var row array.Array
				got["y"].RangeTo(&row, array.Range{Start: n, Step: 1, Count: 1})
				if !slices.EqualFunc(row.Floats(), out["y"].Floats(), func(a, b float64) bool { return math.Abs(a-b) < 1e-5 }) {
					t.Fatalf("%s, %v: step %d is %v, and %v by itself", c.op, size, n, &row, out["y"])
				}
				for name := range step {
					if name != "x" {
						in[name] = out[name+"2"].Clone()
					}
				}
			}
		}
		if made, err := s.Functions(); made != 1 || err != nil {
			t.Errorf("%s: %d functions: %v", c.op, made, err)
		}
	}
}
