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

// complements are the rules between erf and erfc = 1 - erf. Written as 1 - erf(x) a small result would have lost its digits.
func complements() []rewrite.NodeRewriter {
	var rules []rewrite.NodeRewriter
	for _, r := range []struct{ name, in, out string }{
		{"local_one_minus_erf", "(sub 1 (erf x))", "(erfc x)"},
		{"local_one_minus_erf2", "(add 1 (mul -1 (erf x)))", "(erfc x)"},
		{"local_one_plus_neg_erf", "(add 1 (neg (erf x)))", "(erfc x)"},
		{"local_one_plus_erf", "(add 1 (erf x))", "(erfc (neg x))"},
		{"local_erf_minus_one", "(or (sub (erf x) 1) (add -1 (erf x)))", "(neg (erfc x))"},
		{"local_one_minus_erfc", "(sub 1 (erfc x))", "(erf x)"},
		{"local_one_add_neg_erfc", "(or (add 1 (neg (erfc x))) (add 1 (mul -1 (erfc x))))", "(erf x)"},
		{"local_erf_neg_minus_one", "(or (sub -1 (erf (neg x))) (sub -1 (erf (mul -1 x))))", "(neg (erfc x))"},
	} {
		rules = append(rules, complement{pattern.Must(Vocabulary{}, r.in, r.out, pattern.Named(r.name), pattern.Doc("the complement of the error function is an op: "+r.in+" → "+r.out))})
	}
	return rules
}

// complement is a pattern that is matched only where there is an erf or erfc: sums are many, and these few.
type complement struct{ *pattern.Substitution }

// Transform matches the pattern.
func (r complement) Transform(c *rewrite.Context, n *apply) (result, error) {
	if len(n.Inputs()) == 2 && (computesErf(n.Inputs()[0], 2) || computesErf(n.Inputs()[1], 2)) {
		return r.Substitution.Transform(c, n)
	}
	return c.Miss("neither term is an error function or a multiple of one"), nil
}

// computesErf reports whether v is an error function, or computed from one by a product or a negation.
func computesErf(v *vari, depth int) bool {
	op, ok := elemOf(v.Owner())
	switch {
	case !ok:
		return false
	case op == array.Erf || op == array.Erfc:
		return true
	case op == array.Mul && depth > 1, op == array.Neg && depth > 1:
		return slices.ContainsFunc(v.Owner().Inputs(), func(w *vari) bool { return computesErf(w, depth-1) })
	}
	return false
}

// The arguments above which erfc(x) is so small that its logarithm and its inverse are computed by the asymptotic series, by type of
// elements. They are Theano's: from there on erfc is no normal number any more.
var (
	logErfcLimit     = map[array.DType]float64{array.Float32: 10.0541949, array.Float64: 26.641747557}
	gradLogErfcLimit = map[array.DType]float64{array.Float32: 9.3, array.Float64: 26.641747557}
)

// erfcSeries returns 1 - 1/(2x²) + 3/(4x⁴) - 15/(8x⁶) + 105/(16x⁸), of which exp(-x²)/(x·sqrt(π)) times is erfc(x) for large x (Abramowitz and
// Stegun, 7.1.23).
func erfcSeries(x *vari) *vari {
	t := tensor.Map(array.Inv, tensor.Sqr(x))
	s := number(105.0/16, x)
	for _, k := range []float64{-15.0 / 8, 3.0 / 4, -1.0 / 2, 1} {
		s = tensor.Add(number(k, x), tensor.Mul(t, s))
	}
	return s
}

// logErfc is local_log_erfc.
func logErfc() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_log_erfc", Doc: "log(erfc(x)) is computed by a series where erfc underflows", On: on(array.Log), Depth: 2,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a := elem(n.Inputs()[0], array.Erfc)
			if a == nil {
				return c.Miss("the argument is no erfc"), nil
			}
			x := a.Inputs()[0]
			limit, ok := logErfcLimit[typ(x).DType()]
			if !ok || guarded(n.Out(), x, limit) {
				return c.Miss("that has been done"), nil
			}
			series := tensor.Sub(tensor.Log(erfcSeries(x)), tensor.Add(tensor.Sqr(x), tensor.Log(x), number(elementary.Log(math.Pi)/2, x)))
			return guard(n, x, limit, series)
		},
	}
}

// guard proposes the series where x is above the limit, and below it what n computes.
func guard(n *apply, x *vari, limit float64, series *vari) (result, error) {
	again := fgraph.NewApply(n.Op(), n.Inputs(), n.Out().Type()).Out()
	return rewrite.Replace(tensor.Switch(tensor.Map(array.Lt, x, number(limit, x)), again, series)), nil
}

// guarded reports whether v is what guard leaves of an apply. The permutations of dimensions that local_dimshuffle_lift is moving through the
// switch may lie between.
func guarded(v, x *vari, limit float64) bool {
	limit, _ = uniform(number(limit, x)) // rounded to float32, if that is what x is
	x = unshuffled(x)
	todo := []*vari{v}
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
func unshuffled(v *vari) *vari {
	for {
		a, _, ok := owner[tensor.DimShuffleOp](v)
		if !ok {
			return v
		}
		v = a.Inputs()[0]
	}
}

// gradLogErfc is local_grad_log_erfc_neg.
func gradLogErfc() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_grad_log_erfc_neg", Doc: "exp(-x²)/erfc(x), as in the gradient of log(erfc(x)), is computed by a series where both underflow; it was NaN there", On: on(array.TrueDiv), Depth: 5,
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			a := elem(n.Inputs()[1], array.Erfc)
			if a == nil {
				return c.Miss("the denominator is no erfc"), nil
			}
			x := a.Inputs()[0]
			limit, ok := gradLogErfcLimit[typ(x).DType()]
			if !ok || guarded(n.Out(), x, limit) {
				return c.Miss("that has been done"), nil
			}
			factors := []*vari{n.Inputs()[0]}
			if m := elem(n.Inputs()[0], array.Mul); m != nil {
				factors = m.Inputs()
			}
			found := false
			rest := []*vari{}
			for _, f := range factors {
				if e := elem(f, array.Exp); e != nil && !found && isMinusSquare(e.Inputs()[0], x) {
					found = true
				} else {
					rest = append(rest, f)
				}
			}
			if !found {
				return c.Miss("the numerator has no factor exp(-x²)"), nil
			}
			series := tensor.TrueDiv(tensor.Mul(append(rest, x, number(math.Sqrt(math.Pi), x))...), erfcSeries(x))
			return guard(n, x, limit, series)
		},
	}
}

// isMinusSquare reports whether v is -x², in one of the ways in which that is written.
func isMinusSquare(v, x *vari) bool {
	if v.Owner() == nil {
		return false
	}
	s := negated(v.Owner())
	if s == nil { // -1*x*x
		a := elem(v, array.Mul)
		return a != nil && len(a.Inputs()) == 3 && is(a.Inputs()[0], -1) && a.Inputs()[1] == x && a.Inputs()[2] == x
	}
	if a := elem(s, array.Sqr); a != nil {
		return a.Inputs()[0] == x
	}
	if a := elem(s, array.Mul); a != nil {
		return len(a.Inputs()) == 2 && a.Inputs()[0] == x && a.Inputs()[1] == x
	}
	if a := elem(s, array.Pow); a != nil {
		return a.Inputs()[0] == x && is(a.Inputs()[1], 2)
	}
	return false
}
