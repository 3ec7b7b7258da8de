package session_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// floats returns the type of float tensors with sizes that are numbers or names.
func floats(dims ...any) *onnx.Type {
	s := new(onnx.Shape)
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			n := int64(d)
			s.Dims = append(s.Dims, &onnx.Dim{Value: &n})
		case string:
			s.Dims = append(s.Dims, &onnx.Dim{Param: d})
		}
	}
	return &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float, Shape: s}}
}

// TestDeclaredSizes: a session runs a model only on inputs of the sizes that it declares, and says which input
// has others.
func TestDeclaredSizes(t *testing.T) {
	m := model([]string{"x", "y", "z", "like", "s", "o"}, []string{"sum", "neg", "cast", "at", "same"},
		constant("zero", array.Scalar(int64(0)), onnx.Int64),
		node("ReduceSum", "x", "sum"), node("Neg", "y", "neg"), node("CastLike", "z like", "cast"), node("SequenceAt", "s zero", "at"), node("Identity", "o", "same"))
	sequence := &onnx.Type{Sequence: &onnx.ElementType{Elem: floats("n", 2)}}
	for i, typ := range []*onnx.Type{floats(2, 3), floats("n", "?", "?"), floats("n", -1), floats(3, 4), sequence, {Optional: &onnx.ElementType{Elem: floats("n")}}} {
		m.Graph.Inputs[i].Type = typ
	}
	run := session.New(m, session.Options{})
	right := map[string][]int{"x": {2, 3}, "y": {4, 1, 3}, "z": {4, 7}, "like": {1}, "s[0]": {4, 2}, "s[1]": {5, 2}, "o": {4}}
	for _, c := range []struct {
		input string
		shape []int
		want  string // "" if it is right
	}{
		{"", nil, ""},
		{"x", []int{4, 5}, "x is declared as float[2, 3], and has the shape [4 5]: size 0 should be 2"},
		{"x", []int{2, 5}, "x is declared as float[2, 3], and has the shape [2 5]: size 1 should be 3"},
		{"x", []int{6}, "x is declared as float[2, 3], with 2 dimensions, and has 1: [6]"},
		{"x", []int{}, "x is declared as float[2, 3], with 2 dimensions, and has 0: []"},
		{"z", []int{3, 7}, "z is declared as float[n, -1], and has the shape [3 7]: size 0 should be 4, since n is 4 in y"},
		{"o", []int{3}, "o is declared as float[n], and has the shape [3]: size 0 should be 4, since n is 4 in y"},
		{"y", []int{4, 9, 2}, ""},
		{"like", []int{2}, ""}, // only its type is read
		{"s[1]", []int{1, 2}, ""},
		{"s[1]", []int{1, 3}, "s[1] is declared as float[n, 2], and has the shape [1 3]: size 1 should be 2"},
		{"o", nil, ""},
	} {
		in := make(map[string]*array.Array)
		for name, shape := range right {
			in[name] = array.New(array.Float32, shape...)
		}
		if c.input != "" {
			if delete(in, c.input); c.shape != nil {
				in[c.input] = array.New(array.Float32, c.shape...)
			}
		}
		_, _, err := run.Run(t.Context(), in)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %v: %v", c.input, c.shape, err)
		case c.want != "" && (!errors.Is(err, lower.ErrInput) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s %v: %v, want %s", c.input, c.shape, err, c.want)
		}
	}
}

// TestDeclaredInBranch: sizes that only a branch reads count as well.
func TestDeclaredInBranch(t *testing.T) {
	m := model([]string{"c", "x"}, []string{"y"},
		either("c", "y", []*onnx.Node{node("CastLike", "c x", "a"), node("ReduceMax", "a", "r")}, []*onnx.Node{node("CastLike", "c x", "b"), node("ReduceSum", "x", "d"), node("Add", "b d", "r")}))
	m.Graph.Inputs[0].Type = &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Bool}}
	m.Graph.Inputs[1].Type = floats(2)
	in := map[string]*array.Array{"c": array.Scalar(true), "x": array.New(array.Float32, 3)}
	if _, err := session.Model(t.Context(), m, session.Options{}, in); !errors.Is(err, lower.ErrInput) {
		t.Error(err)
	}
}
