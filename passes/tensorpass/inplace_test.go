package tensorpass_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// squares returns an op with n inputs and their squares as outputs.
func squares(n int) *tensor.CompositeOp {
	types := make([]array.DType, n)
	for i := range types {
		types[i] = array.Float64
	}
	p := array.NewProgram(types...)
	values := make([]int, n)
	for i := range values {
		values[i] = p.Append(array.Sqr, i)
	}
	return tensor.NewComposite(p.Return(values...))
}

// inPlace runs the pass on a graph, and returns the result and the number of changes.
func inPlace(t *testing.T, inputs, outputs []*fgraph.Variable) (*fgraph.FunctionGraph, int) {
	t.Helper()
	g, err := tensor.NewGraph(inputs, outputs)
	if err != nil {
		t.Fatal(err)
	}
	rewritetest.Run(t, rewrite.AddDestroyHandler(), g)
	before := g.Commits()
	rewritetest.Run(t, tensorpass.Pass("inplace_elemwise_optimizer"), g)
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	return g, g.Commits() - before
}

// TestInplaceAtOnce: an op takes the memory of all inputs that it may have in one change, which
// makes the pass linear.
func TestInplaceAtOnce(t *testing.T) {
	const n = 60
	var inputs, args, outputs []*fgraph.Variable
	for i := range n {
		x := tensor.Vector(fmt.Sprintf("x%d", i))
		inputs, args = append(inputs, x), append(args, tensor.Exp(x))
	}
	a, err := tensor.Make(squares(n), args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range a.Outputs() {
		outputs = append(outputs, tensor.Sum(v))
	}
	g, changes := inPlace(t, inputs, outputs)
	if got := strings.Count(g.String(), "[("); changes != 1 || !strings.Contains(g.String(), fmt.Sprintf("[(%d, %d)]", n-1, n-1)) {
		t.Errorf("%d changes, %d places in %v", changes, got, g)
	}
}

// TestInplaceOneOfTwo: what is possible for each output is not possible for both.
func TestInplaceOneOfTwo(t *testing.T) {
	x := tensor.Vector("x")
	y := tensor.Exp(x)
	a, err := tensor.Make(squares(2), y, y)
	if err != nil {
		t.Fatal(err)
	}
	g, changes := inPlace(t, []*fgraph.Variable{x}, []*fgraph.Variable{tensor.Sum(a.Outputs()[0]), tensor.Sum(a.Outputs()[1])})
	if s := g.String(); changes != 1 || !strings.Contains(s, "[(0, 0)]") || strings.Contains(s, "[(1, ") {
		t.Errorf("%d changes: %s", changes, s)
	}
}

// TestInplaceReadLater: the pass leaves an input alone that is read again after the op, and takes
// the next one.
func TestInplaceReadLater(t *testing.T) {
	x, y := tensor.Vector("x"), tensor.Vector("y")
	u, v := tensor.Exp(x), tensor.Exp(y)
	p := array.NewProgram(array.Float64, array.Float64)
	a, err := tensor.Make(tensor.NewComposite(p.Return(p.Append(array.Add, 0, 1))), u, v)
	if err != nil {
		t.Fatal(err)
	}
	g, changes := inPlace(t, []*fgraph.Variable{x, y}, []*fgraph.Variable{tensor.Dot(a.Out(), u)})
	if s := g.String(); changes != 1 || !strings.Contains(s, "[(0, 1)]") {
		t.Errorf("%d changes: %s", changes, s)
	}
}
