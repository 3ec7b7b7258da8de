// Package rewritetest helps to test passes and rules.
//
// A test builds a graph and states the expected result:
//
//	g := rewritetest.Graph(t, inputs, output)
//	rewritetest.Fires(t, rule, g, "[x]")
//
// Every helper also verifies that the resulting graph is sound, and that the pass reported
// correctly whether it changed the graph. The package does not generate graphs or compare
// numbers itself; see [KeepsValues]. Like the graphs, a helper is confined to one goroutine at a
// time.
package rewritetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/profiletest"
	"github.com/nnopt/nnopt/rewrite"
)

// Graph returns a new graph, or ends the test.
func Graph(t testing.TB, inputs []*fgraph.Variable, outputs ...*fgraph.Variable) *fgraph.FunctionGraph {
	t.Helper()
	g, err := fgraph.New(inputs, outputs)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Sound ends the test if the graph violates an invariant or a feature objects to it.
func Sound(t testing.TB, g *fgraph.FunctionGraph) {
	t.Helper()
	if err := g.Check(); err != nil {
		t.Fatalf("%v: %v", g, err)
	}
	if err := g.Validate(); err != nil {
		t.Fatalf("%v: %v", g, err)
	}
	if _, err := g.Toposort(); err != nil {
		t.Fatalf("%v: %v", g, err)
	}
}

// Run applies a pass, checks the graph, and returns the record of the run.
func Run(t testing.TB, r rewrite.GraphRewriter, g *fgraph.FunctionGraph) *profile.Record {
	t.Helper()
	rec := profile.New(rewrite.Describe(r).Name, rewrite.Describe(r).Class)
	commits, before := g.Commits(), g.String()
	err := rewrite.Run(t.Context(), r, g, rec)
	rec.End()
	if err != nil {
		t.Fatalf("%s: %v", before, err)
	}
	Sound(t, g)
	if g.Commits() == commits && g.String() != before {
		t.Fatalf("%s changed %s to %v behind the graph's back", rewrite.Describe(r).Name, before, g)
	}
	if err := profiletest.Check(rec.Record()); err != nil {
		t.Error(err)
	}
	return rec.Record()
}

// Fires applies a rule to every apply of the graph. It ends the test unless the rule fires and
// the result is want, in the notation of [fgraph.FunctionGraph.String].
func Fires(t testing.TB, rule rewrite.NodeRewriter, g *fgraph.FunctionGraph, want string) {
	t.Helper()
	before := g.String()
	if Run(t, walk(rule), g).Applied() == 0 {
		t.Fatalf("%s does not fire on %s: %s", rewrite.Describe(rule).Name, before, WhyNot(t, rule, g))
	}
	wantGraph(t, before, g, want)
}

// DoesNotFire ends the test if a rule fires at any apply of the graph.
func DoesNotFire(t testing.TB, rule rewrite.NodeRewriter, g *fgraph.FunctionGraph) {
	t.Helper()
	before := g.String()
	if Run(t, walk(rule), g).Applied() > 0 {
		t.Fatalf("%s fires on %s and makes it %v", rewrite.Describe(rule).Name, before, g)
	}
	wantGraph(t, before, g, before)
}

// Reaches applies a pass. It ends the test unless the result is want, and does not change when
// the pass is applied again.
func Reaches(t testing.TB, r rewrite.GraphRewriter, g *fgraph.FunctionGraph, want string) {
	t.Helper()
	before := g.String()
	Run(t, r, g)
	wantGraph(t, before, g, want)
	Settled(t, r, g)
}

// Settled ends the test if a pass changes the graph.
func Settled(t testing.TB, r rewrite.GraphRewriter, g *fgraph.FunctionGraph) {
	t.Helper()
	before, commits := g.String(), g.Commits()
	Run(t, r, g)
	if g.Commits() != commits || g.String() != before {
		t.Fatalf("%s does not terminate: it makes %s\ninto %v", rewrite.Describe(r).Name, before, g)
	}
}

// An Evaluator returns the values of the outputs of a graph for inputs of its choice, which must
// be the same every time.
type Evaluator func(*fgraph.FunctionGraph) ([]any, error)

// KeepsValues applies a pass and ends the test if the values of the outputs change. The options
// define equality, for example with a tolerance (cmpopts.EquateApprox).
func KeepsValues(t testing.TB, r rewrite.GraphRewriter, g *fgraph.FunctionGraph, eval Evaluator, opts ...cmp.Option) {
	t.Helper()
	text := g.String()
	before, err := eval(g)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	Run(t, r, g)
	after, err := eval(g)
	if err != nil {
		t.Fatalf("%s, which was %s: %v", g, text, err)
	}
	if diff := cmp.Diff(before, after, opts...); diff != "" {
		t.Fatalf("%s makes %s\ninto %v\nwith other values (-before +after):\n%s", rewrite.Describe(r).Name, text, g, diff)
	}
}

// WhyNot returns the reasons that a rule gives for not firing, a line for each apply. It leaves
// the graph unchanged.
func WhyNot(t testing.TB, rule rewrite.NodeRewriter, g *fgraph.FunctionGraph) string {
	t.Helper()
	text := ""
	ctx := rewrite.WithOptions(context.Background(), rewrite.Options{
		Allow:  func(fgraph.Reason) bool { return false },
		WhyNot: func(m rewrite.Miss) { text += fmt.Sprintf("\n\tat %v: %s", m.Apply, m.Text) },
	})
	if err := rewrite.Run(ctx, walk(rule), g, nil); err != nil {
		t.Fatal(err)
	}
	if text == "" {
		return "it does not say why"
	}
	return text
}

func walk(rule rewrite.NodeRewriter) *rewrite.Walk {
	return rewrite.In2Out(rewrite.Describe(rule).Name, rule)
}

func wantGraph(t testing.TB, before string, g *fgraph.FunctionGraph, want string) {
	t.Helper()
	if got := g.String(); got != want {
		t.Fatalf("%s\nbecame %s\nwant   %s", before, got, want)
	}
}
