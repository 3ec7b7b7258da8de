package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

const parseVars = "x y: vector; X Y: matrix; s: scalar; t: tensor3; f: float32 vector; i: int64 vector; n: int64 scalar; p: bool vector; S: csr; v: float64[3]"

func newScope(t testing.TB, vars string) *expr.Scope {
	t.Helper()
	s := expr.NewScope()
	if err := s.Declare(vars); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// Priorities, as in Python.
		{"x + y*x", "[add(x, mul(y, x))]"}, {"x*y + x", "[add(mul(x, y), x)]"}, {"x - y - x", "[sub(sub(x, y), x)]"}, {"x - (y - x)", "[sub(x, sub(y, x))]"},
		{"[True] + [True]", "[or(True, True)]"}, {"[True, False]*p", "[and([True, False], p)]"}, {"[True] + [1]", "[add(True, 1)]"}, {"[9223372036854775807, -9223372036854775808] + i[:2]", "[add([9223372036854775807, -9223372036854775808], Subtensor{:2}(i))]"},
		{"-x**2", "[neg(pow(x, 2.0))]"}, {"x**-y", "[pow(x, neg(y))]"}, {"x**y**2", "[pow(x, pow(y, 2.0))]"}, {"-x.T", "[neg(x)]"}, {"x/y*x", "[mul(true_div(x, y), x)]"},
		{"x < y + 1", "[lt(x, add(y, 1.0))]"}, {"p & x > y", "and: is not defined"}, {"p & (x > y)", "[and(p, gt(x, y))]"}, {"~p | p ^ p", "[or(invert(p), xor(p, p))]"},
		{"+x", "[x]"}, {"--x", "[neg(neg(x))]"}, {"-2**2", "[neg(pow(2, 2))]"}, {"x*-1", "[mul(x, -1.0)]"},
		// Numbers take the type of what they are combined with.
		{"f*2", "[mul(f, 2.0)]"}, {"i*2", "[mul(i, 2)]"}, {"i*2.5", "[mul(i, 2.5)]"}, {"2 + 3", "[add(2, 3)]"}, {"p + 1", "[add(p, 1)]"}, {"1e3*x", "[mul(1000.0, x)]"},
		{".5*x", "[mul(0.5, x)]"}, {"x + nan", "[add(x, nan)]"}, {"i**-1", "[pow(i, -1.0)]"}, {"maximum(f, 0)", "[maximum(f, 0.0)]"}, {"switch(1, f, 0)", "[switch(1, f, 0.0)]"},
		// Indexes.
		{"x[1:3]", "[Subtensor{1:3}(x)]"}, {"x[n:]", "[Subtensor{_:}(x, n)]"}, {"X[0, ::-1]", "[Subtensor{0,::-1}(X)]"}, {"x[None]", "[DimShuffle{x,0}(x)]"}, {"X[:, None]", "[DimShuffle{0,x,1}(Subtensor{:}(X))]"},
		{"t[..., 0]", "[Subtensor{:,:,0}(t)]"}, {"x[i]", "[AdvancedSubtensor1(x, i)]"}, {"X[i, i]", "[AdvancedSubtensor{2}(X, i, i)]"}, {"x[-1]", "[Subtensor{-1}(x)]"}, {"x[n::2]", "[Subtensor{_::2}(x, n)]"},
		{"X[1][2]", "[Subtensor{2}(Subtensor{1}(X))]"}, {"x[[0, 1]]", "[AdvancedSubtensor1(x, [0, 1])]"},
		// Methods, attributes, functions.
		{"X.sum(axis=0).T", "[sum{axis=0}(X)]"}, {"sum(X, axis=(0, 1))", "[sum{axis=0,1}(X)]"}, {"sum(X, axis=None)", "[sum(X)]"}, {"X.shape[0]", "[Subtensor{0}(Shape(X))]"},
		{"x.dimshuffle('x', 0)", "[DimShuffle{x,0}(x)]"}, {"t.transpose(2, 0, 1)", "[DimShuffle{2,0,1}(t)]"}, {"X.reshape(2, -1)", "[Reshape{2}(X, [2, -1])]"}, {"reshape(X, (n, 1))", "[Reshape{2}(X, MakeVector{int64}(n, 1))]"},
		{"x.astype(float32)", "[cast{float32}(x)]"}, {"cast(x, x.dtype)", "[x]"}, {"sdot(S, X)", "[SparseDot(S, X)]"}, {"zeros((2, 3))", "[Alloc(0.0, 2, 3)]"}, {"stack([s, s])", "[MakeVector{float64}(s, s)]"},
		{"alloc(s, x.shape)", "[Alloc(s, Subtensor{0}(Shape(x)))]"}, {"concatenate((x, y))", "[Join{0}(x, y)]"}, {"undeclared*2", "[mul(undeclared, 2.0)]"}, {"[x, y]", "[x, y]"}, {"[1, 2]", "[1, 2]"}, {"[[1, 2]]", "[[1, 2]]"}, {"(x, [1, x[0]])", "[x, MakeVector{float64}(1.0, Subtensor{0}(x))]"},
		{"x.ndim + X.ndim", "[add(1, 2)]"}, {"True", "[True]"}, {"[[1, 2], [3, 4]]", "[[1, 2], [3, 4]]"}, {"[[[1, 2], [3, 4]]]", "[[[1, 2], [3, 4]]]"}, {"mean(x)", "[true_div(sum(x), cast{float64}(Shape_i{0}(x)))]"},
		{"X @ X.T*s", "[mul(dot(X, DimShuffle{1,0}(X)), DimShuffle{x,x}(s))]"}, {"x @ x + s", "[add(dot(x, x), s)]"}, {"T.exp(x)", "[exp(x)]"}, {"T.nnet.sigmoid(x)", "[sigmoid(x)]"}, {"T + 1", "[add(T, 1.0)]"},
		{"relu(f)", "[maximum(f, 0.0)]"}, {"X.ravel()", "[Reshape{1}(X, -1)]"}, {"T.", "a name is expected after the dot"}, {"x..T", "column 3: a name is expected after the dot"}, {"X @ t", "[Matmul(DimShuffle{x,0,1}(X), t)]"}, {"x @ t", "[DimShuffle{0,2}(Matmul(DimShuffle{x,x,0}(x), t))]"}, {"X @ s", "column 3: matmul: a float64 matrix and a float64 scalar"},
		// What graphs print.
		{"add(*1 -> exp(x), *1)", "[add(*1 -> exp(x), *1)]"}, {"sum{axis=0}(DimShuffle{1,0}(X))", "[sum{axis=0}(DimShuffle{1,0}(X))]"}, {"add{inplace=0}(x, y)", "[add{inplace=0}(x, y)]"},
		{"CrossentropySoftmaxArgmax1HotWithBias(X, x, i)::2", "[CrossentropySoftmaxArgmax1HotWithBias(X, x, i)::2]"}, {"IncSubtensor{1:3}(x, 1.0)", "[IncSubtensor{1:3}(x, 1.0)]"},
		// Mistakes.
		{"", "column 1: an expression is expected, not end"}, {"x +", "column 4: an expression is expected"}, {"(x", `")" expected, not end`}, {"x y", "column 3: unexpected \"y\""}, {"x[1", `"]" or "," expected`},
		{"x[", "column 3: an expression is expected, not end"}, {"foo(x)", "column 1: there is no function foo"}, {"exp", "exp is an op and needs arguments"}, {"x + X[0:2, 0, 0]", "does not have 3 dimensions"}, {"x $ y", "column 3: unexpected '$'"},
		{"X + t[0:2]", ""}, {"dot(x, S)", "argument 2: is a float64 csr matrix, which is neither vector nor matrix"}, {"v + v[0:2]", "column 3: add: argument 2: is a float64[2], whose dimension 0 does not fit the size 3"}, {"sum(x, axis=1)", "axis 1 of a float64 vector"},
		{"x.foo", "no such attribute"}, {"sum(x, foo=1)", "sum: takes no argument foo"}, {"x[1.5]", "not an integer"}, {"x[::0]", "step 0"}, {"reshape(v, 2)", "can't be reshaped"}, {"*2", "nothing is numbered 2"},
		{"Subtensor{", `"{" without "}"`}, {"x[1:2:3:4]", "a slice has three parts"}, {"1 = 2", "unexpected"}, {"cast(x, foo)", "the name of a type"}, {"S + x", "is a sparse matrix"}, {"softmax(i)", "not a tensor of floats"},
		{"transpose(X, 0)", "can't be dropped"}, {"transpose(X, 0, 0)", "used twice"}, {"alloc(s, -1)", "negative size"}, {"v[3]", "out of range"}, {"[]", "no outputs"}, {"()", "no outputs"}, {"[[]]", "[[]]"}, {"stack([x, s])", "a float64 vector and a float64 scalar"},
		{"'abc'", "a number or a tensor is expected"}, {"MakeVector{int64}(s)", "argument 1"}, {"x.sum(1, 2, 3)", "4 arguments"},
	} {
		s := newScope(t, parseVars)
		out, err := s.Parse(c.text)
		got := fgraph.Sprint(0, out...)
		if err != nil {
			got = err.Error()
			if !errors.Is(err, expr.ErrSyntax) {
				t.Errorf("%s: %v is no ErrSyntax", c.text, err)
			}
		}
		if got != c.want && (err == nil || c.want == "" || !strings.Contains(got, c.want)) && c.want != "" {
			t.Errorf("%s is\n%s, want\n%s", c.text, got, c.want)
		}
	}
}

// TestParseOne reads lists, which are tensors if one expression is expected.
func TestParseOne(t *testing.T) {
	s := newScope(t, parseVars)
	for text, want := range map[string]string{
		"[1, 2]": "[[1, 2]]", "[[1, 2], [3, 4]]": "[[[1, 2], [3, 4]]]", "[1 + 1, 2]": "[MakeVector{int64}(add(1, 1), 2)]", "[]": "[[]]", "x + 1": "[add(x, 1.0)]",
	} {
		v, err := s.ParseOne(text)
		if err != nil || fgraph.Sprint(0, v) != want {
			t.Errorf("%s: %v, %v, want %s", text, fgraph.Sprint(0, v), err, want)
		}
	}
	if v, err := s.ParseOne("'abc'"); v != nil || !errors.Is(err, expr.ErrSyntax) {
		t.Errorf("a string: %v, %v", v, err)
	}
}

// TestParseDeep reads deeply nested text, which must not overflow the stack.
func TestParseDeep(t *testing.T) {
	s := newScope(t, parseVars)
	for _, text := range []string{strings.Repeat("(", 1e5), strings.Repeat("-", 1e5) + "x", strings.Repeat("[", 1e5), strings.Repeat("exp(", 1e5), strings.Repeat("x**", 1e5) + "x", strings.Repeat("x[", 1e5)} {
		if _, err := s.Parse(text); err == nil || !strings.Contains(err.Error(), "nested") {
			t.Errorf("%.10s…: %v", text, err)
		}
	}
	if _, err := s.Parse("x" + strings.Repeat(" + x", 1e5)); err != nil {
		t.Errorf("a long sum: %v", err)
	}
	if _, err := s.Parse("x" + strings.Repeat(".T", 1e5)); err != nil {
		t.Errorf("many attributes: %v", err)
	}
}

func TestDeclare(t *testing.T) {
	s := newScope(t, " a b : row ;c:int64[?,2];; d, e: float32 csr")
	var got []string
	for _, v := range s.Inputs() {
		got = append(got, v.Name()+" "+v.Type().String())
	}
	if want := "a float64 row, b float64 row, c int64[?, 2], d float32 csr matrix, e float32 csr matrix"; strings.Join(got, ", ") != want {
		t.Errorf("%v", got)
	}
	for text, column := range map[string]int{"x": 1, " x": 2, "x: foo": 4, "x: vector; x: matrix": 12, "x: vector; y:  foo": 16, "xx x xx: vector": 6, "a x+y: vector": 3, "x: float64[1": 4,
		"x: int64 csr": 4, "x:[1,2,3,4,5,6,7,8,9]": 3} {
		err := expr.NewScope().Declare(text)
		if at := (*expr.SyntaxError)(nil); !errors.As(err, &at) || at.Column != column || !errors.Is(err, expr.ErrSyntax) {
			t.Errorf("%s: %v, where column %d is wrong", text, err, column)
		}
	}
}

// TestTypesRoundTrip prints types and reads them again.
func TestTypesRoundTrip(t *testing.T) {
	for _, typ := range []tensor.Type{
		tensor.ScalarType(array.Bool), tensor.VectorType(array.Int64), tensor.MatrixType(array.Float32), tensor.NewType(array.Float64, 1, tensor.Unknown),
		tensor.NewType(array.Float64, tensor.Unknown, 1), tensor.NewType(array.Float64, 2, tensor.Unknown, 1), tensor.CSRType(array.Float32), tensor.NewType(array.Int64, 0),
	} {
		s := expr.NewScope()
		if err := s.Declare("x: " + typ.String()); err != nil || s.Inputs()[0].Type() != typ {
			t.Errorf("%v reads as %v, %v", typ, s.Inputs(), err)
		}
	}
}

// TestOpNamesRoundTrip finds ops by the names that they print.
func TestOpNamesRoundTrip(t *testing.T) {
	for _, name := range []string{
		"add", "cast{float32}", "mul{inplace=1}", "sum", "sum{axis=0,2}", "sum{axis=}", "argmax{axis=1}", "DimShuffle{x,1,0}", "DimShuffle{}", "InplaceDimShuffle{1,0}", "Shape_i{2}",
		"AllocEmpty{int64}", "MakeVector{bool}", "Reshape{3}", "Join{1}", "Gemm{inplace}", "BlasGemv", "BlasGer{inplace}", "Usmm{inplace}", "Subtensor{1:3,_,::-1,_:_}", "Subtensor{1:2:_,::_}", "SpecifyShape{[_, 3, ?]}", "Unique", "Subtensor{}", "IncSubtensor{1:}{inplace}",
		"SetSubtensor{0}", "AdvancedSubtensor1", "AdvancedSubtensor{2}", "AdvancedIncSubtensor1{inplace}", "AdvancedSetSubtensor{2}{inplace}", "SpecifyShape{[?, 3]}", "Assert{no way}", "LogSoftmaxGrad", "ARange", "Eye{bool}", "AllocDiag{-2}", "ExtractDiag{-1,2,0}", "Nonzero", "RepeatIndex", "Det", "SLogDet", "MatrixInverse",
		"LayerNorm{384,1e-12}", "LayerNorm{7,0.5}", "Integers{int8}{Matmul}", "BlockMatmul{4,768}", "BlockMatmul{2,64,rounded}", "MatmulInteger", "MatmulInteger{float32}", "ConvLastInteger{2}{strides=2,1}", "ConvLastInteger{float32}{1}{pads=1,0}", "Integers{int16}{Dot22}", "Integers{int8}{ConvLast}{2}{pads=1,1,0,0}", "Conv{2}", "Winograd{4}{pads=1,1,0,2}", "Winograd{2}", "ConvLast{2}{pads=1,1,0,0}{groups=2}", "Conv{1}{strides=2}{dilations=3}{pads=-1,2}{groups=4}", "ConvTranspose{3}{pads=0,0,1,0,0,0}", "ConvWeights{2}{strides=1,2}", "MaxPool{3,3}{strides=2,2}{pads=1,1,1,1}{ceil}", "MaxPoolPlaces{2}",
		"AveragePool{2,2}{ceil}{count_include_pad}", "AveragePoolGrad{2}{count_include_pad}", "SumPool{1}", "SumPoolGrad{2,1,2}{dilations=1,1,2}", "ResizePlaces{half_pixel}", "ResizePlaces{asymmetric}{floor}", "Interpolate{axis=2}",
	} {
		op, ok := expr.Default().Op(name)
		if !ok || op.String() != name {
			t.Errorf("%s: %v, %v", name, op, ok)
			continue
		}
		again, _ := expr.Default().Op(name)
		if !fgraph.OpsEqual(op, again) || fgraph.HashOp(op) != fgraph.HashOp(again) {
			t.Errorf("%s is not equal to itself", name)
		}
	}
	for _, name := range []string{"", "foo", "cast", "cast{foo}", "sum{foo}", "sum{axis=9}", "DimShuffle{9}", "DimShuffle{a}", "Shape_i", "Shape_i{-1}", "Subtensor", "Subtensor{::0}", "Subtensor{1:2:a}", "Gemm{foo}", "add{inplace=-1}", "add}{", "SpecifyShape{3}", "Eye", "Eye{int24}", "AllocDiag", "AllocDiag{}", "AllocDiag{99999999999}", "ExtractDiag{0}", "ExtractDiag{0,0,8}", "ExtractDiag{0,-1,1}",
		"LayerNorm", "LayerNorm{}", "LayerNorm{7}", "LayerNorm{7,}", "LayerNorm{7,1,1}", "LayerNorm{7,1}{2}", "ConvLastInteger{2}{groups=2}", "ConvLastInteger", "ConvLastInteger{float32}", "MatmulInteger{int32}", "BlockMatmul", "BlockMatmul{4}", "BlockMatmul{4,}", "BlockMatmul{4,7,x}", "Integers", "Integers{int8}", "Integers{float32}{Matmul}", "Integers{int8}{Join}{1}", "Integers{int8}{ConvLast}", "Integers{int8}{ConvLast}{2}{groups=2}", "Integers{int8}{Matmul}{1}", "Winograd", "Winograd{}", "Winograd{a}", "Winograd{4}{groups=2}", "Conv", "Conv{}", "Conv{0}", "Conv{4}", "Conv{2}{strides=1}", "Conv{1}{pads=1}", "Conv{1}{groups=0}", "Conv{1}{groups=1,2}", "Conv{1}{groups=2}{strides=2}", "Conv{1}{foo}", "MaxPool", "MaxPool{}", "MaxPool{a}", "MaxPool{1,1,1,1}", "MaxPool{2}{count_include_pad}", "AveragePool{2}{count_include_pad}{ceil}", "ResizePlaces", "ResizePlaces{floor}", "ResizePlaces{half_pixel}{}", "Interpolate", "Interpolate{2}"} {
		if op, ok := expr.Default().Op(name); ok {
			t.Errorf("%s is %v", name, op)
		}
	}
}

// FuzzParse checks that reading a text takes memory proportional to its length, that an expression
// is a sound graph, and that it prints as text that reads as the same expression.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"(x + y)*2/s", "sum(X, axis=0)", "x[1:3, None]", "*1 -> exp(x)", "set_subtensor(x[0:2], 1.5)", "t.transpose(2, 0, 1)", "Gemm(X, 1.0, X, Y, s)", "[x, y]", "1e-3**-x", "stack([s, 2])", "cast{float32}(x)::0",
		"split(x, 3)[1:][0]", "set_subtensor(X[:, i], y)", "inc_subtensor(t[i, :, i], s)", "X[X > 0]", "set_subtensor(X[1, p], 2.5)", "tile(X, (2, 1, n))", "pad(x, (1, n), 'reflect')", "diagonal(t, -1, 2, 0)", "nonzero(X)", "meshgrid(x, y)[0]", "kron(X, Y)", "repeat(x, i)", "t[..., None, i]", "linspace(x, y, 4)", "block_diag(X, x)", "roll(X, (1, n), (0, 1))", "x[[True, False]]", "array_split(x, 9)",
		"conv(t, t, pads=1, strides=2, groups=3)", "conv_transpose(t, t, x, output_padding=1)", "max_pool(t, 2, ceil_mode=True)", "average_pool(t, [3], pads=[1, 0], count_include_pad=True)", "resize(t, scales=[1, 1, 1.5], mode='linear')", "topk(x, 1)[1]", "scatter_nd(X, [[0, 1]], [s])", "Conv{1}{strides=2}{groups=3}(t, t)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 {
			return
		}
		s := newScope(t, parseVars)
		out, err := s.Parse(text)
		most := uint64(1<<20 + 20_000*len(text))
		if got := alloctest.Least(most, func() { newScope(t, parseVars).Parse(text) }); got > most {
			t.Errorf("%d bytes of text take %d bytes to read, more than %d", len(text), got, most)
		}
		if err != nil {
			if !errors.Is(err, expr.ErrSyntax) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		g, err := tensor.NewGraph(s.Inputs(), out)
		if err == nil {
			err = g.Check()
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		printed := fgraph.Sprint(0, out...)
		if len(printed) > 4000 || strings.Contains(printed, "…") {
			return // a constant is not printed in full
		}
		again, err := s.Parse(printed)
		if !plainConstants(g) { // a 2 that an int64[1] prints reads as a number
			return
		}
		if err != nil {
			t.Fatalf("%s prints as %s, which does not read: %v", text, printed, err)
		}
		got := fgraph.Sprint(0, again...)
		if got != printed {
			t.Fatalf("%s prints as\n%s, which reads as\n%s", text, printed, got)
		}
	})
}

// plainConstants reports whether all constants of a graph are float64 scalars.
func plainConstants(g *fgraph.FunctionGraph) bool {
	for v := range g.Variables() {
		if v.IsConstant() && v.Type() != tensor.ScalarType(array.Float64) {
			return false
		}
	}
	return true
}

// TestOpNameLists checks that lists of numbers in names of ops have no gaps.
func TestOpNameLists(t *testing.T) {
	for _, name := range []string{"sum{axis=0,,1}", "sum{axis= }", "Join{ }", "Join{}", "Join{0,1}", "DimShuffle{0,,1}", "SpecifyShape{[2,]}", "SpecifyShape{[]}", "argmax{axis=,}"} {
		if op, ok := expr.Default().Op(name); ok {
			t.Errorf("%s is %v", name, op)
		}
	}
}
