package exec_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
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
	for range longtest.Of(500, 34_000) {
		run()
	}
	if after := heap(); after > before+200<<10 {
		t.Errorf("%s: %d bytes more", what, after-before)
	}
	if n := testing.AllocsPerRun(100, run); n > most {
		t.Errorf("%s: %v allocations a run", what, n)
	}
}

// A counter counts the commands that a computer traces, and cancels behind one of them.
type counter struct {
	count  atomic.Int64
	at     int64
	cancel func()
}

func (c *counter) Write(p []byte) (int, error) {
	if c.count.Add(1) == c.at {
		c.cancel()
	}
	return len(p), nil
}

// TestThreadsCanceled: no command begins in a run with threads that is cancelled, between two commands
// or during one. The run can go on then, to the same bits, and no goroutine is left.
func TestThreadsCanceled(t *testing.T) {
	before := runtime.NumGoroutine()
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	nn := parseNet(t, layered)
	nn.SetTestMode(true)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 200, Sequences: 10})
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
	output := func(c *exec.Computer) kernel.Matrix {
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, err := c.Output("output")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	prepared := func(opts exec.ComputerOptions) *exec.Computer {
		c := newComputer(t, plan.Optimized, nn, opts)
		for _, m := range in.Inputs {
			if err := c.AcceptInput(m.Name, m.Matrix); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	all := new(counter)
	want := output(prepared(exec.ComputerOptions{Trace: all}))
	// goesOn reports an error unless a run that was cancelled computes the rest.
	goesOn := func(c *exec.Computer) {
		got := output(c)
		for i := range want.Rows {
			if !slices.Equal(kernel.Row(got, i), kernel.Row(want, i)) {
				t.Fatalf("after it was cancelled, row %d is %v, not %v", i, kernel.Row(got, i), kernel.Row(want, i))
			}
		}
	}
	for at := int64(1); at < all.count.Load(); at += int64(longtest.Of(11, 1)) {
		ctx, cancel := context.WithCancel(t.Context())
		n := &counter{at: at, cancel: cancel}
		c := prepared(exec.ComputerOptions{Threads: 3, Trace: n})
		if err := c.Run(ctx); !errors.Is(err, context.Canceled) || n.count.Load() != at {
			t.Fatalf("cancelled behind command %d: %v, and %d have run", at, err, n.count.Load())
		}
		goesOn(c)
	}
	canceled := 0
	for wait := range time.Duration(20) {
		ctx, cancel := context.WithCancel(t.Context())
		n := new(counter)
		c := prepared(exec.ComputerOptions{Threads: 3, Trace: n})
		run := make(chan error)
		go func() { run <- c.Run(ctx) }()
		time.Sleep(wait * 200 * time.Microsecond)
		cancel()
		done := n.count.Load()
		err := <-run
		if err == nil {
			continue // before it was cancelled
		}
		canceled++
		// The command that had begun comes to its end.
		if got := n.count.Load(); !errors.Is(err, context.Canceled) || got > done+1 {
			t.Fatalf("cancelled after %d commands: %v, and %d have run", done, err, got)
		}
		goesOn(c)
	}
	if canceled == 0 {
		t.Error("no run was cancelled")
	}
	settled(t, before)
}

// asked is a context that ends when it has been asked some times whether it has.
type asked struct {
	context.Context
	times atomic.Int64
	left  int
}

func (a *asked) Err() error {
	if a.times.Add(1) > int64(a.left) {
		return context.Canceled
	}
	return nil
}

// TestFunctionThreadsCanceled: no op begins in a call with threads that is cancelled, and the next call
// has all results.
func TestFunctionThreadsCanceled(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	s := expr.NewScope()
	if err := s.Declare("X Y: float32[40, 50]"); err != nil {
		t.Fatal(err)
	}
	out, err := s.Parse("sum(softmax(tanh(dot(X, Y.T)))*dot(Y, X.T), axis=0)")
	if err != nil {
		t.Fatal(err)
	}
	f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{Threads: 3, Profile: true})
	if err != nil {
		t.Fatal(err)
	}
	args := []*array.Array{uniform(array.Float32, -1, 1, 40, 50), uniform(array.Float32, -1, 1, 40, 50)}
	want, err := f.Call(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	for left := range f.Graph().NumApplies() {
		r := f.NewRunner()
		if _, err := r.Run(&asked{Context: t.Context(), left: left}, args...); !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled before op %d: %v", left, err)
		}
		begun := 0
		for _, c := range r.ByApply() {
			if c.Time > 0 {
				begun++
			}
		}
		if begun != left {
			t.Errorf("cancelled before op %d, %d have run", left, begun)
		}
		got, err := r.Run(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		if !array.Equal(got[0], want[0]) {
			t.Errorf("after it was cancelled, %v, not %v", got[0], want[0])
		}
	}
}
