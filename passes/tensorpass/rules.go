package tensorpass

import (
	"slices"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Group is a set of the databases that a rule belongs to.
type Group uint8

// The groups.
const (
	Canonicalize Group = 1 << iota
	Stabilize
	Specialize
	Uncanonicalize
	Useless  // runs once, before everything else
	Saturate // equality saturation, which may undo rules and keeps the cheapest result
)

// UnsafeNaN is the tag of rules that change results where something is NaN or infinite, perhaps because an argument is zero.
const UnsafeNaN = "unsafe_nan"

// Overflow is the tag of rules that change results where a float overflows or an integer wraps
// around: log(1 + exp(1000)) is infinite, softplus(1000) is 1000.
const Overflow = "overflow"

// A Local is a local rewrite, the groups that it belongs to, and its tags besides those of its
// groups.
type Local struct {
	Rule   rewrite.NodeRewriter
	Groups Group
	Tags   []string
	family string // the file of the rule, without its extension
}

// Rules returns the local rewrites. The order is the one in which a driver asks the rules of a
// group.
func Rules() []Local { return slices.Clone(allRules()) }

// allRules reads the files once.
var allRules = sync.OnceValue(func() []Local {
	return slices.Concat(
		textRules("arithmetic", arithmeticRules), textRules("elemwise", elemwiseRules), textRules("product", nil), textRules("logic", logicRules), textRules("switch", switchRules),
		textRules("broadcast", broadcastRules), textRules("dimensions", dimensionRules), textRules("reduce", reduceRules), textRules("power", nil),
		textRules("subtensor", subtensorRules), textRules("incsubtensor", incSubtensorRules), textRules("specifyshape", specifyShapeRules),
		textRules("linear", linearRules), textRules("diagonal", diagonalRules), textRules("sigmoid", nil), textRules("logarithm", logarithmRules), textRules("softmax", softmaxRules),
		constantRules(), textRules("erf", nil), textRules("algebra", nil), textRules("trigonometry", nil), textRules("contraction", nil))
})

// In returns the rules of a group, in the order of [Rules].
func In(g Group) []Local {
	return slices.DeleteFunc(Rules(), func(l Local) bool { return l.Groups&g == 0 })
}

// named returns the first rule of a name, if there is one.
func named(list []Local, name string) (l Local) {
	if i := slices.IndexFunc(list, func(l Local) bool { return rewrite.Outline(l.Rule).Name == name }); i >= 0 {
		l = list[i]
	}
	return l
}

// transform is the function of a rule.
type transform = func(*rewrite.Context, *apply) (result, error)

// goRules are the rules of a family that are Go functions, by name. The file of the family says
// everything else about them.
type goRules map[string]goRule

type goRule struct {
	on    []rewrite.Track
	of    []rewrite.Need // what the function needs among the arguments, nil: nothing
	depth int            // how far the function looks, see [rewrite.Description]; 0 is anywhere
	fn    transform
}

// on returns the tracks of element-wise operations.
func on(ops ...array.Opcode) []rewrite.Track {
	return lists.Map(ops, func(o array.Opcode) rewrite.Track { return rewrite.TrackOp(tensor.OpFor(o)) })
}

// onType returns the track of a Go type of ops.
func onType[O fgraph.Op]() []rewrite.Track { return []rewrite.Track{rewrite.TrackType[O]()} }

// onOp returns the track of one op.
func onOp(op fgraph.Op) []rewrite.Track { return []rewrite.Track{rewrite.TrackOp(op)} }

// of returns the need for an argument that an op computes which one of the tracks selects.
func of(tracks ...[]rewrite.Track) []rewrite.Need {
	return []rewrite.Need{{Ops: slices.Concat(tracks...)}}
}

// ofConstant is the need for a constant.
var ofConstant = []rewrite.Need{{Constant: true}}

// opOf returns the op of an apply that the tracks of a rule have selected.
func opOf[O fgraph.Op](n *apply) O { return n.Op().(O) }
