package ir

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/half"
	"github.com/nnopt/nnopt/onnx"
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
	"Reshape": {"allowzero": 14}, "Resize": {"coordinate_transformation_mode": 11, "antialias": 18, "axes": 18, "keep_aspect_ratio_policy": 18},
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
			if !idle(b) {
				n = max(n, forms[b.Name])
			}
		}
	}
	return n
}

// idle reports whether an attribute of formsSince has the value that it has where it is left out, as far as other
// operators leave such a one: those of blocks of channels have all attributes that a pool may have.
func idle(a *onnx.Attribute) bool {
	return a.Name == "ceil_mode" && a.Int == 0 || a.Name == "dilations" && !slices.ContainsFunc(a.Ints, func(n int64) bool { return n != 1 })
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

// A moved attribute is one that became an input of its operator in some version. Graphs have the
// input, so that rules need not know versions.
type moved struct {
	name   string
	input  int
	scalar bool // the input has no dimensions
	float  bool // of the type of the first input
}

// movedSince are the operators with attributes that became inputs, and since which version.
var movedSince = map[string]struct {
	version int64
	list    []moved
}{
	"Clip":            {11, []moved{{"min", 1, true, true}, {"max", 2, true, true}}},
	"Dropout":         {12, []moved{{"ratio", 1, true, true}}},
	"Pad":             {11, []moved{{"pads", 1, false, false}, {"value", 2, true, true}}},
	"ReduceSum":       {13, reduced},
	"ReduceL1":        {18, reduced},
	"ReduceL2":        {18, reduced},
	"ReduceLogSum":    {18, reduced},
	"ReduceLogSumExp": {18, reduced},
	"ReduceMax":       {18, reduced},
	"ReduceMean":      {18, reduced},
	"ReduceMin":       {18, reduced},
	"ReduceProd":      {18, reduced},
	"ReduceSumSquare": {18, reduced},
	"Reshape":         {5, []moved{{"shape", 1, false, false}}},
	"Slice":           {10, []moved{{"starts", 1, false, false}, {"ends", 2, false, false}, {"axes", 3, false, false}}},
	"Split":           {13, []moved{{"split", 1, false, false}}},
	"Squeeze":         {13, reduced},
	"Unsqueeze":       {13, reduced},
	"TopK":            {10, []moved{{"k", 1, false, false}}},
	"Upsample":        {9, []moved{{"scales", 1, false, true}}},
}

var reduced = []moved{{"axes", 1, false, false}}

// formerDefaults are the values of attributes that nodes leave out, in versions before one since which they have others
// or none. Those of Clip are for floats.
var formerDefaults = map[string]struct {
	since, before int64
	list          []*onnx.Attribute
}{
	"Clip":   {6, 11, []*onnx.Attribute{Float("min", -math.MaxFloat32), Float("max", math.MaxFloat32)}},
	"Concat": {1, 4, []*onnx.Attribute{Int("axis", 1)}},
	"Selu":   {1, 6, []*onnx.Attribute{Float("alpha", 1.6732), Float("gamma", 1.0507)}},
}

// formerly returns the attributes of formerDefaults for a version.
func formerly(op string, version int64) []*onnx.Attribute {
	if d := formerDefaults[op]; version >= d.since && version < d.before {
		return d.list
	}
	return nil
}

// setDefaults sets the attributes that a node of a version leaves out if their values are others today.
func setDefaults(op *Op, version int64, in []*fgraph.Variable) {
	if op.Type == "Clip" && (len(in) != 1 || TypeOf(in[0]).Elem() != onnx.Float && TypeOf(in[0]).Elem() != onnx.Double) {
		return
	}
	for _, a := range formerly(op.Type, version) {
		if op.Attribute(a.Name) == nil {
			op.Attributes = append(op.Attributes, a)
		}
	}
}

// softmaxVersion is the version since which a Softmax is along one axis.
const softmaxVersion = 13

// changedBefore are operators that had another meaning in versions before one. broadcast and axis of
// element-wise operators before version 7 are told by the attributes.
var changedBefore = map[string]int64{
	"Softmax": softmaxVersion, "LogSoftmax": softmaxVersion, "Hardmax": softmaxVersion, "Resize": 11, "Scan": 9, "GroupNormalization": 21,
	"DFT": 20, "PRelu": 7, "RoiAlign": 16, "Dropout": 7, "Split": 2, "Pad": 2, "Tile": 6, "Upsample": 7, "Cast": 6, "GRU": 3,
}

// legacy returns the version of an operator if its meaning is not today's.
func legacy(op string, version int64, attribute func(string) *onnx.Attribute, outputs int) int64 {
	old := version < changedBefore[op] || version < 7 && (attribute("broadcast") != nil || attribute("is_test") != nil)
	if op == "BatchNormalization" {
		spatial := attribute("spatial")
		// Before version 7 is_test told inference from training. Before 9 spatial=0 meant statistics
		// for each place instead of each channel. Before 14 training had five results.
		old = version < 7 || version < 9 && spatial != nil && spatial.Int == 0 || version < 14 && outputs > 1
	}
	if old {
		return version
	}
	return 0
}

// modernize gives an op that had another meaning today's where both are the same for its inputs: a
// Softmax over all dimensions from an axis on is one along that axis if it is the last.
func modernize(op *Op, in []*fgraph.Variable) {
	switch op.Type {
	case "Softmax", "LogSoftmax", "Hardmax":
		if op.Legacy == 0 || len(in) != 1 {
			return
		}
		n := int64(TypeOf(in[0]).Rank())
		axis := op.Int("axis", 1)
		if axis < 0 {
			axis += n
		}
		if n > 0 && axis == n-1 {
			op.Legacy = 0
			op.Attributes = append(op.without("axis"), Int("axis", axis))
		}
	case "BatchNormalization":
		if op.Legacy == 0 {
			op.Attributes = op.without("spatial") // 1, which later versions don't say
		}
	}
}

// without returns the attributes but one.
func (op *Op) without(name string) []*onnx.Attribute {
	return slices.DeleteFunc(slices.Clone(op.Attributes), func(a *onnx.Attribute) bool { return a.Name == name })
}

// alongLast reports whether a Softmax and the like means the same in all versions.
func alongLast(a *fgraph.Apply) bool {
	n := int64(TypeOf(a.Inputs()[0]).Rank())
	axis := a.Op().(*Op).Int("axis", -1)
	return axis == -1 || n > 0 && axis == n-1
}

// normalize makes inputs of attributes that became some: also in versions that have the inputs, or nobody would see
// the attributes.
func normalize(op *Op, in []*fgraph.Variable) ([]*fgraph.Variable, error) {
	if op.Domain != "" || op.Legacy != 0 {
		return in, nil
	}
	for _, a := range movedSince[op.Type].list {
		attribute := op.Attribute(a.name)
		if attribute == nil {
			continue
		}
		if len(in) == 0 || len(in) > a.input {
			return nil, fmt.Errorf("%s has %d inputs beside the attribute %s", op.Type, len(in), a.name)
		}
		v, err := a.constant(attribute, TypeOf(in[0]).Elem())
		if err != nil {
			return nil, err
		}
		for len(in) < a.input {
			in = append(in, Missing())
		}
		in = append(in, v)
		op.Attributes = op.without(a.name)
	}
	return in, nil
}

func (a moved) constant(attribute *onnx.Attribute, elem onnx.DataType) (*fgraph.Variable, error) {
	switch {
	case !a.float && attribute.Type == onnx.AttributeInts:
		return Int64s(attribute.Ints...), nil
	case !a.float && attribute.Type == onnx.AttributeInt:
		return Int64s(attribute.Int), nil
	case a.float && a.scalar && attribute.Type == onnx.AttributeFloat:
		return scalarFloat(attribute.Float, elem)
	case a.float && attribute.Type == onnx.AttributeFloats:
		t := &onnx.Tensor{Dims: []int64{int64(len(attribute.Floats))}, DataType: onnx.Float, Floats: attribute.Floats}
		return Constant(NewValue(t, ""), ""), nil
	}
	return nil, fmt.Errorf("its attribute %s has another type than it should", a.name)
}

// scalarFloat returns a number as a tensor without dimensions.
func scalarFloat(f float32, elem onnx.DataType) (*fgraph.Variable, error) {
	switch elem {
	case onnx.Undefined:
		elem = onnx.Float
	case onnx.Float16:
		raw := binary.LittleEndian.AppendUint16(nil, half.Bits(f))
		return Constant(NewValue(&onnx.Tensor{DataType: elem, Raw: raw}, ""), ""), nil
	}
	return Filled(float64(f), elem)
}

// denormalize makes attributes of inputs that a version of ONNX does not have yet.
func denormalize(op *Op, version int64, in []*fgraph.Variable) ([]*onnx.Attribute, []*fgraph.Variable, error) {
	if op.Domain == "" && changedBefore[op.Type] == softmaxVersion && op.Legacy == 0 && version < softmaxVersion && op.Attribute("axis") == nil {
		// The default was another one.
		return append(slices.Clone(op.Attributes), Int("axis", int64(TypeOf(in[0]).Rank()-1))), in, nil
	}
	if op.Domain == blocked {
		return op.without(channelBlock), in, nil
	}
	if op.Domain == "" && op.Type == "GridSample" {
		return gridMode(op, version), in, nil
	}
	m, ok := movedSince[op.Type]
	if !ok || op.Domain != "" || op.Legacy != 0 || version >= m.version {
		later := func(a *onnx.Attribute) bool { return version < formsSince[op.Type][a.Name] && idle(a) }
		if op.Domain == "" && slices.ContainsFunc(op.Attributes, later) {
			return slices.DeleteFunc(slices.Clone(op.Attributes), later), in, nil
		}
		return op.Attributes, in, nil
	}
	attributes := slices.Clone(op.Attributes)
	for _, a := range m.list {
		if a.input >= len(in) || IsOmitted(in[a.input]) {
			continue
		}
		attribute, ok := a.attribute(in[a.input])
		if !ok {
			return nil, nil, fmt.Errorf("input %d of %s is computed, which needs version %d of ONNX's operators; the model has %d", a.input, op.Type, m.version, version)
		}
		// An old Clip without bounds got them as constants when it was imported. Its node leaves them out again.
		left := func(d *onnx.Attribute) bool { return d.Name == a.name && d.Float == attribute.Float }
		if !slices.ContainsFunc(formerly(op.Type, version), left) {
			attributes = append(attributes, attribute)
		}
	}
	return attributes, in[:min(len(in), m.list[0].input)], nil
}

// gridModes are the modes of a GridSample that have other names since version 20.
var gridModes = [][2]string{{"bilinear", "linear"}, {"bicubic", "cubic"}}

// gridMode returns the attributes of a GridSample with the name that a version has for its mode.
func gridMode(op *Op, version int64) []*onnx.Attribute {
	for _, names := range gridModes {
		old, name := names[0], names[1]
		if version < 20 {
			old, name = name, old
		}
		if op.Text("mode", "") == old {
			return append(op.without("mode"), String("mode", name))
		}
	}
	return op.Attributes
}

func (a moved) attribute(v *fgraph.Variable) (*onnx.Attribute, bool) {
	x := ValueOf(v)
	if x == nil {
		return nil, false
	}
	if !a.float {
		list, ok := x.Ints()
		if a.name == "k" {
			return Int(a.name, slices.Concat(list, []int64{0})[0]), ok && len(list) == 1
		}
		return Ints(a.name, list...), ok
	}
	if a.scalar {
		raw, err := x.Bytes()
		if err != nil || kindOf(x.Tensor.DataType) != floats || x.Len() != 1 {
			return nil, false
		}
		return Float(a.name, float32(numberAt(x.Tensor.DataType, raw))), true
	}
	list, ok := x.Floats()
	attribute := &onnx.Attribute{Name: a.name, Type: onnx.AttributeFloats}
	for _, f := range list {
		attribute.Floats = append(attribute.Floats, float32(f))
	}
	return attribute, ok
}
