package tensor_test

import (
	"math"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestKnown asks what is known of expressions: a number that all elements are, a bound of sizes, and
// whether no element is negative.
func TestKnown(t *testing.T) {
	x, X, i := tensor.Vector("x"), tensor.Matrix("X"), fgraph.NewInput(tensor.ScalarType(array.Int64), "i")
	n, m := tensor.ShapeI(X, 0), tensor.ShapeI(X, 1)
	op := func(o array.Opcode, in ...*fgraph.Variable) *fgraph.Variable { return tensor.Map(o, in...) }
	unknown := math.NaN()
	for _, c := range []struct {
		v              *fgraph.Variable
		uniform, least float64
		nonnegative    bool
	}{
		{tensor.Float(2), 2, unknown, true},
		{tensor.Float(-2), -2, unknown, false},
		{tensor.Int(3), 3, 3, true},
		{tensor.Int(-3), -3, unknown, false},
		{tensor.Constant(array.Of([]float64{1, 2}, 2)), unknown, unknown, false},
		{tensor.Alloc(tensor.Int(2), n), 2, 2, true},
		{tensor.Second(x, tensor.Float(5)), 5, unknown, true},
		{x, unknown, unknown, false},
		{i, unknown, unknown, false},
		{n, unknown, 0, true},
		{tensor.Shape(X), unknown, 0, true},
		{tensor.MakeVector(n, m), unknown, 0, true},
		{op(array.Add, n, m, tensor.Int(2)), unknown, 2, true},
		{op(array.Mul, tensor.Int(2), tensor.Int(3), n), unknown, 0, true},
		{op(array.Add, n, tensor.Int(-1)), unknown, unknown, false},
		{op(array.Add, n, i), unknown, unknown, false},
		{op(array.Maximum, n, tensor.Int(4)), unknown, 4, true},
		{op(array.IntDiv, n, tensor.Int(2)), unknown, 0, true},
		{op(array.Sub, n, m), unknown, unknown, false},
		{tensor.Exp(x), unknown, unknown, true},
		{tensor.Sqr(x), unknown, unknown, true},
		{op(array.Sqr, i), unknown, unknown, false},
		{tensor.Mul(tensor.Exp(x), x), unknown, unknown, false},
		{tensor.Mul(tensor.Exp(x), tensor.Sigmoid(x)), unknown, unknown, true},
		{tensor.Pow(x, tensor.Float(4)), unknown, unknown, true},
		{tensor.Pow(x, tensor.Float(3)), unknown, unknown, false},
		{op(array.Log1p, tensor.Exp(x)), unknown, unknown, true},
		{op(array.Log, tensor.Exp(x)), unknown, unknown, false},
		{op(array.Lt, x, tensor.Float(0)), unknown, unknown, true},
		{tensor.Softmax(X), unknown, unknown, true},
		{tensor.LogSoftmax(X), unknown, unknown, false},
		{tensor.Sum(tensor.Exp(X)), unknown, unknown, true},
		{tensor.Sum(X), unknown, unknown, false},
		{tensor.Join(0, tensor.Exp(x), tensor.Sqr(x)), unknown, unknown, true},
		{tensor.Join(0, tensor.Exp(x), x), unknown, unknown, false},
		{tensor.DimShuffle(tensor.Exp(X), 1, 0), unknown, unknown, true},
		{tensor.Cast(x, array.Int64), unknown, unknown, false},
	} {
		text := fgraph.Sprint(0, c.v)
		if got, ok := tensor.UniformOf(c.v); ok != (c.uniform == c.uniform) || ok && got != c.uniform {
			t.Errorf("all elements of %s are %v, %v", text, got, ok)
		}
		if got, ok := tensor.LeastSize(c.v); ok != (c.least == c.least) || ok && got != c.least {
			t.Errorf("%s is at least %v, %v", text, got, ok)
		}
		if got := tensor.Nonnegative(c.v); got != c.nonnegative {
			t.Errorf("%s is not negative: %v", text, got)
		}
	}
}

// TestFold computes an apply of constants, and one that fails.
func TestFold(t *testing.T) {
	out, err := tensor.Fold(t.Context(), tensor.Add(tensor.Float(2), tensor.Float(3)).Owner())
	if err != nil || len(out) != 1 || out[0].Float(0) != 5 {
		t.Error(out, err)
	}
	big := tensor.AllocEmpty(array.Float64, tensor.Int(1<<40))
	if out, err := tensor.Fold(t.Context(), big.Owner()); err == nil {
		t.Error(out)
	}
}

// TestReshapeTooLarge gives no elements a shape whose number of elements is 0 only because it wraps.
func TestReshapeTooLarge(t *testing.T) {
	for _, shape := range [][]int64{{1 << 40, 1 << 40}, {1 << 32, 1 << 32}, {1 << 40, 1 << 40, -1}} {
		nothing, sizes := tensor.Constant(array.New(array.Float64, 0)), tensor.Constant(array.Of(shape, len(shape)))
		if out, err := tensor.Fold(t.Context(), tensor.ReshapeTo(nothing, sizes, len(shape)).Owner()); err == nil {
			t.Errorf("%d: %v", shape, out)
		}
	}
}

// TestFuse makes one apply of several.
func TestFuse(t *testing.T) {
	x, y := tensor.Vector("x"), tensor.Vector("y")
	e := tensor.Exp(x)
	s := tensor.Add(e, y)
	p := tensor.Mul(s, tensor.Constant(array.Of([]float64{3}, 1)))
	g, err := tensor.NewGraph([]*fgraph.Variable{x, y}, []*fgraph.Variable{e, p})
	if err != nil {
		t.Fatal(err)
	}
	e, p = g.Outputs()[0], g.Outputs()[1]
	s = p.Owner().Inputs()[0]
	a, replaced, err := tensor.Fuse([]*fgraph.Apply{e.Owner(), s.Owner(), p.Owner()})
	if err != nil || len(a.Inputs()) != 2 || len(replaced) != 2 || replaced[0] != e || replaced[1] != p {
		t.Fatal(a, replaced, err)
	}
	if got, want := a.Op().String(), "Composite{exp(i0); mul(add(exp(i0), i1), 3.0)}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	two := tensor.Add(tensor.Float(1), tensor.Float(1)).Owner()
	if a, _, err := tensor.Fuse([]*fgraph.Apply{two}); a != nil || err != nil {
		t.Error(a, err)
	}
}

// TestFusedSizes asks for the sizes of a reshape: what may be -1 says nothing, and the larger one of 0 and a difference is
// no such number, nor what is computed of it, in a program or not.
func TestFusedSizes(t *testing.T) {
	X := tensor.Matrix("X")
	n := tensor.ShapeI(X, 0)
	difference := tensor.Map(array.Sub, n, tensor.Int(1))
	clamped := tensor.Map(array.Maximum, tensor.Int(0), difference)
	double, sum := tensor.Map(array.Mul, clamped, tensor.Int(2)), tensor.Map(array.Add, clamped, n)
	// Another n that is the same size, and all of its sizes in one program.
	m := tensor.ShapeI(X, 0)
	p := array.NewProgram(array.Int64)
	d := p.Append(array.Sub, 0, p.Constant(array.Of([]int64{1})))
	c := p.Append(array.Maximum, p.Constant(array.Of([]int64{0})), d)
	twice, both := p.Append(array.Mul, c, p.Constant(array.Of([]int64{2}))), p.Append(array.Add, 0, c)
	a, err := tensor.Make(tensor.NewComposite(p.Return(d, c, twice, both)), m)
	if err != nil {
		t.Fatal(err)
	}
	fused := a.Outputs()
	for i, size := range []*fgraph.Variable{difference, clamped, double, sum} {
		for _, v := range []*fgraph.Variable{size, fused[i]} {
			y := tensor.Reshape(X, v, tensor.Int(1))
			if got := tensor.NewShapes().Dim(y, 0); (got == v) != (i > 0) {
				t.Errorf("a reshape to %v×1 has a size of %v", v, got)
			}
		}
		for k, v := range fused {
			if same := tensor.SameSize(size, v) && tensor.SameSize(v, size); same != (i == k) {
				t.Errorf("%v and %v: the same size is %v", size, v, same)
			}
		}
	}
}
