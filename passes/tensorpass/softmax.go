package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// softmaxRules are the rules of softmaxes, their logarithms and cross-entropies.
var softmaxRules = goRules{
	"local_logsoftmax_grad":                               {onOp(tensor.SoftmaxGradOp{}), of(onSoftmax), 0, logSoftmaxGrad},
	"local_mul_part_quotient":                             {on(array.Mul), of(onAnyIncSubtensor), 0, mulPartQuotient},
	"local_crossentropy_of_part_of_softmax":               {onCrossentropy, of(onViews), 0, crossentropyOfPart},
	"crossentropy_to_crossentropy_with_softmax_with_bias": {onCrossentropy, of(onSoftmax), 2, crossentropyWithBias},
}

var (
	onCrossentropy = onOp(tensor.CrossentropyCategorical1HotOp{})
	onSoftmax      = append(onType[tensor.SoftmaxOp](), onType[tensor.SoftmaxWithBiasOp]()...)
)

// softmaxFunctions are what the rules of softmaxes ask.
var softmaxFunctions = []pattern.Function{
	about("column(x)", "the last dimension of x has size 1", func(v *variable) bool {
		n := typeOf(v).NDim()
		return n > 0 && typeOf(v).Dim(n-1) == 1
	}),
	pattern.NewGuard("keeps({d}, {a}, x)", 1, "the DimShuffle d puts back, with size 1, the single dimension a along which x was reduced",
		func(a pattern.Args) bool {
			return keepsDim(a.Params[0].(tensor.DimShuffleOp), a.Params[1].(tensor.Reduce), a.Vars[0])
		}),
	pattern.NewGuard("row({d}, b, x)", 1, "the DimShuffle d makes the vector b a row that is added to each row of the matrix x, of the same element type",
		func(a pattern.Args) bool {
			b, x := typeOf(a.Vars[0]), typeOf(a.Vars[1])
			return b.NDim() == 1 && b.Dim(0) != 1 && x.NDim() == 2 && x.Dim(1) != 1 && b.DType() == x.DType() &&
				a.Params[0].(tensor.DimShuffleOp).PadsLeft(1)
		}),
	pattern.NewGuard("counts(i, x, y)", 0, "i is 0, 1, 2 and so on, up to the number of rows of the matrix x or of elements of the vector y",
		func(a pattern.Args) bool {
			n, x, y := rangeFromZero(a.Vars[0]), a.Vars[1], a.Vars[2]
			if a.Context == nil || n == nil || typeOf(x).NDim() != 2 || typeOf(y).NDim() != 1 {
				return false
			}
			s := tensor.ShapesOf(a.Context.Graph())
			return sameSize(n, s.Dim(x, 0)) || sameSize(n, s.Dim(y, 0))
		}),
	value("(rows x i)", 0, "the rows of x that i counts from 0", func(a pattern.Args) *variable {
		x, n := a.Vars[0], rangeFromZero(a.Vars[1])
		if sameSize(n, tensor.ShapesOf(a.Context.Graph()).Dim(x, 0)) {
			return x
		}
		return tensor.Subtensor(x, tensor.SliceOf(nil, n, 1)) // there may be rows that i does not count
	}),
	value("(no_bias x)", 0, "zeros, one for each column of x", func(a pattern.Args) *variable { return zeroBias(a.Context.Graph(), a.Vars[0]) }),
}

// keepsDim reports whether a reduction of x along a, followed by d, is along one dimension, which
// stays with size 1.
func keepsDim(d tensor.DimShuffleOp, a tensor.Reduce, x *variable) bool {
	order := make([]int, typeOf(x).NDim())
	along, kept := a.Over(len(order)), 0
	for k := range order {
		if along.Has(k) {
			order[k] = array.NewAxis
		} else {
			order[k] = kept
			kept++
		}
	}
	return kept == len(order)-1 && slices.Equal(d.NewOrder(), order)
}
