package standard_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// TestRuleCheck: the exit status says whether rules are what their tags promise, and a
// counterexample has what it takes to see it.
func TestRuleCheck(t *testing.T) {
	right := nnopt(t, "rule", "check", "(neg (neg x)) => x", "(mul x x) => (sqr x)").ok(t)
	if right.stdout != "  exact       rule1\n  exact       rule2\n" {
		t.Error(right.stdout)
	}
	wrong := broken(t, "0 of 1 rules are what their tags promise", "(sqrt (sqr x)) => x")
	const want = "! wrong       rule1\n    x: float64 = -1.0; left: sqrt(sqr(x)) = 1.0; right: x = -1.0\n"
	if wrong.stdout != want {
		t.Error(wrong.stdout)
	}
	contains(t, nnopt(t, "expr", "--vars", "x: float64", "--eval", "x = -1.0", "--query", "none", "sqrt(sqr(x))").ok(t).stdout, "1.0")
}

// broken checks rules of which not all are what they promise.
func broken(t *testing.T, says string, args ...string) result {
	t.Helper()
	r := nnopt(t, append([]string{"rule", "check"}, args...)...)
	if r.status != statusFault {
		t.Errorf("%q: status %d\n%s%s", args, r.status, r.stdout, r.stderr)
	}
	contains(t, r.stderr, says)
	return r
}

// TestRuleCheckVars: types of names restrict what is tried.
func TestRuleCheckVars(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	broken(t, "0 of 1", "(sqrt (sqr x)) => (abs x)")
	nnopt(t, "rule", "check", "--vars", "x: float32 matrix", "(sqrt (sqr x)) => (abs x)").ok(t)
	contains(t, broken(t, "0 of 1", "--vars=x: float32 matrix", "(sqrt (sqr x)) => x").stdout, "x: float32 matrix = [[-1.0]]")
}

// TestRuleCheckFile: a file has rules with names and tags, and lines that are rules.
func TestRuleCheckFile(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	f := file(t, "some.rules", "# A quotient.\nquotient: canonicalize; unsafe_nan\n    (true_div x x) => 1\n\n(sub x y) => (sub y x)\n(sqr (neg x)) => (sqr x)\n")
	r := broken(t, "2 of 3 rules", "--json", "--file", f)
	var classes []string
	for line := range strings.Lines(r.stdout) {
		var report rulecheck.Report
		if err := json.Unmarshal([]byte(line), &report); err != nil {
			t.Fatal(err)
		}
		classes = append(classes, report.Name+" "+string(report.Class))
		if report.Tried == 0 || report.Rule == "" {
			t.Errorf("%+v", report)
		}
	}
	if got := strings.Join(classes, ", "); got != "quotient unsafe_nan, rule1 wrong, rule2 exact" {
		t.Error(got)
	}
}

// TestRuleCheckUsage: what does not parse is a fault of usage.
func TestRuleCheckUsage(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"(neg x => x", "1:"}, {"(nge x) => x", "unknown op: nge"}, {"(neg x) => y", "unbound name"}, {"neg x", "is not"}, {"", "a rule, --file or --all expected"},
		{"--vars=z: vector|(neg (neg x)) => x", "no pattern has that name"}, {"--vars=x: flaot64|(neg (neg x)) => x", "--vars"}, {"--vars=x: float64[100000]|(neg (neg x)) => x", "more than"},
	} {
		nnopt(t, append([]string{"rule", "check"}, strings.FieldsFunc(c.args, func(r rune) bool { return r == '|' })...)...).fails(t, statusUsage, c.want)
	}
	nnopt(t, "rule").fails(t, statusUsage, "rule check")
	nnopt(t, "rule", "check", "--file", "no such file").fails(t, statusFault)
	if _, err := os.Stat("/dev/zero"); err == nil {
		nnopt(t, "rule", "check", "--file", "/dev/zero").fails(t, statusFault, "/dev/zero", "limit")
	}
}
