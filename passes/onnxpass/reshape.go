package onnxpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// reshapeFunctions are guards of nodes that only change shapes.
var reshapeFunctions = []pattern.Function{
	pattern.NewGuard("copies_none({a}, s)", 1, "a Reshape to the sizes s copies none of its input: all are known not to be 0", func(a pattern.Args) bool {
		list, ok := ir.NumbersOf(a.Vars[0])
		return ok && (!slices.Contains(list, 0) || parse(a.Params[0]).Int("allowzero", 0) != 0)
	}),
}

// isNode reports whether an apply is one of an operator of ONNX's own, as it is today.
func isNode(a *fgraph.Apply, names ...string) bool {
	if a == nil {
		return false
	}
	op, ok := a.Op().(*ir.Op)
	return ok && op.Domain == "" && op.Legacy == 0 && slices.Contains(names, op.Type)
}

// isView reports whether an apply only gives its first input another shape: no element moves.
func isView(a *fgraph.Apply) bool {
	return isNode(a, "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity") ||
		isNode(a, "Transpose") && keepsOrder(a.Op().(*ir.Op), a.Inputs()[0])
}

// target returns sizes with which a Reshape gives x a shape. Those that x has in the same place are
// copied, and one other size that is no number follows from the number of elements. Where a size is
// 0 when the model runs, the latter could not be found beside one that is copied, so it may be open
// only if it is in the sizes that the model has, which may be nil.
func target(x *fgraph.Variable, dims []ir.Dim, given []ir.Dim) ([]int64, bool) {
	in, ranked := ir.TypeOf(x).Shape()
	list := make([]int64, len(dims))
	open, copied := -1, false
	for i, d := range dims {
		// In the list a 0 means a copy, so a size of 0 can only be one that is copied.
		n, ok := d.Number()
		switch {
		case ok && n != 0:
			list[i] = n
		case ranked && i < len(in) && in[i].Same(d):
			copied = true // also of a 0
		case !ok && open < 0:
			open = i
			list[i] = -1
		default:
			return nil, false
		}
	}
	// Beside a copied size of 0, -1 would be any number, and runtimes refuse it.
	if open >= 0 && copied && !(open < len(given) && len(given) == len(dims) && given[open].Is(-1)) {
		return nil, false
	}
	return list, true
}

// reshaped returns a Reshape of x to the shape that v has, or nil.
func reshaped(c *rewrite.Context, x, v *fgraph.Variable, given []ir.Dim) *fgraph.Variable {
	dims, ranked := ir.TypeOf(v).Shape()
	source := ir.SourceOf(c.Graph())
	if !ranked || source.Opset("") < 5 { // where the sizes are an attribute
		return nil
	}
	list, ok := target(x, dims, given)
	if !ok {
		return nil
	}
	r, err := source.Operators.Make("Reshape", nil, x, ir.Int64s(list...))
	if err != nil {
		return nil
	}
	if r = conform(v, r); !v.Type().Accepts(r.Type()) {
		return nil
	}
	return r
}

func constantReshape(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, "Reshape") {
		return c.Miss("it is no Reshape"), nil
	}
	x, s := a.Inputs()[0], a.Inputs()[1]
	if s.IsConstant() {
		return c.Miss("its sizes are constants"), nil
	}
	given, _ := ir.TypeOf(s).Data()
	r := reshaped(c, x, a.Out(), given)
	if r == nil {
		return c.Miss("more than one size of %v is neither a number nor one of %v", a.Out().Type(), x.Type()), nil
	}
	return rewrite.Replace(r), nil
}

func constantExpand(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, "Expand") || a.Inputs()[1].IsConstant() {
		return c.Miss("it is no Expand to sizes that are computed"), nil
	}
	x := a.Inputs()[0]
	in, ranked := ir.TypeOf(x).Shape()
	out, too := ir.TypeOf(a.Out()).Shape()
	if !ranked || !too || len(in) > len(out) {
		return c.Miss("%v or %v is not known", x.Type(), a.Out().Type()), nil
	}
	sizes := make([]int64, len(out))
	for i, d := range out {
		n, ok := d.Number()
		if k := i - len(out) + len(in); !ok && (k < 0 || !in[k].Same(d)) {
			return c.Miss("the size %v is not known", d), nil
		}
		sizes[i] = n
		if !ok {
			sizes[i] = 1 // which the size of x is broadcast to
		}
	}
	return remade(c, a, "Expand", x, ir.Int64s(sizes...)), nil
}

// maxViews is how far fuseReshapes looks. Most views become one with the view before, so that chains remain short.
const maxViews = 32

func fuseReshapes(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isView(a) {
		return c.Miss("it changes more than the shape"), nil
	}
	// From the tensor that had another shape first: what is nearest to it is best.
	var earlier []*fgraph.Variable
	for b := a; b != nil && isView(b) && len(earlier) < maxViews; b = b.Inputs()[0].Owner() {
		earlier = append(earlier, b.Inputs()[0])
	}
	for _, x := range slices.Backward(earlier) {
		if sameType(x, a.Out()) {
			return rewrite.Replace(x), nil
		}
	}
	var given []ir.Dim
	if isNode(a, "Reshape") {
		given, _ = ir.TypeOf(a.Inputs()[1]).Data()
	}
	for _, x := range slices.Backward(earlier[1:]) {
		if r := reshaped(c, x, a.Out(), given); r != nil {
			return rewrite.Replace(r), nil
		}
	}
	return c.Miss("no earlier tensor has the shape, or gets it by constant sizes"), nil
}

// axesOf returns the axes that an input has, of n dimensions, sorted.
func axesOf(a *fgraph.Apply, k, n int) ([]int, bool) {
	if k >= len(a.Inputs()) || n < 0 {
		return nil, false
	}
	list, ok := ir.NumbersOf(a.Inputs()[k])
	axes := make([]int, len(list))
	for i, x := range list {
		axis, exists := normalized(x, n)
		if !exists {
			return nil, false
		}
		axes[i] = axis
	}
	slices.Sort(axes)
	// A dimension that is there twice is a fault of the model, which must not vanish.
	return axes, ok && len(slices.Compact(slices.Clone(axes))) == len(axes)
}

// kept returns which of n dimensions remain without some.
func kept(n int, without []int) []int {
	var list []int
	for i := range n {
		if !slices.Contains(without, i) {
			list = append(list, i)
		}
	}
	return list
}

func int64sOf(list []int) *fgraph.Variable {
	return ir.Int64s(lists.Map(list, func(n int) int64 { return int64(n) })...)
}

// fuseAxes returns the rule that two nodes of an operator, which takes dimensions away or adds them, are one.
func fuseAxes(op string) func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	return func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
		if !isNode(a, op) || !isNode(a.Inputs()[0].Owner(), op) {
			return c.Miss("it is no %s of another one", op), nil
		}
		b := a.Inputs()[0].Owner()
		x := b.Inputs()[0]
		// Dimensions are those of the larger of both tensors: a Squeeze has them before, an Unsqueeze behind it. Those of
		// one node are what the other one leaves.
		whole, part, n, left := b, a, ir.TypeOf(x).Rank(), ir.TypeOf(b.Out()).Rank()
		if op == "Unsqueeze" {
			whole, part, n = a, b, ir.TypeOf(a.Out()).Rank()
		}
		all, ok := axesOf(whole, 1, n)
		more, too := axesOf(part, 1, left)
		if !ok || !too {
			return c.Miss("its dimensions are not known"), nil
		}
		rest := kept(n, all)
		for _, i := range more {
			all = append(all, rest[i])
		}
		slices.Sort(all)
		return remade(c, a, op, x, int64sOf(all)), nil
	}
}

// remade proposes an op of the name in place of a.
func remade(c *rewrite.Context, a *fgraph.Apply, name string, inputs ...*fgraph.Variable) rewrite.Result {
	return remadeWith(c, a, ir.SourceOf(c.Graph()).Operators.Op(name), inputs...)
}

// remadeWith proposes an op with one result in place of a.
func remadeWith(c *rewrite.Context, a *fgraph.Apply, op *ir.Op, inputs ...*fgraph.Variable) rewrite.Result {
	b, err := ir.SourceOf(c.Graph()).Operators.Apply(op, inputs...)
	if err != nil {
		return c.Miss("%v", err)
	}
	v := conform(a.Out(), b.Out())
	if !a.Out().Type().Accepts(v.Type()) {
		return c.Miss("the replacement has type %v, not %v", v.Type(), a.Out().Type())
	}
	return rewrite.Replace(v)
}

// sameSizes has tensors from which others are computed, with the same sizes: as far back as was found.
type sameSizes map[*fgraph.Variable]*fgraph.Variable

// firstOfSizes returns the tensor with the sizes of x that is furthest back, from input to input, which may be x. Of a
// chain of n nodes each may be asked for, so what was found is kept.
func firstOfSizes(c *rewrite.Context, x *fgraph.Variable) *fgraph.Variable {
	memo := rewrite.Memo[sameSizes](c)
	if *memo == nil {
		*memo = make(sameSizes)
	}
	var passed []*fgraph.Variable
	for {
		b := x.Owner()
		if b == nil || isNode(b, "If") { // of which only one branch is computed
			break
		}
		next := (*memo)[x]
		// It may have been replaced since, or be computed otherwise, and then from x.
		if next == nil || next.Owner() != nil && (!c.Graph().Contains(next.Owner()) || !c.Graph().ComesBefore(next.Owner(), b)) {
			i := slices.IndexFunc(b.Inputs(), func(v *fgraph.Variable) bool { return sameShape(v, x) && !v.IsConstant() })
			if i < 0 {
				break
			}
			next = b.Inputs()[i]
		}
		passed = append(passed, x)
		x = next
	}
	// All on the way have the same answer, so none of them is walked from again.
	for _, v := range passed {
		(*memo)[v] = x
	}
	return x
}

func shapeOfSame(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, "Shape", "Size") {
		return c.Miss("it is no Shape"), nil
	}
	best := firstOfSizes(c, a.Inputs()[0])
	if best == a.Inputs()[0] {
		return c.Miss("no tensor that its input is computed from has the same sizes"), nil
	}
	return remadeWith(c, a, a.Op().(*ir.Op), best), nil
}

// broadcasters are the operators that broadcast all their inputs to each other.
var broadcasters = []string{"Add", "Sub", "Mul", "Div", "Pow", "Mod", "And", "Or", "Xor", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual",
	"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift", "Where", "Max", "Min", "Sum", "Mean"}

func dropExpand(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	return withInputs(c, a, "is expanded", func(v *fgraph.Variable) *fgraph.Variable {
		if isNode(v.Owner(), "Expand") {
			return v.Owner().Inputs()[0]
		}
		return nil
	})
}

func dropFill(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	return withInputs(c, a, "is filled with a number", func(v *fgraph.Variable) *fgraph.Variable {
		if !isNode(v.Owner(), "ConstantOfShape") {
			return nil
		}
		t := &onnx.Tensor{DataType: onnx.Float, Raw: make([]byte, 4)}
		if value := v.Owner().Op().(*ir.Op).Attribute("value"); value != nil && value.Tensor != nil {
			t = value.Tensor
		}
		raw, err := ir.NewValue(t, ir.SourceOf(c.Graph()).Dir).Bytes()
		if err != nil {
			return nil
		}
		return ir.Constant(ir.NewValue(&onnx.Tensor{DataType: t.DataType, Raw: raw}, ""), "")
	})
}

// withInputs proposes an element-wise op of other inputs, smaller ones, where the result is known to
// have the same shape.
func withInputs(c *rewrite.Context, a *fgraph.Apply, what string, smaller func(*fgraph.Variable) *fgraph.Variable) (rewrite.Result, error) {
	if !isNode(a, broadcasters...) {
		return c.Miss("it does not broadcast its inputs"), nil
	}
	miss := c.Miss("no input %s", what)
	for i, v := range a.Inputs() {
		x := smaller(v)
		if x == nil {
			continue
		}
		inputs := slices.Clone(a.Inputs())
		inputs[i] = x
		b, err := ir.SourceOf(c.Graph()).Operators.Apply(a.Op().(*ir.Op), inputs...)
		// The input may be what gives the result its shape.
		if err != nil || !sameType(b.Out(), a.Out()) {
			miss = c.Miss("without it the result of input %d is not known to have the shape %v", i, a.Out().Type())
			continue
		}
		return rewrite.Replace(conform(a.Out(), b.Out())), nil
	}
	return miss, nil
}

func moveExpand(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, elementwise...) {
		return c.Miss("it is not computed element by element from one tensor"), nil
	}
	b := a.Inputs()[0].Owner()
	if !isNode(b, "Expand") || len(a.Inputs()[0].Clients()) != 1 {
		return c.Miss("its input is not expanded, or read elsewhere"), nil
	}
	inputs := slices.Clone(a.Inputs())
	inputs[0] = b.Inputs()[0]
	v, err := ir.SourceOf(c.Graph()).Operators.Apply(a.Op().(*ir.Op), inputs...)
	if err != nil {
		return c.Miss("%v", err), nil
	}
	return remadeWith(c, a, b.Op().(*ir.Op), v.Out(), b.Inputs()[1]), nil
}

// keptBy are reductions, and the searches, whose dimension is an attribute.
var keptBy = append([]string{"ArgMax", "ArgMin"}, reductions...)

func fuseReduceUnsqueeze(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	b := a.Inputs()
	if !isNode(a, "Unsqueeze", "Squeeze") || !isNode(b[0].Owner(), keptBy...) || len(b[0].Clients()) != 1 {
		return c.Miss("it is no Squeeze or Unsqueeze of a reduction that nothing else reads"), nil
	}
	r := b[0].Owner()
	n := ir.TypeOf(r.Inputs()[0]).Rank()
	reduced, ok := axesOf(r, 1, n)
	if isNode(r, "ArgMax", "ArgMin") {
		var axis int
		axis, ok = axisOf(r.Op().(*ir.Op), 0, n)
		reduced = []int{axis}
	}
	dims, known := axesOf(a, 1, n)
	keep := int64(0)
	if isNode(a, "Unsqueeze") {
		keep = 1
	}
	// A reduction over no dimensions may be one over all.
	if !ok || !known || len(reduced) == 0 || !slices.Equal(reduced, dims) || r.Op().(*ir.Op).Int("keepdims", 1) == keep {
		return c.Miss("its dimensions are not those that are reduced"), nil
	}
	return remadeWith(c, a, r.Op().(*ir.Op).WithAttributes(ir.Int("keepdims", keep)), r.Inputs()...), nil
}
