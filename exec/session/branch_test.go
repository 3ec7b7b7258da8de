package session_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// either returns an If with branches of these nodes, whose results have the name r.
func either(condition, output string, then, otherwise []*onnx.Node) *onnx.Node {
	graph := func(name string, nodes []*onnx.Node) *onnx.Attribute {
		return &onnx.Attribute{Name: name, Type: onnx.AttributeGraph, Graph: &onnx.Graph{Nodes: nodes, Outputs: names("r")}}
	}
	return node("If", condition, output, graph("then_branch", then), graph("else_branch", otherwise))
}

// TestIf: one graph has both branches of an If whose condition depends on floats, and a run computes the one that is
// taken, whatever the other one does. Other Ifs make a graph for each condition.
func TestIf(t *testing.T) {
	positive := []*onnx.Node{constant("limit", array.Scalar(float32(2)), onnx.Float), node("ReduceSum", "x", "sum"), node("Greater", "sum limit", "more")}
	far := constant("far", array.Of([]int64{0, 1, 2}, 3), onnx.Int64)
	places := node("Gather", "x places", "r") // fails if there is no such place
	for name, c := range map[string]struct {
		nodes     []*onnx.Node
		yes, no   string // results for x = [1, 1, 1] and [0, 0, 0]
		functions int
	}{
		"floats": {append(positive, either("more", "y", []*onnx.Node{node("Add", "x x", "r")}, []*onnx.Node{node("Sub", "x limit", "r")})),
			"[2.0, 2.0, 2.0]", "[-2.0, -2.0, -2.0]", 1},
		"a branch that fails": {append(positive, far, node("Cast", "x", "whole", whole("to", int64(onnx.Int64))), node("Mul", "whole far", "ten"), node("Mul", "ten ten", "places"),
			either("more", "y", []*onnx.Node{node("Neg", "x", "r")}, []*onnx.Node{places})),
			"[-1.0, -1.0, -1.0]", "[0.0, 0.0, 0.0]", 1},
		"an If in an If": {append(positive, either("more", "z", []*onnx.Node{node("Neg", "x", "r")}, []*onnx.Node{
			node("Exp", "x", "e"), node("ReduceSum", "e", "s"), node("Greater", "s limit", "m"),
			either("m", "r", []*onnx.Node{node("Add", "e e", "r")}, []*onnx.Node{node("Identity", "x", "r")})}), node("Identity", "z", "y")),
			"[-1.0, -1.0, -1.0]", "[2.0, 2.0, 2.0]", 1},
		"other sizes": {append(positive, either("more", "y", []*onnx.Node{node("Neg", "x", "r")}, []*onnx.Node{node("ReduceSum", "x", "r")})),
			"[-1.0, -1.0, -1.0]", "[0.0]", 2},
		"a branch that asks for a value": {append(positive, node("Cast", "x", "places", whole("to", int64(onnx.Int64))), constant("one", array.Of([]int64{1}, 1), onnx.Int64),
			either("more", "y", []*onnx.Node{constant("k", array.Of([]int64{-1}, 1), onnx.Int64), node("Reshape", "x k", "r")}, []*onnx.Node{node("Add", "places one", "sizes"), node("Expand", "sum sizes", "r")})),
			"[1.0, 1.0, 1.0]", "[[[0.0]]]", 2},
		"integers": {append(positive[:2:2], node("Cast", "n", "more", whole("to", int64(onnx.Bool))),
			either("more", "y", []*onnx.Node{node("Neg", "x", "r")}, []*onnx.Node{node("Add", "x limit", "r")})),
			"[-1.0, -1.0, -1.0]", "[2.0, 2.0, 2.0]", 2},
	} {
		for _, query := range []string{"none", "fast_run", "debug"} {
			t.Run(name+"/"+query, func(t *testing.T) {
				m := model([]string{"x"}, []string{"y"}, c.nodes...)
				m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: "n"})
				s := session.New(m, session.Options{Optimizer: build(t, query)})
				made := make(map[*session.Function]bool)
				for _, yes := range []bool{true, false, true, true, false} {
					v, n, want := float32(0), int64(0), c.no
					if yes {
						v, n, want = 1, 1, c.yes
					}
					f, out, err := s.Run(t.Context(), map[string]*array.Array{"x": array.Of([]float32{v, v, v}, 3), "n": array.Scalar(n)})
					if err != nil {
						t.Fatal(err)
					}
					made[f] = true
					if got := out["y"].String(); got != want {
						t.Errorf("%v: %s, want %s", yes, got, want)
					}
				}
				if len(made) != c.functions {
					t.Errorf("%d functions, want %d", len(made), c.functions)
				}
			})
		}
	}
}

// TestIfInLoop: a loop whose rounds take different branches is one op.
func TestIfInLoop(t *testing.T) {
	body := &onnx.Graph{Inputs: names("i", "c", "s"), Outputs: names("more", "next"), Nodes: []*onnx.Node{
		constant("limit", array.Of([]float32{10}, 1), onnx.Float), node("Less", "s limit", "small"),
		either("small", "next", []*onnx.Node{node("Add", "s s", "r")}, []*onnx.Node{node("Add", "s limit", "r")}),
		constant("end", array.Of([]float32{10000}, 1), onnx.Float), node("Less", "next end", "more")}}
	m := model([]string{"x"}, []string{"y"}, node("Loop", "  x", "y", &onnx.Attribute{Name: "body", Type: onnx.AttributeGraph, Graph: body}))
	for _, query := range []string{"none", "fast_run"} {
		f, err := session.Model(t.Context(), m, session.Options{Optimizer: build(t, query)}, map[string]*array.Array{"x": array.Of([]float32{1}, 1)})
		if err != nil {
			t.Fatal(err)
		}
		if text := f.Graph().String(); !strings.Contains(text, "Rounds") {
			t.Errorf("%s: the loop is unrolled: %s", query, text)
		}
		for x, want := range map[float32]string{1: "[10006.0]", 3: "[10002.0]", 20: "[10000.0]"} {
			out, err := f.Call(t.Context(), map[string]*array.Array{"x": array.Of([]float32{x}, 1)})
			if err != nil || out["y"].String() != want {
				t.Errorf("%s: %v, want %s (%v)", query, out["y"], want, err)
			}
		}
	}
}
