package models

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// A chain is a model of n nodes, each of which reads what the one before computes, or of n that one node reads.
type chain struct {
	name  string
	nodes func(n int) []*onnx.Node
}

var chains = []chain{
	{"adds", func(n int) []*onnx.Node {
		return inRow(n, func(in, out string, _ int) []*onnx.Node {
			return []*onnx.Node{{Op: "Add", Inputs: []string{in, "x"}, Outputs: []string{out}}}
		})
	}},
	{"adds_of_constants", func(n int) []*onnx.Node {
		return inRow(n, func(in, out string, k int) []*onnx.Node {
			return []*onnx.Node{constant(out+"_c", int64(k)), {Op: "Cast", Inputs: []string{out + "_c"}, Outputs: []string{out + "_f"}, Attributes: []*onnx.Attribute{integer("to", int64(onnx.Float))}},
				{Op: "Add", Inputs: []string{in, out + "_f"}, Outputs: []string{out}}}
		})
	}},
	{"concats", func(n int) []*onnx.Node {
		return inRow(n, func(in, out string, _ int) []*onnx.Node {
			return []*onnx.Node{{Op: "Concat", Inputs: []string{in, "x"}, Outputs: []string{out}, Attributes: []*onnx.Attribute{integer("axis", 0)}}}
		})
	}},
	{"concats_of_new_sizes", func(n int) []*onnx.Node {
		return inRow(n, func(in, out string, k int) []*onnx.Node {
			return []*onnx.Node{{Op: "Abs", Inputs: []string{[]string{"x", "part"}[min(k, 1)]}, Outputs: []string{out + "_a"}}, {Op: "Compress", Inputs: []string{out + "_a", "c"}, Outputs: []string{out + "_z"}, Attributes: []*onnx.Attribute{integer("axis", 0)}},
				{Op: "Concat", Inputs: []string{in, out + "_z"}, Outputs: []string{out}, Attributes: []*onnx.Attribute{integer("axis", 0)}}}
		})
	}},
	{"slices", func(n int) []*onnx.Node {
		return append([]*onnx.Node{constant("one", 1), constant("end", 1<<40), constant("axis", 0)},
			inRow(n, func(in, out string, _ int) []*onnx.Node {
				return []*onnx.Node{{Op: "Slice", Inputs: []string{in, "one", "end", "axis"}, Outputs: []string{out}}}
			})...)
	}},
	{"concat_of_slices", func(n int) []*onnx.Node {
		list := []*onnx.Node{constant("b0", 0)}
		whole := &onnx.Node{Op: "Concat", Outputs: []string{"y"}, Attributes: []*onnx.Attribute{integer("axis", 0)}}
		for i := range n {
			end, out := fmt.Sprint("b", i+1), fmt.Sprint("a", i)
			list = append(list, constant(end, int64(i+1)), &onnx.Node{Op: "Slice", Inputs: []string{"x", fmt.Sprint("b", i), end, "b0"}, Outputs: []string{out}})
			whole.Inputs = append(whole.Inputs, out)
		}
		return append(list, whole)
	}},
	{"slices_of_concat", func(n int) []*onnx.Node {
		whole := &onnx.Node{Op: "Concat", Outputs: []string{"w"}, Attributes: []*onnx.Attribute{integer("axis", 0)}}
		sum := &onnx.Node{Op: "Max", Outputs: []string{"y"}}
		list := inRow(n, func(in, _ string, k int) []*onnx.Node {
			out := fmt.Sprint("a", k)
			whole.Inputs = append(whole.Inputs, out)
			return []*onnx.Node{{Op: []string{"Sin", "Cos"}[k%2], Inputs: []string{in}, Outputs: []string{out}}}
		})
		list = append(list, constant("axis", 0), whole)
		for k := range n {
			begin, end, out := fmt.Sprint("b", k), fmt.Sprint("e", k), fmt.Sprint("p", k)
			sum.Inputs = append(sum.Inputs, out)
			list = append(list, constant(begin, int64(k*(n+2))), constant(end, int64((k+1)*(n+2))), &onnx.Node{Op: "Slice", Inputs: []string{"w", begin, end, "axis"}, Outputs: []string{out}})
		}
		return append(list, sum)
	}},
	{"shapes", func(n int) []*onnx.Node {
		all := &onnx.Node{Op: "Sum", Outputs: []string{"y"}}
		list := inRow(n, func(in, _ string, k int) []*onnx.Node {
			out := fmt.Sprint("a", k)
			if k == 0 {
				in = "part"
			}
			all.Inputs = append(all.Inputs, out+"_f")
			return []*onnx.Node{{Op: []string{"Sin", "Cos"}[k%2], Inputs: []string{in}, Outputs: []string{out}}, {Op: "Shape", Inputs: []string{out}, Outputs: []string{out + "_s"}},
				{Op: "Cast", Inputs: []string{out + "_s"}, Outputs: []string{out + "_f"}, Attributes: []*onnx.Attribute{integer("to", int64(onnx.Float))}}}
		})
		return append(list, all)
	}},
	{"ifs", func(n int) []*onnx.Node {
		branch := func(name string, nodes ...*onnx.Node) *onnx.Attribute {
			out := nodes[len(nodes)-1].Outputs[0]
			return &onnx.Attribute{Name: name, Type: onnx.AttributeGraph, Graph: &onnx.Graph{Name: "g", Nodes: nodes, Outputs: []*onnx.ValueInfo{{Name: out}}}}
		}
		return append([]*onnx.Node{{Op: "ReduceMax", Inputs: []string{"x"}, Outputs: []string{"most"}, Attributes: []*onnx.Attribute{integer("keepdims", 0)}}},
			inRow(n, func(in, out string, k int) []*onnx.Node {
				return []*onnx.Node{constant(out+"_k", int64(k)), {Op: "Cast", Inputs: []string{out + "_k"}, Outputs: []string{out + "_f"}, Attributes: []*onnx.Attribute{integer("to", int64(onnx.Float))}},
					{Op: "Less", Inputs: []string{"most", out + "_f"}, Outputs: []string{out + "_c"}},
					{Op: "If", Inputs: []string{out + "_c"}, Outputs: []string{out}, Attributes: []*onnx.Attribute{
						branch("then_branch", &onnx.Node{Op: "Sin", Inputs: []string{"x"}, Outputs: []string{out + "_t"}}),
						branch("else_branch", &onnx.Node{Op: "Cos", Inputs: []string{in}, Outputs: []string{out + "_e"}})}}}
			})...)
	}},
	{"reshapes", func(n int) []*onnx.Node {
		// The sizes are found at run time, so none becomes one with the view before.
		return append([]*onnx.Node{{Op: "Cast", Inputs: []string{"part"}, Outputs: []string{"s0"}, Attributes: []*onnx.Attribute{integer("to", int64(onnx.Int64))}},
			constant("zero", 0), {Op: "Concat", Inputs: []string{"s0", "zero"}, Outputs: []string{"s1"}, Attributes: []*onnx.Attribute{integer("axis", 0)}}},
			inRow(n, func(in, out string, k int) []*onnx.Node {
				return []*onnx.Node{{Op: "Reshape", Inputs: []string{in, fmt.Sprint("s", k%2)}, Outputs: []string{out}}}
			})...)
	}},
}

// inRow returns nodes for x, for what those compute, and so on, to y.
func inRow(n int, nodes func(in, out string, k int) []*onnx.Node) (list []*onnx.Node) {
	in := "x"
	for k := range n {
		out := fmt.Sprint("a", k)
		if k == n-1 {
			out = "y"
		}
		list = append(list, nodes(in, out, k)...)
		in = out
	}
	return list
}

func constant(name string, n int64) *onnx.Node {
	return &onnx.Node{Op: "Constant", Outputs: []string{name}, Attributes: []*onnx.Attribute{{Name: "value_ints", Type: onnx.AttributeInts, Ints: []int64{n}}}}
}

func integer(name string, n int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeInt, Int: n}
}

// TestNestedLoops: loops in loops are optimized as long as they are few, which 2^25 are not.
func TestNestedLoops(t *testing.T) {
	value := func(name string, elem onnx.DataType, dims ...*onnx.Dim) *onnx.ValueInfo {
		return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: elem, Shape: &onnx.Shape{Dims: dims}}}}
	}
	depth := longtest.Of(16, 25)
	var nested func(depth int, in, out string) []*onnx.Node
	nested = func(depth int, in, out string) []*onnx.Node {
		if depth == 0 {
			return []*onnx.Node{{Op: "Neg", Inputs: []string{in}, Outputs: []string{out}}}
		}
		i, c, v, d, w := fmt.Sprint("i", depth), fmt.Sprint("c", depth), fmt.Sprint("v", depth), fmt.Sprint("d", depth), fmt.Sprint("w", depth)
		body := &onnx.Graph{Name: "body", Nodes: append(nested(depth-1, v, w), &onnx.Node{Op: "Identity", Inputs: []string{c}, Outputs: []string{d}}),
			Inputs: []*onnx.ValueInfo{value(i, onnx.Int64), value(c, onnx.Bool), value(v, onnx.Float)}, Outputs: []*onnx.ValueInfo{value(d, onnx.Bool), value(w, onnx.Float)}}
		return []*onnx.Node{{Op: "Loop", Inputs: []string{"n", "", in}, Outputs: []string{out}, Attributes: []*onnx.Attribute{{Name: "body", Type: onnx.AttributeGraph, Graph: body}}}}
	}
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{Name: "nested", Nodes: nested(depth, "x", "y"),
		Inputs: []*onnx.ValueInfo{value("x", onnx.Float), value("n", onnx.Int64)}, Outputs: []*onnx.ValueInfo{value("y", onnx.Float)}}}
	g, err := ir.Import(m, ir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := standard(t).Rewrite(t.Context(), g, nil); err != nil {
		t.Fatal(err)
	}
	if n := nodes(g); n >= 2*depth+1 { // with the Identities, of which some are gone
		t.Errorf("%d nodes, as before", n)
	}
}

// encoded returns the file of a chain.
func (c chain) encoded(t testing.TB, n int) []byte {
	t.Helper()
	value := func(name string, elem onnx.DataType, dims ...*onnx.Dim) *onnx.ValueInfo {
		return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: elem, Shape: &onnx.Shape{Dims: dims}}}}
	}
	size := &onnx.Dim{Value: new(int64(n + 2))}
	m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{
		Name: c.name, Nodes: c.nodes(n), Inputs: []*onnx.ValueInfo{value("x", onnx.Float, size), value("c", onnx.Bool, size), value("part", onnx.Float, &onnx.Dim{Param: "n"})},
		Outputs: []*onnx.ValueInfo{value("y", onnx.Float, &onnx.Dim{Param: "m"})},
	}}
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// standard returns the passes of the default query.
func standard(t testing.TB) *optdb.Optimizer {
	t.Helper()
	q, err := optdb.ParseQuery("+fast_run")
	if err != nil {
		t.Fatal(err)
	}
	opt, err := passes.Default().Build(q)
	if err != nil {
		t.Fatal(err)
	}
	return opt
}

// TestChainsAreLinear: reading, optimizing, writing and lowering a model that is eight times as large allocates
// about eight times as much. Bytes stand for time, which depends on what else the machine does.
func TestChainsAreLinear(t *testing.T) {
	opt := standard(t)
	small := longtest.Of(150, 3000)
	for _, c := range chains {
		t.Run(c.name, func(t *testing.T) {
			used := func(n int) uint64 {
				data := c.encoded(t, n)
				return alloctest.Bytes(func() {
					if err := pipeline(t.Context(), data, opt); err != nil {
						t.Fatal(err)
					}
				})
			}
			used(10) // rules are compiled when they are first used
			if a, b := used(small), used(8*small); b > 12*a {
				t.Errorf("%d nodes take %d bytes, and %d take %d, %d times as many", small, a, 8*small, b, b/a)
			}
		})
	}
}

// BenchmarkChains shows how time grows with the number of nodes.
func BenchmarkChains(b *testing.B) {
	opt := standard(b)
	for _, c := range chains {
		for _, n := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				data := c.encoded(b, n)
				for b.Loop() {
					if err := pipeline(b.Context(), data, opt); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
