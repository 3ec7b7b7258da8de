package pattern_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

const rulesText = `# Rules of the test.

# One op
# is another.
first: early late; risky slow
    (op1 x) => (op2 x)
    # a remark
    (op1 x y)
        && input(x) =>
        (op3 x
             y)

second:
	(op4 x) => x

# What no pattern says.
third: late
    Go: it counts (all) readers
`

func TestParseRules(t *testing.T) {
	rules, err := pattern.ParseRules("file.rules", rulesText)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"# One op is another.\nfirst: early late; risky slow\n    (op1 x) => (op2 x)\n    (op1 x y) && input(x) => (op3 x y)\n",
		"second:\n    (op4 x) => x\n",
		"# What no pattern says.\nthird: late\n    Go: it counts (all) readers\n",
	}
	var got []string
	for _, r := range rules {
		got = append(got, r.String())
		again, err := pattern.ParseRules("", r.String())
		if err != nil || len(again) != 1 || again[0].String() != r.String() {
			t.Errorf("%s reads as %v, %v", r, again, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, end := range []string{"\r\n", "\r"} {
		same, err := pattern.ParseRules("file.rules", strings.ReplaceAll(rulesText, "\n", end))
		if err != nil || fmt.Sprint(same) != fmt.Sprint(rules) {
			t.Errorf("with lines that end in %q: %v, %v", end, same, err)
		}
	}
	if rules[0].Line != 5 || rules[1].Line != 13 {
		t.Error(rules[0].Line, rules[1].Line)
	}
	if _, err := pattern.New(sums{}, rules[2]); !errors.Is(err, pattern.ErrForm) || rules[2].Go == "" {
		t.Error(rules[2].Go, err)
	}
	s, err := pattern.New(sums{}, rules[0])
	if err != nil {
		t.Fatal(err)
	}
	if d := s.Describe(); d.Name != "first" || d.Doc != "One op is another." {
		t.Error(d)
	}
	g := newWorld(t).graph("(op5 (op1 x) (op1 x y) (op1 (op6 z) x) (op1 x y z))")
	walk(t, g, rewrite.In2Out("", s))
	if got := g.String(); got != "[op5(op2(x), op3(x, y), op1(op6(z), x), op1(x, y, z))]" {
		t.Error(got)
	}
}

func TestParseRulesFaults(t *testing.T) {
	for text, want := range map[string]string{
		"a b\n":                                        `f:1: "a b" is not "name: groups; tags"`,
		"    (op1 x) => x\n":                           "f:1: a rewrite without the name of a rule above it",
		"a:\n\n    (op1 x) => x\n":                     "f:1: a has no rewrite",
		"a:\n":                                         "f:1: a has no rewrite",
		"a:\n (f x) => x\na:\n (f x) => x\n":           "f:3: a is already defined on line 1",
		"a:\n (op1 x) =>\nb:\n (f x) => x\n":           "f:3: the rewrite above is not complete: (op1 x) =>",
		"a:\n    (op1 x) =>\n":                         "the last rewrite is not complete",
		"a:\n (f x) => x\n Go: it asks\n":              "f:1: a has rewrites, and is a Go function",
		"a:\n    (op1 x)) => x\n":                      "f:2: bad pattern",
		"a:\n" + strings.Repeat("    (op1 x\n", 20000): "a rewrite of more than 65536 bytes",
		"a:\n" + strings.Repeat("    (f\n", 2000):      "f:2001: the last rewrite is not complete",
		"a:\n" + strings.Repeat("    (f\n", 30000):     "f:21847: a rewrite of more than 65536 bytes",
	} {
		if rules, err := pattern.ParseRules("f", text); !errors.Is(err, pattern.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, %v", text, rules, err)
		}
	}
}

// TestParseRulesManyFaults: the text of an error stays short, and says what it leaves out.
func TestParseRulesManyFaults(t *testing.T) {
	_, err := pattern.ParseRules("f", strings.Repeat("a b\n", 8000))
	if lines := strings.Split(err.Error(), "\n"); lines[0] != "8000 faults:" || len(lines) != 52 || lines[51] != "\tand 7950 more" {
		t.Errorf("%d lines, the first %q, the last %q", len(lines), lines[0], lines[len(lines)-1])
	}
}

// Of several cases, the one that came furthest says why there is no match.
func TestWhyNotOfCases(t *testing.T) {
	rules, err := pattern.ParseRules("", "r:\n    (op1 (op2 x)) => x\n    (op1 (op3 (op4 x) y)) => x\n    (op6 x) => x\n")
	if err != nil {
		t.Fatal(err)
	}
	s, err := pattern.New(toys{}, rules[0])
	if err != nil {
		t.Fatal(err)
	}
	for graph, want := range map[string]string{
		"(op1 (op3 x y))": "x is not (op4 x)", "(op1 x)": "x is not (op2 x)", "(op6 x y)": "op6(x, y) does not have the inputs of (op6 x)",
	} {
		var got []string
		ctx := rewrite.WithOptions(t.Context(), rewrite.Options{WhyNot: func(m rewrite.Miss) { got = append(got, m.Text) }})
		if err := rewrite.Run(ctx, rewrite.In2Out("", s), newWorld(t).graph(graph), nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("%s: %s", graph, diff)
		}
	}
}

// TestPlaces: errors of rules at work have the file and the line of the rule, whether they go round in circles, or a
// function of theirs panics.
func TestPlaces(t *testing.T) {
	rules, err := pattern.ParseRules("f.rules", "# There.\nthere:\n    (op1 x) => (op2 x)\n\n# Back.\nback:\n    (op2 x) => (op1 x)\n\n# Panics.\npanics:\n    (op4 x) && broken(x) => x\n")
	if err != nil {
		t.Fatal(err)
	}
	var list []rewrite.NodeRewriter
	for _, r := range rules {
		s, err := pattern.New(toys{}, r, pattern.WithGuard("broken", func(pattern.Args) bool { panic("broken") }))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	run := func(graph string) string {
		err := rewrite.Run(t.Context(), &rewrite.Equilibrium{Name: "all", Rules: list}, newWorld(t).graph(graph), nil)
		return fmt.Sprint(err)
	}
	if got := run("(op1 x)"); !strings.Contains(got, "there (f.rules:2) fired ") && !strings.Contains(got, "back (f.rules:6) fired ") {
		t.Error(got)
	}
	if got, want := run("(op4 x)"), "all: rule panics (f.rules:10): at op4(x): panic: broken"; !strings.HasPrefix(got, want) {
		t.Errorf("%s, not %s", got, want)
	}
}

// FuzzParseRules: a file is an error with a line, or its rules print as text that reads the same,
// and their heads read alone are the same.
func FuzzParseRules(f *testing.F) {
	f.Add(rulesText)
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := pattern.ParseRules("f", text)
		if err != nil {
			if !errors.Is(err, pattern.ErrSyntax) {
				t.Error(err)
			}
			return
		}
		heads, err := pattern.ParseHeads("f", text)
		if err != nil || len(heads) != len(rules) {
			t.Fatalf("%d heads of %d rules, %v", len(heads), len(rules), err)
		}
		for i, r := range rules {
			if r.Cases = nil; !cmp.Equal(heads[i], r) {
				t.Errorf("%+v is the head of %+v", heads[i], r)
			}
		}
		for _, r := range rules {
			again, err := pattern.ParseRules("", r.String())
			if err != nil || len(again) != 1 || again[0].String() != r.String() {
				t.Errorf("%q reads as %v, %v", r, again, err)
			}
			if s, err := pattern.New(sums{}, r); (s == nil) == (err == nil) {
				t.Errorf("%q: %v, %v", r, s, err)
			}
		}
	})
}
