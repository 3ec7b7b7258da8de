package models

import (
	"math"
	"testing"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// TestDefaultDomain: rules are checked with the operators that options stand for.
func TestDefaultDomain(t *testing.T) {
	for text, want := range map[string]rulecheck.Class{"(Neg (Neg x)) => x": rulecheck.Exact, "(Abs x) => x": rulecheck.Wrong} {
		rewrite, err := pattern.ParseRewrite(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := rulecheck.Check(t.Context(), newDomain(Options{}), pattern.Rule{Name: "rule", Cases: []pattern.Rewrite{rewrite}}, rulecheck.Options{})
		if err != nil || r.Class != want {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
}

// TestCompareLists: sequences are compared tensor by tensor, and nothing else is a sequence.
func TestCompareLists(t *testing.T) {
	one, near, far, big := array.Of([]float32{1}, 1), array.Of([]float32{1.000001}, 1), array.Of([]float32{2}, 1), array.Of([]float32{float32(math.Inf(1))}, 1)
	for _, c := range []struct {
		left, right any
		want        rulecheck.Class
	}{
		{list{one, far}, list{one, far}, rulecheck.Exact},
		{list{one, one}, list{near, one}, rulecheck.Rounding},
		{list{one, one}, list{near, far}, rulecheck.Wrong},
		{list{one, one, one}, list{near, far, big}, rulecheck.Wrong},
		{list{one, one, one}, list{near, one, big}, nearLimits},
		{list{one}, list{}, rulecheck.Wrong},
		{list{one}, one, rulecheck.Wrong},
		{one, list{one}, rulecheck.Wrong},
		{nothing{}, nothing{}, rulecheck.Exact},
		{nothing{}, one, rulecheck.Wrong},
	} {
		if got := compareArrays(c.left, c.right); got != c.want {
			t.Errorf("%v and %v: %s, want %s", c.left, c.right, got, c.want)
		}
	}
}
