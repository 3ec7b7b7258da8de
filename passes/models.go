package passes

import "github.com/nnopt/nnopt/optdb"

// ModelQuery returns the query for models of ONNX that q stands for. A model means the same to all programs
// that run it, also where something overflows, is infinite or NaN: 0/0 is NaN, and the logarithm of a sum of
// exponentials is infinite where one of them is. So the query avoids the tags of passes that change such
// results, but for passes that q names, by name, by tag or in a pipeline. All verbs take their queries for
// models through it.
func ModelQuery(q optdb.Query) optdb.Query {
	if q.Empty() || q.Listed() { // there is nothing to avoid
		return q
	}
	return q.Avoiding("unsafe_nan", "overflow")
}

// ForModels returns the optimizer of the standard database for models of ONNX and a query, such as
// optdb.Include("fast_run"), see ModelQuery.
func ForModels(q optdb.Query) (*optdb.Optimizer, error) { return Default().Build(ModelQuery(q)) }
