package pipeline

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// A Named is the matrix of an input or output node.
type Named struct {
	Name   string
	Matrix kernel.Matrix
}

// RandomValues returns a matrix for every input of the request, and for every output with a
// derivative. Elements are drawn from the standard normal distribution, and depend on the seed and
// the name of the node alone.
func RandomValues(nn *nnet3.Nnet, req *computation.Request, seed uint64) (Values, error) {
	var v Values
	add := func(list *[]Named, spec *computation.IoSpecification, salt string) error {
		node := nn.NodeIndex(spec.Name)
		if node < 0 {
			return fmt.Errorf("%w: the network has no node %q", computation.ErrRequest, spec.Name)
		}
		*list = append(*list, Named{spec.Name, randomMatrix(seed, spec.Name+salt, len(spec.Indexes), nn.OutputDim(node))})
		return nil
	}
	for i := range req.Inputs {
		if err := add(&v.Inputs, &req.Inputs[i], ""); err != nil {
			return v, err
		}
	}
	for i := range req.Outputs {
		if req.Outputs[i].HasDeriv {
			if err := add(&v.OutputDerivs, &req.Outputs[i], " derivative"); err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

// DrawZeros draws matrices of parameters that are zero as a whole, such as that of a last layer before any
// training, from a normal distribution that keeps the size of what they are multiplied with. Otherwise
// outputs would not depend on inputs.
func DrawZeros(nn *nnet3.Nnet, seed uint64) {
	for i, c := range nn.Components {
		u, ok := c.(component.UpdatableComponent)
		if !ok {
			continue
		}
		drawn := false
		for _, p := range u.Params() {
			m := p.Values
			if m.Rows < 2 || kernel.MatrixDot(m, m) != 0 {
				continue
			}
			values := randomMatrix(seed, nn.ComponentNames[i]+" "+p.Name, m.Rows, m.Cols)
			// A sum of m.Cols products has as many times the variance of one, which this factor takes back.
			kernel.Add(m, float32(1/math.Sqrt(float64(m.Cols))), values)
			drawn = true
		}
		if r, ok := c.(component.Renewer); ok && drawn {
			r.Renew(nil)
		}
	}
}

// Calibrate runs the request on random inputs, to give components of batch normalization the
// statistics of their inputs, and puts all components into test mode. It replaces training for a
// network with random parameters: otherwise activations grow or vanish from layer to layer.
func Calibrate(ctx context.Context, nn *nnet3.Nnet, req *computation.Request, seed uint64) error {
	defer nn.SetTestMode(true)
	nn.SetTestMode(true)
	// Dropout stays in test mode and draws nothing, but batch normalization only collects statistics outside of
	// it.
	eachBatchNorm(nn, func(i int, bn component.BatchNorm) {
		bn.ZeroStats()
		bn.SetTestMode(false)
	})
	forward := *req
	forward.NeedModelDerivative, forward.StoreComponentStats = false, true
	plan, err := Build(ctx, nn, &forward, Options{})
	if err != nil {
		return err
	}
	in, err := RandomValues(nn, &forward, seed)
	if err != nil {
		return err
	}
	// The run reads the network while it stores statistics, so these go to a copy first.
	seen := nn.Copy()
	program, err := exec.NewProgram(plan.Compiled, nn)
	if err != nil {
		return err
	}
	computer, err := program.NewComputer(exec.ComputerOptions{Stats: seen})
	if err != nil {
		return err
	}
	if err := Pass(ctx, computer, in.Inputs); err != nil {
		return err
	}
	eachBatchNorm(seen, func(i int, bn component.BatchNorm) { nn.Components[i] = bn })
	return nil
}

func eachBatchNorm(nn *nnet3.Nnet, do func(i int, bn component.BatchNorm)) {
	for i, c := range nn.Components {
		if bn, ok := c.(component.BatchNorm); ok {
			do(i, bn)
		}
	}
}

// randomMatrix returns a matrix of normal numbers for a seed and a name.
func randomMatrix(seed uint64, name string, rows, cols int) kernel.Matrix {
	h := fnv.New64a()
	io.WriteString(h, name)
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	m := kernel.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(r.NormFloat64())
	}
	return m
}
