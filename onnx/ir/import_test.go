package ir_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
)

// info returns a value of floats whose sizes are numbers, or symbols if they are negative.
func info(name string, dims ...int64) *onnx.ValueInfo {
	shape := new(onnx.Shape)
	for _, n := range dims {
		if n < 0 {
			shape.Dims = append(shape.Dims, &onnx.Dim{Param: "batch size"})
		} else {
			shape.Dims = append(shape.Dims, &onnx.Dim{Value: &n})
		}
	}
	return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float, Shape: shape}}}
}

func node(op, inputs, outputs string, attributes ...*onnx.Attribute) *onnx.Node {
	in := strings.Fields(inputs)
	for i, name := range in {
		if name == "_" {
			in[i] = ""
		}
	}
	return &onnx.Node{Op: op, Name: "make " + outputs, Inputs: in, Outputs: strings.Fields(outputs), Attributes: attributes}
}

func graphAttribute(name string, g *onnx.Graph) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeGraph, Graph: g}
}

func model(opset int64, g *onnx.Graph) *onnx.Model {
	g.Name = "g"
	return &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: opset}}, Graph: g}
}

func imported(t *testing.T, m *onnx.Model) *fgraph.FunctionGraph {
	t.Helper()
	if err := onnx.Check(m); err != nil {
		t.Fatal(err)
	}
	g, err := ir.Import(m, ir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func exported(t *testing.T, g *fgraph.FunctionGraph) *onnx.Model {
	t.Helper()
	m, err := ir.Export(g)
	if err == nil {
		err = onnx.Check(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// replace replaces the value of a name.
func replace(t *testing.T, g *fgraph.FunctionGraph, name string, by func(v *fgraph.Variable) *fgraph.Variable) {
	t.Helper()
	for v := range g.Variables() {
		if v.Name() == name {
			if err := g.Replace(v, by(v), fgraph.Reason{Pass: "test"}); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("there is no value %s", name)
}

// ops lists the operators of the nodes of a graph, those of branches in brackets.
func ops(g *onnx.Graph) string {
	var list []string
	for _, n := range g.Nodes {
		text := n.Op
		for _, a := range n.Attributes {
			if a.Graph != nil {
				text += "[" + ops(a.Graph) + "]"
			}
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// branching returns a model with an If in whose branches are Relus and Exps of x.
func branching() *onnx.Model {
	branch := func(op, out string) *onnx.Graph {
		return &onnx.Graph{Name: op, Nodes: []*onnx.Node{node(op, "x", out+"a"), node("Neg", out+"a", out)}, Outputs: []*onnx.ValueInfo{info(out, -1, 3)}}
	}
	cond := &onnx.ValueInfo{Name: "c", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Bool, Shape: new(onnx.Shape)}}}
	return model(16, &onnx.Graph{
		Inputs: []*onnx.ValueInfo{cond, info("x", -1, 3)}, Outputs: []*onnx.ValueInfo{info("y", -1, 3), info("z", -1, 3)},
		Nodes: []*onnx.Node{
			node("If", "c", "i", graphAttribute("then_branch", branch("Relu", "p")), graphAttribute("else_branch", branch("Exp", "q"))),
			node("Abs", "i", "y"), node("Sign", "x", "z"),
		},
	})
}

// TestBranches: what one branch needs is in it, what both need is before the If, and what the main
// graph needs, too.
func TestBranches(t *testing.T) {
	m := branching()
	g := imported(t, m)
	if got, want := exported(t, g), m; got != want {
		t.Error("a model that has not changed is another one")
	}
	replace(t, g, "y", func(v *fgraph.Variable) *fgraph.Variable { return v.Owner().Inputs()[0] })
	out := exported(t, g)
	if got, want := ops(out.Graph), "If[Relu Neg][Exp Neg] Sign"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	// Both branches use the sign of x, and then the main graph does as well.
	for _, out := range []string{"pa", "qa"} {
		replace(t, g, out, func(*fgraph.Variable) *fgraph.Variable { return g.Outputs()[1] })
	}
	if got, want := ops(exported(t, g).Graph), "Sign If[Neg][Neg]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	// The branches compute the same now: one value for both is computed before the If, which hands
	// it on.
	replace(t, g, "q", func(*fgraph.Variable) *fgraph.Variable {
		for v := range g.Variables() {
			if v.Name() == "p" {
				return v
			}
		}
		return nil
	})
	if got, want := ops(exported(t, g).Graph), "Sign Neg If[Identity][Identity]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

// TestInterface: names and sizes of inputs and outputs stay, whatever becomes of the values.
func TestInterface(t *testing.T) {
	m := model(17, &onnx.Graph{
		Inputs: []*onnx.ValueInfo{info("x", -1, 3)}, Outputs: []*onnx.ValueInfo{info("y", -1, 3), info("z", -1, 3), info("w", -1, 3)},
		Nodes: []*onnx.Node{node("Relu", "x", "y"), node("Relu", "y", "z"), node("Identity", "x", "w")},
	})
	g := imported(t, m)
	// z is y, and w is the input.
	replace(t, g, "z", func(*fgraph.Variable) *fgraph.Variable { return g.Outputs()[0] })
	replace(t, g, "w", func(*fgraph.Variable) *fgraph.Variable { return g.Inputs()[0] })
	out := exported(t, g)
	if got, want := ops(out.Graph), "Relu Identity Identity"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	for i, o := range out.Graph.Outputs {
		if want := m.Graph.Outputs[i]; o.Name != want.Name || o.Type.String() != want.Type.String() {
			t.Errorf("output %s: %v, and it was %s: %v", o.Name, o.Type, want.Name, want.Type)
		}
	}
}

// TestVersions: attributes that became inputs are inputs in graphs, and what the version asks for in
// models.
func TestVersions(t *testing.T) {
	m := model(11, &onnx.Graph{
		Inputs: []*onnx.ValueInfo{info("x", -1, 3)}, Outputs: []*onnx.ValueInfo{info("y", -1, 3, 1)},
		Nodes: []*onnx.Node{node("Unsqueeze", "x", "u", ir.Ints("axes", 2)), node("Relu", "u", "r"), node("Softmax", "r", "y", ir.Int("axis", 2))},
	})
	g := imported(t, m)
	if text := g.String(); !strings.Contains(text, "Unsqueeze(x, [2])") || strings.Contains(text, "@11") {
		t.Errorf("the graph is %s", text)
	}
	relu := func(op string) func(v *fgraph.Variable) *fgraph.Variable {
		return func(v *fgraph.Variable) *fgraph.Variable {
			w, err := ir.Standard().Make(op, nil, v.Owner().Inputs()...)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
	}
	replace(t, g, "r", relu("Abs"))
	out := exported(t, g)
	if n := out.Graph.Nodes[0]; len(n.Inputs) != 1 || !slices.Equal(n.Attributes[0].Ints, []int64{2}) || out.Opsets[0].Version != 11 {
		t.Errorf("version %d: %v %v", out.Opsets[0].Version, n.Inputs, n.Attributes)
	}
	// HardSwish came with version 14, in which axes are an input.
	replace(t, g, "r", relu("HardSwish"))
	out = exported(t, g)
	i := slices.IndexFunc(out.Graph.Nodes, func(n *onnx.Node) bool { return n.Op == "Unsqueeze" })
	if n := out.Graph.Nodes[i]; len(n.Inputs) != 2 || len(n.Attributes) != 0 || out.Opsets[0].Version != 14 {
		t.Errorf("version %d: %v %v", out.Opsets[0].Version, n.Inputs, n.Attributes)
	}
	if s := ir.SourceOf(g); s.Permits("Gelu") || !s.Permits("LayerNormalization") {
		t.Error("a model is raised to version 17 at most")
	}
	// A Softmax over several dimensions means something else since version 13.
	m.Graph.Nodes[2].Attributes[0].Int = 1
	g = imported(t, m)
	if text := g.String(); !strings.Contains(text, "Softmax@11{axis=1}") || ir.SourceOf(g).Permits("HardSwish") {
		t.Errorf("the graph is %s", text)
	}
}

// TestContributed: ONNX Runtime writes LayerNormalization into models of any version, also beside operators that mean
// something else by the version that ONNX has it in. They stay in their version.
func TestContributed(t *testing.T) {
	m := model(11, &onnx.Graph{
		Inputs: []*onnx.ValueInfo{info("x", -1, 3), info("w", 3)}, Outputs: []*onnx.ValueInfo{info("y", -1, 3)},
		Nodes: []*onnx.Node{node("Softmax", "x", "s", ir.Int("axis", 0)), node("Relu", "s", "r"), node("LayerNormalization", "r w", "n"),
			node("SimplifiedLayerNormalization", "n w", "y")},
	})
	g := imported(t, m)
	if !ir.SourceOf(g).Permits("LayerNormalization") || ir.SourceOf(g).Permits("Mish") {
		t.Error("the operator that is there is permitted, and no other one")
	}
	replace(t, g, "r", func(v *fgraph.Variable) *fgraph.Variable { return v.Owner().Inputs()[0] })
	out := exported(t, g)
	if got, want := ops(out.Graph), "Softmax LayerNormalization SimplifiedLayerNormalization"; got != want || out.Opsets[0].Version != 11 {
		t.Errorf("%s of version %d, not %s of version 11", got, out.Opsets[0].Version, want)
	}
	if typ := ir.TypeOf(g.Outputs()[0]).String(); typ != `float["batch size",3]` {
		t.Errorf("the result is %s", typ)
	}
}

// TestHalfAttributes: numbers that were attributes are constants of the type of the first input, and attributes again.
func TestHalfAttributes(t *testing.T) {
	half := func(name string) *onnx.ValueInfo {
		v := info(name, 2)
		v.Type.Tensor.Elem = onnx.Float16
		return v
	}
	for _, c := range []struct{ number, kept float32 }{
		{0, 0}, {0.5, 0.5}, {-2.75, -2.75}, {1, 1}, {65504, 65504}, {65519, 65504}, {65520, float32(math.Inf(1))}, {-1e9, float32(math.Inf(-1))},
		{0x1p-24, 0x1p-24}, {0x1p-25, 0}, {0x1.8p-25, 0x1p-24}, {0x1p-14, 0x1p-14}, {0x1.ffcp-15, 0x1p-14}, {1.0 / 3, 0.33325195}, {2047.5, 2048}, {1 + 0x1p-11, 1},
	} {
		m := model(10, &onnx.Graph{
			Inputs: []*onnx.ValueInfo{half("x")}, Outputs: []*onnx.ValueInfo{half("y")},
			Nodes: []*onnx.Node{node("Identity", "x", "i"), node("Clip", "i", "y", ir.Float("min", c.number))},
		})
		g := imported(t, m)
		replace(t, g, "i", func(v *fgraph.Variable) *fgraph.Variable { return v.Owner().Inputs()[0] })
		out := exported(t, g)
		if n := out.Graph.Nodes[0]; n.Op != "Clip" || len(n.Inputs) != 1 || len(n.Attributes) != 1 || n.Attributes[0].Float != c.kept {
			t.Errorf("%v becomes %+v", c.number, n)
		}
	}
}

// TestFormerDefaults: what nodes of old versions leave out is what it was then, and stays left out in the file.
func TestFormerDefaults(t *testing.T) {
	for _, c := range []struct {
		version int64
		node    *onnx.Node
		want    string
	}{
		{5, node("Clip", "i", "y", ir.Float("min", 0)), "Clip(x, 0)"},
		{6, node("Clip", "i", "y", ir.Float("min", 0)), "Clip(x, 0, 3.4028235e+38)"},
		{10, node("Clip", "i", "y", ir.Float("max", 6)), "Clip(x, -3.4028235e+38, 6)"},
		{10, node("Clip", "i", "y"), "Clip(x, -3.4028235e+38, 3.4028235e+38)"},
		{11, node("Clip", "i", "y"), "Clip(x)"},
		{3, node("Concat", "i i", "y"), "Concat{axis=1}(x, x)"},
		{5, node("Selu", "i", "y", ir.Float("alpha", 2)), "Selu{alpha=2.0, gamma=1.0507}(x)"},
		{6, node("Selu", "i", "y"), "Selu(x)"},
	} {
		g := imported(t, model(c.version, &onnx.Graph{
			Inputs: []*onnx.ValueInfo{info("x", 2, 3)}, Outputs: []*onnx.ValueInfo{info("y", 2, -1)},
			Nodes: []*onnx.Node{node("Identity", "x", "i"), c.node},
		}))
		replace(t, g, "i", func(v *fgraph.Variable) *fgraph.Variable { return v.Owner().Inputs()[0] })
		if text := g.String(); !strings.Contains(text, c.want) {
			t.Errorf("version %d: %s, not %s", c.version, text, c.want)
		}
		out := exported(t, g)
		if n := out.Graph.Nodes[0]; c.node.Op == "Clip" && len(n.Attributes) != len(c.node.Attributes) {
			t.Errorf("version %d: %+v is written", c.version, n.Attributes)
		}
	}
}

// TestNameless: of results that nobody reads, those that ONNX lets a node leave out have no name, and others have.
func TestNameless(t *testing.T) {
	for _, c := range []struct {
		op   *onnx.Node
		want []bool
	}{
		{node("Split", "i", "y a", ir.Int("axis", 0)), []bool{true, true}},
		{node("Split", "i", "a y", ir.Int("axis", 0)), []bool{true, true}},
		{node("Unique", "i", "a b y"), []bool{true, false, true}},
		{node("Dropout", "i", "y a"), []bool{true, false}},
		{node("BatchNormalization", "i i i i i", "y a b", ir.Int("training_mode", 1)), []bool{true, true, true}},
		{node("LSTM", "z z z", "a y b"), []bool{false, true, false}},
		{&onnx.Node{Op: "F", Domain: "d", Inputs: []string{"i"}, Outputs: []string{"y", "a"}}, []bool{true, true}},
	} {
		m := model(15, &onnx.Graph{
			Inputs: []*onnx.ValueInfo{info("x", 2), info("z", 1, 1, 1)}, Outputs: []*onnx.ValueInfo{{Name: "y", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}}},
			Nodes: []*onnx.Node{node("Identity", "x", "i"), c.op},
		})
		m.Opsets = append(m.Opsets, &onnx.Opset{Domain: "d", Version: 1})
		g := imported(t, m)
		// As passes do that change a node: what nobody reads loses its name.
		for a := range g.Applies() {
			op := a.Op().(*ir.Op)
			if op.Type == "Identity" {
				continue
			}
			op = ir.Standard().NewOp(ir.Op{Type: op.Type, Domain: op.Domain, Attributes: append(slices.Clone(op.Attributes), ir.Int("k", 1)), Outputs: op.Outputs})
			b, err := ir.Standard().Apply(op, a.Inputs()...)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range a.Outputs() {
				if len(v.Clients()) > 0 {
					if err := g.Replace(v, b.Outputs()[i], fgraph.Reason{Pass: "test"}); err != nil {
						t.Fatal(err)
					}
				}
			}
			break
		}
		out := exported(t, g)
		got := out.Graph.Nodes[len(out.Graph.Nodes)-1].Outputs
		if len(got) != len(c.want) {
			t.Fatalf("%s has the results %q", c.op.Op, got)
		}
		for i, name := range got {
			if (name != "") != c.want[i] {
				t.Errorf("%s has the results %q", c.op.Op, got)
			}
		}
	}
}

// TestCaptured: a graph in an attribute knows values of the graph around it by the names that these
// have now.
func TestCaptured(t *testing.T) {
	body := &onnx.Graph{
		Name: "body", Inputs: []*onnx.ValueInfo{info("i"), info("go"), info("v", -1, 3)}, Outputs: []*onnx.ValueInfo{info("on"), info("next", -1, 3)},
		Nodes: []*onnx.Node{node("Identity", "go", "on"), node("Add", "v r", "next")},
	}
	m := model(16, &onnx.Graph{
		Inputs: []*onnx.ValueInfo{info("x", -1, 3)}, Outputs: []*onnx.ValueInfo{info("y", -1, 3), info("r", -1, 3)},
		Nodes: []*onnx.Node{
			node("Relu", "x", "r"), {Op: "Loop", Inputs: []string{"", "", "x"}, Outputs: []string{"y"}, Attributes: []*onnx.Attribute{graphAttribute("body", body)}},
		},
	})
	g := imported(t, m)
	replace(t, g, "r", func(v *fgraph.Variable) *fgraph.Variable { return v.Owner().Inputs()[0] })
	out := exported(t, g)
	loop := out.Graph.Nodes[slices.IndexFunc(out.Graph.Nodes, func(n *onnx.Node) bool { return n.Op == "Loop" })]
	if got := loop.Attributes[0].Graph.Nodes[1].Inputs; !slices.Equal(got, []string{"v", "x"}) {
		t.Errorf("the body adds %v", got)
	}
	if !slices.Equal(m.Graph.Nodes[1].Attributes[0].Graph.Nodes[1].Inputs, []string{"v", "r"}) {
		t.Error("the model that was imported has changed")
	}
}

// TestStrange: operators that nobody knows survive with all that they have.
func TestStrange(t *testing.T) {
	strange := &onnx.Node{Op: "Mystery", Domain: "org.example", Name: "m", Doc: "why", Inputs: []string{"x", "", "x"}, Outputs: []string{"a", "", "b"},
		Attributes: []*onnx.Attribute{ir.Float("f", 0.1), ir.String("s", "\"{}\x00")}}
	m := model(17, &onnx.Graph{
		Inputs: []*onnx.ValueInfo{info("x", -1, 3)}, Outputs: []*onnx.ValueInfo{info("y")},
		Nodes: []*onnx.Node{node("Identity", "x", "i"), strange, node("Identity", "a", "y")},
	})
	m.Opsets = append(m.Opsets, &onnx.Opset{Domain: "org.example", Version: 3})
	g := imported(t, m)
	replace(t, g, "y", func(v *fgraph.Variable) *fgraph.Variable { return v.Owner().Inputs()[0] })
	out := exported(t, g)
	n := out.Graph.Nodes[slices.IndexFunc(out.Graph.Nodes, func(n *onnx.Node) bool { return n.Op == "Mystery" })]
	if !slices.Equal(n.Inputs, strange.Inputs) || len(n.Outputs) != 3 || n.Outputs[0] != "y" || n.Doc != "why" || len(n.Attributes) != 2 || len(out.Opsets) != 2 {
		t.Errorf("the node is %+v", n)
	}
	op := ir.Standard()
	for a := range g.Applies() {
		if again, err := op.ParseOp(a.Op().String()); err != nil || !again.EqualOp(a.Op()) {
			t.Errorf("%v is read as %v, %v", a.Op(), again, err)
		}
	}
}

// TestModelFaults: all faults are named with their nodes.
func TestModelFaults(t *testing.T) {
	m := model(17, &onnx.Graph{
		Inputs: []*onnx.ValueInfo{info("x", 2, 3)}, Outputs: []*onnx.ValueInfo{info("y"), info("q")},
		Nodes: []*onnx.Node{node("MatMul", "x x", "a"), node("Relu", "nowhere", "b"), node("Add", "a b", "y"), {Op: "F", Domain: "d", Outputs: []string{"f"}}},
	})
	_, err := ir.Import(m, ir.Options{Shapes: map[string][]ir.Dim{"z": {ir.Known(1)}}})
	if !errors.Is(err, ir.ErrModel) {
		t.Fatal(err)
	}
	for _, want := range []string{"node 0, MatMul make a", "node 1, Relu make b: nothing computes its input nowhere", `domain "d"`, "output q: nothing computes it", "input z"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "node 2") {
		t.Errorf("a node whose inputs failed is no fault of its own: %v", err)
	}
}

// TestMovedAttributes: an attribute that became an input is one in all versions, so that types follow from it: of an
// old Reshape, too, and where a file has an attribute that its version lacks.
func TestMovedAttributes(t *testing.T) {
	for _, c := range []struct {
		opset int64
		node  *onnx.Node
		want  string
	}{
		{1, node("Reshape", "x", "y", ir.Ints("shape", 3, 2)), "Reshape(x, [3,2])"},
		{17, node("Squeeze", "x", "y", ir.Ints("axes", 0)), "Squeeze(x, [0])"},
	} {
		m := model(c.opset, &onnx.Graph{
			Inputs: []*onnx.ValueInfo{info("x", 1, 6)}, Outputs: []*onnx.ValueInfo{info("y", -1)}, Nodes: []*onnx.Node{c.node},
		})
		if text := imported(t, m).String(); !strings.Contains(text, c.want) {
			t.Errorf("version %d: %s, not %s", c.opset, text, c.want)
		}
	}
}
