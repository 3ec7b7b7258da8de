package tensorpass

import (
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

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

// signOf strips the negations off v, unless they wrap around.
func signOf(v *variable) signed {
	s := signed{v: v}
	for x := negated(v); x != nil && isWide(x); x = negated(x) {
		s = signed{x, !s.minus}
	}
	return s
}
