package standard_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/standard"
)

// writeONNX writes a small ONNX model.
func writeONNX(ctx context.Context, name string) error {
	floats := &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Name:    "relu",
		Nodes:   []*onnx.Node{{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}}},
		Inputs:  []*onnx.ValueInfo{{Name: "x", Type: floats}},
		Outputs: []*onnx.ValueInfo{{Name: "y", Type: floats}},
	}}
	return m.WriteFile(ctx, name)
}

// writeONNXCase writes a case of that model, for x = [1, -2].
func writeONNXCase(ctx context.Context, dir string, y ...float32) error {
	set := filepath.Join(dir, "test_data_set_0")
	err := os.MkdirAll(set, 0o777)
	return errors.Join(err, writeONNX(ctx, filepath.Join(dir, "model.onnx")),
		writePB(filepath.Join(set, "input_0.pb"), "x", array.Of([]float32{1, -2}, 2)), writePB(filepath.Join(set, "output_0.pb"), "y", array.Of(y, len(y))))
}

// writePB writes floats as a tensor.
func writePB(file, name string, a *array.Array) error {
	v, err := lower.TensorOf(name, a, onnx.Float)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	return errors.Join(v.Write(&b), os.WriteFile(file, b.Bytes(), 0o666))
}

// readPB reads a tensor.
func readPB(t *testing.T, file string) *array.Array {
	t.Helper()
	v, err := lower.ReadTensor(file)
	if err != nil {
		t.Fatal(err)
	}
	a, err := lower.ArrayOf(v, "")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// affineONNX writes a model with symbolic sizes: y = x·w + b, where b is an initializer and an input,
// and z, the elements of x at the indexes of at.
func affineONNX(t *testing.T) string {
	t.Helper()
	dims := func(list ...any) *onnx.Shape {
		s := new(onnx.Shape)
		for _, d := range list {
			switch d := d.(type) {
			case int:
				n := int64(d)
				s.Dims = append(s.Dims, &onnx.Dim{Value: &n})
			case string:
				s.Dims = append(s.Dims, &onnx.Dim{Param: d})
			}
		}
		return s
	}
	value := func(name string, elem onnx.DataType, shape *onnx.Shape) *onnx.ValueInfo {
		return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: elem, Shape: shape}}}
	}
	b, err := lower.TensorOf("b", array.Of([]float32{10, 20}, 2), onnx.Float)
	if err != nil {
		t.Fatal(err)
	}
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Nodes: []*onnx.Node{
			{Op: "MatMul", Inputs: []string{"x", "w"}, Outputs: []string{"xw"}},
			{Op: "Add", Name: "bias", Inputs: []string{"xw", "b"}, Outputs: []string{"y"}},
			{Op: "Gather", Inputs: []string{"x", "at"}, Outputs: []string{"z"}},
		},
		Inputs: []*onnx.ValueInfo{
			value("x", onnx.Float, dims("batch", 3)), value("w", onnx.Float, dims(3, 2)), value("b", onnx.Float, dims(2)), value("at", onnx.Int64, dims("batch")),
		},
		Outputs:      []*onnx.ValueInfo{value("y", onnx.Float, nil), value("z", onnx.Float, nil)},
		Initializers: []*onnx.Tensor{b},
	}}
	file := filepath.Join(t.TempDir(), "affine.onnx")
	if err := m.WriteFile(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestInfoONNX describes an ONNX model as text and as JSON, and refuses what is none.
func TestInfoONNX(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "m.onnx")
	if err := writeONNX(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	contains(t, nnopt(t, "info", name).ok(t).stdout, "opset: 17\ninput x: float[]\noutput y: float[]\n", "nodes: 1\n  Relu ")
	contains(t, nnopt(t, "info", "--json", name).ok(t).stdout, `"ops":[{"op":"Relu","nodes":1}]}`)
	nnopt(t, "info", "--srand=1", name).fails(t, statusUsage, "--srand has no meaning for an ONNX model")
	nnopt(t, "info", file(t, "text.onnx", "no model")).fails(t, statusFault, "text.onnx", "not a model")
	nnopt(t, "info", filepath.Join(t.TempDir(), "none.onnx")).fails(t, statusFault, "none.onnx")
}

// TestInfoONNXGaps: what can't be computed is said by node.
func TestInfoONNXGaps(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "m.onnx")
	x := []string{"x"}
	m := &onnx.Model{Graph: &onnx.Graph{Inputs: []*onnx.ValueInfo{{Name: "x"}}, Nodes: []*onnx.Node{
		{Op: "Relu", Inputs: x}, {Op: "ImageDecoder", Name: "again", Inputs: x}, {Op: "Mine", Domain: "com.example", Inputs: x},
	}}}
	if err := m.WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	contains(t, nnopt(t, "info", name).ok(t).stdout, "not computed: node 1, ImageDecoder again: not supported: operator ImageDecoder\nnot computed: node 2, Mine: not supported: operator com.example.Mine is unknown\n")
	contains(t, nnopt(t, "info", "--json", name).ok(t).stdout, `{"where":"node 1, ImageDecoder again","op":"ImageDecoder","reason":`, `{"where":"node 2, Mine","op":"com.example.Mine","unknown":true,"reason":`)
}

// TestProfileONNX: a model is run as often as --run says.
func TestProfileONNX(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "m.onnx")
	if err := writeONNX(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	nnopt(t, "profile", "--run=3", name).fails(t, statusUsage, "give its shape: --shape")
	nnopt(t, "profile", "--input=x=x.pb", name).fails(t, statusUsage, "--input has no meaning without --run")
	contains(t, nnopt(t, "profile", "--run=3", "--shape=x=2", "--threads=2", name).ok(t).stdout, "Time in 3 calls to Function.__call__", "simplify_nodes", "canonicalize", "Execution", " maximum\n")
	contains(t, nnopt(t, "profile", name).ok(t).stdout, "Time in 0 calls to Function.__call__", "simplify_nodes")
}

// TestUnknownOperator: what runs a model names all operators that can't be computed, before it asks for sizes, and looks
// for no sizes that would help.
func TestUnknownOperator(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "m.onnx")
	float := &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float, Shape: &onnx.Shape{Dims: []*onnx.Dim{{Param: "n"}}}}}
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}, {Domain: "com.example", Version: 1}}, Graph: &onnx.Graph{
		Name: "g",
		Nodes: []*onnx.Node{
			{Op: "Frobnicate", Name: "first", Inputs: []string{"x"}, Outputs: []string{"a"}},
			{Op: "Mine", Domain: "com.example", Inputs: []string{"a"}, Outputs: []string{"y"}},
		},
		Inputs:  []*onnx.ValueInfo{{Name: "x", Type: float}},
		Outputs: []*onnx.ValueInfo{{Name: "y", Type: float}},
	}}
	if err := m.WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	unknown := "node 0, Frobnicate first: not supported: operator Frobnicate is unknown\nnode 1, Mine: not supported: operator com.example.Mine is unknown\n"
	for _, args := range [][]string{{"eval", name}, {"bench", "onnx", "--model", name}, {"tune", name}} {
		nnopt(t, args...).fails(t, statusUsage, "nnopt "+args[0]+": "+unknown+"input x is float[n], which has no sizes; give its shape: --shape x=1")
	}
	nnopt(t, "eval", "--shape", "x=2", name).fails(t, statusFault, "nnopt eval: "+unknown)
	r := nnopt(t, "opt", "--output", filepath.Join(t.TempDir(), "o.onnx"), name).ok(t)
	contains(t, r.stdout, "not verified: the model can't be run here: "+unknown)
}

// TestOptWork: the check of opt leaves out what would take long, in many nodes or in the rounds of loops, and says so.
// Loops of constants stay.
func TestOptWork(t *testing.T) {
	t.Parallel()
	name, out := filepath.Join(t.TempDir(), "m.onnx"), filepath.Join(t.TempDir(), "o.onnx")
	info := func(name string) *onnx.ValueInfo {
		return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Int64, Shape: &onnx.Shape{}}}}
	}
	rounds := &onnx.Tensor{Name: "n", DataType: onnx.Int64, Raw: binary.LittleEndian.AppendUint64(nil, 1<<19)}
	loop := func(from, in, out string, nodes ...*onnx.Node) *onnx.Node {
		body := &onnx.Graph{Name: "g", Inputs: []*onnx.ValueInfo{info("i" + out), {Name: "c" + out, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Bool, Shape: &onnx.Shape{}}}}, info(in)},
			Outputs: []*onnx.ValueInfo{{Name: "d" + out}, {Name: "r" + out}}, Nodes: append(nodes, &onnx.Node{Op: "Identity", Inputs: []string{"c" + out}, Outputs: []string{"d" + out}})}
		return &onnx.Node{Op: "Loop", Inputs: []string{"n", "", from}, Outputs: []string{out}, Attributes: []*onnx.Attribute{{Name: "body", Type: onnx.AttributeGraph, Graph: body}}}
	}
	add := func(x, y, z string) *onnx.Node {
		return &onnx.Node{Op: "Add", Inputs: []string{x, y}, Outputs: []string{z}}
	}
	loops := func(from string) []*onnx.Node {
		return []*onnx.Node{loop(from, "e", "y", loop("e", "a", "b", add("a", "e", "rb")), add("e", "b", "ry"))}
	}
	joined := []*onnx.Node{{Op: "Expand", Inputs: []string{"x", "n"}, Outputs: []string{"y0"}}} // of which 200 make 40 GB
	for i := range 200 {
		joined = append(joined, &onnx.Node{Op: "Concat", Inputs: []string{"y0", fmt.Sprint("y", i)}, Outputs: []string{fmt.Sprint("y", i+1)}, Attributes: []*onnx.Attribute{{Name: "axis", Type: onnx.AttributeInt}}})
	}
	joined = append(joined, &onnx.Node{Op: "ReduceMax", Inputs: []string{"y200"}, Outputs: []string{"y"}, Attributes: []*onnx.Attribute{{Name: "keepdims", Type: onnx.AttributeInt}}})
	one := &onnx.Tensor{Name: "one", DataType: onnx.Int64, Raw: binary.LittleEndian.AppendUint64(nil, 1)}
	long := &onnx.Tensor{Name: "n", DataType: onnx.Int64, Dims: []int64{1}, Raw: rounds.Raw}
	for what, g := range map[string]*onnx.Graph{
		"rounds":    {Nodes: loops("x"), Initializers: []*onnx.Tensor{rounds}},
		"constants": {Nodes: append(loops("one"), add("y", "x", "z")), Initializers: []*onnx.Tensor{rounds, one}},
		"nodes":     {Nodes: joined, Initializers: []*onnx.Tensor{long}},
	} {
		if what != "nodes" && !longtest.Enabled() {
			continue
		}
		g.Name, g.Inputs, g.Outputs = "g", []*onnx.ValueInfo{info("x")}, []*onnx.ValueInfo{{Name: "y", Type: info("y").Type}}
		m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: g}
		if err := m.WriteFile(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		r := nnopt(t, "opt", "--output", out, name).ok(t)
		contains(t, what+": "+r.stdout, "not verified: to run both models takes more than about 4s; --verify does it\n")
	}
}

// TestVerifyONNX runs cases of models, also beside those of networks.
func TestVerifyONNX(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(writeONNXCase(t.Context(), filepath.Join(dir, "good"), 1, 0), writeONNXCase(t.Context(), filepath.Join(dir, "wrong"), 1, 2)); err != nil {
		t.Fatal(err)
	}
	const avoided = " ~unsafe_nan ~overflow"
	shown := map[string]string{"none": "none", "fast_run": "+fast_run" + avoided, "debug": "debug" + avoided, "+fast_run +saturate": "+fast_run +saturate" + avoided}
	for _, query := range []string{"fast_run", "none", "debug", "+fast_run +saturate"}[:longtest.Of(1, 4)] {
		r := nnopt(t, "verify", "--json", "--query", query, filepath.Join(dir, "good")).ok(t)
		contains(t, r.stdout, fmt.Sprintf(`{"case":"good","query":%q,"ok":true,"max_rel_diff":0,`, shown[query]))
		contains(t, r.stderr, "1 of 1 cases of ONNX models agree under")
	}
	r := nnopt(t, "verify", dir)
	if r.status != statusFault {
		t.Errorf("status %d", r.status)
	}
	contains(t, r.stdout, "\nok    good ", "\nFAIL  wrong ", "\n      test_data_set_0: output y: differs: element 1 is 0, and should be 2\n")
	contains(t, r.stderr, "1 of 2 cases")

	r = nnopt(t, "verify", "--json", recipes+"/tdnnf_infer", filepath.Join(dir, "good")).ok(t)
	contains(t, r.stdout, `{"case":"tdnnf_infer",`, `{"case":"good",`)
	contains(t, r.stderr, "1 of 1 cases agree with Kaldi", "1 of 1 cases of ONNX models agree")
	nnopt(t, "verify", t.TempDir()).fails(t, statusFault, "case.json")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough is enough"))
	var stdout, stderr bytes.Buffer
	if status := (standard.Program{}).Run(ctx, []string{"verify", dir}, nil, &stdout, &stderr); status != statusFault || !strings.Contains(stderr.String(), "enough is enough") {
		t.Errorf("status %d, stderr %s", status, stderr.String())
	}
}

// TestNaN: 0·(1/x) is NaN for x = 0, unless the query says that it need not be.
func TestNaN(t *testing.T) {
	t.Parallel()
	zero, err := lower.TensorOf("zero", array.Scalar(float32(0)), onnx.Float)
	if err != nil {
		t.Fatal(err)
	}
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Nodes:        []*onnx.Node{{Op: "Reciprocal", Inputs: []string{"x"}, Outputs: []string{"r"}}, {Op: "Mul", Inputs: []string{"r", "zero"}, Outputs: []string{"y"}}},
		Inputs:       []*onnx.ValueInfo{{Name: "x", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}}},
		Outputs:      []*onnx.ValueInfo{{Name: "y"}},
		Initializers: []*onnx.Tensor{zero},
	}}
	name := filepath.Join(t.TempDir(), "m.onnx")
	if err := m.WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"none": "NaN", "fast_run": "NaN", "debug": "NaN", "+fast_run +saturate": "NaN", "+fast_run +unsafe_nan": "0",
		"+fast_run +local_mul_canonizer +local_zero_div": "0", "+fast_run +unsafe_nan -unsafe_nan": "NaN", "[canonicalize(local_mul_canonizer, local_zero_div)]": "0"} {
		selection := "--query=" + query
		if list, ok := strings.CutPrefix(query, "["); ok {
			selection = "--pipeline=" + strings.TrimSuffix(list, "]")
		}
		if out := nnopt(t, "eval", selection, "--set=x=0", name).ok(t).stdout; out != "y: float "+want+"\n" {
			t.Errorf("%s: %s", query, out)
		}
	}
}

// TestOneQuery: a query for a model means the same to all verbs. What it names is never left out, and what
// models avoid besides is said.
func TestOneQuery(t *testing.T) {
	longtest.Only(t)
	t.Chdir(t.TempDir())
	graph := file(t, "zero.graph", `onnx-model: none

graph {
    input %x : float[2]
    %z = constant {0} : float[]
    %y = Add(%x, %z) : float[2]
    return %y
}
`)
	nnopt(t, "opt", "--query=none", "--output=zero.onnx", graph).ok(t)
	const avoided = " ~unsafe_nan ~overflow"
	for query, want := range map[string]struct {
		shown string
		zero  string // -0 + 0
	}{
		"+fast_run":                      {"+fast_run" + avoided, "0"},
		"+eliminate_zero_term":           {"+eliminate_zero_term" + avoided, "-0"},
		"+fast_run +eliminate_zero_term": {"+fast_run +eliminate_zero_term" + avoided, "-0"},
		"+fast_run +unsafe_nan":          {"+fast_run +unsafe_nan" + avoided, "-0"},
		"none":                           {"none", "0"},
	} {
		left := want.zero == "0" // the Add
		q := "--query=" + query
		told := func(r result) { // that it is another query
			t.Helper()
			if strings.Contains(r.stderr, "the query is "+want.shown+"\n") != (query != "none") {
				t.Errorf("%s: %s", query, r.stderr)
			}
		}
		r := nnopt(t, "opt", q, "--output=out.onnx", "zero.onnx").ok(t)
		contains(t, r.stdout, "\npasses: "+want.shown+"\n")
		if strings.Contains(r.stdout, "nodes, without constants: 1,") != left {
			t.Errorf("%s: %s", query, r.stdout)
		}
		r = nnopt(t, "eval", q, "--set=x=-0,-0", "zero.onnx").ok(t)
		told(r)
		if r.stdout != "y: float[2] "+want.zero+" "+want.zero+"\n" {
			t.Errorf("%s: %s", query, r.stdout)
		}
		r = nnopt(t, "graph", q, "zero.onnx").ok(t)
		told(r)
		for _, out := range []string{r.stdout, nnopt(t, "opt", q, graph).ok(t).stdout, nnopt(t, "opt", q, "zero.onnx").ok(t).stdout} {
			if strings.Contains(out, "Add(") != left {
				t.Errorf("%s: %s", query, out)
			}
		}
		if out := nnopt(t, "profile", q, "zero.onnx").ok(t).stdout; strings.Contains(out, "eliminate_zero_term") == left {
			t.Errorf("%s: %s", query, out)
		}
		if out := nnopt(t, "passes", q, "--dialect=onnx", "--explain=eliminate_zero_term").ok(t).stdout; strings.Contains(out, "not selected") != left {
			t.Errorf("%s: %s", query, out)
		}
	}
	contains(t, nnopt(t, "passes", "--query=+fast_run").ok(t).stderr, "for graphs of onnx the query is +fast_run"+avoided+", see --dialect=onnx")
	if r := nnopt(t, "passes", "--query=+eliminate_zero_term").ok(t); r.stderr != "" {
		t.Error(r.stderr)
	}
	nnopt(t, "passes", "--dialect=onyx").fails(t, statusUsage, "only onnx, nnet3, tensor")
	// A file says all of its query, and one that is typed in its place is as any other.
	nnopt(t, "opt", "--query=debug", "--rule=(Add x y) => x", file(t, "one.graph", `onnx-model: none

graph {
    input %x : float[2]
    input %z : float[2]
    %y = Add(%x, %z) : float[2]
    return %y
}
`)).fails(t, statusFault, "a reproducer is in nnopt-failure-1.graph")
	data, err := os.ReadFile("nnopt-failure-1.graph")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(data), "\nquery: debug ~unsafe_nan ~overflow +rule1\n")
	nnopt(t, "reproduce", "nnopt-failure-1.graph").fails(t, statusFault, "it still fails")
	contains(t, nnopt(t, "reproduce", "--query=+fast_run", "--trace=eliminate_zero_term", graph).ok(t).stderr, "eliminate_zero_term: not selected: left out by ~unsafe_nan")
}

// TestSignedZero: -2·0 + 0 is 0 and not -0, of which the reciprocal is -Inf.
func TestSignedZero(t *testing.T) {
	t.Parallel()
	zero, err := lower.TensorOf("zero", array.Scalar(float32(0)), onnx.Float)
	if err != nil {
		t.Fatal(err)
	}
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Nodes: []*onnx.Node{
			{Op: "Mul", Inputs: []string{"x", "zero"}, Outputs: []string{"m"}}, {Op: "Add", Inputs: []string{"m", "zero"}, Outputs: []string{"s"}},
			{Op: "Reciprocal", Inputs: []string{"s"}, Outputs: []string{"y"}},
			{Op: "Sub", Inputs: []string{"x", "x2"}, Outputs: []string{"d"}}, {Op: "Neg", Inputs: []string{"d"}, Outputs: []string{"n"}},
			{Op: "Reciprocal", Inputs: []string{"n"}, Outputs: []string{"z"}},
		},
		Inputs: []*onnx.ValueInfo{
			{Name: "x", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}}, {Name: "x2", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}},
		},
		Outputs:      []*onnx.ValueInfo{{Name: "y"}, {Name: "z"}},
		Initializers: []*onnx.Tensor{zero},
	}}
	name := filepath.Join(t.TempDir(), "m.onnx")
	if err := m.WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"none", "fast_run", "debug", "+fast_run +saturate"} {
		if out := nnopt(t, "eval", "--query", query, "--set=x=-2", "--set=x2=-2", name).ok(t).stdout; out != "y: float +Inf\nz: float -Inf\n" {
			t.Errorf("%s: %s", query, out)
		}
	}
}

// TestEval runs a model on inputs of all kinds.
func TestEval(t *testing.T) {
	t.Parallel()
	model, dir := affineONNX(t), t.TempDir()
	x, w := filepath.Join(dir, "x.pb"), filepath.Join(dir, "w.npy")
	if err := writePB(x, "", array.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)); err != nil {
		t.Fatal(err)
	}
	header := fmt.Sprintf("%-117s\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }")
	data := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	data = append(data, header...)
	for _, v := range []float32{1, 0, 0, 1, 0, 0} {
		data, _ = binary.Append(data, binary.LittleEndian, v)
	}
	if err := os.WriteFile(w, data, 0o666); err != nil {
		t.Fatal(err)
	}
	given := []string{"eval", model, "--input", "x=" + x, "--input", "w=" + w, "--set", "at=1,0"}
	r := nnopt(t, given...).ok(t)
	if want := "y: float[2, 2] 11 22 14 25\nz: float[2, 3] 4 5 6 1 2 3\n"; r.stdout != want {
		t.Errorf("%q, want %q", r.stdout, want)
	}
	// An initializer is overridden, by a number for all elements or one for each.
	contains(t, nnopt(t, append(given, "--set", "b=0")...).ok(t).stdout, "y: float[2, 2] 1 2 4 5\n")
	contains(t, nnopt(t, append(given, "--set", "b=0,1")...).ok(t).stdout, "y: float[2, 2] 1 3 4 6\n")

	out := filepath.Join(dir, "new", "folder")
	if r := nnopt(t, append(given, "--output-folder", out)...).ok(t); r.stdout != "" {
		t.Errorf("%q", r.stdout)
	}
	if y, z := readPB(t, filepath.Join(out, "output_0.pb")), readPB(t, filepath.Join(out, "output_1.pb")); fmt.Sprint(y.Shape(), y.Floats(), z.Shape()) != "[2 2] [11 22 14 25] [2 3]" {
		t.Errorf("%v %v, %v", y.Shape(), y.Floats(), z.Shape())
	}

	// Inputs that are not given are random, the same for the same seed, and sizes of one name are the
	// same.
	random := nnopt(t, "eval", model, "--shape=x=4x3").ok(t).stdout
	contains(t, random, "y: float[4, 2] ", "z: float[4, 3] ")
	if again := nnopt(t, "eval", model, "--shape=x=4x3").ok(t).stdout; again != random {
		t.Errorf("%s, then %s", random, again)
	}
	if other := nnopt(t, "eval", model, "--shape=x=4x3", "--srand=1").ok(t).stdout; other == random {
		t.Error("another seed changes nothing")
	}
}

// TestEvalFaults: what is wrong with inputs is said by their names, with what to do.
func TestEvalFaults(t *testing.T) {
	t.Parallel()
	model := affineONNX(t)
	eval := func(more ...string) result { return nnopt(t, append([]string{"eval", model}, more...)...) }
	eval().fails(t, statusUsage, "input x is float[batch, 3]", "--shape x=1x3", "--input x=FILE", "input at is ")
	eval("--shape=x=2x3", "--set=y=1").fails(t, statusUsage, "no input y; it has x, w, b, at")
	eval("--shape=x=2x").fails(t, statusUsage, "1x3x8")
	eval("--shape=x").fails(t, statusUsage, "want NAME=1x3x8")
	eval("--set=at=one").fails(t, statusUsage, `"one" is no number`)
	eval("--set=b=1", "--set=b=2").fails(t, statusUsage, "b is given twice")
	eval("--shape=x=2x3", "--set=b=1,2,3").fails(t, statusUsage, "--set b: 3 numbers for shape [2]")
	eval("--shape=x=2x3", "--set=at=7,0").fails(t, statusFault, "7")
	eval("--shape=x=2x3", "--shape=w=2x2").fails(t, statusFault, "w is declared as float[3, 2], and has the shape [2 2]")
	eval("--input=x="+file(t, "x.pb", "no tensor")).fails(t, statusFault, "x.pb")
	eval("--input=x="+file(t, "x.npy", "no array")).fails(t, statusFault, "x.npy", "NumPy")
	eval("--input=x=nowhere.pb").fails(t, statusFault, "nowhere.pb")
	eval("--query=+fast_rum", "--shape=x=2x3").fails(t, statusUsage, "fast_run")
	nnopt(t, "eval", file(t, "x.onnx", "no model")).fails(t, statusFault, "x.onnx")
}

// TestBenchONNX measures a model.
func TestBenchONNX(t *testing.T) {
	t.Parallel()
	model := affineONNX(t)
	bench := func(more ...string) result { return nnopt(t, append([]string{"bench"}, more...)...) }
	if longtest.Enabled() {
		var report struct {
			RunSeconds float64 `json:"run_seconds"`
			Applies    int
			Threads    int
			Runs       int
		}
		out := nnopt(t, "bench", "onnx", "--json", "--threads=2", "--model", model, "--shape=x=2x3").ok(t).stdout
		if err := json.Unmarshal([]byte(out), &report); err != nil || report.RunSeconds <= 0 || report.Applies == 0 || report.Threads != 2 || report.Runs < 15 {
			t.Errorf("%s: %v", out, err)
		}
		contains(t, bench("onnx", "--profile", "--model", model, "--shape=x=2x3").ok(t).stdout, "run, quickest", "Execution", "<#apply> <name>")
	}
	bench("onnx").fails(t, statusUsage, "--model expected")
	bench("onnx", "--model", model, "--unit=x").fails(t, statusUsage, "--unit has no meaning for an ONNX model")
	bench("onnx", "--model", model, "--threads=-1").fails(t, statusUsage, "threads")
	bench("nnet3", "--model", model, "--set=x=1").fails(t, statusUsage, "--set has no meaning for a network")
}
