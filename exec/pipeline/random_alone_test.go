package pipeline_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// TestAlone runs each sequence of random networks in test mode alone, and expects the same bits as
// among others. The first seeds have networks that sum rows of one matrix, which are adjacent if a
// sequence is alone.
func TestAlone(t *testing.T) {
	fast := build(t, passes.Default(), fastRun)
	seeds := []uint64{727, 3847, 4267}
	for i := range uint64(cases()) {
		seeds = append(seeds, *firstSeed+i)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c, err := New(seed)
			if err != nil {
				t.Fatal(err)
			}
			if c.ordersByRows() {
				return
			}
			if err := pipeline.Calibrate(t.Context(), c.Net, c.Request, seed); err != nil {
				t.Fatal(err)
			}
			c.Net.SetTestMode(true)
			in, err := pipeline.RandomValues(c.Net, c.Request, seed)
			if err != nil {
				t.Fatal(err)
			}
			all := only(c.Request, func(index.Index) bool { return true })
			among := outputRows(t, c, fast, all, in)
			for n := range int32(5) {
				one := only(c.Request, func(ix index.Index) bool { return ix.N == n })
				if slices.ContainsFunc(one.Outputs, func(s computation.IoSpecification) bool { return len(s.Indexes) == 0 }) {
					continue
				}
				for ix, got := range outputRows(t, c, fast, one, rowsOf(in, c.Request, one)) {
					if want := among[ix]; len(got) != len(want) || equalBits(got, want) != len(got) {
						t.Fatalf("%s: row %v is\n%v alone, and\n%v among others\n%s", c.Family, ix, got, want, c.Config)
					}
				}
			}
		})
	}
}

// only returns a request for some rows of another one, without derivatives.
func only(req *computation.Request, keep func(index.Index) bool) *computation.Request {
	some := func(specs []computation.IoSpecification) (list []computation.IoSpecification) {
		for _, s := range specs {
			rows := slices.DeleteFunc(slices.Clone(s.Indexes), func(ix index.Index) bool { return !keep(ix) })
			list = append(list, computation.IoSpecification{Name: s.Name, Indexes: rows})
		}
		return list
	}
	return &computation.Request{Inputs: some(req.Inputs), Outputs: some(req.Outputs)}
}

// rowsOf selects the inputs of a request from those of a request with more rows.
func rowsOf(in pipeline.Values, req, some *computation.Request) (picked pipeline.Values) {
	for i, s := range some.Inputs {
		m := kernel.New(len(s.Indexes), in.Inputs[i].Matrix.Cols)
		for k, ix := range s.Indexes {
			copy(kernel.Row(m, k), kernel.Row(in.Inputs[i].Matrix, slices.Index(req.Inputs[i].Indexes, ix)))
		}
		picked.Inputs = append(picked.Inputs, pipeline.Named{Name: s.Name, Matrix: m})
	}
	return picked
}

// outputRows computes a request and returns its rows, each with all outputs one after the other.
func outputRows(t *testing.T, c *Case, opt *optdb.Optimizer, req *computation.Request, in pipeline.Values) map[index.Index][]float32 {
	t.Helper()
	return rowsBy(t, c, planned(t, c, opt, req), in)
}

// planned makes the computation for a request.
func planned(t *testing.T, c *Case, opt *optdb.Optimizer, req *computation.Request) *pipeline.Plan {
	t.Helper()
	plan, err := pipeline.Build(t.Context(), c.Net, req, pipeline.Options{Optimizer: opt})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// rowsBy runs a computation and returns its rows, each with all outputs one after the other.
func rowsBy(t *testing.T, c *Case, plan *pipeline.Plan, in pipeline.Values) map[index.Index][]float32 {
	t.Helper()
	in.OutputDerivs = nil
	req := plan.Request
	res, err := pipeline.Run(t.Context(), plan.Optimized, c.Net, req, in)
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[index.Index][]float32)
	for i, s := range req.Outputs {
		for k, ix := range s.Indexes {
			rows[ix] = append(rows[ix], kernel.Row(res.Outputs[i].Matrix, k)...)
		}
	}
	return rows
}
