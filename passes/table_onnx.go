package passes

import (
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/rewrite"
)

// modelRows returns the passes on nodes of ONNX.
func modelRows() []row {
	return []row{
		{position: 0.4, name: "decompose_nodes", rewriter: optdb.NewEquilibriumDB("decompose_nodes"), tags: "decompose",
			doc:    "replaces operators of ONNX Runtime by what they are made of",
			before: reasons{"simplify_nodes": "the parts are simplified there", "bodies1": "what they say about sizes is known inside bodies"}},
		{position: 0.5, name: "bodies1", rewriter: onnxpass.OptimizeBodies("bodies1"), tags: both + " decompose",
			before: reasons{"simplify_nodes": "what a body makes says more about the results of its node"}},
		{position: 1, name: "simplify_nodes", rewriter: optdb.NewEquilibriumDB("simplify_nodes"), tags: both, doc: "makes nodes fewer and simpler",
			after: reasons{"merge1": "equal nodes are simplified once"}},

		{in: "simplify_nodes", name: "MergeOptimizer", rewriter: &rewrite.Merge{Commutative: true}, cleanup: true, tags: both + " merge", doc: "merges equal nodes, in every pass"},
		{in: "simplify_nodes", name: "infer_types", rewriter: onnxpass.InferTypes(), cleanup: true, tags: both},
		{in: "simplify_nodes", name: "merge_equal_sizes", rewriter: onnxpass.MergeEqualSizes(), cleanup: true, tags: both},

		{position: 1.9, name: "fuse_qkv", rewriter: onnxpass.FuseQKV(), tags: "fast_run reassoc",
			after: reasons{"simplify_nodes": "until then factors are not part of the weights"}},
		{position: 2, name: "compose_nodes", rewriter: optdb.NewEquilibriumDB("compose_nodes"), tags: "fast_run upward",
			doc:   "replaces nodes with the one that ONNX has for what they compute together",
			after: reasons{"simplify_nodes": "its rules match the simple form"}},

		{in: "compose_nodes", name: "infer_types", rewriter: onnxpass.InferTypes(), cleanup: true, tags: run},

		{position: 2.2, name: "contrib_nodes", rewriter: optdb.NewEquilibriumDB("contrib_nodes"), tags: "contrib upward",
			doc:   "replaces nodes with the one that ONNX Runtime has for what they compute together",
			after: reasons{"simplify_nodes": "its rules match the simple form", "compose_nodes": "its rules match nodes that are made there"}},
		{position: 2.3, name: "matmul_nbits", rewriter: onnxpass.MatMulNBits(),
			after: reasons{"fuse_qkv": "joined weights become codes together", "contrib_nodes": "its rules match products of floats"}},
		{position: 2.5, name: "bodies2", rewriter: onnxpass.OptimizeBodies("bodies2"), tags: both,
			after: reasons{"simplify_nodes": "what bodies capture has become known", "compose_nodes": "then nothing around them changes any more"}},
	}
}
