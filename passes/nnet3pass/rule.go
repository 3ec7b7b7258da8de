package nnet3pass

import (
	"iter"

	"github.com/nnopt/nnopt/internal/lists"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/passes/nnet3pass/internal/noise"
	"github.com/nnopt/nnopt/rewrite"
)

// ruleFor makes a rule that matches ops of type O. depth is that of rewrite.Rule.
func ruleFor[O fgraph.Op](name, doc string, depth int, fn func(c *rewrite.Context, a *fgraph.Apply, op O) rewrite.Result) rewrite.Rule {
	return rewrite.Rule{
		Name: name, Doc: doc, Depth: depth, On: []rewrite.Track{rewrite.TrackType[O]()},
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) { return fn(c, a, a.Op().(O)), nil },
	}
}

// replaceOp proposes the same apply with another op.
func replaceOp(a *fgraph.Apply, op fgraph.Op) rewrite.Result {
	return rewrite.Replace(fgraph.NewApply(op, a.Inputs(), outputTypes(a)...).Outputs()...)
}

// applyAt applies an op at the time of apply a.
func applyAt(a *fgraph.Apply, op fgraph.Op, inputs []*fgraph.Variable, types ...fgraph.Type) *fgraph.Apply {
	b := fgraph.NewApply(op, inputs, types...)
	b.SetOrigin(a.Origin())
	return b
}

// replacements pairs old values with new ones.
func replacements(old, now []*fgraph.Variable) []fgraph.Replacement {
	pairs := make([]fgraph.Replacement, len(old))
	for i, v := range old {
		pairs[i] = fgraph.Replacement{Old: v, New: now[i]}
	}
	return pairs
}

// readers yields the uses of v by applies, without those as an output of the graph.
func readers(v *fgraph.Variable) iter.Seq[fgraph.Client] {
	return func(yield func(fgraph.Client) bool) {
		for _, c := range v.Clients() {
			if c.Apply != nil && !yield(c) {
				return
			}
		}
	}
}

// ownerOp returns the op that computes v if it is of type O.
func ownerOp[O fgraph.Op](v *fgraph.Variable) (op O, ok bool) {
	if a := v.Owner(); a != nil {
		op, ok = a.Op().(O)
	}
	return op, ok
}

// madeBy reports whether an op of type O computes v.
func madeBy[O fgraph.Op](v *fgraph.Variable) bool {
	_, ok := ownerOp[O](v)
	return ok
}

// isZero reports whether v is a matrix of zeros.
func isZero(v *fgraph.Variable) bool {
	fill, ok := ownerOp[lower.Fill](v)
	return ok && fill.Value == 0
}

// outputTypes returns the types of the outputs of a.
func outputTypes(a *fgraph.Apply) []fgraph.Type {
	return lists.Map(a.Outputs(), (*fgraph.Variable).Type)
}

// origin returns the number of the command that v comes from, or -1 if v is an input of the graph.
func origin(v *fgraph.Variable) int {
	if a := v.Owner(); a != nil {
		return a.Origin()
	}
	return -1
}

// covers reports whether the term writes every element of the result.
func covers(op *lower.Assemble, t *lower.Term) bool {
	return t.NumRows == op.Rows && t.NumCols == op.Cols
}

// plain reports whether op only computes its output, and not in place.
func plain(op lower.Propagate) bool {
	return !op.StoreStats && !op.UsesMemo && !op.InPlace && op.C.Properties()&component.Random == 0
}

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
		splitRecurrentDerivative(leastSplit),
		trimInputs(), spliceForIntegers(), quantizeTo8(), quantizeTo16(), boundQuantizationError(defaultBound, noise.NewKnown()), limitQuantizationError(0), propagateInPlace(), backpropInPlace(),
		planStorage(),
	}, storagePasses()...)
}
