package session_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// model makes a model of nodes with float inputs of rank 1.
func model(inputs []string, outputs []string, nodes ...*onnx.Node) *onnx.Model {
	m := &onnx.Model{Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{Nodes: nodes}}
	for _, name := range inputs {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}})
	}
	for _, name := range outputs {
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: name})
	}
	return m
}

// TestFaults: all that can't be computed is named at once.
func TestFaults(t *testing.T) {
	m := model([]string{"x"}, []string{"a", "z", "d", "e"},
		&onnx.Node{Op: "Frobnicate", Name: "first", Inputs: []string{"x"}, Outputs: []string{"a"}},
		&onnx.Node{Op: "Relu", Name: "second", Inputs: []string{"a"}, Outputs: []string{"b"}}, // no fault of its own
		&onnx.Node{Op: "Unsqueeze", Name: "fourth", Inputs: []string{"x"}, Outputs: []string{"d"}, Attributes: []*onnx.Attribute{{Name: "axes", Type: onnx.AttributeInts, Ints: []int64{7}}}},
		&onnx.Node{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"z"}, Domain: "com.example"},
		&onnx.Node{Op: "Adam", Name: "fifth", Inputs: []string{"b"}, Outputs: []string{"e"}}) // a fault of its own as well
	_, err := session.Model(t.Context(), m, session.Options{}, map[string]*array.Array{"x": array.Of([]float32{1}, 1), "y": array.Scalar(float32(1))})
	for _, want := range []string{"Frobnicate first: not supported: operator Frobnicate", "Unsqueeze fourth: ", "there is no axis 7", "node 3, Relu: not supported", "Adam fifth: not supported: operator Adam", "input y: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "second") || strings.Contains(err.Error(), "output a") {
		t.Errorf("a node is at fault for another one: %v", err)
	}
	m.Graph.Nodes = append(m.Graph.Nodes, &onnx.Node{Op: "Add", Name: "third", Inputs: []string{"x", "nothing"}, Outputs: []string{"c"}})
	if _, err = session.Model(t.Context(), m, session.Options{}, nil); err == nil || !strings.Contains(err.Error(), "Add third: nothing computes its input nothing") {
		t.Errorf("%v", err)
	}
}

// TestInputType: an input of other elements than the model declares is at fault, and not what uses it.
func TestInputType(t *testing.T) {
	m := model([]string{"x"}, []string{"y"}, &onnx.Node{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}})
	_, err := session.Model(t.Context(), m, session.Options{}, map[string]*array.Array{"x": array.Of([]int64{1}, 1)})
	if !errors.Is(err, lower.ErrInput) || !strings.Contains(err.Error(), "input x: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// TestOverridden: the value of an initializer that is an input as well may be given.
func TestOverridden(t *testing.T) {
	m := model([]string{"x", "w"}, []string{"y"}, &onnx.Node{Op: "Add", Inputs: []string{"x", "w"}, Outputs: []string{"y"}})
	w, err := lower.TensorOf("w", array.Scalar(float32(10)), onnx.Float)
	if err != nil {
		t.Fatal(err)
	}
	m.Graph.Initializers = []*onnx.Tensor{w}
	in := map[string]*array.Array{"x": array.Of([]float32{1, 2}, 2)}
	for _, want := range []float64{11, 101} {
		f, err := session.Model(t.Context(), m, session.Options{}, in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := f.Call(t.Context(), in)
		if err != nil || out["y"].Float(0) != want {
			t.Errorf("%v, %v, want %v", out["y"], err, want)
		}
		in["w"] = array.Scalar(float32(100))
		if _, err := f.Call(t.Context(), in); want == 11 && !errors.Is(err, lower.ErrInput) {
			t.Errorf("an input that the function does not have: %v", err)
		}
	}
}

// TestValues: a function refuses inputs that would have made another graph.
func TestValues(t *testing.T) {
	m := model([]string{"x", "shape"}, []string{"y"}, &onnx.Node{Op: "Reshape", Inputs: []string{"x", "shape"}, Outputs: []string{"y"}})
	m.Graph.Inputs[1].Type.Tensor.Elem = onnx.Int64
	in := map[string]*array.Array{"x": array.Of([]float32{1, 2, 3, 4}, 4), "shape": array.Of([]int64{2, -1}, 2)}
	f, err := session.Model(t.Context(), m, session.Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Call(t.Context(), in)
	if err != nil || !slices.Equal(out["y"].Shape(), []int{2, 2}) {
		t.Fatalf("%v, %v", out["y"], err)
	}
	for name, a := range map[string]*array.Array{"shape": array.Of([]int64{4, 1}, 2), "x": array.Of([]float32{1, 2}, 2)} {
		other := map[string]*array.Array{"x": in["x"], "shape": in["shape"]}
		other[name] = a
		if _, err := f.Call(t.Context(), other); !errors.Is(err, lower.ErrInput) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if _, err := f.Call(t.Context(), nil); !errors.Is(err, lower.ErrInput) {
		t.Errorf("no inputs: %v", err)
	}
}

// TestMutants: a model that is damaged makes no panic, and ends soon.
func TestMutants(t *testing.T) {
	const suite = "/usr/include/onnx/backend/test/data/" // where Debian's libonnx-testdata has ONNX's own tests
	if _, err := os.Stat(suite); err != nil {
		t.Skip("there are no tests of ONNX")
	}
	folders, err := filepath.Glob(suite + "node/*")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range longtest.Of(1000, 20000) {
		folder := folders[rng.IntN(len(folders))]
		data, err := os.ReadFile(folder + "/model.onnx")
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(3) {
			data[rng.IntN(len(data))] = byte(rng.IntN(256))
		}
		m, err := onnx.Parse(data)
		if err != nil {
			continue
		}
		inputs := make(map[string]*array.Array)
		for i, in := range m.Graph.Inputs {
			file := fmt.Sprintf("%s/test_data_set_0/input_%d.pb", folder, i)
			if v, err := lower.ReadTensor(file); err == nil {
				inputs[in.Name], _ = lower.ArrayOf(v, folder)
			}
			if inputs[in.Name] == nil {
				delete(inputs, in.Name)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		start := time.Now()
		if f, err := session.Model(ctx, m, session.Options{Dir: folder}, inputs); err == nil {
			_, _ = f.Call(ctx, inputs) // any error will do
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: %v", filepath.Base(folder), took)
		}
		cancel()
	}
}

// TestSplitParts: parts that are not all of a tensor are refused, however large they are.
func TestSplitParts(t *testing.T) {
	for _, parts := range [][]int64{{2, 1}, {2, 3}, {-1, 5}, {1 << 62, 1 << 62}, {4}, {2, 2}} {
		m := model([]string{"x"}, []string{"y"}, constant("parts", array.Of(parts, len(parts)), onnx.Int64), node("Split", "x parts", "y z"))
		if len(parts) == 1 {
			m.Graph.Nodes[1].Outputs = []string{"y"}
		}
		if parts[0] == 4 { // and a number of parts that is not theirs ends at once
			n := model([]string{"x"}, []string{"y", "z"}, node("Split", "x", "y z", whole("num_outputs", 1<<50)))
			n.Opsets[0].Version = 18
			if _, err := session.Model(t.Context(), n, session.Options{}, map[string]*array.Array{"x": array.New(array.Float32, 4)}); err == nil {
				t.Error("a Split of 2^50 parts")
			}
		}
		_, err := session.Model(t.Context(), m, session.Options{}, map[string]*array.Array{"x": array.New(array.Float32, 4)})
		if right := parts[0] == 4 || parts[0] == parts[1] && parts[0] == 2; right != (err == nil) || err != nil && !strings.Contains(err.Error(), "Split") {
			t.Errorf("parts of sizes %v: %v", parts, err)
		}
	}
}

// TestPadding: padding that cuts off more than there is, is refused, also where a sum of sizes would overflow.
func TestPadding(t *testing.T) {
	for _, c := range []struct {
		pads  []int64
		right bool
	}{
		{[]int64{-1, -2}, true}, {[]int64{-3, 0}, true}, {[]int64{-3, 5}, true}, {[]int64{-2, -2}, false}, {[]int64{-4, 4}, false}, {[]int64{0, -4}, false},
		{[]int64{math.MinInt64, math.MinInt64}, false}, {[]int64{math.MinInt64, 0}, false}, {[]int64{0, math.MinInt64}, false},
	} {
		m := model([]string{"x"}, []string{"y"}, constant("pads", array.Of(c.pads, 2), onnx.Int64), node("Pad", "x pads", "y"))
		if _, err := session.Model(t.Context(), m, session.Options{}, map[string]*array.Array{"x": array.New(array.Float32, 3)}); c.right != (err == nil) {
			t.Errorf("padding of %v: %v", c.pads, err)
		}
	}
}

// TestChannels: a normalization refuses numbers for more or fewer channels than there are.
func TestChannels(t *testing.T) {
	for op, inputs := range map[string]string{"BatchNormalization": "x s s s s", "InstanceNormalization": "x s s", "GroupNormalization": "x s s"} {
		for n, right := range map[int]bool{1: false, 2: true, 3: false} {
			m := model([]string{"x"}, []string{"y"}, constant("s", array.Full(array.Float32, 1, n), onnx.Float), node(op, inputs, "y"))
			m.Opsets[0].Version = 21
			for _, channels := range []int{2, 1} {
				_, err := session.Model(t.Context(), m, session.Options{}, map[string]*array.Array{"x": array.New(array.Float32, 3, channels, 4, 5)})
				if fits := right && channels == 2 || n == 1 && channels == 1; fits != (err == nil) || err != nil && !strings.Contains(err.Error(), "channels") {
					t.Errorf("%s of %d channels with %d numbers: %v", op, channels, n, err)
				}
			}
		}
	}
}
