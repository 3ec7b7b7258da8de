package view_test

import (
	"context"
	"fmt"
	"log"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/internal/view"
)

func ExampleRecord() {
	makeGraph := func() (*fgraph.FunctionGraph, error) {
		scope := expr.NewScope()
		outputs, err := scope.Parse("(y + z)*x/(y + z)")
		if err != nil {
			return nil, err
		}
		return tensor.NewGraph(scope.Inputs(), outputs)
	}
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		log.Fatal(err)
	}
	subject, err := view.Record(context.Background(), opt, makeGraph)
	if err != nil {
		log.Fatal(err)
	}
	r := subject.Recording
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
