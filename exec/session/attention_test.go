package session_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestAttention: attention as a node, and as exporters write it with several, is one op that stores no
// scores, with the bits of its parts.
func TestAttention(t *testing.T) {
	real := func(name string, v float32) *onnx.Attribute {
		return &onnx.Attribute{Name: name, Type: onnx.AttributeFloat, Float: v}
	}
	sizes := func(name string, v ...int64) *onnx.Node {
		return constant(name, array.Of(v, len(v)), onnx.Int64)
	}
	order := func(v ...int64) *onnx.Attribute {
		return &onnx.Attribute{Name: "perm", Type: onnx.AttributeInts, Ints: v}
	}
	const heads, groups, length, keys, size = 4, 2, 5, 9, 8
	flat := map[string][]int{"q": {2, length, heads * size}, "k": {2, keys, groups * size}, "v": {2, keys, groups * size}, "m": {length, keys}}
	deep := map[string][]int{"q": {2, heads, length, size}, "k": {2, heads, keys, size}, "v": {2, heads, keys, size}, "m": {2, 1, 1, keys}}
	scores := []*onnx.Node{node("Transpose", "k", "kt", order(0, 1, 3, 2)), node("MatMul", "q kt", "s"), constant("c", array.Scalar(float32(2.5)), onnx.Float)}
	// split gives a tensor heads.
	split := func(x, shape, y string) []*onnx.Node {
		return []*onnx.Node{node("Reshape", x+" "+shape, y+"1"), node("Transpose", y+"1", y, order(0, 2, 1, 3))}
	}
	// repeat repeats each head of keys or values.
	repeat := func(x, y string) []*onnx.Node {
		return []*onnx.Node{node("Unsqueeze", x+" two", y+"1"), node("Expand", y+"1 wide", y+"2"), node("Reshape", y+"2 joined", y)}
	}
	grouped := append([]*onnx.Node{sizes("qs", 2, length, heads, size), sizes("ks", 2, keys, groups, size), sizes("two", 2),
		sizes("wide", 2, groups, heads/groups, keys, size), sizes("joined", 2, heads, keys, size), constant("c", array.Scalar(float32(0.35)), onnx.Float)},
		append(split("q", "qs", "qh"), append(split("k", "ks", "kh"), append(split("v", "ks", "vh"), append(repeat("kh", "kr"), repeat("vh", "vr")...)...)...)...)...)
	grouped = append(grouped, node("Mul", "qh c", "qc"), node("Transpose", "kr", "kt", order(0, 1, 3, 2)), node("MatMul", "qc kt", "s"), node("Add", "s m", "masked"),
		node("Softmax", "masked", "w", whole("axis", -1)), node("MatMul", "w vr", "y"))
	for _, c := range []struct {
		name   string
		shapes map[string][]int
		nodes  []*onnx.Node
	}{
		{"a node", deep, []*onnx.Node{node("Attention", "q k v m", "y")}},
		{"a node with groups, causal", flat, []*onnx.Node{node("Attention", "q k v m", "y", whole("q_num_heads", heads), whole("kv_num_heads", groups), whole("is_causal", 1))}},
		{"a node with a bound", deep, []*onnx.Node{node("Attention", "q k v m", "y", real("softcap", 2), real("scale", 0.3))}},
		{"a divisor and a mask", deep, append(scores[:3:3], node("Div", "s c", "d"), node("Add", "d m", "masked"), node("Softmax", "masked", "w", whole("axis", -1)), node("MatMul", "w v", "y"))},
		{"a factor and no mask", deep, append(scores[:3:3], node("Mul", "s c", "d"), node("Softmax", "d", "w", whole("axis", 3)), node("MatMul", "w v", "y"), node("Identity", "m", "n"))},
		{"grouped heads, the factor on the queries", flat, grouped},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := model([]string{"q", "k", "v", "m"}, []string{"y"}, c.nodes...)
			m.Opsets[0].Version = 24
			rng := rand.New(rand.NewPCG(1, 2))
			inputs := make(map[string]*array.Array)
			for _, name := range []string{"q", "k", "v", "m"} {
				a := array.New(array.Float32, c.shapes[name]...)
				for i := range a.Len() {
					a.SetFloat(i, rng.NormFloat64())
				}
				inputs[name] = a
			}
			var want *array.Array
			for _, query := range []string{"none", "fast_run"} {
				f, err := session.Model(t.Context(), m, session.Options{Optimizer: build(t, query)}, inputs)
				if err != nil {
					t.Fatal(err)
				}
				y, err := f.Call(t.Context(), inputs)
				if err != nil {
					t.Fatal(err)
				}
				if want == nil {
					want = y["y"]
					continue
				}
				if !array.Equal(y["y"], want) {
					t.Error("other bits")
				}
				found := 0
				for a := range f.Graph().Ordered() {
					switch op := a.Op().(type) {
					case *tensor.AttentionOp:
						found++
						if kept := tensor.TypeOf(a.Inputs()[1]).Dim(1); kept != c.shapes["k"][1] && len(c.shapes["k"]) == 4 || len(c.shapes["k"]) == 3 && kept != groups {
							t.Errorf("%v of %d heads of keys: %v", op, kept, f.Graph())
						}
					case tensor.SoftmaxOp:
						t.Errorf("%v is left", op)
					}
				}
				if found != 1 {
					t.Errorf("%d attentions in %v", found, f.Graph())
				}
			}
		})
	}
}
