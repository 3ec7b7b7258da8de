package passes_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
)

// The standard database, and what queries select from it.
func ExampleDefault() {
	db := passes.Default()
	for _, query := range []string{"fast_run", "fast_run -inplace", "fast_run -inplace -fusion", "none"} {
		q, err := optdb.ParseQuery(query)
		if err != nil {
			fmt.Println(err)
			return
		}
		optimizer, err := db.Build(q)
		if err != nil {
			fmt.Println(err)
			return
		}
		s := expr.NewScope()
		y := s.MustParse("exp(x)*y/y + 1")
		g, err := tensor.NewGraph(s.Inputs(), []*fgraph.Variable{y})
		if err == nil {
			err = optimizer.Rewrite(context.Background(), g, nil)
		}
		fmt.Printf("%-26s %v %v\n", query, g, err)
	}
	// Output:
	// fast_run                   [Composite{add(1.0, exp(i0))}(x)] <nil>
	// fast_run -inplace          [Composite{add(1.0, exp(i0))}(x)] <nil>
	// fast_run -inplace -fusion  [add(1.0, exp(x))] <nil>
	// none                       [add(true_div(mul(exp(x), y), y), 1.0)] <nil>
}

// A rule that joins the standard database.
func ExampleDefault_rule() {
	db := passes.Default()
	rule := pattern.Must(tensorpass.Vocabulary(), "(tanh (neg x))", "(neg (tanh x))", pattern.Named("tanh_of_neg"), pattern.Doc("tanh is odd"))
	if err := db.Register("tanh_of_neg", rewrite.In2Out("tanh_of_neg", rule), 0.5, "fast_run", "odd"); err != nil {
		fmt.Println(err)
		return
	}
	optimizer, err := db.Build(optdb.Include("odd"))
	fmt.Print(optimizer)
	fmt.Println(err)
	// Output:
	// default SeqOptimizer +odd
	//     0.5 tanh_of_neg TopoOptimizer
	// <nil>
}

// A computation of a network becomes one with fewer commands.
func ExampleOptimize() {
	nn, err := nnet3.ParseConfig(strings.NewReader(`
input-node name=input dim=2
component name=a type=AffineComponent input-dim=4 output-dim=3
component-node name=a component=a input=Append(Offset(input, -1), input)
component name=b type=RectifiedLinearComponent dim=3
component-node name=b component=b input=a
output-node name=output input=b`), "example", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := compile.Compile(nn, &computation.Request{
		Inputs:  []computation.IoSpecification{{Name: "input", Indexes: []index.Index{{T: -1}, {T: 0}, {T: 1}}}},
		Outputs: []computation.IoSpecification{{Name: "output", Indexes: []index.Index{{T: 0}, {T: 1}}}},
	}, compile.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	optimizer, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		fmt.Println(err)
		return
	}
	rec := profile.New(optimizer.Name(), optimizer.Class())
	got, err := passes.Optimize(context.Background(), c, nn, optimizer, rec)
	if err != nil {
		fmt.Println(err)
		return
	}
	rec.End()
	fmt.Println(len(c.Commands), "commands became", len(got.Commands))
	for _, rule := range rec.Record().Find("specialize").Rules {
		if rule.Applied > 0 {
			fmt.Println(rule.Name, rule.Applied)
		}
	}
	// Output:
	// 25 commands became 5
	// local_fuse_epilogue 1
	// local_splice_product 1
}

// Kaldi's switches are queries.
func ExampleOptimizeOptions() {
	o := passes.DefaultOptimizeOptions()
	o.PropagateInPlace = false
	o.MinDerivTime = 0
	fmt.Println(o.Query(optdb.Include("fast_run")))
	// Output:
	// +fast_run -propagate_in_place +limit_derivative_times limit_derivative_times{min-deriv-time=0}
}
