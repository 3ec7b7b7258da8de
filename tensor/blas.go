package tensor

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The ops of the BLAS. The operands of each are floats of one type. With the field Inplace an op
// overwrites the operand that it adds to. With the field BLAS, GemvOp and GerOp call the BLAS that
// is registered with gonum, unless it is gonum's own.
type (
	// Dot22Op computes x·y, of two matrices.
	Dot22Op = dot22Op
	// Dot22ScalarOp computes a·x·y, of two matrices and a scalar: inputs x, y, a.
	Dot22ScalarOp = dot22ScalarOp
	// GemmOp computes a·x·y + b·z, of matrices and scalars: inputs z, a, x, y, b. Field: Inplace.
	GemmOp = gemmOp
	// GemvOp computes a·x·v + b·y, of a matrix x, vectors and scalars: inputs y, a, x, v, b.
	// Fields: Inplace, BLAS.
	GemvOp = gemvOp
	// GerOp computes z + a·x·yᵀ, of a matrix z, a scalar and vectors: inputs z, a, x, y.
	// Fields: Inplace, BLAS.
	GerOp = gerOp
)

// These ops do not embed their traits: comparing nested structs takes longer.
type (
	dot22Op       struct{}
	dot22ScalarOp struct{}
	gemmOp        struct{ Inplace bool }
	gemvOp        struct{ Inplace, BLAS bool }
	gerOp         struct{ Inplace, BLAS bool }
)

func (dot22Op) String() string       { return "Dot22" }
func (dot22ScalarOp) String() string { return "Dot22Scalar" }
func (op gemmOp) String() string     { return inplaceName("Gemm", op.Inplace) }
func (op gemvOp) String() string     { return inplaceName(blasName("Gemv", op.BLAS), op.Inplace) }
func (op gerOp) String() string      { return inplaceName(blasName("Ger", op.BLAS), op.Inplace) }

func blasName(name string, blas bool) string {
	if blas {
		return "Blas" + name
	}
	return name
}

func (op gemmOp) DestroyMap() []fgraph.Alias { return destroys(op.Inplace, 0) }
func (op gemvOp) DestroyMap() []fgraph.Alias { return destroys(op.Inplace, 0) }
func (op gerOp) DestroyMap() []fgraph.Alias  { return destroys(op.Inplace, 0) }

func (op gemmOp) Overwriting() Op { op.Inplace = true; return op }
func (op gemvOp) Overwriting() Op { op.Inplace = true; return op }
func (op gerOp) Overwriting() Op  { op.Inplace = true; return op }
func (op dot22Op) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferSizes(op, in, "mk", "kn", "->mn")
}

func (op dot22ScalarOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferSizes(op, in, "mk", "kn", "", "->mn")
}

func (op gemmOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferSizes(op, in, "mn", "", "mk", "kn", "", "->mn")
}

func (op gemvOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferSizes(op, in, "m", "", "mk", "k", "", "->m")
}

func (op gerOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferSizes(op, in, "mn", "", "m", "n", "->mn")
}

// inferSizes returns the type of the result of an op on floats of one type. Each size of an input is
// named by a letter from k to n; sizes with the same name have to agree. The result follows "->".
func inferSizes(op fgraph.Op, in []*fgraph.Variable, names ...string) ([]fgraph.Type, error) {
	if len(in) != len(names)-1 {
		return nil, wrongCount(op, in, len(names)-1)
	}
	sizes := [...]int{Unknown, Unknown, Unknown, Unknown}
	first := TypeOf(in[0]).DType()
	for i, v := range in {
		t := TypeOf(v)
		if t.NDim() != len(names[i]) || t.DType() != first || !first.IsFloat() || t.IsCSR() {
			return nil, argError(op, i, "is a %v, not a %d-d tensor of floats of the type of the others", t, len(names[i]))
		}
		for d, name := range names[i] {
			n, err := agree(op, i, sizes[name-'k'], t.Dim(d))
			if err != nil {
				return nil, err
			}
			sizes[name-'k'] = int(n)
		}
	}
	result := names[len(names)-1][len("->"):]
	shape := make([]int, len(result))
	for d, name := range result {
		shape[d] = sizes[name-'k']
	}
	return one(NewType(first, shape...)), nil
}

func (op dot22Op) Compile(a *fgraph.Apply) (Kernel, error) { return op.compileProduct(a, nil) }

// compileProduct implements multiplier. A constant matrix on the right is prepared once.
func (op dot22Op) compileProduct(a *fgraph.Apply, e *array.Epilogue) (Kernel, error) {
	prepared := preparedFactor(a.Inputs()[1], TypeOf(a.Inputs()[1]).DType())
	return func(ws *array.Workspace, in, out []*array.Array) error {
		x, y := in[0], in[1]
		if err := ws.New(out[0], x.DType(), x.Dim(0), y.Dim(1)); err != nil {
			return err
		}
		if err := fitArgs(op, out[0], in[2:]); err != nil {
			return err
		}
		factor := prepared(ws)
		if factor == nil && e == nil && x.Dim(1) != 1 && (x.Dim(0) == 1 || y.Dim(1) == 1) {
			return shapeFault(vectorProduct(ws, 1, x, y, 0, out[0]))
		}
		if err := ws.MulRows(out[0], x, y, factor, e, in[2:]); err != nil {
			return shapeFault(err)
		}
		if ws.Again != nil {
			*ws.Again = ws.MulRowsAgain(out[0], x, factor, e, in[2:])
		}
		return nil
	}, nil
}

func (op dot22ScalarOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		return dot22(ws, in[2].Float(0), in, out[0])
	}, nil
}

// dot22 makes out the product of the first two arrays and a factor.
func dot22(ws *array.Workspace, factor float64, in []*array.Array, out *array.Array) error {
	if err := ws.New(out, in[0].DType(), in[0].Dim(0), in[1].Dim(1)); err != nil {
		return err
	}
	return shapeFault(ws.Gemm(factor, in[0], in[1], 0, out))
}

func (op gemmOp) Compile(a *fgraph.Apply) (Kernel, error) {
	return productAndSum(a, op.Inplace, vectorProduct), nil
}

func (op gemvOp) Compile(a *fgraph.Apply) (Kernel, error) {
	return productAndSum(a, op.Inplace, func(ws *array.Workspace, alpha float64, x, v *array.Array, beta float64, y *array.Array) error {
		if x.Dim(1) == 1 && alpha == 1 && beta == 0 {
			return ws.MatMul(y.Transpose(0, array.NewAxis), x, v.Transpose(0, array.NewAxis))
		}
		if x.Dim(0) == 1 {
			return ws.Gemm(alpha, x, v.Transpose(0, array.NewAxis), beta, y.Transpose(0, array.NewAxis))
		}
		return ws.Gemv(alpha, x, v, beta, y, op.BLAS)
	}), nil
}

// vectorProduct is Gemm, or Gemv if one factor is a row or a column: rules make that of it where they know the
// size, and its bits are others.
func vectorProduct(ws *array.Workspace, alpha float64, x, y *array.Array, beta float64, z *array.Array) error {
	switch row, column := x.Dim(0) == 1 && z.Dim(0) == 1, y.Dim(1) == 1 && z.Dim(1) == 1; { // or Gemm says that sizes differ
	case row == column:
		return ws.Gemm(alpha, x, y, beta, z)
	case row:
		return ws.Gemv(alpha, y.Transpose(1, 0), x.Transpose(1), beta, z.Transpose(1), true)
	}
	return ws.Gemv(alpha, x, y.Transpose(0), beta, z.Transpose(0), true)
}

// productAndSum returns the kernel of a Gemm or a Gemv, whose inputs are z, a, x, y and b. multiply
// sets its last argument to a·x·y + b·z.
func productAndSum(a *fgraph.Apply, inplace bool, multiply func(ws *array.Workspace, a float64, x, y *array.Array, b float64, z *array.Array) error) Kernel {
	factor, b := ConstantOf(a.Inputs()[1]), ConstantOf(a.Inputs()[4])
	constant := factor != nil && b != nil && !infinite(factor) && !infinite(b) // these were numbers of sizes
	adds := b == nil || b.Float(0) != 0                                        // with a constant factor 0, z is an AllocEmpty
	return func(ws *array.Workspace, in, out []*array.Array) error {
		alpha, beta := in[1].Float(0), in[4].Float(0)
		// A factor that only a run knows may be 0, and a BLAS does not read what it multiplies by 0. The ops of
		// which a rule has made this one would keep NaN and infinities there.
		if !constant && (special(alpha) || special(beta)) {
			return termByTerm(ws, inplace, in, out[0], adds, func(p *array.Array) error { return multiply(ws, 1, in[2], in[3], 0, p) })
		}
		if err := target(ws, inplace, out[0], in[0], beta); err != nil {
			return err
		}
		return shapeFault(multiply(ws, alpha, in[2], in[3], beta, out[0]))
	}
}

func (op gerOp) Compile(a *fgraph.Apply) (Kernel, error) {
	z := a.Inputs()[0].Owner()
	alone := z != nil && z.Op() == fgraph.Op(AllocOp{}) && isNumber(z.Inputs()[0], 0) && isNumber(a.Inputs()[1], 1)
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if x, y := in[2], in[3]; alone && x.Dim(0) == in[0].Dim(0) && y.Dim(0) == in[0].Dim(1) { // as a Dot22 of one term
			if err := target(ws, op.Inplace, out[0], in[0], 0); err != nil {
				return err
			}
			return ws.MatMul(out[0], x.Transpose(0, array.NewAxis), y.Transpose(array.NewAxis, 0))
		}
		if err := target(ws, op.Inplace, out[0], in[0], 1); err != nil {
			return err
		}
		return shapeFault(ws.Ger(in[1].Float(0), in[2], in[3], out[0], op.BLAS))
	}, nil
}

// isNumber reports whether v is a constant scalar of a value.
func isNumber(v *fgraph.Variable, value float64) bool {
	c := ConstantOf(v)
	return c != nil && c.Len() == 1 && c.Float(0) == value
}

// special reports whether a product with v turns infinities into NaN or the reverse. A BLAS does
// not read what it multiplies by 0.
func special(v float64) bool { return v == 0 || v-v != 0 }

func infinite(a *array.Array) bool { v := a.Float(0); return v-v != 0 }

// termByTerm computes a·product + b·z, or a·product alone, without shortcuts.
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
	// Only now: in place, out is the memory of z, which the sum has read.
	if err := target(ws, inplace, out, z, 0); err != nil {
		return err
	}
	array.CopyTo(out, p)
	return nil
}

func (dot22Op) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return likeProduct{}.InferShape(a, s)
}

func (dot22ScalarOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return likeProduct{}.InferShape(a, s)
}

func (gemmOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return likeFirst{}.InferShape(a, s)
}
func (gemvOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return likeFirst{}.InferShape(a, s)
}
func (gerOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return likeFirst{}.InferShape(a, s)
}
func (op dot22Op) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return DotOp{}.Grad(a, out)
}

func (op dot22ScalarOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, y, s, g := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2], out[0]
	return []*fgraph.Variable{Mul(s, Dot(g, Transpose(y))), Mul(s, Dot(Transpose(x), g)), Sum(Mul(g, Dot(x, y)))}
}

func (op gemmOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	z, s, x, y, b, g := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2], a.Inputs()[3], a.Inputs()[4], out[0]
	return []*fgraph.Variable{Mul(b, g), Sum(Mul(g, Dot(x, y))), Mul(s, Dot(g, Transpose(y))), Mul(s, Dot(Transpose(x), g)), Sum(Mul(g, z))}
}

func (op gemvOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	y, s, x, v, b, g := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2], a.Inputs()[3], a.Inputs()[4], out[0]
	return []*fgraph.Variable{Mul(b, g), Sum(Mul(g, Dot(x, v))), Mul(s, Outer(g, v)), Mul(s, Dot(Transpose(x), g)), Sum(Mul(g, y))}
}

func (op gerOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	s, x, y, g := a.Inputs()[1], a.Inputs()[2], a.Inputs()[3], out[0]
	return []*fgraph.Variable{g, Sum(Mul(g, Outer(x, y))), Mul(s, Dot(g, y)), Mul(s, Dot(Transpose(g), x))}
}
