package expr_test

import (
	"testing"

	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestWindowFiles: graphs with windows print as text that reads as the same graph, as written and
// optimized.
func TestWindowFiles(t *testing.T) {
	opt := passtest.Optimizer(t, "+fast_run")
	for i, text := range windowGradients {
		s := expr.NewScope()
		if err := s.Declare(gradVars[0]); err != nil {
			t.Fatal(err)
		}
		out, err := s.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		g, err := tensor.NewGraph(s.Inputs(), out)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			checkGraphFile(t, i, g)
			if err := opt.Rewrite(t.Context(), g, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
