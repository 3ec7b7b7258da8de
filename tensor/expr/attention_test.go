package expr_test

import (
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestAttentionText: attentions are read as they are written, and what is none is refused.
func TestAttentionText(t *testing.T) {
	p := array.NewProgram(array.Float32, array.Float32)
	p.Return(p.Append(array.Add, 0, 1))
	var d expr.Dialect
	for _, op := range []*tensor.AttentionOp{tensor.NewAttention(nil, false), tensor.NewAttention(nil, true), tensor.NewAttention(p, false), tensor.NewAttention(p, true)} {
		text, err := d.OpText(op)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.ParseOp(text)
		if err != nil || !fgraph.OpsEqual(got, op) {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"Attention{}", "Attention{turned}{turned}", "Attention{float32}", "Attention{float64; return 0}", "Attention{float32, bool; return 1}",
		"Attention{float32; return 0}{float32; return 0}", "Attention{float32; return 0}{turned}{turned}"} {
		if op, err := d.ParseOp(text); err == nil {
			t.Errorf("%s is read as %v", text, op)
		}
	}
}

// TestAttentionTypes: what does not fit is refused before anything runs, and sizes are known as far as
// those of inputs are.
func TestAttentionTypes(t *testing.T) {
	p := array.NewProgram(array.Float32, array.Float32)
	p.Return(p.Append(array.Add, 0, 1))
	of := func(shape ...int) *fgraph.Variable {
		return fgraph.NewInput(tensor.NewType(array.Float32, shape...), "x")
	}
	for _, c := range []struct {
		op   *tensor.AttentionOp
		in   []*fgraph.Variable
		want string // the type, or "" for an error
	}{
		{tensor.NewAttention(nil, false), []*fgraph.Variable{of(5, 8), of(8, 7), of(7, 6)}, "float32[5, 6]"},
		{tensor.NewAttention(nil, true), []*fgraph.Variable{of(2, 4, 5, 8), of(1, 2, 8, 7), of(2, 1, 7, 6)}, "float32[2, 5, 4, 6]"},
		{tensor.NewAttention(p, false), []*fgraph.Variable{of(4, 5, -1), of(4, 8, 7), of(4, -1, 6), of(1, -1, 7)}, "float32[4, 5, 6]"},
		{tensor.NewAttention(nil, true), []*fgraph.Variable{of(5, 8), of(8, 7), of(7, 6)}, ""},
		{tensor.NewAttention(nil, false), []*fgraph.Variable{of(5, 8), of(7, 8), of(7, 6)}, ""},
		{tensor.NewAttention(nil, false), []*fgraph.Variable{of(4, 5, 8), of(3, 8, 7), of(4, 7, 6)}, ""},
		{tensor.NewAttention(nil, false), []*fgraph.Variable{of(2, 4, 5, 8), of(4, 4, 8, 7), of(2, 4, 7, 6)}, ""},
		{tensor.NewAttention(nil, false), []*fgraph.Variable{of(4, 5, 8), of(8, 7), of(7, 6)}, ""},
		{tensor.NewAttention(p, false), []*fgraph.Variable{of(4, 5, 8), of(4, 8, 7), of(4, 7, 6)}, ""},
		{tensor.NewAttention(p, false), []*fgraph.Variable{of(4, 5, 8), of(4, 8, 7), of(4, 7, 6), of(4, 5, 6)}, ""},
	} {
		a, err := tensor.Make(c.op, c.in...)
		if got := ""; err == nil {
			if got = a.Out().Type().String(); got != c.want {
				t.Errorf("%v is a %s, want %q", a, got, c.want)
			}
		} else if c.want != "" {
			t.Error(err)
		}
	}
}
