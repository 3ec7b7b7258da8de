package rulecheck_test

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/tensors"
)

// The root of a square is not the value itself.
func ExampleCheck() {
	rewrite, err := pattern.ParseRewrite("(sqrt (sqr x)) => x")
	if err != nil {
		panic(err)
	}
	rule := pattern.Rule{Name: "root", Cases: []pattern.Rewrite{rewrite}}
	report, err := rulecheck.Check(context.Background(), tensors.Domain(nil, nil, nil), rule, rulecheck.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Class)
	fmt.Println(report.Counterexample)
	// Output:
	// wrong
	// x: float64 = -1.0; left: sqrt(sqr(x)) = 1.0; right: x = -1.0
}
