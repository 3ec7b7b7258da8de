package pipeline_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/nnopt/nnopt/exec/pipeline"
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
