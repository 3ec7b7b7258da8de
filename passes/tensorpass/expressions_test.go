package tensorpass_test

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// An expression is a line of testdata/expressions.txt.
type expression struct {
	most int // applies
	text string
}

func readExpressions(t testing.TB) []expression {
	t.Helper()
	file, err := os.Open("testdata/expressions.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list []expression
	for s := bufio.NewScanner(file); s.Scan(); {
		if most, text, ok := strings.Cut(s.Text(), " | "); ok && s.Text()[0] != '#' {
			n, err := strconv.Atoi(most)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, expression{n, text})
		}
	}
	return list
}

// Declarations of the variables of the expressions: as usual, in float32, and with sizes that are
// known to be 1 and broadcast.
var expressionVars = []struct{ name, vars string }{
	{"float64", "x y z w: vector; X Y Z: matrix; s b: scalar; t3: tensor3; fX: float32 matrix"},
	{"float32", "x y z w: float32 vector; X Y Z: float32 matrix; s b: float32 scalar; t3: float32 tensor3; fX: float32 matrix"},
	{"broadcast y", "x z w: vector; y: float64[1]; X Z: matrix; Y: row; s b: scalar; t3: tensor3; fX: float32 row"},
	{"broadcast x", "x: float64[1]; y z w: vector; X: col; Y Z: matrix; s b: scalar; t3: float64[?, 1, ?]; fX: float32 col"},
}

// parseExpression returns the outputs of an expression, or nil if the types do not fit.
func parseExpression(t testing.TB, vars, text string) (*expr.Scope, []*fgraph.Variable) {
	t.Helper()
	s := expr.NewScope()
	if err := s.Declare(vars); err != nil {
		t.Fatal(err)
	}
	out, err := s.Parse(text)
	if err != nil {
		return nil, nil
	}
	return s, out
}

// TestExpressionCalls: no expression has more calls left than the best of the others leaves.
func TestExpressionCalls(t *testing.T) {
	opt := passtest.Optimizer(t, unfused)
	for _, e := range readExpressions(t) {
		_, out := parseExpression(t, expressionVars[0].vars, e.text)
		if out == nil {
			t.Errorf("%s: is not understood", e.text)
			continue
		}
		g, err := tensor.NewGraph(tensor.InputsOf(out...), out)
		if err != nil {
			t.Fatal(err)
		}
		if err := opt.Rewrite(t.Context(), g, nil); err != nil {
			t.Fatal(err)
		}
		if g.NumApplies() > e.most {
			t.Errorf("%s became %v: %d calls, want %d at most", e.text, g, g.NumApplies(), e.most)
		}
	}
}

// TestExpressionValues: whatever the query, the values are those of the expression as written, to
// 1e-12 in float64 and 1e-5 in float32, for several shapes. Without the rules tagged unsafe_nan,
// NaN and infinity are in the same places as well, for arguments with NaN, infinities and zeros of
// both signs.
func TestExpressionValues(t *testing.T) {
	understood := 0
	queries := []string{"+fast_run", unfused, "+fast_compile", "+fast_run -unsafe_nan"}
	if longtest.Enabled() {
		queries = append(queries, "+fast_run +saturate", "+fast_run +saturate -unsafe_nan")
	}
	var opts []*optdb.Optimizer
	for _, query := range queries {
		opts = append(opts, passtest.Optimizer(t, query))
	}
	for _, vars := range expressionVars {
		t.Run(vars.name, func(t *testing.T) {
			for i, e := range readExpressions(t) {
				s, out := parseExpression(t, vars.vars, e.text)
				if out == nil {
					continue
				}
				understood++
				plain, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if t.Failed() {
					return
				}
				for k, query := range queries {
					if !longtest.Enabled() && k%2 != i%2 {
						continue
					}
					f, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{Optimizer: opts[k]})
					if err != nil {
						t.Fatalf("%s, %s: %v", e.text, query, err)
					}
					var args []*array.Array
					for seed := range uint64(3) {
						if args, err = plain.RandomArguments(t.Context(), seed); err != nil {
							t.Fatalf("%s: %v", e.text, err)
						}
						compare(t, plain, f, args, !strings.HasSuffix(query, "-unsafe_nan"))
					}
					if strings.HasSuffix(query, "-unsafe_nan") {
						compareSpecials(t, plain, f, args)
					}
				}
			}
		})
	}
	if n := len(readExpressions(t)); understood < 3*n {
		t.Errorf("%d of %d forms of expressions were understood", understood, len(expressionVars)*n)
	}
}

// compareSpecials compares the functions for many combinations of NaN, infinities and zeros in the
// arguments. With very large and very small numbers, only finite results have to stay finite: the
// order of a sum matters then, and stabilize may make a result finite that overflowed on the way.
func compareSpecials(t *testing.T, plain, f *exec.Function, args []*array.Array) {
	t.Helper()
	specials := []float64{math.NaN(), 1, math.Inf(1), -2, math.Inf(-1), 0, 0.5, math.Copysign(0, -1), 3, -1, 2}
	extremes := []float64{1e300, 1, -1e300, 0x1p-1070, -2, 0, 0.5, math.Copysign(0, -1), math.Inf(1), 3, 1e200}
	for shift := range specials {
		compare(t, plain, f, withValues(args, specials, shift), false)
		changed := withValues(args, extremes, shift)
		want, err := plain.Call(t.Context(), changed...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Call(t.Context(), changed...)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			for k := range w.Len() {
				if v := w.Float(k); v-v == 0 && got[i].Float(k)-got[i].Float(k) != 0 {
					t.Errorf("%v is %v,\n%v was %v, with arguments %v", f, got[i], plain, w, changed)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}

// withValues returns arguments with elements from a list, beginning at another place of it for each
// argument.
func withValues(args []*array.Array, values []float64, shift int) []*array.Array {
	changed := append([]*array.Array{}, args...)
	for k, a := range args {
		if a.IsCSR() || !a.DType().IsFloat() {
			continue
		}
		changed[k] = a.Clone()
		for i := range a.Len() {
			v := values[(i*5+k*3+shift)%len(values)]
			if a.DType() == array.Float32 && math.Abs(v) == 1e300 {
				v = math.Copysign(1e37, v)
			}
			changed[k].SetFloat(i, v)
		}
	}
	return changed
}
