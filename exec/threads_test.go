package exec_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// layered is a network of all that threads divide in a forward pass.
const layered = `
input-node name=input dim=20
component name=a type=TdnnComponent input-dim=20 output-dim=96 time-offsets=-1,0,1
component-node name=a component=a input=input
component name=n type=NormalizeComponent dim=96
component-node name=n component=n input=a
component name=b type=NaturalGradientAffineComponent input-dim=96 output-dim=80
component-node name=b component=b input=n
component name=l type=LstmNonlinearityComponent cell-dim=16
component-node name=l component=l input=b
component name=c type=NaturalGradientAffineComponent input-dim=32 output-dim=70
component-node name=c component=c input=l
component name=s type=LogSoftmaxComponent dim=70
component-node name=s component=s input=c
output-node name=output input=s
`

// settled waits until there are no more goroutines than before.
func settled(t *testing.T, before int) {
	t.Helper()
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, and there were %d", runtime.NumGoroutine(), before)
}

// TestThreadsLeaveNothing: many runs with threads take no memory, and leave no goroutine.
func TestThreadsLeaveNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector drops pooled memory")
	}
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	before := runtime.NumGoroutine()
	for _, query := range []string{"+fast_run", "+fast_run +int8"} {
		nn := parseNet(t, layered)
		nn.SetTestMode(true)
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 30, Sequences: 2})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pipeline.Build(t.Context(), nn, req, pipeline.Options{Optimizer: passtest.Optimizer(t, query)})
		if err != nil {
			t.Fatal(err)
		}
		pipeline.Prepare(plan.Optimized, nn)
		in, err := pipeline.RandomValues(nn, req, 1)
		if err != nil {
			t.Fatal(err)
		}
		c := newComputer(t, plan.Optimized, nn, exec.ComputerOptions{Threads: 4})
		run := func() {
			c.Reset()
			for _, m := range in.Inputs {
				if err := c.AcceptInput(m.Name, m.Matrix); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		noMore(t, query, 0, run)
	}
	s := expr.NewScope()
	if err := s.Declare("X Y: float32[40, 50]; A: float64[30, 20]; b: float32[50]"); err != nil {
		t.Fatal(err)
	}
	out, err := s.Parse("[softmax(tanh(dot(X, Y.T))), sum(X*Y + b, axis=0), dot(A, A.T)]")
	if err != nil {
		t.Fatal(err)
	}
	f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{Optimizer: fastRun(t), Threads: 4})
	if err != nil {
		t.Fatal(err)
	}
	var args []*array.Array
	for _, v := range s.Inputs() {
		args = append(args, uniform(tensor.TypeOf(v).DType(), 0.5, 1.5, tensor.TypeOf(v).Shape()...))
	}
	r := f.NewRunner()
	// Reductions and products make some closures each time, also in one thread.
	noMore(t, "tensors", 30, func() {
		if _, err := r.Run(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	})
	settled(t, before)
}

// noMore reports an error if many calls of run leave more memory than few.
func noMore(t *testing.T, what string, most float64, run func()) {
	t.Helper()
	for range 100 {
		run()
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range longtest.Of(500, 30_000) {
		run()
	}
	if after := heap(); after > before+200<<10 {
		t.Errorf("%s: %d bytes more", what, after-before)
	}
	if n := testing.AllocsPerRun(100, run); n > most {
		t.Errorf("%s: %v allocations a run", what, n)
	}
}

// TestThreadsCanceled: a run with threads that is cancelled ends as soon as one without, and leaves
// no goroutine.
func TestThreadsCanceled(t *testing.T) {
	before := runtime.NumGoroutine()
	nn := parseNet(t, layered)
	nn.SetTestMode(true)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 2000, Sequences: 10})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pipeline.Build(t.Context(), nn, req, pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := pipeline.RandomValues(nn, req, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		c := newComputer(t, plan.Optimized, nn, exec.ComputerOptions{Threads: 3})
		for _, m := range in.Inputs {
			if err := c.AcceptInput(m.Name, m.Matrix); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		start := time.Now()
		err := c.Run(ctx)
		cancel()
		if err == nil {
			continue // the machine is quick
		}
		if late := time.Since(start) - wait; late > 50*time.Millisecond {
			t.Logf("cancelled after %v, it ended %v later", wait, late) // others may use the machine
		}
		if err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
		got, err := c.Output("output")
		if err != nil {
			t.Fatal(err)
		}
		alone := newComputer(t, plan.Optimized, nn, exec.ComputerOptions{})
		for _, m := range in.Inputs {
			if err := alone.AcceptInput(m.Name, m.Matrix); err != nil {
				t.Fatal(err)
			}
		}
		if err := alone.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want, err := alone.Output("output")
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Rows {
			for j, v := range kernel.Row(want, i) {
				if kernel.Row(got, i)[j] != v {
					t.Fatalf("cancelled after %v: element (%d, %d) is %v, not %v", wait, i, j, kernel.Row(got, i)[j], v)
				}
			}
		}
	}
	settled(t, before)
}
