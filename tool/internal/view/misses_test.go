package view_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// TestMisses: a rule that is asked at the end of its pass is asked at a node that is there, and one
// that says that it fires does so in no pass that has reached its end.
func TestMisses(t *testing.T) {
	demo, _ := network(t, "../../networks/demo/tdnnf.config", demoChunk, "+fast_run")
	for _, s := range []*view.Subject{
		demo,
		record(t, "+fast_run", "X: matrix; W: matrix; b: vector", "sum(log(softmax(dot(X, W) + b)) * X[1:3].T[0] + 0*1)"),
		record(t, "+fast_run", "x: vector", "[exp(log(x)) + x*1/x, tanh(-x)*x*x]"),
	} {
		before := len(s.Recording.Steps)
		if err := s.AddMisses(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := s.Recording
		if len(r.Misses) == 0 || len(r.Steps) != before {
			t.Fatalf("%d misses, %d steps, %d before", len(r.Misses), len(r.Steps), before)
		}
		for _, m := range r.Misses {
			st := newState(r)
			pass := r.Passes[m.Pass]
			for k := range pass.Steps[1] {
				if err := st.step(k); err != nil {
					t.Fatal(err)
				}
			}
			if !st.live[m.Node] {
				t.Errorf("%s: node %d (%s) is not there at the end of %s", m.Rule, m.Node, r.Nodes[m.Node].Op, pass.Name)
			}
			if !strings.HasPrefix(m.Rule, pass.Name+"/") && m.Rule != pass.Name {
				t.Errorf("%s is no rule of %s", m.Rule, pass.Name)
			}
		}
	}
}

// TestWhyNot: at each step, the rule that makes the next one says that it fires, where it does.
func TestWhyNot(t *testing.T) {
	asked := 0
	demo, _ := network(t, "../../networks/demo/tdnnf.config", demoChunk, "+fast_run")
	for _, s := range []*view.Subject{
		demo,
		record(t, "+fast_run", "x: vector", "[exp(log(x)) + x*1/x, tanh(-x)*x*x]"),
	} {
		r := s.Recording
		rules := make(map[string]bool)
		for path := range s.Optimizer.Rules("") {
			rules[path] = true
		}
		for k, step := range r.Steps {
			pass := r.Passes[step.Pass].Name
			if path := pass + "/" + step.Rule; step.At == nil || !rules[path] || len(step.Replaced) != 1 || k > longtest.Of(8, 20) {
				continue
			}
			answers, err := s.WhyNot(t.Context(), k, *step.At, pass+"/"+step.Rule)
			if err != nil {
				t.Fatal(err)
			}
			if len(answers) != 1 || !strings.HasPrefix(answers[0].Text, "it fires: ") {
				t.Errorf("step %d, %s: %v", k, step.Rule, answers)
			}
			asked++
			all, err := s.WhyNot(t.Context(), k, *step.At, "")
			if err != nil || !slices.Contains(all, answers[0]) {
				t.Errorf("step %d: not among all: %v, %v", k, all, err)
			}
		}
		if answers, err := s.WhyNot(t.Context(), 0, 0, "no_such_rule"); err != nil || len(answers) != 1 || !strings.Contains(answers[0].Text, "unknown") {
			t.Errorf("an unknown rule: %v, %v", answers, err)
		}
		gone := r.Steps[0].Gone
		if len(gone) == 0 {
			continue
		}
		if _, err := s.WhyNot(t.Context(), 1, gone[0], ""); err == nil || !strings.Contains(err.Error(), "not in the graph") {
			t.Errorf("a node that is gone: %v", err)
		}
	}
	if asked < 5 {
		t.Errorf("only %d rules were asked", asked)
	}
}
