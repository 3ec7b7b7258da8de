package onnxpass

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// elementwise are operators whose first input is a tensor that each element of the result is computed
// from at its place, and whose other inputs are numbers.
var elementwise = []string{"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp",
	"Floor", "Gelu", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink",
	"Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu"}

// along are operators along one dimension, which an attribute has.
var along = []string{"Softmax", "LogSoftmax", "Hardmax", "Concat"}

// reductions are the operators whose second input has the dimensions that they reduce.
var reductions = []string{"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}

// moves reports whether a Transpose of the result of an apply, of n dimensions, can be one of its
// inputs instead, and which of them.
func moves(a *fgraph.Apply, n int) (inputs []*fgraph.Variable, ok bool) {
	switch {
	case isNode(a, elementwise...):
		return a.Inputs()[:1], !slices.ContainsFunc(a.Inputs()[1:], func(v *fgraph.Variable) bool { return !ir.IsOmitted(v) && ir.TypeOf(v).Rank() != 0 })
	case isNode(a, broadcasters...):
		return a.Inputs(), true
	case isNode(a, along...):
		_, ok := axisOf(a.Op().(*ir.Op), -1, n)
		return a.Inputs(), ok
	case isNode(a, reductions...):
		_, ok := axesOf(a, 1, n)
		return a.Inputs()[:1], ok && a.Op().(*ir.Op).Int("keepdims", 1) != 0
	}
	return nil, false
}

// maxRegion bounds the nodes that a Transpose is moved through at once.
const maxRegion = 64

// A region are nodes that a Transpose is moved through, clients first, and what they are computed from.
type region struct {
	nodes  []*fgraph.Apply
	leaves []*fgraph.Variable
}

// regionOf returns the nodes behind a Transpose that only it reads, directly or through others of them.
func regionOf(a *fgraph.Apply, n int) region {
	in := map[*fgraph.Apply]bool{a: true}
	var r region
	for next := []*fgraph.Variable{a.Inputs()[0]}; len(next) > 0; {
		v := next[0]
		next = next[1:]
		b := v.Owner()
		if b == nil || in[b] || len(r.nodes) >= maxRegion || ir.TypeOf(v).Rank() != n || len(b.Outputs()) != 1 {
			continue
		}
		if slices.ContainsFunc(v.Clients(), func(c fgraph.Client) bool { return c.Apply == nil || !in[c.Apply] }) {
			continue // it is asked again when another client is in the region
		}
		if inputs, ok := moves(b, n); ok {
			in[b] = true
			r.nodes = append(r.nodes, b)
			next = append(next, inputs...)
		}
	}
	// Only now, since what was a leaf may have become a node of the region.
	for _, b := range r.nodes {
		inputs, _ := moves(b, n)
		for _, v := range inputs {
			if !in[v.Owner()] && !slices.Contains(r.leaves, v) {
				r.leaves = append(r.leaves, v)
			}
		}
	}
	return r
}

func moveTransposes(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, "Transpose") {
		return c.Miss("it is no Transpose"), nil
	}
	n := ir.TypeOf(a.Out()).Rank()
	perm, ok := permutation(a.Op().(*ir.Op), n)
	if !ok || n < 0 {
		return c.Miss("the number of dimensions is not known"), nil
	}
	r := regionOf(a, n)
	if len(r.nodes) == 0 {
		return c.Miss("what it transposes is not computed element by element, or also read elsewhere"), nil
	}
	// The Transpose itself is saved, and there is one for each leaf that is no constant: it cancels
	// another one, becomes one with it, or is new.
	more, miss := r.more(c, perm)
	if miss != "" {
		return c.Miss("%s", miss), nil
	}
	if more >= 1 {
		return c.Miss("moving it through %d nodes saves no Transpose", len(r.nodes)), nil
	}
	v, err := r.transposed(c, a, perm)
	if err != nil {
		return c.Miss("%v", err), nil
	}
	return rewrite.Replace(conform(a.Out(), v)), nil
}

// more returns how many nodes more there are when the region reads its leaves transposed, or why that can't be.
func (r region) more(c *rewrite.Context, perm []int64) (more int, miss string) {
	room := ir.SourceOf(c.Graph()).Room()
	for _, v := range r.leaves {
		m, bytes, ok := transposesMore(v, perm, len(perm))
		if !ok {
			return 0, fmt.Sprintf("%v has not the same dimensions", v)
		}
		if room -= bytes; room < 0 {
			return 0, fmt.Sprintf("there is no room for another copy of %v", v)
		}
		more += m
	}
	return more, ""
}

// transposesMore returns how many nodes more there are when what reads v reads it transposed, and how many bytes
// of constants.
func transposesMore(v *fgraph.Variable, perm []int64, n int) (more int, bytes int64, ok bool) {
	rank := ir.TypeOf(v).Rank()
	switch {
	case ir.ValueOf(v) != nil: // a transposed copy of it is made
		// Others still read the old one.
		if len(v.Clients()) > 1 {
			bytes = bytesOf(v)
		}
		return 0, bytes, rank <= n
	case rank == 0:
		return 0, 0, true
	case rank != n:
		return 0, 0, false
	}
	more = 1
	if b := v.Owner(); isNode(b, "Transpose") {
		// It goes if nothing else reads it. If both orders cancel, no new one comes.
		if len(v.Clients()) == 1 {
			more--
		}
		if q, ok := permutation(b.Op().(*ir.Op), n); ok && slices.IsSorted(compose(perm, q)) {
			more--
		}
	}
	return more, 0, true
}

// transposed returns what the region computes, transposed.
func (r region) transposed(c *rewrite.Context, a *fgraph.Apply, perm []int64) (*fgraph.Variable, error) {
	operators := ir.SourceOf(c.Graph()).Operators
	made := make(map[*fgraph.Variable]*fgraph.Variable)
	for _, v := range r.leaves {
		t, err := transposeOf(operators, v, perm)
		if err != nil {
			return nil, err
		}
		made[v] = t
	}
	// Clients are first in a region, and operands are needed first here.
	for _, b := range slices.Backward(r.nodes) {
		op := b.Op().(*ir.Op)
		inputs := slices.Clone(b.Inputs())
		moved, _ := moves(b, len(perm))
		for i := range moved {
			inputs[i] = made[inputs[i]]
		}
		switch {
		case isNode(b, along...):
			// The place of a dimension in perm is where it is afterwards.
			axis, _ := axisOf(op, -1, len(perm))
			op = op.WithAttributes(ir.Int("axis", int64(slices.Index(perm, int64(axis)))))
		case isNode(b, reductions...):
			axes, _ := axesOf(b, 1, len(perm))
			for i, k := range axes {
				axes[i] = slices.Index(perm, int64(k))
			}
			slices.Sort(axes)
			inputs[1] = int64sOf(axes)
		}
		t, err := operators.Apply(op, inputs...)
		if err != nil {
			return nil, err
		}
		made[b.Out()] = t.Out()
	}
	return made[a.Inputs()[0]], nil
}

// transposeOf returns a value with its dimensions in another order, or the value if it has one element.
// A constant has 1s in front of its sizes first, as it is broadcast.
func transposeOf(operators *ir.Operators, v *fgraph.Variable, perm []int64) (*fgraph.Variable, error) {
	if ir.TypeOf(v).Rank() == 0 {
		return v, nil
	}
	if x := ir.ValueOf(v); x != nil {
		if x.Len() == 1 {
			return v, nil
		}
		if front := len(perm) - len(x.Tensor.Dims); front > 0 {
			raw, err := x.Bytes()
			if err != nil {
				return nil, err
			}
			dims := slices.Concat(slices.Repeat([]int64{1}, front), x.Tensor.Dims)
			v = ir.Constant(ir.NewValue(&onnx.Tensor{Dims: dims, DataType: x.Tensor.DataType, Raw: raw}, ""), "")
		}
	}
	if b := v.Owner(); isNode(b, "Transpose") {
		if q, ok := permutation(b.Op().(*ir.Op), len(perm)); ok {
			perm, v = compose(perm, q), b.Inputs()[0]
		}
	}
	if slices.IsSorted(perm) {
		return v, nil
	}
	return operators.Make("Transpose", []*onnx.Attribute{ir.Ints("perm", perm...)}, v)
}

func transposeResult(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	n := ir.TypeOf(a.Out()).Rank()
	if !isNode(a, broadcasters...) && !isNode(a, "Concat") || n < 0 {
		return c.Miss("it does not combine tensors"), nil
	}
	var perm []int64
	var from []*fgraph.Variable
	for _, v := range a.Inputs() {
		b := v.Owner()
		if !isNode(b, "Transpose") || len(v.Clients()) != 1 || slices.Contains(from, v) {
			continue
		}
		if q, ok := permutation(b.Op().(*ir.Op), n); ok && (perm == nil || slices.Equal(perm, q)) {
			perm, from = q, append(from, v)
		}
	}
	if len(from) < 2 {
		return c.Miss("there are not two transposed inputs that nothing else reads"), nil
	}
	inverse := make([]int64, n)
	for i, k := range perm {
		inverse[k] = int64(i)
	}
	r := region{[]*fgraph.Apply{a}, nil}
	for _, v := range a.Inputs() {
		if !slices.Contains(r.leaves, v) {
			r.leaves = append(r.leaves, v)
		}
	}
	more, miss := r.more(c, inverse)
	if miss != "" {
		return c.Miss("%s", miss), nil
	}
	if _, ok := moves(a, n); !ok || more >= -1 { // one is the Transpose of the result
		return c.Miss("no Transpose would be saved"), nil
	}
	// The result is that of the transposed inputs, which cancels what they were, transposed back.
	root := fgraph.NewApply(a.Op(), []*fgraph.Variable{a.Out()}, a.Out().Type())
	v, err := r.transposed(c, root, inverse)
	if err != nil {
		return c.Miss("%v", err), nil
	}
	return remadeWith(c, a, ir.SourceOf(c.Graph()).Operators.Op("Transpose", ir.Ints("perm", perm...)), v), nil
}

func dropTransposeBeforeReduce(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, reductions...) || !isNode(a.Inputs()[0].Owner(), "Transpose") {
		return c.Miss("it is no reduction of a Transpose"), nil
	}
	b := a.Inputs()[0].Owner()
	n := ir.TypeOf(b.Out()).Rank()
	perm, ok := permutation(b.Op().(*ir.Op), n)
	axes, known := axesOf(a, 1, n)
	if !ok || !known || n < 0 || len(axes) == 0 {
		return c.Miss("its dimensions are not known"), nil
	}
	// What remains has to be in order, and where dimensions are kept, in place.
	left := int64(-1)
	for i, k := range perm {
		reduced := slices.Contains(axes, i)
		if !reduced && (k < left || a.Op().(*ir.Op).Int("keepdims", 1) != 0 && k != int64(i)) {
			return c.Miss("the dimensions that remain change their order"), nil
		}
		if !reduced {
			left = k
		}
	}
	for i, k := range axes {
		axes[i] = int(perm[k])
	}
	slices.Sort(axes)
	inputs := slices.Clone(a.Inputs())
	inputs[0], inputs[1] = b.Inputs()[0], int64sOf(axes)
	return remadeWith(c, a, a.Op().(*ir.Op), inputs...), nil
}

// Orders of dimensions of the blocks: for DepthToSpace [n,b,b,c,h,w] or, in the mode CRD,
// [n,c,b,b,h,w], and for SpaceToDepth [n,c,h,b,w,b].
var (
	orderDCR   = []int64{0, 3, 4, 1, 5, 2}
	orderCRD   = []int64{0, 1, 4, 2, 5, 3}
	orderSpace = []int64{0, 3, 5, 1, 2, 4}
)

func depthToSpaceFromParts(c *rewrite.Context, root *fgraph.Apply) (rewrite.Result, error) {
	if len(root.Outputs()) != 1 || !isOp(root.Out(), "Reshape") {
		return c.Miss("it is no Reshape"), nil
	}
	moved := root.Inputs()[0]
	if !isOp(moved, "Transpose") || !usedOnce(moved) {
		return c.Miss("it is not that of a Transpose"), nil
	}
	blocks := moved.Owner().Inputs()[0]
	if !isOp(blocks, "Reshape") || !usedOnce(blocks) {
		return c.Miss("it is not that of the Transpose of a Reshape"), nil
	}
	if !takesSizes(blocks) || !takesSizes(root.Out()) {
		return c.Miss("a size of 0 that is computed would mean that of another dimension"), nil
	}
	x := blocks.Owner().Inputs()[0]
	from, ranked := ir.TypeOf(x).Shape()
	b, too := ir.TypeOf(blocks).Shape()
	to, three := ir.TypeOf(root.Out()).Shape()
	if !ranked || !too || !three || len(from) != 4 || len(b) != 6 || len(to) != 4 {
		return c.Miss("shapes of another number of dimensions"), nil
	}
	perm, _ := permutation(opOf(moved), 6)
	// What the dimensions of x and of the result are if it is the operator, and which are blocks.
	var is, becomes []ir.Dim
	var size [2]ir.Dim
	name, attributes := "DepthToSpace", []*onnx.Attribute(nil)
	switch {
	case slices.Equal(perm, orderDCR):
		size = [2]ir.Dim{b[1], b[2]}
		is = []ir.Dim{b[0], b[1].Times(b[2]).Times(b[3]), b[4], b[5]}
		becomes = []ir.Dim{b[0], b[3], b[4].Times(b[1]), b[5].Times(b[2])}
	case slices.Equal(perm, orderCRD) && ir.SourceOf(c.Graph()).Opset("") >= 11:
		// The attribute mode came with version 11.
		size = [2]ir.Dim{b[2], b[3]}
		is = []ir.Dim{b[0], b[1].Times(b[2]).Times(b[3]), b[4], b[5]}
		becomes = []ir.Dim{b[0], b[1], b[4].Times(b[2]), b[5].Times(b[3])}
		attributes = append(attributes, ir.String("mode", "CRD"))
	case slices.Equal(perm, orderSpace):
		name = "SpaceToDepth"
		size = [2]ir.Dim{b[3], b[5]}
		is = []ir.Dim{b[0], b[1], b[2].Times(b[3]), b[4].Times(b[5])}
		becomes = []ir.Dim{b[0], b[1].Times(b[3]).Times(b[5]), b[2], b[4]}
	default:
		return c.Miss("the order of dimensions is another"), nil
	}
	n, known := size[0].Number()
	if !known || !size[1].Is(n) || !slices.EqualFunc(is, from, ir.Dim.Same) || !slices.EqualFunc(becomes, to, ir.Dim.Same) {
		return c.Miss("sizes are not known to be those of blocks"), nil
	}
	y, err := ir.SourceOf(c.Graph()).Operators.Make(name, append(attributes, ir.Int("blocksize", n)), x)
	if err != nil {
		return rewrite.Result{}, err
	}
	return rewrite.Replace(conform(root.Out(), y)), nil
}

// takesSizes reports whether a Reshape has the sizes that it is given, also where one is 0 in some run.
func takesSizes(v *fgraph.Variable) bool {
	return opOf(v).Int("allowzero", 0) != 0 || isConstant(v.Owner().Inputs()[1])
}
