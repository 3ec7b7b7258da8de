package exec_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// wide are inputs of some hundred elements.
const wide = "a d: float32[37, 53]; A D: float64[41, 29]; u: float32[53]; l: float64[29]; O: float32[19, 37]"

// motifs are expressions of ops that threads divide.
var motifs = []tensortest.Motif{
	"tanh(dot(O, a) + u)", "softmax(a)*d", "log_softmax(A + l)", "dot(A, D.T)", "dot(a.T, d)", "sum(A, axis=0)*l", "sum(a*d, axis=1)", "max(exp(A), axis=0)",
	"exp(a) + u", "mean(tanh(A), axis=1)", "sum(X, axis=0) + x", "dot(a, u)", "dot(a.T, u[:37])", "dot(A, l)", "softmax(dot(X, Y))", "switch(a > d, a, d) - u",
	"cumsum(A, axis=1) + D", "sort(a, axis=1)", "argsort(A, axis=0)", "argmax(a, axis=1)", "concatenate([a, d], axis=0)", "concatenate([A, D], axis=1)", "take(a, argsort(d[:, 0]), axis=0)",
	"repeat(A, 3, axis=0)", "tile(a, [2, 2])", "a.T + d.T", "set_subtensor(a[3:], d[:-3])",
}

// longMotifs have results that each stand for much work.
var longMotifs = []tensortest.Motif{
	"sum(long)", "mean(tall, axis=0)", "max(long)*u", "argmax(long)", "logsumexp(tall, axis=0)", "dot(long, long)", "dot(tall.T, tall)", "sum(sqr(long - mean(long)))",
}

// TestMotifThreads: each motif has the same bits for any number of threads.
func TestMotifThreads(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	for _, m := range slices.Concat(motifs, longMotifs) {
		s := expr.NewScope()
		if err := s.Declare("x: float64[7]; X Y: float64[7, 7]; long: float32[40000]; tall: float64[900, 5]; " + wide); err != nil {
			t.Fatal(err)
		}
		out, err := s.Parse(string(m))
		if err != nil {
			t.Fatalf("%s: %v", m, err)
		}
		var args []*array.Array
		for _, v := range s.Inputs() {
			args = append(args, uniform(tensor.TypeOf(v).DType(), -1, 1, tensor.TypeOf(v).Shape()...))
		}
		var want *array.Array
		for _, threads := range []int{1, 2, 3, 5, 8} {
			f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Call(t.Context(), args...)
			if err != nil {
				t.Fatalf("%s: %v", m, err)
			}
			if want == nil {
				want = got[0]
			}
			if !array.Equal(got[0], want) {
				t.Errorf("%s, %d threads: %v, not %v", m, threads, got[0], want)
			}
		}
	}
}

// TestFunctionThreads: expressions have the same bits for any number of threads, even if they divide
// whatever can be divided.
func TestFunctionThreads(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	opts := []exec.Optimizer{nil, passtest.Optimizer(t, "+fast_run")}
	for seed := range uint64(longtest.Of(100, 2000)) {
		gen := tensortest.NewGeneratorOf(seed, wide)
		gen.Motifs = motifs
		gen.Grow(20)
		inputs, args := gen.Inputs()
		outputs := gen.Outputs(5)
		run := func(threads int) []*array.Array {
			f, err := exec.NewFunction(t.Context(), inputs, outputs, exec.FunctionOptions{Optimizer: opts[seed%2], Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			values, err := f.Call(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			return values
		}
		want := run(1)
		for _, n := range []int{2, 3, 5, 8}[seed/2%2*2:][:longtest.Of(1, 2)] {
			for i, v := range run(n) {
				if !array.Equal(v, want[i]) {
					t.Fatalf("seed %d, %d threads: %v is\n%v, want\n%v", seed, n, outputs[i], v, want[i])
				}
			}
		}
	}
}

// BenchmarkFunctionThreads compares two threads with one, see benchmarkTwo.
func BenchmarkFunctionThreads(b *testing.B) {
	for _, c := range []struct{ vars, expr string }{
		{"x y: float64[10000000]", chains[0].expr}, {"x y: float64[10000000]", chains[1].expr}, {"x y: float64[100000]", chains[0].expr},
		{"x y: float64[10000]", chains[1].expr}, {"x y: float64[1000]", chains[0].expr}, {"x y: float64[100]", chains[0].expr},
		{"A B: float64[1000, 1000]; c: float64[1000]", "tanh(dot(A, B) + c)"}, {"A B: float32[1000, 1000]; c: float32[1000]", "tanh(dot(A, B) + c)"},
		{"A B: float32[200, 200]; c: float32[200]", "tanh(dot(A, B) + c)"}, {"A B: float32[20, 20]; c: float32[20]", "tanh(dot(A, B) + c)"},
		{"X: float64[4000, 4000]", "softmax(X)"}, {"X: float32[4000, 4000]", "softmax(X)"}, {"X: float32[4000, 4000]", "log_softmax(X)"}, {"X: float32[50, 30]", "softmax(X)"},
		{"X: float32[2000, 2000]", "sum(X, axis=0)"}, {"X: float32[2000, 2000]", "sum(X, axis=1)"}, {"X: float32[2000, 2000]", "sum(X)"},
		{"X: float32[1000000, 8]", "sum(X, axis=0)"}, {"x: float64[4000000]", "logsumexp(x)"}, {"x: float32[4000000]", "argmax(x)"}, {"x y: float64[4000000]", "dot(x, y)"}, {"x y: float32[4000000]", "dot(x, y)"},
		{"X: float64[2000, 2000]", "max(X, axis=1)"}, {"X: float32[1000, 1000]; v: float32[1000]", "dot(X, v)"}, {"X: float32[1500, 1500]", "X.T + X"},
		{"X: float32[1000, 512]; g: float32[512]", "(X - mean(X, axis=1, keepdims=True))/sqrt(mean(sqr(X - mean(X, axis=1, keepdims=True)), axis=1, keepdims=True) + 1e-5)*g"},
	} {
		b.Run(c.expr+"/"+c.vars, func(b *testing.B) {
			s := expr.NewScope()
			if err := s.Declare(c.vars); err != nil {
				b.Fatal(err)
			}
			out, err := s.Parse(c.expr)
			if err != nil {
				b.Fatal(err)
			}
			var args []*array.Array
			for _, v := range s.Inputs() {
				args = append(args, uniform(tensor.TypeOf(v).DType(), 0.5, 1.5, tensor.TypeOf(v).Shape()...))
			}
			benchmarkTwo(b, s.Inputs(), out, args)
		})
	}
}

// benchmarkTwo compares two threads with one, in turns: the best times in ms, and their ratio.
func benchmarkTwo(b *testing.B, inputs, outputs []*fgraph.Variable, args []*array.Array) {
	var runners [2]*exec.Runner
	for i := range runners {
		f, err := exec.NewFunction(b.Context(), inputs, outputs, exec.FunctionOptions{Optimizer: fastRun(b), Threads: i + 1})
		if err != nil {
			b.Fatal(err)
		}
		runners[i] = f.NewRunner()
	}
	best := [2]time.Duration{time.Hour, time.Hour}
	for range b.N {
		for i, r := range runners {
			// For a while, so that threads are awake, as in a program that computes.
			for began, k := time.Now(), 0; k < 2 || time.Since(began) < 3*time.Millisecond; k++ {
				start := time.Now()
				if _, err := r.Run(b.Context(), args...); err != nil {
					b.Fatal(err)
				}
				best[i] = min(best[i], time.Since(start))
			}
		}
	}
	b.ReportMetric(best[0].Seconds()*1e3, "one-ms")
	b.ReportMetric(best[1].Seconds()*1e3, "two-ms")
	b.ReportMetric(float64(best[1])/float64(best[0]), "ratio")
}
