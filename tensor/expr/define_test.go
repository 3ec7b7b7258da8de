package expr_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// A shift adds a number of a few to its input.
type shift struct {
	by      string
	Inplace bool
}

func (op shift) String() string {
	if op.Inplace {
		return "Shift{" + op.by + "}{inplace}"
	}
	return "Shift{" + op.by + "}"
}

func (op shift) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 || tensor.TypeOf(in[0]).DType() != array.Float64 {
		return nil, errors.New("one tensor of float64 is expected")
	}
	return []fgraph.Type{in[0].Type()}, nil
}

func (op shift) AddTo(p *array.Program, args ...int) int {
	by := map[string]float64{"one": 1, "two": 2}[op.by]
	return p.Append(array.Add, args[0], p.Constant(array.Scalar(by)))
}

func (op shift) Compile(a *fgraph.Apply) (tensor.Kernel, error) {
	return tensor.CompileFusible(op, a)
}

// shiftOps defines shifts by one and two.
func shiftOps() expr.Definition {
	return expr.Definition{
		Name: "Shift",
		Op: func(params []string) (tensor.Op, bool) {
			ok := len(params) > 0 && len(params) < 3 && (params[0] == "one" || params[0] == "two")
			if !ok || len(params) == 2 && params[1] != "inplace" {
				return nil, false
			}
			return shift{params[0], len(params) == 2}, true
		},
	}
}

// TestWith: an op of somebody else is called by its name with its parameters, and written to a file
// and read again.
func TestWith(t *testing.T) {
	lang := expr.Default().Must(shiftOps())
	s := lang.NewScope()
	out, err := s.Parse("Shift{one}(2*x) + Shift{two}(x) + x.exp()")
	if err != nil {
		t.Fatal(err)
	}
	const want = "[add(add(Shift{one}(mul(2.0, x)), Shift{two}(x)), exp(x))]"
	if got := fgraph.Sprint(0, out...); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if values, err := f.Call(t.Context(), array.Scalar(0.0)); err != nil || values[0].Float(0) != 4 {
		t.Errorf("%v, %v", values, err)
	}
	text, err := graphfile.Format(&graphfile.File{Graph: f.Graph()}, lang.Dialect())
	if err != nil {
		t.Fatal(err)
	}
	again, err := graphfile.Parse("x.graph", text, lang.Dialect())
	if err != nil || again.Graph.String() != want {
		t.Errorf("%v, %v, want %s", again, err, want)
	}
	if _, err := graphfile.Parse("x.graph", text, expr.Dialect{}); err == nil || !strings.Contains(err.Error(), `there is no op "Shift{`) {
		t.Errorf("the default language reads it: %v", err)
	}
	if _, err := graphfile.Parse("x.graph", strings.ReplaceAll(text, "Shift{one}", "Shfit{one}"), lang.Dialect()); err == nil || !strings.Contains(err.Error(), "did you mean Shift?") {
		t.Errorf("a misspelt op: %v", err)
	}
	for text, want := range map[string]string{
		"Shift{six}(x)": "there is no function Shift{six}; Shift takes other parameters", "Shift{one}(x, y)": "column 1: Shift{one}: one tensor of float64",
		"Shift{one}": "Shift{one} is an op and needs arguments", "Shift(x)": "there is no function Shift",
	} {
		if _, err := s.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := expr.NewScope().Parse("Shift{one}(x)"); err == nil {
		t.Error("the default language has changed")
	}
}

// TestWithFaults: what a language can't have is refused, and all faults are named.
func TestWithFaults(t *testing.T) {
	function := func(...*fgraph.Variable) (*fgraph.Variable, error) { return nil, nil }
	for _, c := range []struct {
		def  expr.Definition
		want string
	}{
		{expr.Definition{Name: "", Function: function}, "not a name"},
		{expr.Definition{Name: "a b", Function: function}, "not a name"},
		{expr.Definition{Name: "a{b}", Function: function}, "not a name"},
		{expr.Definition{Name: "2x", Function: function}, "not a name"},
		{expr.Definition{Name: "float32", Function: function}, "means something else"},
		{expr.Definition{Name: "lambda", Function: function}, "means something else"},
		{expr.Definition{Name: "None", Function: function}, "means something else"},
		{expr.Definition{Name: "np", Function: function}, "means something else"},
		{expr.Definition{Name: "exp", Function: function}, "already"},
		{expr.Definition{Name: "sum", Function: function}, "already"},
		{expr.Definition{Name: "square", Function: function}, "already"},
		{expr.Definition{Name: "mean", Function: function}, "already"},
		{expr.Definition{Name: "split", Function: function}, "already"},
		{expr.Definition{Name: "Composite", Function: function}, "already"},
		{expr.Definition{Name: "mine"}, "either an op or a function"},
		{expr.Define(), "not a name"},
		{expr.Define(shift{by: "one"}, unnamed{}), "does not print as that name"},
		{expr.Definition{Name: "mine", Op: shiftOps().Op, Function: function}, "either an op or a function"},
	} {
		_, err := expr.Default().With(c.def, expr.Definition{Name: "also"})
		if !errors.Is(err, expr.ErrDefinition) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "also: either") {
			t.Errorf("%s: %v, want %s", c.def.Name, err, c.want)
		}
	}
	lang := expr.Default().Must(expr.Definition{Name: "mine", Function: function})
	if _, err := lang.With(expr.Definition{Name: "mine", Function: function}); err == nil {
		t.Error("a name is defined twice")
	}
	if _, err := lang.NewScope().Parse("mine(x)"); err == nil || !strings.Contains(err.Error(), "mine: it returned nothing") {
		t.Errorf("a function that returns nothing: %v", err)
	}
}

type unnamed struct{ shift }

func (unnamed) String() string { return "other thing" }

func ExampleLanguage_With() {
	lang, err := expr.Default().With(expr.Define(shift{by: "one"}), expr.Definition{
		Name: "odds",
		Function: func(in ...*fgraph.Variable) (*fgraph.Variable, error) {
			return tensor.Try(func() *fgraph.Variable { return tensor.TrueDiv(in[0], tensor.Sub(tensor.Float(1), in[0])) })
		},
	})
	if err != nil {
		panic(err)
	}
	s := lang.NewScope()
	y := s.MustParse("odds(Shift{one}(x))")
	fmt.Println(fgraph.Sprint(0, y))
	f, _ := exec.NewFunction(context.Background(), s.Inputs(), []*fgraph.Variable{y}, exec.FunctionOptions{})
	fmt.Println(f.Call(context.Background(), array.Scalar(-0.5)))
	// Output:
	// [true_div(*1 -> Shift{one}(x), sub(1.0, *1))]
	// [1.0] <nil>
}
