package exec_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// liar is an identity on vectors that may not do what it declares.
type liar string

func (l liar) String() string { return string(l) }

func (l liar) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	switch l {
	case "dtype":
		return []fgraph.Type{tensor.VectorType(array.Float32)}, nil
	case "rank":
		return []fgraph.Type{tensor.MatrixType(array.Float64)}, nil
	case "broadcast":
		return []fgraph.Type{tensor.NewType(array.Float64, 1)}, nil
	case "same_output_twice":
		return []fgraph.Type{in[0].Type(), in[0].Type()}, nil
	}
	return []fgraph.Type{in[0].Type()}, nil
}

func (l liar) ViewMap() []fgraph.Alias {
	if l == "honest_view" {
		return []fgraph.Alias{{Output: 0, Input: 0}}
	}
	return nil
}

func (l liar) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		switch l {
		case "overwrites":
			*out[0] = *in[0].Clone()
			in[0].SetFloat(0, -7)
		case "view", "honest_view":
			*out[0] = *in[0]
		case "keeps":
			t := new(array.Array)
			if err := ws.New(t, in[0].DType(), in[0].Dim(0)); err != nil {
				return err
			}
			array.CopyTo(t, in[0])
			*out[0] = *t
		case "same_output_twice":
			*out[0] = *in[0].Clone()
			*out[1] = *out[0]
		default:
			*out[0] = *in[0].Clone()
		}
		return nil
	}, nil
}

// TestCheckFindsLiars: debug mode finds every op that doesn't do what it declares, and names it
// with the rule that introduced it. Honest ops pass.
func TestCheckFindsLiars(t *testing.T) {
	for _, c := range []struct {
		op   liar
		want string // "": nothing is wrong
	}{
		{"honest", ""}, {"honest_view", ""},
		{"overwrites", "overwrites its input 0, which is not in its destroy map"},
		{"view", "output 0 is in the memory of input 0, which is neither in its view map"},
		{"same_output_twice", "outputs 0 and 1 are in the same memory"},
		{"dtype", "output 0 is not what was inferred"},
		{"rank", "output 0 is not what was inferred"},
		{"broadcast", "output 0 is not what was inferred"},
	} {
		call := func(opts exec.FunctionOptions, optimized bool) error {
			x := tensor.Vector("x")
			out := []*fgraph.Variable{tensor.Neg(x)}
			if !optimized {
				a, err := tensor.Make(c.op, x)
				if err != nil {
					t.Fatal(err)
				}
				out = a.Outputs()
			}
			f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, out, opts)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Call(t.Context(), array.Of([]float64{1, 2}, 2))
			return err
		}
		err := call(exec.FunctionOptions{Check: true}, false)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, fgraph.ErrDeclaration) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.op, err)
		}
		if err := call(exec.FunctionOptions{}, false); err != nil {
			t.Errorf("%s, not in debug mode: %v", c.op, err)
		}
		if c.op == "dtype" || c.op == "rank" || c.op == "broadcast" || c.op == "same_output_twice" {
			continue // the graph rejects the replacement
		}
		insert := rewrite.Rule{Name: "insert", Doc: "inserts the op", On: []rewrite.Track{rewrite.TrackOp(tensor.OpFor(array.Neg))},
			Fn: func(_ *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
				return rewrite.Replace(tensor.MustApply(c.op, n.Inputs()...)), nil
			}}
		db := passes.Default()
		if err := db.Register("late", rewrite.In2Out("late", insert), 40, "fast_run"); err != nil {
			t.Fatal(err)
		}
		debug, _ := optdb.Mode(optdb.ModeDebug)
		opt, err := db.Build(debug.Excluding("canonicalize", "specialize"))
		if err != nil {
			t.Fatal(err)
		}
		err = call(exec.FunctionOptions{Optimizer: opt}, true)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, fgraph.ErrDeclaration) || !strings.Contains(err.Error(), "by late/insert")) {
			t.Errorf("%s, optimized: %v", c.op, err)
		}
	}
}

// TestCheckOfViewOfOverlap: a view of one of two arguments that overlap is in the memory of both, which is no fault of
// its op.
func TestCheckOfViewOfOverlap(t *testing.T) {
	x, y := tensor.Vector("x"), tensor.Vector("y")
	buf := []float64{1, 2, 3}
	for op, want := range map[liar]error{"honest_view": nil, "view": fgraph.ErrDeclaration} {
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x, y}, []*fgraph.Variable{tensor.MustApply(op, x, y)}, exec.FunctionOptions{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Call(t.Context(), array.Of(buf[:2], 2), array.Of(buf[1:], 2)); !errors.Is(err, want) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// TestCheckFindsKept: an op that keeps what it has asked a workspace for, in place of memory for its output, is
// found: that may be memory of the plan that others need next.
func TestCheckFindsKept(t *testing.T) {
	x := fgraph.NewInput(tensor.NewType(array.Float64, 64, 64), "x")
	for _, op := range []liar{"honest", "keeps"} {
		v := tensor.MustApply(op, tensor.Sum(tensor.Exp(tensor.Exp(x)), 0)) // with room for more where the matrices were
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{tensor.Neg(v)}, exec.FunctionOptions{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.Call(t.Context(), array.New(array.Float64, 64, 64)); errors.Is(err, fgraph.ErrDeclaration) != (op == "keeps") {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// TestCheckOfOps: the ops of package tensor do what they declare, with and without optimization.
func TestCheckOfOps(t *testing.T) {
	debug, _ := optdb.Mode(optdb.ModeDebug)
	opt, err := passes.Default().Build(debug)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"x + y", "X.T", "dot(X, x)", "x[1:3]", "X[..., 0]", "x[i]", "inc_subtensor(x[1:3], y[0:2])", "inc_subtensor(x[i], 1)",
		"reshape(t3, 4, -1)[0]", "x.dimshuffle('x', 0)", "join(0, x, y)", "stack([x, y])[1]", "softmax(X)", "sdot(S, X)", "X + r + c",
		"Gemm(X, 1.0, Y, Y, -1.0)[0]", "grad(sum(sigmoid(s*x)**2), x)", "max(X, axis=-1)", "alloc(s, 2, 2)", "f*2 + x", "switch(x > 1, x, 0)",
		"exp(x)*y - log(x)*exp(x) + sum(exp(x))", "identity(x)"} {
		for _, o := range []exec.Optimizer{nil, opt} {
			s := scope(t)
			f, err := exec.NewFunction(t.Context(), s.Inputs(), []*fgraph.Variable{s.MustParse(text)}, exec.FunctionOptions{Optimizer: o, Check: true})
			if err == nil {
				_, err = f.Call(t.Context(), values()...)
			}
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// TestEarlyDestroyer: however an op that overwrites its input gets into a graph before position 50,
// NewFunction returns an error that names the pass and the op.
func TestEarlyDestroyer(t *testing.T) {
	inPlace := tensor.OpFor(array.Neg).(tensor.Elemwise)
	inPlace.Inplace = 1
	insert := rewrite.Rule{Name: "insert", Doc: "negates in place", On: []rewrite.Track{rewrite.TrackOp(tensor.OpFor(array.Neg))},
		Fn: func(_ *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(tensor.MustApply(inPlace, n.Inputs()...)), nil
		}}
	walk := rewrite.In2Out("early", insert)
	for name, optimizer := range map[string]exec.Optimizer{
		"a rule":                        built(t, walk, "+fast_run -canonicalize -specialize"),
		"nothing else runs":             built(t, walk, "+early"),
		"behind the back of every pass": meddler{inPlace},
	} {
		x := tensor.Vector("x")
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{tensor.Neg(x)}, exec.FunctionOptions{Optimizer: optimizer})
		if f != nil || err == nil || !strings.Contains(err.Error(), "insert") || !strings.Contains(err.Error(), "neg{inplace=0}") {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
}

// TestEarlyPattern: a pattern whose replacement overwrites an input can't be registered before
// position 50. From there on it is safe.
func TestEarlyPattern(t *testing.T) {
	rule := pattern.Must(tensorpass.Vocabulary(), "(neg x)", "(neg{inplace=0} x)", pattern.Named("in_place"))
	walk := rewrite.In2Out("walk", rule)
	if err := passes.Default().Register("walk", walk, 40, "fast_run"); !errors.Is(err, optdb.ErrInplace) {
		t.Error(err)
	}
	if _, err := passes.Default().Build(optdb.Include("fast_run").With("walk", walk, 40)); !errors.Is(err, optdb.ErrInplace) {
		t.Error(err)
	}
	in := optdb.NewEquilibriumDB("in")
	if err := in.Register("rule", rule); err != nil {
		t.Fatal(err)
	}
	if _, err := passes.Default().Build(optdb.Include("fast_run").With("in", in, 40)); !errors.Is(err, optdb.ErrInplace) {
		t.Error(err)
	}
	db := passes.Default()
	if err := db.Register("walk", walk, 60, "mine"); err != nil {
		t.Fatal(err)
	}
	opt, err := db.Build(optdb.Include("mine")) // nothing but the walk attaches a handler
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Vector("x")
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{tensor.Neg(tensor.Neg(x))}, exec.FunctionOptions{Optimizer: opt})
	if err != nil || f.String() != "[neg{inplace=0}(neg(x))]" {
		t.Errorf("%v, %v", f, err)
	}
}

// meddler changes the graph without a rewriter.
type meddler struct{ op tensor.Op }

func (m meddler) Rewrite(_ context.Context, g *fgraph.FunctionGraph, _ *profile.Recorder) error {
	return g.Replace(g.Outputs()[0], tensor.MustApply(m.op, g.Inputs()...), fgraph.Reason{Rule: "insert"})
}

// built returns the optimizer of a query, from the standard database with a pass at position 40.
func built(t *testing.T, pass rewrite.GraphRewriter, query string) *optdb.Optimizer {
	t.Helper()
	db := passes.Default()
	if err := db.Register("early", pass, 40, "fast_run"); err != nil {
		t.Fatal(err)
	}
	q, err := optdb.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	opt, err := db.Build(q)
	if err != nil {
		t.Fatal(err)
	}
	return opt
}
