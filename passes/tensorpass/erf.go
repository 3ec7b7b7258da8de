package tensorpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/kernel/elementary"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// erfRules lists the rules between erf and erfc = 1 - erf. As 1 - erf(x), a small result would have
// lost its digits.
func erfRules() []Local {
	var rules []Local
	for _, r := range []struct{ name, in, out string }{
		{"local_one_minus_erf2", "(add 1 (mul -1 (erf x)))", "(erfc x)"},
		{"local_one_plus_neg_erf", "(add 1 (neg (erf x)))", "(erfc x)"},
		{"local_one_plus_erf", "(add 1 (erf x))", "(erfc (neg x))"},
		{"local_erf_minus_one", "(or (sub (erf x) 1) (add -1 (erf x)))", "(neg (erfc x))"},
		{"local_one_minus_erfc", "(sub 1 (erfc x))", "(erf x)"},
		{"local_one_add_neg_erfc", "(or (add 1 (neg (erfc x))) (add 1 (mul -1 (erfc x))))", "(erf x)"},
		{"local_erf_neg_minus_one", "(or (sub -1 (erf (neg x))) (sub -1 (erf (mul -1 x))))", "(neg (erfc x))"},
	} {
		doc := pattern.Doc("the complement of the error function is an op: " + r.in + " → " + r.out)
		rules = append(rules, local(Canonicalize|Stabilize|Specialize,
			complement{pattern.Must(vocabulary{}, r.in, r.out, pattern.Named(r.name), doc)}))
	}
	return rules
}

// complement is a pattern that is matched only where there is an erf or erfc: sums are many, and
// these are few.
type complement struct{ *pattern.Substitution }

// Transform matches the pattern.
func (r complement) Transform(c *rewrite.Context, n *apply) (result, error) {
	if len(n.Inputs()) == 2 && (computesErf(n.Inputs()[0], 2) || computesErf(n.Inputs()[1], 2)) {
		return r.Substitution.Transform(c, n)
	}
	return c.Miss("neither term is a multiple of an error function"), nil
}

// computesErf reports whether v is an error function, or a product or negation of one.
func computesErf(v *variable, depth int) bool {
	switch op, ok := elemOf(v.Owner()); {
	case !ok:
		return false
	case op == array.Erf || op == array.Erfc:
		return true
	case op == array.Mul && depth > 1, op == array.Neg && depth > 1:
		return slices.ContainsFunc(v.Owner().Inputs(), func(w *variable) bool { return computesErf(w, depth-1) })
	}
	return false
}

// The arguments above which the logarithm and the inverse of erfc come from the asymptotic series,
// by element type. They are Theano's: from there on erfc is subnormal.
var (
	logErfcLimit     = map[array.DType]float64{array.Float32: 10.0541949, array.Float64: 26.641747557}
	gradLogErfcLimit = map[array.DType]float64{array.Float32: 9.3, array.Float64: 26.641747557}
)

// erfcSeries returns 1 - 1/(2x²) + 3/(4x⁴) - 15/(8x⁶) + 105/(16x⁸). For large x, erfc(x) is
// exp(-x²)/(x·sqrt(π)) times that (Abramowitz and Stegun, 7.1.23).
func erfcSeries(x *variable) *variable {
	t := tensor.Map(array.Inv, tensor.Sqr(x))
	s := number(105.0/16, x)
	for _, k := range []float64{-15.0 / 8, 3.0 / 4, -1.0 / 2, 1} {
		s = tensor.Add(number(k, x), tensor.Mul(t, s))
	}
	return s
}

func logErfc(c *rewrite.Context, n *apply) (result, error) {
	x := argument(n.Inputs()[0], array.Erfc)
	if x == nil {
		return c.Miss("the argument is not an erfc"), nil
	}
	limit, ok := logErfcLimit[dtypeOf(x)]
	if !ok || guarded(n.Out(), x, limit) {
		return c.Miss("a switch guards it already, or x is an integer"), nil
	}
	series := tensor.Sub(tensor.Log(erfcSeries(x)), tensor.Add(tensor.Sqr(x), tensor.Log(x), number(elementary.Log(math.Pi)/2, x)))
	return guard(n, x, limit, series)
}

func gradLogErfc(c *rewrite.Context, n *apply) (result, error) {
	x := argument(n.Inputs()[1], array.Erfc)
	if x == nil {
		return c.Miss("the denominator is not an erfc"), nil
	}
	limit, ok := gradLogErfcLimit[dtypeOf(x)]
	if !ok || guarded(n.Out(), x, limit) {
		return c.Miss("a switch guards it already, or x is an integer"), nil
	}
	factors := factorsOf(n.Inputs()[0])
	at := slices.IndexFunc(factors, func(f *variable) bool {
		e := argument(f, array.Exp)
		return e != nil && isMinusSquare(e, x)
	})
	if at < 0 {
		return c.Miss("the numerator has no factor exp(-x²)"), nil
	}
	series := tensor.TrueDiv(tensor.Mul(append(without(factors, at), x, number(math.Sqrt(math.Pi), x))...), erfcSeries(x))
	return guard(n, x, limit, series)
}

// isMinusSquare reports whether v is -x², however it is written.
func isMinusSquare(v, x *variable) bool {
	s := negated(v)
	if s == nil { // -1*x*x
		a := elem(v, array.Mul)
		return a != nil && len(a.Inputs()) == 3 && is(a.Inputs()[0], -1) && a.Inputs()[1] == x && a.Inputs()[2] == x
	}
	a := s.Owner()
	switch op, ok := elemOf(a); {
	case !ok || a.Inputs()[0] != x:
		return false
	case op == array.Mul:
		return len(a.Inputs()) == 2 && a.Inputs()[1] == x
	case op == array.Pow:
		return is(a.Inputs()[1], 2)
	default:
		return op == array.Sqr
	}
}

// guard proposes a switch: the series where x is above the limit, and what n computes elsewhere.
func guard(n *apply, x *variable, limit float64, series *variable) (result, error) {
	same := fgraph.NewApply(n.Op(), n.Inputs(), n.Out().Type()).Out()
	return rewrite.Replace(tensor.Switch(tensor.Map(array.Lt, x, number(limit, x)), same, series)), nil
}

// guarded reports whether guard has made a switch for v. Between the two there may be permutations
// of dimensions that local_dimshuffle_lift is moving through the switch.
func guarded(v, x *variable, limit float64) bool {
	limit, _ = uniform(number(limit, x)) // rounded to float32 if x is
	x = unshuffled(x)
	todo := []*variable{v}
	for len(todo) > 0 {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		for _, client := range v.Clients() {
			if client.Apply == nil {
				continue
			}
			if _, ok := client.Apply.Op().(tensor.DimShuffleOp); ok {
				todo = append(todo, client.Apply.Out())
				continue
			}
			if op, _ := elemOf(client.Apply); op == array.Switch && client.Index == 1 {
				lt := elem(unshuffled(client.Apply.Inputs()[0]), array.Lt)
				if lt != nil && unshuffled(lt.Inputs()[0]) == x && is(lt.Inputs()[1], limit) {
					return true
				}
			}
		}
	}
	return false
}

// unshuffled looks through permutations of dimensions.
func unshuffled(v *variable) *variable {
	for {
		a, _, ok := owner[tensor.DimShuffleOp](v)
		if !ok {
			return v
		}
		v = a.Inputs()[0]
	}
}
