package tensorpass

import (
	"context"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// integerProducts returns the pass integer_products: what models that are quantized in advance compute in
// floats, between a DequantizeLinear and a QuantizeLinear, is computed in the integers that they hold.
func integerProducts() rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "integer_products", Class: profile.ClassFusion, Fn: findDequantized,
		Doc: "a product of integers of 8 bits that are dequantized first multiplies the integers, which is exact: Matmul((cast(x) - z)*s, (cast(w) - y)*t) → cast(MatmulInteger(x, w, z, y))*(s*t)",
	}
}

func findDequantized(_ context.Context, h *rewrite.Handle) error {
	if !hasOp(h.Graph(), isElem(array.Cast)) {
		return nil
	}
	kind := func(op fgraph.Op) bool { return isMatrixProduct(op) || isA[tensor.ConvOp](op) }
	for _, a := range those(h.Graph(), kind, func(a *apply) bool { return dtypeOf(a.Out()) == array.Float32 }) {
		v, err := tensor.Try(func() *variable { return productOfIntegers(a) })
		if err != nil || v == nil || !a.Out().Type().Accepts(v.Type()) {
			continue
		}
		v.Owner().SetOrigin(a.Origin())
		if _, err := h.Replace("", a, fgraph.Replacement{Old: a.Out(), New: v}); err != nil {
			return err
		}
	}
	return nil
}

// productOfIntegers returns what a product of dequantized integers computes, or nil.
func productOfIntegers(a *apply) *variable {
	x, w := dequantizedOf(a.Inputs()[0]), dequantizedOf(a.Inputs()[1])
	if x == nil || w == nil || !isScalar(x.zero) || !isScalar(x.scale) {
		return nil
	}
	n := typeOf(w.codes).NDim()
	columns := n - 1 // the dimension of w that has the columns of the result
	conv, isConv := a.Op().(tensor.ConvOp)
	if isConv {
		columns = 0
	}
	if typeOf(x.codes).NDim() < 2 || n < 2 || !onlyAlong(w.zero, columns) || !onlyAlong(w.scale, columns) {
		return nil
	}
	zero, scale := along(w.zero, columns), along(w.scale, columns)
	var sums *variable
	if isConv {
		if conv.Groups != 1 {
			return nil
		}
		d := conv.Window.Dims
		sums = tensor.ConvInteger(x.codes, w.codes, tensor.DimShuffle(x.zero), zero, tensor.Slide{Strides: conv.Window.Stride[:d],
			Dilations: conv.Window.Dilation[:d], Before: conv.Window.Before[:d], After: conv.Window.After[:d]})
		if typeOf(scale).NDim() > 0 {
			order := slices.Repeat([]int{array.NewAxis}, n)
			order[1] = 0
			scale = tensor.DimShuffle(scale, order...)
		}
	} else {
		for d := range n - 2 {
			if typeOf(w.codes).Dim(d) != 1 {
				return nil
			}
		}
		sums = tensor.MatmulInteger(x.codes, w.codes, tensor.DimShuffle(x.zero), zero)
	}
	return tensor.Mul(tensor.Cast(sums, array.Float32), tensor.Mul(tensor.DimShuffle(x.scale), scale))
}

// floatSums returns the pass float_sums: int32s that nothing reads but a cast to float32s are not made.
func floatSums() rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "float_sums", Class: profile.ClassFusion, Fn: castSums,
		Doc: "a product of integers of 8 bits makes float32s where its sums are cast to them, and can complete these: cast{float32}(MatmulInteger(x, w, z, y)) → MatmulInteger{float32}(x, w, z, y)",
	}
}

func castSums(_ context.Context, h *rewrite.Handle) error {
	for _, a := range those(h.Graph(), func(op fgraph.Op) bool { return ofFloats(op) != nil }, nil) {
		cast := onlyClient(a.Out())
		if cast == nil || argument(cast.Out(), array.Cast) == nil || dtypeOf(cast.Out()) != array.Float32 {
			continue
		}
		v := tensor.MustApply(ofFloats(a.Op()), a.Inputs()...)
		v.Owner().SetOrigin(cast.Origin())
		if _, err := h.Replace("", cast, fgraph.Replacement{Old: cast.Out(), New: v}); err != nil {
			return err
		}
	}
	return nil
}

// ofFloats returns the product of integers whose sums are float32s for the one whose sums are int32s, or nil.
func ofFloats(op fgraph.Op) tensor.Op {
	switch op := op.(type) {
	case tensor.MatmulIntegerOp:
		if !op.Float {
			return tensor.MatmulIntegerOp{Float: true}
		}
	case tensor.ConvLastIntegerOp:
		if !op.Float {
			return tensor.ConvLastIntegerOp{Window: op.Window, Float: true}
		}
	}
	return nil
}

// A dequantized is (codes - zero)·scale, where codes and zero are integers of 8 bits.
type dequantized struct{ codes, zero, scale *variable }

// dequantizedOf returns the parts of what is computed so, perhaps transposed, or nil.
func dequantizedOf(v *variable) *dequantized {
	if s, op, ok := owner[tensor.DimShuffleOp](v); ok {
		d := dequantizedOf(s.Inputs()[0])
		if d == nil || typeOf(d.codes).NDim() != typeOf(s.Inputs()[0]).NDim() {
			return nil
		}
		move := func(v *variable) *variable { return folded(tensor.MustApply(op, v)) }
		return &dequantized{move(d.codes), move(d.zero), move(d.scale)}
	}
	m := elem(v, array.Mul)
	if m == nil || len(m.Inputs()) != 2 {
		return nil
	}
	for k, x := range m.Inputs() {
		d := &dequantized{scale: m.Inputs()[1-k]}
		if dtypeOf(d.scale) != array.Float32 {
			continue
		}
		if s := elem(x, array.Sub); s != nil {
			x, d.zero = s.Inputs()[0], s.Inputs()[1]
		}
		if d.codes = argument(x, array.Cast); d.codes == nil || dtypeOf(x) != array.Float32 || !isByte(d.codes) || !slices.Equal(typeOf(d.codes).Shape(), typeOf(v).Shape()) {
			continue
		}
		if d.zero == nil {
			d.zero = tensor.Number(0, d.codes)
		} else if d.zero = asByte(d.zero, d.codes); d.zero == nil {
			continue
		}
		return d
	}
	return nil
}

func isByte(v *variable) bool { return dtypeOf(v) == array.Int8 || dtypeOf(v) == array.Uint8 }

// asByte returns v in the type of codes, of which it has been cast, or nil.
func asByte(v, codes *variable) *variable {
	if s, op, ok := owner[tensor.DimShuffleOp](v); ok {
		if inner := asByte(s.Inputs()[0], codes); inner != nil {
			return folded(tensor.MustApply(op, inner))
		}
		return nil
	}
	if x := argument(v, array.Cast); x != nil && dtypeOf(x) == dtypeOf(codes) {
		return x
	}
	if c := tensor.ConstantOf(v); c != nil && c.DType() == array.Float32 {
		b := c.Cast(dtypeOf(codes))
		for i := range c.Len() {
			if x := c.Float(i); math.IsNaN(x) || math.IsInf(x, 0) || b.Float(i) != x {
				return nil
			}
		}
		return tensor.Constant(b)
	}
	return nil
}

// onlyAlong reports whether all dimensions but one are known to have size 1.
func onlyAlong(v *variable, dim int) bool {
	for d, n := range typeOf(v).Shape() {
		if d != dim && n != 1 {
			return false
		}
	}
	return true
}

// along returns a vector of what v has along a dimension, or a scalar if that has size 1.
func along(v *variable, dim int) *variable {
	if typeOf(v).Dim(dim) == 1 {
		return folded(tensor.DimShuffle(v))
	}
	return folded(tensor.DimShuffle(v, dim))
}
