package exec_test

import (
	"errors"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// grown is a function of matrices of any sizes, [n, 3] and [n, m]: several values of which are needed at a time.
func grown(t *testing.T, o exec.FunctionOptions) *exec.Function {
	t.Helper()
	x, y := tensor.Matrix("x"), tensor.Matrix("y")
	p := tensor.Dot(tensor.Transpose(y), x) // [m, 3]
	q := tensor.Join(0, tensor.Tanh(p), tensor.Exp(x))
	v := tensor.Sum(tensor.Mul(q, q), 0)
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x, y}, []*fgraph.Variable{v, q}, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func filled(rows, cols int) *array.Array {
	a := array.New(array.Float64, rows, cols)
	for i := range a.Len() {
		a.SetFloat(i, float64(i%7)/8-0.3)
	}
	return a
}

// TestOpenSizes: calls of growing, shrinking and empty sizes compute what they do without a plan, few of them need
// new memory, and the last ones none.
func TestOpenSizes(t *testing.T) {
	f, plain := grown(t, exec.FunctionOptions{}), grown(t, exec.FunctionOptions{})
	exec.Unplanned(plain)
	for _, poison := range []bool{false, true} {
		r := f.NewRunner()
		if poison {
			exec.Poisoning(r)
		}
		plans := 0
		for i := range 300 {
			n, m := i, 300-i%50
			if i%9 == 0 {
				n = i / 9
			}
			args := []*array.Array{filled(n, 3), filled(n, m)}
			want, err := plain.Call(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			before := exec.Planned(r)
			got, err := r.Run(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			if exec.Planned(r) != before {
				plans++
			}
			for k := range want {
				if !array.Equal(got[k], want[k]) {
					t.Fatalf("sizes %d and %d: output %d is %v, want %v", n, m, k, got[k], want[k])
				}
			}
		}
		if plans > 40 { // a quarter more each time, and more often where sizes are small
			t.Errorf("%d plans for 300 calls", plans)
		}
		peak := r.Peak()
		for i := range longtest.Of(1000, 10000) {
			if _, err := r.Run(t.Context(), filled(i%13, 3), filled(i%13, i%17)); err != nil {
				t.Fatal(err)
			}
		}
		if r.Peak() != peak {
			t.Errorf("smaller calls took more memory: %d bytes, %d before", r.Peak(), peak)
		}
	}
}

// TestOpenSizesTooLarge: what does not fit into memory fails before anything is computed, and later calls are right.
func TestOpenSizesTooLarge(t *testing.T) {
	x := tensor.Vector("x")
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{
		tensor.Sum(tensor.Exp(tensor.Mul(tensor.DimShuffle(x, 0, array.NewAxis), tensor.DimShuffle(x, array.NewAxis, 0))))}, exec.FunctionOptions{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r := f.NewRunner()
	run := func(n int) error {
		_, err := r.Run(t.Context(), array.New(array.Float64, n))
		return err
	}
	for _, n := range []int{10, 1 << 17, 20, 1 << 9, 10} {
		if err, fits := run(n), n < 1<<8; (err == nil) != fits || !fits && !errors.Is(err, array.ErrTooLarge) {
			t.Errorf("%d elements: %v", n, err)
		}
	}
	if peak := r.Peak(); peak > 1<<16 {
		t.Errorf("%d bytes", peak)
	}
}
