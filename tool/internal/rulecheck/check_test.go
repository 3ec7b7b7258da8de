package rulecheck_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/tensors"
)

// readFile returns the rules of a file in testdata. In short mode it skips most.
func readFile(t *testing.T, name string) []pattern.Rule {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := rulecheck.ParseFile(name, string(text))
	if err != nil {
		t.Fatal(err)
	}
	if !longtest.Enabled() {
		var some []pattern.Rule
		for i := 0; i < len(rules); i += 8 {
			some = append(some, rules[i])
		}
		return some
	}
	return rules
}

func check(t *testing.T, rules []pattern.Rule, o rulecheck.Options) []rulecheck.Report {
	t.Helper()
	reports, err := rulecheck.ForAll(rules, func(r pattern.Rule) (rulecheck.Report, error) {
		return rulecheck.Check(t.Context(), tensors.Domain(nil, nil, nil), r, o)
	})
	if err != nil {
		t.Fatal(err)
	}
	return reports
}

// few returns every fifth rule, or all with -long.
func few(rules []pattern.Rule) []pattern.Rule {
	var list []pattern.Rule
	for i := 0; i < len(rules); i += longtest.Of(5, 1) {
		list = append(list, rules[i])
	}
	return list
}

// TestRight: no rule that is right, with the tags that it needs, raises an alarm.
func TestRight(t *testing.T) {
	for _, r := range check(t, few(readFile(t, "right.rules")), rulecheck.Options{}) {
		if !r.Kept || r.Tried == 0 {
			t.Errorf("%s is %s, tried %d times: %s\n%s", r.Name, r.Class, r.Tried, r.Rule, r.Counterexample)
		}
	}
}

// TestWrong: every planted mistake is found, and has the class that the file says.
func TestWrong(t *testing.T) {
	rules := few(readFile(t, "wrong.rules"))
	for i, r := range check(t, rules, rulecheck.Options{}) {
		if r.Kept || !slices.Contains(rules[i].Groups, string(r.Class)) || r.Counterexample == "" {
			t.Errorf("%s is %s: %s\n%s", r.Name, r.Class, r.Rule, r.Counterexample)
		}
	}
}

// TestSmallest holds what a reader sees of wrong rules.
func TestSmallest(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{"(sqrt (sqr x)) => x", "x: float64 = -1.0; left: sqrt(sqr(x)) = 1.0; right: x = -1.0"},
		{"(sub x y) => (sub y x)", "x: float64 = 1.0; y: float64 = -1.0; left: sub(x, y) = 2.0; right: sub(y, x) = -2.0"},
		{"(log (mul x y)) => (add (log x) (log y))", "x: float64 = -1.0; y: float64 = -1.0; left: log(mul(x, y)) = 0.0; right: add(log(x), log(y)) = nan"},
		{"(add x ...ys) => x", "x: float64 = 1.0; ys1: float64 = 1.0; left: add(x, ys1) = 2.0; right: x = 1.0"},
		{"(Subtensor{1:} (Subtensor{1:} x)) => (Subtensor{3:} x)", "x: float64 vector = [1.0, 1.0, 1.0]; left: Subtensor{1:}(Subtensor{1:}(x)) = [1.0]; right: Subtensor{3:}(x) = []"},
		{"(mul x 0) => 0", "x: float64 = nan; left: mul(x, 0.0) = nan; right: 0.0 = 0.0"},
	}[:longtest.Of(1, 6)] {
		r := check(t, []pattern.Rule{rule(t, c.rule)}, rulecheck.Options{})[0]
		if r.Counterexample != c.want {
			t.Errorf("%s: %s, not %s", c.rule, r.Counterexample, c.want)
		}
	}
}

// TestDeterministic: two checks say the same, and another seed gives the same class.
func TestDeterministic(t *testing.T) {
	r := rule(t, "(true_div (mul x y) y) => x")
	a := check(t, []pattern.Rule{r, r}, rulecheck.Options{})
	if a[0].Class != rulecheck.UnsafeNaN && a[0].Class != rulecheck.Overflow || a[0].Tried != a[1].Tried || a[0].Counterexample != a[1].Counterexample {
		t.Errorf("%+v\n%+v", a[0], a[1])
	}
	if !longtest.Enabled() {
		return
	}
	if b := check(t, []pattern.Rule{r}, rulecheck.Options{Seed: 7}); b[0].Class != a[0].Class {
		t.Errorf("%s with another seed, %s before", b[0].Class, a[0].Class)
	}
}

// TestSeeds: whichever values are drawn, what only rounds or computes in another order is no fault.
func TestSeeds(t *testing.T) {
	rules, err := rulecheck.ParseFile("", `
# The exponents may be so large that their sum is rounded to an even number.
powers: g; unsafe_nan
    (mul (pow x a) (pow x b)) && float(x, a, b) => (pow x (add a b))

# Rounding is magnified.
(pow (pow (abs x) 0.25) 3) && wide(x) => (pow (abs x) 0.75)

# Either side may overflow.
(mul (abs x) (abs y) (abs z)) && float(x, y, z) => (abs (mul z x y))

# Numbers may be so large that rounding leaves nothing of the angle.
(sin (mul -1 x ...xs)) && float(x, xs) <=> (mul -1 (sin (mul x ...xs))) && float(x, xs)

# The sum may cancel.
(log (add 2 x y -1)) && float(x, y) => (log1p (add x y))

# The parameters of two ops are one.
(IncSubtensor{a} (IncSubtensor{a} x y ...i) z ...i) => (IncSubtensor{a} x (add y z) ...i)

# Both sides need the same memory.
(Alloc p@(DimShuffle{a} v) ...n) && pads(p) => (Alloc v ...n)
`)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(longtest.Of(1, 6)) {
		for _, r := range check(t, few(rules), rulecheck.Options{Seed: seed}) {
			if !r.Kept || r.Tried == 0 {
				t.Errorf("with seed %d %s is %s, tried %d times: %s", seed, r.Rule, r.Class, r.Tried, r.Counterexample)
			}
		}
	}
}

// rule returns a rule of one rewrite.
func rule(t *testing.T, text string) pattern.Rule {
	t.Helper()
	rules, err := rulecheck.ParseFile("", text)
	if err != nil {
		t.Fatal(err)
	}
	return rules[0]
}

// TestParseFile: a file has rules with names and rules without, and all of its faults are told.
func TestParseFile(t *testing.T) {
	rules, err := rulecheck.ParseFile("f", "(neg (neg x)) => x\ncode:\n  Go: it counts\n\n# Twice.\ntwice: g; unsafe_nan\n    (add x x) => (mul 2 x)\n\n(abs (abs x)) =>  (abs x)\ny@(abs (abs _)) => (abs y)\n")
	if err != nil || len(rules) != 4 || rules[3].Name != "rule3" || rules[0].Name != "rule1" || rules[1].Name != "twice" || rules[1].Doc != "Twice." || rules[2].Line != 9 {
		t.Fatal(rules, err)
	}
	_, err = rulecheck.ParseFile("f", "(neg x => x\nname\n(add x) = x\n")
	for _, want := range []string{"f:1:", "f:2:", "f:3:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}
