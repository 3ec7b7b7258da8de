package onnxpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/rewrite"
)

// A Gather with an index that is a number takes one part of a tensor and leaves a dimension out. Taking the part
// first leaves less to be transposed, and often nothing. In a shuffle of channels, a Reshape, a Transpose and a
// Reshape whose parts are taken, the Transpose vanishes so.

// partAt returns along which dimension a Gather takes one part.
func partAt(a *fgraph.Apply) (axis int, ok bool) {
	if !isNode(a, "Gather") || ir.TypeOf(a.Inputs()[1]).Rank() != 0 {
		return 0, false
	}
	return axisOf(a.Op().(*ir.Op), 0, ir.TypeOf(a.Inputs()[0]).Rank())
}

// taken returns a Gather of the part of x that another one takes along a dimension.
func taken(c *rewrite.Context, a *fgraph.Apply, x *fgraph.Variable, axis int) (*fgraph.Variable, error) {
	b, err := ir.SourceOf(c.Graph()).Operators.Apply(a.Op().(*ir.Op).WithAttributes(ir.Int("axis", int64(axis))), x, a.Inputs()[1])
	if err != nil {
		return nil, err
	}
	return b.Out(), nil
}

func gatherBeforeTranspose(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	axis, ok := partAt(a)
	if !ok || !isNode(a.Inputs()[0].Owner(), "Transpose") {
		return c.Miss("it takes no part of a Transpose"), nil
	}
	b := a.Inputs()[0].Owner()
	perm, ok := permutation(b.Op().(*ir.Op), ir.TypeOf(b.Out()).Rank())
	if !ok {
		return c.Miss("the number of dimensions is not known"), nil
	}
	k := perm[axis]
	left := slices.Delete(slices.Clone(perm), axis, axis+1)
	for i, d := range left {
		if d > k {
			left[i]--
		}
	}
	if !slices.IsSorted(left) && !usedOnce(b.Out()) {
		return c.Miss("the Transpose is read elsewhere, so there would be another one"), nil
	}
	x, err := taken(c, a, b.Inputs()[0], int(k))
	if err != nil {
		return c.Miss("%v", err), nil
	}
	if slices.IsSorted(left) {
		return rewrite.Replace(conform(a.Out(), x)), nil
	}
	return remadeWith(c, a, ir.SourceOf(c.Graph()).Operators.Op("Transpose", ir.Ints("perm", left...)), x), nil
}

func gatherBeforeReshape(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	axis, ok := partAt(a)
	if !ok || !isNode(a.Inputs()[0].Owner(), "Reshape") || !isNode(a.Inputs()[0].Owner().Inputs()[0].Owner(), "Transpose") {
		return c.Miss("it takes no part of a Reshape of a Transpose"), nil
	}
	x := a.Inputs()[0].Owner().Inputs()[0]
	in, known := ir.TypeOf(x).Numbers()
	out, too := ir.TypeOf(a.Inputs()[0]).Numbers()
	if !known || !too || slices.Contains(in, 0) || len(in) <= axis || !slices.Equal(in[:axis+1], out[:axis+1]) {
		return c.Miss("the Reshape is not known to keep dimension %d where it is", axis), nil
	}
	y, err := taken(c, a, x, axis)
	if err != nil {
		return c.Miss("%v", err), nil
	}
	return remade(c, a, "Reshape", y, ir.Int64s(slices.Delete(slices.Clone(out), axis, axis+1)...)), nil
}

func reshapeBeforeGather(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, "Reshape") || !usedOnce(a.Inputs()[0]) {
		return c.Miss("it is no Reshape of what only it reads"), nil
	}
	b := a.Inputs()[0].Owner()
	axis, ok := partAt(b)
	if !ok || !isNode(b.Inputs()[0].Owner(), "Reshape") {
		return c.Miss("it is no Reshape of a part of a Reshape"), nil
	}
	from, known := ir.TypeOf(b.Inputs()[0]).Numbers()
	to, too := ir.TypeOf(a.Out()).Numbers()
	if !known || !too || slices.Contains(from, 0) {
		return c.Miss("sizes are not known"), nil
	}
	// The first dimensions of the result that have as many elements as those in front of the part.
	at, n, front := 0, int64(1), product(from[:axis])
	for at < len(to) && n < front {
		n *= to[at]
		at++
	}
	if n != front {
		return c.Miss("no dimensions of the result are those in front of the part"), nil
	}
	x, err := ir.SourceOf(c.Graph()).Operators.Make("Reshape", nil, b.Inputs()[0].Owner().Inputs()[0], ir.Int64s(slices.Insert(slices.Clone(to), at, from[axis])...))
	if err != nil {
		return c.Miss("%v", err), nil
	}
	if x, err = taken(c, b, x, at); err != nil {
		return c.Miss("%v", err), nil
	}
	return rewrite.Replace(conform(a.Out(), x)), nil
}

// product returns the number of elements of a shape.
func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

func splitForSequence(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, "SequenceAt") || !isNode(a.Inputs()[0].Owner(), "SplitToSequence") {
		return c.Miss("it takes no part of a SplitToSequence"), nil
	}
	b := a.Inputs()[0].Owner()
	op, x := b.Op().(*ir.Op), b.Inputs()[0]
	dims, _ := ir.TypeOf(x).Shape()
	axis, ok := axisOf(op, 0, len(dims))
	place, known := ir.NumbersOf(a.Inputs()[1])
	if !ok || !known {
		return c.Miss("the dimension or the position is not known"), nil
	}
	size, ok := dims[axis].Number()
	if !ok {
		return c.Miss("the size of dimension %d is not known", axis), nil
	}
	sizes, ok := partsOf(b, size)
	k := place[0]
	if k < 0 {
		k += int64(len(sizes))
	}
	if !ok || k < 0 || k >= int64(len(sizes)) || len(sizes) > maxSplit {
		return c.Miss("the parts are not known, or too many, or it is none of them"), nil
	}
	operators := ir.SourceOf(c.Graph()).Operators
	if len(b.Inputs()) < 2 && op.Int("keepdims", 1) == 0 {
		return remadeWith(c, a, operators.Op("Gather", ir.Int("axis", int64(axis))), x, ir.Int64(k)), nil
	}
	s, err := operators.Apply(operators.Op("Split", ir.Int("axis", int64(axis))).WithOutputs(len(sizes)), x, ir.Int64s(sizes...))
	if err != nil {
		return c.Miss("%v", err), nil
	}
	v := conform(a.Out(), s.Outputs()[k])
	if !a.Out().Type().Accepts(v.Type()) {
		return c.Miss("the part has type %v, not %v", v.Type(), a.Out().Type()), nil
	}
	return rewrite.Replace(v), nil
}

// maxSplit bounds the parts of a Split in place of a sequence.
const maxSplit = 64

// partsOf returns the sizes of the parts that a SplitToSequence makes of a dimension.
func partsOf(a *fgraph.Apply, size int64) ([]int64, bool) {
	each := int64(1)
	if len(a.Inputs()) > 1 {
		list, ok := ir.NumbersOf(a.Inputs()[1])
		// A list has the sizes of all parts, also a list of one. A scalar is the size of each but the last.
		if !ok || ir.TypeOf(a.Inputs()[1]).Rank() != 0 || len(list) != 1 {
			return list, ok && !slices.ContainsFunc(list, func(n int64) bool { return n < 0 })
		}
		each = list[0]
	}
	if each <= 0 || size/each > maxSplit {
		return nil, false
	}
	sizes := slices.Repeat([]int64{each}, int(size/each))
	if rest := size % each; rest > 0 {
		sizes = append(sizes, rest)
	}
	return sizes, true
}
