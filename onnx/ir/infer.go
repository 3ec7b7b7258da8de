package ir

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// like says that a result has elements of the type of those of an input, and its shape.
func (c *Call) like(k, input int) { c.Set(k, c.In(input).withoutData()) }

// shaped says that a result has elements of a type, and the shape of an input.
func (c *Call) shaped(k int, elem onnx.DataType, input int) {
	if dims, ranked := c.shape(input); ranked {
		c.Set(k, NewType(elem, dims...))
	} else {
		c.Set(k, AnyShape(elem))
	}
}

// elemOf returns the type of elements that inputs share, of those that have one.
func (c *Call) elemOf(inputs ...int) onnx.DataType {
	elem := onnx.Undefined
	for _, k := range inputs {
		switch e := c.Elem(k); {
		case e == onnx.Undefined:
		case elem == onnx.Undefined:
			elem = e
		case e != elem:
			c.Fail("its elements are of types %v and %v; a Cast makes them the same", elem, e)
		}
	}
	return elem
}

// all returns the indices of the inputs.
func (c *Call) all() []int { return lists.Range[int](c.numInputs()) }

// ranked returns the shape of an input. If it has none, the first result has elements of a type and any shape, and
// Infer ends.
func (c *Call) ranked(k int, elem onnx.DataType) []Dim {
	dims, ranked := c.shape(k)
	if !ranked {
		c.anyShape(elem)
	}
	return dims
}

// listed returns the elements of an input of at most one dimension, or ends Infer as ranked does.
func (c *Call) listed(k int, elem onnx.DataType) []Dim {
	list, ok := c.elements(k)
	if !ok {
		c.anyShape(elem)
	}
	return list
}

// anyShape says that the first result has elements of a type and any shape, and ends Infer.
func (c *Call) anyShape(elem onnx.DataType) {
	c.Set(0, AnyShape(elem))
	panic(errInfer{errUnranked})
}

// rank fails if an input is known to have another number of dimensions.
func (c *Call) rank(k, n int) (dims []Dim, ranked bool) {
	dims, ranked = c.shape(k)
	c.failIf(ranked && len(dims) != n, "input %d has %d dimensions, not %d", k, len(dims), n)
	return dims, ranked
}

// sizesOf returns the sizes of an input that has n dimensions, unknown ones if it has no shape.
func (c *Call) sizesOf(k, n int) []Dim {
	if dims, ranked := c.rank(k, n); ranked {
		return dims
	}
	return unknowns(n)
}

// unknowns returns so many unknown sizes.
func unknowns(n int) []Dim { return slices.Repeat([]Dim{UnknownDim}, n) }

// data returns the elements of an input of integers, unknown ones among them. ok is false if not even
// their number is known, or too large.
func (c *Call) data(k int) (list []Dim, ok bool) {
	t := c.In(k)
	if list, ok := t.Data(); ok {
		return list, true
	}
	if !isInteger(t.Elem()) {
		return nil, false
	}
	n, ok := t.length()
	return unknowns(n), ok
}

// elements is data for an input that has at most one dimension.
func (c *Call) elements(k int) (list []Dim, ok bool) {
	if n := c.In(k).Rank(); n < 0 || n > 1 {
		return nil, false
	}
	return c.data(k)
}

// one returns an element of an input of one integer, unknown if it is.
func (c *Call) one(k int) Dim {
	if list, ok := c.elements(k); ok && len(list) == 1 {
		return list[0]
	}
	return UnknownDim
}

// floats returns the elements of an input that is a constant of few floats.
func (c *Call) floats(k int) ([]float64, bool) {
	if !c.has(k) {
		return nil, false
	}
	x := ValueOf(c.inputs[k])
	if x == nil || x.Len() < 0 || x.Len() > maxNumbers {
		return nil, false
	}
	return x.Floats()
}

// isInteger reports whether elements are integers or bools, such as types have.
func isInteger(t onnx.DataType) bool { return kindOf(t)&(signed|natural|bools) != 0 }

// with returns the type with elements, where they are numbers that its elements can be, if it has so many.
func (t Type) with(elements []Dim) Type {
	if !t.holds(len(elements)) {
		return t
	}
	return t.WithData(lists.Map(elements, func(d Dim) Dim { return held(t.elem, d) }))
}

// held returns an element as a type of integers holds it. An expression is taken to fit in an int32: where
// a model has sizes as int32s, they are below 2^31.
func held(elem onnx.DataType, d Dim) Dim {
	least, most, ok := elem.Limits()
	low, high := d.bounds(0)
	if elem == onnx.Int64 || ok && low >= least && high <= most || elem == onnx.Int32 && !d.IsUnknown() && d.expr != "" {
		return d
	}
	return UnknownDim
}

// eachElement computes the elements of an element-wise result of the inputs, each of which has as many
// or one. ok is false otherwise.
func (c *Call) eachElement(compute func(x []Dim) Dim) (list []Dim, ok bool) {
	inputs, n := make([][]Dim, c.numInputs()), 1
	for k := range inputs {
		if inputs[k], ok = c.data(k); !ok {
			return nil, false
		}
		if len(inputs[k]) != 1 {
			n = len(inputs[k])
		}
	}
	list = make([]Dim, n)
	x := make([]Dim, len(inputs))
	for i := range list {
		for k, in := range inputs {
			if len(in) != n && len(in) != 1 {
				return nil, false
			}
			x[k] = in[i%len(in)]
		}
		list[i] = compute(x)
	}
	return list, true
}

// broadcastInputs returns the shape that inputs are broadcast to.
func (c *Call) broadcastInputs(inputs ...int) (dims []Dim, ranked bool) {
	shapes := make([][]Dim, len(inputs))
	for i, k := range inputs {
		if shapes[i], ranked = c.shape(k); !ranked {
			return nil, false
		}
	}
	return c.broadcast(shapes...), true
}

// tensor returns the type of a tensor, of any shape unless ranked.
func tensor(elem onnx.DataType, dims []Dim, ranked bool) Type {
	if !ranked {
		return AnyShape(elem)
	}
	return NewType(elem, dims...)
}

// product returns the product of sizes.
func product(dims []Dim) Dim {
	p := Known(1)
	for _, d := range dims {
		p = p.Times(d)
	}
	return p
}

// axesOr returns axes that an input has, or all of n if it is left out. ok is false if they are not known.
func (c *Call) axesOr(k, n int) (axes []int, ok bool) {
	list, ok := c.numbers(k)
	return c.axesOf(list, c.has(k), n), ok || !c.has(k)
}

// axesOf returns axes as indexes, or all of n unless some are given.
func (c *Call) axesOf(list []int64, given bool, n int) (axes []int) {
	if !given {
		for i := range n {
			axes = append(axes, i)
		}
	}
	for _, a := range list {
		axes = append(axes, c.axis(a, n))
	}
	return axes
}

// count returns how many elements an input of at most one dimension has, -1 if that is not known.
func (c *Call) count(k int) int {
	if list, ok := c.elements(k); ok {
		return len(list)
	}
	return -1
}

// to returns the type of elements that an attribute asks for, or otherwise without it.
func (c *Call) to(attribute string, otherwise onnx.DataType) onnx.DataType {
	t := onnx.DataType(c.Op.Int(attribute, int64(otherwise)))
	c.failIf(t < onnx.Undefined || t > onnx.Int2, "%s is %d, which is no type of elements", attribute, t)
	return t
}

// named returns operators that differ by their names alone.
func named(o Operator, names ...string) []Operator {
	list := make([]Operator, len(names))
	for i, name := range names {
		list[i], list[i].Type = o, name
	}
	return list
}

// picked returns elements of a list for each index of a shape, the last dimension fastest. at returns
// which one it is.
func picked(list []Dim, shape []int64, at func(index []int64) int64) []Dim {
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	out := make([]Dim, 0, n)
	index := make([]int64, len(shape))
	for range n {
		k := at(index)
		if k < 0 || k >= int64(len(list)) {
			return nil
		}
		out = append(out, list[k])
		for i := len(index) - 1; i >= 0; i-- {
			if index[i]++; index[i] < shape[i] {
				break
			}
			index[i] = 0
		}
	}
	return out
}

// place returns where an element is in a list of those of a shape.
func place(shape, index []int64) int64 {
	k := int64(0)
	for i, s := range shape {
		k = k*s + index[i]
	}
	return k
}

// A kind is a set of element types.
type kind uint8

const (
	floats  kind = 1 << iota // of any precision
	signed                   // integers
	natural                  // unsigned integers
	bools
	numbers = floats | signed | natural
)

func kindOf(t onnx.DataType) kind {
	switch t {
	case onnx.Float, onnx.Double, onnx.Float16, onnx.BFloat16:
		return floats
	case onnx.Int8, onnx.Int16, onnx.Int32, onnx.Int64:
		return signed
	case onnx.Uint8, onnx.Uint16, onnx.Uint32, onnx.Uint64:
		return natural
	case onnx.Bool:
		return bools
	}
	return 0
}

// accepted are the element types of the first input that operators take, in any version.
var accepted = func() map[string]kind {
	byName := make(map[string]kind)
	for k, names := range map[kind]string{
		bools: "And Or Xor Not",
		floats: `Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization Ceil Celu Conv ConvTranspose Cos Cosh Elu Erf Exp Floor GRU Gelu
			GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNormalization HardSigmoid HardSwish InstanceNormalization IsNaN LRN LSTM LayerNormalization
			LeakyRelu Log LogSoftmax Hardmax LpNormalization LpPool Mean MeanVarianceNormalization Mish RMSNormalization RNN Reciprocal Round Selu Sigmoid
			Sin Sinh Softmax Softplus Softsign Sqrt Sum Swish Tan Tanh ThresholdedRelu`,
		floats | signed: "Neg Relu",
		numbers: `Abs Add Clip CumSum Div Gemm Greater GreaterOrEqual Less LessOrEqual MatMul Mod Mul PRelu Pow ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp
			ReduceMean ReduceProd ReduceSum ReduceSumSquare Sign Sub TopK Range`,
		signed | natural: "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitShift",
	} {
		for _, name := range strings.Fields(names) {
			byName[name] = k
		}
	}
	return byName
}()

// checkElements fails if the first input has elements of a type that the operator never takes.
func (c *Call) checkElements() {
	k, ok := accepted[c.Op.Type]
	if t := c.Elem(0); ok && c.Domain == "" && t != onnx.Undefined && kindOf(t)&k == 0 {
		c.Fail("elements of type %v; a Cast makes others of them", t)
	}
}

// listInputs are the inputs of operators that are lists of integers: sizes, axes, places.
var listInputs = map[string][]int{
	"ConstantOfShape": {0}, "Expand": {1}, "Pad": {1, 3}, "Reshape": {1}, "Slice": {1, 2, 3, 4}, "Split": {1}, "Squeeze": {1}, "Tile": {1}, "TopK": {1}, "Unsqueeze": {1}, "ReduceL1": {1}, "ReduceL2": {1},
	"ReduceLogSum": {1}, "ReduceLogSumExp": {1}, "ReduceMax": {1}, "ReduceMean": {1}, "ReduceMin": {1}, "ReduceProd": {1}, "ReduceSum": {1}, "ReduceSumSquare": {1},
}

// checkLists fails if an input that is a list of integers has other elements.
func (c *Call) checkLists() {
	if c.Domain != "" {
		return
	}
	for _, k := range listInputs[c.Op.Type] {
		if t := c.Elem(k); t != onnx.Undefined && kindOf(t)&signed == 0 {
			c.Fail("input %d has elements of type %v, not int64", k, t)
		}
		if n := c.In(k).Rank(); n > 1 {
			c.Fail("input %d has %d dimensions, and should be a list", k, n)
		}
	}
}

// checkNumber fails if an input that is one number has dimensions.
func (c *Call) checkNumber(k int) {
	dims, ranked := c.shape(k)
	if ranked && (len(dims) > 1 || len(dims) == 1 && dims[0].Differs(Known(1))) {
		c.Fail("input %d has the shape %v, and should be one number", k, dims)
	}
}
