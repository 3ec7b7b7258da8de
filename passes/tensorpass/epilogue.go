package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// fusedEpilogue makes an element-wise op that reads the result of a product, which nothing else does, a part of the
// product, which applies it to a few rows at a time, while they are in a cache.
func fusedEpilogue(a *apply) (old, v *variable) {
	reader := onlyClient(a.Out())
	if len(a.Outputs()) != 1 || reader == nil || !fusable(reader) || len(reader.Outputs()) != 1 {
		return nil, nil
	}
	if v = withEpilogue(a, reader); v == nil || !completes(v) && hasBetter(a, reader) {
		return nil, nil
	}
	return reader.Out(), v
}

// completes reports whether a product does all of its epilogue before it stores a result.
func completes(v *variable) bool {
	op, ok := v.Owner().Op().(*tensor.EpilogueOp)
	return ok && op.Completes(v.Owner())
}

// hasBetter reports whether an element-wise op that reads several products is better done by another
// one than a. With (x·v + b) + y·w, the first product adds b and the second one, but the second product
// would have to store its results before it can add what is added to b.
func hasBetter(a, reader *apply) bool {
	for _, in := range reader.Inputs() {
		b := in.Owner()
		if b == nil || b == a || len(b.Outputs()) != 1 || !hasEpilogue(b) || onlyClient(in) != reader {
			continue
		}
		v, err := tensor.Try(func() *variable { return withEpilogue(b, reader) })
		if err == nil && v != nil && reader.Out().Type().Accepts(v.Type()) && completes(v) {
			return true
		}
	}
	return false
}

// takesEpilogue reports whether products by an op can complete their results.
func takesEpilogue(op fgraph.Op) bool {
	switch op.(type) {
	case tensor.MatmulOp, tensor.Dot22Op, tensor.ConvLastOp, tensor.WinogradOp, tensor.SpliceMatmulOp, tensor.IntegersOp, tensor.BlockMatmulOp,
		tensor.MatmulIntegerOp, tensor.ConvLastIntegerOp:
		return true
	}
	return false
}

// hasEpilogue reports whether an apply is a product with a constant factor whose sums are float32s. Others
// are left to the passes that work in place, as Theano's are.
func hasEpilogue(a *apply) bool {
	if !takesEpilogue(a.Op()) || dtypeOf(a.Out()) != array.Float32 {
		return false
	}
	in := a.Inputs()
	last := tensor.ConstantOf(in[len(in)-1])
	switch a.Op().(type) {
	case tensor.MatmulIntegerOp, tensor.ConvLastIntegerOp:
		return last != nil && tensor.ConstantOf(in[1]) != nil
	case tensor.MatmulOp, tensor.Dot22Op:
		last = tensor.FixedFactor(in[1])
	}
	return last != nil && last.DType() == array.Float32
}

// withEpilogue returns what an element-wise apply computes from a product, as one op, or nil.
func withEpilogue(a, reader *apply) *variable {
	p, in := programOf(a.Out(), reader)
	if p == nil {
		return nil
	}
	op := tensor.NewEpilogue(a.Op().(tensor.Op), p)
	if op == nil {
		return nil
	}
	return tensor.MustApply(op, append(slices.Clone(a.Inputs()), in[1:]...)...)
}

// programOf returns what an element-wise apply with one output does to a product, as a program whose first
// input is the product, and its inputs. It returns nothing if the result is of another type or shape: what
// is broadcast would be computed before there is room for it.
func programOf(product *variable, reader *apply) (*array.Program, []*variable) {
	types := []array.DType{dtypeOf(product)}
	in := []*variable{product}
	args := make([]int, len(reader.Inputs()))
	for _, v := range reader.Inputs() {
		if v != product && !tensor.Inlined(v) && !slices.Contains(in, v) {
			in, types = append(in, v), append(types, dtypeOf(v))
		}
	}
	if dtypeOf(reader.Out()) != dtypeOf(product) || !slices.Equal(typeOf(reader.Out()).Shape(), typeOf(product).Shape()) {
		return nil, nil
	}
	p := array.NewProgram(types...)
	for i, v := range reader.Inputs() {
		if v != product && tensor.Inlined(v) {
			args[i] = p.Constant(tensor.ConstantOf(v))
			continue
		}
		args[i] = slices.Index(in, v)
	}
	switch op := reader.Op().(type) {
	case tensor.Fusible:
		p.Return(op.AddTo(p, args...))
	case *tensor.CompositeOp:
		p.Return(p.Inline(op.Program(), args...)...)
	}
	return p, in
}

// maxSpliced bounds the tensors that a product reads.
const maxSpliced = 32

// spliced lets a product of joined tensors and a constant matrix read the tensors where they are. A convolution with a
// window of one element is such a product.
func spliced(a *apply) *variable {
	parts := joinedParts(a.Inputs()[0])
	if parts == nil {
		return nil
	}
	w := a.Inputs()[1]
	// Rows of the factor are prepared one by one. A convolution may have them as columns, since it prepares all at once.
	if c := tensor.ConstantOf(w); c != nil && isA[tensor.ConvLastOp](a.Op()) && !c.Contiguous() {
		w = tensor.Constant(c.Clone())
	}
	return tensor.MustApply(tensor.SpliceMatmulOp{N: int8(len(parts))}, append(parts, w)...)
}

// isProduct reports whether an apply multiplies each row of its first input by a constant matrix.
func isProduct(a *apply) bool {
	if !hasEpilogue(a) {
		return false
	}
	switch op := a.Op().(type) {
	case tensor.MatmulOp:
		return true
	case tensor.ConvLastOp:
		w := op.Window
		for d := range w.Dims {
			if typeOf(a.Inputs()[1]).Dim(d) != 1 || w.Stride[d] != 1 || w.Before[d] != 0 || w.After[d] != 0 {
				return false
			}
		}
		return op.Groups == 1
	}
	return false
}

// joinedParts returns the tensors that are joined in the last dimension, if nothing else reads them as
// one. Those of a pool with channels last are pools of what it has joined: it pools each channel by
// itself.
func joinedParts(v *variable) []*variable {
	if !usedOnce(v) {
		return nil
	}
	pool, poolOp, pooled := owner[tensor.PoolLastOp](v)
	if pooled {
		if v = pool.Inputs()[0]; !usedOnce(v) {
			return nil
		}
	}
	j, op, ok := owner[tensor.JoinOp](v)
	if !ok || int(op.Axis) != typeOf(v).NDim()-1 || len(j.Inputs()) > maxSpliced {
		return nil
	}
	parts := slices.Clone(j.Inputs())
	if pooled {
		for i, x := range parts {
			parts[i] = tensor.MustApply(poolOp, x)
		}
	}
	return parts
}
