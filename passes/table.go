package passes

import (
	"maps"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/onnxpass"
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
//	unsafe_nan  changes results where something is NaN or infinite, perhaps because an argument is zero
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

// table returns the standard database as data: what all dialects have, then each dialect, each in the
// order in which it runs, the entries of a nested database behind it. Positions of tensor passes are
// Theano's. Orders that matter are declared with their reasons, and checked when the database is
// assembled. Tests shuffle the rest.
func table() []row {
	rows := sharedRows()
	for _, d := range []struct {
		dialect string
		rows    []row
	}{{models, modelRows()}, {networks, networkRows()}, {tensors, tensorRows()}} {
		for _, r := range d.rows {
			r.dialect = d.dialect
			rows = append(rows, r)
		}
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

// sharedRows returns the entries for graphs of all dialects.
func sharedRows() []row {
	return []row{
		{position: 0, name: "merge1", rewriter: &rewrite.Merge{Commutative: true}, tags: both + " merge", doc: "merges equal computations, at the start"},
		{position: 0.6, name: "useless", rewriter: optdb.NewTopoDB("useless"), tags: both, doc: "removes what has no effect, once, before anything else"},
		{position: 1, name: "canonicalize", rewriter: optdb.NewEquilibriumDB("canonicalize"), tags: both, doc: "brings the graph into a simple normal form",
			after: reasons{"useless": "it has less to do on a smaller graph"}},
		{position: 1.5, name: "stabilize", rewriter: optdb.NewEquilibriumDB("stabilize"), tags: run, doc: "replaces expressions with ones that neither overflow nor lose digits",
			after: reasons{"canonicalize": "its rules match the normal form"}},
		{position: 2, name: "specialize", rewriter: optdb.NewEquilibriumDB("specialize"), tags: run, doc: "replaces computations with cheaper special cases",
			after: reasons{"canonicalize": "its rules match the normal form",
				"stabilize": "rules of stabilize do not match specialized ops",
				"BlasOpt":   "gemm_optimizer matches mul and add, not sqr and sub"}},
		{position: 3, name: "uncanonicalize", rewriter: optdb.NewEquilibriumDB("uncanonicalize"), tags: run, doc: "undoes canonical forms that cost more than what the user wrote",
			after: reasons{"specialize": "specialize matches the normal form"}},
		{position: 49, name: "merge2", rewriter: &rewrite.Merge{Commutative: true}, tags: "fast_run merge", doc: "merges equal computations, after the simplifications",
			after: reasons{"elemwise_fusion": "two fused ops may be equal", "uncanonicalize": "two results may be equal"}},
		{position: 49.2, name: "quantize_products", rewriter: optdb.NewSequenceDB("quantize_products"), tags: ints,
			doc:    "multiplies integers instead of floats, with the precision that the tags int8 and int16 choose",
			before: reasons{"splice_products": "it matches products of one tensor", "fuse_product_epilogue": "it matches products without an epilogue"},
			after: reasons{"specialize": "a product that is fused or divided later would lose its precision",
				"splice_for_integers": "it divides products, which then have steps of their own", "trim_inputs": "it matches the matrices that products read"}},
		{position: 49.5, name: "add_destroy_handler", rewriter: rewrite.AddDestroyHandler(), tags: both,
			after: reasons{"merge2": "every later replacement costs more", "trim_inputs": "every later replacement costs more", "quantize_products": "every later replacement costs more",
				"add_mul_fusion": "every later replacement costs more"}},
		{position: 100, name: "merge3", rewriter: &rewrite.Merge{Commutative: true}, tags: "fast_run merge", doc: "merges equal computations, at the end",
			after: reasons{"inplace_elemwise_optimizer": "that is the last pass that adds computations"}},
	}
}
