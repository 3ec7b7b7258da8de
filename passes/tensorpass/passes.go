package tensorpass

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Pass returns the graph rewriter of a name, or nil if there is none. These are the passes on whole
// graphs:
//
//   - ShapeOpt attaches the feature that infers shapes; known_sizes makes numbers of those that are known.
//   - local_dot_to_dot22, gemm_optimizer, local_dot22_to_dot22scalar, local_gemm_to_gemv, use_c_blas
//     and use_scipy_ger make BLAS calls of products of matrices, in that order.
//   - crossentropy_to_crossentropy_with_softmax fuses a softmax with the cross-entropy of it.
//   - add_mul_fusion and local_add_mul_fusion flatten sums and products.
//   - local_pow_specialize_device writes powers out as multiplications.
//   - composite_elemwise_fusion makes one op of several element-wise ones.
//   - multiply_rows_once multiplies once what is the same in many rows; order_product_terms puts the products first in sums.
//   - channels_last moves the channels of convolutions, and of what lies between them.
//   - integer_products multiplies integers that are dequantized first.
//   - float_sums lets products of integers make floats.
//   - weight_codes leaves large weights the integers that they are.
//   - products_to_int8 and products_to_int16 multiply integers; limit_integer_error gives some more bits.
//   - splice_products lets products read what is joined; fuse_product_epilogue lets products complete their results.
//   - local_inplace_setsubtensor, InplaceBlasOpt and inplace_elemwise_optimizer let ops overwrite
//     memory that nothing reads any more.
//
// The name of one of [Rules] means a walk over the graph with that rule. "pre_" may be in front of
// it, for a walk that comes before everything else.
func Pass(name string) rewrite.GraphRewriter {
	switch name {
	case "ShapeOpt":
		return shapeOpt()
	case "known_sizes":
		return knownSizes()
	case "gemm_optimizer":
		return &countedWalk{rewrite.Out2In(name, named(passRules(), "local_gemm").Rule), profile.ClassGemm, isA[tensor.Dot22Op]}
	case "add_mul_fusion", "local_add_mul_fusion":
		return &countedWalk{rewrite.Out2In(name, named(passRules(), "flatten_nested_add_mul").Rule), profile.ClassFusion, nil}
	case "local_gemm_to_gemv":
		return gemmToGemvPass(name)
	case "composite_elemwise_fusion":
		return elemwiseFusion()
	case "channels_last":
		return channelsLast()
	case "winograd":
		return winograd(usualCosts)
	case "products_to_int8":
		return productsToInt8()
	case "products_to_int16":
		return productsToInt16()
	case "limit_integer_error":
		return limitIntegerError(defaultError)
	case "local_inplace_setsubtensor":
		return rewrite.In2Out(name, inplaceRule(name, "a part is changed in memory that nothing reads any more", onAnyIncSubtensor...))
	case "InplaceBlasOpt":
		return rewrite.In2Out(name, inplaceRule(name, "products are added to memory that nothing reads any more: Gemm → Gemm{inplace}", onProducts...))
	case "inplace_elemwise_optimizer":
		return inplaceElemwise()
	}
	for _, p := range swaps {
		if p.name == name {
			return rewrite.Global{Name: name, Doc: p.doc, Class: profile.ClassFusion, Fn: p.run}
		}
	}
	ruleName := strings.TrimPrefix(name, "pre_")
	if l := named(slices.Concat(passRules(), allRules()), ruleName); l.Rule != nil {
		return rewrite.In2Out(name, l.Rule)
	}
	return nil
}

// A swap is a pass that puts something else in the place of what applies of a kind compute, one after the other in the
// order of the graph.
type swap struct {
	name, doc string
	needs     func(fgraph.Op) bool // without an op of this kind in the graph, nothing is proposed; may be nil
	kind      func(fgraph.Op) bool
	is        func(*apply) bool // which of them; nil for all
	// propose returns what takes the place of a variable, nil if that stays. It may panic as [tensor.Try] expects.
	propose func(a *apply) (old, v *variable)
}

var swaps = []swap{
	{"multiply_rows_once", "a product with a constant factor multiplies once what all rows have in common: Matmul(Join(-1, x, Alloc(v)), w) → Matmul(x, w₁) + Matmul(v, w₂)",
		nil, isA[tensor.MatmulOp], hasEpilogue, ofResult(dividedProduct)},
	{"order_product_terms", "a sum begins with the term of a product, which then adds the others in registers: x + bias + Matmul(y, w) → Matmul(y, w) + bias + x",
		takesEpilogue, isElem(array.Add), inTerms, ofResult(termsInOrder)},
	{"integer_products", "a product of integers of 8 bits that are dequantized first multiplies the integers, which is exact: Matmul((cast(x) - z)*s, (cast(w) - y)*t) → cast(MatmulInteger(x, w, z, y))*(s*t)",
		isElem(array.Cast), func(op fgraph.Op) bool { return isMatrixProduct(op) || isA[tensor.ConvOp](op) }, makesSingles, ofResult(productOfIntegers)},
	{"float_sums", "a product of integers of 8 bits makes float32s where its sums are cast to them, and can complete these: cast{float32}(MatmulInteger(x, w, z, y)) → MatmulInteger{float32}(x, w, z, y)",
		nil, func(op fgraph.Op) bool { return ofFloats(op) != nil }, nil, floatSums},
	{"weight_codes", "a product with large constant integers of 8 bits that are dequantized unpacks them in registers, and rows of them are taken before they are dequantized: Matmul(x, (cast(w) - z)*s) → BlockMatmul{8,n}(x, w, s, z)",
		isElem(array.Cast), func(op fgraph.Op) bool { return isMatrixProduct(op) || op == tensor.AdvancedSubtensorOp{K: 1} }, makesSingles, ofResult(ofCodes)},
	{"layer_norm", "standardized rows are one op: d*inv(sqrt(mean(sqr(d)) + e))*g + b, with d = x - mean(x) → LayerNorm{n,e}(x, g, b)",
		isA[tensor.Reduce], isElem(array.Mul), isProductOfRows, normalized},
	{"attention", "a softmax between two products is one op, which stores no scores: Matmul(Softmax(Matmul(q, k)*c + m), v) → Attention{add(mul(i0, c), i1)}(q, k, v, m)",
		isA[tensor.SoftmaxOp], isMatrixProduct, isFactors, attention},
	{"splice_products", "a product with a constant factor reads what is joined without joining it, perhaps pooled: Matmul(Join(-1, x, y), w) → SpliceMatmul(x, y, w)",
		nil, takesEpilogue, isProduct, ofResult(spliced)},
	{"fuse_product_epilogue", "a product with a constant factor applies the element-wise op that reads it: maximum(Matmul(x, w) + b, 0) → Epilogue{maximum(i0 + i1, 0)}{Matmul}(x, w, b)",
		nil, takesEpilogue, hasEpilogue, fusedEpilogue},
}

// ofResult is for what takes the place of the result of an apply.
func ofResult(f func(*apply) *variable) func(*apply) (old, v *variable) {
	return func(a *apply) (old, v *variable) { return a.Out(), f(a) }
}

func (p swap) run(ctx context.Context, h *rewrite.Handle) error {
	if p.needs != nil && !hasOp(h.Graph(), p.needs) {
		return nil
	}
	for i, a := range those(h.Graph(), p.kind, p.is) {
		if i%256 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !h.Graph().Contains(a) { // it has become a part of something else
			continue
		}
		var old *variable
		v, err := tensor.Try(func() (v *variable) { old, v = p.propose(a); return v })
		if err != nil || v == nil || !old.Type().Accepts(v.Type()) {
			continue
		}
		v.Owner().SetOrigin(old.Owner().Origin())
		if _, err := h.Replace("", old.Owner(), fgraph.Replacement{Old: old, New: v}); err != nil {
			return err
		}
	}
	return nil
}

// passRules are the rules that are only used as passes.
var passRules = sync.OnceValue(func() []Local {
	return textRules("passes", goRules{
		"local_dot22_to_dot22scalar":                {on(array.Mul), nil, 3, dot22ToDot22Scalar},
		"local_gemm":                                {on(array.Add, array.Sub), nil, 0, gemm},
		"crossentropy_to_crossentropy_with_softmax": {onCrossentropy, of(onSoftmax), 2, crossentropyWithSoftmax},
		"flatten_nested_add_mul":                    {on(array.Add, array.Mul), nil, 0, flattenAddMul},
		"local_pow_specialize_device":               {on(array.Pow), nil, 2, powDevice},
	})
})

// shapeOpt attaches the feature that infers shapes.
func shapeOpt() rewrite.GraphRewriter {
	nothing := func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil }
	return rewrite.FromFunc("ShapeOpt", "attaches the feature that infers shapes",
		func(g *fgraph.FunctionGraph) error {
			s := tensor.NewShapes()
			s.Open()
			return g.Attach(s)
		}, nothing)
}

// knownSizes makes numbers of sizes that are known, once the rules that round are done.
func knownSizes() rewrite.GraphRewriter {
	return rewrite.FromFunc("known_sizes", "sizes that are known are numbers to the rules from here on", nil,
		func(_ context.Context, g *fgraph.FunctionGraph, _ *profile.Recorder) error {
			tensor.ShapesOf(g).Close()
			return nil
		})
}

// A countedWalk is a walk that has its own class in a profile, and records the counts that Theano
// records.
type countedWalk struct {
	*rewrite.Walk
	class string
	of    func(fgraph.Op) bool // without an op of this kind in the graph, no rule proposes anything; may be nil
}

// Describe describes the walk, with its class.
func (w *countedWalk) Describe() rewrite.Description {
	d := w.Walk.Describe()
	d.Class = w.class
	return d
}

// Outline is Describe from the outlines of the rules.
func (w *countedWalk) Outline() rewrite.Description {
	d := w.Walk.Outline()
	d.Class = w.class
	return d
}

// Apply walks over the graph.
func (w *countedWalk) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.Nodes(g.NumApplies())
	var err error
	if w.of == nil || hasOp(g, w.of) {
		err = w.Walk.Apply(ctx, g, rec)
	}
	rec.SetClass("", w.class)
	rec.Count("nb_iter", 1, "")
	if !rec.Enabled() {
		return err
	}
	r := rec.Record()
	rec.Count("nb_replacement", float64(r.Changed), "")
	if w.class == profile.ClassGemm {
		refused := 0
		for _, rule := range r.Rules {
			refused += rule.Refused
		}
		rec.Count("nb_replacement_didn_t_remove", float64(refused), "")
	}
	return err
}

// documented is an equilibrium with a sentence of its own in place of those of its rules.
type documented struct {
	*rewrite.Equilibrium
	doc string
	of  func(fgraph.Op) bool // without an op of this kind in the graph, no rule proposes anything
}

// Apply brings the graph to an equilibrium.
func (d *documented) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if !hasOp(g, d.of) {
		rec.SetClass("", profile.ClassEquilibrium)
		rec.Nodes(g.NumApplies())
		return nil
	}
	return d.Equilibrium.Apply(ctx, g, rec)
}

// Outline describes the pass.
func (d *documented) Outline() rewrite.Description {
	o := d.Equilibrium.Outline()
	o.Doc = d.doc
	return o
}
