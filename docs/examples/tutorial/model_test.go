package tutorial

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor/array"
)

func Example_model() {
	m, err := onnx.ReadFile("testdata/affine.onnx") // max(x·w + b, 0)
	check(err)
	optimizer, err := passes.ForModels(optdb.Include("fast_run"))
	check(err)
	options := session.Options{Optimizer: optimizer}
	gaps, err := session.Unsupported(m, options)
	check(err)
	for _, gap := range gaps {
		fmt.Println("not computed:", gap)
	}
	runner := session.New(m, options).NewRunner() // a session is for any number of goroutines, a runner for one

	for _, rows := range []int{1, 2} {
		x := array.Of([]float32{1, 2, 3, 4, 5, 6}[:3*rows], rows, 3)
		f, outputs, err := runner.Run(context.Background(), map[string]*array.Array{"x": x})
		check(err)
		fmt.Println(f.Graph(), "=", outputs["y"])
	}
	// Output:
	// [Epilogue{maximum(add(i0, i1), 0.0)}{Dot22}(x, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0.5, -10.0]])] = [[4.5, 0.0]]
	// [Epilogue{maximum(add(i0, i1), 0.0)}{Dot22}(x, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[0.5, -10.0]])] = [[4.5, 0.0], [10.5, 1.0]]
}
