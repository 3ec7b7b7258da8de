package tensorpass_test

import (
	"fmt"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
)

// passNamed returns the passes by name, and sequences of them.
func passNamed(name string) rewrite.GraphRewriter {
	sequences := map[string][]string{
		"BlasOpt": {"local_dot_to_dot22", "gemm_optimizer", "local_dot22_to_dot22scalar", "local_gemm_to_gemv",
			"use_c_blas", "use_scipy_ger"},
		"elemwise_fusion": {"local_add_mul_fusion", "composite_elemwise_fusion"},
	}
	switch members := sequences[name]; {
	case name == "MergeOptimizer":
		return new(rewrite.Merge)
	case members != nil:
		var list []rewrite.GraphRewriter
		for _, m := range members {
			list = append(list, tensorpass.Pass(m))
		}
		return rewrite.NewSequence(name, list...)
	}
	return tensorpass.Pass(name)
}

// TestPasses runs every case of testdata/passes.txt.
func TestPasses(t *testing.T) {
	_, _, vars := readRules(t, "rules.txt")
	lines, cases, _ := readRules(t, "passes.txt")
	for i, c := range cases {
		t.Run(fmt.Sprintf("%s/%s", c.rule, c.expr), func(t *testing.T) {
			pass := passNamed(c.rule)
			if pass == nil {
				t.Fatal("there is no such pass")
			}
			s, out, g := newGraph(t, vars, c.expr)
			if err := g.Attach(tensor.NewShapes()); err != nil {
				t.Fatal(err)
			}
			if rewrite.Describe(pass).Destroys {
				rewritetest.Run(t, rewrite.AddDestroyHandler(), g)
			}
			before := g.String()
			rewritetest.Run(t, pass, g)
			got := g.String()
			switch {
			case got == before && c.want != "!":
				t.Fatalf("nothing happens to %s", before)
			case *update && c.want != "!":
				cases[i].want = got
			case c.want == "!" && got != before:
				t.Fatalf("%s became %s", before, got)
			case c.want != "!" && got != c.want:
				t.Fatalf("%s became\n%s\nwant\n%s", before, got, c.want)
			}
			if c.want != "!" {
				sameValues(t, s, out, g, c.rule == "gemm_optimizer" || c.rule == "BlasOpt" || c.rule == "local_dot22_to_dot22scalar" ||
					c.rule == "local_pow_specialize_device" || c.rule == "crossentropy_to_crossentropy_with_softmax" || c.rule == "pre_local_logsoftmax_grad")
			}
		})
	}
	writeRules(t, "passes.txt", lines, cases)
}

// TestShapeOpt: the pass attaches the feature.
func TestShapeOpt(t *testing.T) {
	_, _, g := newGraph(t, "x: vector", "exp(x)")
	rewritetest.Run(t, tensorpass.Pass("ShapeOpt"), g)
	if _, ok := fgraph.FeatureOf[*tensor.Shapes](g); !ok {
		t.Error("the feature is not attached")
	}
}
