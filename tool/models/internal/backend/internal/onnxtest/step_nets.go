package onnxtest

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

var netFloats = []onnx.DataType{onnx.Float, onnx.Double, onnx.Float16}

// A window is how an operator goes over images, drawn for all sets of x.
type window struct {
	kernel     []int
	attributes []*onnx.Attribute
	shape      [][]int // of what remains, with the channels of x
}

// window draws a window that fits, nil if none does.
func (b *builder) window(x *value, ceil bool) *window {
	n := x.rank() - 2
	if n < 1 || n > 2 {
		return nil
	}
	w := &window{}
	var strides, dilations []int
	pads := make([]int, 2*n)
	for i := range n {
		w.kernel, strides, dilations = append(w.kernel, 1+b.IntN(3)), append(strides, 1+b.IntN(2)), append(dilations, pick(b, 1, 1, 2))
		for _, at := range []int{i, i + n} {
			// Smaller than the window, so that none lies in the padding alone.
			pads[at] = b.IntN(w.kernel[i])
		}
	}
	auto := pick(b, "NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
	if auto != "NOTSET" {
		clear(pads)
		for i := range dilations {
			dilations[i] = 1
		}
	}
	fits := true
	w.shape = b.each(func(k int) []int {
		s := slices.Clone(x.shape[k])
		for i := range n {
			size := dilations[i]*(w.kernel[i]-1) + 1
			in := s[2+i] + pads[i] + pads[i+n]
			switch {
			// Here the result has ⌈in/stride⌉ positions, whatever the window is.
			case auto == "SAME_UPPER" || auto == "SAME_LOWER":
				s[2+i] = (in + strides[i] - 1) / strides[i]
			case ceil:
				s[2+i] = (in-size+strides[i]-1)/strides[i] + 1
				// A window has to begin in what is given.
				if (s[2+i]-1)*strides[i] >= x.shape[k][2+i]+pads[i] {
					s[2+i]--
				}
			default:
				s[2+i] = (in-size)/strides[i] + 1
			}
			// A window that is spread may have only padding, which programs see as different numbers.
			fits = fits && in >= size && s[2+i] > 0 && (dilations[i] == 1 || x.shape[k][2+i] >= size)
		}
		return s
	})
	if !fits {
		return nil
	}
	w.attributes = []*onnx.Attribute{list("kernel_shape", w.kernel...), list("strides", strides...)}
	if auto == "NOTSET" {
		w.attributes = append(w.attributes, list("pads", pads...), list("dilations", dilations...))
	} else {
		w.attributes = append(w.attributes, text("auto_pad", auto))
	}
	return w
}

// channels returns how many there are, 0 if that is not the same in all sets.
func (b *builder) channels(x *value) int {
	if x.rank() < 2 || !b.agree(x.shape, b.same(x.shape[0]...), 1) {
		return 0
	}
	return x.shape[0][1]
}

// pooling returns a step of a pool.
func pooling(op string) step {
	return step{op: op, since: 7, elems: netFloats, rank: 3, make: func(b *builder, op string, x *value) *value {
		ceil := b.opset >= 10 && op != "LpPool" && b.chance(0.3)
		w := b.window(x, ceil)
		if w == nil {
			return nil
		}
		attributes := w.attributes
		if ceil {
			attributes = append(attributes, integer("ceil_mode", 1))
		}
		if op == "AveragePool" && b.chance(0.5) {
			attributes = append(attributes, integer("count_include_pad", 1))
		}
		if op == "AveragePool" && b.opset < 19 || op == "LpPool" && b.opset < 18 || op == "MaxPool" && b.opset < 10 { // which had no dilations
			for i, a := range attributes {
				if a.Name == "dilations" && slices.Max(a.Ints) > 1 {
					return nil
				} else if a.Name == "dilations" {
					attributes = slices.Delete(slices.Clone(attributes), i, i+1)
					break
				}
			}
		}
		v := b.node(op, []*value{x}, x.elem, w.shape, attributes...)
		if op != "MaxPool" {
			rough(v)
		}
		return v
	}}
}

// global returns a step of a pool over whole images.
func global(op string) step {
	return step{op: op, since: 7, elems: netFloats, rank: 3, make: func(b *builder, op string, x *value) *value {
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			for i := 2; i < len(s); i++ {
				s[i] = 1
			}
			return s
		})
		if slices.ContainsFunc(x.shape, func(s []int) bool { return slices.Contains(s, 0) }) {
			return nil
		}
		return rough(b.node(op, []*value{x}, x.elem, shape))
	}}
}

var netSteps = []step{
	pooling("MaxPool"), pooling("AveragePool"), pooling("LpPool"), global("GlobalAveragePool"), global("GlobalMaxPool"), global("GlobalLpPool"),
	{op: "Conv", since: 7, elems: netFloats, rank: 3, make: func(b *builder, op string, x *value) *value {
		c, w := b.channels(x), b.window(x, false)
		if c == 0 || w == nil {
			return nil
		}
		groups := pick(b, 1, 1, c)
		out := groups * (1 + b.IntN(3))
		in := []*value{x, b.drawn(x.elem, append([]int{out, c / groups}, w.kernel...)...)}
		if b.chance(0.5) {
			in = append(in, b.drawn(x.elem, out))
		}
		for k := range w.shape {
			w.shape[k][1] = out
		}
		return rough(b.node(op, in, x.elem, w.shape, append(w.attributes, integer("group", groups))...))
	}},
	{op: "ConvTranspose", since: 7, elems: netFloats, rank: 3, make: func(b *builder, op string, x *value) *value {
		c, n := b.channels(x), x.rank()-2
		if c == 0 || n > 2 || slices.ContainsFunc(x.shape, func(s []int) bool { return slices.Contains(s, 0) }) {
			return nil
		}
		groups := pick(b, 1, 1, c)
		out := 1 + b.IntN(2)
		var kernel, strides, more []int
		pads := make([]int, 2*n)
		for i := range n {
			kernel, strides = append(kernel, 1+b.IntN(3)), append(strides, 1+b.IntN(3))
			more = append(more, b.IntN(strides[i]))
			pads[i], pads[i+n] = b.IntN(kernel[i]), b.IntN(kernel[i])
		}
		attributes := []*onnx.Attribute{integer("group", groups), list("kernel_shape", kernel...), list("strides", strides...)}
		auto := pick(b, "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "shape")
		fits := true
		var asked []int
		shape := b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			s[1] = out * groups
			for i := range n {
				full := strides[i]*(s[2+i]-1) + kernel[i]
				switch auto {
				case "NOTSET":
					s[2+i] = full + more[i] - pads[i] - pads[i+n]
				case "shape":
					if s[2+i] = max(full-b.IntN(2), 1); len(asked) < n {
						asked = append(asked, s[2+i])
					}
				default:
					// Where nothing is too much, ONNX Runtime leaves out what it should add.
					s[2+i] *= strides[i]
					fits = fits && kernel[i] >= strides[i]
				}
				fits = fits && s[2+i] > 0
			}
			return s
		})
		switch {
		case !fits:
			return nil
		case auto == "NOTSET":
			attributes = append(attributes, list("pads", pads...), list("output_padding", more...))
		case auto == "shape":
			if b.sets > 1 {
				return nil
			}
			attributes = append(attributes, list("output_shape", asked...))
		default:
			attributes = append(attributes, text("auto_pad", auto))
		}
		in := []*value{x, b.drawn(x.elem, append([]int{c, out}, kernel...)...)}
		if b.chance(0.5) {
			in = append(in, b.drawn(x.elem, out*groups))
		}
		return rough(b.node(op, in, x.elem, shape, attributes...))
	}},
	{op: "BatchNormalization", since: 9, elems: netFloats, rank: 2, make: func(b *builder, op string, x *value) *value {
		c := b.channels(x)
		if c == 0 {
			return nil
		}
		positive := b.constant(x.elem, []int{c}, func(int) float64 { return 0.5 + float64(b.Float64()) })
		return rough(b.node(op, []*value{x, b.drawn(x.elem, c), b.drawn(x.elem, c), b.drawn(x.elem, c), positive}, x.elem, x.shape, number("epsilon", 0.01)))
	}},
	{op: "InstanceNormalization", since: 7, elems: netFloats, rank: 3, make: func(b *builder, op string, x *value) *value {
		c := b.channels(x)
		if c == 0 || slices.ContainsFunc(x.shape, func(s []int) bool { return product(s[2:]) < 2 }) {
			return nil
		}
		return rough(b.node(op, []*value{x, b.drawn(x.elem, c), b.drawn(x.elem, c)}, x.elem, x.shape, number("epsilon", 0.1)))
	}},
	{op: "LRN", since: 7, elems: netFloats, rank: 4, make: func(b *builder, op string, x *value) *value {
		return rough(b.node(op, []*value{x}, x.elem, x.shape, integer("size", pick(b, 1, 3, 5)), number("alpha", 0.1)))
	}},
	{op: "Gemm", since: 7, elems: []onnx.DataType{onnx.Float, onnx.Double, onnx.Float16, onnx.Int64, onnx.Int32}, rank: 2, make: func(b *builder, op string, x *value) *value {
		ta, tb := b.chance(0.4), b.chance(0.4)
		rows, inner := 0, 1
		if ta {
			rows, inner = 1, 0
		}
		size := x.shape[0][inner]
		if x.rank() != 2 || size == 0 || !b.agree(x.shape, b.same(x.shape[0]...), inner) {
			return nil
		}
		out := 1 + b.IntN(4)
		w := []int{size, out}
		if tb {
			w = []int{out, size}
		}
		in := []*value{x, b.drawn(x.elem, w...)}
		if b.chance(0.6) {
			in = append(in, b.drawn(x.elem, pick(b, []int{out}, []int{1, out}, []int{1}, []int{})...))
		} else if b.opset < 11 {
			in = append(in, b.drawn(x.elem, out))
		}
		attributes := []*onnx.Attribute{truth("transA", ta), truth("transB", tb)}
		if isFloat(x.elem) {
			attributes = append(attributes, number("alpha", pick(b, 1, 0.5)), number("beta", pick(b, 1, 2, 0.25)))
		}
		return rough(b.node(op, in, x.elem, b.each(func(k int) []int { return []int{x.shape[k][rows], out} }), attributes...))
	}},
	{op: "MatMul", since: 7, elems: []onnx.DataType{onnx.Float, onnx.Double, onnx.Float16, onnx.Int64, onnx.Int32}, rank: 1, make: func(b *builder, op string, x *value) *value {
		last := x.rank() - 1
		size := x.shape[0][last]
		if size == 0 || !b.agree(x.shape, b.same(x.shape[0]...), last) {
			return nil
		}
		out := 1 + b.IntN(4)
		if b.chance(0.2) {
			return rough(b.node(op, []*value{x, b.drawn(x.elem, size)}, x.elem, b.each(func(k int) []int { return slices.Clone(x.shape[k][:last]) })))
		}
		shape := b.each(func(k int) []int { return append(slices.Clone(x.shape[k][:last]), out) })
		return rough(b.node(op, []*value{x, b.drawn(x.elem, size, out)}, x.elem, shape))
	}},
	{op: "Einsum", since: 12, elems: []onnx.DataType{onnx.Float, onnx.Double, onnx.Int32, onnx.Int64}, rank: 2, make: func(b *builder, op string, x *value) *value {
		if x.rank() != 2 {
			return nil
		}
		switch b.IntN(4) {
		case 0:
			return rough(b.node(op, []*value{x}, x.elem, b.each(func(k int) []int { return []int{x.shape[k][1], x.shape[k][0]} }), text("equation", "ij->ji")))
		case 1:
			return rough(b.node(op, []*value{x}, x.elem, b.each(func(k int) []int { return []int{x.shape[k][0]} }), text("equation", "i j -> i")))
		case 2:
			return rough(b.node(op, []*value{x, x}, x.elem, b.each(func(k int) []int { return []int{x.shape[k][0], x.shape[k][0]} }), text("equation", "ij,kj->ik")))
		}
		return rough(b.node(op, []*value{x, x}, x.elem, b.same(), text("equation", "ij,ij->")))
	}},
	recurrent("LSTM", 4), recurrent("GRU", 3), recurrent("RNN", 1),
	{op: "GridSample", since: 16, elems: []onnx.DataType{onnx.Float}, rank: 4, make: func(b *builder, op string, x *value) *value {
		if x.rank() != 4 || slices.ContainsFunc(x.shape, func(s []int) bool { return slices.Contains(s, 0) }) {
			return nil
		}
		h, w := 1+b.IntN(3), 1+b.IntN(3)
		grid := b.given(onnx.Float, b.each(func(k int) []int { return []int{x.shape[k][0], h, w, 2} }), func(int, int) float64 { return float64(2.4*b.Float64()) - 1.2 })
		shape := b.each(func(k int) []int { return []int{x.shape[k][0], x.shape[k][1], h, w} })
		mode := "bilinear"
		if b.opset >= 20 {
			mode = "linear"
		}
		return rough(b.node(op, []*value{x, grid}, x.elem, shape, text("mode", mode), text("padding_mode", pick(b, "zeros", "border", "reflection")), truth("align_corners", b.chance(0.5))))
	}},
}

// recurrent returns a step of a recurrent network with so many gates.
func recurrent(op string, gates int) step {
	return step{op: op, since: 7, elems: []onnx.DataType{onnx.Float}, rank: 3, make: func(b *builder, op string, x *value) *value {
		size := x.shape[0][2]
		if x.rank() != 3 || size == 0 || !b.agree(x.shape, b.same(x.shape[0]...), 2) || slices.ContainsFunc(x.shape, func(s []int) bool { return slices.Contains(s, 0) }) {
			return nil
		}
		direction, d := pick(b, "forward", "reverse"), 1
		if b.chance(0.3) {
			direction, d = "bidirectional", 2
		}
		h := 1 + b.IntN(3)
		in := []*value{x, b.drawn(x.elem, d, gates*h, size), b.drawn(x.elem, d, gates*h, h), nil, nil, nil}
		if b.chance(0.6) {
			in[3] = b.drawn(x.elem, d, 2*gates*h)
		}
		if b.chance(0.3) {
			lengths := b.each(func(k int) []int {
				l := make([]int, x.shape[k][1])
				for i := range l {
					l[i] = 1 + b.IntN(x.shape[k][0])
				}
				return l
			})
			in[4] = b.intsOf(onnx.Int32, lengths)
		}
		if b.chance(0.4) {
			in[5] = b.fresh(x.elem, b.each(func(k int) []int { return []int{d, x.shape[k][1], h} }))
		}
		attributes := []*onnx.Attribute{integer("hidden_size", h), text("direction", direction)}
		if op == "GRU" {
			attributes = append(attributes, integer("linear_before_reset", b.IntN(2)))
		}
		shape := b.each(func(k int) []int { return []int{x.shape[k][0], d, x.shape[k][1], h} })
		v := rough(b.node(op, trimmed(in), x.elem, shape, attributes...))
		rough(b.more(x.elem, b.each(func(k int) []int { return []int{d, x.shape[k][1], h} })))
		return v
	}}
}
