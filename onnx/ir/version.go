package ir

import (
	"math"
	"slices"

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

// formsSince are attributes that operators have since a later version than themselves, by operator and name.
var formsSince = map[string]map[string]int64{
	"ArgMax": {"select_last_index": 12}, "ArgMin": {"select_last_index": 12},
	"AveragePool": {"ceil_mode": 10, "dilations": 19}, "MaxPool": {"ceil_mode": 10, "dilations": 10},
	"BatchNormalization": {"training_mode": 14},
	"Cast":               {"saturate": 19}, "CastLike": {"saturate": 19},
	"DepthToSpace": {"mode": 11}, "TopK": {"largest": 11, "sorted": 11},
	"GRU": {"layout": 14}, "LSTM": {"layout": 14}, "RNN": {"layout": 14},
	"QuantizeLinear": {"axis": 13, "saturate": 19, "block_size": 21, "output_dtype": 21}, "DequantizeLinear": {"axis": 13, "block_size": 21},
	"Reshape": {"allowzero": 14}, "Resize": {"antialias": 18, "axes": 18, "keep_aspect_ratio_policy": 18},
	"ScatterElements": {"reduction": 16}, "ScatterND": {"reduction": 16},
	"Shape": {"end": 15, "start": 15}, "Split": {"num_outputs": 18},
}

// needs returns the first version of ONNX's operators that can express an apply, as far as that is known,
// 1 for other domains. What the model itself has is taken to be in its version: ONNX Runtime writes
// operators of newer ones.
func (s *Source) needs(a *fgraph.Apply) int64 {
	op := a.Op().(*Op)
	if op.Domain != "" || op.Legacy != 0 {
		return 1
	}
	n := int64(1)
	f := s.inFunction(a)
	if own := f == nil || f.opsets[""] == s.opsets[""]; !(own && s.unchanged(a)) && !(s.contributed && op.Type == contributed) {
		n = op.since()
	}
	switch op.Type {
	case "Softmax", "LogSoftmax", "Hardmax":
		// Older versions take all dimensions from the axis on for one, which is the same only along the last.
		if s.opsets[""] < softmaxVersion && !alongLast(a) {
			n = softmaxVersion
		}
	case "Pad":
		if len(a.Inputs()) > 3 { // axes
			n = 18
		}
	}
	// Before it was an input, it had to be known.
	if m, ok := movedSince[op.Type]; ok {
		for _, b := range m.list {
			if b.input < len(a.Inputs()) && !a.Inputs()[b.input].IsConstant() {
				n = max(n, m.version)
			}
		}
	}
	return n
}

// since returns the first version of ONNX's operators that has an operator with such attributes.
func (op *Op) since() int64 {
	n := Since(op.Type)
	if forms := formsSince[op.Type]; forms != nil {
		for _, b := range op.Attributes {
			n = max(n, forms[b.Name])
		}
	}
	return n
}

// version returns the version of ONNX's operators that graphs are written for: what they need, but at
// least that of the model, and no version in which nodes of the model mean something else. A model that
// has none, since all its nodes call functions, gets the newest of those.
func (e *exporter) version(g *fgraph.FunctionGraph, n int64) int64 {
	for a := range e.calling(g).Applies() {
		op := a.Op().(*Op)
		for _, b := range op.Bodies {
			n = e.version(b.Graph, n)
		}
		// In later versions nodes of the model mean something else. What needs one becomes a function.
		if k := e.needs(a); k <= e.latest {
			n = max(n, k)
		}
		if e.opsets[""] == 0 {
			if f := e.inFunction(a); f != nil {
				n = max(n, f.opsets[""])
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

// standard are ONNX's own operators, up to opset 28. Their results are as the newest version says;
// where an older one says something else, Legacy tells.
var standard = slices.Concat(standardMath, standardLogic, standardProducts, standardReductions, standardShapes, standardIndexing, standardWindows, standardNorms, standardAttention,
	standardRecurrent, standardQuantization, standardRandom, standardSignals, standardControl, standardSequences, standardStrings, standardLearners, standardTraining,
	contribNorms, contribActivations, contribProducts, contribAttention, contribQuantization, contribBlocked, contribOthers)
