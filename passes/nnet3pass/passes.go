package nnet3pass

import (
	"github.com/nnopt/nnopt/passes/nnet3pass/internal/noise"
	"github.com/nnopt/nnopt/rewrite"
)

// Rules returns the local rewrites, which the standard database has in its groups canonicalize and
// specialize.
func Rules() []rewrite.Rule {
	return []rewrite.Rule{
		removeIdentity(), removeIdentityBackward(),
		optimizeRowOps(), snipRowOps(), splitRowOps(),
		mergeTerms(), dropZeros(), uselessAssemble(), throughBlock(), blockOfAssemble(), inlineAssemble(),
		memoryCompression(),
		multiplyOnce(), groupColumns(), fuseEpilogue(), fuseResidual(), fuseResidualBackward(), overwrite(), overwriteBackward(), spliceProduct(),
		liftRows(), readRowsInPlace(), accumulate(),
	}
}

// Passes returns the graph rewriters, in the order in which the standard database runs them.
func Passes() []rewrite.GraphRewriter {
	return append([]rewrite.GraphRewriter{
		newLimitDerivativeTimes(allDerivTimes), consolidateModelUpdate(),
		rewrite.In2Out("local_multiply_out", multiplyOut()), SplitRecurrentAffine(leastSplit),
		SplitRecurrentDerivative(leastSplit),
		trimInputs(), spliceForIntegers(), quantizeTo8(), quantizeTo16(), boundQuantizationError(defaultBound, noise.NewKnown()), limitQuantizationError(0), propagateInPlace(), backpropInPlace(),
		planStorage(),
	}, storagePasses()...)
}
