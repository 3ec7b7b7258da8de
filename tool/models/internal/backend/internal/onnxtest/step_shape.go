package onnxtest

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// shapeSteps move elements.
var shapeSteps = []step{
	{op: "Transpose", since: 7, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		perm := b.Perm(x.rank())
		shape := b.each(func(k int) []int { return permuted(x.shape[k], perm) })
		return b.node(op, []*value{x}, x.elem, shape, list("perm", perm...))
	}},
	{op: "Reshape", since: 7, elems: anything, make: func(b *builder, op string, x *value) *value {
		// Two neighbours become one, or one is divided, with a 0 or -1 where that may be.
		to := b.each(func(k int) []int { return slices.Clone(x.shape[k]) })
		if n := x.rank(); n >= 2 && b.chance(0.6) {
			i := b.IntN(n - 1)
			for k := range to {
				to[k] = slices.Replace(to[k], i, i+2, to[k][i]*to[k][i+1])
			}
		} else {
			i := b.IntN(n + 1)
			for k := range to {
				to[k] = slices.Insert(to[k], i, 1)
			}
		}
		ask := b.each(func(k int) []int { return slices.Clone(to[k]) })
		if i := b.IntN(len(to[0]) + 1); i < len(to[0]) && b.chance(0.5) {
			for k := range ask {
				ask[k][i] = -1
			}
		} else if b.chance(0.5) && to[0][0] == x.dim(0, 0) && b.agree(to, x.shape, 0) {
			for k := range ask {
				ask[k][0] = 0
			}
		}
		for _, s := range to {
			if slices.Contains(s, 0) {
				return nil
			}
		}
		return b.node(op, []*value{x, b.ints(ask)}, x.elem, to)
	}},
	{op: "Flatten", since: 9, elems: anything, make: func(b *builder, op string, x *value) *value {
		axis := b.IntN(x.rank() + 1)
		shape := b.each(func(k int) []int { return []int{product(x.shape[k][:axis]), product(x.shape[k][axis:])} })
		return b.node(op, []*value{x}, x.elem, shape, integer("axis", axis))
	}},
	{op: "Squeeze", since: 7, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		var axes []int
		for i := range x.rank() {
			if !slices.ContainsFunc(x.shape, func(s []int) bool { return s[i] != 1 }) {
				axes = append(axes, i)
			}
		}
		if len(axes) == 0 {
			return nil
		}
		shape := b.each(func(k int) []int {
			var s []int
			for i, n := range x.shape[k] {
				if !slices.Contains(axes, i) {
					s = append(s, n)
				}
			}
			return s
		})
		if b.opset < 13 {
			return b.node(op, []*value{x}, x.elem, shape, list("axes", axes...))
		}
		return b.node(op, []*value{x, b.ints(b.same(axes...))}, x.elem, shape)
	}},
	{op: "Unsqueeze", since: 7, elems: anything, make: func(b *builder, op string, x *value) *value {
		axis := b.IntN(x.rank() + 1)
		shape := b.each(func(k int) []int { return slices.Insert(slices.Clone(x.shape[k]), axis, 1) })
		if b.opset < 13 {
			return b.node(op, []*value{x}, x.elem, shape, list("axes", axis))
		}
		if b.chance(0.3) {
			axis -= x.rank() + 1
		}
		return b.node(op, []*value{x, b.ints(b.same(axis))}, x.elem, shape)
	}},
	{op: "Concat", since: 7, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		axis, number := b.axis(x, b.opset >= 11)
		in, shape := []*value{x}, x.shape
		for range 1 + b.IntN(2) {
			y := b.some()
			if y.elem != x.elem || y.rank() != x.rank() || !b.agree(y.shape, shape, except(axis, x.rank())...) {
				y = x
			}
			in = append(in, y)
			before := shape
			shape = b.each(func(k int) []int {
				s := slices.Clone(before[k])
				s[axis] += y.shape[k][axis]
				return s
			})
		}
		return b.node(op, in, x.elem, shape, integer("axis", number))
	}},
	{op: "Split", since: 7, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		axis, number := b.axis(x, b.opset >= 11)
		first := b.each(func(k int) []int { return []int{b.IntN(x.shape[k][axis] + 1)} })
		part := func(k, i int) []int {
			s := slices.Clone(x.shape[k])
			if i == 0 {
				s[axis] = first[k][0]
			} else {
				s[axis] -= first[k][0]
			}
			return s
		}
		sizes := b.each(func(k int) []int { return []int{part(k, 0)[axis], part(k, 1)[axis]} })
		in, attributes := []*value{x}, []*onnx.Attribute{integer("axis", number)}
		if b.opset < 13 {
			if !(&value{shape: sizes}).fixed() || !b.sameInts(sizes) {
				return nil
			}
			attributes = append(attributes, list("split", sizes[0]...))
		} else {
			in = append(in, b.ints(sizes))
		}
		b.node(op, in, x.elem, b.each(func(k int) []int { return part(k, 0) }), attributes...)
		return b.more(x.elem, b.each(func(k int) []int { return part(k, 1) }))
	}},
	{op: "Slice", since: 7, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		axis, number := b.axis(x, b.opset >= 10)
		if b.opset < 10 {
			from, to := b.IntN(3), 1<<20
			if b.chance(0.5) {
				to = -b.IntN(2) - 1
			}
			shape := b.sliced(x, axis, b.same(from), b.same(to), 1)
			return b.node(op, []*value{x}, x.elem, shape, list("axes", number), list("starts", from), list("ends", to))
		}
		step := pick(b, 1, 1, 2, -1, -2, 3)
		from := b.each(func(k int) []int { return []int{b.IntN(x.shape[k][axis]+2) - 1} })
		to := b.each(func(k int) []int { return []int{pick(b, 1<<31-1, b.IntN(6), -1, -b.IntN(4)-1)} })
		if step < 0 {
			from, to = b.each(func(int) []int { return []int{pick(b, 1<<31-1, -1, b.IntN(5))} }), b.each(func(int) []int { return []int{pick(b, -1<<31, 0, -2)} })
		}
		in := []*value{x, b.ints(from), b.ints(to), b.ints(b.same(number)), b.ints(b.same(step))}
		return b.node(op, in, x.elem, b.sliced(x, axis, from, to, step))
	}},
	{op: "Gather", since: 7, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		axis, number := b.axis(x, b.opset >= 11)
		if slices.ContainsFunc(x.shape, func(s []int) bool { return s[axis] == 0 }) {
			return nil
		}
		at := b.shape(0, 2)
		i := b.indexes(x, axis, at)
		shape := b.each(func(k int) []int { return slices.Replace(slices.Clone(x.shape[k]), axis, axis+1, at[k]...) })
		return b.node(op, []*value{x, i}, x.elem, shape, integer("axis", number))
	}},
	{op: "GatherElements", since: 11, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		axis, number := b.axis(x, true)
		if slices.ContainsFunc(x.shape, func(s []int) bool { return slices.Contains(s, 0) }) {
			return nil
		}
		n := 1 + b.IntN(4)
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			s[axis] = n
			return s
		})
		return b.node(op, []*value{x, b.indexes(x, axis, shape)}, x.elem, shape, integer("axis", number))
	}},
	{op: "ScatterElements", since: 11, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		axis, number := b.axis(x, true)
		if slices.ContainsFunc(x.shape, func(s []int) bool { return slices.Contains(s, 0) }) {
			return nil
		}
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			s[axis] = 1
			return s
		})
		attributes := []*onnx.Attribute{integer("axis", number)}
		if b.opset >= 18 && x.elem != onnx.Bool && b.chance(0.5) {
			attributes = append(attributes, text("reduction", pick(b, "add", "mul", "max", "min")))
		}
		return b.node(op, []*value{x, b.indexes(x, axis, shape), b.fresh(x.elem, shape)}, x.elem, x.shape, attributes...)
	}},
	{op: "ScatterND", since: 11, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		if slices.ContainsFunc(x.shape, func(s []int) bool { return s[0] == 0 }) {
			return nil
		}
		at := b.given(onnx.Int64, b.same(1, 1), func(k, _ int) float64 { return float64(b.IntN(x.shape[k][0])) })
		shape := b.each(func(k int) []int { return append([]int{1}, x.shape[k][1:]...) })
		return b.node(op, []*value{x, at, b.fresh(x.elem, shape)}, x.elem, x.shape)
	}},
	{op: "Expand", since: 8, elems: anything, make: func(b *builder, op string, x *value) *value {
		ask := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			for i := range s {
				if s[i] == 1 && b.chance(0.5) {
					s[i] = 1 + b.IntN(3)
				}
			}
			return s
		})
		if b.chance(0.4) {
			for k := range ask {
				ask[k] = append([]int{2}, ask[k]...)
			}
		}
		return b.node(op, []*value{x, b.ints(ask)}, x.elem, ask)
	}},
	{op: "Tile", since: 7, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		by := b.each(func(k int) []int {
			s := make([]int, x.rank())
			for i := range s {
				s[i] = pick(b, 1, 1, 2, 3)
			}
			return s
		})
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			for i := range s {
				s[i] *= by[k][i]
			}
			return s
		})
		return b.node(op, []*value{x, b.ints(by)}, x.elem, shape)
	}},
	{op: "Pad", since: 7, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		n := x.rank()
		mode := pick(b, "constant", "constant", "edge", "reflect")
		pads := b.each(func(k int) []int {
			p := make([]int, 2*n)
			for i := range p {
				if p[i] = b.IntN(3); mode == "reflect" {
					p[i] = min(p[i], max(x.shape[k][i%n]-1, 0))
				}
			}
			return p
		})
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			for i := range s {
				s[i] += pads[k][i] + pads[k][i+n]
			}
			return s
		})
		if b.opset < 11 {
			if !b.sameInts(pads) {
				return nil
			}
			return b.node(op, []*value{x}, x.elem, shape, text("mode", mode), list("pads", pads[0]...), number("value", 0.5))
		}
		in := []*value{x, b.ints(pads), nil}
		if mode == "constant" && b.chance(0.7) {
			in[2] = b.drawn(x.elem)
		}
		return b.node(op, trimmed(in), x.elem, shape, text("mode", mode))
	}},
	{op: "Trilu", since: 14, elems: anything, rank: 2, make: func(b *builder, op string, x *value) *value {
		return b.node(op, []*value{x, b.scalarInt(b.IntN(4) - 2)}, x.elem, x.shape, truth("upper", b.chance(0.5)))
	}},
	{op: "EyeLike", since: 9, elems: []onnx.DataType{onnx.Float, onnx.Double, onnx.Int64, onnx.Int32, onnx.Bool}, rank: 2, make: func(b *builder, op string, x *value) *value {
		if x.rank() != 2 {
			return nil
		}
		return b.node(op, []*value{x}, x.elem, x.shape, integer("k", b.IntN(3)-1), integer("dtype", int(x.elem)))
	}},
	{op: "DepthToSpace", since: 11, elems: floats, rank: 4, make: func(b *builder, op string, x *value) *value {
		if x.rank() != 4 || slices.ContainsFunc(x.shape, func(s []int) bool { return s[1]%4 != 0 }) {
			return nil
		}
		shape := b.each(func(k int) []int { s := x.shape[k]; return []int{s[0], s[1] / 4, 2 * s[2], 2 * s[3]} })
		return b.node(op, []*value{x}, x.elem, shape, integer("blocksize", 2), text("mode", pick(b, "DCR", "CRD")))
	}},
	{op: "SpaceToDepth", since: 7, elems: floats, rank: 4, make: func(b *builder, op string, x *value) *value {
		if x.rank() != 4 || slices.ContainsFunc(x.shape, func(s []int) bool { return s[2]%2 != 0 || s[3]%2 != 0 }) {
			return nil
		}
		shape := b.each(func(k int) []int { s := x.shape[k]; return []int{s[0], 4 * s[1], s[2] / 2, s[3] / 2} })
		return b.node(op, []*value{x}, x.elem, shape, integer("blocksize", 2))
	}},
	{op: "ReverseSequence", since: 10, elems: anything, rank: 2, make: func(b *builder, op string, x *value) *value {
		batch := b.IntN(2)
		lengths := b.each(func(k int) []int {
			l := make([]int, x.shape[k][batch])
			for i := range l {
				l[i] = 1 + b.IntN(max(x.shape[k][1-batch], 1))
			}
			return l
		})
		if slices.ContainsFunc(x.shape, func(s []int) bool { return s[1-batch] == 0 }) {
			return nil
		}
		return b.node(op, []*value{x, b.ints(lengths)}, x.elem, x.shape, integer("batch_axis", batch), integer("time_axis", 1-batch))
	}},
	{op: "Shape", since: 7, elems: anything, make: func(b *builder, op string, x *value) *value {
		return b.node(op, []*value{x}, onnx.Int64, b.same(x.rank()))
	}},
	{op: "Size", since: 7, elems: anything, make: func(b *builder, op string, x *value) *value {
		return b.node(op, []*value{x}, onnx.Int64, b.same())
	}},
	{op: "Dropout", since: 7, elems: []onnx.DataType{onnx.Float, onnx.Double}, make: func(b *builder, op string, x *value) *value {
		return b.node(op, []*value{x}, x.elem, x.shape)
	}},
}

func permuted(s, perm []int) []int {
	out := make([]int, len(perm))
	for i, p := range perm {
		out[i] = s[p]
	}
	return out
}

// dim returns a size, 0 if there is none.
func (v *value) dim(k, i int) int {
	if i < v.rank() {
		return v.shape[k][i]
	}
	return 0
}

func except(axis, n int) []int {
	var list []int
	for i := range n {
		if i != axis {
			list = append(list, i)
		}
	}
	return list
}

// agree reports whether shapes have the same sizes at some places, in all sets.
func (b *builder) agree(x, y [][]int, at ...int) bool {
	for k := range x {
		for _, i := range at {
			if i >= len(x[k]) || i >= len(y[k]) || x[k][i] != y[k][i] {
				return false
			}
		}
	}
	return true
}

func (b *builder) sameInts(list [][]int) bool {
	return !slices.ContainsFunc(list, func(l []int) bool { return !slices.Equal(l, list[0]) })
}

func (b *builder) scalarInt(n int) *value {
	return b.constant(onnx.Int64, nil, func(int) float64 { return float64(n) })
}

// indexes makes places along a dimension of x, some counted from the end.
func (b *builder) indexes(x *value, axis int, shape [][]int) *value {
	elem := pick(b, onnx.Int64, onnx.Int32)
	at := func(k int) float64 {
		n := x.shape[k][axis]
		if b.opset >= 11 && b.chance(0.3) {
			return -float64(1 + b.IntN(n))
		}
		return float64(b.IntN(n))
	}
	if i := (&value{shape: shape}); i.fixed() && x.fixed() && (b.depth > 0 || b.chance(0.6)) {
		return b.constant(elem, shape[0], func(int) float64 { return at(0) })
	}
	v := b.given(elem, shape, func(k, _ int) float64 { return at(k) })
	r := b.root()
	r.pool = r.pool[:len(r.pool)-1]
	return v
}

// sliced returns the shape of a slice along a dimension.
func (b *builder) sliced(x *value, axis int, from, to [][]int, step int) [][]int {
	return b.each(func(k int) []int {
		s := slices.Clone(x.shape[k])
		n := s[axis]
		clamp := func(i, low, high int) int {
			if i < 0 {
				i += n
			}
			return min(max(i, low), high)
		}
		if step > 0 {
			s[axis] = max((clamp(to[k][0], 0, n)-clamp(from[k][0], 0, n)+step-1)/step, 0)
		} else {
			s[axis] = max((clamp(from[k][0], 0, n-1)-clamp(to[k][0], -1, n-1)-step-1)/-step, 0)
		}
		return s
	})
}
