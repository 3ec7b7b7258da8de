package onnxpass_test

import (
	"testing"

	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/rewrite"
)

// TestRulesCompile compiles all rules: those of the program panic where they are at fault.
func TestRulesCompile(t *testing.T) {
	for _, l := range onnxpass.Rules() {
		if d := rewrite.Describe(l.Rule); d.Doc == "" {
			t.Errorf("%s has no sentence", d.Name)
		}
	}
}
