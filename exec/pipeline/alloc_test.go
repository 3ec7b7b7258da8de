package pipeline_test

import (
	"context"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// TestRunAllocatesNothing: optimized computations allocate nothing from the second run on.
func TestRunAllocatesNothing(t *testing.T) {
	for _, tags := range [][]string{{"fast_run"}, {"fast_run", "int8"}, {"fast_run", "int8", "int16"}} {
		opt, err := passes.Default().Build(optdb.Include(tags...))
		if err != nil {
			t.Fatal(err)
		}
		runAllocatesNothing(t, opt)
	}
}

func runAllocatesNothing(t *testing.T, opt *optdb.Optimizer) {
	ctx := context.Background()
	for _, name := range []string{"tdnnf_infer", "tdnn_relu_renorm_infer"} {
		nn, _, err := pipeline.Load("../../nnet3/testdata/recipes/"+name+"/model.raw", 0)
		if err != nil {
			t.Fatal(err)
		}
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 30, Subsampling: 3})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pipeline.Build(ctx, nn, req, pipeline.Options{Optimizer: opt})
		if err != nil {
			t.Fatal(err)
		}
		pipeline.Prepare(plan.Optimized, nn)
		prog, err := exec.NewProgram(plan.Optimized, nn)
		if err != nil {
			t.Fatal(err)
		}
		c, err := prog.NewComputer(exec.ComputerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		in, err := pipeline.RandomValues(nn, req, 1)
		if err != nil {
			t.Fatal(err)
		}
		run := func() {
			c.Reset()
			for _, x := range in.Inputs {
				if err := c.AcceptInput(x.Name, x.Matrix); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Output("output"); err != nil {
				t.Fatal(err)
			}
		}
		if n := testing.AllocsPerRun(20, run); n != 0 && !raceDetector {
			t.Errorf("%s, %s: %g allocations a run", name, opt.Name(), n)
		}
	}
}
