package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// makesSingles reports whether the result of an apply is float32s.
func makesSingles(a *apply) bool { return dtypeOf(a.Out()) == array.Float32 }

// productOfIntegers computes in integers what models that are quantized in advance compute in floats, between a
// DequantizeLinear and a QuantizeLinear. It returns nil for what is no product of dequantized integers.
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

// floatSums makes float32s of int32s that nothing reads but a cast to them.
func floatSums(a *apply) (old, v *variable) {
	cast := onlyClient(a.Out())
	if cast == nil || argument(cast.Out(), array.Cast) == nil || dtypeOf(cast.Out()) != array.Float32 {
		return nil, nil
	}
	return cast.Out(), tensor.MustApply(ofFloats(a.Op()), a.Inputs()...)
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
