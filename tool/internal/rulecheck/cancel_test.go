package rulecheck_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/tensors"
)

// TestCheckIsCanceled: a check that takes minutes ends soon after its context.
func TestCheckIsCanceled(t *testing.T) {
	var left strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&left, " (mul x%d y)", i)
	}
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, "(add (mul x y) (mul x %d)) => (mul x (add y %d))\n", i, i+1)
	}
	for name, text := range map[string]string{"large": "(add" + left.String() + ") => (mul y x1)", "many": many.String()} {
		t.Run(name, func(t *testing.T) {
			rules, err := rulecheck.ParseFile("rules", text)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := rulecheck.ForAll(rules, func(r pattern.Rule) (rulecheck.Report, error) {
					return rulecheck.Check(ctx, tensors.Domain(nil, nil, nil), r, rulecheck.Options{})
				})
				ended <- err
			}()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the check ended with %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Error("the check goes on after its context has ended")
			}
		})
	}
}

// TestForAllPanics: a panic in a check reaches the goroutine of the caller.
func TestForAllPanics(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "what now") {
			t.Errorf("recovered %v", p)
		}
	}()
	_, err := rulecheck.ForAll([]int{1, 2}, func(int) (rulecheck.Report, error) { panic("what now") })
	t.Errorf("it returned %v", err)
}

// TestCanonicalOfShared: the canonical text of an expression is not as long as the expression is
// without sharing, and does not depend on the order of what commutes.
func TestCanonicalOfShared(t *testing.T) {
	x, y := fgraph.NewInput(tensor.ScalarType(array.Float64), "x"), fgraph.NewInput(tensor.ScalarType(array.Float64), "y")
	deep := func(v *fgraph.Variable) *fgraph.Variable {
		for range 60 {
			v = tensor.Add(v, v)
		}
		return v
	}
	a, b := rulecheck.Canonical(deep(tensor.Mul(x, y))), rulecheck.Canonical(deep(tensor.Mul(y, x)))
	if a != b || a == rulecheck.Canonical(deep(tensor.Mul(x, x))) {
		t.Errorf("%q and %q", a, b)
	}
}
