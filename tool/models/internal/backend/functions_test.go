package backend_test

import (
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool/models/internal/backend"
	"github.com/nnopt/nnopt/tool/models/internal/backend/internal/onnxtest"
)

// TestFunctions: models with functions compute, under all queries, what they do inlined. What is written of them
// optimized has a right structure, and computes the same.
func TestFunctions(t *testing.T) {
	queries := []string{"none", "fast_run", "debug"}
	optimizers := []*optdb.Optimizer{nil, optimizer(t, queries[1]), optimizer(t, queries[2])}
	for seed := range uint64(longtest.Of(25, 2000)) {
		drawn := onnxtest.DrawFunctions(1<<32 + seed)
		c := answered(t, drawn, onnxtest.Inline(drawn.Model))
		for i, query := range queries {
			if r := c.Run(t.Context(), query, session.Options{Optimizer: optimizers[i]}); !r.OK {
				t.Errorf("%s under %s: %v", c.Name, query, r.Err)
			}
		}
		m, err := written(t, c.Model, optimizers[1])
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		again := &backend.Case{Name: c.Name, Model: m, Sets: c.Sets}
		if r := again.Run(t.Context(), "none", session.Options{}); !r.OK {
			t.Errorf("%s written: %v", c.Name, r.Err)
		}
	}
}

// written returns the model that is written of an optimized one, and what is wrong with its structure.
func written(t *testing.T, m *onnx.Model, opt *optdb.Optimizer) (*onnx.Model, error) {
	t.Helper()
	g, err := ir.Import(m, ir.Options{Evaluator: lower.Evaluator{}})
	if err != nil {
		return nil, err
	}
	if err := opt.Rewrite(t.Context(), g, nil); err != nil {
		return nil, err
	}
	out, err := ir.Export(g)
	if err != nil {
		return nil, err
	}
	return out, onnx.Check(out)
}
