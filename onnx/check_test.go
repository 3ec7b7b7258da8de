package onnx_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
)

// plain returns a model without faults: y = Relu(x + w).
func plain() *onnx.Model {
	return &onnx.Model{
		IRVersion: 10, Opsets: []*onnx.Opset{{Version: 21}},
		Graph: &onnx.Graph{
			Name:         "g",
			Inputs:       []*onnx.ValueInfo{value("x")},
			Outputs:      []*onnx.ValueInfo{value("y")},
			Initializers: []*onnx.Tensor{{Name: "w", DataType: onnx.Float, Floats: []float32{1}}},
			Nodes:        []*onnx.Node{node("Add", "x w", "s"), node("Relu", "s", "y")},
		},
	}
}

func value(name string) *onnx.ValueInfo {
	return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}}
}

// node returns a node with the names in a text as inputs and outputs, of which "_" is one left out.
func node(op, inputs, outputs string, attributes ...*onnx.Attribute) *onnx.Node {
	names := func(text string) []string {
		list := strings.Fields(text)
		for i := range list {
			list[i] = strings.Trim(list[i], "_")
		}
		return list
	}
	return &onnx.Node{Op: op, Inputs: names(inputs), Outputs: names(outputs), Attributes: attributes}
}

func branch(name string, g *onnx.Graph) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeGraph, Graph: g}
}

func function(name string, nodes ...*onnx.Node) *onnx.Function {
	return &onnx.Function{Domain: "f", Name: name, Inputs: []string{"a"}, Outputs: []string{"b"}, Opsets: []*onnx.Opset{{Version: 21}, {Domain: "f", Version: 1}}, Nodes: nodes}
}

// call returns a call of a function.
func call(name, inputs, outputs string) *onnx.Node {
	n := node(name, inputs, outputs)
	n.Domain = "f"
	return n
}

// TestCheck: a change of a model without faults leads to the faults that it is.
func TestCheck(t *testing.T) {
	constant := func(x *onnx.Tensor) func(*onnx.Model) {
		return func(m *onnx.Model) { m.Graph.Initializers[0] = x }
	}
	attribute := func(list ...*onnx.Attribute) func(*onnx.Model) {
		return func(m *onnx.Model) { m.Graph.Nodes[1].Attributes = list }
	}
	functions := func(list ...*onnx.Function) func(*onnx.Model) {
		return func(m *onnx.Model) { m.Functions = list }
	}
	external := func(pairs ...string) func(*onnx.Model) {
		x := &onnx.Tensor{Name: "w", DataType: onnx.Float, Location: onnx.LocationExternal}
		for i := 0; i < len(pairs); i += 2 {
			x.External = append(x.External, &onnx.Entry{Key: pairs[i], Value: pairs[i+1]})
		}
		return constant(x)
	}
	for name, c := range map[string]struct {
		change func(*onnx.Model)
		want   string // without those of places, a line each
	}{
		"nothing": {func(*onnx.Model) {}, ""},
		"no head": {func(m *onnx.Model) { m.IRVersion, m.Opsets, m.Graph.Name = 0, nil, "" }, `
ir_version is 0
the graph has no name`},
		"no graph":         {func(m *onnx.Model) { m.Graph = nil }, `there is no graph`},
		"no opset":         {func(m *onnx.Model) { m.Opsets = nil }, "there is no version of the operators, which there must be from ir_version 3 on\nnode 0 (Add): the domain \"\" of its operator has no version\nnode 1 (Relu): the domain \"\" of its operator has no version"},
		"old":              {func(m *onnx.Model) { m.IRVersion, m.Graph.Inputs = 2, append(m.Graph.Inputs, value("w")) }, "there is a version of the operators, which there can't be before ir_version 3"},
		"old initializer":  {func(m *onnx.Model) { m.IRVersion = 3 }, "tensor w: an initializer must be an input, too, before ir_version 4"},
		"two versions":     {func(m *onnx.Model) { m.Opsets = append(m.Opsets, &onnx.Opset{Domain: "ai.onnx", Version: 7}) }, `the operators of domain "" have two versions, 21 and 7`},
		"no version":       {func(m *onnx.Model) { m.Opsets[0].Version = 0 }, `the operators of domain "" have version 0`},
		"another domain":   {func(m *onnx.Model) { m.Graph.Nodes[0].Domain, m.Graph.Nodes[0].Name = "com.example", "n" }, `node 0 n (Add): the domain "com.example" of its operator has no version`},
		"long domain name": {func(m *onnx.Model) { m.Graph.Nodes[1].Domain = "ai.onnx" }, ""},
		"metadata":         {func(m *onnx.Model) { m.Metadata = []*onnx.Entry{{Key: "a"}, {Key: "a"}} }, `metadata has the key "a" twice`},
		"order":            {func(m *onnx.Model) { m.Graph.Nodes[0], m.Graph.Nodes[1] = m.Graph.Nodes[1], m.Graph.Nodes[0] }, `node 0 (Relu): its input "s" is computed later, by node 1 (Add)`},
		"circle":           {func(m *onnx.Model) { m.Graph.Nodes[0].Inputs[0] = "s" }, `node 0 (Add): its input "s" is computed later, by node 0 (Add)`},
		"nothing computes": {func(m *onnx.Model) { m.Graph.Nodes[0].Inputs[0] = "q"; m.Graph.Outputs[0].Name = "z" }, `
node 0 (Add): nothing computes its input "q"
value z: nothing computes this output`},
		"twice": {func(m *onnx.Model) {
			m.Graph.Nodes = append(m.Graph.Nodes, node("Neg", "x", "s"), node("Neg", "x", "x"), node("Neg", "x", "w"), node("Split", "x", "a a"))
		}, `
node 2 (Neg): its output "s" is also one of node 0 (Add)
node 3 (Neg): its output "x" is an input of the graph
node 4 (Neg): its output "w" is an initializer
node 5 (Split): it has two outputs "a"`},
		"left out": {func(m *onnx.Model) { m.Graph.Nodes = append(m.Graph.Nodes, node("Foo", "x _ _", "_ _ a")) }, ""},
		"inputs": {func(m *onnx.Model) {
			m.Graph.Inputs = append(m.Graph.Inputs, value("x"), value(""), &onnx.ValueInfo{Name: "t"}, value("w"))
		}, "value x: there are two inputs with this name\nvalue 2: it has no name\nvalue t: it has no type"},
		"initializers": {func(m *onnx.Model) {
			m.Graph.Initializers = append(m.Graph.Initializers, m.Graph.Initializers[0], &onnx.Tensor{DataType: onnx.Bool, Int32s: []int32{1}})
		}, "tensor w: there are two initializers with this name\ntensor 2: an initializer must have a name"},
		"no node": {func(m *onnx.Model) { m.Graph.Nodes = append(m.Graph.Nodes, &onnx.Node{}) }, "node 2 (): it has no operator\nnode 2 (): it has neither inputs nor outputs"},
		"types": {func(m *onnx.Model) {
			m.Graph.Inputs[0].Type = &onnx.Type{Sequence: &onnx.ElementType{Elem: &onnx.Type{Optional: &onnx.ElementType{}}}}
			m.Graph.Outputs[0].Type = &onnx.Type{Tensor: &onnx.TensorType{}}
		}, "value x: it has no type\nvalue y: its elements are of type undefined"},
		"type in itself": {func(m *onnx.Model) {
			x := m.Graph.Inputs[0].Type
			x.Tensor, x.Sequence = nil, &onnx.ElementType{Elem: x}
		}, "value x: its type is nested more than 100 deep"},

		"subgraphs": {func(m *onnx.Model) {
			body := func(names string) *onnx.Graph {
				in, out, _ := strings.Cut(names, " ")
				return &onnx.Graph{Name: "b", Nodes: []*onnx.Node{node("Relu", in, out)}, Outputs: []*onnx.ValueInfo{{Name: out}}}
			}
			loop := body("x l")
			loop.Inputs, loop.Initializers = []*onnx.ValueInfo{{Name: "x"}}, []*onnx.Tensor{{Name: "s", DataType: onnx.Int8, Raw: []byte{1}}}
			m.Graph.Nodes = append(m.Graph.Nodes, node("If", "x", "i", branch("then_branch", body("s y2")), branch("else_branch", body("i2 s"))), node("If", "x", "i2", branch("then_branch", body("y2 y2"))), node("Loop", "x", "k", branch("body", loop)))
		}, `
node 2 (If): attribute else_branch: node 0 (Relu): nothing computes its input "i2"
node 2 (If): attribute else_branch: node 0 (Relu): its output "s" is a name of a graph around it
node 3 (If): attribute then_branch: node 0 (Relu): its input "y2" is computed later, by node 0 (Relu)`},
		"graph in itself": {func(m *onnx.Model) {
			m.Graph.Nodes = append(m.Graph.Nodes, node("If", "x", "i", branch("then_branch", m.Graph)))
		}, ""},

		"attributes": {attribute(
			&onnx.Attribute{Name: "a", Type: onnx.AttributeInt}, &onnx.Attribute{Name: "a", Type: onnx.AttributeInts}, &onnx.Attribute{Type: onnx.AttributeFloat, Float: 1},
			&onnx.Attribute{Name: "b", Ints: []int64{1}}, &onnx.Attribute{Name: "c", Type: onnx.AttributeInt, Float: 1}, &onnx.Attribute{Name: "d", Type: onnx.AttributeTensor},
			&onnx.Attribute{Name: "e", Type: onnx.AttributeInts, Ints: []int64{1}, Int: 1}, &onnx.Attribute{Name: "f", Type: onnx.AttributeInt, Ref: "q"}, &onnx.Attribute{Name: "g", Type: 99},
			&onnx.Attribute{Name: "h", Type: onnx.AttributeTypeProto, TypeProto: &onnx.Type{}},
		), `
node 1 (Relu): it has two attributes "a"
node 1 (Relu): attribute 2: an attribute must have a name
node 1 (Relu): attribute b: it has no type
node 1 (Relu): attribute c: it is of type int, but has a value of type float
node 1 (Relu): attribute d: it has no value of type tensor
node 1 (Relu): attribute e: it has several values: int, ints
node 1 (Relu): attribute f: it refers to the attribute "q" of a function, but is in none
node 1 (Relu): attribute h: it has no type`},
		"a list of tensors": {attribute(&onnx.Attribute{Name: "a", Type: onnx.AttributeTensors, Tensors: []*onnx.Tensor{{DataType: onnx.Bool, Int32s: []int32{0}}, {DataType: onnx.Bool}}}), "node 1 (Relu): attribute a: tensor 1: 0 values for 1 elements of type bool"},

		"undefined":     {constant(&onnx.Tensor{Name: "w"}), "tensor w: its elements are of type undefined"},
		"newer type":    {constant(&onnx.Tensor{Name: "w", DataType: 99, Raw: []byte{1}}), ""},
		"raw":           {constant(&onnx.Tensor{Name: "w", DataType: onnx.Int4, Dims: []int64{3}, Raw: []byte{1}}), "tensor w: 1 bytes for 3 elements of type int4"},
		"another field": {constant(&onnx.Tensor{Name: "w", DataType: onnx.Int64, Dims: []int64{1}, Int32s: []int32{1}}), "tensor w: 0 values for 1 elements of type int64"},
		"two fields":    {constant(&onnx.Tensor{Name: "w", DataType: onnx.Int32, Raw: make([]byte, 4), Int32s: []int32{1}}), "tensor w: it has elements in 2 fields"},
		"negative":      {constant(&onnx.Tensor{Name: "w", DataType: onnx.Int32, Dims: []int64{-1}}), "tensor w: a dimension of size -1"},
		"huge":          {constant(&onnx.Tensor{Name: "w", DataType: onnx.Int32, Dims: []int64{1 << 62, 2, 3, 4, 5, 6, 7, 8, 9, 10}}), "tensor w: dimensions [4611686018427387904 2 3 4 5 6 7 8] and 2 more have too many elements"},
		"strings":       {constant(&onnx.Tensor{Name: "w", DataType: onnx.String, Dims: []int64{2}, Strings: [][]byte{{}}}), "tensor w: 1 strings for 2 elements"},
		"raw strings":   {constant(&onnx.Tensor{Name: "w", DataType: onnx.String, Raw: []byte("x")}), "tensor w: strings must be in string_data"},

		"external":      {external("location", "folder/w", "offset", "4", "length", "4"), ""},
		"outside":       {external("location", "../w"), `tensor w: external data in "../w", which is not below the folder of the model`},
		"nowhere":       {external(), `tensor w: external data in "", which is not below the folder of the model`},
		"absurd offset": {external("location", "w", "offset", "-1"), `tensor w: offset of external data is "-1"`},

		"sparse": {func(m *onnx.Model) {
			m.Graph.SparseInitializers = []*onnx.SparseTensor{
				{},
				{Values: &onnx.Tensor{Name: "w2", DataType: onnx.Float, Dims: []int64{1}, Floats: []float32{1}}, Dims: []int64{4}},
				{Values: &onnx.Tensor{DataType: onnx.Float, Dims: []int64{1}, Floats: []float32{1}}, Indices: &onnx.Tensor{DataType: onnx.Int64, Dims: []int64{1, 2}, Int64s: []int64{0, 0}}, Dims: []int64{4}},
				{Values: &onnx.Tensor{Name: "w3", DataType: onnx.Float, Dims: []int64{1}, Floats: []float32{1}}, Indices: &onnx.Tensor{DataType: onnx.Int32, Dims: []int64{1}, Int32s: []int32{0}}, Dims: []int64{4}},
				{Values: &onnx.Tensor{Name: "w4", DataType: onnx.Float, Floats: []float32{1}}, Dims: []int64{4}},
				{Values: &onnx.Tensor{Name: "w5", DataType: onnx.Float, Dims: []int64{0}}, Dims: []int64{0}},
			}
		}, `
sparsetensor 0: it has no values
sparsetensor 1: it has no indices
sparsetensor 2: its indices have dimensions [1 2] for 1 values in 1 dimensions
sparsetensor 2: an initializer must have a name
sparsetensor 3: its indices are of type int32, want int64
sparsetensor 4: its values have 0 dimensions, want 1
sparsetensor 5: a dimension of size 0`},

		"functions": {functions(function("F", node("Relu", "a", "b")), function("G", call("F", "a", "b"))), ""},
		"a function": {functions(&onnx.Function{Inputs: []string{"a", "a"}, Outputs: []string{"b", "c", "c"}, Attributes: []string{"k"}, Defaults: []*onnx.Attribute{{Name: "k", Type: onnx.AttributeTensor}}, Opsets: []*onnx.Opset{{Version: 1}}, Nodes: []*onnx.Node{
			node("Relu", "x", "c", &onnx.Attribute{Name: "r", Type: onnx.AttributeInt, Ref: "k"}, &onnx.Attribute{Name: "s", Type: onnx.AttributeInt, Ref: "q"}, &onnx.Attribute{Name: "t", Type: onnx.AttributeInt, Int: 1, Ref: "k"}), call("F", "c", "d")}}), `
function : it has no name
function : it has two attributes "k"
function : attribute k: it has no value of type tensor
function : it has two inputs "a"
function : node 0 (Relu): nothing computes its input "x"
function : node 0 (Relu): attribute s: it refers to the attribute "q", which the function has not
function : node 0 (Relu): attribute t: it refers to the attribute "k", but has a value, too
function : node 1 (F): the domain "f" of its operator has no version
function : nothing computes its output "b"
function : it has two outputs "c"`},
		"same functions":      {functions(function("F", node("Relu", "a", "b")), function("F", node("Neg", "a", "b"))), "function f.F: there is another function with this name"},
		"recursion":           {functions(function("F", call("F", "a", "b"))), "function f.F: it calls itself"},
		"recursion by others": {functions(function("F", call("G", "a", "b")), function("G", node("If", "a", "b", branch("then_branch", &onnx.Graph{Name: "t", Nodes: []*onnx.Node{call("H", "a", "t")}}))), function("H", call("F", "a", "b"))), "function f.F: it calls itself through f.G, f.H"},
	} {
		t.Run(name, func(t *testing.T) {
			m := plain()
			c.change(m)
			var got strings.Builder
			var faults *onnx.Faults
			if err := onnx.Check(m); errors.As(err, &faults) {
				for _, f := range faults.List {
					fmt.Fprintln(&got, f)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(c.want), strings.TrimSpace(got.String())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFaults: an error names the nodes, and is short however many there are.
func TestFaults(t *testing.T) {
	m := plain()
	for range 5000 {
		m.Graph.Nodes = append(m.Graph.Nodes, node(strings.Repeat("Foo", 100), strings.Repeat("q", 1000), ""))
	}
	var faults *onnx.Faults
	err := onnx.Check(m)
	if !errors.As(err, &faults) || len(faults.List)+faults.More != 5000 || faults.List[7].Node != m.Graph.Nodes[9] {
		t.Fatal(err)
	}
	if text := err.Error(); len(text) > 5000 || !strings.HasPrefix(text, "onnx: 5000 faults of structure\n\tnode 2 (Foo") || !strings.HasSuffix(text, "\n\tand 4990 more") {
		t.Error(text)
	}
	m.Graph.Nodes = m.Graph.Nodes[1:2]
	const want = `onnx: node 0 (Relu): nothing computes its input "s"`
	if err := onnx.Check(m); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestCheckTime: a check takes time in proportion to the model, whatever its form is.
func TestCheckTime(t *testing.T) {
	n := longtest.Of(10_000, 200_000)
	m := plain()
	// Nodes in the wrong order; a function that calls all others, which call it.
	nodes := make([]*onnx.Node, n)
	for i := range nodes {
		nodes[i] = node("Relu", fmt.Sprint("v", i+1), fmt.Sprint("v", i))
	}
	m.Graph.Nodes = append(m.Graph.Nodes, nodes...)
	root := function("R")
	for i := range n {
		f := fmt.Sprint("F", i)
		root.Nodes = append(root.Nodes, call(f, "a", f))
		m.Functions = append(m.Functions, function(f, call("R", "a", "b"), call(fmt.Sprint("F", i+1), "a", "c"), call("F0", "a", "d")))
	}
	m.Functions = append(m.Functions, root)
	start := time.Now()
	if err := onnx.Check(m); err == nil {
		t.Error("no faults")
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("%v for %d nodes", d, 5*n)
	}
}

// TestOnlyOrder: what is only out of order is told from what is faulty, however many nodes there are.
func TestOnlyOrder(t *testing.T) {
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{Name: "reversed",
		Inputs: []*onnx.ValueInfo{{Name: "0", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}}}, Outputs: []*onnx.ValueInfo{{Name: "3000", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}}}}}
	for i := 3000; i > 0; i-- {
		m.Graph.Nodes = append(m.Graph.Nodes, &onnx.Node{Op: "Neg", Inputs: []string{fmt.Sprint(i - 1)}, Outputs: []string{fmt.Sprint(i)}})
	}
	for _, want := range []bool{true, false} {
		var faults *onnx.Faults
		if !errors.As(onnx.Check(m), &faults) || faults.OnlyOrder() != want {
			t.Errorf("%v: only order: %v", faults, !want)
		}
		m.Graph.Nodes[2999].Inputs[0] = "nothing"
	}
}
