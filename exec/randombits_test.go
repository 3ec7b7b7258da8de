package exec_test

import (
	"fmt"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/kerneltest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/tensortest"
)

// TestRandomExpressionsSameBits: 300 random expressions, as they are and optimized, have the bits of
// the checksums in testdata on every processor.
func TestRandomExpressionsSameBits(t *testing.T) {
	if !kernel.HasDGemm() {
		t.Skip("products are gonum's, whose bits are others")
	}
	var c kerneltest.Checksums
	for seed := range longtest.Of(60, 300) {
		for _, query := range []string{"none", "fast_run"} {
			g := tensortest.NewGenerator(uint64(seed))
			g.Grow(6 + seed%20)
			inputs, args := g.Inputs()
			var opts exec.FunctionOptions
			if query != "none" {
				opts.Optimizer = fastRun(t)
			}
			f, err := exec.NewFunction(t.Context(), inputs, g.Outputs(3), opts)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			values, err := f.Call(t.Context(), args...)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, v := range values {
				// Thirty in one checksum keep the file small, and still say where to look.
				c.Float64s(fmt.Sprintf("%s,%03d-%03d", query, seed/30*30, seed/30*30+29), v.Floats()...)
			}
		}
	}
	c.GoldenPart(t, "testdata/randombits.txt", "random expressions", *update)
}
