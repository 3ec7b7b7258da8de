package exec_test

import (
	"fmt"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A listener notes what the product after it reads, as it is told, and passes its input on.
type listener struct{ told *[][]*kernel.Weights }

func (l listener) String() string { return "listener" }

func (l listener) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return []fgraph.Type{in[0].Type()}, nil
}

func (l listener) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		*l.told = append(*l.told, ws.Next)
		if err := ws.New(out[0], in[0].DType(), in[0].Shape()...); err != nil {
			return err
		}
		ws.Copy(out[0], in[0])
		return nil
	}, nil
}

// TestNext: from the second call on, ops know what the next product reads: a matrix, the window of a
// convolution or the parts of a spliced matrix. Behind the last one there is none.
func TestNext(t *testing.T) {
	constant := func(shape ...int) *fgraph.Variable { return tensor.Constant(array.Full(array.Float32, 0.5, shape...)) }
	var told [][]*kernel.Weights
	listen := func(v *fgraph.Variable) *fgraph.Variable { return tensor.MustApply(listener{&told}, v) }
	x := fgraph.NewInput(tensor.NewType(array.Float32, 1, 6, 7, 32), "x")
	y := tensor.MustApply(tensor.ConvLastOp{Window: array.Window{Dims: 2, Stride: [3]int{1, 1, 1}, Dilation: [3]int{1, 1, 1}}, Groups: 1}, listen(x), constant(3, 3, 32, 48))
	y = tensor.Matmul(listen(y), constant(48, 40))
	y = tensor.Matmul(listen(y), constant(40, 33))
	heard := listen(y)
	y = listen(tensor.MustApply(tensor.SpliceMatmulOp{N: 2}, heard, heard, constant(1, 1, 66, 35)))
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{y}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := f.NewRunner()
	for call, want := range []string{"[] [] [] [] []", "[288x48] [48x40] [40x33] [33x35][33x35] []", "[288x48] [48x40] [40x33] [33x35][33x35] []"} {
		told = nil
		if _, err := r.Run(t.Context(), array.Full(array.Float32, 1, 1, 6, 7, 32)); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, list := range told {
			got += " "
			for _, w := range list {
				m := w.Matrix()
				got += fmt.Sprintf("[%dx%d]", m.Rows, m.Cols)
			}
			if len(list) == 0 {
				got += "[]"
			}
		}
		if got != " "+want {
			t.Errorf("call %d:%s, want %s", call, got, want)
		}
	}
}
