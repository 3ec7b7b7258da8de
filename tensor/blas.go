package tensor

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The ops of the BLAS. All operands of one are floats of one type. Those that add to an operand do so in place where the flag says so.
type (
	// Dot22Op is the product x·y of two matrices.
	Dot22Op struct{}
	// Dot22ScalarOp is a·x·y, of two matrices and a scalar: inputs x, y, a.
	Dot22ScalarOp struct{}
	// GemmOp is a·x·y + b·z, of matrices and scalars: inputs z, a, x, y, b.
	GemmOp struct{ Inplace bool }
	// GemvOp is a·x·v + b·y, of a matrix x, vectors and scalars: inputs y, a, x, v, b. With BLAS it is computed by the BLAS that is registered
	// with gonum, if that is not gonum's own, else by loops.
	GemvOp struct{ Inplace, BLAS bool }
	// GerOp is z + a·x·yᵀ, of a matrix z, a scalar and vectors: inputs z, a, x, y. BLAS is as in GemvOp.
	GerOp struct{ Inplace, BLAS bool }
)

func (Dot22Op) String() string       { return "Dot22" }
func (Dot22ScalarOp) String() string { return "Dot22Scalar" }
func (op GemmOp) String() string     { return inplaceName("Gemm", op.Inplace) }
func (op GemvOp) String() string     { return inplaceName(blasName("Gemv", op.BLAS), op.Inplace) }
func (op GerOp) String() string      { return inplaceName(blasName("Ger", op.BLAS), op.Inplace) }

// blasName returns the name of an op that is computed by a BLAS.
func blasName(name string, blas bool) string {
	if blas {
		return "Blas" + name
	}
	return name
}

func inplaceName(name string, inplace bool) string {
	if inplace {
		return name + "{inplace}"
	}
	return name
}

func firstDestroyed(inplace bool) []fgraph.Alias {
	if inplace {
		return []fgraph.Alias{{Output: 0, Input: 0}}
	}
	return nil
}

// DestroyMap tells that the result takes the place of z.
func (op GemmOp) DestroyMap() []fgraph.Alias { return firstDestroyed(op.Inplace) }

// DestroyMap tells that the result takes the place of y.
func (op GemvOp) DestroyMap() []fgraph.Alias { return firstDestroyed(op.Inplace) }

// DestroyMap tells that the result takes the place of z.
func (op GerOp) DestroyMap() []fgraph.Alias { return firstDestroyed(op.Inplace) }

// blasArgs checks that the inputs are floats of one type with the given numbers of dimensions.
func blasArgs(op fgraph.Op, in []*fgraph.Variable, ndims ...int) error {
	if len(in) != len(ndims) {
		return &Error{op.String(), -1, fmt.Sprintf("takes %d arguments, not %d", len(ndims), len(in))}
	}
	first := TypeOf(in[0]).DType()
	for i, v := range in {
		if t := TypeOf(v); t.NDim() != ndims[i] || t.DType() != first || !first.IsFloat() || t.IsCSR() {
			return argError(op, i, "is a %v, not a %d-d tensor of floats of the type of the others", t, ndims[i])
		}
	}
	return nil
}

// agree returns the size that two dimensions have in common.
func agree(op fgraph.Op, arg, n, m int) (int32, error) {
	switch {
	case n == m || m == Unknown:
		return int32(n), nil
	case n == Unknown:
		return int32(m), nil
	}
	return 0, argError(op, arg, "has size %d where %d is expected", m, n)
}

// blasType returns the type of a result whose dimension i is known from several operands.
func blasType(op fgraph.Op, dtype DType, dims ...[]int) ([]fgraph.Type, error) {
	s := spec{dtype: dtype, ndim: uint8(len(dims))}
	for d, sizes := range dims {
		n := int32(sizes[0])
		for i, m := range sizes[1:] {
			var err error
			if n, err = agree(op, i+1, int(n), m); err != nil {
				return nil, err
			}
		}
		s.shape[d] = n
	}
	return []fgraph.Type{s.intern()}, nil
}

// Infer checks the sizes.
func (op Dot22Op) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := blasArgs(op, in, 2, 2); err != nil {
		return nil, err
	}
	return productType(op, in[0], in[1])
}

// Infer checks the sizes.
func (op Dot22ScalarOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := blasArgs(op, in, 2, 2, 0); err != nil {
		return nil, err
	}
	return productType(op, in[0], in[1])
}

func productType(op fgraph.Op, x, y *fgraph.Variable) ([]fgraph.Type, error) {
	t, u := TypeOf(x), TypeOf(y)
	if _, err := agree(op, 1, t.Dim(1), u.Dim(0)); err != nil {
		return nil, err
	}
	return blasType(op, t.DType(), []int{t.Dim(0)}, []int{u.Dim(1)})
}

// Infer checks the sizes.
func (op GemmOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := blasArgs(op, in, 2, 0, 2, 2, 0); err != nil {
		return nil, err
	}
	z, x, y := TypeOf(in[0]), TypeOf(in[2]), TypeOf(in[3])
	if _, err := agree(op, 3, x.Dim(1), y.Dim(0)); err != nil {
		return nil, err
	}
	return blasType(op, z.DType(), []int{x.Dim(0), z.Dim(0)}, []int{y.Dim(1), z.Dim(1)})
}

// Infer checks the sizes.
func (op GemvOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := blasArgs(op, in, 1, 0, 2, 1, 0); err != nil {
		return nil, err
	}
	y, x, v := TypeOf(in[0]), TypeOf(in[2]), TypeOf(in[3])
	if _, err := agree(op, 3, x.Dim(1), v.Dim(0)); err != nil {
		return nil, err
	}
	return blasType(op, y.DType(), []int{x.Dim(0), y.Dim(0)})
}

// Infer checks the sizes.
func (op GerOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := blasArgs(op, in, 2, 0, 1, 1); err != nil {
		return nil, err
	}
	z, x, y := TypeOf(in[0]), TypeOf(in[2]), TypeOf(in[3])
	return blasType(op, z.DType(), []int{x.Dim(0), z.Dim(0)}, []int{y.Dim(0), z.Dim(1)})
}

// Compile returns the product.
func (op Dot22Op) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], in[0].DType(), in[0].Dim(0), in[1].Dim(1)); err != nil {
			return err
		}
		return shapeFault(ws.Gemm(1, in[0], in[1], 0, out[0]))
	}, nil
}

// Compile returns the product.
func (op Dot22ScalarOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], in[0].DType(), in[0].Dim(0), in[1].Dim(1)); err != nil {
			return err
		}
		return shapeFault(ws.Gemm(in[2].Float(0), in[0], in[1], 0, out[0]))
	}, nil
}

func shapeFault(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrShape, err)
	}
	return err
}

// target makes out what a BLAS op adds to: the operand itself, or a copy of it. The operand is not read if its factor is 0.
func target(ws *array.Workspace, inplace bool, out, operand *array.Array, factor float64) error {
	if inplace {
		*out = *operand
		return nil
	}
	if err := ws.New(out, operand.DType(), operand.Shape()...); err != nil {
		return err
	}
	if factor != 0 {
		array.CopyTo(out, operand)
	}
	return nil
}

// Compile returns the product and sum.
func (op GemmOp) Compile(a *fgraph.Apply) (Kernel, error) {
	written, adds := areWritten(a), addsTo(a)
	return func(ws *array.Workspace, in, out []*array.Array) error {
		b := in[4].Float(0)
		if !written && (special(in[1].Float(0)) || special(b)) {
			return termByTerm(ws, op.Inplace, in, out[0], adds, func(p *array.Array) error { return ws.Gemm(1, in[2], in[3], 0, p) })
		}
		if err := target(ws, op.Inplace, out[0], in[0], b); err != nil {
			return err
		}
		return shapeFault(ws.Gemm(in[1].Float(0), in[2], in[3], b, out[0]))
	}, nil
}

// Compile returns the product and sum.
func (op GemvOp) Compile(a *fgraph.Apply) (Kernel, error) {
	written, adds := areWritten(a), addsTo(a)
	return func(ws *array.Workspace, in, out []*array.Array) error {
		b := in[4].Float(0)
		if !written && (special(in[1].Float(0)) || special(b)) {
			return termByTerm(ws, op.Inplace, in, out[0], adds, func(p *array.Array) error { return ws.Gemv(1, in[2], in[3], 0, p, op.BLAS) })
		}
		if err := target(ws, op.Inplace, out[0], in[0], b); err != nil {
			return err
		}
		return shapeFault(ws.Gemv(in[1].Float(0), in[2], in[3], b, out[0], op.BLAS))
	}, nil
}

// Compile returns the product and sum.
func (op GerOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := target(ws, op.Inplace, out[0], in[0], 1); err != nil {
			return err
		}
		return shapeFault(ws.Ger(in[1].Float(0), in[2], in[3], out[0], op.BLAS))
	}, nil
}

// areWritten reports whether both factors of a Gemm or Gemv are constants.
func areWritten(a *fgraph.Apply) bool {
	return a.Inputs()[1].IsConstant() && a.Inputs()[4].IsConstant()
}

// addsTo reports whether a Gemm or Gemv adds to z. Where the factor is written as 0 there is nothing in z, which is an AllocEmpty.
func addsTo(a *fgraph.Apply) bool {
	b := ConstantOf(a.Inputs()[4])
	return b == nil || b.Float(0) != 0
}

// special reports whether a factor makes NaN of infinity, or the other way round: a BLAS does not even look at what it multiplies by 0.
func special(v float64) bool { return v == 0 || v-v != 0 }

// termByTerm computes a·product + b·z, or a·product alone, as it was written, for factors that are special.
func termByTerm(ws *array.Workspace, inplace bool, in []*array.Array, out *array.Array, adds bool, product func(*array.Array) error) error {
	z, alpha, beta := in[0], in[1].Float(0), in[4].Float(0)
	p := array.New(z.DType(), z.Shape()...)
	if err := shapeFault(product(p)); err != nil {
		return err
	}
	for i := range p.Len() {
		v := float64(alpha * p.Float(i))
		if adds {
			v += float64(beta * z.Float(i))
		}
		p.SetFloat(i, v)
	}
	if err := target(ws, inplace, out, z, 0); err != nil {
		return err
	}
	array.CopyTo(out, p)
	return nil
}

func sameShapeAs(v *fgraph.Variable, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{s.Shape(v)}
}

// InferShape takes the sizes that do not meet.
func (op Dot22Op) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return [][]*fgraph.Variable{{s.Dim(a.Inputs()[0], 0), s.Dim(a.Inputs()[1], 1)}}
}

// InferShape takes the sizes that do not meet.
func (op Dot22ScalarOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return Dot22Op{}.InferShape(a, s)
}

// InferShape is that of z.
func (op GemmOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[0], s)
}

// InferShape is that of y.
func (op GemvOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[0], s)
}

// InferShape is that of z.
func (op GerOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return sameShapeAs(a.Inputs()[0], s)
}

// Grad multiplies by the other factor.
func (op Dot22Op) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return DotOp{}.Grad(a, out)
}

// Grad multiplies by the other factors.
func (op Dot22ScalarOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, y, s, g := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2], out[0]
	return []*fgraph.Variable{Mul(s, Dot(g, Transpose(y))), Mul(s, Dot(Transpose(x), g)), Sum(Mul(g, Dot(x, y)))}
}

// Grad is that of a·x·y + b·z.
func (op GemmOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	z, s, x, y, b, g := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2], a.Inputs()[3], a.Inputs()[4], out[0]
	return []*fgraph.Variable{Mul(b, g), Sum(Mul(g, Dot(x, y))), Mul(s, Dot(g, Transpose(y))), Mul(s, Dot(Transpose(x), g)), Sum(Mul(g, z))}
}

// Grad is that of a·x·v + b·y.
func (op GemvOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	y, s, x, v, b, g := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2], a.Inputs()[3], a.Inputs()[4], out[0]
	return []*fgraph.Variable{Mul(b, g), Sum(Mul(g, Dot(x, v))), Mul(s, Outer(g, v)), Mul(s, Dot(Transpose(x), g)), Sum(Mul(g, y))}
}

// Grad is that of z + a·x·yᵀ.
func (op GerOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	s, x, y, g := a.Inputs()[1], a.Inputs()[2], a.Inputs()[3], out[0]
	return []*fgraph.Variable{g, Sum(Mul(g, Outer(x, y))), Mul(s, Dot(g, y)), Mul(s, Dot(Transpose(g), x))}
}
