package backend_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/models/internal/backend"
)

// write writes a case: a model of one node on inputs x, bias (an initializer, too) and axes, and data
// sets of files by name.
func write(t *testing.T, node *onnx.Node, elem onnx.DataType, sets ...map[string]*onnx.Tensor) string {
	t.Helper()
	input := func(name string, elem onnx.DataType) *onnx.ValueInfo {
		return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: elem}}}
	}
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{Nodes: []*onnx.Node{node}}}
	for _, name := range node.Inputs {
		m.Graph.Inputs = append(m.Graph.Inputs, input(name, elem))
		if name == "bias" {
			m.Graph.Initializers = append(m.Graph.Initializers, tensor(t, "bias", elem, array.Scalar(float32(10))))
		}
	}
	for _, name := range node.Outputs {
		m.Graph.Outputs = append(m.Graph.Outputs, input(name, elem))
	}
	dir := filepath.Join(t.TempDir(), "mycase")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for k, set := range sets {
		sub := filepath.Join(dir, fmt.Sprintf("test_data_set_%d", k))
		if err := os.MkdirAll(sub, 0o777); err != nil {
			t.Fatal(err)
		}
		for name, v := range set {
			f, err := os.Create(filepath.Join(sub, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(v.Write(f), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := m.WriteFile(t.Context(), filepath.Join(dir, "model.onnx")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func tensor(t *testing.T, name string, elem onnx.DataType, a *array.Array) *onnx.Tensor {
	t.Helper()
	v, err := lower.TensorOf(name, a, elem)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func floats(t *testing.T, name string, values ...float32) *onnx.Tensor {
	t.Helper()
	return tensor(t, name, onnx.Float, array.Of(values, len(values)))
}

// run loads a case and runs it.
func run(t *testing.T, dir string) *backend.Result {
	t.Helper()
	c, err := backend.Load(dir)
	if err != nil {
		return backend.Failed(dir, "none", err)
	}
	return c.Run(t.Context(), "none", session.Options{})
}

// TestSets: all data sets count, and those with other shapes.
func TestSets(t *testing.T) {
	relu := &onnx.Node{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}}
	good := map[string]*onnx.Tensor{"input_0.pb": floats(t, "x", -1, 2), "output_0.pb": floats(t, "y", 0, 2)}
	longer := map[string]*onnx.Tensor{"input_0.pb": floats(t, "x", -1, 2, 3), "output_0.pb": floats(t, "y", 0, 2, 3)}
	bad := map[string]*onnx.Tensor{"input_0.pb": floats(t, "x", -1, 2), "output_0.pb": floats(t, "y", 0, 3)}
	if r := run(t, write(t, relu, onnx.Float, good, longer, good)); !r.OK || r.Sets != 3 || r.Case != "mycase" || r.MaxRelDiff == nil || *r.MaxRelDiff != 0 || r.Applies != 1 {
		t.Errorf("%+v", r)
	}
	r := run(t, write(t, relu, onnx.Float, good, bad))
	if r.OK || !errors.Is(r.Err, backend.ErrDiffers) || r.Error != "test_data_set_1: output y: differs: element 1 is 2, and should be 3" || math.Abs(*r.MaxRelDiff-1.0/3) > 1e-6 {
		t.Errorf("%+v", r)
	}
}

// TestInputs: a tensor is the value of the input of its number among those that have no initializer,
// or of the one that it names. An initializer that is an input may be overridden.
func TestInputs(t *testing.T) {
	sub := &onnx.Node{Op: "Sub", Inputs: []string{"bias", "x"}, Outputs: []string{"y"}}
	for name, set := range map[string]map[string]*onnx.Tensor{
		"by number":  {"input_0.pb": floats(t, "", 3), "output_0.pb": floats(t, "", 7)},
		"overridden": {"input_0.pb": floats(t, "x", 3), "input_1.pb": tensor(t, "bias", onnx.Float, array.Scalar(float32(1))), "output_0.pb": floats(t, "y", -2)},
		"by name":    {"input_0.pb": tensor(t, "bias", onnx.Float, array.Scalar(float32(1))), "input_1.pb": floats(t, "x", 3), "output_0.pb": floats(t, "y", -2)},
		"same names": {"input_0.pb": floats(t, "bias", 3), "input_1.pb": tensor(t, "bias", onnx.Float, array.Scalar(float32(1))), "output_0.pb": floats(t, "y", -2)},
	} {
		if r := run(t, write(t, sub, onnx.Float, set)); !r.OK {
			t.Errorf("%s: %s", name, r.Error)
		}
	}
	// An input without a value is left out, which an operator may allow or not.
	r := run(t, write(t, sub, onnx.Float, map[string]*onnx.Tensor{"output_0.pb": floats(t, "y", -2)}))
	if r.OK || !errors.Is(r.Err, lower.ErrInput) || !strings.Contains(r.Error, "input x: ") || !strings.Contains(r.Error, "node 0, Sub: ") {
		t.Errorf("%+v", r)
	}
	clip := &onnx.Node{Op: "Clip", Inputs: []string{"x", "low", "high"}, Outputs: []string{"y"}}
	high := tensor(t, "high", onnx.Float, array.Scalar(float32(2)))
	if r := run(t, write(t, clip, onnx.Float, map[string]*onnx.Tensor{"input_0.pb": floats(t, "x", -1, 3), "input_2.pb": high, "output_0.pb": floats(t, "y", -1, 2)})); !r.OK {
		t.Errorf("optional: %s", r.Error)
	}
	// NumPy has no bfloat16: its bits are integers in older data sets.
	cast := &onnx.Node{Op: "Identity", Inputs: []string{"x"}, Outputs: []string{"y"}}
	bits := tensor(t, "x", onnx.Uint16, array.Of([]uint16{0x3f80}, 1))
	if r := run(t, write(t, cast, onnx.BFloat16, map[string]*onnx.Tensor{"input_0.pb": bits, "output_0.pb": tensor(t, "y", onnx.BFloat16, array.Of([]float32{1}, 1).Cast(array.BFloat16))})); !r.OK {
		t.Errorf("bfloat16: %s", r.Error)
	}
}

// TestTolerances: elements may be off by 1e-7 and 1e-3 of theirs, a float tensor by 1e-4 of its norm
// besides, and NaN is NaN.
func TestTolerances(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		got, want []float32
		ok, known bool
	}{
		{[]float32{1, 2}, []float32{1.0009, 2}, true, true},
		{[]float32{1, 2}, []float32{1.002, 2}, false, true},
		{[]float32{1e-5, 1}, []float32{2e-5, 1}, true, true},   // 1e-5 of the norm
		{[]float32{1e-3, 1}, []float32{2e-3, 1}, false, true},  // 1e-3 of the norm
		{[]float32{1e-7, 0}, []float32{1.9e-7, 0}, true, true}, // absolute
		// Both: beyond the first by 2.3e-8 each, of a norm of 1e-3.
		{[]float32{1e-3, 1.15e-7, 0}, []float32{1e-3, 2.38e-7, 1.2e-7}, false, true},
		{[]float32{1e-4, 1.15e-7, 0}, []float32{1e-4, 2.38e-7, 1.2e-7}, false, true},
		{[]float32{nan, inf, -inf, 1}, []float32{nan, inf, -inf, 1}, true, true},
		{[]float32{nan, 1}, []float32{1, 1}, false, false},
		{[]float32{inf, 1}, []float32{-inf, 1}, false, false},
		{[]float32{1, 1e30}, []float32{nan, 1e30}, false, false},
		{[]float32{1}, []float32{0}, false, false},
		{[]float32{0}, []float32{0}, true, true},
		{[]float32{1}, []float32{1, 1}, false, false},
	} {
		identity := &onnx.Node{Op: "Identity", Inputs: []string{"x"}, Outputs: []string{"y"}}
		r := run(t, write(t, identity, onnx.Float, map[string]*onnx.Tensor{"input_0.pb": floats(t, "x", c.got...), "output_0.pb": floats(t, "y", c.want...)}))
		if r.OK != c.ok || (r.MaxRelDiff != nil) != c.known {
			t.Errorf("%v and %v: %+v", c.got, c.want, r)
		}
	}
	// Integers are not rounded, and types have to be the same.
	identity := &onnx.Node{Op: "Identity", Inputs: []string{"x"}, Outputs: []string{"y"}}
	in := tensor(t, "x", onnx.Int32, array.Of([]int32{1, 100000}, 2))
	for name, out := range map[string]*onnx.Tensor{"value": tensor(t, "y", onnx.Int32, array.Of([]int32{2, 100000}, 2)), "type": tensor(t, "y", onnx.Int16, array.Of([]int16{1, 1}, 2))} {
		if r := run(t, write(t, identity, onnx.Int32, map[string]*onnx.Tensor{"input_0.pb": in, "output_0.pb": out})); !errors.Is(r.Err, backend.ErrDiffers) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestFaults: what is no case, and what can't be run, is said by name.
func TestFaults(t *testing.T) {
	pool := &onnx.Node{Op: "ImageDecoder", Name: "again", Inputs: []string{"x"}, Outputs: []string{"y"}}
	set := map[string]*onnx.Tensor{"input_0.pb": floats(t, "x", 1), "output_0.pb": floats(t, "y", 1)}
	for want, r := range map[string]*backend.Result{
		"node 0, ImageDecoder again: not supported: operator ImageDecoder": run(t, write(t, pool, onnx.Float, set)),
		"has no folder test_data_set_0":                                    run(t, write(t, pool, onnx.Float)),
		"has no output_0.pb":                                               run(t, write(t, pool, onnx.Float, map[string]*onnx.Tensor{"input_0.pb": set["input_0.pb"]})),
		"has input_7.pb, and the model has 1":                              run(t, write(t, pool, onnx.Float, map[string]*onnx.Tensor{"input_7.pb": floats(t, "z", 1), "output_0.pb": set["output_0.pb"]})),
		"elements of type complex64":                                       run(t, write(t, pool, onnx.Float, map[string]*onnx.Tensor{"input_0.pb": {Name: "x", DataType: onnx.Complex64}, "output_0.pb": set["output_0.pb"]})),
	} {
		if r.OK || r.Case != "mycase" || !strings.Contains(r.Error, want) {
			t.Errorf("%+v\nlacks %q", r, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := backend.Load(write(t, &onnx.Node{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}}, onnx.Float, set))
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Run(ctx, "none", session.Options{}); !errors.Is(r.Err, context.Canceled) {
		t.Errorf("%+v", r)
	}
}

// TestFind: a folder is a case, or its folders are.
func TestFind(t *testing.T) {
	dir := write(t, &onnx.Node{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}}, onnx.Float)
	for _, arg := range []string{dir, filepath.Dir(dir)} {
		if found, err := backend.Find(arg); err != nil || !slices.Equal(found, []string{dir}) {
			t.Errorf("%s: %q, %v", arg, found, err)
		}
	}
	if found, err := backend.Find(t.TempDir()); err != nil || found != nil {
		t.Errorf("%q, %v", found, err)
	}
}
