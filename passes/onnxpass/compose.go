package onnxpass

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
)

// composeFunctions recognize the parts of an operator.
func composeFunctions(v vocabulary) []pattern.Function {
	return []pattern.Function{
		pattern.NewGuard("private(x)", 0, "whatever is computed of x for the result is used for it alone", private),
		opsetGuard(7), opsetGuard(8), opsetGuard(13),
		pattern.NewGuard("hard_swish({a})", 1, "a HardSigmoid has the line of HardSwish", func(a pattern.Args) bool {
			op := parse(a.Params[0])
			return near(float64(op.Float("alpha", 0.2)), 1./6) && near(float64(op.Float("beta", 0.5)), 0.5)
		}),
		pattern.NewGuard("erf_of(t, x)", 0, "t is x/√2", func(a pattern.Args) bool {
			return isPolynomial(a.Vars[0], a.Vars[1], polynomial{0, math.Sqrt2 / 2})
		}),
		pattern.NewGuard("tanh_of(t, x)", 0, "t is (x + 0.044715x³)√(2/π)", func(a pattern.Args) bool {
			k := math.Sqrt(2 / math.Pi)
			return isPolynomial(a.Vars[0], a.Vars[1], polynomial{0, k, 0, 0.044715 * k})
		}),
		pattern.NewGuard("exponential(x)", 2, "x is an Exp", func(a pattern.Args) bool { return isOp(a.Vars[0], "Exp") }),

		pattern.NewGuard("same_reduction({k}, {l}, x, i, j)", 1, "reductions of x over the dimensions i and j keep dimensions and are over the same", func(a pattern.Args) bool {
			p, ok := keptAxes(a.Params[0], a.Vars[0], a.Vars[1])
			q, too := keptAxes(a.Params[1], a.Vars[0], a.Vars[2])
			return ok && too && slices.Equal(p, q)
		}),
		pattern.NewGuard("trailing({k}, x, i)", 1, "a reduction of x is over the last dimensions i, whose sizes are known, and keeps them", func(a pattern.Args) bool {
			_, ok := trailing(a.Params[0], a.Vars[0], a.Vars[1])
			return ok
		}),
		attributesFunction("norm({k}, x, i, e)", "the attributes of a normalization of x over the dimensions i with the term e", func(a pattern.Args, _ attributeList) attributeList {
			sizes, _ := trailing(a.Params[0], a.Vars[0], a.Vars[1])
			return attributeList{ir.Int("axis", -int64(len(sizes))), ir.Float("epsilon", numberAt(a, 2))}
		}),
		pattern.NewBuilder("(ones x i)", 1, "ones with the sizes of the dimensions i of x, which are the last", func(a pattern.Args) (*fgraph.Variable, error) {
			sizes, ok := trailing(Attributes(""), a.Vars[0], a.Vars[1])
			if !ok {
				return nil, fmt.Errorf("%w: unknown sizes", errNotComputed)
			}
			return ir.Filled(1, ir.TypeOf(a.Vars[0]).Elem(), sizes...)
		}),
		pattern.NewGuard("sized_like(g, n)", 2, "g has the shape of the dimensions that n is normalized over", func(a pattern.Args) bool {
			g, ranked := ir.TypeOf(a.Vars[0]).Shape()
			dims, ok := normalizedOver(a.Vars[1])
			return ok && ranked && ir.TypeOf(a.Vars[0]).Elem() == ir.TypeOf(a.Vars[1]).Elem() && slices.EqualFunc(g, dims, ir.Dim.Same)
		}),
		pattern.NewGuard("within(g, n)", 2, "g is broadcast to the shape of the dimensions that n is normalized over", func(a pattern.Args) bool {
			g, ranked := ir.TypeOf(a.Vars[0]).Shape()
			dims, ok := normalizedOver(a.Vars[1])
			if !ok || !ranked || len(g) > len(dims) {
				return false
			}
			for i, d := range g {
				if !d.Is(1) && !d.Same(dims[len(dims)-len(g)+i]) {
					return false
				}
			}
			return true
		}),
		pattern.NewGuard("spatial({k}, x, i)", 1, "a reduction of x is over the dimensions i, which are all behind that of channels, and keeps them", func(a pattern.Args) bool {
			axes, ok := keptAxes(a.Params[0], a.Vars[0], a.Vars[1])
			rank := ir.TypeOf(a.Vars[0]).Rank()
			return ok && rank >= 3 && len(axes) == rank-2 && axes[0] == 2
		}),
		pattern.NewGuardOfEach("image(x)", 1, "x has at least two dimensions behind that of channels", func(x *fgraph.Variable) bool { return ir.TypeOf(x).Rank() >= 4 }),
		pattern.NewGuard("of_norm(x, m)", 0, "m, a mean of x, is a part of a normalization: it is subtracted from x, or x is a square", func(a pattern.Args) bool {
			x, m := a.Vars[0], a.Vars[1]
			if isOp(x, "Pow", "Mul") {
				return true
			}
			return slices.ContainsFunc(m.Clients(), func(c fgraph.Client) bool {
				return c.Apply != nil && isOp(c.Apply.Out(), "Sub") && slices.Contains(c.Apply.Inputs(), x)
			})
		}),
		attributesFunction("epsilon_of(e)", "the attribute epsilon", func(a pattern.Args, _ attributeList) attributeList {
			return attributeList{ir.Float("epsilon", numberAt(a, 0))}
		}),
		pattern.NewBuilder("(channel_of c x)", 1, "the number c for each channel of x", func(a pattern.Args) (*fgraph.Variable, error) {
			dims, ranked := ir.TypeOf(a.Vars[1]).Shape()
			if !ranked || len(dims) < 2 {
				return nil, fmt.Errorf("%w: no channels", errNotComputed)
			}
			size, known := dims[1].Number()
			c, ok := ir.NumberOf(a.Vars[0])
			if !known || !ok {
				return nil, fmt.Errorf("%w: an unknown number of channels", errNotComputed)
			}
			return ir.Filled(c, ir.TypeOf(a.Vars[1]).Elem(), size)
		}),
		pattern.NewGuard("reducing({a}, x, i)", 1, "a reduction of x, which has dimensions, is over those of the constant i, or over all", func(a pattern.Args) bool {
			if ir.TypeOf(a.Vars[0]).Rank() < 1 {
				return false
			}
			if len(a.Vars) == 1 || ir.IsOmitted(a.Vars[1]) {
				return parse(a.Params[0]).Int("noop_with_empty_axes", 0) == 0
			}
			list, ok := ir.NumbersOf(a.Vars[1])
			return ok && len(list) > 0 && isConstant(a.Vars[1])
		}),
		attributesFunction("keepdims({a})", "whether a reduction keeps dimensions", func(a pattern.Args, list attributeList) attributeList {
			return list.without("noop_with_empty_axes")
		}),
		pattern.NewGuard("one_axis({k}, x, i)", 1, "a reduction of x is over one dimension i, and keeps it", func(a pattern.Args) bool {
			axes, ok := keptAxes(a.Params[0], a.Vars[0], a.Vars[1])
			return ok && len(axes) == 1
		}),
		attributesFunction("axis_of(x, i)", "the attribute axis", func(a pattern.Args, _ attributeList) attributeList {
			return attributeList{ir.Int("axis", int64(axisAt(a)))}
		}),
		attributesFunction("lp_1(x, i)", "the attributes of a norm of absolute values", func(a pattern.Args, _ attributeList) attributeList {
			return attributeList{ir.Int("axis", int64(axisAt(a))), ir.Int("p", 1)}
		}),
		attributesFunction("lp_2(x, i)", "the attributes of a norm of squares", func(a pattern.Args, _ attributeList) attributeList {
			return attributeList{ir.Int("axis", int64(axisAt(a))), ir.Int("p", 2)}
		}),
	}
}

// opsetGuard returns the guard opset_N.
func opsetGuard(n int64) pattern.Function {
	return pattern.NewGuard(fmt.Sprintf("opset_%d(x)", n), 1, fmt.Sprintf("the model that x is from has version %d of the operators of ONNX, or a newer one", n), func(a pattern.Args) bool {
		return a.Context != nil && ir.SourceOf(a.Context.Graph()).Opset("") >= n
	})
}

// maxParts bounds the nodes that are parts of one.
const maxParts = 32

// private reports whether all values between some and the root have no uses elsewhere.
func private(a pattern.Args) bool {
	parts := map[*fgraph.Apply]bool{a.Root: true}
	queue := []*fgraph.Apply{a.Root}
	for i := 0; i < len(queue); i++ {
		for _, v := range queue[i].Inputs() {
			if slices.Contains(a.Vars, v) || v.IsConstant() {
				continue
			}
			b := v.Owner()
			if b == nil || len(queue) > maxParts {
				return false
			}
			if !parts[b] {
				parts[b] = true
				queue = append(queue, b)
			}
		}
	}
	for _, b := range queue[1:] {
		for _, v := range b.Outputs() {
			for _, c := range v.Clients() {
				if c.Apply == nil || !parts[c.Apply] {
					return false
				}
			}
		}
	}
	return true
}

// keptAxes returns the dimensions, in order, that a reduction with captured attributes is over. ok is
// false if they are not known, all that there are because none is given, or not kept.
func keptAxes(captured any, x, axes *fgraph.Variable) (list []int, ok bool) {
	rank := ir.TypeOf(x).Rank()
	numbers, known := ir.NumbersOf(axes)
	if rank < 0 || !known || len(numbers) == 0 || parse(captured).Int("keepdims", 1) != 1 {
		return nil, false
	}
	for _, n := range numbers {
		k, in := normalized(n, rank)
		if !in || slices.Contains(list, k) {
			return nil, false
		}
		list = append(list, k)
	}
	slices.Sort(list)
	return list, true
}

// trailing returns the sizes of dimensions that a reduction is over if they are the last ones.
func trailing(captured any, x, axes *fgraph.Variable) (sizes []int64, ok bool) {
	list, ok := keptAxes(captured, x, axes)
	dims, _ := ir.TypeOf(x).Shape()
	if !ok || list[0] != len(dims)-len(list) {
		return nil, false
	}
	for _, k := range list {
		n, known := dims[k].Number()
		if !known {
			return nil, false
		}
		sizes = append(sizes, n)
	}
	return sizes, true
}

// normalizedOver returns the sizes of the dimensions over which LayerNormalization normalizes.
func normalizedOver(n *fgraph.Variable) ([]ir.Dim, bool) {
	if !isOp(n, "LayerNormalization") || len(n.Owner().Outputs()) != 1 {
		return nil, false
	}
	dims, ranked := ir.TypeOf(n).Shape()
	axis, ok := axisOf(opOf(n), -1, len(dims))
	if !ranked || !ok {
		return nil, false
	}
	return dims[axis:], true
}

// axisAt returns the dimension of Vars[0] that Vars[1] is, for which one_axis holds.
func axisAt(a pattern.Args) int {
	list, ok := keptAxes(Attributes(""), a.Vars[0], a.Vars[1])
	if !ok || len(list) != 1 {
		return 0
	}
	return list[0] - ir.TypeOf(a.Vars[0]).Rank()
}

// A polynomial has the factor of x to the power of k at k.
type polynomial []float64

// maxDegree bounds polynomials.
const maxDegree = 3

// isPolynomial reports whether t is a polynomial of x, however it is written.
func isPolynomial(t, x *fgraph.Variable, want polynomial) bool {
	got, ok := polynomialOf(t, x)
	if !ok {
		return false
	}
	for k := range max(len(got), len(want)) {
		p, q := got.at(k), want.at(k)
		// Numbers in models are given with as few as four digits: 0.7978, 1.4142.
		if math.Abs(p-q) > 1e-4*math.Abs(q) {
			return false
		}
	}
	return true
}

func (p polynomial) at(k int) float64 {
	if k < len(p) {
		return p[k]
	}
	return 0
}

// polynomialOf returns the polynomial of x that t is.
func polynomialOf(t, x *fgraph.Variable) (polynomial, bool) {
	known := map[*fgraph.Variable]polynomial{x: {0, 1}}
	order, ok := between(t, x)
	if !ok {
		return nil, false
	}
	operand := func(v *fgraph.Variable) (polynomial, bool) {
		if p, ok := known[v]; ok {
			return p, true
		}
		f, ok := ir.NumberOf(v)
		return polynomial{f}, ok && isNumberFor(x, v)
	}
	for _, a := range order {
		in := a.Inputs()
		p, ok := operand(in[0])
		q, too := polynomial{0}, true
		if len(in) == 2 {
			q, too = operandOf(a, 1, operand)
		}
		if !ok || !too || len(in) > 2 {
			return nil, false
		}
		var r polynomial
		switch v := a.Out(); {
		case isOp(v, "Add"):
			r = p.plus(q, 1)
		case isOp(v, "Sub"):
			r = p.plus(q, -1)
		case isOp(v, "Neg"):
			r = p.times(polynomial{-1})
		case isOp(v, "Mul"):
			r = p.times(q)
		case isOp(v, "Div") && len(q) == 1 && q[0] != 0:
			r = p.times(polynomial{1 / q[0]})
		case isOp(v, "Pow") && len(q) == 1 && (q[0] == 2 || q[0] == 3):
			if r = p.times(p); q[0] == 3 {
				r = r.times(p)
			}
		default:
			return nil, false
		}
		if len(r) > maxDegree+1 {
			return nil, false
		}
		known[a.Out()] = r
	}
	p, ok := known[t]
	return p, ok
}

// operandOf returns an operand. The exponent of a Pow may have another type.
func operandOf(a *fgraph.Apply, k int, operand func(*fgraph.Variable) (polynomial, bool)) (polynomial, bool) {
	v := a.Inputs()[k]
	if isOp(a.Out(), "Pow") {
		f, ok := ir.NumberOf(v)
		return polynomial{f}, ok && ir.ValueOf(v).Len() == 1
	}
	return operand(v)
}

func (p polynomial) plus(q polynomial, factor float64) polynomial {
	r := make(polynomial, max(len(p), len(q)))
	for k := range r {
		r[k] = p.at(k) + float64(factor*q.at(k))
	}
	return r
}

func (p polynomial) times(q polynomial) polynomial {
	r := make(polynomial, len(p)+len(q)-1)
	for i, f := range p {
		for k, g := range q {
			r[i+k] += float64(f * g)
		}
	}
	return r
}

// between returns the applies that compute t of x and constants, inputs first. ok is false if t needs
// something else, or many.
func between(t, x *fgraph.Variable) (order []*fgraph.Apply, ok bool) {
	visited := make(map[*fgraph.Apply]bool)
	stack := []*fgraph.Variable{t}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		a := v.Owner()
		if v == x || v.IsConstant() || a != nil && visited[a] {
			stack = stack[:len(stack)-1]
			continue
		}
		if a == nil || len(a.Outputs()) != 1 || len(stack) > maxParts {
			return nil, false
		}
		open := false
		for _, w := range a.Inputs() {
			if b := w.Owner(); w != x && !w.IsConstant() && (b == nil || !visited[b]) {
				stack = append(stack, w)
				open = true
			}
		}
		if !open {
			visited[a] = true
			order = append(order, a)
			stack = stack[:len(stack)-1]
		}
	}
	return order, true
}
