package exec_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/passes/passtest"
)

// branches reads the layer "shared" four times: in two branches, and at several offsets.
const branches = `
input-node name=input dim=40
component name=first type=NaturalGradientAffineComponent input-dim=40 output-dim=64
component-node name=first component=first input=input
component name=relu type=RectifiedLinearComponent dim=64
component-node name=shared component=relu input=first
component name=b type=TdnnComponent input-dim=64 output-dim=48 time-offsets=-1,0,2
component-node name=b component=b input=shared
component name=a type=NaturalGradientAffineComponent input-dim=64 output-dim=48
component-node name=a component=a input=shared
component name=tanh type=TanhComponent dim=48
component-node name=tanh component=tanh input=b
component name=out type=LinearComponent input-dim=96 output-dim=33
component-node name=out component=out input=Append(a, Offset(tanh, 1))
output-node name=output input=out
output-node name=other input=Sum(a, b)
`

// recurrent has a layer that reads its own output of the step before.
const recurrent = `
input-node name=input dim=40
component name=affine type=NaturalGradientAffineComponent input-dim=104 output-dim=64
component-node name=affine component=affine input=Append(input, IfDefined(Offset(relu, -1)))
component name=sigmoid type=SigmoidComponent dim=64
component-node name=relu component=sigmoid input=affine
component name=out type=NaturalGradientAffineComponent input-dim=64 output-dim=32
component-node name=out component=out input=relu
output-node name=output input=out
`

// quantizedProgram compiles and optimizes a network for some sequences.
func quantizedProgram(t *testing.T, nn *nnet3.Nnet, sequences int, query string) *exec.Program {
	t.Helper()
	opt := passtest.Optimizer(t, query)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 7, Sequences: sequences})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pipeline.Build(context.Background(), nn, req, pipeline.Options{Optimizer: opt})
	if err != nil {
		t.Fatal(err)
	}
	pipeline.Prepare(plan.Optimized, nn)
	p, err := exec.NewProgram(plan.Optimized, nn)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outputs runs a program on the input and returns a copy of its output.
func outputs(t *testing.T, p *exec.Program, opts exec.ComputerOptions, in kernel.Matrix) kernel.Matrix {
	t.Helper()
	comp, err := p.NewComputer(opts)
	if err != nil {
		t.Fatal(err)
	}
	accept(t, comp, "input", in)
	for !comp.Done() {
		run(t, comp)
	}
	return kernel.Clone(output(t, comp, "output"))
}

// inputRows returns the number of rows of the input of a program.
func inputRows(t *testing.T, p *exec.Program) int {
	t.Helper()
	c := p.Computation()
	for _, cmd := range c.Commands {
		if fmt.Sprint(cmd.Type) == "AcceptInput" {
			return int(c.Submatrices[cmd.Args[0]].NumRows)
		}
	}
	t.Fatal("no input")
	return 0
}

// Products that read the same matrix share its integers, which changes nothing, and a sequence has
// the same bits alone.
func TestQuantizedProgram(t *testing.T) {
	for _, c := range []struct {
		name, config string
		unshared     string // the query with which nothing is shared, if any
	}{{"branches", branches, "+fast_run +int8 +int16"}, {"recurrent", recurrent, ""}} {
		nn := parseNet(t, c.config)
		for _, query := range []string{"+fast_run +int8", "+fast_run +int16", "+int8", "+fast_run +int8 +int16"} {
			t.Run(c.name+" "+query, func(t *testing.T) {
				p := quantizedProgram(t, nn, 3, query)
				made, kept := p.QuantizedInputs()
				if made == 0 || (query == c.unshared) != (kept == 0) {
					t.Errorf("%d inputs are quantized, and %d shared", made, kept)
				}
				in := random(rand.New(rand.NewPCG(5, 6)), inputRows(t, p), 40)
				got := outputs(t, p, exec.ComputerOptions{}, in)
				for what, opts := range map[string]exec.ComputerOptions{"with checks": {Check: true}, "poisoned": {Poison: true}} {
					equalMatrices(t, what, outputs(t, p, opts, in), got)
				}
				one := quantizedProgram(t, nn, 1, query)
				n, rows := inputRows(t, one), got.Rows/3
				for i := range 3 {
					equalMatrices(t, fmt.Sprint("sequence ", i, " alone"), outputs(t, one, exec.ComputerOptions{}, kernel.Rows(in, i*n, n)), kernel.Rows(got, i*rows, rows))
				}
				near(t, got, outputs(t, quantizedProgram(t, nn, 3, "+fast_run"), exec.ComputerOptions{}, in), 0.1)
			})
		}
	}
}

// NaN and infinities show in the rows that depend on them, as without quantization.
func TestQuantizedStrangeInput(t *testing.T) {
	nn := parseNet(t, branches)
	float, p := quantizedProgram(t, nn, 1, "+fast_run"), quantizedProgram(t, nn, 1, "+fast_run +int8")
	in := random(rand.New(rand.NewPCG(5, 6)), inputRows(t, p), 40)
	in.Data[3*40+5], in.Data[8*40+39] = float32(math.NaN()), float32(math.Inf(1))
	got, want := outputs(t, p, exec.ComputerOptions{}, in), outputs(t, float, exec.ComputerOptions{}, in)
	strange := 0
	for i := range want.Data {
		finite := func(v float32) bool { return v-v == 0 }
		if finite(got.Data[i]) != finite(want.Data[i]) {
			t.Fatalf("element %d is %v, in float32 %v", i, got.Data[i], want.Data[i])
		}
		if !finite(got.Data[i]) {
			strange++
		}
	}
	if strange == 0 || strange == len(want.Data) {
		t.Errorf("%d of %d elements are not finite", strange, len(want.Data))
	}
}

func equalMatrices(t *testing.T, what string, got, want kernel.Matrix) {
	t.Helper()
	for i := range want.Rows {
		for j, v := range kernel.Row(want, i) {
			if math.Float32bits(v) != math.Float32bits(kernel.Row(got, i)[j]) {
				t.Fatalf("%s: element (%d, %d) is %v, want %v", what, i, j, kernel.Row(got, i)[j], v)
			}
		}
	}
}

// near fails if the norm of the difference is more than a part of that of want, or zero.
func near(t *testing.T, got, want kernel.Matrix, part float64) {
	t.Helper()
	diff, sum := 0.0, 0.0
	for i, v := range want.Data {
		d := float64(v) - float64(got.Data[i])
		diff, sum = diff+d*d, sum+float64(v)*float64(v)
	}
	if r := math.Sqrt(diff / sum); !(r <= part) || r == 0 {
		t.Errorf("the results differ by %.3g of their norm", r)
	}
}
