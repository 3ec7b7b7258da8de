package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/rewrite"
)

// A Group is a set of the databases that a rule belongs to.
type Group uint8

// The groups.
const (
	Canonicalize Group = 1 << iota
	Stabilize
	Specialize
	Uncanonicalize
	Useless // once, before anything else
)

// UnsafeNaN is the tag of rules that change results where an argument is NaN, infinite or zero.
const UnsafeNaN = "unsafe_nan"

// A Local is a local rewrite with the groups that it belongs to, and tags beyond those of its groups.
type Local struct {
	Rule   rewrite.NodeRewriter
	Groups Group
	Tags   []string
}

// Name returns the name of the rule.
func (l Local) Name() string { return rewrite.Describe(l.Rule).Name }

// Rules returns the local rewrites.
func Rules() []Local {
	const c, st, sp, u, ul = Canonicalize, Stabilize, Specialize, Uncanonicalize, Useless
	unsafe := []string{UnsafeNaN}
	list := []Local{
		// Sums and products.
		{addCanonize(), c, unsafe},
		{mulCanonize(), c, unsafe},
		{mulPow(), c | sp, unsafe},
		{greedyDistribute(), c | st, unsafe},
		{negToMul(), c, nil},
		{mulZero(), c | sp, unsafe},
		{zeroDiv(), c | sp, unsafe},
		{intDivByOne(), c | sp, nil},
		{absLift(), c, nil},
		{absMerge(), sp, nil},
		{mulSpecialize(), sp, nil},
		{addSpecialize(), sp, nil},
		{addNegToSub(), sp, nil},
		{subNegToAdd(), sp, nil},
		{subZeros(), sp, unsafe},
		{divToInv(), sp, nil},
		{mulToSqr(), sp, nil},
		{negNeg(), sp, nil},
		{negDivNeg(), sp, nil},
		{powCanonicalize(), c, nil},
		{powSpecialize(), sp, nil},
		{powToSqrt(), sp, unsafe},

		// Element-wise ops that do nothing, or nothing new.
		{uselessElemwise(), c | sp | ul, nil},
		{uselessComparison(), c | sp | ul, unsafe},
		{castCast(), c | sp, nil},
		{funcInv(), c | sp, unsafe},
		{sqrtSqr(), sp, nil},
		{upcastConstantInputs(), c, nil},
		{removeSwitchConstCond(), c | ul, nil},
		{uselessSwitch(), c | sp | ul, nil},
		{mulSwitchSink(), c | sp, unsafe},
		{divSwitchSink(), c | sp, unsafe},
		{mergeSwitchSameCond(), c | sp, nil},

		// Broadcasting.
		{fillCut(), c, nil},
		{fillSink(), c, nil},
		{uselessFill(), c | sp | ul, nil},
		{fillToAlloc(), st | sp, nil},
		{uselessAlloc(), c | st | sp | ul, nil},
		{mergeAlloc(), c | ul, nil},
		{canonicalizeAlloc(), c, nil},
		{elemwiseAlloc(), sp, nil},
		{allocUnary(), sp, nil},
		{allocDimShuffle(), u, nil},
		{dimShuffleAlloc(), u, nil},

		// Dimensions and shapes.
		{dimShuffleLift(), c | sp, nil},
		{dimShuffleNoInplace(), c, nil},
		{transposeThroughDot(), c, nil},
		{dimShuffleSubtensor(), u, nil},
		{reshapeChain(), c, nil},
		{reshapeLift(), c | st, nil},
		{flattenLift(), c | st, nil},
		{uselessReshape(), c | st | sp | ul, nil},
		{reshapeToDimShuffle(), c | st, nil},
		{shapeToShapeI(), c | sp, nil},
		{trackShapeI(), c | sp, nil},

		// Reductions.
		{sumAllToNone(), c, nil},
		{sumSum(), c | sp, nil},
		{cutUselessReduce(), c, nil},
		{reduceJoin(), c | u, nil},
		{reduceBroadcastable(), c | sp | u, nil},
		{sumDivDimShuffle(), c | sp, unsafe},
		{sumMulByScalar(), c | sp, unsafe},
		{sumMulDimShuffle(), c | sp, unsafe},
		{reduceMakeVector(), c | sp, nil},
		{sumAlloc(), sp, unsafe},
		{argmaxPushdown(), sp, unsafe},
		{maxToMin(), u, nil},

		// Parts of tensors.
		{subtensorConstants(), c | sp, nil},
		{uselessSlice(), c | sp, nil},
		{uselessSubtensor(), c | sp | ul, nil},
		{subtensorLift(), c, nil},
		{subtensorOfDimShuffle(), c | sp, nil},
		{subtensorOfJoin(), c | sp, nil},
		{subtensorOfSoftmax(), c | sp, nil},
		{subtensorMerge(), c | sp, nil},
		{subtensorMakeVector(), c | sp | ul, nil},
		{subtensorOfAlloc(), c | sp | ul, nil},
		{subtensorOfDot(), c | st | sp, nil},
		{subtensorIncSubtensor(), c | sp, nil},
		{advSub1AdvIncSub1(), c | st, nil},
		{incSubtensorSerialize(), c, nil},
		{incSubtensorOfZeros(), c | st, nil},
		{incSubtensorToSet(), c | sp, nil},
		{setSubtensorOfConstants(), c | sp, nil},
		{uselessIncSubtensor(), c | sp | ul, nil},
		{joinOne(), c | sp | ul, nil},
		{joinEmpty(), c | sp | ul, nil},
		{joinMakeVector(), c | sp | ul, nil},

		// Products of matrices.
		{zeroDot(), c | st, unsafe},
		{usmm(), sp, unsafe},

		// Logarithms, exponentials and what is made of them.
		{logOnePlus(), st | sp, nil},
		{logAdd(), st | sp, nil},
		{logSumExp(), st, nil},
		{expMinusOne(), c | st | sp, nil},
		{expOver1PlusExp(), st, unsafe},
		{inv1PlusExp(), st | sp, nil},
		{oneMinusSigmoid(), st, nil},
		{sigmTimesExp(), st, unsafe},
		{logSigmoid(), st, nil},
		{logOneMinusSigmoid(), st, nil},
		{log1pNegSigmoid(), st, nil},
		{log1pExp(), st, nil},
		{log1mExp(), st, nil},
		{logErfc(), st | sp, nil},
		{gradLogErfc(), st | sp, unsafe},
		{softmaxOfExp(), c | st, unsafe},
		{mulExp(), sp, unsafe},
		{expm1Softplus(), st | sp, nil},
		{logSoftmax(), st | sp, nil},
		{logSoftmaxGrad(), st | sp, unsafe},
		{mulPartQuotient(), c | st, unsafe},
		{crossentropyOfPart(), st | sp, nil},
		{softmaxWithBias(), sp, nil},
		{crossentropyWithBias(), st | sp, nil},
		{softmaxGradToCrossentropyGrad(), sp, unsafe},
		{advancedIndexingCrossentropy(), sp, nil},

		// Constants.
		{ConstantFolding(false), c | st, nil},
		{ConstantFolding(true), sp, nil},
	}
	for _, r := range complements() {
		list = append(list, Local{r, c | st | sp, nil})
	}
	return list
}

// In returns the rules of a group, in the order of the table.
func In(g Group) []Local {
	return slices.DeleteFunc(Rules(), func(l Local) bool { return l.Groups&g == 0 })
}

// GemmToGemv is the pass local_gemm_to_gemv: rules that make products with vectors of products with rows and columns.
func GemmToGemv() rewrite.GraphRewriter {
	return &documented{&rewrite.Equilibrium{Name: "local_gemm_to_gemv", MaxUse: 5,
		Rules: []rewrite.NodeRewriter{gemmToGemv(), gemmToGer(), dot22ToGerOrGemv(), gemvOfSum(), dimShuffleLift()}},
		"products with a single row or column are products with a vector: Gemm and Dot22 → Gemv and Ger"}
}

// documented is a graph rewriter with a sentence that says what it does.
type documented struct {
	*rewrite.Equilibrium
	doc string
}

// Describe describes the equilibrium with that sentence.
func (d *documented) Describe() rewrite.Description {
	description := d.Equilibrium.Describe()
	description.Doc = d.doc
	return description
}

// DotToDot22 is the pass local_dot_to_dot22.
func DotToDot22() rewrite.GraphRewriter { return rewrite.In2Out("local_dot_to_dot22", dotToDot22()) }

// Dot22ToDot22Scalar is the pass local_dot22_to_dot22scalar.
func Dot22ToDot22Scalar() rewrite.GraphRewriter {
	return rewrite.In2Out("local_dot22_to_dot22scalar", dot22ToDot22Scalar())
}

// UseBLAS is the pass use_c_blas.
func UseBLAS() rewrite.GraphRewriter { return rewrite.In2Out("use_c_blas", useBLAS()) }

// UseBLASGer is the pass use_scipy_ger.
func UseBLASGer() rewrite.GraphRewriter { return rewrite.In2Out("use_scipy_ger", useBLASGer()) }

// FillToAlloc is local_fill_to_alloc as a pass, before the products of matrices are looked for.
func FillToAlloc() rewrite.GraphRewriter { return rewrite.In2Out("local_fill_to_alloc", fillToAlloc()) }

// ElemwiseAlloc is local_elemwise_alloc as a pass.
func ElemwiseAlloc() rewrite.GraphRewriter {
	return rewrite.In2Out("local_elemwise_alloc", elemwiseAlloc())
}

// SerializeIncSubtensor is local_IncSubtensor_serialize as a pass, before everything else.
func SerializeIncSubtensor() rewrite.GraphRewriter {
	return rewrite.In2Out("pre_local_IncSubtensor_serialize", incSubtensorSerialize())
}

// LogSoftmaxGrad is local_logsoftmax_grad as a pass, before everything else.
func LogSoftmaxGrad() rewrite.GraphRewriter {
	return rewrite.In2Out("pre_local_logsoftmax_grad", logSoftmaxGrad())
}

// CrossentropyWithSoftmax is the pass crossentropy_to_crossentropy_with_softmax.
func CrossentropyWithSoftmax() rewrite.GraphRewriter {
	return rewrite.In2Out("crossentropy_to_crossentropy_with_softmax", crossentropyWithSoftmax())
}

// PowDevice is the pass local_pow_specialize_device.
func PowDevice() rewrite.GraphRewriter {
	return rewrite.In2Out("local_pow_specialize_device", powDevice())
}
