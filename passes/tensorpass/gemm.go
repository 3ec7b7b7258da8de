package tensorpass

import (
	"context"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// gemmOptimizer is gemm_optimizer: a walk with one rule, that is profiled as Theano's.
type gemmOptimizer struct{ rewrite.Walk }

// GemmOptimizer lets sums of matrices and products of matrices be computed by the BLAS: a·x·y + b·z → Gemm(z, a, x, y, b).
func GemmOptimizer() rewrite.GraphRewriter {
	return &gemmOptimizer{rewrite.Walk{Name: "gemm_optimizer", Rules: []rewrite.NodeRewriter{gemm()}, Order: rewrite.OutToIn}}
}

// Describe describes the pass as a walk of another class.
func (o *gemmOptimizer) Describe() rewrite.Description {
	d := o.Walk.Describe()
	d.Class = profile.ClassGemm
	return d
}

// Apply walks, and counts what Theano counts.
func (o *gemmOptimizer) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	err := o.Walk.Apply(ctx, g, rec)
	rec.SetClass("", profile.ClassGemm)
	rec.Count("nb_iter", 1, "")
	if rec.Enabled() {
		r := rec.Record()
		refused := 0
		for _, rule := range r.Rules {
			refused += rule.Refused
		}
		rec.Count("nb_replacement", float64(r.Changed), "")
		rec.Count("nb_replacement_didn_t_remove", float64(refused), "")
	}
	return err
}

// term is a matrix, or a vector, times a scalar.
type term struct {
	factor *vari // without dimensions; nil: 1
	minus  bool
	matrix *vari
}

// gemm is the rule of the pass. It works on the outermost sum, of which it takes as many products as there are.
func gemm() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_gemm", Doc: "a product of matrices is added to another matrix where it is computed: a*Dot22(x, y) + b*z → Gemm(z, a, x, y, b)", On: on(array.Add, array.Sub),
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			out := n.Out()
			if typ(out).NDim() != 2 || !isFloat(out) || !addCanonizer.outermost(n) {
				return c.Miss("it is not the outermost sum of matrices of floats"), nil
			}
			pos, neg := addCanonizer.terms(out)
			if len(pos)+len(neg) < 2 {
				return c.Miss("there is one term"), nil
			}
			var terms []term
			for i, v := range slices.Concat(pos, neg) {
				t := scaled(tensor.PadLeft(v, 2), typ(out).DType())
				t.minus = t.minus != (i >= len(pos))
				terms = append(terms, t)
			}
			var gone []*vari
			for {
				at := slices.IndexFunc(terms, func(t term) bool { return isDot22(t.matrix) && accumulates(t.matrix, out) })
				to := slices.IndexFunc(terms, func(t term) bool { return !isDot22(t.matrix) && accumulates(t.matrix, out) })
				if at < 0 || to < 0 {
					at, to = twoProducts(terms, out)
				}
				if at < 0 || to < 0 {
					break
				}
				d := terms[at].matrix.Owner()
				z := tensor.MustApply(tensor.GemmOp{}, terms[to].matrix, terms[at].scalar(), d.Inputs()[0], d.Inputs()[1], terms[to].scalar())
				gone = append(gone, terms[at].matrix)
				terms[to] = term{matrix: z}
				terms = slices.Delete(terms, at, at+1)
			}
			if len(gone) == 0 {
				return c.Miss("no product of matrices that is used here only is added to a matrix"), nil
			}
			v := conform(out, total(terms, out), n.Inputs()...)
			if v == nil {
				return c.Miss("the sum does not fit"), nil
			}
			return rewrite.Result{Outputs: []*vari{v}, Remove: gone}, nil
		},
	}
}

// accumulates reports whether a matrix can be added to in place: it has the type of the result.
func accumulates(v, out *vari) bool {
	return samePattern(v, out) && typ(v).DType() == typ(out).DType() && !v.IsConstant()
}

// twoProducts returns the places of two products of which one can be added to the other.
func twoProducts(terms []term, out *vari) (at, to int) {
	to = slices.IndexFunc(terms, func(t term) bool { return isDot22(t.matrix) && accumulates(t.matrix, out) })
	if to < 0 {
		return -1, -1
	}
	for at = to + 1; at < len(terms); at++ {
		if isDot22(terms[at].matrix) && accumulates(terms[at].matrix, out) {
			return at, to
		}
	}
	return -1, -1
}

// scaled takes a product of scalars and one matrix apart, or of scalars and one vector.
func scaled(v *vari, dtype array.DType) term {
	num, den := mulCanonizer.terms(v)
	if len(den) > 0 {
		return term{matrix: v}
	}
	t := term{}
	var scalars []*vari
	for _, f := range num {
		switch {
		case isScalar(f) && typ(f).DType() == dtype:
			scalars = append(scalars, scalarOf(stripPadding(f)))
		case t.matrix == nil && typ(f).NDim() == typ(v).NDim():
			t.matrix = f
		default:
			return term{matrix: v}
		}
	}
	if t.matrix == nil || len(scalars) > 0 && !samePattern(t.matrix, v) {
		return term{matrix: v}
	}
	switch len(scalars) {
	case 0:
	case 1:
		t.factor = scalars[0]
	default:
		t.factor = tensor.Mul(scalars...)
	}
	return t
}

// scalar returns the factor of a term, with its sign.
func (t term) scalar() *vari {
	dtype := typ(t.matrix).DType()
	sign := 1.0
	if t.minus {
		sign = -1
	}
	switch x, ok := uniform(orOne(t.factor, dtype)); {
	case ok:
		return tensor.Constant(array.Full(dtype, sign*x))
	case t.minus:
		return tensor.Neg(t.factor)
	}
	return t.factor
}

func orOne(v *vari, dtype array.DType) *vari {
	if v == nil {
		return tensor.Constant(array.Full(dtype, 1))
	}
	return v
}

// total adds terms up again.
func total(terms []term, out *vari) *vari {
	var pos, neg []*vari
	for _, t := range terms {
		v := t.matrix
		if t.factor != nil {
			v = tensor.Mul(t.factor, v)
		}
		if t.minus {
			neg = append(neg, v)
		} else {
			pos = append(pos, v)
		}
	}
	return addCanonizer.join(pos, neg, out)
}
