package pipeline_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// From config lines to numbers, with the optimizer in between.
func Example() {
	ctx := context.Background()
	nn, _, err := pipeline.LoadFrom(strings.NewReader(`
input-node name=input dim=2
component name=a type=NaturalGradientAffineComponent input-dim=6 output-dim=3
component-node name=a component=a input=Append(Offset(input, -1), input, Offset(input, 1))
component name=b type=RectifiedLinearComponent dim=3
component-node name=b component=b input=a
output-node name=output input=b`), "example", 1)
	if err != nil {
		log.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 10})
	if err != nil {
		log.Fatal(err)
	}
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		log.Fatal(err)
	}
	plan, err := pipeline.Build(ctx, nn, req, pipeline.Options{Optimizer: opt})
	if err != nil {
		log.Fatal(err)
	}
	in, err := pipeline.RandomValues(nn, req, 1)
	if err != nil {
		log.Fatal(err)
	}
	out, err := pipeline.Run(ctx, plan.Optimized, nn, req, in)
	if err != nil {
		log.Fatal(err)
	}
	y := out.Outputs[0].Matrix
	fmt.Printf("%d commands became fewer: %v\n", len(plan.Compiled.Commands), len(plan.Optimized.Commands) < 10)
	fmt.Printf("the output is %d×%d\n", y.Rows, y.Cols)
	// Output:
	// 26 commands became fewer: true
	// the output is 10×3
}

// A program for many goroutines, and a computer for one of them, which is used for one chunk after
// another.
func Example_computer() {
	ctx := context.Background()
	nn, _, err := pipeline.LoadFrom(strings.NewReader(`
input-node name=input dim=2
input-node name=ivector dim=1
component name=a type=NaturalGradientAffineComponent input-dim=7 output-dim=3
component-node name=a component=a input=Append(Offset(input, -1), input, Offset(input, 1), ReplaceIndex(ivector, t, 0))
output-node name=output input=a`), "example", 1)
	check(err)
	nn.SetTestMode(true)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 150, Subsampling: 3})
	check(err)
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	check(err)
	plan, err := pipeline.Build(ctx, nn, req, pipeline.Options{Optimizer: opt})
	check(err)
	pipeline.Prepare(plan.Optimized, nn)
	program, err := exec.NewProgram(plan.Optimized, nn)
	check(err)

	c, err := program.NewComputer(exec.ComputerOptions{})
	check(err)
	frames, ivector := kernel.New(len(req.Input("input").Indexes), 2), kernel.New(1, 1)
	for range 2 {
		check(c.AcceptInput("input", frames))
		check(c.AcceptInput("ivector", ivector))
		check(c.Run(ctx))
		scores, err := c.Output("output")
		check(err)
		fmt.Printf("%d frames, and %d×%d scores\n", frames.Rows, scores.Rows, scores.Cols)
		c.Reset()
	}
	// Output:
	// 152 frames, and 50×3 scores
	// 152 frames, and 50×3 scores
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
