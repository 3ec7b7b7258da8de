package expr_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestGraphFiles: random graphs print as text that reads as the same graph, before and after
// optimization.
func TestGraphFiles(t *testing.T) {
	runs := 10000
	if !longtest.Enabled() {
		runs = 300
	}
	opt := passtest.Optimizer(t, "+fast_run")
	for seed := range runs {
		gen := tensortest.NewGenerator(uint64(seed))
		gen.Grow(2 + seed%20)
		inputs, _ := gen.Inputs()
		g, err := tensor.NewGraph(inputs, gen.Outputs(1+seed%3))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			checkGraphFile(t, seed, g)
			if err := opt.Rewrite(t.Context(), g, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkGraphFile writes a graph and reads it again.
func checkGraphFile(t *testing.T, seed int, g *fgraph.FunctionGraph) {
	t.Helper()
	text, err := graphfile.Format(&graphfile.File{Graph: g}, expr.Dialect{})
	if err != nil {
		t.Fatalf("seed %d: %v\n%v", seed, err, g)
	}
	f, err := graphfile.Parse("file", text, expr.Dialect{})
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, text)
	}
	again, err := graphfile.Format(f, expr.Dialect{})
	if err != nil || again != text || f.Graph.String() != g.String() {
		t.Fatalf("seed %d: %v\n%s\nreads as\n%s", seed, err, text, again)
	}
}

func TestGraphFile(t *testing.T) {
	const text = `graph {
    input %x : float32 vector
    input %S : float64 csr matrix
    %0 = constant {[2] nan -inf} : float32[2]
    %1 = Assert{"a } b (\n"}(%x, %2) : float32 vector
    return %1
}
`
	s := expr.NewScope()
	if err := s.Declare("x: float32 vector; S: csr"); err != nil {
		t.Fatal(err)
	}
	odd := array.Of([]float32{math.Float32frombits(0x7fc00001), float32(math.Copysign(0, -1))}, 2)
	sparse := array.ToCSR(array.Of([]float64{0, 1.5, 0, 0, 0, -2}, 2, 3))
	x, m := s.Lookup("x"), s.Lookup("S")
	out := []*fgraph.Variable{
		tensor.Assert(tensor.Add(x, tensor.Constant(odd)), "a } b (\n", tensor.Constant(array.Scalar(true))),
		tensor.Constant(sparse), m,
	}
	g, err := tensor.NewGraph(s.Inputs(), out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := graphfile.Format(&graphfile.File{Graph: g}, expr.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := graphfile.Parse("file", got, expr.Dialect{})
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	if again, err := graphfile.Format(f, expr.Dialect{}); err != nil || again != got {
		t.Errorf("%v\n%s\n%s", err, got, again)
	}
	for _, want := range []string{"{[2] nan:7fc00001 -0}", "{csr [2, 3] 1.5 -2; 0 1 2; 1 2}", `Assert{"a } b (\n"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	if _, err := graphfile.Parse("file", text, expr.Dialect{}); err == nil || !strings.Contains(err.Error(), `there is no "%2"`) {
		t.Error(err)
	}
}

func TestGraphFileFaults(t *testing.T) {
	for line, want := range map[string]string{
		"%1 = frobnicate(%x) : float64 vector":                                                      `there is no op "frobnicate"`,
		"%1 = sum{axis=7}(%x) : float64 vector":                                                     "sum",
		"%1 = exp(%x) : float64 matrix":                                                             "not a float64 matrix",
		"%1 = exp(%x) : float64 vector, float64 vector":                                             "1 results",
		"%1 = dot(%x) : float64":                                                                    "dot",
		"%1 = constant {[2] 1 2} : float64[3]":                                                      "not a float64[3]",
		"%1 = constant {[2000000000, 2000000000]} : float64 matrix":                                 "0 elements",
		"%1 = constant {[2] 1 x} : float64 vector":                                                  "element 1",
		"%1 = constant {csr [2, 2] 1; 0 1 1; 7} : float64 csr matrix":                               "column 7",
		"%1 = Composite{float64; exp 0}(%x) : float64 vector":                                       "\"return\"",
		"%1 = Composite{float64; exp 1; return 1}(%x) : float64 vector":                             "no value",
		"%1 = Composite{float64; add 0; return 1}(%x) : float64 vector":                             "add of 1 arguments",
		"%1 = Composite{float64; return 0}(%x) : float64 vector":                                    "not the result of an operation",
		"%1 = Composite{float64; cast{float64} 0; return 1}(%x) : float64 vector":                   "cast{float64}",
		"%1 = Composite{float64; and 0 0; return 1}(%x) : float64 vector":                           "and of",
		"%1 = Composite{float64; exp 0; return 1}{0:3}(%x) : float64 vector":                        "no output and input",
		"%1 = Composite{float64; constant float64 [2] 1 2; add 0 1; return 2}(%x) : float64 vector": "a constant of shape",
		"%1 = Composite{bool; exp 0; return 1}(%x) : float64 vector":                                "needs conversions",
	} {
		text := "graph {\n input %x : float64 vector\n " + line + "\n return %x\n}\n"
		if _, err := graphfile.Parse("f", text, expr.Dialect{}); !errors.Is(err, graphfile.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestMutable: a file says which inputs may be destroyed, and a graph that destroys another is
// refused.
func TestMutable(t *testing.T) {
	const text = `graph {
    input %x : float64 vector
    input %y : float64 vector
    %0 = exp{inplace=0}(%x) : float64 vector
    %1 = add(%0, %y) : float64 vector
    return %1
}
mutable {
    %x
}
`
	f, err := graphfile.Parse("f", text, expr.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := graphfile.Format(f, expr.Dialect{}); err != nil || again != text {
		t.Errorf("%v\n%s", err, again)
	}
	for was, now := range map[string]string{"mutable {\n    %x": "mutable {\n    %y", "    %x\n}": "    %x\n    %x\n}", "    %x\n": "    %0\n", "mutable {\n    %x\n}\n": ""} {
		wrong := text[:strings.Index(text, "mutable")] + strings.Replace(text[strings.Index(text, "mutable"):], was, now, 1)
		if _, err := graphfile.Parse("f", wrong, expr.Dialect{}); !errors.Is(err, graphfile.ErrSyntax) {
			t.Errorf("%s%v", wrong, err)
		}
	}
	// A function tells which of its arguments it may destroy.
	s := expr.NewScope()
	if err := s.Declare("x: vector"); err != nil {
		t.Fatal(err)
	}
	out := s.MustParse("exp(x)")
	fn, err := exec.NewFunction(t.Context(), s.Inputs(), []*fgraph.Variable{out}, exec.FunctionOptions{Optimizer: passtest.Optimizer(t, "+fast_run"), Mutable: s.Inputs()})
	if err != nil {
		t.Fatal(err)
	}
	got, err := graphfile.Format(&graphfile.File{Graph: fn.Graph()}, expr.Dialect{})
	if err != nil || !strings.Contains(got, "exp{inplace=0}") || !strings.HasSuffix(got, "mutable {\n    %x\n}\n") {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := graphfile.Parse("f", got, expr.Dialect{}); err != nil {
		t.Error(err)
	}
}

// FuzzGraphFile: a file is an error, or prints as text that reads as the same.
func FuzzGraphFile(f *testing.F) {
	f.Add("graph {\n input %x : float64 vector\n %1 = constant {[] 2} : float64\n %2 = Composite{float64; constant float64 [] 2; mul 0 1; return 2}{0:0}(%x) : float64 vector\n" +
		" %3 = sum{axis=0}(%2) : float64\n %4 = Subtensor{1:,_}(%x, %1) : float64\n return %3, %1\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := graphfile.Parse("f", text, expr.Dialect{})
		if err != nil {
			return
		}
		printed, err := graphfile.Format(file, expr.Dialect{})
		if err != nil {
			t.Fatal(err)
		}
		again, err := graphfile.Parse("f", printed, expr.Dialect{})
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if second, err := graphfile.Format(again, expr.Dialect{}); err != nil || second != printed {
			t.Errorf("%v\n%s\n%s", err, printed, second)
		}
	})
}
