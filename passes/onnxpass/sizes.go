package onnxpass

import (
	"context"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// MergeEqualSizes returns the pass merge_equal_sizes: integers whose types say that they are equal, in
// whatever way they are computed, are computed once.
func MergeEqualSizes() rewrite.GraphRewriter {
	return rewrite.Global{Name: "merge_equal_sizes", Doc: "computes integers once that types know to be equal", Fn: mergeEqualSizes}
}

func mergeEqualSizes(ctx context.Context, h *rewrite.Handle) error {
	g := h.Graph()
	first := make(map[ir.Type]*fgraph.Variable)
	type pair struct{ old, new *fgraph.Variable }
	var pairs []pair
	var always map[*fgraph.Apply]bool
	// Operands come first, so what takes the place of a value never depends on it.
	for a := range g.Ordered() {
		for _, v := range a.Outputs() {
			if !sizesKnown(v) {
				continue
			}
			t := ir.TypeOf(v)
			if w := first[t]; w != nil {
				pairs = append(pairs, pair{v, w})
				continue
			}
			// What only a branch of an If needs may fail where the branch is not taken, so nothing
			// outside of the branch may come to need it.
			if always == nil {
				always = unconditional(g)
			}
			if always[a] {
				first[t] = v
			}
		}
	}
	// Only now, since a replacement changes the order that is walked through above.
	for _, p := range pairs {
		if p.old.Owner() == nil || p.old.Owner().Graph() != g || p.new.Owner().Graph() != g {
			continue // one that was replaced needed it alone
		}
		if _, err := h.Replace("", p.old.Owner(), fgraph.Replacement{Old: p.old, New: p.new}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sizesKnown reports whether the type of a value of integers says what all of them are. Where all are
// numbers they become a constant.
func sizesKnown(v *fgraph.Variable) bool {
	data, ok := ir.TypeOf(v).Data()
	if !ok || slices.ContainsFunc(data, ir.Dim.IsUnknown) {
		return false
	}
	return slices.ContainsFunc(data, func(d ir.Dim) bool { _, number := d.Number(); return !number })
}

// unconditional returns the applies that are computed whatever branches are taken.
func unconditional(g *fgraph.FunctionGraph) map[*fgraph.Apply]bool {
	done := make(map[*fgraph.Apply]bool)
	next := slices.Clone(g.Outputs())
	for len(next) > 0 {
		a := next[len(next)-1].Owner()
		next = next[:len(next)-1]
		if a == nil || done[a] {
			continue
		}
		done[a] = true
		// Of an If only the condition is always computed.
		if ir.IsIf(a) {
			next = append(next, a.Inputs()[0])
		} else {
			next = append(next, a.Inputs()...)
		}
	}
	return done
}
