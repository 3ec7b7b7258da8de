package exec_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

func parseNet(t testing.TB, config string) *nnet3.Nnet {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(config), "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	return nn
}

func random(r *rand.Rand, rows, cols int) kernel.Matrix {
	m := kernel.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(r.NormFloat64())
	}
	return m
}

func newComputer(t testing.TB, c *computation.Computation, nn *nnet3.Nnet, opts exec.ComputerOptions) *exec.Computer {
	t.Helper()
	p, err := exec.NewProgram(c, nn)
	if err != nil {
		t.Fatal(err)
	}
	comp, err := p.NewComputer(opts)
	if err != nil {
		t.Fatal(err)
	}
	return comp
}

func accept(t testing.TB, comp *exec.Computer, name string, m kernel.Matrix) {
	t.Helper()
	if err := comp.AcceptInput(name, m); err != nil {
		t.Fatal(err)
	}
}

func run(t testing.TB, comp *exec.Computer) {
	t.Helper()
	if err := comp.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func output(t testing.TB, comp *exec.Computer, name string) kernel.Matrix {
	t.Helper()
	m, err := comp.Output(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const smallNet = `
input-node name=input dim=5
component name=affine type=AffineComponent input-dim=10 output-dim=4 bias-stddev=1
component-node name=affine component=affine input=Append(Offset(input, -1), Offset(input, 1))
component name=relu type=RectifiedLinearComponent dim=4
component-node name=relu component=relu input=affine
component name=tdnn type=TdnnComponent input-dim=4 output-dim=3 time-offsets=-1,0,2
component-node name=tdnn component=tdnn input=relu
output-node name=output input=tdnn
`

func smallRequest(train bool) *computation.Request {
	rows := func(first, end int32) (v []index.Index) {
		for n := range int32(2) {
			for t := first; t < end; t++ {
				v = append(v, index.Index{N: n, T: t})
			}
		}
		return v
	}
	return &computation.Request{
		Inputs:              []computation.IoSpecification{{Name: "input", Indexes: rows(-2, 8), HasDeriv: train}},
		Outputs:             []computation.IoSpecification{{Name: "output", Indexes: rows(0, 5), HasDeriv: train}},
		NeedModelDerivative: train, StoreComponentStats: train,
	}
}

func compileSmall(t testing.TB, nn *nnet3.Nnet, train bool) *computation.Computation {
	t.Helper()
	c, err := compile.Compile(nn, smallRequest(train), compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
