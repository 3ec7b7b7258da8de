package rulecheck

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
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
			rules, err := ParseFile("rules", text)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := CheckAll(rules, func(r pattern.Rule) (Report, error) {
					return Check(ctx, tensorpass.Vocabulary(), r, Options{})
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

// TestCheckAllPanics: a panic in a check reaches the goroutine of the caller.
func TestCheckAllPanics(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "what now") {
			t.Errorf("recovered %v", p)
		}
	}()
	_, err := CheckAll([]int{1, 2}, func(int) (Report, error) { panic("what now") })
	t.Errorf("it returned %v", err)
}

// TestCanonicalOfShared: the canonical text of an expression is not as long as the expression is
// without sharing, and does not depend on the order of what commutes.
func TestCanonicalOfShared(t *testing.T) {
	x, y := newInput(tensor.ScalarType(array.Float64), "x"), newInput(tensor.ScalarType(array.Float64), "y")
	deep := func(v *variable) *variable {
		for range 60 {
			v = tensor.Add(v, v)
		}
		return v
	}
	a, b := canonical(deep(tensor.Mul(x, y))), canonical(deep(tensor.Mul(y, x)))
	if a != b || a == canonical(deep(tensor.Mul(x, x))) {
		t.Errorf("%q and %q", a, b)
	}
}
