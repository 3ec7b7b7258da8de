package tensorpass

import (
	"slices"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
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
	Useless // runs once, before everything else

	unsafe    // not a group: it marks the rules in the tables that get the tag UnsafeNaN
	overflows // the same for Overflow
)

// UnsafeNaN is the tag of rules that change results where an argument is NaN, infinite or zero.
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
	Family string // the file of a rule that is text, without its extension
}

// Rules returns the local rewrites. The order is the one in which a driver asks the rules of a
// group.
func Rules() []Local { return slices.Clone(allRules()) }

// allRules makes the tables once: some rules are parsed.
var allRules = sync.OnceValue(func() []Local {
	return slices.Concat(
		textRules("arithmetic"), arithmeticRules(), textRules("elemwise"), textRules("product"), textRules("logic"), textRules("switch"),
		textRules("broadcast"), broadcastRules(), textRules("dimensions"), dimensionRules(),
		textRules("reduce"), reductionRules(), textRules("power"), subtensorRules(), textRules("subtensor"), incSubtensorRules(), specifyShapeRules(),
		productRules(), textRules("linear"), textRules("sigmoid"), textRules("logarithm"), logarithmRules(), textRules("softmax"), softmaxRules(), constantRules(),
		textRules("erf"))
})

// In returns the rules of a group, in the order of [Rules].
func In(g Group) []Local {
	return slices.DeleteFunc(Rules(), func(l Local) bool { return l.Groups&g == 0 })
}

// transform is the function of a rule.
type transform = func(*rewrite.Context, *apply) (result, error)

// rule returns a row of the tables. depth is how far the function looks, see [rewrite.Description]; 0
// is anywhere.
func rule(groups Group, name string, on []rewrite.Track, depth int, fn transform, doc string) Local {
	return local(groups, rewrite.Rule{Name: name, Doc: doc, On: on, Depth: depth, Fn: fn})
}

// because says why the rule of a row is a Go function and not text.
func (l Local) because(reason string) Local {
	r := l.Rule.(rewrite.Rule)
	r.Reason = reason
	l.Rule = r
	return l
}

// inGo is because for a table.
func inGo(reason string, rows ...Local) []Local {
	for i, l := range rows {
		rows[i] = l.because(reason)
	}
	return rows
}

func local(groups Group, r rewrite.NodeRewriter) Local {
	l := Local{Rule: r, Groups: groups &^ (unsafe | overflows)}
	if groups&unsafe != 0 {
		l.Tags = []string{UnsafeNaN}
	}
	if groups&overflows != 0 {
		l.Tags = append(l.Tags, Overflow)
	}
	return l
}

// on returns the tracks of element-wise operations.
func on(ops ...array.Opcode) []rewrite.Track {
	tracks := make([]rewrite.Track, len(ops))
	for i, o := range ops {
		tracks[i] = rewrite.TrackOp(tensor.OpFor(o))
	}
	return tracks
}

// onType returns the track of a Go type of ops.
func onType[O fgraph.Op]() []rewrite.Track { return []rewrite.Track{rewrite.TrackType[O]()} }

// onOp returns the track of one op.
func onOp(op fgraph.Op) []rewrite.Track { return []rewrite.Track{rewrite.TrackOp(op)} }

// opOf returns the op of an apply that the tracks of a rule have selected.
func opOf[O fgraph.Op](n *apply) O { return n.Op().(O) }
