package expr_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestParseLikePython reads expressions whose meaning in Python, NumPy or Theano is not the obvious
// one.
func TestParseLikePython(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// Numbers that are computed from numbers take the type of what they are combined with.
		{"f*(1/2)", "[mul(f, 0.5)]"}, {"f**(1/2)", "[pow(f, 0.5)]"}, {"f*(2*3 - 1)", "[mul(f, 5.0)]"}, {"i*(2**3)", "[mul(i, 8)]"}, {"f + -(1 + 2)", "[add(f, -3.0)]"}, {"x**2**-1", "[pow(x, 0.5)]"}, {"f + (True + True)", "[add(f, 2.0)]"},
		{"1/2", "[true_div(1, 2)]"}, {"-(1 + 2)", "[neg(add(1, 2))]"}, {"1/0", "[true_div(1, 0)]"}, {"f*(7//2)", "[mul(f, 3.0)]"}, {"f + -7//2", "[add(f, -4.0)]"}, {"f*(-7%4)", "[mul(f, 1.0)]"}, {"7//0*x", "[mul(DimShuffle{x}(int_div(7, 0)), x)]"}, {"7.5//2*x", "[mul(DimShuffle{x}(int_div(7.5, 2)), x)]"},
		// Integers have no bound.
		{"2**64", "[pow(2.0, 64.0)]"}, {"x*2**100", "[mul(x, 1.2676506002282294e+30)]"}, {"9223372036854775807 + 1", "[add(9.223372036854776e+18, 1.0)]"}, {"3*(-1)**1000001", "[mul(3, pow(-1, 1000001))]"},
		// Bools are combined, not counted.
		{"p + p", "[or(p, p)]"}, {"p*p", "[and(p, p)]"}, {"(x > 1)*(x < 2)", "[and(gt(x, 1.0), lt(x, 2.0))]"}, {"p + True", "[or(p, True)]"}, {"p + 1", "[add(p, 1)]"}, {"p*x", "[mul(p, x)]"}, {"add(p, p)", "[add(p, p)]"}, {"and(p, or(p, p))", "[and(p, or(p, p))]"},
		// A tuple is several indexes, a list is one.
		{"X[:, i]", "[DimShuffle{1,0}(AdvancedSubtensor1(DimShuffle{1,0}(X), i))]"}, {"X[i, 1:]", "[AdvancedSubtensor1(Subtensor{:,1:}(X), i)]"}, {"X[0, i]", "[AdvancedSubtensor1(Subtensor{0}(X), i)]"}, {"t[..., i, i]", "[DimShuffle{1,0}(AdvancedSubtensor{2}(DimShuffle{1,2,0}(t), i, i))]"},
		{"t[i, :, 0]", "[AdvancedSubtensor1(Subtensor{:,:,0}(t), i)]"}, {"X[i, None]", "[DimShuffle{0,x,1}(AdvancedSubtensor1(X, i))]"}, {"X[:, i, i]", "3 indexes for a float64 matrix"},
		{"set_subtensor(x[x > 0], 1)", "[switch(gt(x, 0.0), 1.0, x)]"}, {"inc_subtensor(X[p], s)", "[switch(DimShuffle{0,x}(p), add(X, DimShuffle{x,x}(s)), X)]"}, {"set_subtensor(x[p], y)", "[AdvancedSetSubtensor1(x, y, Nonzero(p, Shape_i{0}(x)))]"},
		{"X[nonzero(p)]", "[AdvancedSubtensor1(X, Nonzero(p))]"}, {"split(v, 3)[1]", "[Subtensor{1:2}(v)]"}, {"identity(n)", "[identity(n)]"}, {"identity(2*2)", "[Eye{float64}(4, 4, 0)]"}, {"x[p[:2]]", "[AdvancedSubtensor1(x, Nonzero(Subtensor{:2}(p), Shape_i{0}(x)))]"},
		{"X[(0, 1)]", "[Subtensor{0,1}(X)]"}, {"x[(0,)]", "[Subtensor{0}(x)]"}, {"x[()]", "[x]"}, {"X[[0, 1]]", "[AdvancedSubtensor1(X, [0, 1])]"},
		// An empty list of axes means none, and None means all.
		{"X.sum(axis=())", "[sum{axis=}(X)]"}, {"X.sum(axis=[])", "[sum{axis=}(X)]"}, {"X.mean(axis=None)", "[true_div(sum(X), cast{float64}(mul(Shape_i{0}(X), Shape_i{1}(X))))]"},
		{"mean(X, axis=1, keepdims=True)", "[DimShuffle{0,x}(true_div(sum{axis=1}(X), DimShuffle{x}(cast{float64}(Shape_i{1}(X)))))]"}, {"X.var(0).ndim", "[1]"}, {"X.var(0, keepdims=True).ndim", "[2]"}, {"X.std(keepdims=True).ndim", "[2]"},
		{"sum(f, dtype=float64)", "[sum(cast{float64}(f))]"},
		{"stack([x, y], axis=1)", "[Join{1}(DimShuffle{0,x}(x), DimShuffle{0,x}(y))]"}, {"stack([x, y], -1)", "[Join{1}(DimShuffle{0,x}(x), DimShuffle{0,x}(y))]"}, {"stack(x, y)", "[Join{0}(DimShuffle{x,0}(x), DimShuffle{x,0}(y))]"},
		{"softmax(X, axis=-1)", "[Softmax(X)]"}, {"log_softmax(X, axis=0)", "[DimShuffle{1,0}(LogSoftmax(DimShuffle{1,0}(X)))]"},
		{"grad(sum(x*y), [x, y])", "[mul(*1 -> second(mul(x, y), DimShuffle{x}(1.0)), y), mul(*1, x)]"},
		{"arange(0, 1, 0.25)", "[[0.0, 0.25, 0.5, 0.75]]"}, {"arange(2.)", "[[0.0, 1.0]]"}, {"theano.tensor.exp(x)", "[exp(x)]"},
		// Mistakes.
		{"0 < x < 1", "column 7: comparisons of tensors can't be chained; write (x < y) & (y < z)"}, {"x == y != x", "column 8: comparisons"}, {"(x < y) == p", "[eq(lt(x, y), p)]"},
		{"x > 0 and y > 0", "column 7: and does not work on tensors; use &"}, {"p or (x > 0)", "column 3: or does not work"}, {"and", "column 1: and does not"}, {"not p", "column 1: not does not work on tensors; use ~"}, {"x if p else y", "column 3: if does not work on tensors; use switch"},
		{"X.sum(axis=(0, 0))", "axis 0 is named twice"}, {"mean(x, foo=1)", "mean: takes no argument foo"}, {"stack([x, y], axis=3)", "stack: axis 3 of a tensor of 2 dimensions"}, {"softmax(X, axis=2)", "axis 2"}, {"cast(x, 'int24')", "there are bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64"},
	} {
		s := newScope(t, parseVars)
		out, err := s.Parse(c.text)
		got := fgraph.Sprint(0, out...)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s is\n%s, want\n%s", c.text, got, c.want)
		}
	}
	s := newScope(t, parseVars)
	if v := s.MustParse("f*(1/2)"); tensor.TypeOf(v).DType() != array.Float32 {
		t.Errorf("f*(1/2) is a %v", v.Type())
	}
}

// TestNumbersFit combines integers with integers of other types: they take that type if it has them.
func TestNumbersFit(t *testing.T) {
	for _, c := range []struct{ vars, text, want string }{
		{"u: uint8", "u + 255", "uint8"}, {"u: uint8", "u + 300", "uint16"}, {"u: uint8", "u - 1", "uint8"}, {"u: uint8", "u + -1", "int16"}, {"u: uint8", "u*-40_000", "int32"},
		{"i: int8", "i - 128", "int16"}, {"i: int8", "i + -128", "int8"}, {"i: int8", "i + 200", "int16"}, {"i: int8", "i + 3_000_000_000", "int64"}, {"i: int8", "i*1.5", "float64"},
		{"u: uint64", "u & 18446744073709551615", "uint64"}, {"u: uint64", "u + -1", "float64"}, {"i: int64", "i + 9223372036854775808", "float64"}, {"i: int64", "i + -9223372036854775808", "int64"},
		{"b: bool", "b + 1", "int64"}, {"h: float16", "h*0.1 + 70000", "float16"}, {"h: bfloat16; i: int8", "h + i", "bfloat16"}, {"h: bfloat16; g: float16", "h + g", "float32"},
		{"i: int8", "sqrt(i)", "float16"}, {"u: uint16", "exp(u)", "float32"}, {"i: int8", "i/i", "float64"}, {"u: uint8", "sum(u)", "uint64"}, {"u: uint8", "mean(u)", "float64"}, {"h: float16", "mean(h)", "float16"},
		{"i: int8; u: uint8", "i + u", "int16"}, {"i: int64; u: uint64", "i + u", "float64"}, {"x: float64", "[18446744073709551615]", "uint64"}, {"x: float64", "[18446744073709551615, -1]", "float64"},
	} {
		s := expr.NewScope()
		if err := s.Declare(c.vars); err != nil {
			t.Fatal(err)
		}
		v := s.MustParse(c.text)
		if c.text[0] == '[' {
			v = s.MustParse("stack(" + c.text + ")")
		}
		if d := tensor.TypeOf(v).DType(); d.String() != c.want {
			t.Errorf("%s: %s is a %v, want %s", c.vars, c.text, d, c.want)
		}
	}
}
