package exec_test

import (
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestUsed: a function tells of each constant once, when the last op that reads it has run, and not before: also of
// one that is read through a view, and by ops that were not needed.
func TestUsed(t *testing.T) {
	constants := make([]*array.Array, 3)
	vars := make([]*fgraph.Variable, len(constants))
	for i := range constants {
		constants[i] = numbers(3)
		vars[i] = tensor.Constant(constants[i])
	}
	x := tensor.Vector("x")
	first := tensor.Add(x, vars[0])
	second := tensor.Mul(first, tensor.Flip(vars[1], 0))
	chosen := tensor.IfElse(tensor.Sum(second), []*fgraph.Variable{second}, []*fgraph.Variable{tensor.Mul(first, vars[2])})[0]
	out := tensor.Sub(chosen, vars[0])
	var told []*array.Array
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{out}, exec.FunctionOptions{Used: func(a *array.Array) {
		told = append(told, a)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := f.NewRunner()
		for range 2 {
			got, err := r.Run(t.Context(), numbers(3))
			if err != nil || got[0].String() != "[5.0, 6.0, 3.0]" {
				t.Fatal(got, err)
			}
		}
	}
	var ours []*array.Array // the function has constants of its own, too
	for _, a := range told {
		if slices.Contains(constants, a) {
			ours = append(ours, a)
		}
	}
	if len(ours) != 3 || ours[2] != constants[0] {
		t.Errorf("%d constants, the last one %v", len(ours), slices.Index(constants, ours[len(ours)-1]))
	}
}

// TestUsedParts: memory of a large factor may be given back while the rest of it is prepared, in either order.
func TestUsedParts(t *testing.T) {
	for _, turned := range []bool{false, true} {
		x := fgraph.NewInput(tensor.NewType(array.Float32, 1, 1, 1200), "x")
		w := array.Full(array.Float32, 1, 1200, 3000)
		factor := tensor.Constant(w)
		if turned {
			w = array.Full(array.Float32, 1, 1, 3000, 1200)
			factor = tensor.DimShuffle(tensor.Constant(w), 0, 2, 1)
		}
		parts, elements := 0, 0
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{tensor.Matmul(x, factor)}, exec.FunctionOptions{Used: func(a *array.Array) {
			if a.Overlaps(w) && a.Len() < w.Len() {
				parts, elements = parts+1, elements+a.Len()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if out, err := f.Call(t.Context(), array.Full(array.Float32, 1, 1, 1, 1200)); err != nil || out[0].Float(2999) != 1200 {
				t.Fatal(out, err)
			}
		}
		if parts < 2 || elements != w.Len() {
			t.Errorf("turned %t: %d parts of %d elements", turned, parts, elements)
		}
	}
}
