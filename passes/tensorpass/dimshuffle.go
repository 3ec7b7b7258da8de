package tensorpass

import (
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

var onDimShuffle = []rewrite.Track{rewrite.TrackType[tensor.DimShuffleOp]()}

// dimShuffleLift is local_dimshuffle_lift.
func dimShuffleLift() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_dimshuffle_lift", Doc: "dimensions are moved before computing: (x + y).T → x.T + y.T, and X.T.T → X", On: onDimShuffle, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, x := n.Op().(tensor.DimShuffleOp), n.Inputs()[0]
			if op.IsIdentity(typ(x).NDim()) {
				return rewrite.Replace(x), nil
			}
			a := x.Owner()
			if a == nil {
				return c.Miss("nothing computes the argument"), nil
			}
			switch inner := a.Op().(type) {
			case tensor.DimShuffleOp:
				return replace(c, n, tensor.DimShuffle(a.Inputs()[0], op.Compose(inner).NewOrder()...))
			case tensor.Elemwise:
				if !alone(x) || inner.Inplace != 0 {
					return c.Miss("the argument is used elsewhere, too"), nil
				}
				in := make([]*vari, len(a.Inputs()))
				for i, v := range a.Inputs() {
					in[i] = shuffled(v, op)
				}
				return replace(c, n, tensor.MustApply(inner, in...))
			}
			return c.Miss("the argument is neither element-wise nor a DimShuffle"), nil
		},
	}
}

// shuffled applies a DimShuffle that is known to fit the shape that v broadcasts to. Of a DimShuffle it makes one.
func shuffled(v *vari, op tensor.DimShuffleOp) *vari {
	if a := tensor.ConstantOf(v); a != nil && a.Len() == 1 && v.Name() == "" {
		return tensor.PadLeft(tensor.Constant(a.Reshape()), len(op.NewOrder()))
	}
	if a, inner, ok := owner[tensor.DimShuffleOp](v); ok {
		return tensor.DimShuffle(a.Inputs()[0], op.Compose(inner).NewOrder()...)
	}
	return tensor.DimShuffle(v, op.NewOrder()...)
}

// dimShuffleNoInplace is local_dimshuffle_no_inplace_at_canonicalize.
func dimShuffleNoInplace() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_dimshuffle_no_inplace_at_canonicalize", Doc: "the name InplaceDimShuffle, which older graphs have, becomes DimShuffle", On: onDimShuffle, Depth: 1,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op := n.Op().(tensor.DimShuffleOp)
			if !op.Inplace {
				return c.Miss("it has the usual name"), nil
			}
			op.Inplace = false
			return replace(c, n, tensor.MustApply(op, n.Inputs()[0]))
		},
	}
}

// transposeThroughDot is local_lift_transpose_through_dot.
func transposeThroughDot() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_lift_transpose_through_dot", Doc: "the transpose of a product is the product of the transposes: dot(x, y).T → dot(y.T, x.T)", On: onDimShuffle, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			op, v := n.Op().(tensor.DimShuffleOp), n.Inputs()[0]
			a, _, ok := owner[tensor.DotOp](v)
			if !ok || !alone(v) || op.Compose(tensor.NewDimShuffle(0, 1)) != tensor.NewDimShuffle(1, 0) || typ(v).NDim() != 2 {
				return c.Miss("it is not the transpose of a product that is used here only"), nil
			}
			x, y := a.Inputs()[0], a.Inputs()[1]
			if typ(x).NDim() != 2 || typ(y).NDim() != 2 {
				return c.Miss("the factors are no matrices"), nil
			}
			return replace(c, n, tensor.Dot(tensor.Transpose(y), tensor.Transpose(x)))
		},
	}
}

// allocDimShuffle is local_alloc_dimshuffle.
func allocDimShuffle() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_alloc_dimshuffle", Doc: "an Alloc adds dimensions in front by itself: Alloc(DimShuffle{x,0}(v), m, n) → Alloc(v, m, n)", Depth: 2,
		On: []rewrite.Track{rewrite.TrackOp(tensor.AllocOp{})},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			v := n.Inputs()[0]
			w := stripPadding(v)
			if w == v {
				return c.Miss("the value is not padded"), nil
			}
			return replace(c, n, tensor.Alloc(w, n.Inputs()[1:]...))
		},
	}
}

// dimShuffleAlloc is local_dimshuffle_alloc.
func dimShuffleAlloc() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_dimshuffle_alloc", Doc: "new dimensions in front of an Alloc are sizes 1 of it: DimShuffle{x,0}(Alloc(v, n)) → Alloc(v, 1, n)", On: onDimShuffle, Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a, _, ok := owner[tensor.AllocOp](n.Inputs()[0])
			if !ok || stripPadding(n.Out()) == n.Out() {
				return c.Miss("it does not pad an Alloc"), nil
			}
			dims := append([]*vari{}, a.Inputs()[1:]...)
			for len(dims) < typ(n.Out()).NDim() {
				dims = append([]*vari{tensor.Int(1)}, dims...)
			}
			return replace(c, n, tensor.Alloc(a.Inputs()[0], dims...))
		},
	}
}
