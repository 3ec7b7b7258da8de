package view_test

import "testing"

// TestSaturation: the page has the chain of rules of a saturation as steps, and the figures of its
// laps.
func TestSaturation(t *testing.T) {
	r := record(t, "+saturate", "x y z w: vector", "x*y + x*z + w*y + w*z").Recording
	i := 0
	for i < len(r.Passes) && r.Passes[i].Name != "saturate" {
		i++
	}
	if i == len(r.Passes) {
		t.Fatal("no pass")
	}
	p := r.Passes[i]
	if p.Saturation == nil || len(p.Saturation.Laps) < 2 || len(p.Rules) == 0 || p.Saturation.CostAfter >= p.Saturation.CostBefore {
		t.Errorf("%+v", p.Saturation)
	}
	steps := r.Steps[p.Steps[0]:p.Steps[1]]
	if len(steps) < 3 {
		t.Fatalf("%d steps", len(steps))
	}
	s := newState(r)
	for k := range r.Steps {
		if err := s.step(k); err != nil {
			t.Fatal(err)
		}
		if step := r.Steps[k]; step.Pass == i && (step.Rule == "" || r.Docs[step.Rule].Doc == "") {
			t.Errorf("step %d is by the rule %q, which has no sentence", k, step.Rule)
		}
	}
}
