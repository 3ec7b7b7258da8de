package exec_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// fastRun returns the optimizer of +fast_run.
func fastRun(t testing.TB) *optdb.Optimizer {
	t.Helper()
	return passtest.Optimizer(t, "+fast_run")
}

// chains are expressions of ten element-wise operations of two vectors.
var chains = []struct{ name, expr string }{
	{"functions", "exp(-sqr(x*y + 0.5))*sqrt(abs(x)) + tanh(y)"},
	{"arithmetic", "((x*y + x)*(y - 0.5)*x + y)*(x - y)*y - x"},
}

// BenchmarkChain computes the chains, each fused into one loop. docs/measure/tensor.py does so with
// NumPy.
func BenchmarkChain(b *testing.B) {
	const n = 1e7
	for _, c := range chains {
		b.Run(fmt.Sprintf("%s/%.0e", c.name, float64(n)), func(b *testing.B) {
			s := expr.NewScope()
			if err := s.Declare("x y: vector"); err != nil {
				b.Fatal(err)
			}
			out, err := s.Parse(c.expr)
			if err != nil {
				b.Fatal(err)
			}
			f, err := exec.NewFunction(b.Context(), s.Inputs(), out, exec.FunctionOptions{Optimizer: fastRun(b)})
			if err != nil {
				b.Fatal(err)
			}
			if f.Graph().NumApplies() != 1 {
				b.Fatalf("%d applies: %v", f.Graph().NumApplies(), f)
			}
			repeat(b, f, uniform(array.Float64, 0.5, 1.5, n), uniform(array.Float64, 0.5, 1.5, n))
		})
	}
}

// repeat calls f, and reports the fastest call.
func repeat(b *testing.B, f *exec.Function, args ...*array.Array) {
	b.Helper()
	r := f.NewRunner()
	if _, err := r.Run(b.Context(), args...); err != nil {
		b.Fatal(err)
	}
	best := time.Duration(1 << 62)
	for b.Loop() {
		start := time.Now()
		if _, err := r.Run(b.Context(), args...); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(best.Seconds()*1e3, "best-ms")
}

func uniform(dtype array.DType, lo, hi float64, shape ...int) *array.Array {
	rng := rand.New(rand.NewPCG(1, 2))
	a := array.New(dtype, shape...)
	switch dtype {
	case array.Float32:
		for i, s := 0, array.Slice[float32](a); i < len(s); i++ {
			s[i] = float32(lo + (hi-lo)*rng.Float64())
		}
	case array.Float64:
		for i, s := 0, array.Slice[float64](a); i < len(s); i++ {
			s[i] = lo + (hi-lo)*rng.Float64()
		}
	}
	return a
}

// callKinds are ops that take next to no time on four elements: what is left is the cost of calling them.
var callKinds = []struct {
	name string
	next func(x *fgraph.Variable) *fgraph.Variable
}{
	{"map", func(x *fgraph.Variable) *fgraph.Variable { return tensor.Map(array.Neg, x) }},
	{"composite", func(x *fgraph.Variable) *fgraph.Variable {
		p := array.NewProgram(array.Float32)
		return tensor.MustApply(tensor.NewComposite(p.Return(p.Append(array.Neg, p.Append(array.Sqr, 0)))), x)
	}},
	{"inplace", func(x *fgraph.Variable) *fgraph.Variable {
		op := tensor.OpFor(array.Neg).(tensor.Elemwise)
		op.Inplace = 1
		return tensor.MustApply(op, x)
	}},
	{"sum", func(x *fgraph.Variable) *fgraph.Variable {
		return tensor.DimShuffle(tensor.Sum(x, 1), 0, array.NewAxis)
	}},
	{"view", func(x *fgraph.Variable) *fgraph.Variable { return tensor.DimShuffle(x, 1, 0) }},
	{"take", func(x *fgraph.Variable) *fgraph.Variable {
		return tensor.Take(x, tensor.Constant(array.Of([]int64{0}, 1)))
	}},
	{"convolution", func(x *fgraph.Variable) *fgraph.Variable {
		op := tensor.ConvLastOp{Window: array.Window{Dims: 1, Stride: [array.MaxSpatial]int{1}, Dilation: [array.MaxSpatial]int{1}, Before: [array.MaxSpatial]int{1}, After: [array.MaxSpatial]int{1}}, Groups: 1}
		y := tensor.MustApply(op, tensor.DimShuffle(x, array.NewAxis, 0, 1), tensor.Constant(array.Full(array.Float32, 0.1, 3, 4, 4)))
		return tensor.DimShuffle(y, 1, 2)
	}},
	{"product", func(x *fgraph.Variable) *fgraph.Variable {
		return tensor.MustApply(tensor.Dot22Op{}, x, tensor.Constant(array.Full(array.Float32, 0.5, 4, 4)))
	}},
}

// callOf returns a function of n applies of a kind, one after the other.
func callOf(t testing.TB, kind func(*fgraph.Variable) *fgraph.Variable, n int) (*exec.Runner, *array.Array) {
	t.Helper()
	x := fgraph.NewInput(tensor.NewType(array.Float32, 1, 4), "x")
	y := tensor.Map(array.Abs, x)
	for range n {
		y = kind(y)
	}
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{y}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return f.NewRunner(), array.Full(array.Float32, 2, 1, 4)
}

// TestCallAllocatesNothing: a call like the one before allocates nothing.
func TestCallAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	for _, kind := range callKinds {
		r, x := callOf(t, kind.next, 20)
		ctx := t.Context()
		if n := testing.AllocsPerRun(100, func() {
			if _, err := r.Run(ctx, x); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", kind.name, n)
		}
	}
}

// BenchmarkCall measures what a call of a function costs, and an apply in it.
func BenchmarkCall(b *testing.B) {
	for _, kind := range callKinds {
		for _, n := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, n), func(b *testing.B) {
				r, x := callOf(b, kind.next, n)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := r.Run(b.Context(), x); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/apply")
			})
		}
	}
}

// trainingStep returns a function for a step of gradient descent of a classifier with layers of the
// given sizes: tanh between the layers, softmax and cross-entropy after the last.
func trainingStep(t testing.TB, threads int, dtype array.DType, sizes ...int) (*exec.Function, []*exec.Shared) {
	t.Helper()
	x, y := fgraph.NewInput(tensor.NewType(dtype, tensor.Unknown, tensor.Unknown), "x"), fgraph.NewInput(tensor.NewType(array.Int64, tensor.Unknown), "y")
	var params []*exec.Shared
	h := x
	for i := range len(sizes) - 1 {
		w := exec.NewShared(fmt.Sprintf("W%d", i), uniform(dtype, -0.05, 0.05, sizes[i], sizes[i+1]))
		bias := exec.NewShared(fmt.Sprintf("b%d", i), array.New(dtype, sizes[i+1]))
		params = append(params, w, bias)
		if i > 0 {
			h = tensor.Tanh(h)
		}
		h = tensor.Add(tensor.Dot(h, w.Variable()), bias.Variable())
	}
	cost := tensor.Mean(tensor.CrossentropyCategorical1Hot(tensor.Softmax(h), y))
	var wrt []*fgraph.Variable
	for _, p := range params {
		wrt = append(wrt, p.Variable())
	}
	grads, err := tensor.Grad(cost, wrt...)
	if err != nil {
		t.Fatal(err)
	}
	var updates []exec.Update
	for i, p := range params {
		updates = append(updates, exec.Update{Shared: p, New: tensor.Sub(p.Variable(), tensor.Mul(tensor.Number(0.1, cost), grads[i]))})
	}
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x, y}, []*fgraph.Variable{cost}, exec.FunctionOptions{Optimizer: fastRun(t), Updates: updates, Profile: true, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	return f, params
}

// BenchmarkTrainingStep trains a network 784-1024-1024-10 on 128 rows. docs/measure/tensor.py does
// so with NumPy.
func BenchmarkTrainingStep(b *testing.B) {
	for _, dtype := range []array.DType{array.Float32, array.Float64} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/%d", dtype, threads), func(b *testing.B) {
				f, _ := trainingStep(b, threads, dtype, 784, 1024, 1024, 10)
				y := array.New(array.Int64, 128)
				for i := range y.Len() {
					y.SetFloat(i, float64(i%10))
				}
				repeat(b, f, uniform(dtype, 0, 1, 128, 784), y)
			})
		}
	}
}

// TestTrainingStep: training reduces the cost, and no step uses more memory than the first.
func TestTrainingStep(t *testing.T) {
	for _, dtype := range []array.DType{array.Float32, array.Float64} {
		f, params := trainingStep(t, 1, dtype, 20, 16, 16, 5)
		y := array.New(array.Int64, 12)
		for i := range y.Len() {
			y.SetFloat(i, float64(i%5))
		}
		x, r := uniform(dtype, -2, 2, 12, 20), f.NewRunner()
		before := params[0].Value().Clone()
		var costs []float64
		peak := int64(0)
		for step := range 300 {
			out, err := r.Run(t.Context(), x, y)
			if err != nil {
				t.Fatal(err)
			}
			costs = append(costs, out[0].Float(0))
			if step == 0 {
				peak = r.Peak()
			}
		}
		if r.Peak() != peak {
			t.Errorf("%v: %d bytes were in use at once, %d in the first step", dtype, r.Peak(), peak)
		}
		if last := costs[len(costs)-1]; !(last < 0.8*costs[0]) || array.MaxRelDiff(before, params[0].Value()) == 0 {
			t.Errorf("%v: the cost went from %v to %v", dtype, costs[0], last)
		}
	}
}
