package ir

import (
	"strings"

	"github.com/nnopt/nnopt/onnx"
)

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
