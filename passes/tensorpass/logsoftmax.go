package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// viewed looks through what only selects elements or moves them. It returns what v is a part of, and the applies that are between, the last one
// first.
func viewed(v *vari) (whole *vari, chain []*apply) {
	for {
		a := v.Owner()
		if a == nil {
			return v, chain
		}
		switch a.Op().(type) {
		case tensor.DimShuffleOp, tensor.ReshapeOp, tensor.SpecifyShapeOp, *tensor.SubtensorOp, tensor.AdvancedSubtensorOp:
		default:
			return v, chain
		}
		chain = append(chain, a)
		v = a.Inputs()[0]
	}
}

// viewAgain applies a chain of viewed to something else of the same shape.
func viewAgain(v *vari, chain []*apply) *vari {
	for _, a := range slices.Backward(chain) {
		v = tensor.MustApply(a.Op().(tensor.Op), append([]*vari{v}, a.Inputs()[1:]...)...)
	}
	return v
}

// logSoftmax is Theano's nameless rule log(Softmax(x)) → make_out_pattern(x), local_log_softmax. It also takes parts of a softmax.
func logSoftmax() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_log_softmax", On: on(array.Log),
		Doc: "log(Softmax(x)) → LogSoftmax(x), which is no logarithm of 0, also of a part: log(Softmax(x)[i]) → LogSoftmax(x)[i]",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			probs, chain := viewed(n.Inputs()[0])
			x := logits(probs)
			if x == nil {
				return c.Miss("the argument is no softmax nor a part of one"), nil
			}
			return replace(c, n, viewAgain(tensor.LogSoftmax(x), chain))
		},
	}
}

// logits returns what v is the softmax of, nil if it is none.
func logits(v *vari) *vari {
	if a, op, ok := owner[tensor.SoftmaxOp](v); ok && !op.Log {
		return a.Inputs()[0]
	}
	if a, _, ok := owner[tensor.SoftmaxWithBiasOp](v); ok {
		return tensor.Add(a.Inputs()...)
	}
	return nil
}

// crossentropyOfPart is ours: crossentropy_to_crossentropy_with_softmax takes whole softmaxes.
func crossentropyOfPart() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_crossentropy_of_part_of_softmax", On: []rewrite.Track{rewrite.TrackOp(tensor.CrossentropyCategorical1HotOp{})},
		Doc: "the cross-entropy of a part of a softmax takes no logarithm of 0: CrossentropyCategorical1Hot(Softmax(X).T, y) → -LogSoftmax(X).T[arange(n), y]",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			probs, chain := viewed(n.Inputs()[0])
			x := logits(probs)
			if x == nil || len(chain) == 0 {
				return c.Miss("the probabilities are no part of a softmax"), nil
			}
			rows := tensor.ARange(tensor.Int(0), tensor.ShapesOf(c.Graph()).Dim(n.Inputs()[0], 0), tensor.Int(1))
			return replace(c, n, tensor.Neg(tensor.Take(viewAgain(tensor.LogSoftmax(x), chain), rows, n.Inputs()[1])))
		},
	}
}

// logSoftmaxGrad is local_logsoftmax_grad. The gradient of a logarithm divides by its argument, also behind selections, and that of the softmax
// multiplies by it again, which is NaN where a probability is 0. The rule runs before all others, too, as then the parts that the gradient puts together
// are written like those that the expression takes.
func logSoftmaxGrad() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_logsoftmax_grad", On: []rewrite.Track{rewrite.TrackOp(tensor.SoftmaxGradOp{})},
		Doc: "the gradient of the logarithm of a softmax divides by nothing: SoftmaxGrad(dy/p, p) → LogSoftmaxGrad(dy, log p); it was NaN where a probability is 0",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			dy, probs := n.Inputs()[0], n.Inputs()[1]
			x := logits(probs)
			if x == nil {
				return c.Miss("it is not the gradient of a softmax that can be seen"), nil
			}
			if _, _, ok := owner[tensor.CrossentropyCategorical1HotGradOp](dy); ok {
				return c.Miss("it is up to local_softmax_grad_to_crossentropy_with_softmax_grad"), nil
			}
			pos, neg, ok := addCanonizer.few(dy, mostDistributed)
			if !ok {
				pos, neg = []*vari{dy}, nil
			}
			var quotients, rest [2][]*vari // what counts and what is taken back
			for i, v := range slices.Concat(pos, neg) {
				side := 0
				if i >= len(pos) {
					side = 1
				}
				if q := dividend(v, func(w *vari) bool { return w == probs }, deepestPart); q != nil {
					quotients[side] = append(quotients[side], q)
				} else {
					rest[side] = append(rest[side], v)
				}
			}
			if len(quotients[0])+len(quotients[1]) == 0 {
				return c.Miss("what comes in is not divided by the probabilities"), nil
			}
			g := conform(dy, addCanonizer.join(quotients[0], quotients[1], dy), probs)
			if g == nil {
				return c.Miss("the dividend has not the shape of the probabilities"), nil
			}
			dx := tensor.MustApply(tensor.SoftmaxGradOp{Log: true}, g, tensor.LogSoftmax(x))
			if len(rest[0])+len(rest[1]) == 0 {
				return replace(c, n, dx)
			}
			if g = conform(dy, addCanonizer.join(rest[0], rest[1], dy), probs); g == nil {
				return c.Miss("the other terms have not the shape of the probabilities"), nil
			}
			return replace(c, n, tensor.Add(dx, tensor.MustApply(tensor.SoftmaxGradOp{}, g, probs)))
		},
	}
}

// mulPartQuotient is ours. It is what local_mul_canonizer does to p*(x/p), for the gradient of the logarithm of a part.
func mulPartQuotient() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_mul_part_quotient", On: on(array.Mul),
		Doc: "a factor cancels in what is put together of quotients by its parts: p*set_subtensor(zeros[i], x/p[i]) → set_subtensor(zeros[i], x), also where p is zero, NaN or infinite",
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			if !isFloat(n.Out()) || len(n.Inputs()) > mostDistributed {
				return c.Miss("it is a product of integers, or has too many factors"), nil
			}
			for i, f := range n.Inputs() {
				if a := f.Owner(); a == nil || !alone(f) || !increments(a) && !sets(a) {
					continue
				}
				for k, p := range n.Inputs() {
					if k == i || p.IsConstant() || !samePattern(p, f) {
						continue
					}
					if q := dividend(f, func(w *vari) bool { return w == p }, deepestPart); q != nil {
						in := slices.Clone(n.Inputs())
						in[i] = q
						return replace(c, n, products.join(slices.Delete(in, k, k+1), nil, n.Out()), n.Inputs()...)
					}
				}
			}
			return c.Miss("no factor is put together of quotients by parts of another one"), nil
		},
	}
}

// sets reports whether an apply sets a part of its first input, in memory of its own.
func sets(a *apply) bool {
	op, ok := a.Op().(*tensor.IncSubtensorOp)
	return ok && op.Set && !op.Inplace
}

// deepestPart bounds how many selections dividend looks through.
const deepestPart = 12

// dividend returns x where v is x/p, nil if it is not. is tells p. v may also be put together of quotients of parts of p, as gradients are.
func dividend(v *vari, is func(*vari) bool, depth int) *vari {
	a := v.Owner()
	if a == nil || depth == 0 {
		return nil
	}
	inner := func(i int, is func(*vari) bool) *vari {
		if q := dividend(a.Inputs()[i], is, depth-1); q != nil {
			return conform(a.Inputs()[i], q)
		}
		return nil
	}
	again := func(parts map[int]*vari) *vari { // a with other inputs
		in := slices.Clone(a.Inputs())
		for i, q := range parts {
			if q == nil {
				return nil
			}
			in[i] = q
		}
		return tensor.MustApply(a.Op().(tensor.Op), in...)
	}
	switch op := a.Op().(type) {
	case tensor.Elemwise:
		return dividendOfElemwise(v, is, depth)
	case tensor.DimShuffleOp:
		return again(map[int]*vari{0: inner(0, func(w *vari) bool {
			b, first, ok := owner[tensor.DimShuffleOp](w)
			return ok && is(b.Inputs()[0]) && op.Compose(first).IsIdentity(typ(v).NDim())
		})})
	case tensor.ReshapeOp:
		return again(map[int]*vari{0: inner(0, func(w *vari) bool {
			b, _, ok := owner[tensor.ReshapeOp](w)
			return ok && is(b.Inputs()[0]) && typ(b.Inputs()[0]) == typ(v)
		})})
	case *tensor.IncSubtensorOp:
		if op.Inplace {
			return nil
		}
		probe := tensor.RawSubtensor(a.Inputs()[0], op.Indexes(a)...).Owner()
		part := func(w *vari) bool {
			b := w.Owner()
			return b != nil && fgraph.OpsEqual(b.Op(), probe.Op()) && slices.Equal(b.Inputs()[1:], probe.Inputs()[1:]) && is(b.Inputs()[0])
		}
		return again(map[int]*vari{0: zerosOr(a.Inputs()[0], inner(0, is)), 1: inner(1, part)})
	case tensor.AdvancedIncSubtensorOp:
		if op.Inplace {
			return nil
		}
		part := func(w *vari) bool {
			b, sub, ok := owner[tensor.AdvancedSubtensorOp](w)
			return ok && sub.K == op.K && slices.Equal(b.Inputs()[1:], a.Inputs()[2:]) && is(b.Inputs()[0])
		}
		return again(map[int]*vari{0: zerosOr(a.Inputs()[0], inner(0, is)), 1: inner(1, part)})
	case tensor.CrossentropyCategorical1HotGradOp:
		if !is(a.Inputs()[1]) {
			return nil
		}
		g, p, y := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2]
		return tensor.IncTake(tensor.ZerosLike(p), tensor.Neg(g), tensor.ARange(tensor.Int(0), tensor.ShapeI(p, 0), tensor.Int(1)), y)
	}
	return nil
}

// zerosOr returns v if it is 0, which it is also when divided, and else q.
func zerosOr(v, q *vari) *vari {
	if is(v, 0) {
		return v
	}
	return q
}

// dividendOfElemwise is dividend for sums, choices, and products, of which one factor may be the quotient.
func dividendOfElemwise(v *vari, is func(*vari) bool, depth int) *vari {
	a := v.Owner()
	in := slices.Clone(a.Inputs())
	switch op, _ := elemOf(a); op {
	case array.Neg, array.Add, array.Sub, array.Switch, array.Second:
		first := map[array.Opcode]int{array.Switch: 1, array.Second: 1}[op]
		for i := first; i < len(in); i++ {
			q := dividend(in[i], is, depth-1)
			if q == nil {
				q = zerosOr(in[i], nil)
			}
			if q == nil {
				return nil
			}
			if in[i] = conform(in[i], q); in[i] == nil {
				return nil
			}
		}
		return tensor.MustApply(a.Op().(tensor.Op), in...)
	}
	num, den, ok := mulCanonizer.few(v, mostDistributed)
	if !ok {
		return nil
	}
	if at := slices.IndexFunc(den, is); at >= 0 {
		p := den[at]
		return conform(v, mulCanonizer.join(num, slices.Delete(den, at, at+1), v), p)
	}
	for i, f := range num {
		if f == v {
			break
		}
		if q := dividend(f, is, depth-1); q != nil {
			num[i] = q
			return conform(v, mulCanonizer.join(num, den, v), f)
		}
	}
	return nil
}
