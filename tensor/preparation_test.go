package tensor_test

import (
	"runtime"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

// TestPreparedFactors: functions of one graph have their weights prepared once, also where they are transposed.
func TestPreparedFactors(t *testing.T) {
	weights := array.Full(array.Float32, 0.5, 1, 64, 32)
	typ := tensor.NewType(array.Float32, tensor.Unknown, tensor.Unknown, tensor.Unknown)
	x, y := fgraph.NewInput(typ, "x"), fgraph.NewInput(typ, "y")
	w := tensor.Constant(weights)
	var functions []*exec.Function // what they prepare is there as long as they are
	for range 2 {
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x, y}, []*fgraph.Variable{tensor.Matmul(x, w), tensor.Matmul(y, tensor.DimShuffle(w, 0, 2, 1))}, exec.FunctionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Call(t.Context(), array.Full(array.Float32, 1, 2, 50, 64), array.Full(array.Float32, 1, 2, 50, 32)); err != nil {
			t.Fatal(err)
		}
		functions = append(functions, f)
		if n := preparation.Forms(weights); n != 2 {
			t.Errorf("prepared in %d forms after %d functions", n, len(functions))
		}
	}
	runtime.KeepAlive(functions)
}
