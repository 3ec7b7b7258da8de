package view_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/networks"
)

// demoChunk is the request of the demonstration.
var demoChunk = pipeline.Chunk{Frames: 150, Subsampling: 3, Sequences: 1, Outputs: []string{"output"}}

// build selects passes.
func build(t testing.TB, query string) *optdb.Optimizer {
	t.Helper()
	return passtest.Optimizer(t, query)
}

// graph returns a function that makes the graph of an expression.
func graph(vars, text string) func() (*fgraph.FunctionGraph, error) {
	return func() (*fgraph.FunctionGraph, error) {
		scope := expr.NewScope()
		if err := scope.Declare(vars); err != nil {
			return nil, err
		}
		outputs, err := scope.Parse(text)
		if err != nil {
			return nil, err
		}
		return tensor.NewGraph(scope.Inputs(), outputs)
	}
}

// record records the optimization of an expression.
func record(t testing.TB, query, vars, text string) *view.Subject {
	t.Helper()
	s, err := view.Record(t.Context(), build(t, query), graph(vars, text))
	if err != nil {
		t.Fatal(err)
	}
	s.Recording.Title, s.Recording.Subject = text, text
	return s
}

// readNetwork reads a network, once for all tests: drawing its weights takes longer than optimizing it.
func readNetwork(t testing.TB, file string) *nnet3.Nnet {
	t.Helper()
	if nn, ok := networksRead.Load(file); ok {
		return nn.(*nnet3.Nnet)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	nn, _, err := pipeline.LoadFrom(f, filepath.Base(file), 20)
	if err != nil {
		t.Fatal(err)
	}
	networksRead.Store(file, nn)
	return nn
}

var networksRead sync.Map // of networks by file

// network records the optimization of a request to a network.
func network(t testing.TB, file string, chunk pipeline.Chunk, query string) (*view.Subject, *pipeline.Plan) {
	t.Helper()
	nn := readNetwork(t, file)
	req, err := pipeline.NewRequest(nn, chunk)
	if err != nil {
		t.Fatal(err)
	}
	opt, r := build(t, query), view.NewRecorder()
	plan, err := pipeline.Build(r.Watch(t.Context()), nn, req, pipeline.Options{Optimizer: opt, Record: true})
	if err != nil {
		t.Fatal(err)
	}
	out := r.Recording(opt, plan.Profile, networks.Code(plan.Compiled, plan.Optimized, plan.Info(plan.Optimized)))
	out.Title, out.Subject = file, file
	err = out.AddProfile(&profile.Function{CompileTime: plan.CompileTime + plan.OptimizeTime, Optimizer: plan.Profile,
		Phases: []profile.Phase{{Name: "Request compiler", Time: plan.CompileTime}}, Applies: plan.Profile.NodesAfter})
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context) error {
		_, err := passes.Optimize(ctx, plan.Compiled, nn, opt, nil)
		return err
	}
	return &view.Subject{Recording: out, Optimizer: opt, Run: run}, plan
}
