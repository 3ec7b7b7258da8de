package tensorpass_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
)

// TestLongExpressions: the memory for optimizing a product, quotient or sum grows with its length,
// not with the square of it.
func TestLongExpressions(t *testing.T) {
	const length = 5000
	opt := passtest.Optimizer(t, unfused)
	var products strings.Builder
	for i := range length / 4 {
		fmt.Fprintf(&products, " - s*dot(X, x + %d.5)", i)
	}
	for _, text := range []string{
		"x" + strings.Repeat("*x", length), "x" + strings.Repeat("/(x + 1)*y", length/2), "x" + strings.Repeat("*sigmoid(y)", length),
		"x" + strings.Repeat("*sigmoid(y)*exp(-y)", length/2), "x" + products.String(),
	}[:longtest.Of(2, 5)] {
		_, out := parseExpression(t, "X: matrix; x y: vector; s: scalar", text)
		g, err := tensor.NewGraph(tensor.InputsOf(out...), out)
		if err != nil {
			t.Fatal(err)
		}
		allocated := alloctest.Start()
		if err := opt.Rewrite(t.Context(), g, nil); err != nil {
			t.Fatal(err)
		}
		used := allocated()
		t.Logf("%.20s…: %d MiB", text, used>>20)
		if used > 150<<20 {
			t.Errorf("%.20s…: %d MiB were allocated", text, used>>20)
		}
	}
}
