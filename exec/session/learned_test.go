package session_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

func wholes(name string, list ...int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeInts, Ints: list}
}

func numbers(name string, list ...float32) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeFloats, Floats: list}
}

// learned makes a model of one node of ai.onnx.ml.
func learned(op string, elem onnx.DataType, outputs []string, attributes ...*onnx.Attribute) *onnx.Model {
	m := model([]string{"x"}, outputs, &onnx.Node{Op: op, Domain: "ai.onnx.ml", Inputs: []string{"x"}, Outputs: outputs, Attributes: attributes})
	m.Opsets = append(m.Opsets, &onnx.Opset{Domain: "ai.onnx.ml", Version: 3})
	m.Graph.Inputs[0].Type.Tensor.Elem = elem
	return m
}

// twoTrees are the attributes of two trees: one of x0 <= 1 and, if not, x1 > -1, to which NaN goes; and a leaf.
func twoTrees(weights string) []*onnx.Attribute {
	return []*onnx.Attribute{
		wholes("nodes_treeids", 0, 0, 0, 0, 0, 7), wholes("nodes_nodeids", 0, 1, 2, 3, 4, 0),
		texts("nodes_modes", "BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF", "LEAF"), wholes("nodes_featureids", 0, 0, 1, 0, 0, 0),
		numbers("nodes_values", 1, 0, -1, 0, 0, 0), wholes("nodes_missing_value_tracks_true", 0, 0, 1, 0, 0, 0),
		wholes("nodes_truenodeids", 1, 0, 3, 0, 0, 0), wholes("nodes_falsenodeids", 2, 0, 4, 0, 0, 0),
		wholes(weights+"_treeids", 0, 0, 0, 7), wholes(weights+"_nodeids", 1, 3, 4, 0), wholes(weights+"_ids", 0, 0, 0, 0), numbers(weights+"_weights", 1, 2, 4, 0.5),
	}
}

// TestLearned: operators of ai.onnx.ml, and what ONNX Runtime makes of these inputs.
func TestLearned(t *testing.T) {
	nan := float32(math.NaN())
	points := array.Of([]float32{1, 0, 1.5, 0, 1.5, -1, 2, nan, nan, -3}, 5, 2)
	words := array.OfStrings([]string{"b", "a", "?"}, 3)
	for _, c := range []struct {
		op         string
		x          *array.Array
		attributes []*onnx.Attribute
		want       string
	}{
		{"TreeEnsembleRegressor", points, append(twoTrees("target"), whole("n_targets", 1), numbers("base_values", 10)), "[[11.5], [12.5], [14.5], [12.5], [14.5]]"},
		{"TreeEnsembleRegressor", points, append(twoTrees("target"), whole("n_targets", 1), text("aggregate_function", "AVERAGE")), "[[0.75], [1.25], [2.25], [1.25], [2.25]]"},
		{"TreeEnsembleRegressor", points, append(twoTrees("target"), whole("n_targets", 1), text("aggregate_function", "MIN")), "[[0.5], [0.5], [0.5], [0.5], [0.5]]"},
		{"TreeEnsembleClassifier", points, append(twoTrees("class"), wholes("classlabels_int64s", 3, 9)), "[9, 9, 9, 9, 9] [[-0.5, 1.5], [-1.5, 2.5], [-3.5, 4.5], [-1.5, 2.5], [-3.5, 4.5]]"},
		{"TreeEnsembleClassifier", points, append(twoTrees("class"), texts("classlabels_strings", "no", "yes"), numbers("base_values", -2, 0)),
			`["no", "no", "yes", "no", "yes"] [[-0.5, 0.0], [0.5, 0.0], [2.5, 0.0], [0.5, 0.0], [2.5, 0.0]]`},
		{"LinearClassifier", array.Of([]float32{1, 2}, 2, 1), []*onnx.Attribute{numbers("coefficients", 1, -1), numbers("intercepts", 0, 3), texts("classlabels_strings", "p", "q")},
			`["q", "p"] [[1.0, 2.0], [2.0, 1.0]]`},
		{"LinearRegressor", array.Of([]float32{1, 2}, 1, 2), []*onnx.Attribute{numbers("coefficients", 1, 2, 3, 4), numbers("intercepts", 0.5, 0), whole("targets", 2)}, "[[5.5, 11.0]]"},
		{"SVMRegressor", array.Of([]float32{1, 2}, 1, 2), []*onnx.Attribute{numbers("coefficients", 1, -1), numbers("rho", 0.5), whole("n_supports", 2), numbers("support_vectors", 1, 1, 0, 1),
			text("kernel_type", "POLY"), numbers("kernel_params", 1, 1, 2)}, "[[7.5]]"},
		{"SVMClassifier", array.Of([]float32{0, 3}, 2, 1), []*onnx.Attribute{numbers("coefficients", 1, -1), numbers("rho", 1), wholes("vectors_per_class", 1, 1), numbers("support_vectors", 1, 2),
			text("kernel_type", "LINEAR"), wholes("classlabels_ints", 5, 6)}, "[5, 6] [[-1.0, 1.0], [2.0, -2.0]]"},
		{"LabelEncoder", words, []*onnx.Attribute{texts("keys_strings", "a", "b"), wholes("values_int64s", 7, 8)}, "[8, 7, -1]"},
		{"LabelEncoder", array.Of([]float32{nan, 2}, 2), []*onnx.Attribute{numbers("keys_floats", nan), texts("values_strings", "none")}, `["none", "_Unused"]`},
		{"CategoryMapper", array.Of([]int64{2, 5}, 2), []*onnx.Attribute{texts("cats_strings", "x", "y"), wholes("cats_int64s", 5, 6)}, `["_Unused", "x"]`},
		{"OneHotEncoder", words, []*onnx.Attribute{texts("cats_strings", "a", "b")}, "[[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]"},
		{"Scaler", array.Of([]int64{1, 2}, 1, 2), []*onnx.Attribute{numbers("offset", 1, 0), numbers("scale", 2, 0.5)}, "[[0.0, 1.0]]"},
		{"Normalizer", array.Of([]float32{3, 4, 0, 0}, 2, 2), []*onnx.Attribute{text("norm", "L2")}, "[[0.6, 0.8], [0.0, 0.0]]"},
		{"Imputer", array.Of([]float32{nan, 1, 2, nan}, 2, 2), []*onnx.Attribute{numbers("imputed_value_floats", 8, 9), {Name: "replaced_value_float", Type: onnx.AttributeFloat, Float: nan}}, "[[8.0, 1.0], [2.0, 9.0]]"},
		{"FeatureVectorizer", array.Of([]int64{1, 2}, 2, 1), []*onnx.Attribute{wholes("inputdimensions", 2)}, "[[1.0, 0.0], [2.0, 0.0]]"},
		{"ZipMap", array.Of([]float32{0.25, 0.75}, 1, 2), []*onnx.Attribute{texts("classlabels_strings", "a", "b")}, `[[0.25, 0.75]] of ["a", "b"]`},
	} {
		elem := map[array.DType]onnx.DataType{array.Float32: onnx.Float, array.Int64: onnx.Int64, array.String: onnx.String}[c.x.DType()]
		outputs := []string{"y"}
		if c.want[0] == '[' && slices.Contains([]string{"TreeEnsembleClassifier", "LinearClassifier", "SVMClassifier"}, c.op) {
			outputs = append(outputs, "z")
		}
		f, out, err := session.New(learned(c.op, elem, outputs, c.attributes...), session.Options{Optimizer: build(t, "fast_run")}).Run(t.Context(), map[string]*array.Array{"x": c.x})
		if err != nil {
			t.Errorf("%s: %v", c.op, err)
			continue
		}
		got := fmt.Sprint(out["y"])
		if out["z"] != nil {
			got += fmt.Sprint(" ", out["z"])
		}
		if keys := f.Outputs()[0].Keys; keys != nil {
			got += fmt.Sprint(" of ", keys)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.op, got, c.want)
		}
	}
	strict := learned("OneHotEncoder", onnx.Int64, []string{"y"}, wholes("cats_int64s", 1, 2), whole("zeros", 0))
	if _, out, err := session.New(strict, session.Options{}).Run(t.Context(), map[string]*array.Array{"x": array.Of([]int64{1, 3}, 2)}); err == nil {
		t.Errorf("an element of no category is %v", out["y"])
	}
}

// TestLearnedAnySizes: one function is for any number of rows.
func TestLearnedAnySizes(t *testing.T) {
	s := session.New(learned("TreeEnsembleRegressor", onnx.Float, []string{"y"}, append(twoTrees("target"), whole("n_targets", 1))...), session.Options{})
	for n := 2; n < 200; n *= 3 {
		x := array.Full(array.Float32, 1.5, n, 2)
		_, out, err := s.Run(t.Context(), map[string]*array.Array{"x": x})
		if want := array.Full(array.Float32, 2.5, n, 1); err != nil || !array.Equal(out["y"], want) {
			t.Errorf("%d rows: %v, %v", n, out["y"], err)
		}
	}
	if made, err := s.Functions(); made != 2 || err != nil {
		t.Errorf("%d functions, %v", made, err)
	}
}

// TestDamagedTrees: trees that are none are errors, and random damage is no more.
func TestDamagedTrees(t *testing.T) {
	in := map[string]*array.Array{"x": array.Of([]float32{1, 2}, 1, 2)}
	run := func(list []*onnx.Attribute) error {
		_, _, err := session.New(learned("TreeEnsembleRegressor", onnx.Float, []string{"y"}, list...), session.Options{}).Run(t.Context(), in)
		return err
	}
	valid := func() []*onnx.Attribute { return append(twoTrees("target"), whole("n_targets", 1)) }
	if err := run(valid()); err != nil {
		t.Fatal(err)
	}
	for what, damage := range map[string]*onnx.Attribute{
		"a cycle": wholes("nodes_truenodeids", 2, 0, 0, 0, 0, 0), "a node below itself": wholes("nodes_truenodeids", 0, 0, 3, 0, 0, 0), "no such child": wholes("nodes_falsenodeids", 2, 0, 44, 0, 0, 0),
		"two nodes of one name": wholes("nodes_nodeids", 0, 1, 2, 3, 3, 0), "a short list": wholes("nodes_featureids", 0, 0), "no such column": wholes("nodes_featureids", 0, 0, 2, 0, 0, 0),
		"a negative column": wholes("nodes_featureids", 0, 0, -1, 0, 0, 0), "a weight of nothing": wholes("target_nodeids", 1, 3, 4, 9), "no such target": wholes("target_ids", 0, 0, 0, 1),
		"no targets": whole("n_targets", 0), "too many targets": whole("n_targets", 1<<40), "no such mode": texts("nodes_modes", "BRANCH_LEQ", "LEAF", "?", "LEAF", "LEAF", "LEAF"),
	} {
		list := valid()
		list[slices.IndexFunc(list, func(a *onnx.Attribute) bool { return a.Name == damage.Name })] = damage
		if err := run(list); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	values := []int64{-1, 0, 1, 2, 3, 5, 7, 1 << 31, 1 << 40, math.MaxInt64, math.MinInt64}
	for range 300 {
		list := valid()
		for range 1 + rng.IntN(3) {
			a := list[rng.IntN(len(list))]
			switch n := len(a.Ints); {
			case n > 0 && rng.IntN(8) > 0:
				a.Ints[rng.IntN(n)] = values[rng.IntN(len(values))]
			case n > 0:
				a.Ints = a.Ints[:n-1]
			case a.Type == onnx.AttributeInt:
				a.Int = values[rng.IntN(len(values))]
			}
		}
		_ = run(list) // does not panic, and ends
	}
}
