package ir

import "github.com/nnopt/nnopt/onnx"

// contribBlocked are the operators of the domain com.microsoft.nchwc, which ONNX Runtime writes at its highest level:
// channels are in blocks, and those of a block are the last dimension in memory, though shapes do not say so. What reads
// blocks is of this domain as well or element-wise, so here the order is the plain one everywhere, but for weights,
// which are constants in blocks.
var contribBlocked = func() []Operator {
	list := []Operator{
		{Type: "Conv", MinInputs: 2, MaxInputs: 4, Body: blockedConv},
		{Type: "ReorderInput", MinInputs: 1, MaxInputs: 1, Body: func(b *Builder) []variable {
			if b.Op.Int("channels_last", 0) != 0 {
				return []variable{b.transpose(b.x(0), 0, 3, 1, 2)}
			}
			return []variable{b.Do("Identity", b.x(0))}
		}},
		{Type: "ReorderOutput", MinInputs: 1, MaxInputs: 1, Body: func(b *Builder) []variable {
			y := b.slice(b.x(0), 1, 0, b.Op.Int("channels", 0))
			if b.Op.Int("channels_last", 0) != 0 {
				y = b.transpose(y, 0, 2, 3, 1)
			}
			return []variable{y}
		}},
		{Type: "Upsample", MinInputs: 1, MaxInputs: 1, Body: func(b *Builder) []variable {
			var scales []float32
			for _, n := range b.Ints("scales") {
				scales = append(scales, float32(n))
			}
			attributes := b.keep("mode", "coordinate_transformation_mode")
			if b.Op.Text("mode", "nearest") == "nearest" {
				attributes = []*onnx.Attribute{String("mode", "nearest"), String("coordinate_transformation_mode", "asymmetric"), String("nearest_mode", "floor")}
			}
			return []variable{b.Do("Resize", b.x(0), nil, vectorOf(scales...), attributes)}
		}},
	}
	for _, pool := range []string{"MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"} {
		list = append(list, Operator{Type: pool, MinInputs: 1, MaxInputs: 1,
			Body: same(pool, "auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides")})
	}
	for i := range list {
		list[i].Domain = blocked
	}
	return list
}()

func blockedConv(b *Builder) []variable {
	x, w := b.x(0), b.x(1)
	b.failIf(b.rankOf(w) != 4, "weights of %d dimensions", b.rankOf(w))
	m, channels, height, width := b.number(w, 0), b.number(w, 1), b.number(w, 2), b.number(w, 3)
	block := b.Op.Int(channelBlock, wide)
	b.failIf(block < 1 || m%block != 0, "%d filters in blocks of %d", m, block)
	if channels%block == 0 {
		w = b.reshape(w, m/block, channels/block, height, width, block, block)
		w = b.transpose(w, 0, 5, 1, 4, 2, 3)
	} else { // of plain inputs, or of each channel alone
		w = b.transpose(b.reshape(w, m/block, channels, height, width, block), 0, 4, 1, 2, 3)
	}
	w = b.reshape(w, m, channels, height, width)
	// Weights have zeros for channels that fill up the last block, which inputs lack here or have too many of.
	all := channels * b.Op.Int("group", 1)
	if have, ok := b.known(x, 1); !ok || have != all {
		none := Int64s(0, 0, 0, 0, 0)
		x = b.Do("Pad", x, b.concat(0, none, b.unsqueeze(b.sub(Int64(all), b.size(x, 1)), 0), Int64s(0, 0)))
	}
	y := b.Do("Conv", x, w, b.x(2), b.keep("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"))
	return []variable{b.activated(b.plus(y, b.x(3)), b.keep("activation_params"))}
}
