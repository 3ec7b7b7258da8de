package tensorpass_test

import (
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
)

// TestSaturateTable runs the expressions of testdata/saturate.txt: saturation makes the graph in the file,
// with the same values, and never one that costs more than without it.
func TestSaturateTable(t *testing.T) {
	const rest = " -BlasOpt -elemwise_fusion -inplace"
	opt, without := passtest.Optimizer(t, "+fast_run +saturate"+rest), passtest.Optimizer(t, "+fast_run"+rest)
	lines, cases, vars := readRules(t, "saturate.txt")
	for i, c := range cases {
		if !longtest.Enabled() && i%16 > 0 && !*update {
			continue
		}
		t.Run(c.rule+"/"+c.expr, func(t *testing.T) {
			s, out, g := newGraph(t, vars, c.expr)
			if err := opt.Rewrite(t.Context(), g, nil); err != nil {
				t.Fatal(err)
			}
			if got := g.String(); *update {
				cases[i].want = got
			} else if got != c.want {
				t.Errorf("it becomes %s, not %s", got, c.want)
			}
			plain, err := tensor.NewGraph(s.Inputs(), out)
			if err != nil {
				t.Fatal(err)
			}
			if err := without.Rewrite(t.Context(), plain, nil); err != nil {
				t.Fatal(err)
			}
			if a, b := costOf(g), costOf(plain); a > b {
				t.Errorf("it costs %g, and %g without saturation: %s", a, b, plain)
			}
			sameValues(t, s, out, g, true)
		})
	}
	writeRules(t, "saturate.txt", lines, cases)
}
