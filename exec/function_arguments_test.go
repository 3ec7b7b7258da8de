package exec_test

import (
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestIntegerArguments: integers in text keep all their digits, including the least one.
func TestIntegerArguments(t *testing.T) {
	i := fgraph.NewInput(tensor.VectorType(array.Int64), "i")
	for _, c := range []struct{ text, want string }{
		{"i=[4611686018427387905, -9223372036854775808]", "[4611686018427387905, -9223372036854775808]"},
		{"i=[9223372036854775807, -9223372036854775807 - 1]", "[9223372036854775807, -9223372036854775808]"},
		{"i=[4611686018427387904 + 1, 7*1317624576693539401, 3**39]", "[4611686018427387905, 9223372036854775807, 4052555153018976267]"},
		{"i=arange(-6917529027641081856, 6917529027641081856, 4611686018427387904)", "[-6917529027641081856, -2305843009213693952, 2305843009213693952]"},
		{"i=arange(9223372036854775807, -9223372036854775807, -9223372036854775808)", "[9223372036854775807, -1]"},
		{"i=-[-9223372036854775808]", "[-9223372036854775808]"},
	} {
		args, err := exec.ParseArguments(t.Context(), []*fgraph.Variable{i}, c.text)
		if err != nil || args[0].String() != c.want {
			t.Errorf("%s is %v, %v", c.text, args, err)
		}
	}
}

// TestSparseOutput: a sparse matrix may be what a function returns, or a shared variable.
func TestSparseOutput(t *testing.T) {
	s := fgraph.NewInput(tensor.CSRType(array.Float64), "S")
	value := array.ToCSR(array.Of([]float64{0, 1, 2, 0}, 2, 2))
	shared := exec.NewShared("W", value)
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{s}, []*fgraph.Variable{s, shared.Variable()}, exec.FunctionOptions{Shared: []*exec.Shared{shared}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Call(t.Context(), value)
	if err != nil || !array.Equal(got[0], value) || !array.Equal(got[1], value) {
		t.Errorf("%v, %v", got, err)
	}
}
