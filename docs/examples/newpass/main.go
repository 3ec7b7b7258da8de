// Newpass adds an optimization of nnet3 networks to the standard database, without being a part of nnopt, and shows what it did.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

const config = `
input-node name=input dim=4
component name=affine type=NaturalGradientAffineComponent input-dim=4 output-dim=8
component-node name=affine component=affine input=input
component name=relu type=RectifiedLinearComponent dim=8
component-node name=relu1 component=relu input=affine
component-node name=relu2 component=relu input=relu1
output-node name=output input=relu2`

func main() {
	nn, _, err := pipeline.LoadFrom(strings.NewReader(config), "config", 1)
	check(err)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 10})
	check(err)
	// begin
	rule := pattern.Must(nnet3pass.Vocabulary(), "(RectifiedLinearComponent y@(RectifiedLinearComponent x))", "y",
		pattern.Named("local_relu_of_relu"), pattern.Doc("what a ReLU made is not changed by another"))
	db := passes.Default()
	check(db.Register("relu_of_relu", rewrite.In2Out("relu_of_relu", rule), 1.2, "fast_run", "idempotent"))
	// end
	for _, query := range []string{"+fast_run -fusion", "+fast_run -fusion -idempotent"} {
		q, err := optdb.ParseQuery(query)
		check(err)
		opt, err := db.Build(q)
		check(err)
		plan, err := pipeline.Build(context.Background(), nn, req, pipeline.Options{Optimizer: opt, Record: true})
		check(err)
		fmt.Printf("%s: %d commands\n", query, len(plan.Optimized.Commands))
		if r := plan.Profile.Find("relu_of_relu"); r != nil {
			fmt.Printf("%s made %d of %d nodes unnecessary\n", r.Name, r.NodesBefore-r.NodesAfter, r.NodesBefore)
			check(r.WriteText(os.Stdout))
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
