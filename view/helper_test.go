package view_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/view"
)

// demoChunk is the request of the demonstration.
var demoChunk = pipeline.Chunk{Frames: 150, Subsampling: 3, Sequences: 1, Outputs: []string{"output"}}

// build selects passes.
func build(t testing.TB, query string) *optdb.Optimizer {
	t.Helper()
	q, err := optdb.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	opt, err := passes.Default().Build(q)
	if err != nil {
		t.Fatal(err)
	}
	return opt
}

// graph makes the graph of an expression.
func graph(t testing.TB, vars, text string) *fgraph.FunctionGraph {
	t.Helper()
	scope := expr.NewScope()
	if err := scope.Declare(vars); err != nil {
		t.Fatal(err)
	}
	outputs, err := scope.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	g, err := tensor.NewGraph(scope.Inputs(), outputs)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// network records the optimization of a request to a network.
func network(t testing.TB, file string, chunk pipeline.Chunk, query string) (*view.Recording, *pipeline.Plan) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	nn, _, err := pipeline.LoadFrom(f, filepath.Base(file), 20)
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, chunk)
	if err != nil {
		t.Fatal(err)
	}
	opt, r := build(t, query), view.NewRecorder()
	plan, err := pipeline.Build(r.Watch(t.Context()), nn, req, pipeline.Options{Optimizer: opt, Record: true})
	if err != nil {
		t.Fatal(err)
	}
	out := r.Recording(opt, plan.Profile, &view.Network{Compiled: plan.Compiled, Optimized: plan.Optimized, Info: plan.Info(plan.Optimized)})
	out.Title, out.Subject = file, file
	err = out.AddProfile(&profile.Function{CompileTime: plan.CompileTime + plan.OptimizeTime, Optimizer: plan.Profile,
		Phases: []profile.Phase{{Name: "Request compiler", Time: plan.CompileTime}}, Applies: plan.Profile.NodesAfter})
	if err != nil {
		t.Fatal(err)
	}
	return out, plan
}
