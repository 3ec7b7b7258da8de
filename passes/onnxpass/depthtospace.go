package onnxpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// Orders of dimensions of the blocks: for DepthToSpace [n,b,b,c,h,w] or, in the mode CRD,
// [n,c,b,b,h,w], and for SpaceToDepth [n,c,h,b,w,b].
var (
	orderDCR   = []int64{0, 3, 4, 1, 5, 2}
	orderCRD   = []int64{0, 1, 4, 2, 5, 3}
	orderSpace = []int64{0, 3, 5, 1, 2, 4}
)

func depthToSpaceFromParts(c *rewrite.Context, root *fgraph.Apply) (rewrite.Result, error) {
	if len(root.Outputs()) != 1 || !isOp(root.Out(), "Reshape") {
		return c.Miss("it is no Reshape"), nil
	}
	moved := root.Inputs()[0]
	if !isOp(moved, "Transpose") || !usedOnce(moved) {
		return c.Miss("it is not that of a Transpose"), nil
	}
	blocks := moved.Owner().Inputs()[0]
	if !isOp(blocks, "Reshape") || !usedOnce(blocks) {
		return c.Miss("it is not that of the Transpose of a Reshape"), nil
	}
	if !takesSizes(blocks) || !takesSizes(root.Out()) {
		return c.Miss("a size of 0 that is computed would mean that of another dimension"), nil
	}
	x := blocks.Owner().Inputs()[0]
	from, ranked := ir.TypeOf(x).Shape()
	b, too := ir.TypeOf(blocks).Shape()
	to, three := ir.TypeOf(root.Out()).Shape()
	if !ranked || !too || !three || len(from) != 4 || len(b) != 6 || len(to) != 4 {
		return c.Miss("shapes of another number of dimensions"), nil
	}
	perm, _ := permutation(opOf(moved), 6)
	// What the dimensions of x and of the result are if it is the operator, and which are blocks.
	var is, becomes []ir.Dim
	var size [2]ir.Dim
	name, attributes := "DepthToSpace", []*onnx.Attribute(nil)
	switch {
	case slices.Equal(perm, orderDCR):
		size = [2]ir.Dim{b[1], b[2]}
		is = []ir.Dim{b[0], b[1].Times(b[2]).Times(b[3]), b[4], b[5]}
		becomes = []ir.Dim{b[0], b[3], b[4].Times(b[1]), b[5].Times(b[2])}
	case slices.Equal(perm, orderCRD) && ir.SourceOf(c.Graph()).Opset("") >= 11:
		// The attribute mode came with version 11.
		size = [2]ir.Dim{b[2], b[3]}
		is = []ir.Dim{b[0], b[1].Times(b[2]).Times(b[3]), b[4], b[5]}
		becomes = []ir.Dim{b[0], b[1], b[4].Times(b[2]), b[5].Times(b[3])}
		attributes = append(attributes, ir.String("mode", "CRD"))
	case slices.Equal(perm, orderSpace):
		name = "SpaceToDepth"
		size = [2]ir.Dim{b[3], b[5]}
		is = []ir.Dim{b[0], b[1], b[2].Times(b[3]), b[4].Times(b[5])}
		becomes = []ir.Dim{b[0], b[1].Times(b[3]).Times(b[5]), b[2], b[4]}
	default:
		return c.Miss("the order of dimensions is another"), nil
	}
	n, known := size[0].Number()
	if !known || !size[1].Is(n) || !slices.EqualFunc(is, from, ir.Dim.Same) || !slices.EqualFunc(becomes, to, ir.Dim.Same) {
		return c.Miss("sizes are not known to be those of blocks"), nil
	}
	y, err := ir.SourceOf(c.Graph()).Operators.Make(name, append(attributes, ir.Int("blocksize", n)), x)
	if err != nil {
		return rewrite.Result{}, err
	}
	return rewrite.Replace(conform(root.Out(), y)), nil
}

// takesSizes reports whether a Reshape has the sizes that it is given, also where one is 0 in some run.
func takesSizes(v *fgraph.Variable) bool {
	return opOf(v).Int("allowzero", 0) != 0 || isConstant(v.Owner().Inputs()[1])
}
