package service_test

import (
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/internal/view"
)

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
func record(t testing.TB, text string) *view.Subject {
	t.Helper()
	s, err := view.Record(t.Context(), passtest.Optimizer(t, "+fast_run"), graph("", text))
	if err != nil {
		t.Fatal(err)
	}
	s.Recording.Title, s.Recording.Subject = text, text
	return s
}
