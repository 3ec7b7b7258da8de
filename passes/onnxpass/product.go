package onnxpass

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// productFunctions are about Gemm and MatMul.
var productFunctions = []pattern.Function{
	pattern.NewGuardOfEach("matrix(x)", 1, "x has two dimensions", func(v *fgraph.Variable) bool { return ir.TypeOf(v).Rank() == 2 }),
	pattern.NewGuard("bias_of(c, n)", 1, "c can be the term of a Gemm that computes the matrix n: it is broadcast to n", func(a pattern.Args) bool {
		return broadcastTo(a.Vars[0], a.Vars[1])
	}),
	pattern.NewGuardOfEach("rows(b)", 1, "b is one row for all", func(b *fgraph.Variable) bool {
		sizes, known := ir.TypeOf(b).Numbers()
		return known && (len(sizes) < 2 || len(sizes) == 2 && sizes[0] == 1)
	}),
	pattern.NewGuard("plain_beta({a})", 1, "the factor of the term of a Gemm is 1", func(a pattern.Args) bool {
		return parse(a.Params[0]).Float("beta", 1) == 1
	}),
	pattern.NewGuard("plain({a})", 1, "a Gemm has no factors, and transposes nothing", func(a pattern.Args) bool {
		op := parse(a.Params[0])
		return !isScaled(op) && op.Int("transA", 0) == 0 && op.Int("transB", 0) == 0
	}),
	pattern.NewGuard("scaled({a})", 1, "a Gemm has factors", func(a pattern.Args) bool { return isScaled(parse(a.Params[0])) }),
	pattern.NewGuard("swaps({p})", 1, "a Transpose in front of a Gemm is that of a matrix", func(a pattern.Args) bool {
		perm := parse(a.Params[0]).Ints("perm")
		return perm == nil || slices.Equal(perm, []int64{1, 0})
	}),
	attributesFunction("without_beta({a})", "the attributes without beta", func(a pattern.Args, list attributeList) attributeList {
		return list.without("beta")
	}),
	attributesFunction("without_factors({a})", "the attributes without alpha and beta", func(a pattern.Args, list attributeList) attributeList {
		return list.without("alpha", "beta")
	}),
	attributesFunction("flip_a({a})", "the attributes of a Gemm whose left side is transposed", func(a pattern.Args, list attributeList) attributeList {
		return list.flipped("transA")
	}),
	attributesFunction("flip_b({a})", "the attributes of a Gemm whose right side is transposed", func(a pattern.Args, list attributeList) attributeList {
		return list.flipped("transB")
	}),
	attributesFunction("times({a}, s)", "the attributes of a Gemm whose result has the factor s", func(a pattern.Args, list attributeList) attributeList {
		s, _ := ir.NumberOf(a.Vars[0])
		op := &ir.Op{Attributes: list}
		alpha, beta := op.Float("alpha", 1), op.Float("beta", 1)
		return append(list.without("alpha", "beta"), ir.Float("alpha", alpha*float32(s)), ir.Float("beta", beta*float32(s)))
	}),
	attributeOf("(alpha_of n)", "the factor of the product of the Gemm n", "alpha", 1),
	attributeOf("(beta_of n)", "the factor of the term of the Gemm n", "beta", 1),
}

func isScaled(op *ir.Op) bool { return op.Float("alpha", 1) != 1 || op.Float("beta", 1) != 1 }

// broadcastTo reports whether x is broadcast to the shape of n, whatever unknown sizes are.
func broadcastTo(x, n *fgraph.Variable) bool {
	from, ranked := ir.TypeOf(x).Shape()
	to, too := ir.TypeOf(n).Shape()
	return ranked && too && fitsInto(from, to) && ir.TypeOf(x).Elem() == ir.TypeOf(n).Elem()
}

// fitsInto reports whether sizes are broadcast to others, which remain.
func fitsInto(from, to []ir.Dim) bool {
	if len(from) > len(to) {
		return false
	}
	for i, d := range from {
		if !d.Is(1) && !d.Same(to[len(to)-len(from)+i]) {
			return false
		}
	}
	return true
}

// An attributeList is what captured attributes are changed as.
type attributeList []*onnx.Attribute

// attributesFunction returns a function that computes attributes from captured ones.
func attributesFunction(usage, doc string, change func(a pattern.Args, list attributeList) attributeList) pattern.Function {
	name := usage
	if i := slices.Index([]byte(usage), '('); i >= 0 {
		name = usage[:i]
	}
	return pattern.Function{Name: name, Usage: usage, Doc: doc, Depth: 1, Param: func(a pattern.Args) (any, error) {
		var list attributeList
		if len(a.Params) > 0 {
			captured, ok := a.Params[0].(Attributes)
			if !ok {
				return nil, fmt.Errorf("%v are no attributes", a.Params[0])
			}
			if captured != "" {
				parsed, err := ir.ParseAttributes(string(captured))
				if err != nil {
					return nil, err
				}
				list = parsed
			}
		}
		return attributes(new(ir.Operators).Op("", change(a, list)...)), nil
	}}
}

// without returns the list without attributes of some names.
func (l attributeList) without(names ...string) attributeList {
	return slices.DeleteFunc(slices.Clone(l), func(a *onnx.Attribute) bool { return slices.Contains(names, a.Name) })
}

// flipped returns the list with an attribute 1 where it was 0, and without it where it was not.
func (l attributeList) flipped(name string) attributeList {
	if op := (&ir.Op{Attributes: l}); op.Int(name, 0) != 0 {
		return l.without(name)
	}
	return append(l.without(name), ir.Int(name, 1))
}

// with returns the list with an attribute in place of that of its name.
func (l attributeList) with(a *onnx.Attribute) attributeList { return append(l.without(a.Name), a) }

// maxDistance bounds the number of nodes between a factor and the weights that it is moved into.
const maxDistance = 12

// A step is a node between a factor and weights, by the result of it that is scaled.
type step struct {
	value *fgraph.Variable
	input int // of the node, which is scaled instead
	prev  int // the step that comes after it in the graph, -1 at the factor
}

// moveFactorIntoWeights looks for weights behind nodes that commute with factors, nearest first. Every
// value on the way has one use, because other uses would be scaled as well.
func moveFactorIntoWeights(c *rewrite.Context, root *fgraph.Apply) (rewrite.Result, error) {
	op := root.Op().(*ir.Op)
	if op.Domain != "" || op.Type != "Mul" && op.Type != "Div" {
		return c.Miss("it is no factor"), nil
	}
	in := root.Inputs()
	x, s := in[0], in[1]
	if op.Type == "Mul" && isConstant(x) {
		x, s = s, x
	}
	number, ok := ir.NumberOf(s)
	// A factor of several elements is one for channels, which other rules move.
	if v := ir.ValueOf(s); !ok || v.Len() != 1 || !sameType(x, root.Out()) || !isFloat(x) {
		return c.Miss("its factor is no number"), nil
	}
	// One over 0 is infinite, and no weights take that.
	if op.Type == "Div" {
		number = 1 / number
	}
	m := mover{vocabulary: vocabulary{operators: ir.SourceOf(c.Graph()).Operators}, args: pattern.Args{Context: c, Root: root}, number: number}
	steps := []step{{value: x, prev: -1}}
	for i := 0; i < len(steps) && i < maxDistance; i++ {
		v := steps[i].value
		if a := v.Owner(); a == nil || !usedOnce(v) || len(a.Outputs()) != 1 {
			continue
		}
		y, err := m.absorb(v)
		if err != nil {
			return rewrite.Result{}, err
		}
		if y == nil {
			for _, k := range m.through(v) {
				steps = append(steps, step{value: v.Owner().Inputs()[k], input: k, prev: i})
			}
			continue
		}
		if y, err = m.rebuild(steps, i, y); err != nil {
			return c.Miss("%v", err), nil
		}
		return rewrite.Replace(conform(root.Out(), y)), nil
	}
	return c.Miss("no weights were found that it could be moved into"), nil
}

func isFloat(v *fgraph.Variable) bool {
	switch ir.TypeOf(v).Elem() {
	case onnx.Float, onnx.Double, onnx.Float16, onnx.BFloat16:
		return true
	}
	return false
}

// A mover moves a number.
type mover struct {
	vocabulary
	args   pattern.Args
	number float64
}

// scaled returns a constant with the factor, nil if that is not finite.
func (m mover) scaled(c *fgraph.Variable) *fgraph.Variable {
	y, err := m.compute(m.args, func(b *ir.Builder) *fgraph.Variable { return b.Do("Mul", c, m.number) })
	if err != nil {
		return nil
	}
	return y
}

// absorb returns v with the factor, if a node with constant weights computes it.
func (m mover) absorb(v *fgraph.Variable) (*fgraph.Variable, error) {
	a := v.Owner()
	in := slices.Clone(a.Inputs())
	switch {
	case isOp(v, "MatMul", "Mul"):
		k := slices.IndexFunc(in, isConstant)
		if k < 0 {
			return nil, nil
		}
		in[k] = m.scaled(in[k])
		if in[k] == nil {
			return nil, nil
		}
	case isOp(v, "Conv", "ConvTranspose", "Gemm"):
		// The bias as well: the factor is one of the whole sum.
		for k := 1; k < len(in); k++ {
			if ir.IsOmitted(in[k]) {
				continue
			}
			if !isConstant(in[k]) {
				return nil, nil
			}
			if in[k] = m.scaled(in[k]); in[k] == nil {
				return nil, nil
			}
		}
	default:
		return nil, nil
	}
	return m.apply(a, in)
}

func (m mover) apply(a *fgraph.Apply, in []*fgraph.Variable) (*fgraph.Variable, error) {
	b, err := m.operators.Apply(a.Op().(*ir.Op), in...)
	if err != nil {
		return nil, err
	}
	return conform(a.Out(), b.Out()), nil
}

// through returns the inputs of the node of v, any of which may be scaled in place of v.
func (m mover) through(v *fgraph.Variable) []int {
	// What only adds or moves elements scales with them. A maximum does for positive factors alone. The
	// constant of a sum gets the factor when the way back is built.
	in := v.Owner().Inputs()
	switch {
	case isOp(v, "MatMul"):
		return []int{0, 1}
	case isOp(v, "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "Neg", "AveragePool", "GlobalAveragePool", "Div"):
		return []int{0}
	case isOp(v, "Relu", "LeakyRelu", "PRelu", "MaxPool", "GlobalMaxPool") && m.number > 0:
		return []int{0}
	case isOp(v, "Add", "Sub"):
		if k := slices.IndexFunc(in, isConstant); k >= 0 {
			return []int{1 - k}
		}
	}
	return nil
}

// rebuild returns x, the factor's operand, with y in place of the value of a step. The terms on the way
// are scaled.
func (m mover) rebuild(steps []step, i int, y *fgraph.Variable) (*fgraph.Variable, error) {
	for ; steps[i].prev >= 0; i = steps[i].prev {
		v := steps[steps[i].prev].value
		in := slices.Clone(v.Owner().Inputs())
		in[steps[i].input] = y
		if isOp(v, "Add", "Sub") {
			k := 1 - steps[i].input
			if in[k] = m.scaled(in[k]); in[k] == nil {
				return nil, fmt.Errorf("a term with the factor would not be finite")
			}
		}
		var err error
		if y, err = m.apply(v.Owner(), in); err != nil {
			return nil, err
		}
	}
	return y, nil
}

// sumOfSeveral takes the terms of all Adds of a chain at once, at the one that is computed last: were each of
// them made a Sum, a chain of n would copy n²/2 inputs. Terms stay in the order in which they are added, so no
// bit changes.
func sumOfSeveral(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	k := partialSum(a)
	if k < 0 {
		return c.Miss("it is no Add of a sum that nothing else reads and of a value that is no constant"), nil
	}
	if usedOnce(a.Out()) {
		if r := a.Out().Clients()[0]; partialSum(r.Apply) == r.Index {
			return c.Miss("the Add that reads it takes its terms"), nil
		}
	}
	if ir.SourceOf(c.Graph()).Opset("") < 8 {
		return c.Miss("a Sum doesn't broadcast in the model's version of the operators"), nil
	}
	var terms []*fgraph.Variable // the last one first
	b := a
	for k >= 0 {
		terms = append(terms, b.Inputs()[1-k])
		b = b.Inputs()[k].Owner()
		k = partialSum(b)
	}
	terms = append(terms, reversed(b.Inputs())...)
	slices.Reverse(terms)
	return remade(c, a, "Sum", terms...), nil
}

// partialSum returns which input of an Add is a sum whose terms it can take, -1 if none is. The other input is no
// constant: that stays in an Add, which other tools look for as a bias.
func partialSum(a *fgraph.Apply) int {
	if !isNode(a, "Add") || ir.TypeOf(a.Out()).Elem() != onnx.Float {
		return -1
	}
	for k, v := range a.Inputs() {
		if !isConstant(a.Inputs()[1-k]) && usedOnce(v) && isSum(v.Owner()) {
			return k
		}
	}
	return -1
}

// isSum reports whether an apply is a Sum, or an Add of what are no constants.
func isSum(a *fgraph.Apply) bool {
	return isNode(a, "Sum") && len(a.Inputs()) > 1 || isNode(a, "Add") && !slices.ContainsFunc(a.Inputs(), isConstant)
}
