package onnxpass

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/hugepages"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/passes/onnxpass/internal/floats"
	"github.com/nnopt/nnopt/pattern"
)

// Convolutions, transposed ones, Gemm and MatMul are linear: what follows them, or precedes them, and is
// a factor or a term for each channel can be moved into their weights. The functions here say where the
// channels are, so that rules only say what is moved.
//
// Their weights are input 1: of a Conv [out, in/groups, kernel…], of a ConvTranspose
// [in, out/groups, kernel…], of a Gemm [in, out] or with transB [out, in], of a MatMul […, in, out].

// linearFunctions look at a linear apply by the value n that it computes.
func linearFunctions(v vocabulary) []pattern.Function {
	return []pattern.Function{
		pattern.NewGuard("per_output(c, n)", 2, "the constant c is one number, or one for each channel of n, which a linear operator or a batch normalization computes", func(a pattern.Args) bool {
			return perChannel(a.Vars[0], a.Vars[1], outputAxis(a.Vars[1]))
		}),
		pattern.NewGuard("per_input(c, x, n)", 2, "the constant c is one number, or one for each channel of x, from which a linear operator computes n", func(a pattern.Args) bool {
			return perChannel(a.Vars[0], a.Vars[1], inputAxis(a.Vars[2], a.Vars[1]))
		}),
		pattern.NewBuilder("(outputs c n)", 2, "the vector of what the constant c is for each channel of n, see per_output", func(a pattern.Args) (*fgraph.Variable, error) {
			return v.channels(a, a.Vars[0], a.Vars[1], outputAxis(a.Vars[1]))
		}),
		pattern.NewBuilder("(inputs c x n)", 2, "the vector of what the constant c is for each channel of x, see per_input", func(a pattern.Args) (*fgraph.Variable, error) {
			return v.channels(a, a.Vars[0], a.Vars[1], inputAxis(a.Vars[2], a.Vars[1]))
		}),
		pattern.NewBuilder("(scale_outputs n s)", 2, "the weights of n with the factors s for its channels", func(a pattern.Args) (*fgraph.Variable, error) {
			return v.scaleWeights(a, a.Vars[0], a.Vars[1], true)
		}),
		pattern.NewBuilder("(scale_inputs n s)", 2, "the weights of n with the factors s for the channels of its input", func(a pattern.Args) (*fgraph.Variable, error) {
			return v.scaleWeights(a, a.Vars[0], a.Vars[1], false)
		}),
		v.computing("(response n c)", 2, "what the linear operator of n without bias gives for an input that has the numbers c for its channels everywhere", response),
		pattern.NewGuardOfEach("linear(n)", 2, "n is used by linear operators with constant weights alone, as their input, and none is a large matrix", linearReaders),
		pattern.NewGuardOfEach("unpadded(n)", 2, "the convolution of n has no padding", unpadded),
		pattern.NewGuardOfEach("pointwise(n)", 2, "n is a convolution with kernels and steps of size 1 and without groups", pointwise),
		pattern.NewGuardOfEach("ungrouped(n)", 2, "n is a convolution without groups", func(n *fgraph.Variable) bool { return groupsOf(n) == 1 }),
		pattern.NewGuardOfEach("inference(n)", 2, "n is a batch normalization that is not trained, of vectors", func(n *fgraph.Variable) bool {
			op := opOf(n)
			return op != nil && op.Outputs == 1 && op.Int("training_mode", 0) == 0 &&
				!slices.ContainsFunc(n.Owner().Inputs()[1:], func(v *fgraph.Variable) bool { return !isVector(v) })
		}),
		pattern.NewGuardOfEach("vector(x)", 1, "x has one dimension", isVector),
		v.computing("(slope n)", 2, "the factors that a batch normalization is: scale/sqrt(variance + epsilon)", func(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable {
			return slope(b, vars[0])
		}),
		v.computing("(offset n)", 2, "the terms that a batch normalization adds to its factors: bias - mean*scale/sqrt(variance + epsilon)", func(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable {
			in := vars[0].Owner().Inputs()
			return b.Do("Sub", in[2], b.Do("Mul", in[3], slope(b, vars[0])))
		}),
		pattern.NewGuard("smaller(a, b)", 1, "the product of the matrices that the weights a and b are is no larger than both together", func(a pattern.Args) bool {
			return smallerProduct(a.Vars[0], a.Vars[1])
		}),
		v.computing("(mix_outputs n w)", 2, "the weights of the convolution n with the channels that a pointwise one with the weights w makes of its own", mixOutputs),
	}
}

func isVector(v *fgraph.Variable) bool { return ir.TypeOf(v).Rank() == 1 }

// opOf returns what computes a value, nil for one that no node computes.
func opOf(n *fgraph.Variable) *ir.Op {
	if n.Owner() == nil {
		return nil
	}
	op, _ := n.Owner().Op().(*ir.Op)
	return op
}

// isOp reports whether an operator of ONNX's own, in today's meaning, computes a value.
func isOp(n *fgraph.Variable, names ...string) bool {
	return isNode(n.Owner(), names...)
}

// outputAxis returns the axis of the channels of what a linear operator computes, -1 if there is none.
func outputAxis(n *fgraph.Variable) int {
	rank := ir.TypeOf(n).Rank()
	switch {
	case isOp(n, "Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization") && rank >= 2:
		return 1
	case isOp(n, "Gemm"):
		return 1
	case isOp(n, "MatMul") && ir.TypeOf(n.Owner().Inputs()[1]).Rank() >= 2:
		return rank - 1
	}
	return -1
}

// inputAxis returns the axis of the channels of the input of a linear operator, -1 if there is none.
func inputAxis(n, x *fgraph.Variable) int {
	rank := ir.TypeOf(x).Rank()
	switch {
	case isOp(n, "Conv", "ConvTranspose", "BatchNormalization") && rank >= 2:
		return 1
	case isOp(n, "Gemm") && opOf(n).Int("transA", 0) == 0:
		return 1
	case isOp(n, "MatMul") && ir.TypeOf(n.Owner().Inputs()[1]).Rank() >= 1:
		return rank - 1
	}
	return -1
}

// perChannel reports whether a constant, combined with n element by element, leaves the shape of n as it
// is and has the same number wherever the index along axis is the same.
func perChannel(c, n *fgraph.Variable, axis int) bool {
	dims, ranked := ir.TypeOf(n).Shape()
	sizes, known := ir.TypeOf(c).Numbers()
	if !isConstant(c) || !ranked || !known || axis < 0 || axis >= len(dims) || len(sizes) > len(dims) {
		return false
	}
	// A vector is made with one number for each channel, so how many there are has to be known.
	if _, ok := dims[axis].Number(); !ok {
		return false
	}
	for i, size := range sizes {
		if k := len(dims) - len(sizes) + i; size != 1 && (k != axis || !dims[k].Is(size)) {
			return false
		}
	}
	return ir.TypeOf(c).Elem() == ir.TypeOf(n).Elem()
}

// channels returns a constant for which perChannel holds as a vector.
func (v vocabulary) channels(a pattern.Args, c, n *fgraph.Variable, axis int) (*fgraph.Variable, error) {
	dims, _ := ir.TypeOf(n).Shape()
	if axis < 0 || axis >= len(dims) {
		return nil, fmt.Errorf("%w: %v has no channels", errNotComputed, n)
	}
	size, _ := dims[axis].Number()
	// The constant may be one number for all channels, or have 1s for sizes.
	return v.compute(a, func(b *ir.Builder) *fgraph.Variable {
		return b.Do("Expand", b.Do("Reshape", c, []int64{-1}), []int64{size})
	})
}

// compute builds something and computes it.
func (v vocabulary) compute(a pattern.Args, build func(b *ir.Builder) *fgraph.Variable) (*fgraph.Variable, error) {
	x, err := v.operators.Build(build)
	if err != nil {
		return nil, err
	}
	return computed(a, x)
}

// groupsOf returns the number of groups of a convolution.
func groupsOf(n *fgraph.Variable) int64 { return opOf(n).Int("group", 1) }

// scaleWeights returns the weights of n, which are a constant, with factors for its channels, those that
// come out or those that go in. Where a dimension has the channels of one group only, weights are seen
// as a tensor that has the groups as well.
func (v vocabulary) scaleWeights(a pattern.Args, n, s *fgraph.Variable, out bool) (*fgraph.Variable, error) {
	w := n.Owner().Inputs()[1]
	dims, ok := ir.TypeOf(w).Numbers()
	if !ok || !isConstant(w) {
		return nil, fmt.Errorf("%w: the weights are no constant", errNotComputed)
	}
	var seen, factors []int64
	switch op := opOf(n); op.Type {
	case "Conv", "ConvTranspose":
		g := groupsOf(n)
		if len(dims) < 2 || g < 1 || dims[0]%g != 0 {
			return nil, fmt.Errorf("%w: weights %v of %d groups", errNotComputed, dims, g)
		}
		seen = append([]int64{g, dims[0] / g}, dims[1:]...)
		factors = slices.Repeat([]int64{1}, len(seen))
		factors[0] = g
		// Behind the groups a Conv has its outputs first, a ConvTranspose its inputs.
		if out == (op.Type == "Conv") {
			factors[1] = dims[0] / g
		} else {
			factors[2] = dims[1]
		}
	default:
		seen = dims
		factors = slices.Repeat([]int64{1}, len(seen))
		// Columns are outputs, and rows inputs, unless a Gemm has them transposed.
		k := len(dims) - 1
		if out == (op.Type == "Gemm" && op.Int("transB", 0) != 0) {
			k--
		}
		if len(dims) == 1 && !out { // a vector is a column
			k = 0
		}
		if k < 0 {
			return nil, fmt.Errorf("%w: weights %v", errNotComputed, dims)
		}
		factors[k] = dims[k]
	}
	if x, err := scaledFloats(ir.ValueOf(w), ir.ValueOf(s), seen, factors); x != nil || err != nil {
		return x, err
	}
	return v.compute(a, func(b *ir.Builder) *fgraph.Variable {
		return b.Do("Reshape", b.Do("Mul", b.Do("Reshape", w, seen), b.Do("Reshape", s, factors)), dims)
	})
}

// scaledFloats returns the product of weights, seen as a tensor of a shape, and factors, whose sizes are
// those of the shape or 1, as Mul computes it: most weights are floats of 32 bits, of which there may be
// many, and going through them once takes a third of the time that the nodes take (resnet50, November
// 2026). It returns nil for other elements.
func scaledFloats(w, s *ir.Value, shape, factors []int64) (*fgraph.Variable, error) {
	if w == nil || s == nil || w.Tensor == nil || s.Tensor == nil || w.Tensor.DataType != onnx.Float || s.Tensor.DataType != onnx.Float {
		return nil, nil
	}
	raw, err := w.Bytes()
	if err != nil {
		return nil, err
	}
	by, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	// Each run of weights has one factor. An odometer over the dimensions in front of a run counts runs.
	run, last := 4, len(shape)
	for last > 0 && factors[last-1] == 1 {
		last--
		run *= int(shape[last])
	}
	out := hugepages.Make[byte](len(raw))
	position := make([]int64, last)
	allFinite := true
	for start := 0; start < len(raw); start += run {
		k := int64(0)
		for i := range last {
			if k *= factors[i]; factors[i] != 1 {
				k += position[i]
			}
		}
		if 4*k+4 > int64(len(by)) || start+run > len(raw) {
			return nil, fmt.Errorf("%w: factors of another shape", errNotComputed)
		}
		f := math.Float32frombits(binary.LittleEndian.Uint32(by[4*k:]))
		allFinite = floats.Scale(out[start:start+run], raw[start:start+run], f) && allFinite
		for i := last - 1; i >= 0; i-- {
			if position[i]++; position[i] < shape[i] {
				break
			}
			position[i] = 0
		}
	}
	if !allFinite {
		return nil, fmt.Errorf("%w: it would not be finite", errNotComputed)
	}
	return ir.Constant(ir.NewValue(&onnx.Tensor{Dims: w.Tensor.Dims, DataType: onnx.Float, Raw: out}, ""), ""), nil
}

// response returns what a linear operator makes of the same numbers everywhere: the sum over the kernel
// and the channels of a group.
func response(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable {
	n, c := vars[0], vars[1]
	w := n.Owner().Inputs()[1]
	dims, ok := ir.TypeOf(w).Numbers()
	op, g := opOf(n), groupsOf(n)
	if !ok || len(dims) < 2 || g < 1 || dims[0]%g != 0 {
		b.Fail("weights %v of %d groups", w, g)
	}
	switch op.Type {
	case "MatMul":
		return b.Do("MatMul", c, w)
	case "Gemm":
		// alpha is a factor of the product and so of the response. beta is one of the bias.
		row := b.Do("Gemm", b.Do("Unsqueeze", c, []int64{0}), w, ir.Int("transB", op.Int("transB", 0)), ir.Float("alpha", op.Float("alpha", 1)))
		return b.Do("Squeeze", row, []int64{0})
	case "Conv":
		sum := w
		if kernel := lists.Range[int64](len(dims))[2:]; len(kernel) > 0 {
			sum = b.Do("ReduceSum", w, kernel, ir.Int("keepdims", 0))
		}
		matrices, columns := b.Do("Reshape", sum, []int64{g, dims[0] / g, dims[1]}), b.Do("Reshape", c, []int64{g, dims[1], 1})
		return b.Do("Reshape", b.Do("MatMul", matrices, columns), []int64{dims[0]})
	}
	b.Fail("%v is not linear", op)
	return nil
}

// maxScaled bounds the bytes of a matrix that takes a factor of the other one. Scaled weights are new ones, beside those
// in the file: to make large ones takes longer than to scale the few rows of many calls.
const maxScaled = 1 << 20

// linearReaders reports whether whatever uses a value can take a factor of it into constant weights.
func linearReaders(n *fgraph.Variable) bool {
	for _, c := range n.Clients() {
		if c.Apply == nil || c.Index != 0 || len(c.Apply.Outputs()) != 1 {
			return false
		}
		y := c.Apply.Out()
		// A normalization subtracts its mean first, so a factor of its input is none of its scale.
		if isOp(y, "BatchNormalization") || inputAxis(y, n) < 0 || !isConstant(c.Apply.Inputs()[1]) {
			return false
		}
		if isOp(y, "MatMul", "Gemm") && bytesOf(c.Apply.Inputs()[1]) > maxScaled {
			return false
		}
	}
	return true
}

// unpadded reports whether a convolution has no padding, so that it sees nothing but its input.
func unpadded(n *fgraph.Variable) bool {
	op := opOf(n)
	if op == nil {
		return false
	}
	switch op.Text("auto_pad", "NOTSET") {
	case "VALID":
		return true
	case "NOTSET":
		return !slices.ContainsFunc(op.Ints("pads"), func(p int64) bool { return p != 0 })
	}
	return false
}

// pointwise reports whether a convolution makes each element of its output from that element of all
// channels.
func pointwise(n *fgraph.Variable) bool {
	op := opOf(n)
	if !isOp(n, "Conv") || groupsOf(n) != 1 {
		return false
	}
	dims, ok := ir.TypeOf(n.Owner().Inputs()[1]).Numbers()
	not := func(size int64) func(int64) bool { return func(k int64) bool { return k != size } }
	return ok && len(dims) > 2 && !slices.ContainsFunc(dims[2:], not(1)) && !slices.ContainsFunc(op.Ints("strides"), not(1)) &&
		!slices.ContainsFunc(op.Ints("pads"), not(0))
}

// slope returns scale/sqrt(variance + epsilon) of a batch normalization.
func slope(b *ir.Builder, n *fgraph.Variable) *fgraph.Variable {
	in := n.Owner().Inputs()
	return b.Do("Div", in[1], b.Do("Sqrt", b.Do("Add", in[4], float64(opOf(n).Float("epsilon", 1e-5)))))
}

// smallerProduct reports whether the product of two weights, of a MatMul [k, m] and [m, n] or of
// pointwise convolutions after another [m, k, …] and [n, m, 1…], is no larger than both.
func smallerProduct(x, y *fgraph.Variable) bool {
	p, ok := ir.TypeOf(x).Numbers()
	q, too := ir.TypeOf(y).Numbers()
	if !ok || !too || len(p) < 2 || len(q) < 2 {
		return false
	}
	first, second := product(p), product(q)
	switch {
	case len(p) == 2 && len(q) == 2:
		return p[0]*q[1] <= first+second
	case len(q) > 2 && p[0] > 0:
		// The kernel of the first one, with the outputs of the second.
		return first/p[0]*q[0] <= first+second
	}
	return false
}

// mixOutputs returns the weights of a convolution and a pointwise one after it as those of one.
func mixOutputs(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable {
	w, mix := vars[0].Owner().Inputs()[1], vars[1]
	dims, ok := ir.TypeOf(w).Numbers()
	out, too := ir.TypeOf(mix).Numbers()
	if !ok || !too || len(dims) < 2 || len(out) < 2 || out[1] != dims[0] {
		b.Fail("weights %v and %v", w, mix)
	}
	// All of a kernel but its outputs is columns: then the pointwise convolution is a product from the left.
	y := b.Do("MatMul", b.Do("Reshape", mix, []int64{out[0], out[1]}), b.Do("Reshape", w, []int64{dims[0], -1}))
	return b.Do("Reshape", y, append([]int64{out[0]}, dims[1:]...))
}
