package onnxpass_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/interp"
)

// TestContributed evaluates the nodes of testdata/contrib: a graph there is followed by its results. They are the same of what
// decompose makes of the nodes, which has none of them, and the types that are inferred are those of the results. Each
// operator that is made of others has a node. Inputs are filled by fill.
func TestContributed(t *testing.T) {
	const name = "testdata/contrib/nodes.txt"
	operators := ir.Standard()
	seen := make(map[string]bool)
	lines := readLines(t, name)
	for i, line := range lines {
		text, want, _ := strings.Cut(line, " | ")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		g := parseGraph(t, text)
		for a := range g.Applies() {
			seen[a.Op().(*ir.Op).Name()] = true
		}
		results := interpreted(t, g)
		for k, a := range results {
			if ty := ir.TypeOf(g.Outputs()[k]); !ty.Accepts(ir.Constant(valueOf(t, a, ty), "").Type()) {
				t.Errorf("line %d: result %d is a %v, inferred %v", i+1, k, a.Shape(), ty)
			}
		}
		if got := shortly(results); *update {
			lines[i] = text + " | " + got
		} else if got != want {
			t.Errorf("line %d: %s, want %s", i+1, got, want)
		}
		d := parseGraph(t, text)
		if err := (&rewrite.Equilibrium{Name: "test", Rules: named(t, "decompose")}).Apply(context.Background(), d, nil); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		for a := range d.Applies() {
			if o := a.Op().(*ir.Op).Operator(); o == nil || o.Body != nil {
				t.Errorf("line %d: %v is left", i+1, a.Op())
			}
		}
		for k, a := range interpreted(t, d) {
			if !equal(a, results[k]) {
				t.Errorf("line %d: result %d is %v of %v, and its parts %v", i+1, k, results[k].Floats(), text, a.Floats())
			}
		}
	}
	for _, o := range operators.All() {
		if (o.Body != nil || o.Domain == "com.microsoft") && !seen[(&ir.Op{Domain: o.Domain, Type: o.Type}).Name()] {
			t.Errorf("%s has no node", o.Type)
		}
	}
	if *update {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// interpreted returns the outputs of a graph whose inputs are filled.
func interpreted(t testing.TB, g *fgraph.FunctionGraph) []*array.Array {
	t.Helper()
	args := make(map[string]*array.Array)
	for _, v := range g.Inputs() {
		args[v.Name()] = fill(t, ir.TypeOf(v))
	}
	names := make([]string, len(g.Outputs()))
	l, err := lower.Graph(context.Background(), g, names, lower.Options{}, args)
	if err != nil {
		t.Fatalf("%v: %v", g, err)
	}
	in := interp.New(context.Background())
	for _, v := range l.Inputs {
		in.Set(v, args[v.Name()])
	}
	results, err := in.Values(l.Values)
	if err != nil {
		t.Fatalf("%v: %v", g, err)
	}
	return results
}

// fill returns a tensor of small numbers of both signs, or of such as are no larger than 4 for integers.
func fill(t testing.TB, typ ir.Type) *array.Array {
	t.Helper()
	dims, ok := typ.Numbers()
	if !ok {
		t.Fatalf("an input of type %v", typ)
	}
	shape := make([]int, len(dims))
	for i, d := range dims {
		shape[i] = int(d)
	}
	a, err := lower.NewArray(typ.Elem(), shape...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Len() {
		switch k := (i*7 + i*i/5 + 2) % 11; {
		case a.DType().IsFloat():
			a.SetFloat(i, float64(k-4)/4)
		case a.DType().Size() == 1 && a.DType() != array.Bool:
			a.SetFloat(i, float64(k*9))
		default:
			a.SetFloat(i, float64(k%2))
		}
	}
	return a
}

func valueOf(t testing.TB, a *array.Array, typ ir.Type) *ir.Value {
	t.Helper()
	x, err := lower.TensorOf("", a, typ.Elem())
	if err != nil {
		t.Fatal(err)
	}
	return ir.NewValue(x, "")
}

// shown bounds the numbers of a result that are listed, which are as far apart as they can be.
const shown = 8

func shortly(list []*array.Array) string {
	parts := make([]string, len(list))
	for i, a := range list {
		step := max(1, a.Len()/shown)
		for k := 0; k < a.Len(); k += step {
			parts[i] += fmt.Sprintf(" %.4g", a.Float(k)+0)
		}
		parts[i] = fmt.Sprintf("%v%v:%s", a.DType(), a.Shape(), parts[i])
	}
	return strings.Join(parts, "; ")
}

// TestDecomposeOld: parts of operators are written for the version of the model, also where a Softmax over several
// dimensions is why it can't be raised.
func TestDecomposeOld(t *testing.T) {
	const blocked = "com.microsoft.nchwc"
	for _, c := range []struct {
		opset, want int64
		op          string
		attributes  []*onnx.Attribute
		text        string
	}{
		{9, 9, "MaxPool", []*onnx.Attribute{ir.Ints("kernel_shape", 2, 2), ir.Int("ceil_mode", 0), ir.Ints("dilations", 1, 1)}, "[kernel_shape]"},
		{9, 9, "AveragePool", []*onnx.Attribute{ir.Ints("kernel_shape", 2, 2), ir.Int("count_include_pad", 1), ir.Ints("dilations", 1, 1)}, "[count_include_pad kernel_shape]"},
		{11, 11, "MaxPool", []*onnx.Attribute{ir.Ints("kernel_shape", 2, 2), ir.Int("ceil_mode", 1), ir.Ints("dilations", 1, 1)}, "[ceil_mode dilations kernel_shape]"},
		{11, 11, "Upsample", []*onnx.Attribute{ir.Ints("scales", 1, 1, 2, 2)}, "[coordinate_transformation_mode mode nearest_mode]"},
	} {
		float := func(name string) *onnx.ValueInfo {
			return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float, Shape: &onnx.Shape{Dims: []*onnx.Dim{{}, {}, {}, {}}}}}}
		}
		m := &onnx.Model{IRVersion: 7, Opsets: []*onnx.Opset{{Version: c.opset}, {Domain: blocked, Version: 1}}, Graph: &onnx.Graph{
			Inputs: []*onnx.ValueInfo{float("x")}, Outputs: []*onnx.ValueInfo{float("z")}, Nodes: []*onnx.Node{
				{Domain: blocked, Op: c.op, Inputs: []string{"x"}, Outputs: []string{"y"}, Attributes: c.attributes},
				{Op: "Softmax", Inputs: []string{"y"}, Outputs: []string{"z"}},
			}}}
		g, err := ir.Import(m, ir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := (&rewrite.Equilibrium{Name: "test", Rules: named(t, "decompose")}).Apply(context.Background(), g, nil); err != nil {
			t.Fatal(err)
		}
		out, err := ir.Export(g)
		if err != nil {
			t.Fatal(err)
		}
		n := out.Graph.Nodes[0]
		var names []string
		for _, a := range n.Attributes {
			names = append(names, a.Name)
		}
		if got := fmt.Sprint(names); n.Domain != "" || out.Opsets[0].Version != c.want || got != c.text || slices.Contains(n.Inputs, "") {
			t.Errorf("%s of version %d: %s of version %d with %s, inputs %q; want %s of version %d", c.op, c.opset, n.Op, out.Opsets[0].Version, got, n.Inputs, c.text, c.want)
		}
	}
}
