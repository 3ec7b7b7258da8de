package onnx_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
)

// sample returns a model that uses every message.
func sample() *onnx.Model {
	tensor := func(t onnx.Tensor) *onnx.Tensor { return &t }
	three := int64(3)
	shape := &onnx.Shape{Dims: []*onnx.Dim{{Param: "batch"}, {Value: &three, Denotation: "DATA_CHANNEL"}, {}, {Value: new(int64)}}}
	float := &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float, Shape: shape}}
	entry := []*onnx.Entry{{Key: "key", Value: "value"}}
	body := &onnx.Graph{
		Name:    "body",
		Nodes:   []*onnx.Node{{Op: "Identity", Inputs: []string{"x"}, Outputs: []string{"b"}}},
		Outputs: []*onnx.ValueInfo{{Name: "b", Type: &onnx.Type{Optional: &onnx.ElementType{Elem: float}}}},
	}
	sparse := &onnx.SparseTensor{Values: tensor(onnx.Tensor{Dims: []int64{1}, DataType: onnx.Float, Floats: []float32{2}}), Indices: tensor(onnx.Tensor{Dims: []int64{1}, DataType: onnx.Int64, Int64s: []int64{-1}}), Dims: []int64{4}}
	return &onnx.Model{
		IRVersion: 10, ProducerName: "nnopt", ProducerVersion: "1", Domain: "org.example", ModelVersion: -1, Doc: "a model",
		Opsets: []*onnx.Opset{{Version: 21}, {Domain: "ai.onnx.ml", Version: 3}}, Metadata: entry,
		Graph: &onnx.Graph{
			Name: "g", Doc: "doc", Metadata: entry,
			Inputs:  []*onnx.ValueInfo{{Name: "x", Type: float, Doc: "input", Metadata: entry}},
			Outputs: []*onnx.ValueInfo{{Name: "y", Type: &onnx.Type{Sequence: &onnx.ElementType{Elem: float}, Denotation: "d"}}},
			Values: []*onnx.ValueInfo{
				{Name: "m", Type: &onnx.Type{Map: &onnx.MapType{Key: onnx.String, Value: float}}},
				{Name: "o", Type: &onnx.Type{Opaque: &onnx.OpaqueType{Domain: "d", Name: "n"}}},
				{Name: "s", Type: &onnx.Type{SparseTensor: &onnx.TensorType{Elem: onnx.Double}}},
			},
			Quantization:       []*onnx.Annotation{{Tensor: "x", Params: entry}},
			SparseInitializers: []*onnx.SparseTensor{sparse},
			Initializers: []*onnx.Tensor{
				{Name: "raw", Dims: []int64{2}, DataType: onnx.Float, Raw: []byte{0, 0, 128, 63, 0, 0, 0, 64}, Doc: "doc", Metadata: entry},
				{Name: "ints", Dims: []int64{2}, DataType: onnx.Int8, Int32s: []int32{-1, 127}, Segment: &onnx.Segment{Begin: 1, End: 2}},
				{Name: "words", Dims: []int64{2}, DataType: onnx.String, Strings: [][]byte{[]byte("a"), {}}},
				{Name: "doubles", Dims: []int64{1}, DataType: onnx.Double, Doubles: []float64{math.Copysign(0, -1)}},
				{Name: "uints", Dims: []int64{1}, DataType: onnx.Uint64, Uint64s: []uint64{math.MaxUint64}},
				{Name: "elsewhere", Dims: []int64{1 << 40}, DataType: onnx.Float, External: []*onnx.Entry{{Key: "location", Value: "weights"}}, Location: onnx.LocationExternal},
			},
			Nodes: []*onnx.Node{{
				Inputs: []string{"x", "", "raw"}, Outputs: []string{"y"}, Name: "n", Op: "Foo", Domain: "org.example", Overload: "v", Doc: "doc", Metadata: entry,
				Attributes: []*onnx.Attribute{
					{Name: "f", Type: onnx.AttributeFloat}, {Name: "i", Type: onnx.AttributeInt}, {Name: "s", Type: onnx.AttributeString, String: []byte{}},
					{Name: "fs", Type: onnx.AttributeFloats, Floats: []float32{1, float32(math.Inf(1))}}, {Name: "is", Type: onnx.AttributeInts, Ints: []int64{-1, 0}},
					{Name: "ss", Type: onnx.AttributeStrings, Strings: [][]byte{[]byte("\xff")}}, {Name: "t", Type: onnx.AttributeTensor, Tensor: tensor(onnx.Tensor{DataType: onnx.Bool, Int32s: []int32{1}})},
					{Name: "ts", Type: onnx.AttributeTensors, Tensors: []*onnx.Tensor{{}, {}}}, {Name: "g", Type: onnx.AttributeGraph, Graph: body},
					{Name: "gs", Type: onnx.AttributeGraphs, Graphs: []*onnx.Graph{body, body}}, {Name: "tp", Type: onnx.AttributeTypeProto, TypeProto: float},
					{Name: "tps", Type: onnx.AttributeTypeProtos, TypeProtos: []*onnx.Type{float}}, {Name: "sp", Type: onnx.AttributeSparseTensor, SparseTensor: sparse},
					{Name: "sps", Type: onnx.AttributeSparseTensors, SparseTensors: []*onnx.SparseTensor{sparse}}, {Name: "r", Type: onnx.AttributeInt, Ref: "k", Doc: "doc"},
				},
			}},
		},
		Functions: []*onnx.Function{{
			Name: "f", Inputs: []string{"a"}, Outputs: []string{"b"}, Attributes: []string{"k"}, Defaults: []*onnx.Attribute{{Name: "l", Type: onnx.AttributeInt, Int: 7}},
			Nodes: []*onnx.Node{{Op: "Neg", Inputs: []string{"a"}, Outputs: []string{"b"}}}, Doc: "doc", Opsets: []*onnx.Opset{{Version: 21}}, Domain: "org.example",
			Values: []*onnx.ValueInfo{{Name: "b"}}, Overload: "v", Metadata: entry,
		}},
	}
}

func written(t testing.TB, m *onnx.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fields compares what users see of messages.
var fields = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".message" }, cmp.Ignore())

// TestRoundTrip: what is written is read as the same model, and written again as the same bytes.
func TestRoundTrip(t *testing.T) {
	data := written(t, sample())
	m, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), m, fields); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(written(t, m), data) {
		t.Error("other bytes")
	}
}

// field is an encoded field.
func field(num protowire.Number, value any) []byte {
	switch v := value.(type) {
	case int:
		return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), uint64(v))
	case string:
		return protowire.AppendString(protowire.AppendTag(nil, num, protowire.BytesType), v)
	case float64:
		return protowire.AppendFixed64(protowire.AppendTag(nil, num, protowire.Fixed64Type), math.Float64bits(v))
	}
	panic("field")
}

func join(parts ...[]byte) string { return string(bytes.Join(parts, nil)) }

// TestOddEncodings: encodings that are not ours stay as they are, where nothing has changed.
func TestOddEncodings(t *testing.T) {
	node := join(field(4, "Relu"), field(6, ""), field(1, "x"), field(2, "y")) // order, and an empty text that is there
	tensor := join(field(9, "12345678"), field(8, "w"), field(2, 11), field(1, "\x01\x01"), field(77, "unknown"), field(78, 2.5))
	attribute := join(field(20, 7), field(1, "axes"), field(8, "\x01\x02"), []byte{8 << 3, 0x83, 0}) // packed, not packed, and longer than it has to be
	other := join(field(5, attribute), field(4, "Squeeze"), field(1, "y"), field(2, "z"))
	graph := join(field(5, tensor), field(2, "g"), field(1, node), field(1, other))
	data := []byte(join(field(7, graph), field(1, 8), field(8, join(field(2, 13), field(1, ""))), field(999, 1)))
	m, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written(t, m), data) {
		t.Error("other bytes, although nothing has changed")
	}
	if w := m.Graph.Initializers[0]; string(w.Raw) != "12345678" || len(w.Dims) != 2 || &w.Raw[0] != &data[bytes.Index(data, []byte("12345678"))] {
		t.Errorf("%+v", w)
	}
	if a := m.Graph.Nodes[1].Attributes[0]; !cmp.Equal(a.Ints, []int64{1, 2, 3}) {
		t.Error(a.Ints)
	}
	// One node changes. The other, the tensor and what is unknown of the model stay to the byte.
	m.Graph.Nodes[0].Op = "Tanh"
	out := written(t, m)
	for _, kept := range []string{tensor, other, join(field(999, 1))} {
		if !bytes.Contains(out, []byte(kept)) {
			t.Errorf("%q is lost in %q", kept, out)
		}
	}
	again, err := onnx.Parse(out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again, fields); diff != "" {
		t.Error(diff)
	}
	m.Graph.Nodes[0].Op = "Relu"
	if !bytes.Equal(written(t, m), data) {
		t.Error("other bytes after a change was taken back")
	}
	// A message that is removed, moved or replaced is a change of what it was in.
	m.Graph.Nodes[0], m.Graph.Nodes[1] = m.Graph.Nodes[1], m.Graph.Nodes[0]
	if out := written(t, m); bytes.Index(out, []byte("Squeeze")) > bytes.Index(out, []byte("Relu")) || !bytes.Contains(out, []byte(node)) {
		t.Errorf("%q", out)
	}
	m.Graph.Nodes = nil
	if out := written(t, m); bytes.Contains(out, []byte("Relu")) || !bytes.Contains(out, []byte(tensor)) {
		t.Errorf("%q", out)
	}
}

// TestMerged: a field with one message that is there twice is read as one message.
func TestMerged(t *testing.T) {
	data := []byte(join(field(7, join(field(2, "g"), field(10, "first"))), field(7, join(field(10, "second")))))
	m, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if m.Graph.Name != "g" || m.Graph.Doc != "second" || !bytes.Equal(written(t, m), data) {
		t.Errorf("%+v", m.Graph)
	}
	m.Graph.Doc = "third"
	if again, err := onnx.Parse(written(t, m)); err != nil || again.Graph.Name != "g" || again.Graph.Doc != "third" {
		t.Error(again, err)
	}
}

// TestSharedTypes: values in the graphs of nodes have one message for equal types, unless it is merged of several.
func TestSharedTypes(t *testing.T) {
	float, sizes := join(field(1, join(field(1, 1)))), join(field(1, join(field(2, join(field(1, join(field(1, 3))))))))
	value := func(types ...string) []byte {
		v := field(1, "v")
		for _, typ := range types {
			v = append(v, field(2, typ)...)
		}
		return field(12, string(v))
	}
	graph := join(field(2, "g"), value(float), value(float), value(float, sizes), value(float, sizes, float), value(sizes), value(float))
	data := []byte(join(field(7, join(field(1, join(field(4, "Do"), field(5, join(field(1, "body"), field(6, graph))))), value(float), value(float)))))
	m, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	list := m.Graph.Nodes[0].Attributes[0].Graph.Outputs
	for i, want := range []string{"float[]", "float[]", "float[3]", "float[3]", "undefined[3]", "float[]"} {
		if got := list[i].Type.String(); got != want {
			t.Errorf("type %d is %s, want %s", i, got, want)
		}
	}
	if list[0].Type != list[1].Type || list[0].Type != list[5].Type || m.Graph.Outputs[0].Type == m.Graph.Outputs[1].Type {
		t.Error("types are shared otherwise")
	}
	if !bytes.Equal(written(t, m), data) {
		t.Error("other bytes")
	}
	list[1].Type = list[4].Type
	if again, err := onnx.Parse(written(t, m)); err != nil || again.Graph.Nodes[0].Attributes[0].Graph.Outputs[1].Type.String() != "undefined[3]" {
		t.Error(again, err)
	}
}

// TestRefused: what is no model is an error that says where.
func TestRefused(t *testing.T) {
	deep := ""
	for range 200 {
		deep = join(field(1, join(field(4, "If"), field(3, "n"), field(5, join(field(1, "then"), field(6, deep))))))
	}
	for name, c := range map[string]struct{ data, want string }{
		"nothing":      {"", "it has no graph"},
		"text":         {"ir_version: 8\n", "model: "},
		"cut short":    {join(field(7, "graph"))[:4], "model: field 7"},
		"a wrong type": {join(field(7, join(field(1, join(field(3, "first"), field(4, "Add"), field(1, 5)))))), "node first (Add): field 1 is encoded as type 0"},
		"a tensor":     {join(field(7, join(field(5, join(field(8, "w"), field(4, "123")))))), "tensor w: field 4"},
		"too deep":     {join(field(7, deep)), "nested more than 100 deep"},
	} {
		_, err := onnx.Parse([]byte(c.data))
		if !errors.Is(err, onnx.ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && len(err.Error()) > 4000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
	g := &onnx.Graph{}
	g.Nodes = []*onnx.Node{{Attributes: []*onnx.Attribute{{Graph: g}}}}
	if err := (&onnx.Model{Graph: g}).Write(new(bytes.Buffer)); err == nil {
		t.Error("a graph within itself is written")
	}
}

// TestMemory: short encodings of many messages are refused before they take memory.
func TestMemory(t *testing.T) {
	many := longtest.Of(1, 80) << 18
	for name, data := range map[string][]byte{
		"empty nodes":      []byte(join(field(7, strings.Repeat("\x0a\x00", many)))),
		"empty names":      []byte(join(field(7, join(field(1, strings.Repeat("\x0a\x00", many)))))),
		"nested empty":     []byte(join(field(7, join(field(1, strings.Repeat("\x2a\x00", many)))))),
		"unpacked numbers": []byte(join(field(7, join(field(5, strings.Repeat("\x08\x00", many)))))),
		"unknown fields":   bytes.Repeat([]byte("\xf8\x07\x00"), many),
	} {
		used := alloctest.Bytes(func() { onnx.Parse(data) })
		if used > min(1<<30, uint64(many)<<10) {
			t.Errorf("%s: %d MiB for %d", name, used>>20, len(data)>>20)
		}
	}
}

// TestManySmallMessages: a file of many small nodes is read, though they take much more memory than their encoding.
func TestManySmallMessages(t *testing.T) {
	m := plain()
	inner := func(op string) *onnx.Attribute {
		return branch(op, &onnx.Graph{Name: "b", Nodes: []*onnx.Node{node(op, "x", "z")}, Outputs: []*onnx.ValueInfo{value("z")}})
	}
	m.Graph.Nodes = slices.Repeat([]*onnx.Node{node("If", "c", "y", inner("Neg"), inner("Abs"))}, 30_000)
	if _, err := onnx.Parse(written(t, m)); err != nil {
		t.Error(err)
	}
}

// onnxData is where Debian's libonnx-testdata has the models of ONNX's own tests.
const onnxData = "/usr/include/onnx/backend/test/data"

// TestONNXModels reads and writes the models of ONNX's own tests, where Debian's libonnx-testdata is
// installed: those of its operators, and those that PyTorch wrote.
func TestONNXModels(t *testing.T) {
	root, err := filepath.EvalSymlinks(onnxData)
	if err != nil {
		t.Skip("libonnx-testdata is not installed")
	}
	models, tensors, files := 0, 0, 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if files++; files%longtest.Of(10, 1) != 0 {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		switch filepath.Ext(path) {
		case ".onnx":
			models++
			m, err := onnx.Parse(data)
			if err == nil {
				err = m.Write(&out)
			}
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return nil
			}
			if err := onnx.Check(m); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			// Written field by field, it is the same model.
			m.Doc += "!"
			if again, err := onnx.Parse(written(t, m)); err != nil || !cmp.Equal(m, again, fields) {
				t.Errorf("%s: %v", path, err)
			}
		case ".pb":
			tensors++
			x, err := onnx.ParseTensor(data)
			if err == nil {
				err = x.Write(&out)
			}
			if err != nil {
				return nil // a sequence or an optional value
			}
		default:
			return nil
		}
		if !bytes.Equal(out.Bytes(), data) {
			t.Errorf("%s: other bytes", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d models and %d tensors", models, tensors)
}

// TestFiles: a file is read as it was written, and an error names it.
func TestFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "m.onnx")
	if err := sample().WriteFile(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	m, err := onnx.ReadFile(name)
	if err != nil || !cmp.Equal(m, sample(), fields) {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("no model"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := onnx.ReadFile(name); !errors.Is(err, onnx.ErrFormat) || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
}

func TestDataTypes(t *testing.T) {
	for d, want := range map[onnx.DataType]string{onnx.Float: "float 32", onnx.String: "string 0", onnx.BFloat16: "bfloat16 16", onnx.Int2: "int2 2", -1: "type -1 0", 99: "type 99 0"} {
		if got := fmt.Sprint(d, d.Bits()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestDimSize(t *testing.T) {
	for text, d := range map[string]onnx.Dim{
		"7":        {Value: new(int64(7))},
		"0":        {Value: new(int64(0)), Param: "n"},
		"-1":       {Value: new(int64(-1))},
		"-1 batch": {Param: "batch"},
		"-1 N":     {Param: "N"},
		"-1 ":      {Param: "?"},
		"-1  ":     {Param: "-1"},
		"-1   ":    {Param: "None"},
		"-1    ":   {},
	} {
		if n, name := d.Size(); strings.TrimSpace(fmt.Sprint(n, " ", name)) != strings.TrimSpace(text) {
			t.Errorf("%v: %d %q", d, n, name)
		}
	}
}

// Example prints the operators of a model, and writes it without its metadata.
func Example() {
	m := &onnx.Model{
		IRVersion: 10, Opsets: []*onnx.Opset{{Version: 21}}, Metadata: []*onnx.Entry{{Key: "author", Value: "A. Author"}},
		Graph: &onnx.Graph{Name: "g", Nodes: []*onnx.Node{{Op: "Relu", Inputs: []string{"x"}, Outputs: []string{"y"}}}},
	}
	for _, n := range m.Graph.Nodes {
		fmt.Println(n.Op, n.Inputs, n.Outputs)
	}
	m.Metadata = nil
	var out bytes.Buffer
	fmt.Println(m.Write(&out), out.Len(), "bytes")
	// Output:
	// Relu [x] [y]
	// <nil> 25 bytes
}

func TestInfo(t *testing.T) {
	const want = `ir-version: 10
opset: 21
opset: ai.onnx.ml 3
producer: nnopt 1
metadata key: value
input x: float[batch, 3, ?, 0]
output y: seq(float[batch, 3, ?, 0])
initializers: 6, 1099511627784 elements, 4398046511131 bytes
external: weights
function: org.example.f
nodes: 5
  Identity                 3
  Neg                      1
  org.example.Foo          1
`
	m, err := onnx.Parse(written(t, sample()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, m.Info().Text()); diff != "" {
		t.Error(diff)
	}
	m.Metadata[0].Value = "several\nlines"
	if text := m.Info().Text(); !strings.Contains(text, "metadata key: several\\nlines\n") {
		t.Error(text)
	}
	for typ, want := range map[*onnx.Type]string{
		nil: "unknown",
		{}:  "unknown",
		{Tensor: &onnx.TensorType{Elem: onnx.Float}}:                                                         "float[]",
		{Tensor: &onnx.TensorType{Elem: onnx.Int64, Shape: &onnx.Shape{}}}:                                   "int64",
		{SparseTensor: &onnx.TensorType{Elem: onnx.Double}}:                                                  "sparse_tensor(double[])",
		{Optional: &onnx.ElementType{}}:                                                                      "optional(unknown)",
		{Map: &onnx.MapType{Key: onnx.String, Value: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Bool}}}}: "map(string, bool[])",
		{Opaque: &onnx.OpaqueType{Domain: "d", Name: "n"}}:                                                   "opaque(d, n)",
	} {
		if got := typ.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	huge := &onnx.Model{Graph: &onnx.Graph{Initializers: []*onnx.Tensor{{Dims: []int64{1 << 40, 1 << 40}, DataType: onnx.Float}, {Dims: []int64{-1}}}}}
	if x := huge.Info(); x.Elements != 0 || x.Bytes != 0 {
		t.Errorf("%+v", x)
	}
}
