package lower

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Demand is a value that the graph depends on: a condition, sizes, what a size is computed of. It was
// computed to make the graph, and is computed again with it: the results hold if it is the same again.
type Demand struct {
	Variable *fgraph.Variable
	Value    *array.Array
	// Input is the index of an input that is the value, otherwise -1.
	Input int
}

// valueOf computes a variable from the arguments. The graph depends on the value from then on.
func (l *lowering) valueOf(v *fgraph.Variable) (*array.Array, error) {
	if l.dependsOnSizes(v) {
		return nil, ErrSizes
	}
	return l.demand(v)
}

// demand is valueOf, also of what can be another value for other sizes: it is seldom another one, as a condition is.
func (l *lowering) demand(v *fgraph.Variable) (*array.Array, error) {
	a, err := l.values.Value(v)
	if err == nil && !v.IsConstant() && !l.demanded[v] {
		l.demanded[v] = true
		l.demands = append(l.demands, Demand{v, a, slices.Index(l.inputs, v)})
	}
	return a, err
}
