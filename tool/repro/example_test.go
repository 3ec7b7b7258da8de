package repro_test

import (
	"context"
	"fmt"
	"log"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/tensors"
)

// A wrong rule is among those of canonicalize. The case fails; Bisect finds the rewrite, and Reduce
// the smallest graph on which it does harm.
func Example() {
	db := passes.Default()
	canonicalize, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize")
	if err != nil {
		log.Fatal(err)
	}
	wrong := pattern.Must(tensorpass.Vocabulary(), "(abs (tanh x))", "(tanh x)", pattern.Named("abs_of_tanh"))
	if err := canonicalize.Register("abs_of_tanh", wrong, "fast_run"); err != nil {
		log.Fatal(err)
	}

	s := expr.NewScope()
	if err := s.Declare("x y: vector"); err != nil {
		log.Fatal(err)
	}
	out := s.MustParse("exp(sum(x*y)) + abs(tanh(x + y))*2")
	g, err := tensor.NewGraph(s.Inputs(), []*fgraph.Variable{out})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	c := &repro.Case{World: tensors.World(expr.Default().Dialect()), Build: db.Build, Graph: g, Query: optdb.Include("fast_run")}
	if c.Failure, err = repro.Check(ctx, c); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Failure)
	found, err := repro.Bisect(ctx, c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Culprit)
	small, err := repro.Reduce(ctx, c, repro.ReduceOptions{})
	if err != nil {
		log.Fatal(err)
	}
	file, err := small.File()
	if err != nil {
		log.Fatal(err)
	}
	text, err := graphfile.Format(file, small.World.Dialect())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(text)
	// Output:
	// values in canonicalize/abs_of_tanh
	// canonicalize/abs_of_tanh: abs(tanh(add(x, y))) -> tanh(add(x, y))
	// failure: values
	// pass: canonicalize
	// rule: abs_of_tanh
	// node: abs(tanh(v7))
	// error: output 0 is [-0.7969768287848539, -0.1810558156567938, -0.9496557398784837], not [0.7969768287848539, 0.1810558156567938, 0.9496557398784837]
	// query: +abs_of_tanh
	//
	// graph {
	//     input %v7 : float64 vector
	//     %0 = tanh(%v7) @21 : float64 vector
	//     %1 = abs(%0) @17 : float64 vector
	//     return %1
	// }
}
