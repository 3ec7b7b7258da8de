package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// ofCodes leaves large constant integers that are dequantized what they are: floats would take four times their memory,
// and be computed in each run, since constant_folding leaves them alone. Small ones are left to it.
func ofCodes(a *apply) *variable {
	if isMatrixProduct(a.Op()) {
		return productOfCodes(a)
	}
	return rowsOfCodes(a)
}

// largeCodes returns what is dequantized of a large constant matrix, perhaps with dimensions of size 1 in front, or nil.
func largeCodes(v *variable) *dequantized {
	if s, op, ok := owner[tensor.DimShuffleOp](v); ok {
		if n := typeOf(v).NDim(); n > 2 && op == tensor.NewDimShuffle(append(slices.Repeat([]int{array.NewAxis}, n-2), 0, 1)...) {
			v = s.Inputs()[0]
		}
	}
	d := dequantizedOf(v)
	if d == nil || typeOf(d.codes).NDim() != 2 {
		return nil
	}
	if c := tensor.ConstantOf(d.codes); c == nil || c.Len() <= maxFolded {
		return nil
	}
	return d
}

// productOfCodes returns a product whose right-hand factor stays codes, or nil. A narrow one would have other bits.
func productOfCodes(a *apply) *variable {
	x, w := a.Inputs()[0], largeCodes(a.Inputs()[1])
	if w == nil || dtypeOf(x) != array.Float32 || typeOf(x).NDim() == 0 || !onlyAlong(w.zero, 1) || !onlyAlong(w.scale, 1) {
		return nil
	}
	terms, columns := typeOf(w.codes).Dim(0), typeOf(w.codes).Dim(1)
	if !kernel.Divisible(columns, min(terms, 1<<10)) {
		return nil
	}
	return tensor.MustApply(tensor.BlockMatmulOp{Bits: 8, Terms: terms}, x, w.codes, along(w.scale, 1), along(w.zero, 1))
}

// rowsOfCodes returns rows that are dequantized after they have been taken, or nil.
func rowsOfCodes(a *apply) *variable {
	w, rows := largeCodes(a.Inputs()[0]), a.Inputs()[1]
	if w == nil || typeOf(a.Inputs()[0]).NDim() != 2 {
		return nil
	}
	taken := func(v *variable) *variable {
		if typeOf(v).NDim() == 2 && typeOf(v).Dim(0) != 1 {
			return tensor.MustApply(a.Op().(tensor.Op), v, rows)
		}
		return v
	}
	y := tensor.Cast(taken(w.codes), array.Float32)
	return tensor.Mul(tensor.Sub(y, tensor.Cast(taken(w.zero), array.Float32)), taken(w.scale))
}
