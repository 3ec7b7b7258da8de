package expr_test

import (
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestEpilogueText: products with an epilogue are read as they are written.
func TestEpilogueText(t *testing.T) {
	p := array.NewProgram(array.Float32, array.Float32)
	p.Return(p.Append(array.Maximum, p.Append(array.Add, 0, 1), p.Constant(array.Full(array.Float32, 0))))
	var d expr.Dialect
	for _, base := range []tensor.Op{tensor.MatmulOp{}, tensor.Dot22Op{}, tensor.SpliceMatmulOp{N: 3}, tensor.NewIntegers(tensor.MatmulOp{}, kernel.Int8),
		tensor.NewIntegers(tensor.ConvLastOp{Window: array.Window{Dims: 1, Stride: [array.MaxSpatial]int{2}, Dilation: [array.MaxSpatial]int{1}}, Groups: 1}, kernel.Int16),
		tensor.WinogradOp{Window: array.Window{Dims: 2, Stride: [array.MaxSpatial]int{1, 1}, Dilation: [array.MaxSpatial]int{1, 1}}, Tile: 2},
		tensor.ConvLastOp{Window: array.Window{Dims: 2, Stride: [array.MaxSpatial]int{2, 1}, Dilation: [array.MaxSpatial]int{1, 1}}, Groups: 4}} {
		op := tensor.NewEpilogue(base, p)
		text, err := d.OpText(op)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.ParseOp(text); err != nil || !fgraph.OpsEqual(got, op) {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
	if op := tensor.NewEpilogue(tensor.JoinOp{}, p); op != nil {
		t.Errorf("%v", op)
	}
	for _, text := range []string{"Epilogue", "Epilogue{}", "Epilogue{float32}{Matmul}", "Epilogue{float32, float32; add 0 1; return 2}{Join}{1}", "Epilogue{float32, float32; add 0 1; return 2}"} {
		if op, err := d.ParseOp(text); err == nil {
			t.Errorf("%s is read as %v", text, op)
		}
	}
}
