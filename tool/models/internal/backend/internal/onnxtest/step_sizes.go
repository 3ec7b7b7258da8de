package onnxtest

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// sizeSteps make values of sizes that a run knows: those of what is given, or of how many elements are
// something. The inputs of these are given, so that the generator knows, too.
var sizeSteps = []step{
	{op: "Range", since: 11, elems: []onnx.DataType{onnx.Int64, onnx.Int32, onnx.Float}, make: func(b *builder, op string, x *value) *value {
		n := b.each(func(int) []int { return []int{b.IntN(5)} })
		limit := b.given(x.elem, b.same(), func(k, _ int) float64 { return float64(2*n[k][0] + 1) })
		r := b.root()
		r.pool = r.pool[:len(r.pool)-1]
		start, delta := b.constant(x.elem, nil, func(int) float64 { return 1 }), b.constant(x.elem, nil, func(int) float64 { return 2 })
		return b.node(op, []*value{start, limit, delta}, x.elem, n)
	}},
	{op: "ConstantOfShape", since: 9, elems: anything, make: func(b *builder, op string, x *value) *value {
		shape := b.shape(0, 3)
		t := tensorOf("", x.elem, []int{1}, func(int) float64 { return b.number(x.elem) })
		return b.node(op, []*value{b.ints(shape)}, x.elem, shape, &onnx.Attribute{Name: "value", Type: onnx.AttributeTensor, Tensor: t})
	}},
	{op: "OneHot", since: 9, elems: []onnx.DataType{onnx.Int64, onnx.Float, onnx.Int32}, rank: 1, exact: true, make: func(b *builder, op string, x *value) *value {
		depth := b.each(func(int) []int { return []int{1 + b.IntN(4)} })
		d := b.scalar(flat(depth))
		values := b.constant(onnx.Float, []int{2}, func(i int) float64 { return float64(3*i - 1) })
		i := b.fresh(x.elem, x.shape)
		for k := range b.root().values {
			set := b.root().values[k]
			set[len(set)-1] = tensorOf(i.name, x.elem, x.shape[k], func(int) float64 { return float64(b.IntN(5) - 2) })
		}
		axis := b.IntN(x.rank() + 1)
		shape := b.each(func(k int) []int { return slices.Insert(slices.Clone(x.shape[k]), axis, depth[k][0]) })
		return b.node(op, []*value{i, d, values}, onnx.Float, shape, integer("axis", axis))
	}},
	{op: "TopK", since: 7, elems: numbers, rank: 1, exact: true, make: func(b *builder, op string, x *value) *value {
		axis, axisNumber := b.axis(x, b.opset >= 11)
		count := b.each(func(k int) []int { return []int{b.IntN(x.shape[k][axis] + 1)} })
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			s[axis] = count[k][0]
			return s
		})
		in, attributes := []*value{x}, []*onnx.Attribute{integer("axis", axisNumber)}
		if b.opset < 10 {
			if !b.sameInts(count) || count[0][0] == 0 {
				return nil
			}
			attributes = append(attributes, integer("k", count[0][0]))
		} else {
			in = append(in, b.ints(count))
		}
		if b.opset >= 11 {
			attributes = append(attributes, truth("largest", b.chance(0.6)))
		}
		v := b.node(op, in, x.elem, shape, attributes...)
		b.more(onnx.Int64, shape)
		return v
	}},
	{op: "NonZero", since: 9, elems: []onnx.DataType{onnx.Float, onnx.Bool, onnx.Int32, onnx.Int64, onnx.Uint8}, rank: 1, make: func(b *builder, op string, x *value) *value {
		at, counts := b.marks(x.elem, x.shape)
		return b.node(op, []*value{at}, onnx.Int64, b.each(func(k int) []int { return []int{x.rank(), counts[k]} }))
	}},
	{op: "Compress", since: 9, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		axis, axisNumber := b.axis(x, b.opset >= 11)
		at, counts := b.marks(onnx.Bool, b.each(func(k int) []int { return []int{x.shape[k][axis]} }))
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			s[axis] = counts[k]
			return s
		})
		return b.node(op, []*value{x, at}, x.elem, shape, integer("axis", axisNumber))
	}},
	{op: "Unique", since: 11, elems: []onnx.DataType{onnx.Float, onnx.Double, onnx.Int64, onnx.Int8}, rank: 1, make: func(b *builder, op string, x *value) *value {
		// Numbers up to a limit, each of them at least once.
		limits := b.each(func(int) []int { return []int{1 + b.IntN(3)} })
		shape := b.each(func(k int) []int { return []int{limits[k][0] + b.IntN(4)} })
		at := b.given(x.elem, shape, func(k, i int) float64 {
			if i < limits[k][0] {
				return float64(i)
			}
			return float64(b.IntN(limits[k][0]))
		})
		b.node(op, []*value{at}, x.elem, limits, truth("sorted", b.chance(0.5)))
		b.more(onnx.Int64, limits)
		b.more(onnx.Int64, shape)
		return b.more(onnx.Int64, limits)
	}},
	{op: "Resize", since: 10, elems: []onnx.DataType{onnx.Float, onnx.Uint8, onnx.Int32}, rank: 4, exact: true, make: (*builder).resize},
	{op: "Upsample", since: 7, until: 9, elems: []onnx.DataType{onnx.Float, onnx.Uint8}, rank: 4, make: func(b *builder, op string, x *value) *value {
		if x.rank() != 4 {
			return nil
		}
		by := []int{1, 1, 1 + b.IntN(2), 1 + b.IntN(3)}
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			for i := range s {
				s[i] *= by[i]
			}
			return s
		})
		mode := text("mode", pick(b, "nearest", "linear"))
		if b.opset < 9 {
			return rough(b.node(op, []*value{x}, x.elem, shape, mode, &onnx.Attribute{Name: "scales", Type: onnx.AttributeFloats, Floats: []float32{float32(by[0]), float32(by[1]), float32(by[2]), float32(by[3])}}))
		}
		return rough(b.node(op, []*value{x, b.constant(onnx.Float, []int{4}, func(i int) float64 { return float64(by[i]) })}, x.elem, shape, mode))
	}},
	{op: "CenterCropPad", since: 18, elems: anything, rank: 1, make: func(b *builder, op string, x *value) *value {
		axis, axisNumber := b.axis(x, true)
		size := b.each(func(k int) []int { return []int{1 + b.IntN(6)} })
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			s[axis] = size[k][0]
			return s
		})
		return b.node(op, []*value{x, b.ints(size)}, x.elem, shape, list("axes", axisNumber))
	}},
}

func flat(lists [][]int) []int {
	var out []int
	for _, l := range lists {
		out = append(out, l[0])
	}
	return out
}

// marks makes an input of which some elements are 0, and counts the others.
func (b *builder) marks(elem onnx.DataType, shape [][]int) (*value, []int) {
	counts := make([]int, b.sets)
	v := b.given(elem, shape, func(k, i int) float64 {
		if b.chance(0.4) {
			return 0
		}
		counts[k]++
		return 1
	})
	r := b.root()
	r.pool = r.pool[:len(r.pool)-1]
	return v, counts
}

// resize resizes images: by sizes or factors, known or not.
func (b *builder) resize(op string, x *value) *value {
	if x.rank() != 4 {
		return nil
	}
	by := b.each(func(int) []int { return []int{1, 1, pick(b, 1, 2, 2, 3), pick(b, 1, 2, 4)} })
	shape := b.each(func(k int) []int {
		s := slices.Clone(x.shape[k])
		for i := range s {
			s[i] *= by[k][i]
		}
		return s
	})
	mode := pick(b, "nearest", "nearest", "linear")
	if x.elem != onnx.Float {
		mode = "nearest" // ONNX Runtime cuts off -0.9999999 to 0
	}
	attributes := []*onnx.Attribute{text("mode", mode)}
	scales := b.intsOf(onnx.Float, by)
	if b.opset < 11 {
		return rough(b.node(op, []*value{x, scales}, x.elem, shape, attributes...))
	}
	if b.opset >= 13 && mode == "linear" && b.chance(0.3) && x.elem == onnx.Float {
		attributes[0] = text("mode", "cubic")
	}
	coordinates := pick(b, "asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel")
	attributes = append(attributes, text("coordinate_transformation_mode", coordinates))
	if mode == "nearest" {
		attributes = append(attributes, text("nearest_mode", pick(b, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")))
	}
	// Before version 13 this input has to be there, though it may be empty.
	roi := b.constant(onnx.Float, []int{0}, nil)
	in := []*value{x, roi, scales}
	if b.opset >= 13 && b.chance(0.5) {
		in[1] = nil
	}
	if b.chance(0.4) {
		none := b.constant(onnx.Float, []int{0}, nil)
		if b.opset >= 13 {
			none = nil
		}
		in = []*value{x, in[1], none, b.ints(shape)}
	}
	return rough(b.node(op, in, x.elem, shape, attributes...))
}
