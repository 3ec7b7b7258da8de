package ir_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
)

// function returns a function of the domain local, for version 17 of ONNX's operators.
func function(name, inputs, outputs string, nodes ...*onnx.Node) *onnx.Function {
	return &onnx.Function{
		Name: name, Domain: "local", Inputs: strings.Fields(inputs), Outputs: strings.Fields(outputs), Nodes: nodes,
		Opsets: []*onnx.Opset{{Version: 17}, {Domain: "local", Version: 1}},
	}
}

// calling returns a node that calls a function.
func calling(name, inputs, outputs string, attributes ...*onnx.Attribute) *onnx.Node {
	n := node(name, inputs, outputs, attributes...)
	n.Domain = "local"
	return n
}

// withFunctions returns a model of nodes whose first is "i = Identity(x)", of which c is a condition, and
// whose result is y.
func withFunctions(nodes []*onnx.Node, functions ...*onnx.Function) *onnx.Model {
	cond := &onnx.ValueInfo{Name: "c", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Bool, Shape: new(onnx.Shape)}}}
	m := model(17, &onnx.Graph{
		Inputs: []*onnx.ValueInfo{cond, info("x", -1, 3)}, Outputs: []*onnx.ValueInfo{info("y", -1, 3)},
		Nodes: slices.Concat([]*onnx.Node{node("Identity", "x", "i")}, nodes),
	})
	m.Opsets = append(m.Opsets, &onnx.Opset{Domain: "local", Version: 1})
	m.Functions = functions
	return m
}

// instead replaces a value by what the operator computes from the same inputs.
func instead(t *testing.T, op string) func(v *fgraph.Variable) *fgraph.Variable {
	return func(v *fgraph.Variable) *fgraph.Variable {
		w, err := ir.Standard().Make(op, nil, v.Owner().Inputs()...)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
}

// operand replaces a value by the first input of what computes it.
func operand(v *fgraph.Variable) *fgraph.Variable { return v.Owner().Inputs()[0] }

func named(functions []*onnx.Function) string {
	names := make([]string, len(functions))
	for i, f := range functions {
		names[i] = f.Name
	}
	return strings.Join(names, " ")
}

// byReference returns an attribute that is one of the function around it.
func byReference(name, of string, typ onnx.AttributeType) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Ref: of, Type: typ}
}

// TestKeptFunctions: calls are written again if nothing that they became has changed, else without the
// function, and the functions that are called stay as they are.
func TestKeptFunctions(t *testing.T) {
	f := func() *onnx.Function {
		return function("f", "a b", "q", node("Mul", "a b", "p"), node("Neg", "p", "q"))
	}
	outer := function("outer", "a b", "q", calling("f", "a b", "r"), node("Exp", "r", "q"))
	several := function("several", "a b", "q r s", node("Mul", "a b", "q"), node("Neg", "q", "r"), node("Abs", "a", "s"))
	optional := function("optional", "a b lo", "q", node("Neg", "b", "n"), node("Clip", "n lo a", "q"))
	scaled := function("scaled", "a", "q", node("LeakyRelu", "a", "l", byReference("alpha", "alpha", onnx.AttributeFloat)), node("Elu", "l", "q", byReference("alpha", "beta", onnx.AttributeFloat)))
	scaled.Attributes, scaled.Defaults = []string{"alpha"}, []*onnx.Attribute{ir.Float("beta", 2)}
	ifs := function("ifs", "c a", "q", node("If", "c", "q", graphAttribute("then_branch", inner("ta", "Neg", "a")), graphAttribute("else_branch", inner("ea", "Exp", "a"))))
	branch := func(out string, n *onnx.Node) *onnx.Graph {
		return &onnx.Graph{Name: out, Nodes: []*onnx.Node{n}, Outputs: []*onnx.ValueInfo{info(out, -1, 3)}}
	}
	for _, c := range []struct {
		name      string
		nodes     []*onnx.Node
		functions []*onnx.Function
		change    string // value whose operator becomes Sin
		ops, kept string
	}{
		{"unchanged", []*onnx.Node{calling("f", "i x", "y")}, []*onnx.Function{f()}, "", "f", "f"},
		{"changed", []*onnx.Node{calling("f", "i x", "k"), calling("f", "k x", "y")}, []*onnx.Function{f()}, "k", "Mul Sin f", "f"},
		{"not called", []*onnx.Node{calling("f", "i x", "y")}, []*onnx.Function{f()}, "y", "Mul Sin", ""},
		{"nested", []*onnx.Node{calling("outer", "i x", "y")}, []*onnx.Function{outer, f()}, "", "outer", "outer f"},
		{"nested, changed", []*onnx.Node{calling("outer", "i x", "y")}, []*onnx.Function{outer, f()}, "y", "f Sin", "f"},
		{"unused outputs", []*onnx.Node{calling("several", "i x", "a b z"), node("Exp", "b", "y")}, []*onnx.Function{several}, "", "several Exp", "several"},
		{"left-out output", []*onnx.Node{{Op: "several", Domain: "local", Inputs: []string{"i", "x"}, Outputs: []string{"", "y"}}}, []*onnx.Function{several}, "", "several", "several"},
		{"left-out input", []*onnx.Node{{Op: "optional", Domain: "local", Inputs: []string{"", "i"}, Outputs: []string{"y"}}}, []*onnx.Function{optional}, "", "optional", "optional"},
		{"attributes", []*onnx.Node{calling("scaled", "i", "k", ir.Float("alpha", 0.5)), calling("scaled", "k", "y", ir.Float("alpha", 0.1), ir.Float("beta", 3))},
			[]*onnx.Function{scaled}, "", "scaled scaled", "scaled"},
		{"branches in it", []*onnx.Node{node("Tan", "i", "k"), calling("ifs", "c k", "y")}, []*onnx.Function{ifs}, "", "Tan ifs", "ifs"},
		{"in a branch", []*onnx.Node{node("If", "c", "y", graphAttribute("then_branch", branch("t", calling("f", "i x", "t"))), graphAttribute("else_branch", branch("e", node("Neg", "i", "e"))))},
			[]*onnx.Function{f()}, "", "If[f][Neg]", "f"},
		{"in a body", []*onnx.Node{looping(calling("f", "v x", "next"))}, []*onnx.Function{f()}, "", "Loop[Identity f]", "f"},
		{"an input that nothing reads or computes", []*onnx.Node{node("Tan", "x", "d"), calling("unread", "i d", "y")}, []*onnx.Function{function("unread", "a b", "q", node("Neg", "a", "q"))}, "", "unread", "unread"},
		{"the same input twice", []*onnx.Node{calling("f", "i i", "y")}, []*onnx.Function{f()}, "", "f", "f"},
	} {
		m := withFunctions(c.nodes, c.functions...)
		g := imported(t, m)
		replace(t, g, "i", operand)
		if c.change != "" {
			replace(t, g, c.change, func(v *fgraph.Variable) *fgraph.Variable {
				w, err := ir.Standard().Make("Sin", nil, v.Owner().Inputs()[0])
				if err != nil {
					t.Fatal(err)
				}
				return w
			})
		}
		out := exported(t, g)
		if got := ops(out.Graph); got != c.ops {
			t.Errorf("%s: %s, not %s", c.name, got, c.ops)
		}
		if got := named(out.Functions); got != c.kept {
			t.Errorf("%s: the functions %s, not %s", c.name, got, c.kept)
		}
		for _, f := range out.Functions {
			if !slices.Contains(m.Functions, f) {
				t.Errorf("%s: the function %s is another one", c.name, f.Name)
			}
		}
		for v := range imported(t, out).Variables() {
			if v.Name() == "i" {
				t.Errorf("%s: the node that was replaced is there", c.name)
			}
		}
	}
}

// looping returns a Loop whose body has a node that computes next, from v or not.
func looping(n *onnx.Node) *onnx.Node {
	count := &onnx.ValueInfo{Name: "round", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Int64, Shape: new(onnx.Shape)}}}
	going := &onnx.ValueInfo{Name: "going", Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Bool, Shape: new(onnx.Shape)}}}
	on := *going
	on.Name = "on"
	return node("Loop", "_ c i", "y", graphAttribute("body", &onnx.Graph{
		Name: "body", Inputs: []*onnx.ValueInfo{count, going, info("v", -1, 3)}, Outputs: []*onnx.ValueInfo{&on, info("next", -1, 3)},
		Nodes: []*onnx.Node{node("Identity", "going", "on"), n},
	}))
}

// TestLeftOutInputs: a call in the main graph leaves out what the model leaves out in the same place, because
// ONNX's checker finds no types of others.
func TestLeftOutInputs(t *testing.T) {
	clip := function("clip", "lo a hi", "q", node("Neg", "a", "n"), node("Clip", "n lo hi", "q"))
	deaf := function("deaf", "a b", "q", node("Neg", "b", "q"))
	over := func(n *onnx.Node) *onnx.Function { return function("over", "a b", "q", n, node("Exp", "r", "q")) }
	choice := func(n *onnx.Node) *onnx.Node {
		n.Outputs = []string{"t"}
		then := &onnx.Graph{Name: "t", Nodes: []*onnx.Node{n}, Outputs: []*onnx.ValueInfo{info("t", -1, 3)}}
		return node("If", "c", "y", graphAttribute("then_branch", then), graphAttribute("else_branch", inner("e", "Abs", "i")))
	}
	changed := instead(t, "Sin")
	apply := func(op fgraph.Op, origin int, inputs ...*fgraph.Variable) *fgraph.Variable {
		a, err := ir.Standard().Apply(op.(*ir.Op), inputs...)
		if err != nil {
			t.Fatal(err)
		}
		a.SetOrigin(origin)
		return a.Out()
	}
	for _, c := range []struct {
		name   string
		node   *onnx.Node
		more   []*onnx.Function
		change func(v *fgraph.Variable) *fgraph.Variable // y
		ops    string
	}{
		{"in the model", calling("clip", "_ i lo", "y"), nil, nil, "ReduceMax clip"},
		{"at the end", calling("clip", "lo i", "y"), nil, nil, "ReduceMax clip"},
		{"in a function", calling("over", "i lo", "y"), []*onnx.Function{over(calling("clip", "_ a b", "r"))}, nil, "ReduceMax over"},
		{"out of a function", calling("over", "i lo", "y"), []*onnx.Function{over(calling("clip", "_ a b", "r"))}, changed, "ReduceMax Neg Clip Sin"},
		{"fewer, out of a function", calling("over", "i lo", "y"), []*onnx.Function{over(calling("clip", "b a", "r"))}, changed, "ReduceMax Neg Clip Sin"},
		{"nothing, out of a function", calling("over", "i lo", "y"), []*onnx.Function{over(calling("clip", "b a b", "r"))}, changed, "ReduceMax clip Sin"},
		{"in a branch", choice(calling("clip", "_ i lo", "")), nil, nil, "If[ReduceMax clip][Abs]"},
		{"out of a branch", choice(calling("clip", "_ i lo", "")), nil, func(v *fgraph.Variable) *fgraph.Variable { return v.Owner().Inputs()[1] }, "ReduceMax Neg Clip"},
		{"out of a function in a branch", choice(calling("over", "i lo", "")), []*onnx.Function{over(calling("clip", "_ a b", "r"))},
			func(v *fgraph.Variable) *fgraph.Variable {
				in := v.Owner().Inputs()
				return apply(v.Owner().Op(), -1, in[0], changed(in[1]), in[2])
			}, "If[ReduceMax clip Sin][Abs]"},
		{"in a body", looping(calling("clip", "_ i lo", "next")), nil, nil, "ReduceMax Loop[Identity clip]"},
		{"out of a body", looping(calling("clip", "_ i lo", "next")), nil,
			func(v *fgraph.Variable) *fgraph.Variable {
				body, captured := v.Owner().Op().(*ir.Op).Bodies[0].Graph, v.Owner().Inputs()[3:]
				clip := valueOf(t, body, "next").Owner()
				neg := clip.Inputs()[0].Owner()
				return apply(clip.Op(), clip.Origin(), apply(neg.Op(), neg.Origin(), captured[0]), nil, captured[1])
			}, "Neg ReduceMax Clip"},
		{"one of several", calling("clip", "_ i lo", "y"), []*onnx.Function{{Name: "clip", Domain: "local", Overload: "other", Opsets: clip.Opsets}}, nil, "ReduceMax Neg Clip"},
		{"that nothing reads", calling("deaf", "d i", "y"), nil, nil, "deaf"},
	} {
		m := withFunctions([]*onnx.Node{node("ReduceMax", "x", "lo", ir.Int("keepdims", 0)), node("Tan", "x", "d"), c.node}, append(c.more, clip, deaf)...)
		g := imported(t, m)
		replace(t, g, "i", operand)
		if c.change != nil {
			replace(t, g, "y", c.change)
		}
		out := exported(t, g)
		if got := ops(out.Graph); got != c.ops {
			t.Errorf("%s: %s, not %s", c.name, got, c.ops)
		}
		for _, n := range out.Graph.Nodes {
			if n.Op == "deaf" && !slices.Equal(n.Inputs, []string{"x", "x"}) {
				t.Errorf("%s: the inputs %q", c.name, n.Inputs)
			}
		}
	}
}

// inner returns a graph of one node.
func inner(out, op, in string) *onnx.Graph {
	return &onnx.Graph{Name: out, Nodes: []*onnx.Node{node(op, in, out)}, Outputs: []*onnx.ValueInfo{info(out, -1, 3)}}
}

// TestRedefinedNames: a function in whose graphs names are those of values around them, which ONNX forbids, is
// not called where something changed, and neither is one that calls it: ONNX Runtime may refuse it.
func TestRedefinedNames(t *testing.T) {
	for _, c := range []struct{ name, ops string }{{"fine", "outer Sin"}, {"q", "Neg If[Exp][Abs] Sin"}} {
		f := function("f", "c a", "q", node("Neg", "a", "n"),
			node("If", "c", "r", graphAttribute("then_branch", inner(c.name, "Exp", "n")), graphAttribute("else_branch", inner("e", "Abs", "n"))), node("Identity", "r", "q"))
		outer := function("outer", "c a", "p", calling("f", "c a", "p"))
		g := imported(t, withFunctions([]*onnx.Node{calling("outer", "c i", "k"), node("Tan", "k", "y")}, outer, f))
		replace(t, g, "i", operand)
		replace(t, g, "y", instead(t, "Sin"))
		if got := strings.Replace(ops(exported(t, g).Graph), " Identity", "", 1); got != c.ops {
			t.Errorf("%s: %s, not %s", c.name, got, c.ops)
		}
	}
}

// TestMergedCalls: a call whose results are those of another one is gone.
func TestMergedCalls(t *testing.T) {
	f := function("f", "a b", "q", node("Mul", "a b", "p"), node("Neg", "p", "q"))
	g := imported(t, withFunctions([]*onnx.Node{calling("f", "i x", "k"), calling("f", "i x", "l"), node("Add", "k l", "y")}, f))
	replace(t, g, "l", func(*fgraph.Variable) *fgraph.Variable { return valueOf(t, g, "k") })
	if got, want := ops(exported(t, g).Graph), "Identity f Add"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func valueOf(t *testing.T, g *fgraph.FunctionGraph, name string) *fgraph.Variable {
	t.Helper()
	for v := range g.Variables() {
		if v.Name() == name {
			return v
		}
	}
	t.Fatalf("there is no value %s", name)
	return nil
}

// TestCallsInCircles: calls that would depend on each other, which what they became does not, are not
// written again, and neither is one whose inner value is read outside.
func TestCallsInCircles(t *testing.T) {
	f := function("f", "a b", "q r", node("Neg", "a", "q"), node("Exp", "b", "r"))
	nodes := []*onnx.Node{calling("f", "i i", "k l"), calling("f", "i i", "m n"), node("Sum", "k l m n", "y")}
	g := imported(t, withFunctions(nodes, f))
	// The second result of each depends on the first one of the other.
	replace(t, g, "l", func(*fgraph.Variable) *fgraph.Variable { return exp(t, valueOf(t, g, "m")) })
	replace(t, g, "n", func(*fgraph.Variable) *fgraph.Variable { return exp(t, valueOf(t, g, "k")) })
	if got := ops(exported(t, g).Graph); strings.Contains(got, "f") {
		t.Errorf("the nodes are %s", got)
	}
	chain := function("chain", "a", "q", node("Neg", "a", "p"), node("Exp", "p", "q"))
	g = imported(t, withFunctions([]*onnx.Node{calling("chain", "i", "k"), node("Tan", "i", "l"), node("Add", "k l", "y")}, chain))
	replace(t, g, "l", func(*fgraph.Variable) *fgraph.Variable { return valueOf(t, g, "p") })
	if got, want := ops(exported(t, g).Graph), "Identity Neg Exp Add"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func exp(t *testing.T, v *fgraph.Variable) *fgraph.Variable {
	w, err := ir.Standard().Make("Exp", nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestInlinedVersions: a node of a function for another version of the operators is written in a function
// of its own if the model's version lacks what it means.
func TestInlinedVersions(t *testing.T) {
	old := function("f", "a", "q", node("PRelu", "a a", "s"), node("Neg", "s", "q"))
	old.Opsets[0].Version = 6
	m := withFunctions([]*onnx.Node{calling("f", "i", "k"), calling("f", "k", "l"), node("Exp", "l", "y")}, old)
	g := imported(t, m)
	replace(t, g, "k", instead(t, "Tan"))
	replace(t, g, "l", instead(t, "Tan"))
	out := exported(t, g)
	if got, want := ops(out.Graph), "Identity PRelu_6 Tan PRelu_6 Tan Exp"; got != want || named(out.Functions) != "PRelu_6" {
		t.Errorf("%s with the functions %s, not %s", got, named(out.Functions), want)
	}
	if f := out.Functions[0]; f.Opsets[0].Version != 6 || f.Domain == "local" || len(f.Nodes) != 1 {
		t.Errorf("the function is %+v", f)
	}
	if text := imported(t, out).String(); strings.Count(text, "PRelu@6") != 2 {
		t.Errorf("it is read as %s", text)
	}
	m.IRVersion = 7
	if _, err := ir.Export(g); err == nil || !strings.Contains(err.Error(), "version 7 of the file format has no functions") {
		t.Errorf("the error is %v", err)
	}
	// Only what the model itself has keeps it from being raised.
	if s := ir.SourceOf(g); !s.Permits("LayerNormalization") {
		t.Error("the model can't be raised")
	}
	// A Softmax over several dimensions can be written with nodes of the model's version, which ONNX Runtime
	// takes nodes of functions for. Until version 13 it meant the same.
	old = function("f", "a", "q", node("Softmax", "a", "s", ir.Int("axis", 0)), node("Neg", "s", "q"))
	old.Opsets[0].Version = 11
	for opset, want := range map[int64]string{12: "Softmax Tan", 13: "Softmax_11 Tan"} {
		m := withFunctions([]*onnx.Node{calling("f", "i", "y")}, old)
		m.Opsets[0].Version = opset
		g := imported(t, m)
		replace(t, g, "i", operand)
		replace(t, g, "y", instead(t, "Tan"))
		out := exported(t, g)
		if got := ops(out.Graph); got != want {
			t.Errorf("version %d: %s, not %s", opset, got, want)
		}
		if text := imported(t, out).String(); opset == 12 && !strings.Contains(text, "Softmax@12{axis=0}") || opset == 13 && !strings.Contains(text, "Reshape(Softmax{axis=1}(Flatten{axis=0}(") {
			t.Errorf("version %d: it is read as %s", opset, text)
		}
	}
	// The model is raised for a newer operator if it can be, else that is in a function of its own.
	newer := function("f", "a", "q", node("Mish", "a", "s"), node("Neg", "s", "q"))
	newer.Opsets[0].Version = 18
	for _, c := range []struct {
		axis    int64
		opset   int64
		ops     string
		version int64
	}{{1, 12, "Softmax Mish Tan", 18}, {0, 12, "Softmax Mish_18 Tan", 12}} {
		m := withFunctions([]*onnx.Node{node("Softmax", "i", "s", ir.Int("axis", c.axis)), calling("f", "s", "y")}, newer)
		m.Opsets[0].Version = c.opset
		g := imported(t, m)
		replace(t, g, "i", operand)
		replace(t, g, "y", instead(t, "Tan"))
		out := exported(t, g)
		if got := ops(out.Graph); got != c.ops || out.Opsets[0].Version != c.version {
			t.Errorf("version %d: %s, not %s of version %d", out.Opsets[0].Version, got, c.ops, c.version)
		}
		imported(t, out)
	}
}

// TestInlinedForms: attributes of operators are written only for versions that have them.
func TestInlinedForms(t *testing.T) {
	f := function("f", "a s", "q", node("Reshape", "a s", "r", ir.Int("allowzero", 1)), node("Neg", "r", "q"))
	shape := info("s", 2)
	shape.Type.Tensor.Elem = onnx.Int64
	m := withFunctions([]*onnx.Node{calling("f", "i s", "y")}, f)
	m.Graph.Inputs = append(m.Graph.Inputs, shape)
	m.Opsets[0].Version = 13
	g := imported(t, m)
	replace(t, g, "y", instead(t, "Tan"))
	if out := exported(t, g); out.Opsets[0].Version != 14 {
		t.Errorf("the version is %d, in which Reshape has no attribute allowzero", out.Opsets[0].Version)
	}
}

// TestInlinedDomains: domains that only a function has are those of the model if it has nodes of them.
func TestInlinedDomains(t *testing.T) {
	strange := node("Mystery", "a", "s")
	strange.Domain = "org.example"
	f := function("f", "a", "q", strange, node("Neg", "s", "q"))
	f.Opsets = append(f.Opsets, &onnx.Opset{Domain: "org.example", Version: 3})
	m := withFunctions([]*onnx.Node{calling("f", "i", "y")}, f)
	g := imported(t, m)
	replace(t, g, "i", operand)
	if out := exported(t, g); ops(out.Graph) != "f" || len(out.Opsets) != 2 {
		t.Errorf("%s with the domains %v", ops(out.Graph), out.Opsets)
	}
	replace(t, g, "y", instead(t, "Tan"))
	out := exported(t, g)
	if got := ops(out.Graph); got != "Mystery Tan" || len(out.Opsets) != 3 || out.Opsets[2].Domain != "org.example" || out.Opsets[2].Version != 3 {
		t.Errorf("%s with the domains %v", got, out.Opsets)
	}
	if len(m.Opsets) != 2 {
		t.Error("the model that was imported has changed")
	}
	// A rule may make nodes of a domain that nothing in the model has.
	g = imported(t, withFunctions([]*onnx.Node{calling("f", "i", "y")}, f))
	replace(t, g, "y", func(v *fgraph.Variable) *fgraph.Variable {
		operators := ir.Standard()
		a, err := operators.Apply(operators.NewOp(ir.Op{Domain: "com.microsoft", Type: "FastGelu", Outputs: 1}), v.Owner().Inputs()...)
		if err != nil {
			t.Fatal(err)
		}
		return a.Out()
	})
	if out := exported(t, g); !slices.ContainsFunc(out.Opsets, func(o *onnx.Opset) bool { return o.Domain == "com.microsoft" && o.Version == 1 }) {
		t.Errorf("%s with the domains %v", ops(out.Graph), out.Opsets)
	}
	// A model of calls alone has no version of ONNX's operators.
	m = withFunctions([]*onnx.Node{calling("f", "x", "y")}, f)
	m.Graph.Nodes, m.Opsets = m.Graph.Nodes[1:], m.Opsets[1:]
	g = imported(t, m)
	replace(t, g, "y", instead(t, "Tan"))
	if out := exported(t, g); ops(out.Graph) != "Mystery Tan" || len(out.Opsets) != 3 || out.Opsets[1].Domain != "" || out.Opsets[1].Version != 17 {
		t.Errorf("%s with the domains %v", ops(out.Graph), out.Opsets)
	}
}

// TestUnorderedNodes: nodes may come before those whose results they use, in functions and branches, too.
func TestUnorderedNodes(t *testing.T) {
	f := function("f", "a", "q", node("Neg", "p", "q"), node("Exp", "a", "p"))
	m := withFunctions([]*onnx.Node{node("Tan", "k", "y"), calling("f", "i", "k")}, f)
	slices.Reverse(m.Graph.Nodes)
	g, err := ir.Import(m, ir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := ir.Export(g); err != nil || ops(out.Graph) != "Identity f Tan" {
		t.Fatalf("the nodes are %s: %v", ops(out.Graph), err)
	}
	replace(t, g, "y", operand)
	out, err := ir.Export(g)
	if err != nil {
		t.Fatal(err)
	}
	if got := ops(out.Graph); got != "Identity f" {
		t.Errorf("the nodes are %s", got)
	}
	m = withFunctions([]*onnx.Node{node("Tan", "k", "y"), node("Exp", "y", "k")})
	if _, err := ir.Import(m, ir.Options{}); err == nil || !strings.Contains(err.Error(), "depends on its own results") {
		t.Errorf("nodes in a circle: %v", err)
	}
}

// TestSiblingSymbols: sizes that are not known are different ones in graphs that don't see each other,
// though the values have the same name.
func TestSiblingSymbols(t *testing.T) {
	branch := func(k string) *onnx.Graph {
		return &onnx.Graph{Name: k, Nodes: []*onnx.Node{node("NonZero", k, "n"), node("ReduceSum", "n", "s")}, Outputs: []*onnx.ValueInfo{info("s", 1, 1)}}
	}
	m := withFunctions([]*onnx.Node{node("Exp", "i", "j"), node("If", "c", "y", graphAttribute("then_branch", branch("i")), graphAttribute("else_branch", branch("j")))})
	var types []string
	for v := range imported(t, m).Variables() {
		if v.Name() == "n" {
			types = append(types, v.Type().String())
		}
	}
	if len(types) != 2 || types[0] == types[1] {
		t.Errorf("the types are %q", types)
	}
}

// TestRecursion: a function that calls itself is one fault, and nothing is made of functions that would be
// very many nodes.
func TestRecursion(t *testing.T) {
	m := withFunctions([]*onnx.Node{calling("f", "i", "k"), calling("g", "k", "y")},
		function("f", "a", "q", calling("g", "a", "p"), calling("g", "p", "q")), function("g", "a", "q", calling("f", "a", "p"), calling("f", "p", "q")))
	_, err := ir.Import(m, ir.Options{})
	if err == nil || strings.Count(err.Error(), "calls itself") != 1 || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("the error is %v", err)
	}
	doubling := []*onnx.Function{function("f20", "a", "q", node("Neg", "a", "q"))}
	for k := range 20 {
		name, next := "f"+string(rune('a'+k)), doubling[len(doubling)-1].Name
		doubling = append(doubling, function(name, "a", "q", calling(next, "a", "p"), calling(next, "p", "q")))
	}
	_, err = ir.Import(withFunctions([]*onnx.Node{calling(doubling[20].Name, "i", "y")}, doubling...), ir.Options{})
	if err == nil || strings.Count(err.Error(), "more than") != 1 {
		t.Errorf("%.300v", err)
	}
}

// TestEffects: what nothing is known of may do something else each time, and so may what holds it.
func TestEffects(t *testing.T) {
	strange := func(in, out string) *onnx.Node {
		n := node("Mystery", in, out)
		n.Domain = "org.example"
		return n
	}
	for _, c := range []struct {
		inner *onnx.Node
		want  bool
	}{{strange("v", "next"), true}, {node("RandomNormalLike", "v", "next"), true}, {node("Neg", "v", "next"), false}} {
		body := &onnx.Graph{
			Name: "body", Inputs: []*onnx.ValueInfo{info("r"), info("going"), info("v", -1, 3)}, Outputs: []*onnx.ValueInfo{info("on"), info("next", -1, 3)},
			Nodes: []*onnx.Node{node("Identity", "going", "on"), c.inner},
		}
		m := withFunctions([]*onnx.Node{node("Loop", "_ c i", "y", graphAttribute("body", body))})
		m.Opsets = append(m.Opsets, &onnx.Opset{Domain: "org.example", Version: 1})
		for a := range imported(t, m).Applies() {
			if op := a.Op().(*ir.Op); op.Unmergeable() != (c.want && op.Type == "Loop") {
				t.Errorf("%s around %s: %v", op.Type, c.inner.Op, op.Unmergeable())
			}
		}
	}
}

// TestSpecialize: a copy for other sizes has their types, and writes calls as the graph does.
func TestSpecialize(t *testing.T) {
	f := function("f", "a b", "q", node("Concat", "a b", "p", ir.Int("axis", 0)), node("Neg", "p", "q"))
	m := withFunctions([]*onnx.Node{calling("f", "i x", "y")}, f)
	m.Graph.Outputs[0] = info("y", -1, 3)
	g := imported(t, m)
	s, err := ir.Specialize(g, map[string][]ir.Dim{"x": {ir.Known(4), ir.Known(3)}})
	if err != nil {
		t.Fatal(err)
	}
	if got := ir.TypeOf(s.Outputs()[0]).String(); got != "float[8,3]" {
		t.Errorf("the result is %s", got)
	}
	if got := ops(exported(t, s).Graph); got != "Identity f" {
		t.Errorf("the nodes are %s", got)
	}
	if _, err := ir.Specialize(g, map[string][]ir.Dim{"z": nil}); err == nil {
		t.Error("there is no input z")
	}
	if _, err := ir.Specialize(g, map[string][]ir.Dim{"x": {ir.Known(4)}}); err == nil {
		t.Error("x has two dimensions")
	}
}

// TestRaisedWithFunctions: in a model that is raised, functions for the version that it had are not called:
// ONNX Runtime would take their nodes for those of the new version.
func TestRaisedWithFunctions(t *testing.T) {
	f := func(name string, version int64) *onnx.Function {
		f := function(name, "a", "q", node("Neg", "a", "p"), node("Exp", "p", "q"))
		f.Opsets[0].Version = version
		return f
	}
	m := withFunctions([]*onnx.Node{calling("f", "i", "j"), calling("g", "j", "k"), node("Tan", "k", "y")}, f("f", 12), f("g", 14))
	m.Opsets[0].Version = 12
	g := imported(t, m)
	replace(t, g, "y", instead(t, "Sin"))
	if got, want := ops(exported(t, g).Graph), "Identity f g Sin"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	replace(t, g, "y", instead(t, "HardSwish"))
	out := exported(t, g)
	if got, want := ops(out.Graph), "Identity Neg Exp g HardSwish"; got != want || out.Opsets[0].Version != 14 || named(out.Functions) != "g" {
		t.Errorf("version %d: %s with the functions %s, not %s", out.Opsets[0].Version, got, named(out.Functions), want)
	}
}
