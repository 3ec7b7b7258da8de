package ir

import (
	"math"

	"github.com/nnopt/nnopt/fgraph"
)

// introduced are the operators that came after version 7, and since which they are.
var introduced = map[string]int64{
	"Expand": 8, "Scan": 8,
	"Acosh": 9, "Asinh": 9, "Atanh": 9, "Compress": 9, "ConstantOfShape": 9, "Cosh": 9, "Erf": 9, "EyeLike": 9, "IsNaN": 9, "MaxUnpool": 9,
	"MeanVarianceNormalization": 9, "NonZero": 9, "OneHot": 9, "Scatter": 9, "Shrink": 9, "Sign": 9, "Sinh": 9, "TfIdfVectorizer": 9, "Where": 9,
	"ConvInteger": 10, "DequantizeLinear": 10, "IsInf": 10, "MatMulInteger": 10, "Mod": 10, "NonMaxSuppression": 10, "QLinearConv": 10,
	"QLinearMatMul": 10, "QuantizeLinear": 10, "Resize": 10, "ReverseSequence": 10, "RoiAlign": 10, "StringNormalizer": 10, "ThresholdedRelu": 10,
	"BitShift": 11, "ConcatFromSequence": 11, "CumSum": 11, "Det": 11, "DynamicQuantizeLinear": 11, "GatherElements": 11, "GatherND": 11,
	"Range": 11, "Round": 11, "ScatterElements": 11, "ScatterND": 11, "SequenceAt": 11, "SequenceConstruct": 11, "SequenceEmpty": 11,
	"SequenceErase": 11, "SequenceInsert": 11, "SequenceLength": 11, "SplitToSequence": 11, "Unique": 11,
	"Celu": 12, "Einsum": 12, "GreaterOrEqual": 12, "LessOrEqual": 12, "NegativeLogLikelihoodLoss": 12, "SoftmaxCrossEntropyLoss": 12,
	"HardSwish": 14, "Trilu": 14,
	"Bernoulli": 15, "CastLike": 15, "Optional": 15, "OptionalGetElement": 15, "OptionalHasElement": 15,
	"GridSample":     16,
	"BlackmanWindow": 17, "DFT": 17, "HammingWindow": 17, "HannWindow": 17, "LayerNormalization": 17, "MelWeightMatrix": 17, "STFT": 17, "SequenceMap": 17,
	"BitwiseAnd": 18, "BitwiseNot": 18, "BitwiseOr": 18, "BitwiseXor": 18, "CenterCropPad": 18, "Col2Im": 18, "GroupNormalization": 18, "Mish": 18,
	"DeformConv": 19,
	"AffineGrid": 20, "Gelu": 20, "ImageDecoder": 20, "RegexFullMatch": 20, "StringConcat": 20, "StringSplit": 20,
	"Attention": 23, "RMSNormalization": 23, "RotaryEmbedding": 23,
	"Swish": 24, "TensorScatter": 24,
}

// removed are the operators that later versions don't have, and the last version that does.
var removed = map[string]int64{"Upsample": 9, "Scatter": 10}

// contributed is the operator that ONNX Runtime has in ONNX's domain in all versions, though ONNX has it since
// version 17 only. It writes it into older models, and they can't be raised if another operator has changed.
const contributed = "LayerNormalization"

// Since returns the first version of ONNX's operators that has an operator, 1 for the oldest.
func Since(op string) int64 { return max(introduced[op], 1) }

// latest returns the last version of ONNX's operators in which the op means what it does.
func (op *Op) latest() int64 {
	switch {
	case op.Domain != "":
		return math.MaxInt64
	case op.Legacy != 0:
		return op.Legacy
	case removed[op.Type] != 0:
		return removed[op.Type]
	}
	return math.MaxInt64
}

// raised is the version of ONNX's operators to which a model may be raised unless somebody says more.
// It came with ONNX 1.12, in 2022; older programs than that hardly read models any more, and newer
// versions of the file format are refused by many that are in use.
const raised = 17

// Permits reports whether the model can have an operator: its version of the operators does, or it
// may be raised, since every operator of the model means the same in that version.
func (s *Source) Permits(op string) bool {
	if s.contributed && op == contributed {
		return true
	}
	n, own := Since(op), s.opsets[""]
	return n <= own || n <= min(s.latest, s.raise) && own >= 7
}

// version returns the version of ONNX's operators that a graph needs, at least that of the model.
func (s *Source) version(g *fgraph.FunctionGraph) int64 {
	n := s.opsets[""]
	for a := range g.Applies() {
		op := a.Op().(*Op)
		for _, b := range op.Bodies {
			n = max(n, s.version(b.Graph))
		}
		if op.Domain == "" && !(s.contributed && op.Type == contributed) {
			n = max(n, Since(op.Type))
			switch op.Type {
			case "Softmax", "LogSoftmax", "Hardmax":
				if op.Legacy == 0 && !alongLast(a) {
					n = max(n, changedBefore[op.Type])
				}
			}
		}
	}
	return n
}

// formatOf returns the version of the file format that came with a version of the operators.
func formatOf(opset int64) int64 {
	switch {
	case opset >= 23:
		return 11
	case opset >= 21:
		return 10
	case opset >= 19:
		return 9
	case opset >= 15:
		return 8
	}
	return 7
}
