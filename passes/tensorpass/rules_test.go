package tensorpass_test

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

var update = flag.Bool("update", false, "rewrite the graphs in testdata")

// A ruleCase is a line of testdata/rules.txt.
type ruleCase struct {
	line             int
	rule, expr, want string
}

// readRules returns the lines of the file, the cases among them, and the variables that they use.
func readRules(t testing.TB, name string) (lines []string, cases []ruleCase, vars string) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		lines = append(lines, s.Text())
		if v, ok := strings.CutPrefix(s.Text(), "# vars:"); ok {
			vars += v + ";"
		}
		if strings.HasPrefix(s.Text(), "#") || s.Text() == "" {
			continue
		}
		// "|" is an operator as well: the separators have a space on both sides, and the
		// expressions with an "or" three fields.
		name, rest, _ := strings.Cut(s.Text(), " | ")
		c := ruleCase{line: len(lines) - 1, rule: name, expr: rest}
		if k := strings.LastIndex(rest, " | "); k >= 0 && (strings.HasPrefix(rest[k+3:], "[") || rest[k+3:] == "!") {
			c.expr, c.want = rest[:k], rest[k+3:]
		}
		cases = append(cases, c)
	}
	return lines, cases, vars
}

// ruleNamed returns the first rule of a name. constant_folding has two forms.
func ruleNamed(t testing.TB, name string) tensorpass.Local {
	t.Helper()
	for _, l := range tensorpass.Rules() {
		if rewrite.Describe(l.Rule).Name == name {
			return l
		}
	}
	t.Fatalf("there is no rule %s", name)
	return tensorpass.Local{}
}

// newGraph parses an expression.
func newGraph(t testing.TB, vars, text string) (*expr.Scope, []*fgraph.Variable, *fgraph.FunctionGraph) {
	t.Helper()
	s := expr.NewScope()
	if err := s.Declare(vars); err != nil {
		t.Fatal(err)
	}
	out, err := s.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	g, err := tensor.NewGraph(s.Inputs(), out)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s, out, g
}

// TestRules runs every case of testdata/rules.txt: the rule fires and makes the graph in the file,
// or it does not fire. The values stay the same, also at NaN, infinity and zero unless the rule has
// the tag unsafe_nan.
func TestRules(t *testing.T) {
	lines, cases, vars := readRules(t, "rules.txt")
	fires, rests := map[string]bool{}, map[string]bool{}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%s/%s", c.rule, c.expr), func(t *testing.T) {
			l := ruleNamed(t, c.rule)
			s, out, g := newGraph(t, vars, c.expr)
			if err := g.Attach(tensor.NewShapes()); err != nil {
				t.Fatal(err)
			}
			if c.want == "!" {
				rests[c.rule] = true
				rewritetest.DoesNotFire(t, l.Rule, g)
				return
			}
			fires[c.rule] = true
			if *update {
				if rewritetest.Run(t, rewrite.In2Out(c.rule, l.Rule), g).Applied() == 0 {
					t.Fatalf("does not fire: %s", rewritetest.WhyNot(t, l.Rule, g))
				}
				cases[i].want = g.String()
			} else {
				rewritetest.Fires(t, l.Rule, g, c.want)
			}
			sameValues(t, s, out, g, slices.Contains(l.Tags, tensorpass.UnsafeNaN))
		})
	}
	for _, l := range tensorpass.Rules() {
		if !fires[rewrite.Describe(l.Rule).Name] || !rests[rewrite.Describe(l.Rule).Name] {
			t.Errorf("%s has no case where it fires, or none where it must not", rewrite.Describe(l.Rule).Name)
		}
	}
	writeRules(t, "rules.txt", lines, cases)
}

// writeRules writes a file with the new graphs, if the flag -update is set.
func writeRules(t *testing.T, name string, lines []string, cases []ruleCase) {
	t.Helper()
	if !*update || t.Failed() {
		return
	}
	for _, c := range cases {
		lines[c.line] = c.rule + " | " + c.expr + " | " + c.want
	}
	if err := os.WriteFile("testdata/"+name, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sameValues compares an expression before and after a rewrite, on ordinary and on special
// arguments.
func sameValues(t *testing.T, s *expr.Scope, out []*fgraph.Variable, g *fgraph.FunctionGraph, unsafe bool) {
	t.Helper()
	plain, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := exec.CompileGraph(g)
	if err != nil {
		t.Fatal(err)
	}
	args, err := plain.RandomArguments(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, plain, f, args, unsafe)
	if unsafe {
		return
	}
	specials := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1, 2}
	for shift := range specials {
		for k, a := range args {
			if a.IsCSR() || !a.DType().IsFloat() {
				continue
			}
			b := a.Clone()
			for i := range b.Len() {
				b.SetFloat(i, specials[(i*5+k*2+shift)%len(specials)])
			}
			args[k] = b
		}
		compare(t, plain, f, args, false)
	}
}

// compare compares the values of two functions. If finite is set it ignores values that were NaN or
// infinite.
func compare(t *testing.T, plain, f *exec.Function, args []*array.Array, finite bool) {
	t.Helper()
	compareWithin(t, plain, f, args, finite, 1e-12)
}

// compareWithin is compare with a tolerance for float64s.
func compareWithin(t *testing.T, plain, f *exec.Function, args []*array.Array, finite bool, most float64) {
	t.Helper()
	want, err := plain.Call(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Call(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		tol := most
		if got[i].DType() == array.Float32 {
			tol = 1e-5
		}
		if finite && array.SameShape(got[i], want[i]) {
			for k := range want[i].Len() {
				if v := want[i].Float(k); v-v != 0 {
					want[i].SetFloat(k, got[i].Float(k))
				}
			}
		}
		if diff := array.MaxRelDiff(got[i], want[i]); !(diff <= tol) || got[i].DType() != want[i].DType() {
			t.Errorf("%v is %v,\n%v was %v", f, got[i], plain, want[i])
		}
	}
}

// TestUnsafeSays: a rule with the tag unsafe_nan says where it changes results.
func TestUnsafeSays(t *testing.T) {
	for _, l := range tensorpass.Rules() {
		doc := rewrite.Describe(l.Rule).Doc
		says := strings.Contains(doc, "NaN") || strings.Contains(doc, "infinit") || strings.Contains(doc, "is 0") || strings.Contains(doc, "zero")
		if slices.Contains(l.Tags, tensorpass.UnsafeNaN) && !says {
			t.Errorf("%s does not say where it changes results: %s", rewrite.Describe(l.Rule).Name, doc)
		}
	}
	if doc := rewrite.Describe(ruleNamed(t, "local_softmax_of_exp").Rule).Doc; !strings.Contains(doc, "where x is infinite its whole row") {
		t.Error(doc)
	}
}

// TestOutlines: what is said about rules before they are made is true, and they can be made.
func TestOutlines(t *testing.T) {
	for _, l := range tensorpass.Rules() {
		o, d := rewrite.Outline(l.Rule), rewrite.Describe(l.Rule)
		if o.Name != d.Name || o.Doc != d.Doc || o.Reason != d.Reason || o.Destroys != d.Destroys {
			t.Errorf("%+v before, %+v when it is made", o, d)
		}
	}
}
