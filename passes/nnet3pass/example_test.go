package nnet3pass_test

import (
	"fmt"

	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/rewrite"
)

// The standard database has the rules and passes under their names.
func ExampleRules() {
	for _, r := range nnet3pass.Rules()[:2] {
		fmt.Println(r.Name + ": " + r.Doc)
	}
	for _, p := range nnet3pass.Passes()[:2] {
		fmt.Println(rewrite.Describe(p).Name)
	}
	// Output:
	// local_remove_identity: a component that copies its input is its input: propagate{no-op}(x) → x
	// local_remove_identity_backward: a backward run that copies the derivative is the derivative: backprop{no-op}(dy) → dy
	// limit_derivative_times
	// consolidate_model_update
}
