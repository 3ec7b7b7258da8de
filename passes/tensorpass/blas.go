package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// zeroDot is local_0_dot_x.
func zeroDot() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_0_dot_x", Doc: "a product with a matrix of zeros is 0, also where the other one is NaN or infinite; that the sizes agree is not checked any more",
		On: []rewrite.Track{rewrite.TrackOp(tensor.DotOp{})},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x, y := n.Inputs()[0], n.Inputs()[1]
			if !is(x, 0) && !is(y, 0) {
				return c.Miss("no factor is 0"), nil
			}
			s := tensor.ShapesOf(c.Graph())
			zero := tensor.Constant(array.New(typ(n.Out()).DType()))
			return replace(c, n, refilled(zero, s.Shape(n.Out())))
		},
	}
}

// dotToDot22 is local_dot_to_dot22.
func dotToDot22() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_dot_to_dot22", Doc: "a product of floats of one type is made by the BLAS; a vector becomes a matrix for it, unless both are", Depth: 1,
		On: []rewrite.Track{rewrite.TrackOp(tensor.DotOp{})},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x, y := n.Inputs()[0], n.Inputs()[1]
			if !isFloat(x) || typ(x).DType() != typ(y).DType() {
				return c.Miss("a %v and a %v are not floats of one type", x.Type(), y.Type()), nil
			}
			switch xv, yv := typ(x).NDim() == 1, typ(y).NDim() == 1; {
			case xv && yv:
				return c.Miss("the product of two vectors is no product of matrices"), nil
			case xv:
				return replace(c, n, tensor.DimShuffle(tensor.MustApply(tensor.Dot22Op{}, tensor.DimShuffle(x, array.NewAxis, 0), y), 1))
			case yv:
				return replace(c, n, tensor.DimShuffle(tensor.MustApply(tensor.Dot22Op{}, x, tensor.DimShuffle(y, 0, array.NewAxis)), 0))
			}
			return replace(c, n, tensor.MustApply(tensor.Dot22Op{}, x, y))
		},
	}
}

// dot22ToDot22Scalar is local_dot22_to_dot22scalar.
func dot22ToDot22Scalar() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_dot22_to_dot22scalar", Doc: "scalar factors of a product of matrices are given to the BLAS: mul(Dot22(x, y), s, z) → mul(Dot22Scalar(x, y, s), z)", On: on(array.Mul), Depth: 3,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			factors := n.Inputs()
			for i, f := range factors { // one nested product is looked into
				if m := elem(f, array.Mul); m != nil && alone(f) && samePattern(f, n.Out()) && slices.ContainsFunc(m.Inputs(), isDot22) {
					factors = slices.Concat(factors[:i], m.Inputs(), factors[i+1:])
					break
				}
			}
			at := slices.IndexFunc(factors, isDot22)
			if at < 0 {
				return c.Miss("no factor is a product of matrices that is used here only"), nil
			}
			d := factors[at].Owner()
			dtype := typ(d.Out()).DType()
			var scalars, rest []*vari
			for i, f := range factors {
				switch {
				case i == at:
				case isScalar(f) && typ(f).DType() == dtype:
					scalars = append(scalars, scalarOf(stripPadding(f)))
				default:
					rest = append(rest, f)
				}
			}
			if len(scalars) == 0 {
				return c.Miss("no factor is a scalar"), nil
			}
			s := scalars[0]
			if len(scalars) > 1 {
				s = tensor.Mul(scalars...)
			}
			y := tensor.MustApply(tensor.Dot22ScalarOp{}, d.Inputs()[0], d.Inputs()[1], s)
			if len(rest) > 0 {
				y = tensor.Mul(append([]*vari{y}, rest...)...)
			}
			return replace(c, n, y)
		},
	}
}

// isDot22 reports whether v is a product of matrices that is used once.
func isDot22(v *vari) bool {
	_, _, ok := owner[tensor.Dot22Op](v)
	return ok && alone(v)
}

// A row or column stands for a vector: asVector drops the dimension of size 1.
func isRow(v *vari) bool { return typ(v).Dim(0) == 1 }
func isCol(v *vari) bool { return typ(v).Dim(1) == 1 }

// asVector drops dimension d, which is known to have size 1.
func asVector(v *vari, d int) *vari { return shuffled(v, tensor.NewDimShuffle(1-d)) }

// fromVector adds dimension d of size 1 to a vector.
func fromVector(v *vari, d int) *vari {
	if d == 0 {
		return tensor.DimShuffle(v, array.NewAxis, 0)
	}
	return tensor.DimShuffle(v, 0, array.NewAxis)
}

// transposed returns the transpose of a matrix.
func transposed(v *vari) *vari { return shuffled(v, tensor.NewDimShuffle(1, 0)) }

// gemmToGemv is the rule local_gemm_to_gemv.
func gemmToGemv() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_gemm_to_gemv", Doc: "a product with a row or a column is one of a matrix and a vector: Gemm → Gemv", Depth: 1,
		On: []rewrite.Track{rewrite.TrackType[tensor.GemmOp]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			z, a, x, y, b := n.Inputs()[0], n.Inputs()[1], n.Inputs()[2], n.Inputs()[3], n.Inputs()[4]
			switch {
			case n.Op().(tensor.GemmOp).Inplace:
				return c.Miss("it is in place"), nil
			case isRow(x) && isRow(z) && !isCol(y):
				return replace(c, n, fromVector(tensor.MustApply(tensor.GemvOp{}, asVector(z, 0), a, transposed(y), asVector(x, 0), b), 0))
			case isCol(y) && isCol(z):
				return replace(c, n, fromVector(tensor.MustApply(tensor.GemvOp{}, asVector(z, 1), a, x, asVector(y, 1), b), 1))
			}
			return c.Miss("neither factor is a row or a column"), nil
		},
	}
}

// gemmToGer is the rule local_gemm_to_ger.
func gemmToGer() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_gemm_to_ger", Doc: "a product of a column and a row is an outer product: Gemm → Ger", Depth: 1,
		On: []rewrite.Track{rewrite.TrackType[tensor.GemmOp]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			z, a, x, y, b := n.Inputs()[0], n.Inputs()[1], n.Inputs()[2], n.Inputs()[3], n.Inputs()[4]
			if n.Op().(tensor.GemmOp).Inplace || !isCol(x) || !isRow(y) || !is(b, 1) {
				return c.Miss("it does not add the product of a column and a row"), nil
			}
			return replace(c, n, tensor.MustApply(tensor.GerOp{}, z, a, asVector(x, 1), asVector(y, 0)))
		},
	}
}

// dot22ToGerOrGemv is the rule local_dot22_to_ger_or_gemv.
func dot22ToGerOrGemv() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_dot22_to_ger_or_gemv", Doc: "a product with a row or a column is one of a matrix and a vector, or an outer product",
		On: []rewrite.Track{rewrite.TrackOp(tensor.Dot22Op{})},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x, y := n.Inputs()[0], n.Inputs()[1]
			dtype := typ(x).DType()
			zero, one := tensor.Constant(array.New(dtype)), tensor.Constant(array.Full(dtype, 1))
			s := tensor.ShapesOf(c.Graph())
			switch {
			case isCol(x) && isRow(y):
				z := tensor.Alloc(zero, s.Dim(x, 0), s.Dim(y, 1))
				if !n.Out().Type().Accepts(z.Type()) {
					return c.Miss("the result is a single row or column"), nil
				}
				return replace(c, n, tensor.MustApply(tensor.GerOp{}, z, one, asVector(x, 1), asVector(y, 0)))
			case isRow(x) && !isCol(y):
				v := tensor.AllocEmpty(dtype, s.Dim(y, 1))
				return replace(c, n, fromVector(tensor.MustApply(tensor.GemvOp{}, v, one, transposed(y), asVector(x, 0), zero), 0))
			case isCol(y) && !isRow(x):
				v := tensor.AllocEmpty(dtype, s.Dim(x, 0))
				return replace(c, n, fromVector(tensor.MustApply(tensor.GemvOp{}, v, one, x, asVector(y, 1), zero), 1))
			case isRow(x) && isCol(y):
				return replace(c, n, tensor.PadLeft(tensor.Dot(asVector(x, 0), asVector(y, 1)), 2))
			}
			return c.Miss("neither factor is a row or a column"), nil
		},
	}
}

// gemvOfSum adds products of a matrix and a vector to the sum that they are in. Like gemm it works on the outermost sum, of which it takes
// all of them: one after the other, in sums of thousands, would take long.
func gemvOfSum() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_gemv_of_sum", On: on(array.Add, array.Sub),
		Doc: "a product of a matrix and a vector is added to what is added to it: b*z + a*Gemv(v, 1, X, y, 0) → Gemv(z, a, X, y, b), for scalars a and b",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			out := n.Out()
			if typ(out).NDim() != 1 || !isFloat(out) || !addCanonizer.outermost(n) {
				return c.Miss("it is not the outermost sum of vectors of floats"), nil
			}
			var products, others []term // in their order
			begin := -1                 // which of the others the products are added to
			pos, neg := addCanonizer.terms(out)
			for i, v := range slices.Concat(pos, neg) {
				t := scaled(tensor.PadLeft(v, 1), typ(out).DType())
				t.minus = i >= len(pos)
				fits := samePattern(t.matrix, out) && typ(t.matrix).DType() == typ(out).DType()
				if fits && isGemv(t.matrix) {
					products = append(products, t)
					continue
				}
				if fits && begin < 0 {
					begin = len(others)
				}
				others = append(others, t)
			}
			switch {
			case len(products) == 0:
				return c.Miss("no term is a product with a vector that is used here only"), nil
			case begin < 0 && len(products) == 1:
				return c.Miss("there is no other term of its shape"), nil
			case begin < 0:
				begin = len(others)
				others, products = append(others, products[0]), products[1:]
			}
			for _, t := range products {
				a := t.matrix.Owner()
				in := slices.Clone(a.Inputs())
				in[0], in[1], in[4] = others[begin].matrix, timesScalar(in[1], t.scalar()), others[begin].scalar()
				others[begin] = term{matrix: tensor.MustApply(a.Op().(tensor.GemvOp), in...)}
			}
			return replace(c, n, total(others, out), n.Inputs()...)
		},
	}
}

// isGemv reports whether v is a product of a matrix and a vector, to which nothing is added, and that is used once.
func isGemv(v *vari) bool {
	a, op, ok := owner[tensor.GemvOp](v)
	return ok && alone(v) && !op.Inplace && is(a.Inputs()[4], 0)
}

// timesScalar returns the product of two scalars.
func timesScalar(a, b *vari) *vari {
	x, ok := uniform(a)
	y, ok2 := uniform(b)
	switch {
	case ok && ok2:
		return tensor.Constant(array.Full(typ(a).DType(), x*y))
	case ok && x == 1:
		return b
	case ok2 && y == 1:
		return a
	}
	return tensor.Mul(a, b)
}

// useBLAS is use_c_blas: matrix-vector products go to the BLAS that gonum has registered.
func useBLAS() rewrite.Rule {
	return rewrite.Rule{
		Name: "use_c_blas", Doc: "products of a matrix and a vector are computed by the BLAS that is registered with gonum: Gemv → BlasGemv", Depth: 1,
		On: []rewrite.Track{rewrite.TrackType[tensor.GemvOp]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op := n.Op().(tensor.GemvOp)
			if op.BLAS {
				return c.Miss("it is"), nil
			}
			op.BLAS = true
			return replace(c, n, tensor.MustApply(op, n.Inputs()...))
		},
	}
}

// useBLASGer is use_scipy_ger: outer products go to the BLAS that gonum has registered. In Theano it is SciPy's.
func useBLASGer() rewrite.Rule {
	return rewrite.Rule{
		Name: "use_scipy_ger", Doc: "outer products are computed by the BLAS that is registered with gonum: Ger → BlasGer", Depth: 1,
		On: []rewrite.Track{rewrite.TrackType[tensor.GerOp]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op := n.Op().(tensor.GerOp)
			if op.BLAS {
				return c.Miss("it is"), nil
			}
			op.BLAS = true
			return replace(c, n, tensor.MustApply(op, n.Inputs()...))
		},
	}
}
