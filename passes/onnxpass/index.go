package onnxpass

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// indexFunctions are functions of rules for parts of tensors.
var indexFunctions = []pattern.Function{
	pattern.NewGuardOfEach("integer(x)", 1, "the elements of x are integers", func(v *fgraph.Variable) bool {
		e := ir.TypeOf(v).Elem()
		return e >= onnx.Uint8 && e <= onnx.Int64 || e == onnx.Uint32 || e == onnx.Uint64
	}),
	pattern.NewGuard("lossless({b}, x)", 1, "the type to which a Cast converts x has all values that its elements can have", func(a pattern.Args) bool {
		return holds(onnx.DataType(parse(a.Params[0]).Int("to", 0)), ir.TypeOf(a.Vars[0]).Elem())
	}),
	{Name: "composed", Usage: "composed({p}, {q}, x)", Depth: 1, Doc: "the order of dimensions of x after a Transpose by q and one by p",
		Param: func(a pattern.Args) (any, error) {
			rank := ir.TypeOf(a.Vars[0]).Rank()
			q, ok := permutation(parse(a.Params[1]), rank)
			p, too := permutation(parse(a.Params[0]), max(rank, len(q)))
			if !ok || !too || len(p) != len(q) {
				return nil, fmt.Errorf("the dimensions of %v are not known", a.Vars[0])
			}
			return orderOf(compose(p, q)), nil
		}},
}

// compose returns the order of dimensions after a Transpose by q and then one by p.
func compose(p, q []int64) []int64 { return lists.Map(p, func(k int64) int64 { return q[k] }) }

// orderOf returns the attributes of a Transpose.
func orderOf(perm []int64) Attributes {
	parts := lists.Map(perm, func(k int64) string { return fmt.Sprint(k) })
	return Attributes("perm=ints[" + strings.Join(parts, ",") + "]")
}

// digits are the bits of the integers that a type has all of, and whether they have signs.
var digits = map[onnx.DataType]struct {
	bits   int
	signed bool
}{
	onnx.Bool: {1, false}, onnx.Uint8: {8, false}, onnx.Int8: {8, true}, onnx.Uint16: {16, false}, onnx.Int16: {16, true},
	onnx.Uint32: {32, false}, onnx.Int32: {32, true}, onnx.Uint64: {64, false}, onnx.Int64: {64, true},
	onnx.Float16: {12, true}, onnx.BFloat16: {9, true}, onnx.Float: {25, true}, onnx.Double: {54, true}, // with the bit of the sign
}

// holds reports whether a type has all values of another one.
func holds(wide, narrow onnx.DataType) bool {
	if wide == narrow {
		return wide != onnx.Undefined
	}
	switch narrow {
	case onnx.Float16, onnx.BFloat16:
		return wide == onnx.Float || wide == onnx.Double
	case onnx.Float:
		return wide == onnx.Double
	case onnx.Double:
		return false
	}
	a, ok := digits[narrow]
	b, too := digits[wide]
	if !ok || !too || wide == onnx.Bool {
		return false
	}
	// The sign takes a bit that the numbers then lack.
	if !a.signed && b.signed {
		return b.bits > a.bits
	}
	return a.signed == b.signed && b.bits >= a.bits
}

// alongSame reports whether an apply is an op along a dimension, that of number axis of n.
func alongSame(a *fgraph.Apply, name string, otherwise int64, axis, n int) bool {
	if !isNode(a, name) {
		return false
	}
	k, ok := axisOf(a.Op().(*ir.Op), otherwise, n)
	return ok && k == axis
}

// A stretch is what a Slice takes along a dimension.
type stretch struct {
	axis             int
	begin, end, step int64
}

// stretches returns what a Slice takes of a tensor of n dimensions.
func stretches(a *fgraph.Apply) ([]stretch, bool) {
	n := ir.TypeOf(a.Inputs()[0]).Rank()
	var list [4][]int64
	for i := range list {
		if i+1 >= len(a.Inputs()) || ir.IsOmitted(a.Inputs()[i+1]) {
			continue
		}
		var ok bool
		if list[i], ok = ir.NumbersOf(a.Inputs()[i+1]); !ok || i > 0 && len(list[i]) != len(list[0]) {
			return nil, false
		}
	}
	parts := make([]stretch, len(list[0]))
	for i := range parts {
		p := stretch{i, list[0][i], list[1][i], 1}
		if list[2] != nil {
			axis, ok := normalized(list[2][i], n)
			if !ok {
				return nil, false
			}
			p.axis = axis
		}
		if list[3] != nil {
			p.step = list[3][i]
		}
		parts[i] = p
	}
	return parts, n >= 0
}

// sliced returns the inputs of a Slice of x.
func sliced(x *fgraph.Variable, parts []stretch) []*fgraph.Variable {
	var begin, end, axes, steps []int64
	ones := true
	for _, p := range parts {
		begin, end, axes, steps = append(begin, p.begin), append(end, p.end), append(axes, int64(p.axis)), append(steps, p.step)
		ones = ones && p.step == 1
	}
	in := []*fgraph.Variable{x, ir.Int64s(begin...), ir.Int64s(end...), ir.Int64s(axes...)}
	if !ones {
		in = append(in, ir.Int64s(steps...))
	}
	return in
}

// within returns a stretch with step 1 as the places that it takes of a dimension of a size.
func (p stretch) within(size int64) (stretch, bool) {
	place := func(n int64) int64 {
		if n < 0 {
			n += size
		}
		return min(max(n, 0), size)
	}
	p.begin, p.end = place(p.begin), place(p.end)
	p.end = max(p.begin, p.end)
	return p, p.step == 1
}

// of returns the stretch of what another one takes, of a dimension of a size.
func (p stretch) of(q stretch, size ir.Dim) (stretch, bool) {
	if p.step != 1 || q.step != 1 {
		return p, false
	}
	if n, ok := size.Number(); ok {
		// Both count from the front once the sizes that they count from are known.
		q, _ = q.within(n)
		p, _ = p.within(q.end - q.begin)
		return stretch{p.axis, q.begin + p.begin, q.begin + p.end, 1}, true
	}
	if p.begin < 0 || p.end < 0 || q.begin < 0 || q.end < 0 {
		return p, false // they count from an end that is not known
	}
	// The inner one ends where it did, whatever the outer one asks for.
	return stretch{p.axis, plus(q.begin, p.begin), min(q.end, plus(q.begin, p.end)), 1}, true
}

// plus adds numbers that are not negative. Those near the largest one mean any end.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func fuseSlices(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, "Slice") || !isNode(a.Inputs()[0].Owner(), "Slice") {
		return c.Miss("it is no Slice of a Slice"), nil
	}
	b := a.Inputs()[0].Owner()
	outer, ok := stretches(a)
	parts, too := stretches(b)
	dims, ranked := ir.TypeOf(b.Inputs()[0]).Shape()
	if !ok || !too || !ranked {
		return c.Miss("where they begin and end is not known"), nil
	}
	for _, p := range outer {
		i := slices.IndexFunc(parts, func(q stretch) bool { return q.axis == p.axis })
		if i < 0 {
			parts = append(parts, p)
			continue
		}
		if parts[i], ok = p.of(parts[i], dims[p.axis]); !ok {
			return c.Miss("both are along dimension %d, in steps or from an end that is not known", p.axis), nil
		}
	}
	return remade(c, a, "Slice", sliced(b.Inputs()[0], parts)...), nil
}

// alone returns what a Slice along a single dimension takes, whose size is known, with step 1.
func alone(a *fgraph.Apply, axis int) (stretch, bool) {
	if !isNode(a, "Slice") {
		return stretch{}, false
	}
	parts, ok := stretches(a)
	dims, _ := ir.TypeOf(a.Inputs()[0]).Shape()
	if !ok || len(parts) != 1 || parts[0].axis != axis {
		return stretch{}, false
	}
	size, ok := dims[axis].Number()
	if !ok {
		return stretch{}, false
	}
	return parts[0].within(size)
}

func fusePads(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, "Pad") || !isNode(a.Inputs()[0].Owner(), "Pad") {
		return c.Miss("it is no Pad of a Pad"), nil
	}
	b := a.Inputs()[0].Owner()
	p, ok := paddedBy(a)
	q, too := paddedBy(b)
	if !ok || !too || len(p) != len(q) {
		return c.Miss("they pad otherwise than with a number, or by what is not known"), nil
	}
	if !sameInput(a, b, 2) {
		return c.Miss("they pad with different values"), nil
	}
	for i := range p {
		p[i] += q[i]
	}
	in := []*fgraph.Variable{b.Inputs()[0], ir.Int64s(p...)}
	if len(a.Inputs()) > 2 {
		in = append(in, a.Inputs()[2])
	}
	return remadeWith(c, a, a.Op().(*ir.Op), in...), nil
}

// paddedBy returns how many elements a Pad with a number adds on each side.
func paddedBy(a *fgraph.Apply) ([]int64, bool) {
	list, ok := ir.NumbersOf(a.Inputs()[1])
	if !ok || len(a.Inputs()) > 3 || a.Op().(*ir.Op).Text("mode", "constant") != "constant" || slices.ContainsFunc(list, func(n int64) bool { return n < 0 || n > math.MaxInt32 }) {
		return nil, false
	}
	return slices.Clone(list), true
}

// sameInput reports whether two applies have the same input of a number, or leave it out.
func sameInput(a, b *fgraph.Apply, k int) bool {
	given := func(a *fgraph.Apply) *fgraph.Variable {
		if k < len(a.Inputs()) && !ir.IsOmitted(a.Inputs()[k]) {
			return a.Inputs()[k]
		}
		return nil
	}
	x, y := given(a), given(b)
	if x == nil || y == nil || x == y {
		return x == y
	}
	return x.IsConstant() && y.IsConstant() && x.Type() == y.Type() && fgraph.EqualData(x.Type(), x.Data(), y.Data())
}

func squeezeForGather(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
	if !isNode(a, "Gather") || ir.TypeOf(a.Inputs()[1]).Rank() != 0 {
		return c.Miss("it is no Gather of one row"), nil
	}
	dims, ranked := ir.TypeOf(a.Inputs()[0]).Shape()
	axis, ok := axisOf(a.Op().(*ir.Op), 0, len(dims))
	// A constant, because an index outside is an error that has to remain.
	list, known := ir.NumbersOf(a.Inputs()[1])
	if !ranked || !ok || !dims[axis].Is(1) || !known || list[0] != 0 && list[0] != -1 {
		return c.Miss("the dimension is not known to have one row"), nil
	}
	return remade(c, a, "Squeeze", a.Inputs()[0], ir.Int64s(int64(axis))), nil
}
