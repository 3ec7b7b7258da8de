package models

import (
	"testing"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/rulecheck"
)

// TestDefaultDomain: rules are checked with the operators that options stand for.
func TestDefaultDomain(t *testing.T) {
	for text, want := range map[string]rulecheck.Class{"(Neg (Neg x)) => x": rulecheck.Exact, "(Abs x) => x": rulecheck.Wrong} {
		rewrite, err := pattern.ParseRewrite(text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := rulecheck.Check(t.Context(), Domain(Options{}), pattern.Rule{Name: "rule", Cases: []pattern.Rewrite{rewrite}}, rulecheck.Options{})
		if err != nil || r.Class != want {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
}
