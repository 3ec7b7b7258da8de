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

// passNamed returns the passes by name.
func passNamed(name string) rewrite.GraphRewriter {
	blas := []rewrite.GraphRewriter{tensorpass.DotToDot22(), tensorpass.GemmOptimizer(), tensorpass.Dot22ToDot22Scalar(), tensorpass.GemmToGemv(),
		tensorpass.UseBLAS(), tensorpass.UseBLASGer()}
	return map[string]rewrite.GraphRewriter{
		"local_dot_to_dot22": blas[0], "gemm_optimizer": blas[1], "local_dot22_to_dot22scalar": blas[2], "local_gemm_to_gemv": blas[3], "use_c_blas": blas[4],
		"use_scipy_ger": blas[5], "BlasOpt": rewrite.NewSequence("BlasOpt", blas...),
		"local_add_mul_fusion": tensorpass.AddMulFusion("local_add_mul_fusion"), "add_mul_fusion": tensorpass.AddMulFusion("add_mul_fusion"),
		"composite_elemwise_fusion":   tensorpass.ElemwiseFusion(),
		"elemwise_fusion":             rewrite.NewSequence("elemwise_fusion", tensorpass.AddMulFusion("local_add_mul_fusion"), tensorpass.ElemwiseFusion()),
		"local_pow_specialize_device": tensorpass.PowDevice(), "crossentropy_to_crossentropy_with_softmax": tensorpass.CrossentropyWithSoftmax(),
		"local_fill_to_alloc": tensorpass.FillToAlloc(), "local_elemwise_alloc": tensorpass.ElemwiseAlloc(),
		"pre_local_IncSubtensor_serialize": tensorpass.SerializeIncSubtensor(), "MergeOptimizer": new(rewrite.Merge),
		"inplace_elemwise_optimizer": tensorpass.InplaceElemwise(), "InplaceBlasOpt": tensorpass.InplaceBLAS(),
		"local_inplace_setsubtensor": tensorpass.InplaceSubtensor(), "pre_local_logsoftmax_grad": tensorpass.LogSoftmaxGrad(),
	}[name]
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
			if p, ok := pass.(rewrite.Inplacer); ok && p.Inplace() {
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
	rewritetest.Run(t, tensorpass.ShapeOpt(), g)
	if _, ok := fgraph.FeatureOf[*tensor.Shapes](g); !ok {
		t.Error("the feature is not attached")
	}
}
