package standard_test

import (
	"strconv"
	"strings"
	"testing"
)

// TestExprRules: rules of the user's join canonicalize where the query selects it, and take its
// place where it does not; they are traced, explained and limited under the names rule1, rule2 and
// so on.
func TestExprRules(t *testing.T) {
	const rule = "(true_div (mul x y) y) => x"
	for _, c := range []struct {
		args         []string
		want, stderr string
	}{
		{[]string{"--query", "none", "--rule", rule, "z + (y*x/y)*(z/x)"}, "[add(z, mul(x, true_div(z, x)))]\n", "3 ops, 5 as typed"},
		{[]string{"--query", "none", "--rule", rule, "(y + z)*x/(y + z)"}, "[true_div(mul(add(y, z), x), add(y, z))]\n", ""},
		{[]string{"--query", "+merge1", "--rule", rule, "--trace", "(y + z)*x/(y + z)"}, "[x]\n", "canonicalize/rule1: true_div(mul(*1 -> add(y, z), x), *1) -> x"},
		{[]string{"--query", "none", "--rule", rule, "--why-not", "rule1", "x*y/z"}, "[true_div(mul(x, y), z)]\n", "why not: canonicalize/rule1: at true_div(mul(x, y), z): z is not what y matches"},
		{[]string{"--query", "none", "--rule", rule, "--max-rewrites", "0", "x*y/y"}, "[true_div(mul(x, y), y)]\n", ""},
		{[]string{"--query", "+canonicalize", "--rule", "(tanh (tanh x)) => (tanh x)", "--rule", "(sin (tanh x)) => (tanh x)", "--trace=rule2", "sin(tanh(tanh(x)))"}, "[tanh(x)]\n", "canonicalize/rule2: sin("},
		{[]string{"--query", "fast_run -fusion", "--rule", "(tanh x) => (sin x)", "tanh(x)"}, "[sin(x)]\n", "1 ops, 1 as typed"},
	} {
		r := nnopt(t, append([]string{"expr"}, c.args...)...).ok(t)
		if r.stdout != c.want || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("%q prints\n%s%s, want\n%s%s", c.args, r.stdout, r.stderr, c.want, c.stderr)
		}
	}
	nnopt(t, "expr", "--rule", "(true_dvi x y) => x", "x").fails(t, statusUsage, "--rule", "column 1: unknown op: true_dvi")
	nnopt(t, "expr", "--query", "+fast_rnu", "x").fails(t, statusUsage, "did you mean fast_run?")
}

// TestExprDiffers: values that differ in NaN are reported, as text and as JSON.
func TestExprDiffers(t *testing.T) {
	args := []string{"expr", "--rule", "(log x) => (neg x)", "--eval", "x=-1.0", "log(x)"}
	contains(t, nnopt(t, args...).ok(t).stderr, "the values differ from those of the typed expression: NaN, infinity or shapes are not the same")
	args = append(args, "--json")
	contains(t, nnopt(t, args...).ok(t).stdout, `"value":1,"differs":true}`)
	args[2] = "(tan x) => (sin x)"
	contains(t, nnopt(t, args...).ok(t).stdout, `"value":"nan","max_rel_diff":0}`)
}

// TestExprSeesGlobalPasses: fusion and in-place passes are told of, and keep to the budget.
func TestExprSeesGlobalPasses(t *testing.T) {
	const text = "exp(x)+log(y)*2"
	all := nnopt(t, "expr", "--trace", text).ok(t)
	contains(t, all.stderr, "rewriting: composite_elemwise_fusion: add(exp(x), mul(2.0, log(y))) -> Composite{")
	none := nnopt(t, "expr", "--max-rewrites", "0", "--eval=random", text).ok(t)
	if !strings.HasPrefix(none.stdout, "[add(exp(x), mul(log(y), 2.0))]\n") {
		t.Error(none.stdout)
	}
	for n := range strings.Count(all.stderr, "rewriting: ") + 1 {
		got := nnopt(t, "expr", "--trace", "--max-rewrites", strconv.Itoa(n), text).ok(t)
		if made := strings.Count(got.stderr, "rewriting: "); made != n {
			t.Errorf("--max-rewrites %d: %d are made\n%s", n, made, got.stderr)
		}
	}
}

// TestExprRandom: random values of absurd sizes are an error.
func TestExprRandom(t *testing.T) {
	nnopt(t, "expr", "--vars", "x: float64[3, 2]", "--eval=random", "x + 1").ok(t)
	nnopt(t, "expr", "--vars", "S: csr", "--eval=random", "S").ok(t)
	nnopt(t, "expr", "--vars", "x: float32[5000000000]", "--eval=random", "x + 1").fails(t, statusUsage, "the size 5000000000 is too large")
	nnopt(t, "expr", "--vars", "x: float32[99999999999999999999]", "x + 1").fails(t, statusUsage, "too large")
	nnopt(t, "expr", "--vars", "x: matrix", "specify_shape(x, 5000000000, 2)").fails(t, statusUsage, "size 5000000000")
	nnopt(t, "expr", "--vars", "x: float64[1000000000, 1000000000]", "--eval=random", "x + 1").fails(t, statusFault, "too large")
}

// TestExprDebug: in debug mode a rule that changes values is named, and without one nothing is
// said.
func TestExprDebug(t *testing.T) {
	t.Chdir(t.TempDir()) // for the reproducer
	nnopt(t, "expr", "--query", "debug", "(x + y)*x/(x + y)").ok(t)
	nnopt(t, "expr", "--query", "debug", "--rule", "(true_div (mul x y) y) => y", "z + (y*x/y)*(z/x)").
		fails(t, statusFault, "other values", "canonicalize/rule1: true_div(mul(y, x), y) -> y")
}

// TestExprMinus: an expression may begin with a minus. What resembles a flag is taken for one,
// unless it follows "--".
func TestExprMinus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--query", "none", "-x"}, "[neg(x)]\n"}, {[]string{"-x", "--query=none"}, "[neg(x)]\n"}, {[]string{"--query=none", "-x.T"}, "[neg(x)]\n"}, {[]string{"--query", "none", "-x*y"}, "[mul(neg(x), y)]\n"},
		{[]string{"--query", "none", "--", "-grad"}, "[neg(grad)]\n"}, {[]string{"--query", "none", "--", "--x"}, "[neg(neg(x))]\n"}, {[]string{"--query", "none", "-(x)"}, "[neg(x)]\n"},
	} {
		if r := nnopt(t, append([]string{"expr"}, c.args...)...); r.stdout != c.want {
			t.Errorf("%q prints\n%s%s, want\n%s", c.args, r.stdout, r.stderr, c.want)
		}
	}
	nnopt(t, "expr", "-quary", "none", "x").fails(t, statusUsage, "unknown flag --quary; did you mean \"--query\"?")
	nnopt(t, "expr", "--x").fails(t, statusUsage, "unknown flag --x")
	nnopt(t, "info", "-x").fails(t, statusUsage, "unknown flag --x")
	for _, n := range []string{"-9", "x", "99999999999999999999"} {
		nnopt(t, "expr", "--max-rewrites="+n, "x").fails(t, statusUsage, "--max-rewrites="+n)
	}
}

// TestExprLong: an error quotes a long expression around the place only.
func TestExprLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x + ", 15000)
	for _, args := range [][]string{{long + "y y"}, {long}, {strings.Repeat("x", 60000) + "("}, {"'" + long}, {"x{" + long}, {long + "foo(1)" + long}, {"x", "--vars", long}, {"x", "--vars", "x: " + long}, {"x", "--eval", "x=" + long},
		{"x", "--eval", long}, {"x", "--eval", long + "=1"}, {"x", "--grad", strings.ReplaceAll(long, " ", "")}, {"Assert{" + long + "}()"}, {strings.Repeat("f(", 600)}, {"x", "--format=" + long}, {"x", "--rule", long}, {"x", "--query", long}} {
		r := nnopt(t, append([]string{"expr"}, args...)...)
		if r.status != statusUsage || len(r.stderr) > 2000 {
			t.Errorf("%.20q… %.20q…: status %d, %d bytes: %.300s", args[0], args[len(args)-1], r.status, len(r.stderr), r.stderr)
		}
	}
	nnopt(t, "expr", strings.Repeat("x + ", 100)+"y y + "+strings.Repeat("x + ", 100)).fails(t, statusUsage, "column 403: unexpected \"y\"\n  …+ x + x + x", " x + y y + x +", "…\n   ", "^")
}
