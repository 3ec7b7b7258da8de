package tensorpass_test

import (
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tensor"
)

// TestLongProducts: what a product or quotient takes to optimize grows with its length, not with the square of it.
func TestLongProducts(t *testing.T) {
	const length = 5000
	opt := optimizer(t, unfused)
	for _, text := range []string{"x" + strings.Repeat("*x", length), "x" + strings.Repeat("/(x + 1)*y", length/2), "x" + strings.Repeat("*sigmoid(y)", length)} {
		_, out := parseExpression(t, "x y: vector", text)
		g, err := tensor.NewGraph(tensor.InputsOf(out...), out)
		if err != nil {
			t.Fatal(err)
		}
		sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(sample)
		before := sample[0].Value.Uint64()
		if err := opt.Rewrite(t.Context(), g, nil); err != nil {
			t.Fatal(err)
		}
		metrics.Read(sample)
		used := sample[0].Value.Uint64() - before
		t.Logf("%.20s…: %d MiB", text, used>>20)
		if used > 150<<20 {
			t.Errorf("%.20s…: %d MiB were allocated", text, used>>20)
		}
	}
}
