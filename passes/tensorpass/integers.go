package tensorpass

import (
	"context"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Products smaller than this stay as they are: to round their rows takes about as long as integers save.
const (
	leastTerms   = 32 // of a sum
	leastColumns = 16 // of the result
)

// narrowing is how many times more terms than results a product has that productsToInt16 raises where
// others have 8 bits: all that the results tell of the terms goes through few numbers.
const narrowing = 2

// productsToInt8 returns the pass products_to_int8.
func productsToInt8() rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "products_to_int8", Class: profile.ClassFusion,
		Doc: "products and convolutions with constant weights multiply integers of 8 bits, rows or items and columns rounded each with a scale of its own: Matmul(x, w) → Integers{int8}{Matmul}(x, w)",
		Fn: func(ctx context.Context, h *rewrite.Handle) error {
			return toIntegers(ctx, h, kernel.Int8, func(p *weighted) bool { return p.precision() == kernel.Float32 })
		},
	}
}

// productsToInt16 returns the pass products_to_int16.
func productsToInt16() rewrite.GraphRewriter {
	return rewrite.Global{
		Name: "products_to_int16", Class: profile.ClassFusion,
		Doc: "products and convolutions with constant weights multiply integers of 16 bits; of those in 8 bits only the ones with twice as many terms as results: Matmul(x, w) → Integers{int16}{Matmul}(x, w)",
		Fn: func(ctx context.Context, h *rewrite.Handle) error {
			return toIntegers(ctx, h, kernel.Int16, func(p *weighted) bool {
				return p.precision() == kernel.Float32 || p.precision() == kernel.Int8 && p.terms >= narrowing*p.columns
			})
		},
	}
}

// toIntegers changes the precision of the products that wanted accepts.
func toIntegers(ctx context.Context, h *rewrite.Handle, to kernel.Precision, wanted func(*weighted) bool) error {
	for i, a := range slices.Collect(h.Graph().Ordered()) {
		if i%64 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p := weightedOf(a)
		if p == nil || p.terms < leastTerms || p.columns < leastColumns || !wanted(p) {
			continue
		}
		if err := p.change(h, to); err != nil {
			return err
		}
	}
	return nil
}

// weighted is a product of float32s with constant weights.
type weighted struct {
	apply          *apply
	op             tensor.Op // it or, of a BLAS call, what multiplies there
	x, w           *variable
	weights        *array.Array
	terms, columns int
	added          *variable // to the product, or nil
	back           []int     // the dimensions of the product that the result has, or nil
}

// precision returns the precision of the factors.
func (p *weighted) precision() kernel.Precision {
	if op, ok := p.op.(tensor.IntegersOp); ok {
		return op.Precision()
	}
	return kernel.Float32
}

// base returns the product of float32s.
func (p *weighted) base() tensor.Op {
	if op, ok := p.op.(tensor.IntegersOp); ok {
		return op.Base()
	}
	return p.op
}

// weightedOf returns the product that an apply is, or nil if it is none of float32s with constant
// weights.
func weightedOf(a *apply) *weighted {
	p := &weighted{apply: a}
	in := a.Inputs()
	op, ok := a.Op().(tensor.Op)
	if integers, is := op.(tensor.IntegersOp); is {
		op = integers.Base()
	}
	switch o := op.(type) {
	case tensor.ConvLastOp:
		ok = o.Groups == 1
		p.op, p.x, p.w = a.Op().(tensor.Op), in[0], in[1]
	case tensor.MatmulOp, tensor.Dot22Op:
		p.op, p.x, p.w = a.Op().(tensor.Op), in[0], in[1]
	case tensor.GemmOp:
		ok = ok && !o.Inplace && is(in[1], 1) && (is(in[4], 1) || is(in[4], 0))
		p.op, p.x, p.w, p.added = tensor.Dot22Op{}, in[2], in[3], in[0]
	case tensor.GemvOp:
		ok = ok && !o.Inplace && is(in[1], 1) && (is(in[4], 1) || is(in[4], 0))
		p.op, p.x, p.w, p.added, p.back = tensor.Dot22Op{}, in[3], in[2], in[0], []int{1}
	default:
		return nil
	}
	if p.added != nil && is(in[4], 0) {
		p.added = nil
	}
	if p.weights = constantMatrix(p.w); !ok || p.weights == nil || p.weights.DType() != array.Float32 || dtypeOf(a.Out()) != array.Float32 || dtypeOf(p.x) != array.Float32 || p.weights.Len() == 0 {
		return nil
	}
	n := p.weights.NDim()
	p.columns = p.weights.Dim(n - 1)
	if p.back != nil {
		p.columns = p.weights.Dim(0)
	}
	p.terms = p.weights.Len() / p.columns
	if _, conv := op.(tensor.ConvLastOp); !conv {
		for d := range n - 2 {
			if p.weights.Dim(d) != 1 {
				return nil
			}
		}
	}
	return p
}

// constantMatrix returns a constant or its transpose, or nil for other variables.
func constantMatrix(v *variable) *array.Array {
	if s, op, ok := owner[tensor.DimShuffleOp](v); ok && op == tensor.NewDimShuffle(1, 0) {
		if c := tensor.ConstantOf(s.Inputs()[0]); c != nil {
			return c.Transpose(1, 0)
		}
	}
	return tensor.ConstantOf(v)
}

// fits reports whether the weights can be integers of a precision.
func (p *weighted) fits(to kernel.Precision) bool {
	w := p.weights
	if p.back != nil {
		w = w.Transpose(1, 0)
	}
	// Columns may lie one behind the other, in convolutions with the channels first. The order of terms in
	// them does not matter.
	n := w.NDim()
	if turned := w.Transpose(append([]int{n - 1, n - 2}, upTo(n-2)...)...); turned.Contiguous() {
		_, _, ok := kernel.QuantizationSteps(to, kernel.Matrix{Rows: p.columns, Cols: p.terms, Stride: p.terms, Data: array.Slice[float32](turned)})
		return ok
	}
	if !w.Contiguous() {
		w = w.Clone()
	}
	return kernel.Quantizable(to, kernel.Matrix{Rows: p.terms, Cols: p.columns, Stride: p.columns, Data: array.Slice[float32](w)})
}

// change replaces a product with one in another precision, if its weights can be rounded to that.
func (p *weighted) change(h *rewrite.Handle, to kernel.Precision) error {
	op := p.base()
	if to != kernel.Float32 {
		if !p.fits(to) {
			return nil
		}
		if op = tensor.NewIntegers(op, to); op == nil {
			return nil
		}
	}
	v, err := tensor.Try(func() *variable {
		x, w := p.x, p.w
		if p.back != nil {
			x, w = tensor.DimShuffle(x, array.NewAxis, 0), tensor.Constant(p.weights.Transpose(1, 0))
		} else if !w.IsConstant() {
			w = tensor.Constant(p.weights)
		}
		y := tensor.MustApply(op, x, w)
		y.Owner().SetOrigin(p.apply.Origin())
		if p.back != nil {
			y = tensor.DimShuffle(y, p.back...)
		}
		if p.added != nil {
			y = tensor.Add(y, p.added)
		}
		return y
	})
	if err != nil || !p.apply.Out().Type().Accepts(v.Type()) {
		return nil
	}
	v.Owner().SetOrigin(p.apply.Origin())
	done, err := h.Replace("", p.apply, fgraph.Replacement{Old: p.apply.Out(), New: v})
	if done && to != kernel.Float32 {
		h.Recorder().Count("nb_"+to.String(), 1, "")
	}
	return err
}

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
