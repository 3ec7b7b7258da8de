package session_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// A golden case is a node with inputs and what it should make of them, which NumPy has computed by the
// definition of the operator. A type null is a left out input, or an output that does not matter.
type goldenCase struct {
	Name, Op        string
	Opset           int64
	Attributes      map[string]any
	Inputs, Outputs []*goldenTensor
}

type goldenTensor struct {
	Type   string
	Shape  []int
	Values []float64
}

func (g *goldenTensor) array() *array.Array {
	d, _ := array.ParseDType(g.Type)
	a := array.New(d, g.Shape...)
	for i, v := range g.Values {
		a.SetFloat(i, v)
	}
	return a
}

// model makes the model of a case. Whole numbers are integers unless the name says otherwise.
func (g *goldenCase) model(t *testing.T) *onnx.Model {
	t.Helper()
	n := &onnx.Node{Op: g.Op}
	for name, v := range g.Attributes {
		a := &onnx.Attribute{Name: name}
		switch v := v.(type) {
		case string:
			a.String, a.Type = []byte(v), onnx.AttributeString
		case []any:
			for _, e := range v {
				a.Ints, a.Type = append(a.Ints, int64(e.(float64))), onnx.AttributeInts
			}
		case float64:
			if a.Int, a.Float, a.Type = int64(v), float32(v), onnx.AttributeInt; v != math.Trunc(v) || name == "softcap" {
				a.Int, a.Type = 0, onnx.AttributeFloat
			} else {
				a.Float = 0
			}
		}
		n.Attributes = append(n.Attributes, a)
	}
	m := &onnx.Model{Opsets: []*onnx.Opset{{Version: g.Opset}}, Graph: &onnx.Graph{Nodes: []*onnx.Node{n}}}
	for i, in := range g.Inputs {
		name := ""
		if in != nil {
			name = fmt.Sprint("x", i)
			m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name})
		}
		n.Inputs = append(n.Inputs, name)
	}
	for i := range g.Outputs {
		name := fmt.Sprint("y", i)
		n.Outputs = append(n.Outputs, name)
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: name})
	}
	return m
}

func readGolden(t *testing.T) (list []*goldenCase) {
	t.Helper()
	data, err := os.ReadFile("testdata/operators.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestOperators(t *testing.T) {
	opt := build(t, "fast_run")
	for _, g := range readGolden(t) {
		t.Run(g.Name, func(t *testing.T) {
			in := make(map[string]*array.Array)
			for i, x := range g.Inputs {
				if x != nil {
					in[fmt.Sprint("x", i)] = x.array()
				}
			}
			for _, o := range []session.Options{{}, {Optimizer: opt}} {
				f, err := session.Model(t.Context(), g.model(t), o, in)
				if err != nil {
					t.Fatal(err)
				}
				got, err := f.Call(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				for i, want := range g.Outputs {
					if want != nil {
						near(t, got[fmt.Sprint("y", i)], want)
					}
				}
			}
		})
	}
}

// near compares elements with a tolerance of 1e-5, relative above 1.
func near(t *testing.T, got *array.Array, want *goldenTensor) {
	t.Helper()
	if !slices.Equal(got.Shape(), want.Shape) {
		t.Errorf("the shape is %v, and should be %v", got.Shape(), want.Shape)
		return
	}
	for i, v := range want.Values {
		if v == 1e300 { // JSON has no infinity
			v = math.Inf(1)
		}
		if d := math.Abs(got.Float(i) - v); !(d <= 1e-5*max(1, math.Abs(v))) && got.Float(i) != v {
			t.Errorf("%v\nwant %v", got.Floats(), want.Values)
			return
		}
	}
}

// A Gelu far below zero is a small number, not what rounding leaves of 1 + erf(x/√2), whatever passes run.
func TestGeluFarBelowZero(t *testing.T) {
	x := array.New(array.Float32, 24)
	for i := range x.Len() {
		x.SetFloat(i, float64(float32(-0.5*float64(i+1))))
	}
	all := map[string]*array.Array{"x": x, "zeros": array.New(array.Float32, x.Len())}
	for _, n := range []*onnx.Node{
		{Op: "Gelu", Inputs: []string{"x"}},
		{Op: "Gelu", Domain: "com.microsoft", Inputs: []string{"x"}},
		{Op: "BiasGelu", Domain: "com.microsoft", Inputs: []string{"x", "zeros"}},
	} {
		n.Outputs = []string{"y"}
		m := &onnx.Model{
			Opsets: []*onnx.Opset{{Version: 20}, {Domain: "com.microsoft", Version: 1}},
			Graph:  &onnx.Graph{Nodes: []*onnx.Node{n}, Outputs: []*onnx.ValueInfo{{Name: "y"}}},
		}
		in := make(map[string]*array.Array)
		for _, name := range n.Inputs {
			in[name] = all[name]
			m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name})
		}
		for _, o := range []session.Options{{}, {Optimizer: build(t, "fast_run")}} {
			f, err := session.Model(t.Context(), m, o, in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Call(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got["y"].Floats() {
				// The argument of erfc is rounded, and an error of it counts 2·(x/√2)² times.
				x := x.Float(i)
				if want := 0.5 * x * math.Erfc(-x/math.Sqrt2); math.Abs(v-want) > float64((1e-6+float64(1.2e-7*x*x))*math.Abs(want)) {
					t.Errorf("%s of %g is %g, want %g", n.Op, x, v, want)
				}
			}
		}
	}
}
