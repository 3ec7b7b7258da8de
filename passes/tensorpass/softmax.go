package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// softmaxRules are the rules of softmaxes, their logarithms and cross-entropies.
var softmaxRules = goRules{
	"local_logsoftmax_grad":                               {onOp(tensor.SoftmaxGradOp{}), of(onSoftmax), 0, logSoftmaxGrad},
	"local_mul_part_quotient":                             {on(array.Mul), of(onAnyIncSubtensor), 0, mulPartQuotient},
	"local_crossentropy_of_part_of_softmax":               {onCrossentropy, of(onViews), 0, crossentropyOfPart},
	"crossentropy_to_crossentropy_with_softmax_with_bias": {onCrossentropy, of(onSoftmax), 2, crossentropyWithBias},
}

var (
	onCrossentropy = onOp(tensor.CrossentropyCategorical1HotOp{})
	onSoftmax      = append(onType[tensor.SoftmaxOp](), onType[tensor.SoftmaxWithBiasOp]()...)
)

// softmaxFunctions are what the rules of softmaxes ask.
var softmaxFunctions = []pattern.Function{
	about("column(x)", "the last dimension of x has size 1", func(v *variable) bool {
		n := typeOf(v).NDim()
		return n > 0 && typeOf(v).Dim(n-1) == 1
	}),
	pattern.NewGuard("keeps({d}, {a}, x)", 1, "the DimShuffle d puts back, with size 1, the single dimension a along which x was reduced",
		func(a pattern.Args) bool {
			return keepsDim(a.Params[0].(tensor.DimShuffleOp), a.Params[1].(tensor.Reduce), a.Vars[0])
		}),
	pattern.NewGuard("row({d}, b, x)", 1, "the DimShuffle d makes the vector b a row that is added to each row of the matrix x, of the same element type",
		func(a pattern.Args) bool {
			b, x := typeOf(a.Vars[0]), typeOf(a.Vars[1])
			return b.NDim() == 1 && b.Dim(0) != 1 && x.NDim() == 2 && x.Dim(1) != 1 && b.DType() == x.DType() &&
				a.Params[0].(tensor.DimShuffleOp).PadsLeft(1)
		}),
	pattern.NewGuard("counts(i, x, y)", 0, "i is 0, 1, 2 and so on, up to the number of rows of the matrix x or of elements of the vector y",
		func(a pattern.Args) bool {
			n, x, y := rangeFromZero(a.Vars[0]), a.Vars[1], a.Vars[2]
			if a.Context == nil || n == nil || typeOf(x).NDim() != 2 || typeOf(y).NDim() != 1 {
				return false
			}
			s := tensor.ShapesOf(a.Context.Graph())
			return sameSize(n, s.Dim(x, 0)) || sameSize(n, s.Dim(y, 0))
		}),
	value("(rows x i)", 0, "the rows of x that i counts from 0", func(a pattern.Args) *variable {
		x, n := a.Vars[0], rangeFromZero(a.Vars[1])
		if sameSize(n, tensor.ShapesOf(a.Context.Graph()).Dim(x, 0)) {
			return x
		}
		return tensor.Subtensor(x, tensor.SliceOf(nil, n, 1)) // there may be rows that i does not count
	}),
	value("(no_bias x)", 0, "zeros, one for each column of x", func(a pattern.Args) *variable { return zeroBias(a.Context.Graph(), a.Vars[0]) }),
}

// keepsDim reports whether a reduction of x along a, followed by d, is along one dimension, which
// stays with size 1.
func keepsDim(d tensor.DimShuffleOp, a tensor.Reduce, x *variable) bool {
	order := make([]int, typeOf(x).NDim())
	along, kept := a.Over(len(order)), 0
	for k := range order {
		if along.Has(k) {
			order[k] = array.NewAxis
		} else {
			order[k] = kept
			kept++
		}
	}
	return kept == len(order)-1 && slices.Equal(d.NewOrder(), order)
}

// onViews tracks the ops of which [viewed] knows the argument.
var onViews = slices.Concat(onDimShuffle, onReshape, onSpecifyShape, onAnySubtensor)

// viewed looks through ops that only select or move elements. It returns what v is a part of, and
// the applies in between, the last one first.
func viewed(v *variable) (whole *variable, chain []*apply) {
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
func viewAgain(v *variable, chain []*apply) *variable {
	for _, a := range slices.Backward(chain) {
		v = withFirst(a, v)
	}
	return v
}

// withFirst applies the op of a to its inputs with others in place of the first ones. It returns
// nil if one of those is nil.
func withFirst(a *apply, first ...*variable) *variable {
	if slices.Contains(first, nil) {
		return nil
	}
	return again(a, append(first, a.Inputs()[len(first):]...)...)
}

// logOfPart takes the logarithm of the whole, for parts that are selected in any number of steps.
func logOfPart(c *rewrite.Context, n *apply) (result, error) {
	whole, chain := viewed(n.Inputs()[0])
	if len(chain) == 0 {
		return c.Miss("the argument is not a part of anything"), nil
	}
	if x := logits(whole); x != nil {
		return replace(c, n, viewAgain(tensor.LogSoftmax(x), chain))
	}
	if x := argument(whole, array.Sigmoid); x != nil {
		return replace(c, n, viewAgain(tensor.Neg(tensor.Softplus(opposite(x))), chain))
	}
	return c.Miss("the argument is not a part of a softmax or sigmoid"), nil
}

// logits returns x if v is the softmax of x, and else nil.
func logits(v *variable) *variable {
	if a, op, ok := owner[tensor.SoftmaxOp](v); ok && !op.Log {
		return a.Inputs()[0]
	}
	if a, _, ok := owner[tensor.SoftmaxWithBiasOp](v); ok {
		return tensor.Add(a.Inputs()...)
	}
	return nil
}

// crossentropyOfPart is not one of Theano's: crossentropy_to_crossentropy_with_softmax takes whole
// softmaxes only.
func crossentropyOfPart(c *rewrite.Context, n *apply) (result, error) {
	probs, chain := viewed(n.Inputs()[0])
	x := logits(probs)
	if x == nil || len(chain) == 0 {
		return c.Miss("the probabilities are not a part of a softmax"), nil
	}
	rows := tensor.ARange(tensor.Int(0), tensor.ShapesOf(c.Graph()).Dim(n.Inputs()[0], 0), tensor.Int(1))
	return replace(c, n, tensor.Neg(tensor.Take(viewAgain(tensor.LogSoftmax(x), chain), rows, n.Inputs()[1])))
}

// logSoftmaxGrad removes a division and a product that cancel: the gradient of a logarithm divides
// by its argument, also behind selections, and that of the softmax multiplies by it again, which is
// NaN where a probability is 0. The rule also runs before all others, while the parts that the
// gradient puts together are still written as the expression wrote them.
func logSoftmaxGrad(c *rewrite.Context, n *apply) (result, error) {
	dy, probs := n.Inputs()[0], n.Inputs()[1]
	x := logits(probs)
	if _, _, fused := owner[tensor.CrossentropyCategorical1HotGradOp](dy); fused || x == nil {
		return c.Miss("it is not the gradient of a softmax in the graph, or that of a cross-entropy"), nil
	}
	pos, neg, ok := addCanonizer.few(dy, maxDistributed)
	if !ok {
		pos, neg = []*variable{dy}, nil
	}
	var terms [2][2][]*variable // those that are divided and the others, each as they are added and subtracted
	for side, list := range [2][]*variable{pos, neg} {
		for _, v := range list {
			k := 1
			if q := dividendBy(v, probs); q != nil {
				k, v = 0, q
			}
			terms[k][side] = append(terms[k][side], v)
		}
	}
	var dx []*variable
	for k, of := range []*variable{tensor.LogSoftmax(x), probs} {
		switch g := addCanonizer.join(terms[k][0], terms[k][1], dy); {
		case len(terms[k][0])+len(terms[k][1]) > 0:
			if g = conform(dy, g, probs); g == nil {
				return c.Miss("the terms do not have the shape of the probabilities"), nil
			}
			dx = append(dx, tensor.MustApply(tensor.SoftmaxGradOp{Log: k == 0}, g, of))
		case k == 0:
			return c.Miss("the gradient is not divided by the probabilities"), nil
		}
	}
	return replace(c, n, sums.join(dx, nil, n.Out()))
}

// mulPartQuotient does for the gradient of the logarithm of a part what local_mul_canonizer does
// for p*(x/p). It is not one of Theano's.
func mulPartQuotient(c *rewrite.Context, n *apply) (result, error) {
	in := n.Inputs()
	if !isFloat(n.Out()) || len(in) > maxDistributed {
		return c.Miss("it is a product of integers, or has too many factors"), nil
	}
	for i, f := range in {
		if _, ok := writeOf(f.Owner()); !ok || !usedOnce(f) {
			continue
		}
		for k, p := range in {
			if k == i || p.IsConstant() || !samePattern(p, f) {
				continue
			}
			if q := dividendBy(f, p); q != nil {
				factors := slices.Clone(in)
				factors[i] = q
				return replace(c, n, products.join(slices.Delete(factors, k, k+1), nil, n.Out()), in...)
			}
		}
	}
	return c.Miss("no factor is put together from quotients by parts of another one"), nil
}

// deepestPart bounds how many selections dividend looks through.
const deepestPart = 12

// dividendBy returns x if v is x/p, and else nil. As gradients are, v may be put together from
// quotients by parts of p.
func dividendBy(v, p *variable) *variable {
	return dividend(v, func(w *variable) bool { return w == p }, deepestPart)
}

// dividend is dividendBy for the p that divides accepts.
func dividend(v *variable, divides func(*variable) bool, depth int) *variable {
	a := v.Owner()
	if a == nil || depth == 0 {
		return nil
	}
	inner := func(i int, divides func(*variable) bool) *variable {
		if q := dividend(a.Inputs()[i], divides, depth-1); q != nil {
			return conform(a.Inputs()[i], q)
		}
		return nil
	}
	changed := func(part func(*variable) bool) *variable { // a changes a part of its first input
		return withFirst(a, zerosOr(a.Inputs()[0], inner(0, divides)), inner(1, part))
	}
	switch op := a.Op().(type) {
	case tensor.Elemwise:
		return dividendOfElemwise(v, divides, depth)
	case tensor.DimShuffleOp:
		return withFirst(a, inner(0, func(w *variable) bool {
			b, first, ok := owner[tensor.DimShuffleOp](w)
			return ok && divides(b.Inputs()[0]) && op.Compose(first).IsIdentity(typeOf(v).NDim())
		}))
	case tensor.ReshapeOp:
		return withFirst(a, inner(0, func(w *variable) bool {
			b, _, ok := owner[tensor.ReshapeOp](w)
			return ok && divides(b.Inputs()[0]) && typeOf(b.Inputs()[0]) == typeOf(v)
		}))
	case *tensor.IncSubtensorOp:
		if op.Inplace {
			return nil
		}
		probe := tensor.RawSubtensor(a.Inputs()[0], op.Indexes(a)...).Owner()
		return changed(func(w *variable) bool {
			b := w.Owner()
			return b != nil && fgraph.OpsEqual(b.Op(), probe.Op()) && slices.Equal(b.Inputs()[1:], probe.Inputs()[1:]) && divides(b.Inputs()[0])
		})
	case tensor.AdvancedIncSubtensorOp:
		if op.Inplace {
			return nil
		}
		return changed(func(w *variable) bool {
			b, sub, ok := owner[tensor.AdvancedSubtensorOp](w)
			return ok && sub.K == op.K && slices.Equal(b.Inputs()[1:], a.Inputs()[2:]) && divides(b.Inputs()[0])
		})
	case tensor.CrossentropyCategorical1HotGradOp:
		g, p, y := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2]
		if divides(p) {
			return tensor.IncTake(tensor.ZerosLike(p), tensor.Neg(g), tensor.ARange(tensor.Int(0), tensor.ShapeI(p, 0), tensor.Int(1)), y)
		}
	}
	return nil
}

// zerosOr returns v if it is 0, which stays 0 when divided, and else q.
func zerosOr(v, q *variable) *variable {
	if is(v, 0) {
		return v
	}
	return q
}

// dividendOfElemwise is dividend for sums, for switches, and for products, of which one factor may
// be the quotient.
func dividendOfElemwise(v *variable, divides func(*variable) bool, depth int) *variable {
	a := v.Owner()
	first := 0
	switch op, _ := elemOf(a); op {
	case array.Switch, array.Second:
		first = 1
		fallthrough
	case array.Neg, array.Add, array.Sub:
		in := slices.Clone(a.Inputs())
		for i := first; i < len(in); i++ {
			q := zerosOr(in[i], dividend(in[i], divides, depth-1))
			if q == nil {
				return nil
			}
			if in[i] = conform(in[i], q); in[i] == nil {
				return nil
			}
		}
		return again(a, in...)
	}
	num, den, ok := mulCanonizer.few(v, maxDistributed)
	if !ok {
		return nil
	}
	if at := slices.IndexFunc(den, divides); at >= 0 {
		return conform(v, mulCanonizer.join(num, without(den, at), v), den[at])
	}
	for i, f := range num {
		if f == v {
			break
		}
		if q := dividend(f, divides, depth-1); q != nil {
			num[i] = q
			return conform(v, mulCanonizer.join(num, den, v), f)
		}
	}
	return nil
}

func crossentropyWithBias(c *rewrite.Context, n *apply) (result, error) {
	probs := n.Inputs()[0]
	a, _, ok := owner[tensor.SoftmaxWithBiasOp](probs)
	if !ok {
		return c.Miss("the probabilities are not a softmax with a bias"), nil
	}
	return fusedCrossentropy(n, probs, a.Inputs()[0], a.Inputs()[1])
}

// crossentropyWithSoftmax is the rule of a pass of its own, as in Theano.
func crossentropyWithSoftmax(c *rewrite.Context, n *apply) (result, error) {
	probs := n.Inputs()[0]
	a, op, ok := owner[tensor.SoftmaxOp](probs)
	if !ok || op.Log {
		return c.Miss("the probabilities are not a softmax"), nil
	}
	x := a.Inputs()[0]
	return fusedCrossentropy(n, probs, x, zeroBias(c.Graph(), x))
}

// zeroBias returns a vector of zeros with an element for each column.
func zeroBias(g *fgraph.FunctionGraph, x *variable) *variable {
	return tensor.Zeros(dtypeOf(x), tensor.ShapesOf(g).Dim(x, 1))
}

// fusedCrossentropy replaces the cross-entropy n and the softmax with the fused op. It leaves the
// softmax alone where the classes may be computed from it, as they would depend on themselves.
func fusedCrossentropy(n *apply, probs, x, b *variable) (result, error) {
	a, err := tensor.Make(tensor.CrossentropySoftmaxArgmax1HotWithBiasOp{}, x, b, n.Inputs()[1])
	if err != nil {
		return none, err
	}
	out := a.Outputs()
	pairs := []fgraph.Replacement{{Old: n.Out(), New: out[0]}}
	if !mayDepend(n.Inputs()[1], probs) {
		pairs = append(pairs, fgraph.Replacement{Old: probs, New: out[1]})
	}
	return rewrite.Result{Pairs: pairs}, nil
}

// maxAncestors bounds the variables that mayDepend looks at.
const maxAncestors = 1000

// mayDepend reports whether v is computed from w, or from too many variables to tell.
func mayDepend(v, w *variable) bool {
	todo, seen := []*variable{v}, map[*variable]bool{v: true}
	for len(todo) > 0 && len(seen) <= maxAncestors {
		u := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if u == w {
			return true
		}
		if u.Owner() == nil {
			continue
		}
		for _, in := range u.Owner().Inputs() {
			if !seen[in] {
				seen[in] = true
				todo = append(todo, in)
			}
		}
	}
	return len(todo) > 0
}

// rangeFromZero returns k if v is arange(k), and else nil.
func rangeFromZero(v *variable) *variable {
	a, _, ok := owner[tensor.ARangeOp](v)
	if !ok || !is(a.Inputs()[0], 0) || !is(a.Inputs()[2], 1) {
		return nil
	}
	return a.Inputs()[1]
}
