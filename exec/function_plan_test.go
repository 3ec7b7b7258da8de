package exec_test

import (
	"errors"
	"slices"
	"testing"

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

// ofSizes returns inputs and outputs in which the sizes of arguments are known.
func ofSizes(t *testing.T, inputs, outputs []*fgraph.Variable, args []*array.Array) (known, results []*fgraph.Variable) {
	t.Helper()
	now := make(map[*fgraph.Variable]*fgraph.Variable)
	for i, v := range inputs {
		typ := tensor.TypeOf(v)
		if !typ.IsCSR() {
			typ = tensor.NewType(typ.DType(), args[i].Shape()...)
		}
		now[v] = fgraph.NewInput(typ, v.Name())
		known = append(known, now[v])
	}
	g, err := tensor.NewGraph(inputs, outputs)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range g.Inputs() {
		now[v] = known[i]
	}
	order, err := g.Toposort()
	if err != nil {
		t.Fatal(err)
	}
	of := func(v *fgraph.Variable) *fgraph.Variable {
		if now[v] == nil {
			now[v] = fgraph.NewConstant(v.Type(), v.Data(), "")
		}
		return now[v]
	}
	for _, a := range order {
		var in []*fgraph.Variable
		for _, v := range a.Inputs() {
			in = append(in, of(v))
		}
		b, err := tensor.Make(a.Op().(tensor.Op), in...)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range a.Outputs() {
			now[v] = b.Outputs()[i]
		}
	}
	for _, v := range g.Outputs() {
		results = append(results, of(v))
	}
	return known, results
}

// TestPlanOfFunctions runs random expressions in planned memory, in which everything is overwritten as soon as it is dead,
// and gets the bits that it gets in memory of a workspace. The memory that is known before the first call is
// what the lives of the values say.
func TestPlanOfFunctions(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	opts := []exec.Optimizer{nil, passtest.Optimizer(t, "+fast_run")}
	regions, values := 0, 0
	for seed := range uint64(longtest.Of(80, 3000)) {
		gen := tensortest.NewGeneratorOf(seed, wide)
		gen.Motifs = motifs
		gen.Grow(30)
		inputs, args := gen.Inputs()
		inputs, outputs := ofSizes(t, inputs, gen.Outputs(4), args)
		o := exec.FunctionOptions{Optimizer: opts[seed%2], Threads: 1 + int(seed/2%2)}
		plain, err := exec.NewFunction(t.Context(), inputs, outputs, o)
		if err != nil {
			t.Fatal(err)
		}
		exec.Unplanned(plain)
		want, err := plain.Call(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		f, err := exec.NewFunction(t.Context(), inputs, outputs, o)
		if err != nil {
			t.Fatal(err)
		}
		m := f.Memory()
		regions, values = regions+exec.Regions(f), values+m.Values
		checkHomes(t, f)
		for _, poison := range []bool{false, true} {
			r := f.NewRunner()
			if poison {
				exec.Poisoning(r)
			}
			for range 2 {
				got, err := r.Run(t.Context(), args...)
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range got {
					if !array.Equal(v, want[i]) {
						t.Fatalf("seed %d, poison %v: %v is\n%v, want\n%v", seed, poison, outputs[i], v, want[i])
					}
				}
			}
		}
	}
	if regions == 0 || values < longtest.Of(400, 1000) {
		t.Errorf("%d values are planned, %d regions", values, regions)
	}
}

// checkHomes compares the plan of a function with the lives of its values, counted step by step.
func checkHomes(t *testing.T, f *exec.Function) {
	t.Helper()
	var live []exec.Home
	var most, end int64
	for i, s := range exec.Homes(f) {
		for _, h := range s.Made {
			for _, other := range live {
				if h.Offset < other.Offset+other.Bytes && other.Offset < h.Offset+h.Bytes {
					t.Fatalf("step %d makes %v, where %v is needed", i, h, other)
				}
			}
			live = append(live, h)
			end = max(end, int64(h.Offset+h.Bytes))
		}
		sum := int64(0)
		for _, h := range live {
			sum += int64(h.Bytes)
		}
		most = max(most, sum)
		for _, h := range s.Dead {
			k := slices.Index(live, h)
			live = slices.Delete(live, k, k+1)
		}
	}
	m := f.Memory()
	if exec.Regions(f) > 0 {
		most = max(most, m.Live) // what both lanes of one use lives as long as that
	}
	if len(live) > 0 || m.Block != end || m.Live != most || m.Peak() != m.Block+m.Results || m.Block < m.Live {
		t.Fatalf("%+v, and the steps need %d bytes at once, up to %d; %d values remain", m, most, end, len(live))
	}
}

// chainFunction compiles a function of X, a float64[64, 64].
func chainFunction(t *testing.T, text string, opts exec.FunctionOptions) (*exec.Function, *array.Array) {
	t.Helper()
	s := expr.NewScope()
	if err := s.Declare("X: float64[64, 64]"); err != nil {
		t.Fatal(err)
	}
	outputs, err := s.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	f, err := exec.NewFunction(t.Context(), s.Inputs(), outputs, opts)
	if err != nil {
		t.Fatal(err)
	}
	return f, uniform(array.Float64, -1, 1, 64, 64)
}

// TestPeakBytes: how much memory a call needs is known before it, and is what the call has used.
func TestPeakBytes(t *testing.T) {
	const size = 64 * 64 * 8
	for _, c := range []struct {
		text string
		want exec.Memory
	}{
		{"tanh(X)", exec.Memory{Results: size, Values: 1}},
		{chainOf("tanh(%)", "X", 9), exec.Memory{Block: 2 * size, Live: 2 * size, Results: size, Values: 9}},
		{"tanh(exp(X)).T", exec.Memory{Block: size, Live: size, Results: size, Values: 2}},                 // the result is a view
		{"[tanh(X)[:, 0], X, X.T]", exec.Memory{Results: size, Values: 1}},                                 // so are these, of an argument
		{"exp(X[X > 0])", exec.Memory{Block: 64 * 64, Live: 64 * 64, Values: 1, Unknown: 4}},               // how many are there?
		{"ifelse(sum(X) > 0, tanh(X), exp(X))", exec.Memory{Block: 128, Live: 128, Values: 2, Unknown: 3}}, // which branch?
		{"tanh(exp(X).T).T", exec.Memory{Block: size, Live: size, Results: size, Values: 2}},
		{"reshape(exp(X), [32, 128])", exec.Memory{Results: size, Values: 1}},
		{"reshape(exp(X).T, [32, 128])", exec.Memory{Block: size, Live: size, Results: size, Values: 2}}, // the result is a copy
		{"reshape(X.T, [32, 128]) + 1", exec.Memory{Block: size, Live: size, Results: size, Values: 2}},
		{"exp(X) + tanh(X) + sin(X)", exec.Memory{Block: 3 * size, Live: 3 * size, Results: size, Values: 5}},
	} {
		f, x := chainFunction(t, c.text, exec.FunctionOptions{})
		if m := f.Memory(); m != c.want {
			t.Errorf("%s: %+v, want %+v", c.text, m, c.want)
		}
		r := f.NewRunner()
		for range 3 {
			if _, err := r.Run(t.Context(), x); err != nil {
				t.Fatal(err)
			}
		}
		if got, planned := r.Peak(), f.Memory().Peak(); got != planned && c.want.Unknown == 0 || got < planned {
			t.Errorf("%s: %d bytes were used, %d planned", c.text, got, planned)
		}
	}
}

// TestPlanTooLarge: a plan beyond the bound of memory is none, so that a call says which apply is too much.
func TestPlanTooLarge(t *testing.T) {
	f, x := chainFunction(t, chainOf("tanh(%)", "X", 3), exec.FunctionOptions{MaxBytes: 50_000})
	if m := f.Memory(); m != (exec.Memory{Unknown: 3}) {
		t.Errorf("%+v", m)
	}
	var at *exec.ApplyError
	if _, err := f.Call(t.Context(), x); !errors.Is(err, array.ErrTooLarge) || !errors.As(err, &at) || at.Apply != "tanh(tanh(X))" {
		t.Errorf("%v", err)
	}
}

// TestLendOutputOfFunctions: results are what they are without a loan, in the memory of the caller, whatever the outputs
// are, and whether or not an argument is in that memory. Nothing is allocated.
func TestLendOutputOfFunctions(t *testing.T) {
	for _, text := range []string{
		"tanh(X)", "[tanh(X), exp(X)]", "tanh(X).T", "[X]", "X.T", "[X.T, tanh(X)]", "[tanh(X) + X.T, X.T]", "sort(X, axis=0)", "ifelse(sum(X) > 0, tanh(X), exp(X))",
		"[dot(tanh(X), X), dot(tanh(X), X)]", "[tanh(X)[::-1], tanh(X)]", "reshape(exp(X), [64, 64])",
	} {
		for _, opt := range []exec.Optimizer{nil, fastRun(t)} {
			f, x := chainFunction(t, text, exec.FunctionOptions{Optimizer: opt})
			want, err := f.Call(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			r := f.NewRunner()
			for _, place := range []string{"apart", "in place", "part of a larger array", "returned"} {
				in := x.Clone()
				var lent []*array.Array
				for i := range want {
					a := array.New(array.Float64, 64, 64)
					switch {
					case place == "in place" && i == 0:
						a = in
					case place == "part of a larger array":
						array.New(array.Float64, 66, 64).RangeTo(a, array.Range{Start: 1, Count: 64, Step: 1})
					case place == "returned":
						a = nil
					}
					lent = append(lent, a)
				}
				for i := range want {
					if err := r.LendOutput(i, nil); err != nil {
						t.Fatal(err)
					}
				}
				for i, a := range lent {
					if err := r.LendOutput(i, a); err != nil {
						t.Fatal(err)
					}
				}
				got, err := r.Run(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range got {
					if lent[i] != nil && v != lent[i] || !array.Equal(v, want[i]) {
						t.Errorf("%s, %s: output %d is\n%v, want\n%v", text, place, i, v, want[i])
					}
				}
			}
		}
	}
	f, x := chainFunction(t, "[tanh(exp(X)), sum(exp(X), axis=0)]", exec.FunctionOptions{})
	r := f.NewRunner()
	y, z := array.New(array.Float64, 64, 64), array.New(array.Float64, 64)
	for i, a := range []*array.Array{y, z} {
		if err := r.LendOutput(i, a); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(20, func() {
		if _, err := r.Run(ctx, x); err != nil {
			t.Fatal(err)
		}
	}); n > 0 && !raceDetector {
		t.Errorf("%v allocations", n)
	}
	for i, a := range []*array.Array{array.New(array.Float32, 64, 64), array.New(array.Float64, 64), y.Transpose(1, 0), y} {
		if err := r.LendOutput(i/3, a); !errors.Is(err, exec.ErrArgument) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := r.LendOutput(2, y); !errors.Is(err, exec.ErrArgument) {
		t.Errorf("%v", err)
	}
}

// TestRunnersInBlock: runners of several functions compute in one block what they compute in their own.
func TestRunnersInBlock(t *testing.T) {
	var runners, own []*exec.Runner
	var args []*array.Array
	most := int64(0)
	var functions []*exec.Function
	for n := 3; n < 6; n++ {
		x := fgraph.NewInput(tensor.NewType(array.Float64, n, 4*n), "x")
		y := tensor.Dot(tensor.Exp(x), tensor.Transpose(tensor.Tanh(x)))
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{tensor.Add(y, tensor.Exp(y)), y}, exec.FunctionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		functions, args = append(functions, f), append(args, array.Full(array.Float64, 0.1*float64(n), n, 4*n))
		most = max(most, f.Memory().Block)
	}
	block := array.NewBlock(int(most))
	for _, f := range functions {
		r, err := f.NewRunnerIn(block)
		if err != nil {
			t.Fatal(err)
		}
		runners, own = append(runners, r), append(own, f.NewRunner())
	}
	for k := range 9 {
		i := k * 2 % 3
		got, err := runners[i].Run(t.Context(), args[i])
		if err != nil {
			t.Fatal(err)
		}
		want, err := own[i].Run(t.Context(), args[i])
		if err != nil {
			t.Fatal(err)
		}
		// Results are in no block: another run leaves them alone.
		if _, err := runners[(i+1)%3].Run(t.Context(), args[(i+1)%3]); err != nil {
			t.Fatal(err)
		}
		for o := range want {
			if !array.Equal(got[o], want[o]) {
				t.Errorf("runner %d, output %d: %v, want %v", i, o, got[o], want[o])
			}
		}
	}
	if _, err := functions[2].NewRunnerIn(array.NewBlock(int(functions[2].Memory().Block) - array.Alignment)); !errors.Is(err, exec.ErrArgument) {
		t.Errorf("a block that is too small: %v", err)
	}
}
