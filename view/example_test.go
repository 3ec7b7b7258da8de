package view_test

import (
	"context"
	"fmt"
	"log"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/view"
)

func ExampleRecord() {
	scope := expr.NewScope()
	outputs, err := scope.Parse("(y + z)*x/(y + z)")
	if err != nil {
		log.Fatal(err)
	}
	g, err := tensor.NewGraph(scope.Inputs(), outputs)
	if err != nil {
		log.Fatal(err)
	}
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		log.Fatal(err)
	}
	r, err := view.Record(context.Background(), opt, g)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range r.Steps {
		fmt.Printf("%s/%s:", r.Passes[s.Pass].Name, s.Rule)
		for _, n := range s.Gone {
			fmt.Printf(" -%s", r.Nodes[n].Op)
		}
		for _, n := range s.New {
			fmt.Printf(" +%s", r.Nodes[n].Op)
		}
		fmt.Println()
	}
	// view.WritePage(w, r) makes a page of it.

	// Output:
	// merge1/merge: -add
	// canonicalize/local_mul_canonizer: -true_div -mul -add
}
