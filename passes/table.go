package passes

import (
	"maps"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
)

// A row is an entry of the standard database.
type row struct {
	in       string // the database that holds the entry; empty for the standard database itself
	position float64
	name     string
	rewriter any    // or a database; nil for the one of that name in the package of the dialect
	cleanup  bool   // it runs after everything that may have changed the graph
	dialect  string // also a tag
	tags     string // separated by spaces
	doc      string // empty where the rewriter documents itself
	after    reasons
	before   reasons
}

// reasons are constraints: why an entry must run before or after others of its database, by name.
type reasons map[string]string

const (
	watched = "the handler refuses to destroy what is still needed"
	planned = "it refines the plan"
)

// constraints returns the reasons by name.
func (r reasons) constraints() []optdb.Constraint {
	var list []optdb.Constraint
	for _, name := range slices.Sorted(maps.Keys(r)) {
		list = append(list, optdb.Constraint{Name: name, Reason: r[name]})
	}
	return list
}

// The dialects.
const (
	tensors  = "tensor"
	networks = "nnet3"
	models   = "onnx"
)

// The modes of most entries.
const (
	run  = "fast_run"
	both = "fast_run fast_compile"
	ints = "int8 int16"
)

// Further tags:
//
//	fusion      makes a component that no network has, or one op of several
//	inplace     makes ops destroy an input
//	reassoc     changes the order of sums, and so the last bits of a result
//	storage     decides where values live
//	unsafe_nan  changes results where an argument is NaN, infinite or zero
//	contrib     makes nodes that only ONNX Runtime has
//	decompose   makes nodes that every tool knows of one that few know
//	upward      makes one node of several that others may look for
//	int8        multiplies with a precision of 8 bits
//	int16       multiplies with a precision of 16 bits
//	overflow    changes results where a float overflows or an integer wraps around
//	limits      on nodes of ONNX: changes results where a value is infinite, NaN or nearly too large
//
// Kaldi lets two values share a matrix on two conditions, one for each of their matrices. Here a
// matrix may be larger than either value, so there is a single condition, under both names:
// allow_left_merge and allow_right_merge.
const shares = " allow_left_merge allow_right_merge"

// table returns the standard database as data: databases first, then all entries in the order in
// which they run. Positions of tensor passes are Theano's. Orders that matter are declared with their
// reasons, and checked when the database is assembled. Tests shuffle the rest.
func table() []row {
	merge := new(rewrite.Merge)
	rows := []row{
		{position: 0.6, name: "useless", rewriter: optdb.NewTopoDB("useless"), tags: both, doc: "removes what has no effect, once, before anything else"},
		{position: 1, name: "canonicalize", rewriter: optdb.NewEquilibriumDB("canonicalize"), tags: both, doc: "brings the graph into a simple normal form",
			after: reasons{"useless": "it has less to do on a smaller graph"}},
		{position: 1.5, name: "stabilize", rewriter: optdb.NewEquilibriumDB("stabilize"), tags: run, doc: "replaces expressions with ones that neither overflow nor lose digits",
			after: reasons{"canonicalize": "its rules match the normal form"}},
		{position: 1.6, name: "saturate", rewriter: saturate.NewDB("saturate"), dialect: tensors, doc: "collects what equations say about the graph, and takes the cheapest form",
			after:  reasons{"canonicalize": "in the normal form there is less to collect", "local_elemwise_alloc": "what is filled in would look different"},
			before: reasons{"BlasOpt": "its rules match products, not BLAS calls"}},
		{position: 1.7, name: "BlasOpt", rewriter: optdb.NewSequenceDB("BlasOpt"), dialect: tensors, tags: both, doc: "turns matrix products into BLAS calls",
			after: reasons{"canonicalize": "gemm_optimizer matches sums and products in the normal form"}},
		{position: 2, name: "specialize", rewriter: optdb.NewEquilibriumDB("specialize"), tags: run, doc: "replaces computations with cheaper special cases",
			after: reasons{"canonicalize": "its rules match the normal form",
				"stabilize": "rules of stabilize do not match specialized ops",
				"BlasOpt":   "gemm_optimizer matches mul and add, not sqr and sub"}},
		{position: 3, name: "uncanonicalize", rewriter: optdb.NewEquilibriumDB("uncanonicalize"), tags: run, doc: "undoes canonical forms that cost more than what the user wrote",
			after: reasons{"specialize": "specialize matches the normal form"}},
		{position: 49, name: "elemwise_fusion", rewriter: optdb.NewSequenceDB("elemwise_fusion"), dialect: tensors, tags: "fast_run fusion",
			doc: "fuses element-wise ops into one, which goes through memory once",
			after: reasons{"uncanonicalize": "rules do not look into fused ops", "local_pow_specialize_device": "the multiplications should be fused",
				"crossentropy_to_crossentropy_with_softmax": "rules do not look into fused ops"}},

		{position: 0.4, name: "decompose_nodes", rewriter: optdb.NewEquilibriumDB("decompose_nodes"), dialect: models, tags: "decompose",
			doc:    "replaces operators of ONNX Runtime by what they are made of",
			before: reasons{"simplify_nodes": "the parts are simplified there", "bodies1": "what they say about sizes is known inside bodies"}},
		{position: 0.5, name: "bodies1", rewriter: onnxpass.OptimizeBodies("bodies1"), dialect: models, tags: both + " decompose",
			before: reasons{"simplify_nodes": "what a body makes says more about the results of its node"}},
		{position: 1, name: "simplify_nodes", rewriter: optdb.NewEquilibriumDB("simplify_nodes"), dialect: models, tags: both, doc: "makes nodes fewer and simpler",
			after: reasons{"merge1": "equal nodes are simplified once"}},
		{position: 1.9, name: "fuse_qkv", rewriter: onnxpass.FuseQKV(), dialect: models, tags: "fast_run reassoc",
			after: reasons{"simplify_nodes": "until then factors are not part of the weights"}},
		{position: 2, name: "compose_nodes", rewriter: optdb.NewEquilibriumDB("compose_nodes"), dialect: models, tags: "fast_run upward",
			doc:   "replaces nodes with the one that ONNX has for what they compute together",
			after: reasons{"simplify_nodes": "its rules match the simple form"}},
		{position: 2.2, name: "contrib_nodes", rewriter: optdb.NewEquilibriumDB("contrib_nodes"), dialect: models, tags: "contrib upward",
			doc:   "replaces nodes with the one that ONNX Runtime has for what they compute together",
			after: reasons{"simplify_nodes": "its rules match the simple form", "compose_nodes": "its rules match nodes that are made there"}},
		{position: 2.5, name: "bodies2", rewriter: onnxpass.OptimizeBodies("bodies2"), dialect: models, tags: both,
			after: reasons{"simplify_nodes": "what bodies capture has become known", "compose_nodes": "then nothing around them changes any more"}},
		{in: "simplify_nodes", name: "MergeOptimizer", rewriter: &rewrite.Merge{Commutative: true}, cleanup: true, dialect: models, tags: both + " merge", doc: "merges equal nodes, in every pass"},
		{in: "simplify_nodes", name: "infer_types", rewriter: onnxpass.InferTypes(), cleanup: true, dialect: models, tags: both},
		{in: "simplify_nodes", name: "merge_equal_sizes", rewriter: onnxpass.MergeEqualSizes(), cleanup: true, dialect: models, tags: both},
		{in: "compose_nodes", name: "infer_types", rewriter: onnxpass.InferTypes(), cleanup: true, dialect: models, tags: run},

		{position: 0, name: "merge1", rewriter: merge, tags: both + " merge", doc: "merges equal computations, at the start"},
		{position: 0.1, name: "ShapeOpt", dialect: tensors, tags: both,
			before: reasons{"useless": "the rules there ask for shapes"}},
		{position: 0.3, name: "integer_products", dialect: tensors, tags: "fast_run fusion reassoc",
			before: reasons{"useless": "rules change what casts and scales look like", "canonicalize": "constants are folded there, and integers among them"}},
		{position: 0.35, name: "weight_codes", dialect: tensors, tags: "fast_run fusion",
			after:  reasons{"integer_products": "of integers on both sides the product is exact"},
			before: reasons{"useless": "rules change what casts and scales look like"}},
		{position: 0.5, name: "pre_local_logsoftmax_grad", dialect: tensors, tags: "fast_run unsafe_nan",
			before: reasons{"canonicalize": "until then the parts of the gradient are written like those of the expression"}},
		{position: 0.6, name: "limit_derivative_times", dialect: networks, tags: both,
			before: reasons{"consolidate_model_update": "it looks up times by the command of a run, and a merged update has none",
				"canonicalize": "it looks up times by the rows that the command of a run has"}},
		{position: 0.65, name: "merge1.1", rewriter: merge, dialect: tensors, tags: both + " merge", doc: "merges equal computations, after useless",
			after: reasons{"useless": "without the useless ops more computations are equal"}},
		{position: 0.7, name: "consolidate_model_update", dialect: networks, tags: "fast_run reassoc",
			before: reasons{"canonicalize": "updates of runs that memory_compression has given a memo can't be merged"}},
		{position: 0.99, name: "pre_local_IncSubtensor_serialize", dialect: tensors, tags: run,
			before: reasons{"canonicalize": "the rules there match increments one after the other"}},

		{in: "canonicalize", name: "local_remove_identity", dialect: networks, tags: both},
		{in: "canonicalize", name: "local_remove_identity_backward", dialect: networks, tags: both},
		{in: "canonicalize", name: "optimize_row_ops", dialect: networks, tags: both},
		{in: "canonicalize", name: "snip_row_ops", dialect: networks, tags: both},
		{in: "canonicalize", name: "split_row_ops", dialect: networks, tags: both},
		{in: "canonicalize", name: "local_merge_terms", dialect: networks, tags: both},
		{in: "canonicalize", name: "local_drop_zeros", dialect: networks, tags: both},
		{in: "canonicalize", name: "local_useless_assemble", dialect: networks, tags: both},
		{in: "canonicalize", name: "local_assemble_through_block", dialect: networks, tags: both},
		{in: "canonicalize", name: "local_block_of_assemble", dialect: networks, tags: both},
		{in: "canonicalize", name: "local_inline_assemble", dialect: networks, tags: both + " reassoc"},
		{in: "canonicalize", name: "memory_compression", dialect: networks, tags: run},
		{in: "canonicalize", name: "MergeOptimizer", rewriter: merge, cleanup: true, dialect: tensors, tags: both + " merge", doc: "merges equal computations, in every pass"},

		{position: 1.2, name: "merge1.2", rewriter: merge, dialect: tensors, tags: both + " merge", doc: "merges equal computations, after canonicalize",
			after: reasons{"canonicalize": "in the normal form more computations are equal"}},
		{position: 1.51, name: "local_fill_to_alloc", dialect: tensors, tags: run,
			after: reasons{"stabilize": "rules of canonicalize and stabilize match fills"}},
		{position: 1.52, name: "local_elemwise_alloc", dialect: tensors, tags: run,
			after: reasons{"local_fill_to_alloc": "it matches Alloc"}},

		{in: "BlasOpt", position: 0, name: "local_dot_to_dot22", dialect: tensors, tags: both},
		{in: "BlasOpt", position: 10, name: "gemm_optimizer", dialect: tensors, tags: both,
			after: reasons{"local_dot_to_dot22": "it matches Dot22"}},
		{in: "BlasOpt", position: 11, name: "local_dot22_to_dot22scalar", dialect: tensors, tags: both,
			after: reasons{"gemm_optimizer": "a scaled product that is a term of a sum becomes one Gemm"}},
		{in: "BlasOpt", position: 15, name: "local_gemm_to_gemv", dialect: tensors, tags: both,
			after: reasons{"gemm_optimizer": "it matches Gemm"}},
		{in: "BlasOpt", position: 20, name: "use_c_blas", dialect: tensors, tags: both,
			after: reasons{"local_gemm_to_gemv": "it matches Gemv"}},
		{in: "BlasOpt", position: 30, name: "use_scipy_ger", dialect: tensors, tags: both,
			after: reasons{"local_gemm_to_gemv": "it matches Ger"}},

		{position: 1.8, name: "local_multiply_out", dialect: networks, tags: "fast_run fusion reassoc",
			after:  reasons{"canonicalize": "no identity is left between two maps"},
			before: reasons{"specialize": "a map that has been fused or divided can't be multiplied out"}},
		{position: 1.9, name: "split_recurrent_affine", dialect: networks, tags: "fast_run fusion",
			after: reasons{"canonicalize": "it reads through one assembled matrix, not through several",
				"local_multiply_out": "the product of two maps may be worth dividing"},
			before: reasons{"specialize": "local_splice_product would divide each step by itself"}},
		{position: 1.95, name: "split_recurrent_derivative", dialect: networks, tags: "fast_run fusion",
			after: reasons{"consolidate_model_update": "a run that also updates can't be divided",
				"canonicalize": "it reads through one assembled matrix, not through several"},
			before: reasons{"specialize": "local_accumulate lets runs add to the derivatives that others make"}},

		{in: "specialize", name: "local_multiply_once", dialect: networks, tags: "fast_run fusion reassoc",
			before: reasons{"local_splice_product": "it matches the appended matrix, which a spliced product doesn't read"}},
		{in: "specialize", name: "local_group_columns", dialect: networks, tags: "fast_run fusion reassoc",
			before: reasons{"local_splice_product": "it matches the appended matrix, which a spliced product doesn't read"}},
		{in: "specialize", name: "local_fuse_epilogue", dialect: networks, tags: "fast_run fusion"},
		{in: "specialize", name: "local_fuse_residual", dialect: networks, tags: "fast_run fusion"},
		{in: "specialize", name: "local_fuse_residual_backward", dialect: networks, tags: "fast_run fusion"},
		{in: "specialize", name: "local_overwrite", dialect: networks, tags: "fast_run fusion"},
		{in: "specialize", name: "local_overwrite_backward", dialect: networks, tags: "fast_run fusion"},
		{in: "specialize", name: "local_splice_product", dialect: networks, tags: "fast_run fusion"},
		{in: "specialize", name: "local_lift_rows", dialect: networks, tags: run},
		{in: "specialize", name: "local_read_rows_in_place", dialect: networks, tags: run},
		{in: "specialize", name: "local_accumulate", dialect: networks, tags: "fast_run reassoc"},

		{position: 2.01, name: "crossentropy_to_crossentropy_with_softmax", dialect: tensors, tags: run,
			after: reasons{"specialize": "a softmax that has a bias is fused with the bias"}},

		{position: 48, name: "add_mul_fusion", dialect: tensors, tags: run,
			after: reasons{"uncanonicalize": "it flattens the sums that the rules leave"}},
		{position: 48, name: "trim_inputs", dialect: networks, tags: run,
			after: reasons{"specialize": "only then is it known which parts of an input are read"}},
		{position: 49.1, name: "splice_for_integers", dialect: networks, tags: ints,
			after: reasons{"specialize": "only then is it known which products are spliced because that is cheaper", "trim_inputs": "it matches the matrices that products read"}},
		{position: 49.2, name: "quantize_products", rewriter: optdb.NewSequenceDB("quantize_products"), tags: ints,
			doc:    "multiplies integers instead of floats, with the precision that the tags int8 and int16 choose",
			before: reasons{"splice_products": "it matches products of one tensor", "fuse_product_epilogue": "it matches products without an epilogue"},
			after: reasons{"specialize": "a product that is fused or divided later would lose its precision",
				"splice_for_integers": "it divides products, which then have steps of their own", "trim_inputs": "it matches the matrices that products read"}},
		{in: "quantize_products", position: 0, name: "quantize_to_int8", dialect: networks, tags: "int8"},
		{in: "quantize_products", position: 1, name: "quantize_to_int16", dialect: networks, tags: "int16",
			after: reasons{"quantize_to_int8": "it raises some of the products in 8 bits"}},
		{in: "quantize_products", position: 0, name: "products_to_int8", dialect: tensors, tags: "int8"},
		{in: "quantize_products", position: 1, name: "products_to_int16", dialect: tensors, tags: "int16",
			after: reasons{"products_to_int8": "it raises some of the products in 8 bits"}},
		{in: "quantize_products", position: 2, name: "limit_integer_error", dialect: tensors, tags: ints,
			after: reasons{"products_to_int8": "it raises some of the products in 8 bits", "products_to_int16": "it measures what that has left"}},
		{in: "quantize_products", position: 2, name: "bound_quantization_error", dialect: networks, tags: "int8",
			after: reasons{"quantize_to_int8": "it raises some of the products in 8 bits", "quantize_to_int16": "products in 16 bits add little to its estimate"}},
		{in: "quantize_products", position: 3, name: "limit_quantization_error", dialect: networks, tags: ints,
			after: reasons{"quantize_to_int8": "it raises some of the products in 8 bits", "quantize_to_int16": "it returns some of the products in 16 bits to float32",
				"bound_quantization_error": "it measures what that has left"}},
		{position: 48.6, name: "local_pow_specialize_device", dialect: tensors, tags: "fast_run fusion",
			after: reasons{"uncanonicalize": "rules match powers, not the fused ops that it makes of them"}},
		{position: 48.65, name: "multiply_rows_once", dialect: tensors, tags: "fast_run fusion reassoc",
			after:  reasons{"uncanonicalize": "it makes products and sums that rules of terms would move"},
			before: reasons{"splice_products": "it matches what is joined", "elemwise_fusion": "it makes sums, which are flattened and fused there"}},
		{position: 48.7, name: "channels_last", dialect: tensors, tags: "fast_run layout",
			after:  reasons{"uncanonicalize": "rules match convolutions with the channels where users have them"},
			before: reasons{"elemwise_fusion": "fused ops keep the layout that they were made for"}},
		{position: 48.72, name: "float_sums", dialect: tensors, tags: "fast_run fusion",
			after:  reasons{"channels_last": "what turns dimensions is no more between a convolution and a cast"},
			before: reasons{"elemwise_fusion": "it does not look into fused ops", "fuse_product_epilogue": "products of floats have epilogues"}},
		{position: 48.75, name: "winograd", dialect: tensors, tags: "reassoc",
			after:  reasons{"channels_last": "it matches ConvLast"},
			before: reasons{"fuse_product_epilogue": "it matches products without an epilogue"}},
		{position: 49.25, name: "splice_products", dialect: tensors, tags: "fast_run fusion",
			after:  reasons{"channels_last": "it may join channels, and makes products"},
			before: reasons{"fuse_product_epilogue": "it matches products without an epilogue"}},
		{position: 48.8, name: "layer_norm", dialect: tensors, tags: "fast_run fusion",
			after:  reasons{"add_mul_fusion": "it matches products and sums of several"},
			before: reasons{"elemwise_fusion": "it does not look into fused ops"}},
		{position: 49.28, name: "attention", dialect: tensors, tags: "fast_run fusion",
			after:  reasons{"elemwise_fusion": "what is done to scores is one op"},
			before: reasons{"add_destroy_handler": "every later replacement costs more"}},
		{position: 49.3, name: "fuse_product_epilogue", dialect: tensors, tags: "fast_run fusion",
			after:  reasons{"elemwise_fusion": "a fused op is one program", "channels_last": "it matches ConvLast"},
			before: reasons{"add_destroy_handler": "every later replacement costs more"}},
		{in: "elemwise_fusion", position: 0, name: "local_add_mul_fusion", dialect: tensors, tags: "fast_run fusion"},
		{in: "elemwise_fusion", position: 0.5, name: "order_product_terms", dialect: tensors, tags: "fast_run fusion reassoc",
			after:  reasons{"local_add_mul_fusion": "it orders the terms of a flat sum"},
			before: reasons{"composite_elemwise_fusion": "a fused op has its order"}},
		{in: "elemwise_fusion", position: 1, name: "composite_elemwise_fusion", dialect: tensors, tags: "fast_run fusion",
			after: reasons{"local_add_mul_fusion": "it flattens sums and products that are not fused yet"}},
		{position: 49, name: "merge2", rewriter: merge, tags: "fast_run merge", doc: "merges equal computations, after the simplifications",
			after: reasons{"elemwise_fusion": "two fused ops may be equal", "uncanonicalize": "two results may be equal"}},

		{position: 49.5, name: "add_destroy_handler", rewriter: rewrite.AddDestroyHandler(), tags: both,
			after: reasons{"merge2": "every later replacement costs more", "trim_inputs": "every later replacement costs more", "quantize_products": "every later replacement costs more",
				"add_mul_fusion": "every later replacement costs more"}},
		{position: 50, name: "propagate_in_place", dialect: networks, tags: "fast_run inplace" + shares, after: reasons{"add_destroy_handler": watched}},
		{position: 50.1, name: "backprop_in_place", dialect: networks, tags: "fast_run inplace" + shares, after: reasons{"add_destroy_handler": watched}},
		{position: 50.1, name: "local_inplace_setsubtensor", dialect: tensors, tags: "fast_run inplace", after: reasons{"add_destroy_handler": watched}},
		{position: 50.2, name: "InplaceBlasOpt", dialect: tensors, tags: "fast_run inplace", after: reasons{"add_destroy_handler": watched}},

		{position: 60, name: "plan_storage", dialect: networks, tags: both + " storage",
			after: reasons{"propagate_in_place": "it applies what that permits, and fixes the graph", "backprop_in_place": "it applies what that permits, and fixes the graph"}},
		{position: 61, name: "extend_matrices", dialect: networks, tags: "fast_run storage", after: reasons{"plan_storage": planned},
			before: reasons{"remove_assignments": "it lets matrices grow only with this permission"}},
		{position: 61.5, name: "convert_addition", dialect: networks, tags: both + " storage", after: reasons{"plan_storage": planned}},
		{position: 62, name: "remove_assignments", dialect: networks, tags: "fast_run storage" + shares, after: reasons{"plan_storage": planned}},
		{position: 63, name: "initialize_undefined", dialect: networks, tags: both + " storage", after: reasons{"plan_storage": planned}},
		{position: 64, name: "move_sizing_commands", dialect: networks, tags: both + " storage", after: reasons{"plan_storage": planned}},
		{position: 65, name: "allocate_from_other", dialect: networks, tags: "fast_run storage", after: reasons{"plan_storage": planned,
			"remove_assignments": "memory can be taken over only once it is known which values share a matrix"}},
		{position: 66, name: "pack_matrices", dialect: networks, tags: "fast_run storage", after: reasons{"plan_storage": planned,
			"allocate_from_other": "no part of a packed matrix is free before all of it is"}},

		{position: 75, name: "inplace_elemwise_optimizer", dialect: tensors, tags: "fast_run inplace", after: reasons{"add_destroy_handler": watched,
			"InplaceBlasOpt": "memory is worth more to a product than to an element-wise op", "local_inplace_setsubtensor": "memory is worth more to an op that changes only a part of it"}},
		{position: 100, name: "merge3", rewriter: merge, tags: "fast_run merge", doc: "merges equal computations, at the end",
			after: reasons{"inplace_elemwise_optimizer": "that is the last pass that adds computations"}},
	}
	for _, g := range []struct {
		database string
		group    tensorpass.Group
		tags     string
	}{
		{"useless", tensorpass.Useless, both},
		{"canonicalize", tensorpass.Canonicalize, both},
		{"stabilize", tensorpass.Stabilize, run},
		{"specialize", tensorpass.Specialize, run},
		{"uncanonicalize", tensorpass.Uncanonicalize, run},
		{"saturate", tensorpass.Saturate, ""},
	} {
		for _, l := range tensorpass.In(g.group) {
			rows = append(rows, row{in: g.database, name: rewrite.Outline(l.Rule).Name, rewriter: l.Rule, dialect: tensors, tags: g.tags + " " + strings.Join(l.Tags, " ")})
		}
	}
	for _, l := range onnxpass.Rules() {
		for _, group := range l.Groups {
			tags := both
			switch group {
			case "compose_nodes":
				tags = run
			case "decompose_nodes":
				tags = "decompose"
			case "contrib_nodes":
				tags = ""
			}
			rows = append(rows, row{in: group, name: rewrite.Outline(l.Rule).Name, rewriter: l.Rule, dialect: models, tags: tags + " " + strings.Join(l.Tags, " ")})
		}
	}
	return rows
}
