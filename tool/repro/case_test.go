package repro_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/tensors"
)

// caseOf returns the case of an expression of the vectors x and y under rules of canonicalize.
func caseOf(t *testing.T, text string, rules ...string) *repro.Case {
	t.Helper()
	s := expr.Default().NewScope()
	check(t, s.Declare("x y: vector"))
	outputs, err := s.Parse(text)
	check(t, err)
	g, err := tensor.NewGraph(s.Inputs(), outputs)
	check(t, err)
	db := passes.Default()
	for _, r := range rules {
		name, r, _ := strings.Cut(r, ": ")
		before, after, _ := strings.Cut(r, " => ")
		register(t, db, pattern.Must(tensorpass.Vocabulary(), before, after, pattern.Named(name)))
	}
	return &repro.Case{World: tensors.World(expr.Default().Dialect()), Build: db.Build, Graph: g, Query: optdb.Include("fast_run")}
}

// failing is caseOf with the failure.
func failing(t *testing.T, text string, rules ...string) *repro.Case {
	t.Helper()
	c := caseOf(t, text, rules...)
	var err error
	if c.Failure, err = repro.Check(t.Context(), c); err != nil || c.Failure.Kind == repro.None {
		t.Fatalf("%v, %v", c.Failure, err)
	}
	return c
}

// text returns a case as text.
func text(t *testing.T, c *repro.Case) string {
	t.Helper()
	f, err := c.File()
	check(t, err)
	s, err := graphfile.Format(f, c.World.Dialect())
	check(t, err)
	return s
}

// TestReduceAgain: a case is reduced to the same case every time, a reduced one to itself, and a
// limit ends with a case that fails.
func TestReduceAgain(t *testing.T) {
	const expression = "[exp(tanh(x*y) + 1)*y - sqrt(abs(x)), tanh(x)/y]"
	reduce := func(c *repro.Case, runs int) *repro.Case {
		small, err := repro.Reduce(t.Context(), c, repro.ReduceOptions{Runs: runs})
		check(t, err)
		if f, err := repro.Check(t.Context(), small); err != nil || !f.Same(c.Failure) {
			t.Errorf("after %d runs: %v, %v", runs, f, err)
		}
		return small
	}
	first := reduce(failing(t, expression, "wrong: (tanh x) => (sin x)"), 0)
	if second := reduce(failing(t, expression, "wrong: (tanh x) => (sin x)"), 0); text(t, first) != text(t, second) {
		t.Errorf("%s\nand\n%s", text(t, first), text(t, second))
	}
	if again := reduce(first, 0); again.Graph.NumApplies() != first.Graph.NumApplies() || !again.Query.Equal(first.Query) {
		t.Errorf("%s\nbecomes\n%s", text(t, first), text(t, again))
	}
	last := 1 << 30
	for _, runs := range []int{1, 3, 8, 20, 1000} {
		n := reduce(failing(t, expression, "wrong: (tanh x) => (sin x)"), runs).Graph.NumApplies()
		if n > last {
			t.Errorf("%d applies after %d runs, and %d before", n, runs, last)
		}
		last = n
	}
	if last != 1 {
		t.Errorf("%d applies", last)
	}
}

// TestSameFailure: a reduction keeps to the fault that it began with, although the graph has
// others.
func TestSameFailure(t *testing.T) {
	rules := []string{"first: (tanh x) => (sin x)", "second: (abs x) => x", "third: (sqrt (exp x)) => x"}
	c := caseOf(t, "tanh(x)*y + abs(y)*sqrt(exp(x*y))", rules...)
	for _, rule := range []string{"first", "second", "third"} {
		c.Failure = repro.Failure{Kind: repro.Values, Pass: "canonicalize", Rule: rule}
		only := optdb.Include("canonicalize")
		for _, other := range []string{"first", "second", "third"} {
			if other != rule {
				only = only.Excluding(other)
			}
		}
		c.Query = only
		small, err := repro.Reduce(t.Context(), c, repro.ReduceOptions{})
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		if !small.Failure.Same(c.Failure) || small.Query.String() != "+"+rule || small.Graph.NumApplies() > 2 {
			t.Errorf("%s: %s", rule, text(t, small))
		}
	}
	// What fails otherwise than it should is an error.
	c.Failure = repro.Failure{Kind: repro.Panic, Pass: "canonicalize", Rule: "first"}
	if _, err := repro.Reduce(t.Context(), c, repro.ReduceOptions{}); !errors.Is(err, repro.ErrCase) || !strings.Contains(err.Error(), "in another way") {
		t.Error(err)
	}
	sound := caseOf(t, "x + y")
	if _, err := repro.Reduce(t.Context(), sound, repro.ReduceOptions{}); !errors.Is(err, repro.ErrCase) || !strings.Contains(err.Error(), "does not fail") {
		t.Error(err)
	}
	if _, err := repro.Bisect(t.Context(), sound); !errors.Is(err, repro.ErrCase) {
		t.Error(err)
	}
}

// TestCaseFile: everything about a case is in its file: particular values, a budget, a seed, notes.
func TestCaseFile(t *testing.T) {
	c := caseOf(t, "abs(x) + y", "wrong: (abs x) => x")
	c.Values = []any{array.Of([]float64{1, -2}, 2), array.Of([]float64{3, 4}, 2)}
	budget := 1
	c.Budget, c.Seed, c.Checked = &budget, 7, true
	c.Notes = []graphfile.Field{{Name: "command", Text: "nnopt 'x\ny'"}}
	var err error
	c.Failure, err = repro.Check(t.Context(), c)
	check(t, err)
	if c.Failure.String() != "values in canonicalize/wrong" {
		t.Error(c.Failure)
	}
	again := reread(t, c)
	if f, err := repro.Check(t.Context(), again); err != nil || !f.Same(c.Failure) {
		t.Errorf("%v, %v", f, err)
	}
	// With positive values, or without the rewrite, nothing is wrong.
	again.Values[0] = array.Of([]float64{1, 2}, 2)
	if f, err := repro.Check(t.Context(), again); err != nil || f.Kind != repro.None {
		t.Errorf("%v, %v", f, err)
	}
	*c.Budget = 0
	if f, err := repro.Check(t.Context(), c); err != nil || f.Kind != repro.None {
		t.Errorf("%v, %v", f, err)
	}
	*c.Budget = 1
	// The reduced case has values that fail.
	small, err := repro.Reduce(t.Context(), c, repro.ReduceOptions{})
	check(t, err)
	if f, err := repro.Check(t.Context(), reread(t, small)); err != nil || !f.Same(c.Failure) {
		t.Errorf("%v, %v\n%s", f, err, text(t, small))
	}
}

// TestCheckEnds: a canceled check is no failure.
func TestCheckEnds(t *testing.T) {
	c := failing(t, "tanh(x)", "wrong: (tanh x) => (sin x)")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err := repro.Check(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := repro.Bisect(ctx, c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := repro.Reduce(ctx, c, repro.ReduceOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestClassify: errors of running optimized graphs are failures of a kind of their own.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err  error
		want repro.Kind
	}{
		{nil, repro.None},
		{errors.ErrUnsupported, repro.Run},
		{fgraph.ErrInconsistent, repro.Overwrite},
	} {
		if got := repro.Classify(c.err); got.Kind != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
