package onnxpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// sumOfSeveral takes the terms of all Adds of a chain at once, at the one that is computed last: were each of
// them made a Sum, a chain of n would copy n²/2 inputs. Terms stay in the order in which they are added, so no
// bit changes.
func sumOfSeveral(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	k := partialSum(a)
	if k < 0 {
		return c.Miss("it is no Add of a sum that nothing else reads and of a value that is no constant"), nil
	}
	if usedOnce(a.Out()) {
		if r := a.Out().Clients()[0]; partialSum(r.Apply) == r.Index {
			return c.Miss("the Add that reads it takes its terms"), nil
		}
	}
	if ir.SourceOf(c.Graph()).Opset("") < 8 {
		return c.Miss("a Sum doesn't broadcast in the model's version of the operators"), nil
	}
	var terms []*fgraph.Variable // the last one first
	b := a
	for k >= 0 {
		terms = append(terms, b.Inputs()[1-k])
		b = b.Inputs()[k].Owner()
		k = partialSum(b)
	}
	terms = append(terms, reversed(b.Inputs())...)
	slices.Reverse(terms)
	return remade(c, a, "Sum", terms...), nil
}

// partialSum returns which input of an Add is a sum whose terms it can take, -1 if none is. The other input is no
// constant: that stays in an Add, which other tools look for as a bias.
func partialSum(a *fgraph.Apply) int {
	if !isNode(a, "Add") || ir.TypeOf(a.Out()).Elem() != onnx.Float {
		return -1
	}
	for k, v := range a.Inputs() {
		if !isConstant(a.Inputs()[1-k]) && usedOnce(v) && isSum(v.Owner()) {
			return k
		}
	}
	return -1
}

// isSum reports whether an apply is a Sum, or an Add of what are no constants.
func isSum(a *fgraph.Apply) bool {
	return isNode(a, "Sum") && len(a.Inputs()) > 1 || isNode(a, "Add") && !slices.ContainsFunc(a.Inputs(), isConstant)
}
