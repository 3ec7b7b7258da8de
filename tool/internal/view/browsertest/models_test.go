package browsertest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/onnx"
)

// info declares a value of a model.
func info(name string, elem onnx.DataType, dims ...int64) *onnx.ValueInfo {
	shape := new(onnx.Shape)
	for _, n := range dims {
		shape.Dims = append(shape.Dims, &onnx.Dim{Value: &n})
	}
	return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: elem, Shape: shape}}}
}

func node(op, inputs, outputs string, attributes ...*onnx.Attribute) *onnx.Node {
	n := &onnx.Node{Op: op, Name: op + " " + outputs, Inputs: strings.Fields(inputs), Outputs: strings.Fields(outputs), Attributes: attributes}
	for i, name := range n.Inputs {
		if name == "_" { // left out
			n.Inputs[i] = ""
		}
	}
	return n
}

func graphOf(name string, g *onnx.Graph) *onnx.Attribute {
	g.Name = name
	return &onnx.Attribute{Name: name, Type: onnx.AttributeGraph, Graph: g}
}

// dropModel drops a model with a graph.
func (b *tab) dropModel(name string, g *onnx.Graph) string {
	b.t.Helper()
	g.Name = name
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}, {Domain: "my.domain", Version: 1}}, Graph: g}
	file := filepath.Join(b.t.TempDir(), name+".onnx")
	if err := m.WriteFile(b.t.Context(), file); err != nil {
		b.t.Fatal(err)
	}
	b.drop(file)
	return b.asked()
}

// TestPlaygroundModels drops models with all element types, graphs within nodes, operators that
// nobody knows, and faults.
func TestPlaygroundModels(t *testing.T) {
	b := openPlayground(t, "")
	types := []onnx.DataType{onnx.Bool, onnx.Int8, onnx.Int16, onnx.Int32, onnx.Int64, onnx.Uint8, onnx.Uint16, onnx.Uint32, onnx.Uint64, onnx.Float16, onnx.BFloat16, onnx.Float, onnx.Double}
	g := &onnx.Graph{Outputs: []*onnx.ValueInfo{info("y", onnx.Float, 2, 3)}}
	var all []string
	for _, typ := range types {
		name := typ.String()
		g.Inputs = append(g.Inputs, info(name, typ, 2, 3))
		g.Nodes = append(g.Nodes, node("Identity", name, name+"1"), node("Cast", name+"1", name+"2", &onnx.Attribute{Name: "to", Type: onnx.AttributeInt, Int: int64(onnx.Float)}))
		all = append(all, name+"2")
	}
	g.Nodes = append(g.Nodes, node("Sum", strings.Join(all, " "), "y"))
	if got := b.dropModel("types", g); !strings.Contains(got, "27 applies became") {
		t.Errorf("element types: %s", got)
	}
	shown := strings.Join(b.texts("#detail .type"), " ")
	for _, typ := range types {
		if !strings.Contains(shown, typ.String()+"[2,3]") {
			t.Errorf("%v is not shown: %s", typ, shown)
		}
	}
	b.click("[data-do=run]")
	if got := b.asked(); !strings.Contains(got, "compute the same") {
		t.Errorf("element types: %s", got)
	}

	// Branches are in the picture. The body of a loop is in the details of the loop.
	branch := func(op, out string) *onnx.Graph {
		return &onnx.Graph{Nodes: []*onnx.Node{node(op, "x", out)}, Outputs: []*onnx.ValueInfo{info(out, onnx.Float, 4)}}
	}
	body := &onnx.Graph{Nodes: []*onnx.Node{node("Identity", "c", "going"), node("Add", "v v", "w")},
		Inputs:  []*onnx.ValueInfo{info("i", onnx.Int64), info("c", onnx.Bool), info("v", onnx.Float, 4)},
		Outputs: []*onnx.ValueInfo{info("going", onnx.Bool), info("w", onnx.Float, 4)}}
	got := b.dropModel("flow", &onnx.Graph{
		Nodes:        []*onnx.Node{node("If", "p", "a", graphOf("then_branch", branch("Neg", "t")), graphOf("else_branch", branch("Abs", "e"))), node("Loop", "n _ a", "y", graphOf("body", body))},
		Initializers: []*onnx.Tensor{{Name: "n", DataType: onnx.Int64, Int64s: []int64{3}}},
		Inputs:       []*onnx.ValueInfo{info("p", onnx.Bool), info("x", onnx.Float, 4)},
		Outputs:      []*onnx.ValueInfo{info("y", onnx.Float, 4)}})
	if ops := b.ops(); !strings.Contains(ops, "Abs If Loop Neg") {
		t.Errorf("the graph is %s: %s", ops, got)
	}
	b.until(`(e => { e?.dispatchEvent(new MouseEvent("click", { bubbles: true })); return !!e })([...document.querySelectorAll("[data-node]")].find(e => e.querySelector(".title")?.textContent === "Loop"))`)
	if got := strings.Join(b.texts("#detail"), ""); !strings.Contains(got, "body=graph of 2 nodes") || !strings.Contains(got, "w = Add(v, v)") || strings.Contains(got, "proto[") {
		t.Errorf("the details of the loop: %s", got)
	}
	b.click("[data-do=run]")
	if got := b.asked(); !strings.Contains(got, "compute the same") {
		t.Errorf("a loop: %s", got)
	}

	// What nobody knows is drawn, optimized around, and written again; it can't be run.
	strange := node("Frobnicate", "x", "a")
	strange.Domain = "my.domain"
	b.dropModel("strange", &onnx.Graph{Nodes: []*onnx.Node{strange, node("Identity", "a", "b"), node("Relu", "b", "y")},
		Inputs: []*onnx.ValueInfo{info("x", onnx.Float, 4)}, Outputs: []*onnx.ValueInfo{info("y", onnx.Float, 4)}})
	if ops := b.ops(); !strings.Contains(ops, "my.domain.Frobnicate") {
		t.Errorf("the graph is %s", ops)
	}
	m, err := onnx.ReadFile(b.save("model"))
	if err != nil || len(m.Graph.Nodes) != 2 || m.Graph.Nodes[0].Op != "Frobnicate" {
		t.Errorf("saved: %v", err)
	}
	b.click("[data-do=run]")
	if got := b.asked(); !strings.Contains(got, "not supported: operator Frobnicate") && !strings.Contains(got, "not supported: operator my.domain.Frobnicate") {
		t.Errorf("a run: %s", got)
	}

	// All faults are told at once.
	got = b.dropModel("faults", &onnx.Graph{Nodes: []*onnx.Node{node("Add", "x nowhere", "a"), node("Relu", "missing", "b"), node("Add", "a b", "a")},
		Inputs: []*onnx.ValueInfo{info("x", onnx.Float, 4)}, Outputs: []*onnx.ValueInfo{info("y", onnx.Float, 4)}})
	for _, fault := range []string{"nowhere", "missing", `"a"`, "nothing computes this output"} {
		if !strings.Contains(got, fault) {
			t.Errorf("%q is not among the faults: %s", fault, got)
		}
	}
}
