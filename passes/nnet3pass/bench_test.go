package nnet3pass_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// unrolled are recurrent networks, small ones: the time of the optimizer depends on the number of
// commands, not on what they cost.
var unrolled = []struct{ name, config string }{
	// Two layers of long short-term memory with projections, as Kaldi's fast recipes have them.
	{"lstmp", `
input-node name=input dim=6
component name=in type=NaturalGradientAffineComponent input-dim=18 output-dim=8
component-node name=in component=in input=Append(Offset(input, -1), input, Offset(input, 1))
component name=in.relu type=RectifiedLinearComponent dim=8
component-node name=in.relu component=in.relu input=in
` + lstmpLayer("l1", "in.relu", 8) + lstmpLayer("l2", "l1.p", 6) + `
component name=out type=NaturalGradientAffineComponent input-dim=6 output-dim=5
component-node name=out component=out input=l2.p
component name=out.log type=LogSoftmaxComponent dim=5
component-node name=out.log component=out.log input=out
output-node name=output input=out.log`},
	// One layer made of small components.
	{"lstm", `
input-node name=input dim=6
component name=Wi type=NaturalGradientAffineComponent input-dim=10 output-dim=4
component-node name=i1 component=Wi input=Append(input, IfDefined(Offset(m, -1)))
component name=i type=SigmoidComponent dim=4
component-node name=i component=i input=i1
component name=Wf type=NaturalGradientAffineComponent input-dim=10 output-dim=4
component-node name=f1 component=Wf input=Append(input, IfDefined(Offset(m, -1)))
component name=Pf type=PerElementScaleComponent dim=4 param-stddev=0.5
component-node name=f2 component=Pf input=IfDefined(Offset(c, -1))
component name=f type=SigmoidComponent dim=4
component-node name=f component=f input=Sum(f1, f2)
component name=Wg type=NaturalGradientAffineComponent input-dim=10 output-dim=4
component-node name=g1 component=Wg input=Append(input, IfDefined(Offset(m, -1)))
component name=g type=TanhComponent dim=4
component-node name=g component=g input=g1
component name=product type=ElementwiseProductComponent input-dim=8 output-dim=4
component-node name=c1 component=product input=Append(f, IfDefined(Offset(c, -1)))
component-node name=c2 component=product input=Append(i, g)
component name=sum type=NoOpComponent dim=4
component-node name=c component=sum input=Sum(c1, c2)
component-node name=m component=g input=c
output-node name=output input=m`},
}

// lstmpLayer is a layer of 4 cells, of whose 6 projections 3 are recurrent.
func lstmpLayer(name, input string, dim int) string {
	return strings.NewReplacer("NAME", name, "INPUT", input, "DIM", fmt.Sprint(dim+3)).Replace(`
component name=NAME.W type=NaturalGradientAffineComponent input-dim=DIM output-dim=16
component-node name=NAME.W component=NAME.W input=Append(INPUT, IfDefined(Offset(NAME.r, -1)))
component name=NAME.n type=LstmNonlinearityComponent cell-dim=4 use-dropout=false
component-node name=NAME.n component=NAME.n input=Append(NAME.W, IfDefined(Offset(NAME.c, -1)))
dim-range-node name=NAME.c0 input-node=NAME.n dim-offset=0 dim=4
dim-range-node name=NAME.m input-node=NAME.n dim-offset=4 dim=4
component name=NAME.p type=NaturalGradientAffineComponent input-dim=4 output-dim=6
component-node name=NAME.p component=NAME.p input=NAME.m
dim-range-node name=NAME.r0 input-node=NAME.p dim-offset=0 dim=3
component name=NAME.t type=BackpropTruncationComponent dim=7 scale=0.9 clipping-threshold=30 zeroing-threshold=15 zeroing-interval=20 recurrence-interval=1
component-node name=NAME.t component=NAME.t input=Append(NAME.c0, NAME.r0)
dim-range-node name=NAME.c input-node=NAME.t dim-offset=0 dim=4
dim-range-node name=NAME.r input-node=NAME.t dim-offset=4 dim=3
`)
}

// compileUnrolled compiles a network for a number of frames that takes about that many commands.
func compileUnrolled(tb testing.TB, config string, train bool, commands int) (*nnet3.Nnet, *computation.Computation) {
	tb.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(config), "config", 1)
	if err != nil {
		tb.Fatal(err)
	}
	compiled := func(frames int) *computation.Computation {
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: frames, Sequences: 2, Derivative: train})
		if err != nil {
			tb.Fatal(err)
		}
		c, err := compile.Compile(nn, req, compile.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		return c
	}
	// The commands grow by the same number with every frame.
	a, b := len(compiled(4).Commands), len(compiled(8).Commands)
	return nn, compiled(max(2, 4+(commands-a)*4/(b-a)))
}

// BenchmarkUnrolled optimizes unrolled recurrent networks, from lowering to emission, and reports
// the time per command as compiled.
func BenchmarkUnrolled(b *testing.B) {
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range unrolled {
		for _, train := range [2]bool{false, true} {
			name := n.name
			if train {
				name += "_train"
			}
			for _, commands := range []int{200, 2000, 20000} {
				b.Run(fmt.Sprintf("%s/%d", name, commands), func(b *testing.B) {
					nn, c := compileUnrolled(b, n.config, train, commands)
					runtime.GC() // what compiling has left is not on the bill
					var left int
					for b.Loop() {
						got, err := passes.Optimize(context.Background(), c, nn, opt, nil)
						if err != nil {
							b.Fatal(err)
						}
						left = len(got.Commands)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(c.Commands)), "ns/command")
					b.ReportMetric(float64(len(c.Commands)), "commands")
					b.ReportMetric(float64(left), "left")
				})
			}
		}
	}
}
