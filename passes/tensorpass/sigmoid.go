package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

func expOver1PlusExp(c *rewrite.Context, n *apply) (result, error) {
	num, den := n.Inputs()[0], n.Inputs()[1]
	x, rest := onePlusExp(den)
	if x == nil {
		return c.Miss("the denominator has no factor 1 + exp(x)"), nil
	}
	factors := []*variable{num}
	if isFloat(num) {
		factors = slices.Clone(factorsOf(num))
	}
	var sigmoid *variable
	if i := slices.IndexFunc(factors, func(f *variable) bool { return argument(f, array.Exp) == x }); i >= 0 {
		sigmoid, factors = tensor.Sigmoid(x), slices.Delete(factors, i, i+1)
	} else {
		sigmoid = tensor.Sigmoid(opposite(x))
		factors = slices.DeleteFunc(factors, func(f *variable) bool { return is(f, 1) && isScalar(f) })
	}
	y := product(append(factors, sigmoid)...)
	if len(rest) > 0 {
		y = tensor.TrueDiv(y, product(rest...))
	}
	return replace(c, n, y, num, den)
}

// onePlusExp returns x and the other factors of v if v has a factor 1 + exp(x). If it has none, x
// is nil.
func onePlusExp(v *variable) (x *variable, rest []*variable) {
	for _, f := range factorsOf(v) {
		if terms := onePlus(f); x == nil && len(terms) == 1 && elem(terms[0], array.Exp) != nil {
			x = argument(terms[0], array.Exp)
		} else {
			rest = append(rest, f)
		}
	}
	return x, rest
}

func inv1PlusExp(c *rewrite.Context, n *apply) (result, error) {
	x, rest := onePlusExp(n.Inputs()[0])
	if x == nil || len(rest) > 0 {
		return c.Miss("the argument is not 1 + exp(x)"), nil
	}
	return replace(c, n, tensor.Sigmoid(opposite(x)), n.Inputs()...)
}

func oneMinusSigmoid(c *rewrite.Context, n *apply) (result, error) {
	in := n.Inputs()
	one, s := in[0], in[len(in)-1]
	if op, _ := elemOf(n); op == array.Add { // as canonicalize writes it: 1 + -1*sigmoid(x)
		if len(in) != 2 || !usedOnce(s) || negated(s) == nil {
			return c.Miss("it is not a difference"), nil
		}
		s = negated(s)
	}
	x := argument(s, array.Sigmoid)
	if x == nil || !usedOnce(s) || !is(one, 1) {
		return c.Miss("it is not 1 minus a sigmoid with a single use"), nil
	}
	if op, ok := elemOf(onlyClient(n.Out())); ok && op == array.Log {
		return c.Miss("log1msigm_to_softplus rewrites it"), nil
	}
	return replace(c, n, tensor.Sigmoid(opposite(x)), n.Inputs()...)
}

func sigmTimesExp(c *rewrite.Context, n *apply) (result, error) {
	client := onlyClient(n.Out())
	if op, ok := elemOf(client); ok && op == array.Mul && dtypeOf(client.Out()) == dtypeOf(n.Out()) {
		return c.Miss("it is a factor of a product, which is rewritten as a whole"), nil
	}
	in, _ := products.terms(n.Out())
	exps := make(map[signed][]*variable) // by the argument
	for _, v := range in {
		if x := argument(v, array.Exp); x != nil {
			key := signOf(x)
			exps[key] = append(exps[key], v)
		}
	}
	if len(exps) == 0 {
		return c.Miss("no factor is an exponential"), nil
	}
	var pairs, gone []*variable
	for _, v := range in {
		x := argument(v, array.Sigmoid)
		if x == nil {
			continue
		}
		key := signOf(x)
		key.minus = !key.minus
		if list := exps[key]; len(list) > 0 {
			exps[key] = list[1:]
			pairs = append(pairs, tensor.Sigmoid(argument(list[0], array.Exp)))
			gone = append(gone, v, list[0])
		}
	}
	if len(pairs) == 0 {
		return c.Miss("it has no factors sigmoid(x) and exp(-x)"), nil
	}
	rest, _, _ := cancel(in, gone)
	return replace(c, n, product(append(rest, pairs...)...), in...)
}

// signed is a variable, or its negation.
type signed struct {
	v     *variable
	minus bool
}

// signOf strips the negations off v.
func signOf(v *variable) signed {
	s := signed{v: v}
	for x := negated(v); x != nil; x = negated(x) {
		s = signed{x, !s.minus}
	}
	return s
}

func logSigmoid(c *rewrite.Context, n *apply) (result, error) {
	s, chain := viewed(n.Inputs()[0])
	x := argument(s, array.Sigmoid)
	if x == nil {
		return c.Miss("the argument is not a sigmoid or a part of one"), nil
	}
	return replace(c, n, viewAgain(tensor.Neg(tensor.Softplus(opposite(x))), chain))
}

func logOneMinusSigmoid(c *rewrite.Context, n *apply) (result, error) {
	a := elem(n.Inputs()[0], array.Sub)
	if a == nil || !is(a.Inputs()[0], 1) || elem(a.Inputs()[1], array.Sigmoid) == nil {
		return c.Miss("the argument is not 1 minus a sigmoid"), nil
	}
	return replace(c, n, tensor.Neg(tensor.Softplus(argument(a.Inputs()[1], array.Sigmoid))), a.Inputs()...)
}

func log1pNegSigmoid(c *rewrite.Context, n *apply) (result, error) {
	s := negated(n.Inputs()[0])
	if s == nil || elem(s, array.Sigmoid) == nil {
		return c.Miss("the argument is not a negated sigmoid"), nil
	}
	return replace(c, n, tensor.Neg(tensor.Softplus(argument(s, array.Sigmoid))))
}
