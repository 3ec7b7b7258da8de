package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Softsign is an op that tensor does not have. It computes x/(1+|x|) for each element of a float64 vector.
type Softsign struct{ Inplace bool }

func (o Softsign) String() string {
	if o.Inplace {
		return "Softsign{inplace}"
	}
	return "Softsign"
}

// DestroyMap returns the input that the output overwrites.
func (o Softsign) DestroyMap() []fgraph.Alias {
	if !o.Inplace {
		return nil
	}
	return []fgraph.Alias{{Output: 0, Input: 0}}
}

// Infer returns the type of the output, which is that of the input.
func (o Softsign) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 || in[0].Type() != tensor.VectorType(array.Float64) {
		return nil, errors.New("Softsign takes a vector of float64")
	}
	return []fgraph.Type{in[0].Type()}, nil
}

// Compile returns the kernel.
func (o Softsign) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if o.Inplace {
			*out[0] = *in[0]
		} else if err := ws.New(out[0], array.Float64, in[0].Dim(0)); err != nil {
			return err
		} else {
			array.CopyTo(out[0], in[0])
		}
		y := array.Slice[float64](out[0])
		for i, x := range y {
			y[i] = x / (1 + math.Abs(x))
		}
		return nil
	}, nil
}

// Grad returns dy/(1+|x|)².
func (o Softsign) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	d := tensor.Add(tensor.Map(array.Abs, a.Inputs()[0]), tensor.Float(1))
	return []*fgraph.Variable{tensor.TrueDiv(out[0], tensor.Mul(d, d))}
}

// An op with a gradient, and a rule that makes it work in place if its input is dead.
func Example_op() {
	inplace := rewrite.Rule{
		Name: "softsign_inplace", Doc: "softsign overwrites what is not read again",
		On: []rewrite.Track{rewrite.TrackOp(Softsign{})}, Depth: 1,
		Fn: func(_ *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(tensor.MustApply(Softsign{Inplace: true}, n.Inputs()...)), nil
		},
	}
	db := passes.Default()
	if err := db.Register("softsign_inplace", rewrite.In2Out("softsign_inplace", inplace), 76, "fast_run", "inplace"); err != nil {
		fmt.Println(err)
	}
	optimizer, err := db.Build(optdb.Include("fast_run"))
	if err != nil {
		fmt.Println(err)
		return
	}
	x := tensor.Vector("x")
	y := tensor.MustApply(Softsign{}, tensor.MustApply(Softsign{}, x))
	grads, err := tensor.Grad(tensor.Sum(y), x)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := exec.NewFunction(context.Background(), []*fgraph.Variable{x}, []*fgraph.Variable{y}, exec.FunctionOptions{Optimizer: optimizer})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := exec.NewFunction(context.Background(), []*fgraph.Variable{x}, grads, exec.FunctionOptions{Optimizer: optimizer})
	if err != nil {
		fmt.Println(err)
		return
	}
	arg := array.Of([]float64{-1, 0, 3}, 3)
	value, err := f.Call(context.Background(), arg)
	fmt.Println(f, value, err)
	slope, err := g.Call(context.Background(), arg)
	fmt.Println(slope, err)
	// Output:
	// [Softsign{inplace}(Softsign(x))] [[-0.3333333333333333, 0.0, 0.42857142857142855]] <nil>
	// [[0.1111111111111111, 1.0, 0.02040816326530612]] <nil>
}
