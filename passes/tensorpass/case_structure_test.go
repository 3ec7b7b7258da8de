package tensorpass_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestCase72DimShuffle: permutations of permutations are one, or none; permutations of a sum move
// to its terms.
func TestCase72DimShuffle(t *testing.T) {
	turns(t, unfused,
		turn{"X.T.T", "X"},
		turn{"X.dimshuffle(1, 'x', 0).dimshuffle(2, 0, 'x', 1)", "DimShuffle{0,1,x,x}(X)"},
		turn{"X.dimshuffle(1, 0).dimshuffle(1, 0).dimshuffle(1, 0)", "DimShuffle{1,0}(X)"},
		turn{"(X + x + s).T", "add(DimShuffle{1,0}(X), DimShuffle{0,x}(x), DimShuffle{x,x}(s))"},
	)
}

// TestCase73FillSink: values are broadcast last, also through an apply with several clients.
func TestCase73FillSink(t *testing.T) {
	turns(t, unfused,
		turn{"exp(fill(X, s))", "Alloc(exp(s), Shape_i{0}(X), Shape_i{1}(X))"},
		turn{"fill(X, r)*Y", "mul(r, Y)"},
		turn{"[X + fill(Y, s), fill(Y, s)*2]", "add(X, *1 -> DimShuffle{x,x}(s)), Alloc(mul(2.0, *1), Shape_i{0}(Y), Shape_i{1}(Y))"},
		turn{"fill(F, s)*2", "Alloc(mul(2.0, DimShuffle{x,x}(s)), Shape_i{0}(F), Shape_i{1}(F))"},
	)
}

// TestCase74Shapes: shapes come from inputs, and a reshape to the shape of its argument does
// nothing.
func TestCase74Shapes(t *testing.T) {
	turns(t, unfused,
		turn{"shape(x + y)", "MakeVector{int64}(Shape_i{0}(x))"},
		turn{"shape(dot(X, Y))", "MakeVector{int64}(Shape_i{0}(X), Shape_i{1}(Y))"},
		turn{"shape(X*2 + r)[0]", "Shape_i{0}(X)"},
		turn{"x.reshape(x.shape[0])", "x"},
		turn{"[s, b][1]", "b"},
		turn{"stack(s, b)[0]", "s"},
	)
	_, _, g := newGraph(t, caseVars+"; u: float64[6]", "u.reshape(2, 3).reshape(3, 2)")
	if err := passtest.Optimizer(t, unfused).Rewrite(t.Context(), g, nil); err != nil {
		t.Fatal(err)
	}
	if got := g.String(); got != "[Reshape{2}(u, [3, 2])]" {
		t.Errorf("two reshapes became %v", got)
	}
}

// A vector has only one shape, but not any: its size is checked, and may be what is left.
func TestReshapedVector(t *testing.T) {
	turns(t, unfused,
		turn{"x.reshape(-1)", "x"}, turn{"x.reshape(x.shape[0])", "x"}, turn{"x.reshape(4)", "SpecifyShape{[4]}(x)"},
		turn{"x.reshape(i.shape[0])", "SpecifyShape{[_]}(x, Shape_i{0}(i))"},
		turn{"x.reshape(i[0])", "SpecifyShape{[_]}(x, switch(eq(-1, *1 -> Subtensor{0}(i)), Shape_i{0}(x), *1))"},
	)
}

// TestCase75ConstantFolding: constants are computed, but those that would overflow not before
// stabilize, and large ones never, unless they are weights of half floats.
func TestCase75ConstantFolding(t *testing.T) {
	turns(t, unfused,
		turn{"log(exp(1000.0) + exp(1001.0))", "1001.3132616875182"},
		turn{"log(sum(exp([1000.0, 1001.0])))", "1001.3132616875182"},
		turn{"(2 + 3)*exp(x)", "mul(5.0, exp(x))"},
		turn{"zeros(1000, 1000)", "Alloc(0.0, 1000, 1000)"},
	)
	x := fgraph.NewInput(tensor.NewType(array.Float32, 300), "x")
	for _, dtype := range []array.DType{array.Float16, array.BFloat16, array.Float64} {
		w := tensor.Cast(tensor.Constant(array.Full(dtype, 2, 300, 300)), array.Float32)
		g := newFunctionGraph(t, tensortest.Graph{Inputs: []variable{x}, Outputs: []variable{tensor.Dot(x, w)}})
		if err := passtest.Optimizer(t, unfused).Rewrite(t.Context(), g, nil); err != nil {
			t.Fatal(err)
		}
		if got := g.String(); strings.Contains(got, "cast") == dtype.IsHalf() {
			t.Errorf("a product of weights of type %v became %v", dtype, got)
		}
	}
}

// fusion runs the fusion, after the optimizer of the query if there is one, and returns how many
// ops it made of how many.
func fusion(t *testing.T, g *fgraph.FunctionGraph, query string) (fused, replaced int) {
	t.Helper()
	if query != "" {
		if err := passtest.Optimizer(t, query).Rewrite(t.Context(), g, nil); err != nil {
			t.Fatal(err)
		}
	}
	rec := profile.New("fusion", profile.ClassFusion)
	if err := rewrite.Run(t.Context(), tensorpass.Pass("composite_elemwise_fusion"), g, rec); err != nil {
		t.Fatal(err)
	}
	rec.End()
	for _, c := range rec.Record().Counters {
		switch c.Name {
		case "nb_fused":
			fused = int(c.Value)
		case "nb_replacement":
			replaced = int(c.Value)
		}
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	return fused, replaced
}

// TestCase76Fusion: 20 small parts with transpositions between them become 20 ops, a diamond
// becomes one, broadcasting and paths through other ops keep applies apart, and the order of the
// outputs does not matter.
//
// PyTensor makes 55 ops of 901 for the gradient with 25 terms. nnopt has fewer applies before and
// after; the test looks at those after. A chain of 35 inputs is one op, as there is no limit of 31.
func TestCase76Fusion(t *testing.T) {
	deep := newFunctionGraph(t, tensortest.DeepSmall(20))
	if fused, replaced := fusion(t, deep, ""); fused != 20 || replaced != 60 {
		t.Errorf("deep_small 20: %d ops of %d, want 20 of 60", fused, replaced)
	}
	large := newFunctionGraph(t, tensortest.LargeFuse(25))
	if fused, _ := fusion(t, large, unfused); fused > 55 || large.NumApplies() > 231 {
		t.Errorf("large_fuse 25: %d ops, %d applies are left, want 55 and 231 at most", fused, large.NumApplies())
	}
	terms := make([]string, 35)
	for i := range terms {
		terms[i] = fmt.Sprintf("exp(v%d)", i)
	}
	for _, c := range []struct {
		expr             string
		fused, ofApplies int
	}{
		{"sin(exp(x)) + cos(exp(x))", 1, 5}, // without merging
		{"exp(r) + X*Y", 1, 2},
		{"exp(x) + sum(exp(x))", 1, 2},
		{strings.Join(terms, " + "), 1, 69},
		// The negation leaves the group and comes back as a term: fusing both ends would make a
		// cycle.
		{"[eq(exp((-X).T + Y), Z), -X - exp((-X).T + Y).T]", 1, 3},
	} {
		_, _, g := newGraph(t, caseVars, c.expr)
		if c.expr[0] == '[' {
			if err := rewrite.Run(t.Context(), new(rewrite.Merge), g, nil); err != nil {
				t.Fatal(err)
			}
		}
		if fused, replaced := fusion(t, g, ""); fused != c.fused || replaced != c.ofApplies {
			t.Errorf("%s: %d ops of %d, want %d of %d: %v", c.expr, fused, replaced, c.fused, c.ofApplies, g)
		}
	}
	parts := []string{"exp(sin(x))", "exp(sin(X))", "exp(sin(t))"}
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		_, _, g := newGraph(t, caseVars, fmt.Sprintf("[%s, %s, %s]", parts[order[0]], parts[order[1]], parts[order[2]]))
		if fused, replaced := fusion(t, g, ""); fused != 3 || replaced != 6 {
			t.Errorf("order %v: %d ops of %d, want 3 of 6", order, fused, replaced)
		}
	}
}

// TestCase77Inplace: a fused op with two outputs overwrites its input with one of them. PyTensor
// allows only the first output, as its loop writes an element before it computes the next output;
// nnopt reads a block before it writes it, and takes the first as well. Sums with a product are
// added to the memory of the product.
func TestCase77Inplace(t *testing.T) {
	s := expr.NewScope()
	if err := s.Declare("x: vector"); err != nil {
		t.Fatal(err)
	}
	out, err := s.Parse("[x + 1, cos(x + 1) + x]")
	if err != nil {
		t.Fatal(err)
	}
	f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{Optimizer: passtest.Optimizer(t, "+fast_run"), Mutable: s.Inputs()})
	if err != nil {
		t.Fatal(err)
	}
	op, ok := f.Graph().Outputs()[0].Owner().Op().(*tensor.CompositeOp)
	if !ok || op.Inplace(0) != 0 || op.Inplace(1) >= 0 {
		t.Errorf("%v: want an op that overwrites x by its first output", f)
	}
	plain, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	args, err := plain.RandomArguments(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, plain, f, args, false)
	turns(t, "+fast_run",
		turn{"dot(X, Y) + X + Y + Z", "add{inplace=0}(Gemm(X, 1.0, X, Y, 1.0), Y, Z)"},
		turn{"exp(dot(X, Y))", "exp{inplace=0}(Dot22(X, Y))"},
	)
}

// TestCase78Gemm: sums with products of matrices are BLAS calls, with their factors; a product with
// one row or column is a product with a vector. A product with other uses stays, as nothing would
// be saved.
func TestCase78Gemm(t *testing.T) {
	turns(t, unfused,
		turn{"Z + dot(X, Y)", "Gemm(Z, 1.0, X, Y, 1.0)"},
		turn{"0.5*Z - 2*dot(X, Y)", "Gemm(Z, -2.0, X, Y, 0.5)"},
		turn{"dot(X, Y)*s", "Dot22Scalar(X, Y, s)"},
		turn{"dot(X, c)", "DimShuffle{0,x}(BlasGemv(AllocEmpty{float64}(Shape_i{0}(X)), 1.0, X, DimShuffle{0}(c), 0.0))"},
		turn{"dot(r, Y)", "DimShuffle{x,0}(BlasGemv(AllocEmpty{float64}(Shape_i{1}(Y)), 1.0, DimShuffle{1,0}(Y), DimShuffle{1}(r), 0.0))"},
		turn{"Z + s*dot(c, r)", "BlasGer(Z, s, DimShuffle{0}(c), DimShuffle{1}(r))"},
		turn{"z + dot(X, y)", "BlasGemv(z, 1.0, X, y, 1.0)"},
		turn{"outer(x, y)", "BlasGer(Alloc(0.0, Shape_i{0}(x), Shape_i{0}(y)), 1.0, x, y)"},
		turn{"[Z + dot(X, Y), dot(X, Y)]", "add(Z, *1 -> Dot22(X, Y)), *1"},
	)
}
